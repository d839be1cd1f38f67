"""Random recursive programs whose meaning is the order in which they write and read variables.

A program is the text of a Python module with a function `make(recursive, tf, variables)`, which defines one to three
functions f(n, x, y), decorated with `recursive`, and returns the first. All values are whole numbers. The module runs
as it is, with `plain` in the place of TensorFlow, and so is its own oracle.
"""
# SPDX-License-Identifier: Apache-2.0

import random
import types

NUM_VARIABLES = 3
MAX_CALLS = 2  # in the text of a function
MAX_DEPTH = 2  # of branches and loops in one another


class PlainVariable:
    """What the programs use of a `tf.Variable`."""

    def __init__(self):
        self.value = 0

    def assign(self, value):
        self.value = int(value)

    def assign_add(self, value):
        self.value += int(value)

    def read_value(self):
        return self.value


plain = types.SimpleNamespace(range=range)


def program(seed):
    """The text of a program."""
    return _Writer(random.Random(seed)).module()


class _Writer:
    def __init__(self, rng):
        self.rng = rng
        self.num_functions = rng.choice([1, 1, 2, 3])
        self.num_calls = 0  # in the function that is being written

    def module(self):
        lines = ["def make(recursive, tf, variables):"]
        for index in range(self.num_functions):
            lines += ["    @recursive", f"    def f{index}(n, x, y):", *indented(indented(self.body()))]
        return "\n".join([*lines, "    return f0", ""])

    def body(self):
        self.num_calls = 0
        lines = self.statements(self.rng.randrange(4), MAX_DEPTH, may_call=False)
        deeper = self.statements(self.rng.randrange(1, 4), MAX_DEPTH - 1, may_call=True)
        lines += ["if n > 0:", *indented(deeper if self.num_calls else [*deeper, self.call()])]
        if self.rng.random() < 0.5:
            lines += ["else:", *indented(self.block(MAX_DEPTH - 1, may_call=False))]
        lines += self.statements(self.rng.randrange(3), MAX_DEPTH, may_call=False)
        # AutoGraph takes what is not read after a branch for a variable of that branch alone, and finds no value of it
        # in a branch of the branch (NameError, in a plain tf.function, too).
        return [*lines, "_ = x + y", f"return {self.result()}, {self.result()}"]

    def result(self):
        """Often one that no variable is read for: who waits for it has waited for no effect."""
        return self.rng.choice(["n", self.expression()])

    def block(self, depth, may_call):
        return self.statements(self.rng.randrange(1, 4), depth, may_call)

    def statements(self, count, depth, may_call):
        return [line for _ in range(count) for line in self.statement(depth, may_call)]

    def statement(self, depth, may_call):
        kind = self.rng.choice(["assign", "add", "x", "y", "branch", "loop", "call", "call"])
        if kind == "assign":
            return [f"{self.variable()}.assign({self.expression()})"]
        if kind == "add":
            return [f"{self.variable()}.assign_add({self.rng.randrange(1, 5)})"]
        if kind == "branch" and depth > 0:
            return self.branch(depth - 1, may_call)
        if kind == "loop" and depth > 0:
            end = self.rng.choice(["2", "3", "x % 3"])
            return [f"for _ in tf.range({end}):", *indented(self.block(depth - 1, may_call=False))]
        if kind == "call" and may_call and self.num_calls < MAX_CALLS:
            return [self.call()]
        return [f"{'y' if kind == 'y' else 'x'} = {self.expression()}"]

    def branch(self, depth, may_call):
        lines = [f"if {self.condition()}:", *indented(self.block(depth, may_call))]
        if self.rng.random() < 0.7:
            lines += ["else:", *indented(self.block(depth, may_call))]
        return lines

    def call(self):
        self.num_calls += 1
        callee = f"f{self.rng.randrange(self.num_functions)}"
        results = self.rng.choice(["", "x, y = ", "_, y = ", "x, _ = "])
        return f"{results}{callee}(n - 1, {self.expression()}, {self.expression()})"

    def variable(self):
        return f"variables[{self.rng.randrange(NUM_VARIABLES)}]"

    def read(self):
        return f"{self.variable()}.read_value()"

    def expression(self):
        number = self.rng.randrange(1, 9)
        choices = ["x", "y", "n", str(number), f"(x + {number} * y) % 97", f"{self.read()} % 1009"]
        return self.rng.choice([*choices, f"({self.read()} + x) % 89", f"({self.read()} * 3 + {self.read()}) % 83"])

    def condition(self):
        return self.rng.choice(["x > y", "x % 2 == 0", "(x + n) % 3 == 1", f"{self.read()} % 2 == 1", "n % 2 == 0"])


def indented(lines):
    return ["    " + line for line in lines]
