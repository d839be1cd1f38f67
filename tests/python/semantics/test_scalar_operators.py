"""Every operator at the edges of every dtype: compiled, in frames and in Python, of arguments and of constants."""
# SPDX-License-Identifier: Apache-2.0

import contextlib

import numpy as np
import pytest
import scalar_programs
import tensorflow as tf
from building import recursive
from scalar_programs import COMPARISONS, DTYPES, FLOATS, OPERATORS, Fails, edges, number

import tensorflow_recursion as tfr

tf1 = tf.compat.v1


def operators(dtype):
    """Names, with how many operands each has."""
    found = {name: count for name, (dtypes, count, *_) in OPERATORS.items() if dtype in dtypes}
    return found if dtype == "bool" else found | dict.fromkeys(COMPARISONS, 2)


def in_tensorflow(operator):
    return COMPARISONS[operator][0] if operator in COMPARISONS else OPERATORS[operator][2]


def in_python(operator, dtype, operands):
    with np.errstate(all="ignore"):
        if operator in COMPARISONS:
            return np.bool_(COMPARISONS[operator][1](*operands))
        return scalar_programs.apply(operator, dtype, operands)


def assert_number(actual, wanted, note):
    assert actual.dtype == wanted.dtype, note
    assert actual.tobytes() == wanted.tobytes() or (actual != actual and wanted != wanted), (
        f"{actual}, {wanted}: {note}"
    )


def expected(operator, dtype, operands):
    try:
        return in_python(operator, dtype, operands)
    except Fails:
        return Fails


def of_arguments(apply, count):
    return lambda x, y: apply(*(x, y)[:count])


def of_constant(apply, k, is_second):
    return lambda x: apply(x, k) if is_second else apply(k, x)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_at_edges(dtype):
    numbers = [number(x, dtype) for x in edges(dtype)]
    with tf.Graph().as_default() as graph, contextlib.ExitStack() as sessions:
        feeds = [tf1.placeholder(dtype, []), tf1.placeholder(dtype, [])]
        calls = {}
        for i, (operator, count) in enumerate(operators(dtype).items()):
            result = tf.bool if operator in COMPARISONS else tf.as_dtype(dtype)
            f, define = recursive(f"Op{i}", [tf.as_dtype(dtype)] * 2, [result])
            define(of_arguments(in_tensorflow(operator), count))
            calls[operator] = f(*feeds)
            assert "runs in frames" not in tfr.bytecode(graph, f"Op{i}")
        configs = [tfr.session_config(), tfr.session_config(compile=False)]
        modes = [sessions.enter_context(tf1.Session(config=config)) for config in configs]
        for x in numbers:
            for y in numbers:
                wanted = {
                    operator: expected(operator, dtype, (x, y)[: operators(dtype)[operator]]) for operator in calls
                }
                fetches = {operator: call for operator, call in calls.items() if wanted[operator] is not Fails}
                for mode in modes:
                    results = mode.run(fetches, dict(zip(feeds, (x, y), strict=True)))
                    for operator, value in results.items():
                        assert_number(value, wanted[operator], f"{operator} of {x!r}, {y!r}")


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_with_constants(dtype):
    """A constant second operand has instructions of its own; a constant first one may become the second."""
    chosen = [False, True] if dtype == "bool" else [0.5, 1.0] if dtype in FLOATS else [2, 3, edges(dtype)[-1]]
    constants = [number(x, dtype) for x in chosen]
    with tf.Graph().as_default(), contextlib.ExitStack() as sessions:
        feed = tf1.placeholder(dtype, [])
        calls = {}
        for operator, count in operators(dtype).items():
            for k in constants if count == 2 else []:
                for is_second in (True, False):
                    result = tf.bool if operator in COMPARISONS else tf.as_dtype(dtype)
                    f, define = recursive(f"Op{len(calls)}", [tf.as_dtype(dtype)], [result])
                    define(of_constant(in_tensorflow(operator), k, is_second))
                    calls[operator, float(k), is_second] = (f(feed), k)
        if not calls:
            return
        configs = [tfr.session_config(), tfr.session_config(compile=False)]
        modes = [sessions.enter_context(tf1.Session(config=config)) for config in configs]
        for x in (number(x, dtype) for x in edges(dtype)):
            wanted = {key: expected(key[0], dtype, (x, k) if key[2] else (k, x)) for key, (_, k) in calls.items()}
            keys = [key for key in calls if wanted[key] is not Fails]
            for mode in modes:
                for key, value in zip(keys, mode.run([calls[key][0] for key in keys], {feed: x}), strict=True):
                    assert_number(value, wanted[key], f"{key} of {x!r}")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("compile", [True, False])
def test_operators_of_the_least_numbers(dtype, compile):
    """They are what the kernels make of them, whose threads take these numbers for zeros."""
    least = np.finfo(dtype).smallest_subnormal
    with tf.Graph().as_default(), contextlib.ExitStack() as sessions:
        feeds = [tf1.placeholder(dtype, []), tf1.placeholder(dtype, [])]
        calls, alone = {}, {}
        chosen = {operator: (in_tensorflow(operator), count) for operator, count in operators(dtype).items()}
        chosen |= {"min": (tf.minimum, 2), "max": (tf.maximum, 2)}
        for i, (operator, (apply, count)) in enumerate(chosen.items()):
            apply = of_arguments(apply, count)
            alone[operator] = apply(*feeds)
            f, define = recursive(f"Op{i}", [tf.as_dtype(dtype)] * 2, [alone[operator].dtype])
            define(apply)
            calls[operator] = f(*feeds)
        stock = sessions.enter_context(tf1.Session())
        ours = sessions.enter_context(tf1.Session(config=tfr.session_config(compile=compile)))
        for x in (least, -least, 100 * least):
            for y in (x, least, number(1, dtype), number(-1, dtype)):
                for fed in ((x, y), (y, x)):
                    fed = dict(zip(feeds, fed, strict=True))
                    wanted = stock.run(alone, fed)
                    for operator, value in ours.run(calls, fed).items():
                        assert_number(value, wanted[operator], f"{operator} of {list(fed.values())}")
