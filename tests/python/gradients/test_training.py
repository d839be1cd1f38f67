"""Optimizers train through recursive functions as through any others."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from gradient_programs import define_power

import tensorflow_recursion as tfr
from tensorflow_recursion import names

tf1 = tf.compat.v1

F64, I32 = tf.float64, tf.int32


OPTIMIZERS = {
    "gradient descent": lambda: tf1.train.GradientDescentOptimizer(0.05),
    "momentum": lambda: tf1.train.MomentumOptimizer(0.02, 0.9),
    "adam": lambda: tf1.train.AdamOptimizer(0.05),
    "adagrad": lambda: tf1.train.AdagradOptimizer(0.2),
    "adadelta": lambda: tf1.train.AdadeltaOptimizer(1.0, epsilon=1e-2),
    "rmsprop": lambda: tf1.train.RMSPropOptimizer(0.02),
    "ftrl": lambda: tf1.train.FtrlOptimizer(0.2),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizer_minimizes_as_it_does_without_recursion(run, variable_kind, optimizer):
    """A net over a small tree, beside the same net unrolled; with a dense weight and gathered rows."""
    generator = np.random.default_rng(3)
    start_w, start_e = generator.normal(size=[4, 2]), generator.normal(size=[5, 2])

    def loss_of(name, combine):
        w = tf1.get_variable(f"w_{name}", initializer=start_w)
        e = tf1.get_variable(f"e_{name}", initializer=start_e)
        return tf.reduce_sum(tf.square(combine(w, e) - 0.5)), [w, e]

    def recursion(w, e):
        f, define = recursive("Tree", [I32], [F64])
        join = lambda i: tf.tanh(tf.matmul(tf.concat([f(2 * i), f(2 * i + 1)], 1), w))
        define(lambda i: tf.cond(i > 3, lambda: tf.gather(e, [i - 4]), lambda: join(i)))
        return f(1)

    def unrolled(w, e):
        node = lambda i: (
            tf.gather(e, [i - 4]) if i > 3 else tf.tanh(tf.matmul(tf.concat([node(2 * i), node(2 * i + 1)], 1), w))
        )
        return node(1)

    losses, variables = zip(loss_of("recursive", recursion), loss_of("unrolled", unrolled), strict=True)
    steps = [OPTIMIZERS[optimizer]().minimize(loss) for loss in losses]
    before = run(losses[0])
    for _ in range(15):
        run(steps)
    ours, theirs = run(variables)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)
    assert run(losses[0]) < before


def test_update_waits_until_all_gradients_of_a_call_are_computed(variable_kind):
    """A reference variable is updated in place: what computes the gradients of the others must have read it."""
    w, e = (tf1.get_variable(name, initializer=np.ones([2, 2])) for name in "we")
    f, define = recursive("Net", [I32], [F64])
    define(lambda n: tf.cond(n < 1, lambda: tf.gather(e, [n]), lambda: tf.tanh(tf.matmul(f(n - 1), w))))
    step = tf1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(f(3)))
    nodes = {node.name: node for node in tfr.transform_graph(tf1.get_default_graph(), step).node}
    collected = {name for name, node in nodes.items() if node.op == names.COLLECT}
    assert len(collected) == 2
    updates = [name for name, node in nodes.items() if name.startswith("GradientDescent/update_") and "w" in node.input]
    assert updates
    for update in updates:
        before, work = set(), [update]
        while work:
            inputs = {name.lstrip("^").split(":")[0] for name in nodes[work.pop()].input} - before
            before |= inputs
            work += inputs
        assert collected <= before


def test_optimizer_applies_gradients_that_were_clipped(run, variable_kind):
    f = define_power()
    w = tf1.get_variable("w", initializer=np.float64(1.1))
    step = tf1.train.get_or_create_global_step()
    optimizer = tf1.train.GradientDescentOptimizer(0.1)
    pairs = optimizer.compute_gradients(f(w, 4))
    train = optimizer.apply_gradients([(tf.clip_by_value(g, -1, 1), v) for g, v in pairs], global_step=step)
    for _ in range(3):
        run(train)
    assert run(step) == 3
    np.testing.assert_allclose(run(w), 1.1 - 0.3)


def test_value_and_gradient_of_a_step_are_those_before_its_update(run):
    f = define_power()
    w = tf1.get_variable("w", initializer=np.float64(1.5), use_resource=True)
    y = f(w, 3)
    train = tf1.train.GradientDescentOptimizer(0.1).minimize(y)
    value = 1.5
    for _ in range(4):
        got, _ = run([y, train])
        np.testing.assert_allclose(got, value**3)
        value -= 0.1 * 3 * value**2
    np.testing.assert_allclose(run(w), value)


def test_gradient_penalty_trains(run, control_flow):
    """A loss that holds the gradient itself."""
    f = define_power()
    w = tf1.get_variable("w", initializer=np.float64(1.4), use_resource=True)
    y = f(w, 3)
    loss = y + 0.1 * tf.square(tf.gradients(y, w)[0])
    train = tf1.train.GradientDescentOptimizer(0.01).minimize(loss)
    value = 1.4
    for _ in range(3):
        run(train)
        value -= 0.01 * (3 * value**2 + 0.1 * 2 * 3 * value**2 * 6 * value)
    np.testing.assert_allclose(run(w), value)


def test_gradient_reads_a_variable_before_what_waits_for_it(run):
    w = tf1.get_variable("w", initializer=np.float64(1.0), use_resource=True)
    f, define = recursive("F", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: w * f(x, n - 1)))
    x = tf.constant(3.0, F64)
    [dx] = tf.gradients(f(x, 3), x)
    with tf.control_dependencies([dx]):
        assign = w.assign(5.0)
    value, _ = run([dx, assign])
    assert value == 1
