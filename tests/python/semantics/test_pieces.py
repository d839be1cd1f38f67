"""Arithmetic on numbers in bodies with tensors runs as one operator: results, errors and order as if each ran alone."""
# SPDX-License-Identifier: Apache-2.0

import re

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion import _native

tf1 = tf.compat.v1

SIZE = 97
TABLE = np.random.RandomState(7).randint(-50, 50, SIZE).astype(np.int32)
BOARD = np.arange(12, dtype=np.int32).reshape(3, 4) * 3 - 5


def run(build, feeds=None, *, compile=True, **options):
    with tf1.Graph().as_default():
        fetches, feed_dict = build(), {}
        for placeholder, value in (feeds or {}).items():
            feed_dict[f"{placeholder}:0"] = value
        with tf1.Session(config=tfr.session_config(compile=compile, **options)) as session:
            session.run(tf1.global_variables_initializer())
            return session.run(fetches, feed_dict)


def both_ways(build, feeds=None):
    """Expects the same bits with pieces and without; returns the results."""
    fused, single = run(build, feeds), run(build, feeds, compile=False)
    tf.nest.map_structure(np.testing.assert_array_equal, fused, single)
    return fused


def pieces_of(build):
    """How many operators the pieces that ran had, and how often: {4: 10}."""
    _native.start_profile()
    try:
        run(build)
    finally:
        counted = _native.stop_profile()
    names = {re.fullmatch(r"piece of (\d+) operators", op): times[0] for op, times in counted["bodies"].items()}
    return {int(match[1]): count for match, count in names.items() if match}


def errors_of(build, feeds=None):
    """The messages with pieces and without, but for our node's number."""
    texts = []
    for compile in (True, False):
        with pytest.raises(tf.errors.InvalidArgumentError) as error:
            run(build, feeds, compile=compile)
        texts.append(re.sub(r"run_\d+", "run", error.value.message))
    return texts


# --- Programs -------------------------------------------------------------------------------------------------------


def walk(i, n):
    """Index arithmetic over a table, a tensor a frame: h is multiplied by what is found."""
    declared = tfr.Declare("Walk", [("i", tf.int32), ("n", tf.int32), ("h", tf.float32)], [("h", tf.float32)])
    table = tf.constant(TABLE)

    @tfr.Defun(tf.int32, tf.int32, tf.float32, func_name="Walk", out_names=["h"])
    def walk_impl(i, n, h):
        def more():
            left = (2 * i + 1) % SIZE
            right = (left + n) % SIZE
            found = tf.gather(table, left) + table[right] * 3
            scale = tf.cast(found % 7 - 3, tf.float32) / 4
            return declared((i + found) % SIZE, n - 1, tf.reverse(h, [0]) * scale + 1)

        return tf.cond((n < 1) | (i < 0), lambda: h, more)

    return walk_impl(i, n, tf.constant([1.0, 2.0]))


def walked(i, n):
    h = np.array([1, 2], np.float32)
    while n >= 1:
        left = (2 * i + 1) % SIZE
        found = int(TABLE[left]) + int(TABLE[(left + n) % SIZE]) * 3
        h = h[::-1] * np.float32((found % 7 - 3) / 4) + 1
        i, n = (i + found) % SIZE, n - 1
    return h


def test_index_arithmetic():
    for n in (0, 1, 20):
        np.testing.assert_array_equal(both_ways(lambda n=n: walk(3, n)), walked(3, n))


def test_pieces_run():
    """The predicate is one operator, the body's arithmetic another one."""
    counts = pieces_of(lambda: walk(3, 20))
    assert sum(counts.values()) == 41
    assert max(counts) > 10


def test_no_pieces_when_compilation_is_off():
    _native.start_profile()
    run(lambda: walk(3, 20), compile=False)
    assert not any(op.startswith("piece") for op in _native.stop_profile()["bodies"])


def test_pieces_when_run_is_traced():
    with tf1.Graph().as_default():
        fetch, metadata = walk(3, 5), tf1.RunMetadata()
        options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
        with tf1.Session(config=tfr.session_config()) as session:
            np.testing.assert_array_equal(session.run(fetch, options=options, run_metadata=metadata), walked(3, 5))


