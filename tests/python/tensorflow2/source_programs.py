"""Random recursive functions as users write them: Python source that AutoGraph converts.

A program is the text of a Python module whose functions are decorated with `recursive`, a name that whoever loads the
module gives it. With a decorator that does nothing the module runs as plain Python on eager tensors, and so is its own
oracle; `main` calls the functions. Every function takes fuel first, and every call has less, so each program ends.

What stock AutoGraph cannot do is not written, or seldom (whoever runs programs has to leave those out):
- a `break` or `return` under a condition on tensors in a Python loop, and a `return` in a loop over tensors;
- variables that only one branch, or a loop, defines, and that are read after it, in a function behind it, too;
- in a loop or a branch, another dtype or nest for a variable than it had before, and in a loop another shape;
- chained comparisons, `assert`, `in`, `max`, `min`, `any` and `all` of tensors, `if` in comprehensions, `:=`, `match`;
- Python numbers by themselves where the program computes in float64.
"""
# SPDX-License-Identifier: Apache-2.0

from source_expressions import VALUES, Expressions, Function, Scope, indented

HEADER = '''"""Program {seed}."""
import collections

import tensorflow as tf

Named = collections.namedtuple("Named", ["first", "second"])
w = tf.Variable(0.7, dtype={F}, name="w")
matrix = tf.Variable([[0.3, -0.2, 0.1], [0.0, 0.4, -0.5], [0.2, 0.1, 0.3]], dtype={F}, name="matrix")
counter = tf.Variable(0, name="counter", trainable=False)
state = tf.Variable(0.25, dtype={F}, name="state", trainable=False)


@tf.custom_gradient
def softened(x):
    return tf.tanh(x), lambda dy: dy * 0.5
'''

MAX_CALLS = 3  # in the text of a function
MAX_LINES = 70  # of a program


