"""Functions on numbers run as bytecode: the same results, errors and limits as in frames, and much faster."""
# SPDX-License-Identifier: Apache-2.0

import functools
import re

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1


def run(build, *, compile=True, **options):
    """What the fetches that `build` makes in a graph of its own evaluate to."""
    with tf1.Graph().as_default():
        fetches = build()
        with tf1.Session(config=tfr.session_config(compile=compile, **options)) as session:
            return session.run(fetches)


def listing(build, name):
    with tf1.Graph().as_default() as graph:
        build()
        return tfr.bytecode(graph, name)


def both_ways(build):
    """Expects the same results compiled and in frames; returns them."""
    compiled, frames = run(build), run(build, compile=False)
    tf.nest.map_structure(np.testing.assert_array_equal, compiled, frames)
    return compiled


def fib(n):
    declared = tfr.Declare("Fib", [("n", tf.int32)], [("ret", tf.int32)])

    @tfr.Defun(tf.int32, func_name="Fib", out_names=["ret"])
    def FibImpl(n):
        return tf.cond(n < 2, lambda: n, lambda: declared(n - 1) + declared(n - 2))

    return FibImpl(n)


def test_fib_is_four_instructions():
    assert listing(lambda: fib(5), "Fib").splitlines()[1:] == [
        "    0  ReturnUnlessGreaterEqualInt32K r0 unless r0, 2",
        "    1  CallSubInt32KIfGreaterEqualInt32K r1 = Fib(r2) after r2 = r0, 1",
        "    3  CallSubInt32KIfGreaterEqualInt32K r0 = Fib(r3) after r3 = r0, 2",
        "    5  ReturnAddInt32           r1, r0",
    ]


def test_fib():
    assert both_ways(lambda: fib(10)) == 55


def test_call_of_vector_runs_in_frames():
    def build():
        double = tfr.Declare("Double", [("n", tf.int32), ("x", tf.float32)], [("ret", tf.float32)])

        @tfr.Defun(tf.int32, tf.float32, func_name="Double", out_names=["ret"])
        def DoubleImpl(n, x):
            return tf.cond(n < 1, lambda: x, lambda: 2.0 * double(n - 1, x))

        return DoubleImpl(3, [1.0, 2.0]), DoubleImpl(3, 1.5)

    vector, number = both_ways(build)
    assert list(vector) == [8.0, 16.0]
    assert number == 12.0


def count(max_depth=None):
    declared = tfr.Declare("Count", [("n", tf.int64)], [("ret", tf.int64)])

    @tfr.Defun(tf.int64, func_name="Count", out_names=["ret"])
    def CountImpl(n):
        return tf.cond(n < 1, lambda: n, lambda: 1 + declared(n - 1))

    return CountImpl


def test_recursion_a_million_deep():
    assert run(lambda: count()(np.int64(1_000_000))) == 1_000_000


def test_unbounded_recursion_is_error():
    def build():
        endless = tfr.Declare("Endless", [("n", tf.int64)], [("ret", tf.int64)])

        @tfr.Defun(tf.int64, func_name="Endless", out_names=["ret"])
        def EndlessImpl(n):
            return 1 + endless(n + 1)

        return EndlessImpl(np.int64(0))

    texts = []
    for compile in (True, False):
        with pytest.raises(tf.errors.ResourceExhaustedError) as error:
            run(build, compile=compile, max_depth=1000)
        texts.append(re.sub(r"run_\d+", "run", error.value.message))  # our node's name: one for each graph
    assert "call of 'Endless' would be at depth 1001, the limit is 1000" in texts[0]
    assert "Endless > Endless > Endless > (994 more) > Endless > Endless > Endless" in texts[0]
    assert texts[0] == texts[1]


