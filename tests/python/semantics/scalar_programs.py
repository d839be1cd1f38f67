"""Random recursive functions on numbers of any type: how they are drawn, what they mean in Python, how they are traced.

A program has some functions, each with a few arguments and results of the program's dtypes, and a first argument, the
fuel, which every call has less of. An expression is a tuple that begins with its kind and its dtype:

    ("x", dtype, i)              a value in scope
    ("k", dtype, number)         a constant
    (operator, dtype, a, ..)     what OPERATORS says
    ("cast", dtype, a)
    ("if", dtype, test, a, b)    tf.cond
    ("case", dtype, index, ..)   tf.switch_case
    ("pick", dtype, test, a, b)  tf.where
    ("loop", dtype, times, start, step)
    ("call", dtype, function, result, arguments)
    ("element", dtype, table, indices)  of a vector or matrix that the body captures
"""
# SPDX-License-Identifier: Apache-2.0

import random

import numpy as np
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = SIGNED + UNSIGNED
FLOATS = ["float32", "float64"]
DTYPES = [*INTEGERS, *FLOATS, "bool"]
TABLES = {"int32": 5, "int64": 4, "float64": 6, "uint8": 3}  # vectors by dtype: how long


class Fails(Exception):
    """The program ends with an error."""


class Unsuitable(Exception):
    """The program takes too many calls to be run."""


def edges(dtype):
    """Numbers at the ends of what a dtype holds, and a few in between."""
    if dtype == "bool":
        return [False, True]
    if dtype in FLOATS:
        return [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e30, -1e30, np.inf, -np.inf, np.nan]
    info = np.iinfo(dtype)
    few = [0, 1, 2, 3, 7] + ([-1, -2, -7] if info.min < 0 else [])
    return [*few, info.min, info.max, info.max - 1]


def table(dtype):
    return np.arange(1, TABLES[dtype] + 1).astype(dtype)


def matrix():
    return np.arange(12, dtype=np.int32).reshape(3, 4)


# --- What operators mean ------------------------------------------------------------------------------------------


def _shift_count(count, dtype):
    return np.dtype(dtype).type(min(max(int(count), 0), np.iinfo(dtype).bits - 1))


def _divide(apply):
    def run(x, y):
        if y == 0:
            raise Fails
        return apply(x, y)

    return run


def _truncated(x, y):
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