class Writer(Expressions):
    """Writes a program of one to three recursive functions, and perhaps a plain one that calls them."""

    def __init__(self, seed):
        super().__init__(seed)
        self.seed = seed
        has_methods = self.chance(0.3)
        count = self.rng.choice([1, 1, 2, 2, 3])
        self.functions = [self.function(f"f{i}", has_methods and self.chance(0.6)) for i in range(count)]
        self.helpers = [self.function(f"helper{i}", False) for i in range(self.rng.choice([0, 0, 1]))]
        for helper in self.helpers:
            helper.is_helper = True

    def function(self, name, is_method):
        kinds = ["float", "float", "int", "vec", "pair", "dict", "named", "list", "bool", "seq"]
        if self.chance(0.15):
            kinds.append("fn")
        params = [
            (f"{self.rng.choice('abcde')}_{i}", self.rng.choice(kinds)) for i in range(self.rng.choice([1, 2, 2, 3]))
        ]
        if self.chance(0.15):
            params.append((f"k_{len(params)}", "pyint"))
        if self.chance(0.08):
            params.append((f"how_{len(params)}", "mode"))
        if self.chance(0.1):
            params.append((f"o_{len(params)}", "optional"))
        returns = self.rng.choice(
            ["float", "float", "float", "int", "vec", "vec", "bool", "pair", "dict", "named", "list", "seq"]
        )
        defaults = {}
        for param, kind in reversed(params):
            if kind == "pyint":
                defaults[param] = str(self.rng.randrange(3))
            elif kind == "mode":
                defaults[param] = "'sin'"
            elif kind == "optional":
                defaults[param] = "None"
            elif kind == "float" and self.dtype == "tf.float32" and self.chance(0.3):
                defaults[param] = self.rng.choice(["0.5", "1.5", "-0.25"])
            elif kind == "int" and self.chance(0.3):
                defaults[param] = str(self.rng.randrange(4))
            else:
                break
        return Function(name, params, returns, defaults, is_method)

    def module(self):
        lines = HEADER.format(seed=self.seed, F=self.dtype).splitlines()
        for function in [*self.helpers, *[f for f in self.functions if not f.is_method]]:
            lines += ["", "", *self.definition(function)]
        lines += ["", "", "class Net(tf.Module):", "    def __init__(self):", "        super().__init__()"]
        lines += [f"        self.w = tf.Variable(-0.4, dtype={self.dtype}, name='of_net')"]
        for function in self.functions:
            if function.is_method:
                lines += ["", *indented(self.definition(function))]
        self.calls_left, self.makes_functions, self.returns = 2, self.chance(0.3), "float"
        first, names = self.functions[0], [self.fuel["name"], *[name for name, _ in self.functions[0].params]]
        scope = Scope(dict(first.params), set(), [self.fuel["name"]], may_call_helpers=False)
        scope.fixed = {name for name, kind in first.params if kind in ("pyint", "fn", "mode", "optional")}
        body = self.statements(scope, self.rng.randrange(3), 2)
        call = f"{self.callee(first, scope)}({', '.join(names)})"
        self.returns = self.rng.choice(VALUES)
        body += [f"return {call}, {self.expression(self.returns, scope, 2)}"]
        lines += ["", "", "net = Net()", "", "", f"def main({', '.join(names)}):", *indented(body)]
        return "\n".join([*lines, ""])

    def definition(self, function):
        self.calls_left, self.returns = MAX_CALLS, function.returns
        self.makes_functions = self.chance(0.4)
        names = [self.fuel["name"]] + [
            f"{name}={function.defaults[name]}" if name in function.defaults else name for name, _ in function.params
        ]
        if function.is_method:
            names.insert(0, "self")
        scope = Scope(
            dict(function.params), set(), [], may_return=not self.makes_functions, in_method=function.is_method
        )
        scope.fixed = {name for name, kind in function.params if kind in ("pyint", "fn", "mode", "optional")}
        if function.is_helper:
            scope.fuels, scope.may_call_helpers = self.fuel["less"], False
            body = self.statements(scope, 2, 2) + [f"return {self.expression(function.returns, scope, 2)}"]
        else:
            body = self.body(function, scope)
        lines = [] if function.is_helper else ["@recursive"]
        return [*lines, f"def {function.name}({', '.join(names)}):", *indented(body)]

    def body(self, function, scope):
        """A body whose calls all stand where there is fuel."""
        style = self.rng.choice(["guard", "guard", "branches", "both return", "cond", "expression"])
        if self.fuel_kind == "python" and style == "cond":
            style = "guard"
        lines = self.statements(scope, self.rng.randrange(3), 2)
        there, gone = self.rng.choice(self.fuel["is_there"]), self.rng.choice(self.fuel["is_gone"])
        less = self.fuel["less"]
        if style == "guard":
            lines += [f"if {gone}:", *indented(self.last(function, scope.inner()))]
            deeper = scope.inner(fuels=less)
            return lines + self.statements(deeper, self.rng.randrange(1, 4), 2) + self.last(function, deeper)
        if style == "both return":
            deeper = scope.inner(fuels=less)
            lines += [f"if {there}:", *indented(self.statements(deeper, 2, 2) + self.last(function, deeper))]
            return lines + ["else:", *indented(self.last(function, scope.inner()))]
        if style == "branches":
            result = self.new("r")
            lines += [f"{result} = {self.expression(function.returns, scope, 1)}"]
            scope.values[result] = function.returns
            deeper, without = scope.inner(fuels=less, may_return=False), scope.inner(may_return=False)
            lines += [
                f"if {there}:",
                *indented(self.statements(deeper, 2, 2)),
                f"    {result} = {self.expression(function.returns, deeper, 2)}",
            ]
            if self.chance(0.6):
                lines += ["else:", *indented(self.statements(without, 1, 2))]
            return (
                lines
                + self.statements(scope, self.rng.randrange(2), 1)
                + [f"return {self.expression(function.returns, scope, 1)}" if self.chance(0.3) else f"return {result}"]
            )
        base, deep = (
            self.expression(function.returns, scope, 1),
            self.expression(function.returns, scope.inner(fuels=less), 3),
        )
        if style == "cond":
            test = f"tf.convert_to_tensor({there.replace('not n < 1', 'n >= 1')})"
            return [*lines, f"return tf.cond({test}, lambda: {deep}, lambda: {base})"]
        return [*lines, f"return {deep} if {there} else {base}"]

    def last(self, function, scope):
        """The end of a path."""
        lines = self.statements(scope, self.rng.randrange(2), 1)
        if self.chance(0.2):
            one, other = self.expression(function.returns, scope, 1), self.expression(function.returns, scope, 2)
            return [*lines, f"if {self.bool(scope, 1)}:", f"    return {one}", f"return {other}"]
        return [*lines, f"return {self.expression(function.returns, scope, 2)}"]

    def statements(self, scope, count, depth):
        return [line for _ in range(count) for line in self.statement(scope, depth)]

    def block(self, scope, depth, **changes):
        inner = scope.inner(**changes)
        return indented(self.statements(inner, self.rng.choice([1, 1, 2]), depth))

    def statement(self, scope, depth):
        simple = [self.assign, self.assign, self.augment, self.unpack]
        if self.makes_functions:
            simple += [self.make_function] * 2
        compound = [
            self.branch,
            self.branch,
            self.tensor_for,
            self.tensor_while,
            self.python_for,
            self.array,
            self.fuel_loop,
        ]
        if self.has_effects:
            simple += [self.effect, self.effect]
        if self.chance(0.2):
            simple = [self.check, self.named_scope, self.item, self.chain, self.rest, self.tape, self.tape]
        if scope.is_top and self.chance(0.12):
            simple = [self.local]
        if scope.may_return and not scope.loop and self.chance(0.12):
            scope.is_top = False
            return [f"if {self.bool(scope, 1)}:", f"    return {self.expression(self.returns, scope, 1)}"]
        kinds = simple + compound if depth > 0 else simple
        return self.rng.choice(kinds)(scope, depth)

    def assign(self, scope, depth):
        kind = self.rng.choice(VALUES)
        old = [name for name in scope.named(kind) if name not in scope.fixed]
        if kind == "seq" and scope.loop:  # its size would change
            old = []
        value = self.expression(kind, scope, 2)
        name = (
            self.rng.choice(old)
            if old and self.chance(0.6)
            else self.new({"float": "x", "int": "j", "vec": "v"}.get(kind, kind))
        )
        scope.values[name] = kind
        return [f"{name} = {value}"]

    def augment(self, scope, depth):
        kind = self.rng.choice(["float", "int", "vec"])
        old = [name for name in scope.named(kind) if name not in scope.fixed]
        if not old:
            return self.assign(scope, depth)
        operator = self.rng.choice(["+=", "-="] if kind == "int" else ["+=", "-=", "*="])
        return [f"{self.rng.choice(old)} {operator} {self.expression(kind, scope, 2)}"]

    def unpack(self, scope, depth):
        olds = [name for name in scope.named("float") if name not in scope.fixed]
        if len(olds) > 1 and self.chance(0.3):
            one, other = self.rng.sample(olds, 2)
            return [f"{one}, {other} = {other}, {one}"]
        pair = self.expression("pair", scope, 2)
        ints = [name for name in scope.named("int") if name not in scope.fixed]
        one = self.rng.choice(olds) if olds and self.chance(0.5) else self.new("x")
        other = self.rng.choice(ints) if ints and self.chance(0.5) else self.new("j")
        scope.values.update({one: "float", other: "int"})
        return [f"{one}, {other} = {pair}"]

    def item(self, scope, depth):
        if not (names := [name for name in scope.named("dict") if name not in scope.fixed]):
            return self.assign(scope, depth)
        name = self.rng.choice(names)
        return [f"{name} = dict({name})", f"{name}['a'] = {self.expression('float', scope, 2)}"]

    def make_function(self, scope, depth):
        name, value = self.new("g"), self.new("t")
        inner = scope.inner(may_return=False, loop="")
        inner.values = {known: kind for known, kind in inner.values.items() if kind != "fn"}
        inner.fixed |= set(inner.values)
        inner.values[value] = "float"
        inner.fixed.discard(value)
        if self.chance(0.5):
            lines = [f"{name} = lambda {value}: {self.expression('float', inner, 2)}"]
        else:
            lines = [f"def {name}({value}):"]
            lines += indented(self.statements(inner, self.rng.randrange(2), min(depth, 1)))
            if self.chance(0.4):
                lines += [f"    if {self.bool(inner, 1)}:", f"        return {self.expression('float', inner, 1)}"]
            lines += [f"    return {self.expression('float', inner, 2)}"]
        scope.values[name] = "fn"
        scope.fixed.add(name)
        return lines

    def effect(self, scope, depth):
        return [
            self.rng.choice(
                [
                    f"counter.assign_add({self.expression('int', scope, 1)} % 5)",
                    f"counter.assign((counter.read_value() * 3 + {self.expression('int', scope, 1)}) % 89)",
                    f"state.assign(tf.tanh({self.expression('float', scope, 1)}))",
                    f"state.assign_add(tf.sin({self.expression('float', scope, 1)}))",
                ]
            )
        ]

    def check(self, scope, depth):
        return [
            f"tf.debugging.assert_less(tf.abs({self.expression('float', scope, 1)}), tf.constant(1e6, {self.dtype}))"
        ]

    def named_scope(self, scope, depth):
        return ["with tf.name_scope('part'):", *indented(self.assign(scope, depth))]

    def chain(self, scope, depth):
        one, other = self.new("x"), self.new("x")
        value = self.expression("float", scope, 2)
        scope.values.update({one: "float", other: "float"})
        return [f"{one} = {other} = {value}"]

    def rest(self, scope, depth):
        one, other = self.new("x"), self.new("l")
        values = ", ".join(self.expression("float", scope, 1) for _ in range(3))
        scope.values.update({one: "float", other: "list"})
        return [f"{one}, *{other} = [{values}]"]

    def tape(self, scope, depth):
        """A gradient in a body. Of calls it has no gradient in turn."""
        old = scope.named("float")
        if not old or self.has_python_numbers:
            return self.assign(scope, depth)
        tape, value, source, name = self.new("tape"), self.new("x"), self.rng.choice(old), self.new("x")
        point = self.new("x")
        inner = scope.inner()
        inner.values[point] = "float"
        lines = [
            f"{point} = tf.convert_to_tensor({source}, {self.dtype})",
            f"with tf.GradientTape() as {tape}:",
            f"    {tape}.watch({point})",
        ]
        lines += [f"    {value} = {self.expression('float', inner, 3)} * {point}"]
        scope.values.update({value: "float", name: "float", point: "float"})
        return [*lines, f"{name} = tf.stop_gradient({tape}.gradient({value}, {point}))"]

    def local(self, scope, depth):
        """A recursive function that the body makes."""
        if not scope.is_top:
            return self.assign(scope, depth)
        name, fuel, value = self.new("inner"), self.new("m"), self.new("y")
        inner = scope.inner(fuels=[], may_return=False, loop="")
        inner.values = inner.values | {value: "float", fuel: "int"}
        inner.fixed = set(inner.values) - {value}
        base = self.expression("float", inner, 1)
        lines = ["@recursive", f"def {name}({fuel}, {value}):", f"    if {fuel} < 1:", f"        return {base}"]
        lines += indented(self.statements(inner, self.rng.randrange(2), 1))
        before = self.expression("float", inner, 1)
        inner.values[self.new("x")] = "float"
        result = list(inner.values)[-1]
        lines += [f"    {result} = {name}({fuel} - 1, {before})", f"    return {self.expression('float', inner, 2)}"]
        start = (
            "tf.constant(2)" if self.fuel_kind != "tensor" else self.rng.choice(["tf.minimum(n, 2)", "tf.constant(1)"])
        )
        made = self.new("x")
        lines += [f"{made} = {name}({start}, {self.expression('float', scope, 1)})"]
        scope.values[made] = "float"
        return lines

    def branch(self, scope, depth):
        """An `if`. Where one returns, there is no `elif`: AutoGraph does not go on to what follows from there."""
        if scope.may_return and not scope.loop and self.chance(0.3):
            scope.is_top = False
            inner = scope.inner()
            lines = [
                f"if {self.bool(scope, 2)}:",
                *indented(self.statements(inner, self.rng.choice([1, 1, 2]), depth - 1)),
            ]
            return [*lines, f"    return {self.expression(self.returns, inner, 1)}"]
        scope = scope.inner(may_return=False)
        lines = [f"if {self.bool(scope, 2)}:", *self.ending_block(scope, depth - 1)]
        while self.chance(0.25):
            lines += [f"elif {self.bool(scope, 1)}:", *self.ending_block(scope, depth - 1)]
        if self.chance(0.6):
            lines += ["else:", *self.ending_block(scope, depth - 1)]
        return lines

    def ending_block(self, scope, depth):
        """A block of a branch, which may leave the loop or the iteration."""
        inner = scope.inner()
        lines = self.statements(inner, self.rng.choice([1, 1, 2]), depth)
        if scope.loop == "tensor" and self.chance(0.25):
            lines.append(self.rng.choice(["break", "continue"]))
        elif scope.loop == "python" and self.chance(0.2):
            lines.append("continue")
        return indented(lines)

    def tensor_for(self, scope, depth):
        vectors = scope.named("vec") + (["xs"] if self.fuel_kind == "list" else [])
        inner = scope.inner(loop="tensor")
        if vectors and self.chance(0.3):
            name, over, kind = self.new("x"), self.rng.choice(vectors), "float"
        else:
            end = self.rng.choice(["2", "3", f"{self.expression('int', scope, 1)} % 3", "tf.constant(2)"])
            name, over, kind = self.new("j"), f"tf.range({end})", "int"
        inner.values[name] = kind
        inner.fixed.add(name)
        return [f"for {name} in {over}:", *self.block(inner, depth - 1)]

    def tensor_while(self, scope, depth):
        name = self.new("j")
        further = f" and {self.bool(scope, 1)}" if self.chance(0.4) else ""
        inner = scope.inner(loop="tensor")
        inner.values[name] = "int"
        inner.fixed.add(name)
        start = [f"{name} = tf.constant(0)", f"while {name} < {self.rng.choice('123')}{further}:", f"    {name} += 1"]
        return start + self.block(inner, depth - 1)

    def python_for(self, scope, depth):
        inner = scope.inner(loop="python")
        if self.chance(0.2):
            name, index = self.new("x"), self.new("q")
            values = ", ".join(self.expression("float", scope, 1) for _ in range(2))
            over = self.rng.choice(["enumerate([{}])", "zip(range(2), ({}))", "enumerate(({}), 1)"]).format(values)
            lines = [f"for {index}, {name} in {over}:"]
            inner.values.update({name: "float", index: "pyint"})
            inner.fixed |= {name, index}
        elif self.chance(0.2):
            name, index = self.new("x"), self.new("key")
            values = ", ".join(f"'{key}': {self.expression('float', scope, 1)}" for key in "ab")
            lines = [f"for {index}, {name} in {{{values}}}.items():"]
            inner.values.update({name: "float"})
        elif self.chance(0.5):
            name = self.new("x")
            values = ", ".join(self.expression("float", scope, 1) for _ in range(2))
            lines = [f"for {name} in {self.rng.choice(['[{}]', '({})']).format(values)}:"]
            inner.values[name] = "float"
        else:
            name = self.new("q")
            end = self.rng.choice(["2", "3", *scope.named("pyint")])
            end = end if end.isdigit() else f"min({end}, 2) + 1"
            lines = [f"for {name} in range({end}):"]
            inner.values[name] = "pyint"
        inner.fixed.add(name)
        lines += self.block(inner, depth - 1)
        if inner.values[name] == "pyint" and self.chance(0.2):
            lines += [f"    if {name} == 1:", "        break"]
        return lines

    def array(self, scope, depth):
        array, index, name = self.new("ta"), self.new("j"), self.new("v")
        inner = scope.inner(loop="tensor")
        inner.values[index] = "int"
        inner.fixed.add(index)
        element = self.expression("float", inner, 2)
        lines = [f"{array} = tf.TensorArray({self.dtype}, size=3)", f"for {index} in tf.range(3):"]
        lines += [f"    {array} = {array}.write({index}, {element})", f"{name} = tf.ensure_shape({array}.stack(), [3])"]
        scope.values[name] = "vec"
        return lines

    def fuel_loop(self, scope, depth):
        if self.fuel_kind == "list" or not scope.fuels or self.calls_left < 1:
            return self.branch(scope, depth)
        left = self.new("m")
        kind = "tensor" if self.fuel_kind == "tensor" else "python"
        inner = scope.inner(loop=kind, fuels=[left])
        return [f"{left} = n", f"while {left} > 0:", f"    {left} -= 1", *self.block(inner, depth - 1)]


def program(seed):
    """The text of a program, and its writer; `writer.functions[0]` has the parameters of `main`, besides fuel."""
    for attempt in range(100):
        writer = Writer(f"{seed}/{attempt}")
        text = writer.module()
        lines = text.splitlines()
        if len(lines) <= MAX_LINES and max(map(len, lines)) < 260:
            return text, writer
    raise AssertionError(seed)
