"""Variables that are read once for all frames of a recursion: no frame, gradient or thread can tell."""
# SPDX-License-Identifier: Apache-2.0

import itertools
import threading

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

import tensorflow_recursion as tfr

pytestmark = pytest.mark.usefixtures("static_or_error")

_START = np.asarray([[0.5, -0.25], [0.125, 1.0]], np.float32)


def _net(weight, bias):
    """y(n) = tanh(y(n - 1) weight + bias), as one writes it: the body reads its variables by itself."""

    @tfr.recursive
    def net(n, x):
        if n < 1:
            return x
        return tf.tanh(tf.matmul(net(n - 1, x), weight) + bias)

    return net


def _expected(n, x, weight, bias):
    for _ in range(n):
        x = np.tanh(x @ weight + bias)
    return x


@pytest.fixture(name="in_function", params=[False, True], ids=["eager", "function"])
def _in_function(request):
    return tf.function if request.param else lambda function: function


def test_each_call_sees_the_last_assignment(in_function):
    weight, bias = tf.Variable(_START), tf.Variable([0.1, 0.2])
    net, x = _net(weight, bias), np.ones([1, 2], np.float32)

    @in_function
    def step():
        before = net(tf.constant(3), x)
        weight.assign(weight * 0.5)
        between = net(tf.constant(3), x)
        bias.assign_add([0.1, 0.1])
        return before, between, net(tf.constant(2), x)

    w, b = _START.copy(), np.asarray([0.1, 0.2], np.float32)
    for _ in range(3):
        before, between, after = step()
        np.testing.assert_allclose(before, _expected(3, x, w, b), rtol=1e-5)
        w = w * 0.5
        np.testing.assert_allclose(between, _expected(3, x, w, b), rtol=1e-5)
        b = b + 0.1
        np.testing.assert_allclose(after, _expected(2, x, w, b), rtol=1e-5)


def test_gradients_are_those_of_the_values_read(in_function):
    weight, bias = tf.Variable(_START), tf.Variable([0.1, 0.2])
    net, x = _net(weight, bias), tf.ones([1, 2])

    @in_function
    def gradients():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(net(tf.constant(4), x) ** 2)
        weight.assign_sub(tape.gradient(y, weight) * 0.1)
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(net(tf.constant(4), x) ** 2)
        return tape.gradient(y, [weight, bias])

    def unrolled():
        w, b = tf.Variable(_START), tf.Variable([0.1, 0.2])
        for update in (True, False):
            with tf.GradientTape() as tape:
                y = x
                for _ in range(4):
                    y = tf.tanh(tf.matmul(y, w) + b)
                y = tf.reduce_sum(y**2)
            slopes = tape.gradient(y, [w, b])
            if update:
                w.assign_sub(slopes[0] * 0.1)
        return slopes

    for got, expected in zip(gradients(), unrolled(), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4)


def test_frames_that_assign_read_what_was_assigned(in_function):
    counter = tf.Variable(0.0)

    @tfr.recursive
    def count(n):
        if n < 1:
            return counter.read_value()
        with tf.control_dependencies([counter.assign_add(1.0)]):
            here = tf.identity(counter.read_value())
        with tf.control_dependencies([here]):
            return here + count(n - 1)

    function = in_function(count)
    assert float(function(tf.constant(3))) == 1.0 + 2.0 + 3.0 + 3.0
    assert float(function(tf.constant(2))) == 4.0 + 5.0 + 5.0


def test_python_that_assigns_counts_as_a_side_effect(in_function):
    value = tf.Variable(1.0)

    @tfr.recursive
    def total(n):
        if n < 1:
            return value.read_value()
        before = value.read_value()
        with tf.control_dependencies([before]):
            told = tf.py_function(lambda: value.assign(value * 2.0), [], tf.float32)
        with tf.control_dependencies([told]):
            return before + total(n - 1)

    assert float(in_function(total)(tf.constant(3))) == 1.0 + 2.0 + 4.0 + 8.0


def test_variable_without_a_value_is_an_error_only_where_a_frame_reads_it(in_function):
    name = f"without_a_value_{in_function is tf.function}"
    empty = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[2], shared_name=name)
    full = tf.Variable([1.0, 2.0])

    @tfr.recursive
    def add(n, x):
        if n < 1:
            return x
        if n > 100:
            return x + tf.raw_ops.ReadVariableOp(resource=empty, dtype=tf.float32)
        return add(n - 1, x) + full

    function = in_function(add)
    np.testing.assert_allclose(function(tf.constant(2), tf.zeros([2])), [2.0, 4.0])
    with pytest.raises(tf.errors.FailedPreconditionError, match="Could not find variable"):
        function(tf.constant(101), tf.zeros([2]))
    np.testing.assert_allclose(function(tf.constant(3), tf.zeros([2])), [3.0, 6.0])
    tf.raw_ops.AssignVariableOp(resource=empty, value=[5.0, 5.0])
    np.testing.assert_allclose(function(tf.constant(101), tf.zeros([2])), [5.0, 5.0])


