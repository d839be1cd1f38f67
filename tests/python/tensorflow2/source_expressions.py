"""Random expressions of Python as users write them in recursive functions; `source_programs` says what they are for."""
# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random

VALUES = ["float", "int", "bool", "vec", "pair", "dict", "named", "list", "seq"]
# How the parts of a nest are written: for each wanted type, the nests that have such a part.
PARTS = {
    "float": {
        "pair": "{}[0]",
        "dict": "{}['a']",
        "named": "{}.first",
        "vec": "{}[1]",
        "list": "{}[1]",
        "seq": "tf.reduce_sum({})",
    },
    "int": {"pair": "{}[1]", "dict": "{}['i']", "seq": "tf.size({})"},
    "vec": {"named": "{}.second"},
}
FUELS = {
    "tensor": {
        "name": "n",
        "is_there": ["n > 0", "n >= 1", "not n < 1", "0 < n"],
        "is_gone": ["n < 1", "n <= 0", "not n > 0", "tf.less(n, 1)"],
        "less": ["n - 1", "n - 1", "n - 1", "n - 2", "n // 2", "tf.minimum(n - 1, 2)"],
    },
    "python": {
        "name": "n",
        "is_there": ["n > 0"],
        "is_gone": ["n < 1", "n <= 0", "not n > 0"],
        "less": ["n - 1", "n - 1", "n // 2", "min(n - 1, 2)"],
    },
    "list": {
        "name": "xs",
        "is_there": ["tf.size(xs) > 0", "tf.shape(xs)[0] != 0"],
        "is_gone": ["tf.size(xs) == 0", "tf.shape(xs)[0] < 1", "tf.equal(tf.size(xs), 0)", "xs.shape[0] == 0"],
        "less": ["xs[1:]", "xs[:-1]", "xs[2:]", "xs[1:] * 0.5", "tf.reverse(xs[1:], [0])"],
    },
}


@dataclasses.dataclass
class Function:
    """A function of the program: its parameters besides fuel as (name, type), and those that have defaults."""

    name: str
    params: list
    returns: str
    defaults: dict
    is_method: bool = False
    is_helper: bool = False


@dataclasses.dataclass
class Scope:
    """What may be written at a place.

    `values` are the variables by name, with their types; `fixed` those among them that may not be assigned.
    """

    values: dict
    fixed: set
    fuels: list  # what less fuel is; nothing if there is none to give away
    may_return: bool = False
    loop: str = ""  # "tensor" or "python": the innermost loop
    in_method: bool = False
    may_call_helpers: bool = True
    is_top: bool = True  # of a function, before a path may have returned

    def inner(self, **changes):
        inner = dataclasses.replace(self, **changes)
        inner.values, inner.fixed, inner.is_top = dict(self.values), set(self.fixed), False
        return inner

    def named(self, kind):
        return [name for name, known in self.values.items() if known == kind]


def indented(lines):
    return ["    " + line for line in lines]