@pytest.mark.thorough
def test_large_frames_end_by_memory():
    """A frame keeps 40 arguments of 8 bytes each, which are all needed after the call."""

    def build():
        count = 40
        many = tfr.Declare("Many", [(f"a{i}", tf.int64) for i in range(count)], [("ret", tf.int64)])
        names = ", ".join(f"a{i}" for i in range(count))
        add_up = lambda *values: functools.reduce(lambda total, value: value + total, values, many(*values))
        body = eval(f"lambda {names}: add_up({names})", {"add_up": add_up})
        define = tfr.Defun(*[tf.int64] * count, func_name="Many", out_names=["ret"])
        return define(body)(*[np.int64(i) for i in range(count)])

    with pytest.raises(tf.errors.ResourceExhaustedError, match="but the frames of calls take 512 MiB") as error:
        run(build)
    depth = int(re.search(r"would be at depth (\d+)", error.value.message).group(1))
    assert 512 * 2**20 / (50 * 8) < depth < 512 * 2**20 / (40 * 8)


def test_error_names_node_and_calls():
    def build():
        divide = tfr.Declare("Divide", [("n", tf.int32)], [("ret", tf.int32)])

        @tfr.Defun(tf.int32, func_name="Divide", out_names=["ret"])
        def DivideImpl(n):
            return tf.cond(n < 1, lambda: tf.math.floordiv(7, n, name="quotient"), lambda: divide(n - 1) + 1)

        return DivideImpl(9)

    texts = []
    for compile in (True, False):
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            run(build, compile=compile)
        texts.append(re.sub(r"run_\d+", "run", error.value.message))  # our node's name: one for each graph
    assert "quotient" in texts[0]
    assert "Divide > Divide > Divide > (4 more) > Divide > Divide > Divide" in texts[0]
    assert texts[0] == texts[1]


def test_loop_in_function():
    def build():
        @tfr.Defun(tf.int32, func_name="Primes", out_names=["ret"])
        def Primes(n):
            def is_prime(k):
                return tf.while_loop(
                    lambda d, _: tf.logical_and(d * d <= k, True),
                    lambda d, found: (d + 1, tf.logical_or(found, tf.equal(k % d, 0))),
                    (2, False),
                )[1]

            return tf.while_loop(
                lambda k, _: k < n,
                lambda k, total: (k + 1, total + tf.cast(tf.logical_not(is_prime(k)), tf.int32)),
                (2, 0),
            )[1]

        return Primes(100)

    assert both_ways(build) == 25
    assert "Repeat" in listing(build, "Primes")


def test_case_and_mutual_recursion():
    def build():
        odd = tfr.Declare("Odd", [("n", tf.int32)], [("ret", tf.int32)])

        @tfr.Defun(tf.int32, func_name="Even", out_names=["ret"])
        def Even(n):
            return tf.switch_case(tf.minimum(n, 2), [lambda: 1, lambda: 0, lambda: odd(n - 1)])

        @tfr.Defun(tf.int32, func_name="Odd", out_names=["ret"])
        def Odd(n):
            return tf.cond(tf.equal(n, 0), lambda: 0, lambda: Even(n - 1))

        Odd.add_to_graph(tf1.get_default_graph())
        return Even(10), Even(11)

    assert both_ways(build) == (1, 0)


def test_elements_of_captured_vectors_and_matrices():
    def build():
        table = tf.constant(np.arange(12).reshape(3, 4), tf.int32)
        row = tf1.placeholder_with_default(np.array([5, 7, 11], np.int64), [None])
        total = tfr.Declare("Total", [("n", tf.int32)], [("ret", tf.int64)])

        @tfr.Defun(tf.int32, func_name="Total", out_names=["ret"])
        def TotalImpl(n):
            here = tf.cast(table[n, n + 1], tf.int64) + tf.gather(row, n) + row[-1]
            return tf.cond(n < 1, lambda: here, lambda: here + total(n - 1))

        return TotalImpl(2)

    assert both_ways(build) == (1 + 6 + 11) + (5 + 7 + 11) + 3 * 11
    assert "Element" in listing(build, "Total")