# Each operator by its name: the dtypes it takes, how many operands, in TensorFlow, in Python. Results of integers wrap.
OPERATORS = {
    "add": (INTEGERS + FLOATS, 2, tf.add, lambda x, y: x + y),
    "sub": (INTEGERS + FLOATS, 2, tf.subtract, lambda x, y: x - y),
    "mul": (INTEGERS + FLOATS, 2, tf.multiply, lambda x, y: x * y),
    "neg": (SIGNED + FLOATS, 1, tf.negative, lambda x: -x),
    "abs": (SIGNED + FLOATS, 1, tf.abs, abs),
    "floordiv": (INTEGERS, 2, tf.math.floordiv, _divide(lambda x, y: x // y)),
    "floormod": (INTEGERS, 2, tf.math.floormod, _divide(lambda x, y: x % y)),
    "truncatediv": (INTEGERS, 2, tf.truncatediv, _divide(_truncated)),
    "realdiv": (FLOATS, 2, tf.realdiv, lambda x, y: x / y),
    "and": (INTEGERS, 2, tf.bitwise.bitwise_and, lambda x, y: x & y),
    "or": (INTEGERS, 2, tf.bitwise.bitwise_or, lambda x, y: x | y),
    "xor": (INTEGERS, 2, tf.bitwise.bitwise_xor, lambda x, y: x ^ y),
    "invert": (INTEGERS, 1, tf.bitwise.invert, lambda x: ~x),
    "left": (INTEGERS, 2, tf.bitwise.left_shift, None),
    "right": (INTEGERS, 2, tf.bitwise.right_shift, None),
    "min": (INTEGERS, 2, tf.minimum, min),
    "max": (INTEGERS, 2, tf.maximum, max),
    "square": (["int32", "int64", *FLOATS], 1, tf.square, lambda x: x * x),
    "floor": (FLOATS, 1, tf.floor, np.floor),
    "ceil": (FLOATS, 1, tf.math.ceil, np.ceil),
    "sqrt": (FLOATS, 1, tf.sqrt, np.sqrt),
    "not": (["bool"], 1, tf.logical_not, lambda x: not x),
    "all": (["bool"], 2, tf.logical_and, lambda x, y: x and y),
    "any": (["bool"], 2, tf.logical_or, lambda x, y: x or y),
}
COMPARISONS = {
    "<": (tf.less, lambda x, y: x < y),
    "<=": (tf.less_equal, lambda x, y: x <= y),
    ">": (tf.greater, lambda x, y: x > y),
    ">=": (tf.greater_equal, lambda x, y: x >= y),
    "==": (tf.equal, lambda x, y: x == y),
    "!=": (tf.not_equal, lambda x, y: x != y),
}


def number(value, dtype):
    """`value` as the dtype holds it: integers wrap around."""
    if dtype in INTEGERS:
        bits = np.iinfo(dtype).bits
        value = int(value) & ((1 << bits) - 1)
        if dtype in SIGNED and value >> (bits - 1):
            value -= 1 << bits
    return np.dtype(dtype).type(value)


def apply(operator, dtype, operands):
    if operator in ("left", "right"):
        x, count = int(operands[0]), int(_shift_count(operands[1], dtype))
        return number(x << count if operator == "left" else x >> count, dtype)
    python = OPERATORS[operator][3]
    if dtype not in INTEGERS:
        return number(python(*operands), dtype)
    operands = [int(x) for x in operands]
    return number(python(*operands), dtype)


# --- Drawing ------------------------------------------------------------------------------------------------------


class Function:
    """What a function takes besides fuel and gives, and its results as expressions: without fuel, and with."""

    def __init__(self, arguments, results):
        self.arguments, self.results, self.bodies = arguments, results, []


class Drawer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        kinds = self.random.choice([["int32"], ["int64"], ["float64", "int32"], ["float32", "bool"], ["int32", "bool"]])
        self.dtypes = [*kinds, self.random.choice(DTYPES)]
        self.calls = 0

    def program(self):
        draw = lambda least, most: [self.random.choice(self.dtypes) for _ in range(self.random.randint(least, most))]
        self.functions = [Function(draw(1, 3), draw(1, 3)) for _ in range(self.random.randint(1, 3))]
        for function in self.functions:
            scope = ["int32", *function.arguments]
            self.calls = 0
            leaves = [self.expression(dtype, scope, 1, False) for dtype in function.results]
            trees = [self.expression(dtype, scope, 3, True) for dtype in function.results]
            function.bodies = [leaves, trees]
        return self.functions

    def leaf(self, dtype, scope):
        known = [i for i, other in enumerate(scope) if other == dtype]
        if known and self.random.random() < 0.75:
            return ("x", dtype, self.random.choice(known))
        if dtype == "bool":  # no constant: TensorFlow's own optimizers lose values behind constant conditions
            number = ("k", "int32", self.random.randint(0, 3))
            return (self.random.choice(["<", "=="]), dtype, ("x", "int32", 0), number)
        return ("k", dtype, self.random.choice(edges(dtype)))

    def expression(self, dtype, scope, depth, may_call):
        if depth == 0:
            return self.leaf(dtype, scope)
        inner = lambda wanted, more=(): self.expression(wanted, [*scope, *more], depth - 1, may_call)
        kind = self.random.choice("leaf op op op op if if pick case loop call call cast compare element".split())
        if kind == "op":
            names = [name for name, (dtypes, *_) in OPERATORS.items() if dtype in dtypes]
            name = self.random.choice(names)
            return (name, dtype, *[inner(dtype) for _ in range(OPERATORS[name][1])])
        if kind in ("if", "pick"):
            return (kind, dtype, inner("bool"), inner(dtype), inner(dtype))
        if kind == "case":
            return (kind, dtype, inner("int32"), *[inner(dtype) for _ in range(self.random.randint(2, 3))])
        if kind == "loop":
            self.calls += 1  # what is in it counts more than once
            return (kind, dtype, self.random.randint(0, 3), inner(dtype), inner(dtype, ["int32", dtype]))
        if kind == "cast" and dtype in INTEGERS + ["float64"]:
            return (kind, dtype, inner(self.random.choice([*SIGNED, "uint8", "bool"])))
        if kind == "compare" and dtype == "bool":
            of = self.random.choice([x for x in self.dtypes if x != "bool"] or ["int32"])
            return (self.random.choice(list(COMPARISONS)), dtype, inner(of), inner(of))
        if kind == "element" and (dtype in TABLES):
            indices = 2 if dtype == "int32" and self.random.random() < 0.5 else 1
            # The fuel is in it because TensorFlow refuses to trace a slice of an index that it knows to be out of
            # range.
            index = lambda: ("add", "int32", inner("int32"), ("x", "int32", 0))
            return (kind, dtype, self.random.choice(["gather", "slice"]), [index() for _ in range(indices)])
        return self.call(dtype, inner) if kind == "call" and may_call and self.calls < 2 else self.leaf(dtype, scope)

    def call(self, dtype, inner):
        fit = [
            (f, r) for f, function in enumerate(self.functions) for r, d in enumerate(function.results) if d == dtype
        ]
        if not fit:
            return inner(dtype)
        self.calls += 1
        function, result = self.random.choice(fit)
        return ("call", dtype, function, result, [inner(d) for d in self.functions[function].arguments])

    def arguments(self):
        return [number(self.random.choice(edges(dtype)), dtype) for dtype in self.functions[0].arguments]


# --- What a program means -----------------------------------------------------------------------------------------


class Oracle:
    """Runs a program in Python."""

    def __init__(self, functions, most_calls):
        self.functions, self.calls_left = functions, most_calls

    def call(self, function, fuel, arguments):
        self.calls_left -= 1
        if self.calls_left < 0:
            raise Unsuitable
        scope = [np.int32(fuel), *arguments]
        return [self.value(e, scope, fuel) for e in self.functions[function].bodies[fuel > 0]]

    def value(self, e, scope, fuel):
        kind, dtype = e[:2]
        of = lambda x: self.value(x, scope, fuel)
        if kind == "x":
            return scope[e[2]]
        if kind == "k":
            return number(e[2], dtype)
        if kind == "if":
            return of(e[3] if of(e[2]) else e[4])
        if kind == "pick":
            test, a, b = map(of, e[2:])
            return a if test else b
        if kind == "case":
            index = int(of(e[2]))
            return of(e[3:][index if 0 <= index < len(e) - 3 else -1])
        if kind == "loop":
            total = of(e[3])
            for i in range(e[2]):
                total = self.value(e[4], [*scope, np.int32(i), total], fuel)
            return total
        if kind == "call":
            return self.call(e[2], fuel - 1, [of(a) for a in e[4]])[e[3]]
        if kind == "element":
            return self.element(e, [int(of(i)) for i in e[3]])
        if kind == "cast":
            return number(of(e[2]), dtype)
        if kind in COMPARISONS:
            return np.bool_(COMPARISONS[kind][1](of(e[2]), of(e[3])))
        return apply(kind, dtype, [of(x) for x in e[2:]])

    def element(self, e, indices):
        array = matrix() if len(indices) == 2 else table(e[1])
        for index, length in zip(indices, array.shape, strict=True):
            if not (0 if e[2] == "gather" and len(indices) == 1 else -length) <= index < length:
                raise Fails
        return array[tuple(indices)]


# --- As a graph ---------------------------------------------------------------------------------------------------


class Builder:
    """Makes a program's functions in the default graph."""

    def __init__(self, functions):
        self.program = functions
        self.tables = {dtype: tf.constant(table(dtype)) for dtype in TABLES} | {"matrix": tf.constant(matrix())}
        self.functions = []
        for i, function in enumerate(functions):
            inputs = [("fuel", tf.int32)] + [(f"a{n}", tf.as_dtype(d)) for n, d in enumerate(function.arguments)]
            outputs = [(f"r{n}", tf.as_dtype(d)) for n, d in enumerate(function.results)]
            shapes = [[]] * len(outputs)
            self.functions.append(tfr.Declare(f"F{i}", inputs, outputs, output_shapes=shapes))
        for i, function in enumerate(functions):
            types = [tf.int32, *map(tf.as_dtype, function.arguments)]
            names = [f"r{n}" for n in range(len(function.results))]
            tfr.Defun(*types, func_name=f"F{i}", out_names=names)(self.traced(function, len(types)))

    def traced(self, function, count):
        def body(*scope):
            scope = [tf.ensure_shape(x, []) for x in scope]
            values = lambda body: [tf.identity(self.value(e, scope, scope[0])) for e in body]
            return tf.cond(scope[0] > 0, lambda: values(function.bodies[1]), lambda: values(function.bodies[0]))

        # Defun wants to see as many parameters as there are types.
        names = ", ".join(f"x{i}" for i in range(count))
        return eval(f"lambda {names}: body({names})", {"body": body})

    def value(self, e, scope, fuel):
        kind, dtype = e[:2]
        of = lambda x: self.value(x, scope, fuel)
        if kind == "x":
            return scope[e[2]]
        if kind == "k":
            return tf.constant(e[2], dtype)
        if kind == "if":
            return tf.cond(of(e[2]), lambda: tf.identity(of(e[3])), lambda: tf.identity(of(e[4])))
        if kind == "pick":
            return tf.where(*map(of, e[2:]))
        if kind == "case":
            return tf.switch_case(of(e[2]), [lambda x=x: tf.identity(of(x)) for x in e[3:]])
        if kind == "loop":
            step = lambda i, total: (i + 1, self.value(e[4], [*scope, i, total], fuel))
            return tf.while_loop(lambda i, _: i < e[2], step, [tf.constant(0), of(e[3])])[1]
        if kind == "call":
            results = self.functions[e[2]](fuel - 1, *[of(a) for a in e[4]])
            return results[e[3]] if len(self.program[e[2]].results) > 1 else results
        if kind == "element":
            return self.element(e, [of(i) for i in e[3]])
        if kind == "cast":
            return tf.cast(of(e[2]), dtype)
        if kind in COMPARISONS:
            return COMPARISONS[kind][0](of(e[2]), of(e[3]))
        return OPERATORS[kind][2](*[of(x) for x in e[2:]])

    def element(self, e, indices):
        if len(indices) == 2:
            return self.tables["matrix"][indices[0], indices[1]]
        return tf.gather(self.tables[e[1]], indices[0]) if e[2] == "gather" else self.tables[e[1]][indices[0]]
