"""Recursive functions in random Python source mean what they mean in plain Python, with their gradients."""
# SPDX-License-Identifier: Apache-2.0

import importlib.util
import random

import numpy as np
import pytest
import source_programs
import tensorflow as tf
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.autograph.impl import api

import tensorflow_recursion as tfr

MAX_CALLS = 250  # of a run in plain Python
MAX_VALUE = 1e5
QUICK = [1, 2, 5]  # seeds


class Unsuitable(Exception):
    """The program runs too long, or its numbers are not fit to be compared."""


class Plain:
    """Decorator that lets functions run as they are. It notes how deep calls go, and what functions return."""

    def __init__(self):
        self.calls, self.depth, self.deepest, self.zeros = 0, 0, 0, {}

    def __call__(self, function):
        def called(*args, **kwargs):
            self.calls, self.depth = self.calls + 1, self.depth + 1
            self.deepest = max(self.deepest, self.depth)
            if self.calls > MAX_CALLS:
                raise Unsuitable
            result = function(*args, **kwargs)
            self.depth -= 1
            self.zeros[function.__qualname__] = tf.nest.map_structure(lambda x: np.zeros_like(np.asarray(x)), result)
            return result

        return called


class Unrolled:
    """Decorator that lets stock TensorFlow unroll functions: calls that are deeper than any that runs return zeros."""

    def __init__(self, plain):
        self.plain, self.depth, self.calls = plain, 0, 0

    def __call__(self, function):
        status = ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED)

        @tf.autograph.experimental.do_not_convert
        def called(*args, **kwargs):
            if self.depth >= self.plain.deepest:
                return tf.nest.map_structure(tf.constant, self.plain.zeros[function.__qualname__])
            self.depth, self.calls = self.depth + 1, self.calls + 1
            if self.calls > MAX_CALLS:
                raise Unsuitable
            result = api.tf_convert(function, status, user_requested=True)(*args, **kwargs)
            self.depth -= 1
            return result

        return called


def load(path, decorator):
    """The module of a program. AutoGraph reads its text in a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    module.recursive = decorator
    spec.loader.exec_module(module)
    return module


def argument(kind, writer, rng):
    """A random argument of a type; of a named tuple, its parts, as its class is the module's."""
    number = lambda: tf.constant(rng.uniform(-1.5, 1.5), writer.dtype.removeprefix("tf."))
    integer = lambda: tf.constant(rng.randrange(-3, 7))
    vector = lambda size: tf.stack([number() for _ in range(size)]) if size else number()[None][:0]
    return {
        "float": number,
        "int": integer,
        "bool": lambda: tf.constant(rng.random() < 0.5),
        "vec": lambda: vector(3),
        "seq": lambda: vector(rng.randrange(3)),
        "pair": lambda: (number(), integer()),
        "dict": lambda: {"a": number(), "i": integer()},
        "named": lambda: ("of Named", number(), vector(3)),
        "list": lambda: [number(), number()],
        "pyint": lambda: rng.randrange(3),
        "mode": lambda: rng.choice(["sin", "none"]),
        "optional": lambda: rng.choice([None, number()]),
        "fn": lambda: lambda x: tf.sin(x) * 0.5,
    }[kind]()


def arguments(writer, fuel, rng):
    size = [rng.uniform(-1.0, 1.0) for _ in range(fuel)]
    dtype = writer.dtype.removeprefix("tf.")
    fuels = {"tensor": tf.constant(fuel), "python": fuel, "list": tf.constant(size, dtype)}
    return [fuels[writer.fuel_kind], *(argument(kind, writer, rng) for _, kind in writer.functions[0].params)]


class Run:
    """A program with one meaning of `recursive`, and with arguments."""

    def __init__(self, path, decorator, args):
        self.module = module = load(path, decorator)
        is_named = lambda one: isinstance(one, tuple) and isinstance(one[0], str)
        self.args = [module.Named(*one[1:]) if is_named(one) else one for one in args]

    def values(self, *args):
        return self.module.main(*args)

    def gradients(self, *args):
        module = self.module
        sources = [x for x in tf.nest.flatten(args) if isinstance(x, tf.Tensor) and x.dtype.is_floating]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            results = map(tf.convert_to_tensor, tf.nest.flatten(module.main(*args)))
            sums = [tf.reduce_sum(tf.sin(x)) for x in results if x.dtype.is_floating]
            total = tf.add_n([module.w * 0.0, *sums])
        return tape.gradient(total, [*sources, module.w, module.net.w], unconnected_gradients="zero")

    def found(self, kind, is_eager):
        """What the program returns, or its gradients, and what its variables are then."""
        self.module.counter.assign(0)
        self.module.state.assign(0.25)
        function = getattr(self, kind)
        result = (function if is_eager else tf.function(lambda *args: function(*args)))(*self.args)
        return list(map(np.asarray, tf.nest.flatten([result, self.module.counter, self.module.state])))


def expected(path, writer, seed, kind):
    """The arguments, the decorator, and what plain Python finds, with as much fuel as it can use."""
    for fuel in (3, 2, 1):
        args, plain = arguments(writer, fuel, random.Random(seed)), Plain()
        try:
            found = Run(path, plain, args).found(kind, is_eager=True)
        except Unsuitable:
            continue
        if all(np.all(np.abs(one) < MAX_VALUE) for one in found):
            return args, plain, found
    raise Unsuitable


def differ(run, kind, is_eager, wanted):
    """How a run differs from what is expected; None if it does not."""
    try:
        found = run.found(kind, is_eager)
    except Unsuitable:
        raise
    except Exception as error:
        return error
    is_float32 = run.module.w.dtype == tf.float32
    tolerance = 3e-4 if is_float32 else 1e-7
    are_same = all(
        a.shape == b.shape and np.allclose(a, b, rtol=tolerance, atol=tolerance)
        for a, b in zip(found, wanted, strict=True)
    )
    return None if are_same else AssertionError(f"{found} is not {wanted}")


def check(seed, folder):
    """Checks a program in one way, which the seed chooses. Returns whether it has been one that TensorFlow can do."""
    text, writer = source_programs.program(seed)
    path = folder / f"program_{seed}.py"
    path.write_text(text)
    kind, is_eager = random.Random(seed).choice([("values", True), ("values", False), ("gradients", False)])
    try:
        args, plain, wanted = expected(path, writer, seed, kind)
        error = differ(Run(path, tfr.recursive, args), kind, is_eager, wanted)
        if error is None:
            return True
        if differ(Run(path, Unrolled(plain), args), kind, False, wanted) is not None:
            return False
    except Unsuitable:
        return False
    raise AssertionError(f"seed {seed}, {kind}: {error}\n{text}") from error


@pytest.mark.thorough
def test_programs_mean_what_python_means(tmp_path, static_or_error):
    assert sum(check(seed, tmp_path) for seed in QUICK) == len(QUICK)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numbers and sizes that have many values
def test_many_programs_mean_what_python_means(tmp_path, static_or_error):
    seeds = range(1000, 1060)
    assert sum(check(seed, tmp_path) for seed in seeds) > 0.8 * len(seeds)