def test_index_out_of_range_is_the_kernels_error():
    def build():
        row = tf.constant([1, 2, 3])

        @tfr.Defun(tf.int32, func_name="Read", out_names=["ret"])
        def Read(n):
            return tf.gather(row, n) + row[n]

        return Read(3)

    for compile in (True, False):
        with pytest.raises(tf.errors.InvalidArgumentError, match="not in|out of bounds"):
            run(build, compile=compile)


def test_condition_is_argument():
    def build():
        flags = tfr.Declare("Flags", [("flag", tf.bool), ("n", tf.int32)], [("ret", tf.int32)])

        @tfr.Defun(tf.bool, tf.int32, func_name="Flags", out_names=["ret"])
        def FlagsImpl(flag, n):
            inner = lambda: tf.cond(flag, lambda: n + flags(False, n - 1), lambda: -n + flags(True, n - 1))
            return tf.cond(n > 0, inner, lambda: 0)

        return FlagsImpl(True, 5)

    assert both_ways(build) == 5 - 4 + 3 - 2 + 1
    assert "Call" in listing(build, "Flags")


def test_several_results():
    def build():
        pair = tfr.Declare("Pair", [("n", tf.int32)], [("a", tf.int32), ("b", tf.int32)])

        @tfr.Defun(tf.int32, func_name="Pair", out_names=["a", "b"])
        def PairImpl(n):
            def deeper():
                a, b = pair(n - 1)
                return b, a + b

            return tf.cond(n < 1, lambda: (tf.constant(0), tf.constant(1)), deeper)

        return PairImpl(20)

    assert both_ways(build) == (6765, 10946)


def test_function_with_other_operators_runs_in_frames():
    def build():
        @tfr.Defun(tf.float32, func_name="Norm", out_names=["ret"])
        def Norm(x):
            return tf.reduce_sum(tf.reshape(x, [1]))

        return Norm(3.0)

    assert both_ways(build) == 3.0
    assert "Norm runs in frames, because of '" in listing(build, "Norm")


def sums_of_halves(table, divisor):
    """The sum of `table[i] // divisor[i]`, by halves: each call makes two that need nothing of one another."""
    total = tfr.Declare("Total", [("low", tf.int32), ("high", tf.int32)], [("ret", tf.int64), ("calls", tf.int32)])

    @tfr.Defun(tf.int32, tf.int32, func_name="Total", out_names=["ret", "calls"])
    def TotalImpl(low, high):
        def halves():
            middle = (low + high) // 2
            left, left_calls = total(low, middle)
            right, right_calls = total(middle, high)
            return left + right, left_calls + right_calls + 1

        one = lambda: (tf.math.floordiv(tf.gather(table, low), divisor[low], name="quotient"), tf.constant(1))
        return tf.cond(high - low > 1, halves, one)

    return TotalImpl(0, table.shape[0])


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_long_calls_in_parts_have_the_same_results(workers):
    """More than 8,000 calls go to several workers in parts, which read the same tensors."""
    numbers = np.arange(30_000, dtype=np.int64) * 7
    divisors = np.arange(30_000, dtype=np.int64) % 5 + 1
    assert run(lambda: fib(22), workers=workers) == 17711
    total, calls = run(lambda: sums_of_halves(tf.constant(numbers), tf.constant(divisors)), workers=workers)
    assert total == np.sum(numbers // divisors)
    assert calls == 2 * 30_000 - 1


def test_error_in_part_of_long_call_is_the_same():
    divisors = np.ones(30_000, np.int64)
    divisors[29_999] = 0
    texts = set()
    for workers in (1, 2, 4):
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            run(lambda: sums_of_halves(tf.constant(np.arange(30_000)), tf.constant(divisors)), workers=workers)
        texts.add(re.sub(r"run_\d+", "run", error.value.message))  # our node's name: one for each graph
    (text,) = texts
    assert "quotient" in text
    assert "Total > Total > Total > (10 more) > Total > Total > Total" in text


def test_bytecode_of_unknown_function_is_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match="No call of 'Other'"):
        listing(lambda: fib(3), "Other")


def test_compile_is_a_flag():
    with pytest.raises(ValueError, match="compile is 1, expected True or False"):
        tfr.session_config(compile=1)