def test_random_numbers_go_on_when_the_variable_gets_a_value(in_function):
    """One kernel draws them, whether frames read for themselves or the run does."""
    name = f"late_value_{in_function is tf.function}"
    late = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name=name)

    @tfr.recursive
    def draw(n):
        if n < 1:
            return 0.0
        if n > 100:
            return tf.raw_ops.ReadVariableOp(resource=late, dtype=tf.float32)
        return draw(n - 1) + tf.random.uniform([], seed=7)

    function = in_function(draw)
    drawn = [float(function(tf.constant(1))) for _ in range(3)]
    tf.raw_ops.AssignVariableOp(resource=late, value=5.0)
    drawn += [float(function(tf.constant(1))) for _ in range(3)]
    tf.raw_ops.DestroyResourceOp(resource=late)
    drawn += [float(function(tf.constant(1))) for _ in range(3)]
    assert len(set(drawn)) == 9


def test_frames_change_their_own_copies_in_place(in_function):
    """After a write to some rows each read copies the variable, and InplaceAdd changes what it is given."""
    table = tf.Variable([[1.0], [2.0]])
    table.scatter_nd_update([[0]], [[3.0]])

    @tfr.recursive
    def add(n):
        if n < 1:
            return tf.gather(table, [0, 1])
        return add(n - 1) + tf.raw_ops.InplaceAdd(x=table.read_value(), i=[0], v=[[1.0]])

    assert in_function(add)(tf.constant(3)).numpy().tolist() == [[3.0 + 3 * 4.0], [2.0 + 3 * 2.0]]
    assert table.numpy().tolist() == [[3.0], [2.0]]


def test_variable_is_read_whole_and_by_rows(in_function):
    """The stock kernel that looks up rows makes every later read copy the variable."""
    table = tf.Variable(np.arange(6, dtype=np.float32).reshape(3, 2))

    @tfr.recursive
    def walk(n):
        if n < 1:
            return tf.reduce_sum(table, 0)
        return walk(n - 1) + tf.gather(table, n % 3) * tf.reduce_max(table)

    function = in_function(walk)
    for factor in (1.0, 2.0):
        rows = np.arange(6, dtype=np.float32).reshape(3, 2) * factor
        expected = rows.sum(0) + (rows[1] + rows[2] + rows[0]) * rows.max()
        np.testing.assert_allclose(function(tf.constant(3)), expected)
        table.assign(table * 2.0)


def test_one_function_reads_the_variable_that_it_is_given(in_function):
    """Calls choose between two variables, so that frames of one run read different ones."""
    one, other = tf.Variable([1.0]), tf.Variable([10.0])

    @tfr.recursive
    def chosen(n, x):
        if n < 1:
            return x
        if n % 2 < 1:
            return chosen(n - 1, x * one)
        return chosen(n - 1, x + other)

    assert in_function(chosen)(tf.constant(4), tf.ones([1])).numpy().tolist() == [21.0]


def test_loops_and_branches_read_what_frames_read(in_function):
    scale, choice = tf.Variable(2.0), tf.Variable(True)

    @tfr.recursive
    def nested(n, x):
        if n < 1:
            return scale.read_value()
        for _ in tf.range(2):
            if choice:
                x = x * scale
            else:
                x = x + scale
        return x + nested(n - 1, x)

    function = in_function(nested)
    assert float(function(tf.constant(2), tf.constant(1.0))) == 4.0 + 16.0 + 2.0
    choice.assign(False)
    assert float(function(tf.constant(2), tf.constant(1.0))) == 5.0 + 9.0 + 2.0
    scale.assign(1.0)
    assert float(function(tf.constant(1), tf.constant(1.0))) == 3.0 + 1.0


def test_threads_that_assign_meanwhile_do_no_harm():
    """All frames of a run use one value that the variable has had."""
    weight = tf.Variable(tf.ones([64]))

    @tfr.recursive
    def add(n, x):
        if n < 1:
            return x
        return add(n - 1, x) + weight

    function, done = tf.function(add), threading.Event()

    def assign():
        values = itertools.cycle((1.0, 2.0))
        with context.eager_mode():
            while not done.is_set():
                weight.assign(tf.fill([64], next(values)))

    thread = threading.Thread(target=assign)
    thread.start()
    try:
        for _ in range(100):
            assert set(function(tf.constant(5_000), tf.zeros([64])).numpy()) <= {5_000.0, 10_000.0}
    finally:
        done.set()
        thread.join()