def test_elements_of_matrix():
    def build():
        @tfr.Defun(tf.int32, tf.float32, func_name="Board", out_names=["r"])
        def board(i, h):
            field = tf.constant(BOARD)
            row, column = i // 4, i % 4
            value = field[row, column] + field[-1, column] * 2
            return tf.cond(value > i, lambda: h * tf.cast(value, tf.float32), lambda: tf.reverse(h, [0]))

        return [board(i, tf.constant([1.0, 2.0])) for i in range(12)]

    for i, got in enumerate(both_ways(build)):
        value = BOARD[i // 4, i % 4] + BOARD[-1, i % 4] * 2
        np.testing.assert_array_equal(got, [value, 2 * value] if value > i else [2, 1])


# --- Errors ---------------------------------------------------------------------------------------------------------


def divide(n, d):
    """The quotient is inside of a piece, two calls deep."""

    def build():
        declared = tfr.Declare("Divide", [("n", tf.int32), ("d", tf.int32), ("h", tf.float32)], [("r", tf.float32)])

        @tfr.Defun(tf.int32, tf.int32, tf.float32, func_name="Divide", out_names=["r"])
        def divide_impl(n, d, h):
            quotient = tf.math.floordiv(n + 1, d, name="quotient")
            decides = quotient < n * 2
            return tf.cond(decides, lambda: declared(quotient, d - 1, tf.reverse(h, [0])), lambda: tf.reverse(h, [0]))

        return divide_impl(n, d, tf.constant([1.0, 2.0]))

    return build


def test_error_names_operator_of_piece():
    texts = errors_of(divide(30, 1))
    assert "ivision by zero" in texts[0]
    assert "Divide/quotient" in texts[0]
    assert "in call Divide > Divide" in texts[0]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("slices", [False, True])
@pytest.mark.parametrize("index", [SIZE, -SIZE - 1])
def test_error_when_index_is_out_of_range(slices, index):
    def build():
        @tfr.Defun(tf.int32, tf.float32, func_name="Read", out_names=["r"])
        def read(i, h):
            table = tf.constant(TABLE)
            position = (i + 1) * 2 // 2 - 1
            found = table[position] if slices else tf.gather(table, position)
            return tf.cond(found + i > 0, lambda: tf.reverse(h, [0]), lambda: h)

        return read(tf1.placeholder(tf.int32, [], name="i"), tf.constant([1.0, 2.0]))

    texts = errors_of(build, {"i": index})
    assert "Read/" in texts[0]
    assert texts[0] == texts[1]


def test_integers_wrap():
    def build():
        @tfr.Defun(tf.int32, tf.float32, func_name="Wrap", out_names=["r"])
        def wrap(n, h):
            square = n * n + 12345
            decides = square * square - n < 0
            return tf.cond(decides, lambda: tf.reverse(h, [0]) * tf.cast(square, tf.float32), lambda: h)

        return [wrap(n, tf.constant([1.0, 2.0])) for n in (3, 46341, 2**31 - 1, -(2**31))]

    both_ways(build)


# --- What comes late, or never --------------------------------------------------------------------------------------


def test_call_need_not_wait_for_what_comes_later():
    """A queue gives x only when the body has put a number into it that is computed of n alone."""

    def build():
        queue = tf1.FIFOQueue(1, [tf.int32], [[]])

        @tfr.Defun(tf.int32, tf.int32, func_name="Later", out_names=["r"])
        def later(n, x):
            double = n * 2 + 1
            with tf.control_dependencies([queue.enqueue(tf.reduce_sum(tf.stack([double, n])))]):
                return tf.cond(double + x > n, lambda: tf.reduce_sum(tf.stack([x, double])), lambda: x)

        return later(tf1.placeholder(tf.int32, [], name="n"), queue.dequeue())

    assert both_ways(build, {"n": 5}) == 5 * 2 + 1 + 5 + 11


def test_arithmetic_on_results_of_calls():
    def build():
        declared = tfr.Declare("Sum", [("n", tf.int32), ("h", tf.float32)], [("s", tf.int32), ("h", tf.float32)])

        @tfr.Defun(tf.int32, tf.float32, func_name="Sum", out_names=["s", "h"])
        def sum_impl(n, h):
            def inner():
                (a, x), (b, y) = declared(n - 1, tf.reverse(h, [0])), declared((n - 1) // 2, h)
                return (a * 3 + b * n) % 1009 + n, x + y * tf.cast(a % 5 + n, tf.float32)

            return tf.cond(n < 2, lambda: (n + 1, h), inner)

        return sum_impl(9, tf.constant([1.0, 2.0]))

    def plain(n, h):
        if n < 2:
            return n + 1, h
        (a, x), (b, y) = plain(n - 1, h[::-1]), plain((n - 1) // 2, h)
        return (a * 3 + b * n) % 1009 + n, x + y * np.float32(a % 5 + n)

    got, expected = both_ways(build), plain(9, np.array([1, 2], np.float32))
    assert got[0] == expected[0]
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-6)


def test_dead_argument_takes_only_what_reads_it():
    def build():
        alive = tf1.placeholder_with_default(True, [])
        n = tf1.placeholder_with_default(4, [])
        dead, _ = tf.raw_ops.Switch(data=n, pred=alive)

        @tfr.Defun(tf.int32, tf.int32, func_name="Half", out_names=["a", "b"])
        def half(n, m):
            a = n * 3 + 1
            b = a + m * 2
            test = lambda x: tf.cond(x > 0, lambda: tf.reduce_sum(tf.stack([x, n])), lambda: x)
            return test(a), test(b)

        return half(n, dead)[0]

    assert both_ways(build) == 17


# --- What is no number ----------------------------------------------------------------------------------------------


def test_switch_behind_switch_on_the_same_predicate():
    """What the second one passes on is on that side already: it could be taken to come together with its own input."""

    def build():
        f = tfr.Declare("F", [("n", tf.int32), ("h", tf.float32)], [("r", tf.float32)])

        @tfr.Defun(tf.int32, tf.float32, func_name="F", out_names=["r"])
        def body(n, h):
            is_last = n < 1
            below, _ = tf.raw_ops.Switch(data=n, pred=is_last)
            rest, last = tf.raw_ops.Switch(data=h, pred=is_last)
            thrice, _ = tf.raw_ops.Switch(data=below * 3, pred=is_last)
            weight = tf.cast(thrice + below, tf.float32)
            return tf.raw_ops.Merge(inputs=[tf.reverse(f(below - 1, rest + weight), [0]), last]).output

        return f(5, tf.constant([1.0, 2.0]))

    np.testing.assert_array_equal(both_ways(build), [62.0, 61.0])


@pytest.mark.parametrize("shape", [[], [1], [1, 1]])
def test_predicate_is_computed_of_tensor_of_one_element(shape):
    """tf.cond squeezes predicates of unknown shape."""

    def build():
        declared = tfr.Declare("Down", [("n", tf.int32), ("h", tf.float32)], [("n", tf.int32), ("h", tf.float32)])

        @tfr.Defun(tf.int32, tf.float32, func_name="Down", out_names=["n", "h"])
        def down(n, h):
            m = n * 2 - n - 1
            return tf.cond(m < 1, lambda: (m, h), lambda: declared(m, tf.reverse(h, [0]) * tf.cast(m, tf.float32)))

        return down(tf.fill(shape, 5), tf.constant([1.0, 2.0]))

    n, h = both_ways(build)
    np.testing.assert_array_equal(n, np.zeros(shape, np.int32))
    expected = np.array([1.0, 2.0])
    for factor in (4, 3, 2, 1):  # of one row, if n is a matrix: nothing is left to reverse then
        expected = np.flip(expected, 0) * np.full(shape, factor)
    np.testing.assert_array_equal(h, expected)


def test_rows_are_read_where_elements_may_be():
    def build():
        @tfr.Defun(tf.int32, tf.int32, func_name="Row", out_names=["r"])
        def row(i, table):
            j = i + 1
            found = tf.gather(table, j) * 2 + j
            return tf.cond(j < 3, lambda: found, lambda: tf.reverse(found, [0]) if False else found + 1)

        table = tf1.placeholder_with_default(BOARD, None)
        return row(0, table), row(0, tf1.placeholder_with_default(TABLE, None))

    rows, number = both_ways(build)
    np.testing.assert_array_equal(rows, BOARD[1] * 2 + 1)
    assert number == TABLE[1] * 2 + 1


# --- Loops and gradients --------------------------------------------------------------------------------------------


def test_piece_in_loop():
    def build():
        @tfr.Defun(tf.int32, tf.float32, func_name="Loop", out_names=["r"])
        def loop(n, h):
            table = tf.constant(TABLE)

            def step(i, k, h):
                position = (k * 5 + i) % SIZE
                return i + 1, position + tf.abs(table[position]), tf.reverse(h, [0]) + tf.cast(position, tf.float32)

            return tf.while_loop(lambda i, k, h: (i * 2 < n + 3) & (k >= 0), step, [0, n, h])[2]

        return loop(11, tf.constant([1.0, 2.0]))

    h, k = np.array([1, 2], np.float32), 11
    for i in range(7):
        position = (k * 5 + i) % SIZE
        k, h = position + abs(int(TABLE[position])), h[::-1] + np.float32(position)
    np.testing.assert_array_equal(both_ways(build), h)


@pytest.mark.thorough
def test_gradient_keeps_numbers_of_pieces():
    def build():
        declared = tfr.Declare("Net", [("i", tf.int32), ("h", tf.float32)], [("h", tf.float32)])
        weights = tf1.get_variable("weights", initializer=np.linspace(-1, 1, SIZE).astype(np.float32))

        @tfr.Defun(tf.int32, tf.float32, func_name="Net", out_names=["h"], create_grad_func=True)
        def net(i, h):
            def more():
                j = (i * 3 + 1) % SIZE
                factor = weights[j] * 2 + weights[(j + i) % SIZE]
                return declared(i - 1, tf.tanh(h * factor))

            return tf.cond(i < 1, lambda: h, more)

        result = net(6, tf.constant([0.5, -1.0]))
        return [result, tf.convert_to_tensor(tf.gradients(tf.reduce_sum(result), [weights])[0])]

    _, gradient = both_ways(build)
    assert np.count_nonzero(gradient) > 3