class Expressions:
    """Writes expressions; there is a method for each type of value, of its name.

    Attributes:
      fuel: how fuel is written, one of `FUELS`.
      calls_left: how many calls the function that is being written may still have.
    """

    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        self.dtype = rng.choice(["tf.float32"] * 3 + ["tf.float64"])
        self.fuel_kind = rng.choice(["tensor"] * 4 + ["list", "python"])
        self.fuel = FUELS[self.fuel_kind]
        self.has_effects = rng.random() < 0.25
        self.has_python_numbers = self.dtype == "tf.float32" and rng.random() < 0.3
        self.names = 0
        self.calls_left = 0
        self.functions, self.helpers = [], []

    def chance(self, probability):
        return self.rng.random() < probability

    def new(self, stem):
        self.names += 1
        return f"{stem}{self.names}"

    def expression(self, kind, scope, depth):
        return getattr(self, kind)(scope, depth)

    def known(self, kind, scope):
        """Expressions for what is there already."""
        found = list(scope.named(kind))
        for nest, part in PARTS.get(kind, {}).items():
            found += [part.format(name) for name in scope.named(nest)]
        return found

    def common(self, kind, scope, depth):
        """A variable, a conditional expression, a call, or None."""
        known = self.known(kind, scope)
        if depth <= 0:
            return self.rng.choice(known) if known and self.chance(0.8) else None
        draw = self.rng.random()
        if draw < 0.2:
            return self.rng.choice(known) if known else None
        if draw < 0.28:
            one, other = self.expression(kind, scope, depth - 1), self.expression(kind, scope, depth - 1)
            return f"({one} if {self.bool(scope, depth - 1)} else {other})"
        if draw < 0.33:
            one, other = self.expression(kind, scope, depth - 1), self.expression(kind, scope, depth - 1)
            return f"tf.cond(tf.convert_to_tensor({self.bool(scope, depth - 1)}), lambda: {one}, lambda: {other})"
        if draw < 0.62:
            return self.call(kind, scope, depth)
        return None

    def literal(self, text):
        return text if self.dtype == "tf.float32" else f"tf.constant({text}, tf.float64)"

    def number(self):
        return self.rng.choice(["0.5", "1.5", "0.25", "-0.75", "2.0"])

    def float(self, scope, depth):
        if found := self.common("float", scope, depth):
            return found
        if depth <= 0:
            leaves = ["w", "tf.cast(n, {F})"] if self.fuel_kind != "list" else ["w", "tf.reduce_sum(xs)"]
            leaves += [self.literal(self.number())]
            if scope.in_method:
                leaves.append("self.w")
            if scope.fuels and self.fuel_kind == "list":
                leaves += ["xs[0]", "xs[-1]"]
            leaf = self.rng.choice(leaves).format(F=self.dtype)
            return leaf if leaf not in ("w", "self.w") else f"{leaf} * {self.number()}"
        one = lambda: self.expression("float", scope, depth - 1)
        kinds = [
            lambda: f"({one()} {self.rng.choice('+-*')} {one()})",
            lambda: f"({one()} {self.rng.choice('+-*')} {one()})",
            lambda: f"{one()} * {self.number()}",
            lambda: f"tf.{self.rng.choice(['sin', 'tanh', 'cos'])}({one()})",
            lambda: f"tf.{self.rng.choice(['sin', 'tanh', 'cos'])}({one()})",
            lambda: f"tf.reduce_{self.rng.choice(['sum', 'mean', 'max'])}({self.vec(scope, depth - 1)})",
            lambda: f"({self.vec(scope, depth - 1)})[{self.rng.choice(['0', '-1', self.int(scope, 0) + ' % 3'])}]",
            lambda: f"tf.cast({self.int(scope, depth - 1)}, {self.dtype})",
            lambda: f"tf.where({self.bool(scope, 0)}, {one()}, {one()})",
            lambda: self.loop(scope, depth),
            lambda: self.sum_over(scope, depth),
            lambda: f"tf.tanh({one()} / {self.rng.choice('23')})",
            lambda: f"-{self.expression('float', scope, 0)}",
            lambda: self.switch(scope, depth),
        ]
        if self.chance(0.15):
            kinds = [
                lambda: f"softened({one()})",
                lambda: f"tf.stop_gradient({one()})",
                lambda: self.fold(scope, depth),
                lambda: f"sum({{key: {one()} for key in 'ab'}}.values())",
            ]
        kinds += [lambda name=name: f"({one()} if {name} is None else {name})" for name in scope.named("optional")] * 2
        kinds += [
            lambda name=name: f"(tf.sin({one()}) if {name} == 'sin' else {one()})" for name in scope.named("mode")
        ] * 2
        if functions := scope.named("fn"):
            kinds += [lambda: f"{self.rng.choice(functions)}({one()})"] * 3
        if self.has_effects:
            kinds += [lambda: "state.read_value()", lambda: "(state + 0.5)"]
        return self.rng.choice(kinds)()

    def loop(self, scope, depth):
        index, value = self.new("j"), self.new("y")
        inner = scope.inner(loop="tensor")
        inner.values.update({index: "int", value: "float"})
        step = self.expression("float", inner, depth - 1)
        start = self.expression("float", scope, 0)
        body = f"lambda {index}, {value}: ({index} + 1, {step})"
        return f"tf.while_loop(lambda {index}, {value}: {index} < 2, {body}, [0, {start}])[1]"

    def fold(self, scope, depth):
        value, element = self.new("y"), self.new("e")
        inner = scope.inner(loop="tensor", fuels=[] if self.has_effects else scope.fuels)
        inner.values.update({element: "float", value: "float"})
        step = self.expression("float", inner, depth - 1)
        start = f"tf.convert_to_tensor({self.expression('float', scope, 0)}, {self.dtype})"
        over = self.vec(scope, 0)
        return self.rng.choice(
            ["tf.foldl(lambda {}, {}: {}, {}, {})", "tf.scan(lambda {}, {}: {}, {}, {})[-1]"]
        ).format(value, element, step, over, start)

    def sum_over(self, scope, depth):
        name = self.new("e")
        inner = scope.inner(loop="python")
        inner.values[name] = "float"
        element = self.expression("float", inner, depth - 1)
        values = ", ".join(self.expression("float", scope, 0) for _ in range(2))
        return self.rng.choice(
            ["sum([{} for {} in ({})])", "tf.add_n([{} * 1.0 for {} in [{}]])", "sum({} for {} in [{}])"]
        ).format(element, name, values)

    def switch(self, scope, depth):
        branches = ", ".join(f"lambda: {self.expression('float', scope, depth - 1)}" for _ in range(2))
        return f"tf.switch_case(tf.convert_to_tensor({self.int(scope, 0)} % 2), [{branches}])"

    def int(self, scope, depth):
        if found := self.common("int", scope, depth):
            return found
        if depth <= 0:
            fuel = "n" if self.fuel_kind != "list" else "tf.size(xs)"
            return self.rng.choice([fuel, fuel, str(self.rng.randrange(5)), *scope.named("pyint")])
        one = lambda: self.int(scope, depth - 1)
        kinds = [
            lambda: f"({one()} {self.rng.choice('+-')} {one()})",
            lambda: f"({one()} * {one()} % 7)",
            lambda: f"({one()} {self.rng.choice(['//', '%'])} {self.rng.randrange(2, 6)})",
            lambda: f"tf.cast({self.bool(scope, depth - 1)}, tf.int32)",
            lambda: f"tf.cast(tf.round({self.expression('float', scope, depth - 1)}), tf.int32) % 9",
            lambda: f"abs({one()})",
            lambda: f"tf.size({self.vec(scope, 0)})",
        ]
        if self.has_effects:
            kinds += [lambda: "counter.read_value() % 11", lambda: "(counter + 1) % 7"]
        return self.rng.choice(kinds)()

    def bool(self, scope, depth):
        if found := self.common("bool", scope, depth):
            return found
        if depth <= 0:
            numbers = [f"{self.int(scope, 0)} {self.rng.choice(['<', '>', '==', '!=', '<='])} {self.rng.randrange(4)}"]
            numbers += [f"{self.expression('float', scope, 0)} {self.rng.choice('<>')} 0.137"]
            numbers += [f"{name} {self.rng.choice(['==', '>', '<'])} 1" for name in scope.named("pyint")]
            return self.rng.choice(numbers)
        one = lambda: self.bool(scope, depth - 1)
        kinds = [
            lambda: f"({one()} {self.rng.choice(['and', 'or'])} {one()})",
            lambda: f"(not {one()})",
            lambda: f"{self.expression('float', scope, depth - 1)} {self.rng.choice('<>')} 0.137",
            lambda: f"{self.expression('float', scope, depth - 1)} {self.rng.choice('<>')} -0.211",
            lambda: f"{self.int(scope, depth - 1)} % 3 {self.rng.choice(['==', '!=', '<'])} {self.rng.randrange(3)}",
            lambda: f"tf.reduce_{self.rng.choice(['any', 'all'])}({self.vec(scope, depth - 1)} > 0.113)",
        ]
        return f"{self.rng.choice(kinds)()}"

    def vec(self, scope, depth):
        if found := self.common("vec", scope, depth):
            return found
        if depth <= 0:
            values = ", ".join(self.number() for _ in range(3))
            return self.rng.choice(
                [f"tf.constant([{values}], {self.dtype})", f"tf.ones([3], {self.dtype})", "matrix[0]"]
            )
        one, number = lambda: self.vec(scope, depth - 1), lambda: self.expression("float", scope, depth - 1)
        kinds = [
            lambda: f"({one()} {self.rng.choice('+-')} {one()})",
            lambda: f"{one()} * {number()}",
            lambda: f"tf.tanh({one()})",
            lambda: f"tf.concat([({one()})[1:], ({one()})[:1]], 0)",
            lambda: f"tf.stack([{self.expression('float', scope, 0)} * 1.0, {number()}, {number()}])",
            lambda: f"tf.reverse({one()}, [0])",
            lambda: f"tf.linalg.matvec(matrix, {one()})",
            lambda: f"tf.concat([[{number()}], ({one()})[1:]], axis=0)",
            lambda: self.mapped(scope, depth),
        ]
        return self.rng.choice(kinds)()

    def mapped(self, scope, depth):
        name = self.new("e")
        inner = scope.inner(loop="tensor", fuels=[] if self.has_effects else scope.fuels)
        inner.values[name] = "float"
        element = self.expression("float", inner, depth - 1)
        return f"tf.map_fn(lambda {name}: {element}, {self.vec(scope, 0)}, fn_output_signature={self.dtype})"

    def fn(self, scope, depth):
        if (known := scope.named("fn")) and self.chance(0.6):
            return self.rng.choice(known)
        name = self.new("t")
        inner = scope.inner(fuels=[])
        inner.values = {known: kind for known, kind in inner.values.items() if kind != "fn"} | {name: "float"}
        return f"(lambda {name}: {self.expression('float', inner, 1)})"

    def pyint(self, scope, depth):
        known = scope.named("pyint")
        if known and self.chance(0.6):
            return self.rng.choice(["{}", "{}", "({} + 1) % 3", "min({} + 1, 2)", "max({} - 1, 0)"]).format(
                self.rng.choice(known)
            )
        return str(self.rng.randrange(3))

    def pair(self, scope, depth):
        parts = lambda: f"({self.expression('float', scope, depth - 1)}, {self.int(scope, depth - 1)})"
        return self.common("pair", scope, depth) or parts()

    def dict(self, scope, depth):
        parts = lambda: f"{{'a': {self.expression('float', scope, depth - 1)}, 'i': {self.int(scope, depth - 1)}}}"
        return self.common("dict", scope, depth) or parts()

    def named(self, scope, depth):
        parts = lambda: f"Named({self.expression('float', scope, depth - 1)}, second={self.vec(scope, depth - 1)})"
        return self.common("named", scope, depth) or parts()

    def list(self, scope, depth):
        parts = lambda: f"[{self.expression('float', scope, depth - 1)}, {self.expression('float', scope, depth - 1)}]"
        return self.common("list", scope, depth) or parts()

    def seq(self, scope, depth):
        """A vector whose size differs."""
        if found := self.common("seq", scope, depth):
            return found
        if depth <= 0:
            leaves = [f"tf.constant([0.5], {self.dtype})", f"tf.zeros([0], {self.dtype})"]
            return self.rng.choice([*leaves, *scope.named("vec")])
        one, number = lambda: self.seq(scope, depth - 1), lambda: self.expression("float", scope, depth - 1)
        kinds = [
            lambda: f"tf.concat([{one()}, [{number()}]], 0)",
            lambda: f"tf.concat([{one()}, {one()}], axis=0)",
            lambda: f"tf.tanh({one()})",
        ]
        kinds += [
            lambda: f"({one()})[1:]",
            lambda: f"({one()}) * {number()}",
            lambda: f"tf.boolean_mask({self.vec(scope, 0)}, {self.vec(scope, 0)} > 0.113)",
        ]
        kinds += [lambda: f"tf.repeat({number()}, {self.int(scope, 0)} % 3)", lambda: f"tf.reverse({one()}, [0])"]
        return self.rng.choice(kinds)()

    def mode(self, scope, depth):
        known = scope.named("mode")
        return self.rng.choice([*known, "'sin'", "'none'"])

    def optional(self, scope, depth):
        return self.rng.choice(["None", self.expression("float", scope, depth), *scope.named("optional")])

    def call(self, kind, scope, depth):
        """A call with less fuel that gives such a value, None if there may be none here."""
        cost = 2 if scope.loop else 1
        if not scope.fuels or self.calls_left < cost:
            return None
        parts = PARTS.get(kind, {})
        fitting = [
            f
            for f in self.functions + self.helpers * (scope.may_call_helpers and scope.fuels is self.fuel["less"])
            if f.returns == kind or f.returns in parts
        ]
        if not fitting:
            return None
        self.calls_left -= cost
        callee = self.rng.choice(fitting)
        fuel = self.fuel["name"] if callee.is_helper else self.rng.choice(scope.fuels)
        text = f"{self.callee(callee, scope)}({', '.join([fuel, *self.arguments(callee, scope, depth)])})"
        return text if callee.returns == kind else parts[callee.returns].format(text)

    def callee(self, function, scope):
        if not function.is_method:
            return function.name
        return f"{'self' if scope.in_method else 'net'}.{function.name}"

    def arguments(self, function, scope, depth):
        arguments, by_keyword = [], False
        for name, kind in function.params:
            if name in function.defaults and self.chance(0.4):
                by_keyword = True
                continue
            by_keyword |= self.chance(0.2)
            value = self.argument(kind, scope, depth)
            arguments.append(f"{name}={value}" if by_keyword else value)
        return arguments

    def argument(self, kind, scope, depth):
        if self.has_python_numbers and kind in ("float", "int") and self.chance(0.2):
            return self.number() if kind == "float" else str(self.rng.randrange(4))
        return self.expression(kind, scope, depth - 1)
