"""Arguments that every call inside a recursion passes on as they came, and those that only look so."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import counting, recursive
from modes import GRAPHS, STATIC_GRAPHS, everywhere

tf1 = tf.compat.v1
pytestmark = pytest.mark.fake_gpu

W = np.array([1.0, -2.0], np.float32)
V = np.array([0.5, 3.0], np.float32)


def _vector(values):
    return tf.constant(values, tf.float32)


@everywhere
def test_weights_are_those_of_the_call_that_enters(run, control_flow):
    f, define = recursive("Weighted", [tf.int32, tf.float32], [tf.float32])
    define(lambda n, w: tf.cond(n < 1, lambda: w, lambda: f(n - 1, w) + f(n - 2, w) * w))

    def oracle(n, w):
        return w if n < 1 else oracle(n - 1, w) + oracle(n - 2, w) * w

    assert run([f(5, _vector(W)), f(6, _vector(V))])[0].tolist() == oracle(5, W).tolist()
    np.testing.assert_allclose(run(f(6, _vector(V))), oracle(6, V), rtol=1e-6)


@everywhere
def test_functions_take_the_same_weight_in_different_places(run, control_flow):
    f, define = recursive("First", [tf.int32, tf.float32, tf.float32], [tf.float32])
    g, define_g = recursive("Second", [tf.float32, tf.int32, tf.float32], [tf.float32])
    define(lambda n, w, v: tf.cond(n < 1, lambda: w, lambda: g(v, n - 1, w) + v))
    define_g(lambda a, n, b: tf.cond(n < 1, lambda: a, lambda: f(n - 1, b, a) * b))

    def oracle(n, w, v):
        return w if n < 1 else oracle_g(v, n - 1, w) + v

    def oracle_g(a, n, b):
        return a if n < 1 else oracle(n - 1, b, a) * b

    for n in range(5):
        np.testing.assert_allclose(run(f(n, _vector(W), _vector(V))), oracle(n, W, V), rtol=1e-6)


@everywhere
def test_weights_that_a_cycle_swaps_change(run, control_flow):
    f, define = recursive("Swap", [tf.int32, tf.float32, tf.float32], [tf.float32])
    g, define_g = recursive("Keep", [tf.int32, tf.float32, tf.float32], [tf.float32])
    define(lambda n, w, v: tf.cond(n < 1, lambda: w - v, lambda: g(n - 1, w, v) + w))
    define_g(lambda n, w, v: tf.cond(n < 1, lambda: w * v, lambda: f(n - 1, v, w) + w))

    def oracle(n, w, v):
        return w - v if n < 1 else oracle_g(n - 1, w, v) + w

    def oracle_g(n, w, v):
        return w * v if n < 1 else oracle(n - 1, v, w) + w

    for n in range(6):
        np.testing.assert_allclose(run(f(n, _vector(W), _vector(V))), oracle(n, W, V), rtol=1e-6)


@everywhere
def test_weight_that_one_branch_replaces_changes(run, control_flow):
    f, define = recursive("Replace", [tf.int32, tf.float32], [tf.float32])

    @define
    def Replace(n, w):
        further = lambda: tf.cond(tf.equal(n % 3, 0), lambda: f(n - 1, w * 2.0), lambda: f(n - 1, w))
        return tf.cond(n < 1, lambda: w, lambda: further() + w)

    def oracle(n, w):
        return w if n < 1 else oracle(n - 1, w * 2 if n % 3 == 0 else w) + w

    for n in (0, 2, 3, 7):
        assert run(f(n, _vector(W))).tolist() == oracle(n, W).tolist()


@everywhere
def test_loops_in_bodies_read_weights_and_pass_them_on(run, control_flow):
    f, define = recursive("Children", [tf.int32, tf.float32], [tf.float32])

    @define
    def Children(n, w):
        body = lambda i, s: (i + 1, tf.ensure_shape(s + f(i, w) * 0.5 + w, [2]))
        return tf.while_loop(lambda i, s: i < n, body, [0, tf.zeros([2])])[1] + w

    def oracle(n, w):
        return w + sum((oracle(i, w) * 0.5 + w for i in range(n)), np.zeros(2))

    for n in (0, 1, 5):
        np.testing.assert_allclose(run(f(n, _vector(W))), oracle(n, W), rtol=1e-6)


@everywhere
def test_flag_that_never_changes_decides_in_every_frame(run, control_flow):
    f, define = recursive("Flag", [tf.int32, tf.bool, tf.float32], [tf.float32])
    grow = lambda n, p, w: tf.cond(p, lambda: f(n - 1, p, w) + w, lambda: f(n - 1, p, w) * w)
    define(lambda n, p, w: tf.cond(n < 1, lambda: w, lambda: grow(n, p, w)))
    assert run(f(3, True, _vector(W))).tolist() == (4 * W).tolist()
    assert run(f(3, False, _vector(W))).tolist() == (W**4).tolist()


@everywhere
def test_recursion_inside_a_recursion_has_invariants_of_its_own(run, control_flow):
    inner, define_inner = recursive("Inner", [tf.int32, tf.float32], [tf.float32])
    outer, define_outer = recursive("Outer", [tf.int32, tf.float32], [tf.float32])
    define_inner(lambda n, w: tf.cond(n < 1, lambda: w, lambda: inner(n - 1, w) + w))
    both = lambda n, w: outer(n - 1, w) + inner(n, w) + inner(1, w * tf.cast(n, tf.float32))
    define_outer(lambda n, w: tf.cond(n < 1, lambda: w, lambda: both(n, w)))

    def oracle(n, w):
        return w if n < 1 else oracle(n - 1, w) + (n + 1) * w + 2 * n * w

    assert run(outer(4, _vector(W))).tolist() == oracle(4, W).tolist()


@everywhere
def test_weight_itself_is_returned(run, control_flow):
    f, define = recursive("Return", [tf.int32, tf.float32, tf.string], [tf.float32, tf.string])
    define(lambda n, w, s: tf.cond(n < 1, lambda: (w, s), lambda: f(n - 1, w, s)))
    vector, text = run(f(50, _vector(W), tf.constant(["a", "b"])))
    assert vector.tolist() == W.tolist()
    assert text.tolist() == [b"a", b"b"]


@everywhere
def test_variable_that_is_passed_on_is_assigned_in_every_frame(run, control_flow):
    count, step = counting("count"), counting("step")
    f, define = recursive("Count", [tf.int32, tf.resource, tf.resource], [tf.int32])

    @define
    def Count(n, v, w):
        add = tf.raw_ops.AssignAddVariableOp(resource=v, value=n)
        with tf.control_dependencies([add] if add is not None else []):
            n = tf.identity(n)
        return tf.cond(n < 1, lambda: n, lambda: f(n - 1, v, w) + tf.raw_ops.ReadVariableOp(resource=w, dtype=tf.int32))

    run(step.assign(3))
    assert run(f(10, count.handle, step.handle)) == 30
    assert run(count) == 55


@pytest.mark.parametrize("mode", STATIC_GRAPHS, indirect=True)
def test_weight_that_comes_from_a_queue_which_the_body_fills(run, control_flow):
    """The frames of the recursion have to open without it."""
    queue = tf.queue.FIFOQueue(10, tf.float32, [2])
    f, define = recursive("Fill", [tf.int32, tf.float32], [tf.int32, tf.float32])

    @define
    def Fill(n, w):
        def last():
            with tf.control_dependencies([queue.enqueue(_vector(W))]):
                return tf.identity(n), w + 0.0

        def further():
            m, result = f(n - 1, w)
            return m + 1, result + w

        return tf.cond(n < 1, last, further)

    first, second = f(tf1.placeholder_with_default(3, []), queue.dequeue())
    first, second = run([first, second])
    assert first == 3
    assert second.tolist() == (4 * W).tolist()


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("mode", GRAPHS, indirect=True)
def test_weight_that_may_be_dead_in_live_frames(run, live):
    """Where it is, results that do not need it come all the same."""
    f, define = recursive("Dead", [tf.int32, tf.float32], [tf.int32, tf.float32])

    @define
    def Dead(n, w):
        def further():
            count, vector = f(n - 1, w)
            return count + 1, vector + w

        return tf.cond(n < 1, lambda: (n, w * 1.0), further)

    p = tf1.placeholder_with_default(live, [])
    count, vector = f(tf1.placeholder_with_default(3, []), tf.raw_ops.Switch(data=_vector(W), pred=p)[1])
    merged = tf.raw_ops.Merge(inputs=[vector, tf.raw_ops.Switch(data=_vector(V), pred=p)[0]])[0]
    got, result = run([count + 0 if live else f(2, _vector(W))[0] + 1, merged])
    assert got == 3
    assert result.tolist() == ((4 * W) if live else V).tolist()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("mode", GRAPHS, indirect=True)
def test_gradients_to_weights_are_those_of_the_unrolled_function(run, control_flow, order):
    f, define = recursive("Net", [tf.int32, tf.float32, tf.float32], [tf.float32], create_grad_func=True)
    define(lambda n, x, w: tf.cond(n < 1, lambda: x * w, lambda: tf.tanh(f(n - 1, x, w) * w + f(n - 2, x, w))))

    def unrolled(n, x, w):
        return x * w if n < 1 else tf.tanh(unrolled(n - 1, x, w) * w + unrolled(n - 2, x, w))

    x, w = _vector(V), _vector(W * 0.3)
    results = []
    for net in (f, unrolled):
        y = net(4, x, w)
        for _ in range(order):
            y = tf.add_n(tf.gradients(y, [x, w]))
        results.append(y)
    got, expected = run(results)
    np.testing.assert_allclose(got, expected, rtol=1e-4)
