"""What gradients compute, and what time and memory they take."""
# SPDX-License-Identifier: Apache-2.0

import time
from pathlib import Path

import distribution_helpers as distribution
import gradient_helpers
import numpy as np
import processes
import pytest
import tensorflow as tf
from building import recursive
from gradient_helpers import Counted, fed, resident_megabytes
from gradient_programs import define_power

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

F64, I32 = tf.float64, tf.int32


# --- What is computed ---------------------------------------------------------------------------------------------


def test_forward_kernels_run_once_when_gradient_is_fetched(run, control_flow):
    counted = Counted()
    f = define_power(wrap=counted)
    x = tf.constant(1.2, F64)
    y = f(x, 10)
    [dx] = tf.gradients(y, x)
    for fetches, backward in [(y, 0), (dx, 10), ([y, dx], 10)]:
        counted.reset()
        run(fetches)
        assert (counted.forward, counted.backward) == (10, backward)


def test_forward_kernels_run_once_when_several_gradients_are_fetched(run, control_flow):
    counted = Counted()
    f = define_power(wrap=counted)
    x = tf.constant(1.2, F64)
    y = f(x, 10)
    first, second = tf.gradients(y, x)[0], tf.gradients(y * y, x)[0]
    np.testing.assert_allclose(run([y, first, second]), [1.2**10, 10 * 1.2**9, 20 * 1.2**19])
    assert counted.forward == 10


def test_forward_kernels_run_once_when_recursion_is_a_tree(run, control_flow):
    counted = Counted()
    f, define = recursive("Tree", [F64, I32], [F64])

    @define
    def Tree(x, n):
        x = counted(x)
        return tf.cond(n < 2, lambda: x, lambda: f(tf.sin(x), n - 1) + x * f(x * x, n - 2))

    x = tf.constant(0.8, F64)
    y = f(x, 8)
    run([y, tf.gradients(y, x)[0]])
    assert (counted.forward, counted.backward) == (67, 67)


def test_forward_kernels_run_once_when_loops_are_around_and_inside(run, control_flow):
    counted = Counted()
    f, define = recursive("F", [F64, I32], [F64])

    @define
    def F(x, n):
        x = tf.ensure_shape(x, [])
        loop = lambda: tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, counted(tf.sin(v))), [0, x])[1]
        return tf.cond(n < 1, lambda: x, lambda: loop() * f(x, n - 1))

    x = tf.constant(0.8, F64)
    step = lambda i, v: (i + 1, tf.ensure_shape(f(v, 3), []))
    y = tf.while_loop(lambda i, _: i < 4, step, [0, x])[1]
    run([y, tf.gradients(y, x)[0]])
    assert (counted.forward, counted.backward) == (4 * 3 * 2, 4 * 3 * 2)


def test_forward_kernels_run_once_when_a_cond_is_around(run, control_flow):
    counted = Counted()
    f = define_power(wrap=counted)
    x, p = tf.constant(1.2, F64), tf1.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: f(x, 10), lambda: x)
    [dx] = tf.gradients(y, x)
    run([y, dx], {p: True})
    assert (counted.forward, counted.backward) == (10, 10)
    counted.reset()
    run([y, dx], {p: False})
    assert (counted.forward, counted.backward) == (0, 0)


@pytest.mark.parametrize("asked", [0, 1])
@pytest.mark.parametrize("session_config", ["static"], indirect=True)
def test_only_fetched_gradients_are_computed(run, control_flow, asked):
    first, second = Counted(), Counted()
    f, define = recursive("F", [F64, F64, I32], [F64])
    deeper = lambda x, y, n: first(x) * f(x, y, n - 1) + second(y)
    define(lambda x, y, n: tf.cond(n < 1, lambda: x * y, lambda: deeper(x, y, n)))
    xs = fed([0.8, 1.2])
    gradients = tf.gradients(f(*xs, 6), xs)
    run(gradients[asked])
    assert (first.forward, second.forward) == (6, 6)
    assert (first.backward, second.backward) == ((6, 0) if asked == 0 else (0, 6))


@pytest.mark.parametrize("session_config", ["static"], indirect=True)
def test_only_gradients_of_what_is_differentiated_by_are_computed(run, control_flow):
    first, second = Counted(), Counted()
    f, define = recursive("F", [F64, F64, I32], [F64, F64])

    @define
    def F(x, y, n):
        def deeper():
            a, b = f(x, y, n - 1)
            return first(x) * a, second(y) * b

        return tf.cond(n < 1, lambda: (x, y), deeper)

    xs = fed([0.8, 1.2])
    ys = f(*xs, 6)
    np.testing.assert_allclose(run(tf.gradients(ys[1], xs[1])[0]), 7 * 1.2**6)
    assert first.backward == 0
    assert second.backward == 6


def test_calls_of_other_shapes_retain_only_what_their_own_gradients_read():
    """The gradient for one factor of a product reads the other factor, so that two gradients read both."""
    f, define = recursive("Product", [F64, F64, I32], [F64])
    define(lambda x, y, n: tf.cond(n < 1, lambda: tf.ones_like(x), lambda: tf.sin(x) * tf.sin(y) * f(x, y, n - 1)))

    def gradients(shape, number):
        x, y = tf.ones(shape, F64), tf.ones(shape, F64)
        return tf.gradients(f(x, y, 3), [x, y])[:number]

    fetches = gradients([2], 1) + gradients([3], 2)
    nodes = tfr.transform_graph(tf1.get_default_graph(), fetches).node
    retained = {node.attr["function"].s: len(node.attr["T"].list.type) for node in nodes if "Retain" in node.op}
    read = {node.attr["function"].s: len(node.attr["T"].list.type) for node in nodes if "Recall" in node.op}
    few, many = sorted(retained.values())  # one record for each of the two shapes
    assert few < many
    assert retained == read


def test_fetching_a_call_alone_ignores_gradients_in_the_graph(run, control_flow):
    counted = Counted()
    f = define_power(wrap=counted)
    x = tf.constant(1.2, F64)
    y = f(x, 10)
    tf.gradients(tf.gradients(y, x)[0], x)
    np.testing.assert_allclose(run(y), 1.2**10)
    assert (counted.forward, counted.backward) == (10, 0)


@pytest.mark.parametrize("in_loop", [False, True])
def test_body_stands_in_graph_once_when_all_is_on_one_device(in_loop):
    """However the calls' records come to the gradient calls: from conditionals, or from lists of a loop."""
    w = tf1.get_variable("w", initializer=np.float32(2), use_resource=True)
    f, define = recursive("Once", [tf.int32, tf.float32], [tf.float32], shapes=[[]], create_grad_func=True)

    @define
    def Once(n, x):
        n = tf.ensure_shape(n, [])
        called = lambda: f(n - 1, x) * w
        looped = lambda: tf.while_loop(lambda i, _: i < n, lambda i, a: (i + 1, a * w + f(i, x)), [0, x])[1]
        return tf.cond(n < 1, lambda: x * w, looped if in_loop else called)

    gradient = tf.gradients(f(3, tf1.placeholder_with_default(np.float32(1), [])), w)
    with tf1.Session(config=tfr.session_config()) as session:
        session.run(tf1.global_variables_initializer())
        _, metadata = distribution.run_traced(session, gradient)
    frame_starts = [node for node in distribution.partition_nodes(metadata) if node.op == "Recursion>FrameStart"]
    bodies = [node.attr["function"].s.decode() for node in frame_starts]
    assert sorted(body.split("__")[1][:-1] for body in bodies) == ["backward", "forward"], bodies


# --- Depth, time and memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("session_config", ["static"], indirect=True)
def test_gradient_of_deep_recursion(run, control_flow):
    f = define_power()
    x, n = tf1.placeholder(F64, []), tf1.placeholder(I32, [])
    y = f(x, n)
    [dx] = tf.gradients(y, x)
    x0 = 1 + 1e-6
    np.testing.assert_allclose(run([y, dx], {x: x0, n: 200_000}), [x0**200_000, 200_000 * x0**199_999], rtol=1e-9)


@pytest.mark.parametrize("session_config", ["static"], indirect=True)
def test_gradient_in_untaken_branch_is_free_within_a_second(run, control_flow):
    f = define_power()
    x, n, p = tf1.placeholder(F64, []), tf1.placeholder(I32, []), tf1.placeholder(tf.bool, [])
    y = f(x, n)
    dx = tf.cond(p, lambda: tf.gradients(y, x)[0], lambda: tf.constant(0.0, F64))
    feeds = {x: 1.0, n: 100_000, p: False}
    assert run([y, dx], {**feeds, p: True}) == [1, 100_000]
    seconds = []
    for number in range(12):
        start = time.process_time()
        assert run([y, dx], feeds) == [1, 0]
        seconds.append(time.process_time() - start)
        if number == 3:
            before = resident_megabytes()
    assert min(seconds) < 1
    assert resident_megabytes() - before < 8


# Peak megabytes over the start, of runs that do more and more.
MEMORY_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import tensorflow as tf, tensorflow_recursion as tfr
tf1 = tf.compat.v1
tf1.disable_eager_execution()
from building import recursive
from gradient_helpers import forget_peak, resident_megabytes

f, define = recursive("Power", [tf.float64, tf.int32], [tf.float64])
define(lambda x, n: tf.cond(n < 1, lambda: tf.ones([], tf.float64), lambda: x * f(x, n - 1)))
x, n = tf1.placeholder(tf.float64, []), tf1.placeholder(tf.int32, [])
plain, y = f(x, n), f(x, n)
[dx] = tf.gradients(y, x)
with tf1.Session(config=tfr.session_config(compile=False)) as session:  # frames are compared with frames
    fetches = [plain, y, [y, dx]]
    for fetch in fetches:
        session.run(fetch, {x: 1.0, n: 10})
    forget_peak()
    before = resident_megabytes()
    for fetch in fetches:
        session.run(fetch, {x: 1.0, n: 300_000})
        print(resident_megabytes("VmHWM") - before)
    print(resident_megabytes() - before)
"""


@pytest.mark.thorough
def test_call_retains_nothing_when_its_gradient_is_not_fetched():
    directory = str(Path(gradient_helpers.__file__).parent)
    done = processes.run_python("-c", MEMORY_PROGRAM, directory)
    assert done.returncode == 0, done.stderr
    plain, forward, gradient, _ = map(float, done.stdout.split())
    assert plain > 20  # else nothing was measured
    assert forward < plain * 1.1
    assert gradient < plain * 4


def training_step():
    """A net over trees: rows gathered, weights captured, an optimizer with state, a loop around the call."""
    generator = np.random.default_rng(3)
    w = tf1.get_variable("w", initializer=generator.normal(size=[8, 4]), use_resource=True)
    e = tf1.get_variable("e", initializer=generator.normal(size=[20, 4]), use_resource=True)
    f, define = recursive("Tree", [I32], [F64])
    join = lambda i: tf.tanh(tf.matmul(tf.concat([f(2 * i), f(2 * i + 1)], 1), w))
    define(lambda i: tf.cond(i > 7, lambda: tf.gather(e, [i]), lambda: join(i)))
    root = tf1.placeholder(I32, [])
    loss = tf.reduce_sum(tf.square(f(root)))
    return tf1.train.AdamOptimizer(0.01).minimize(loss), root


def growth(run, warm_up, steps):
    train, root = training_step()
    for i in range(warm_up):
        run(train, {root: 1 + i % 3})
    before = resident_megabytes()
    for i in range(steps):
        run(train, {root: 1 + i % 3})
    return resident_megabytes() - before


@pytest.mark.thorough
def test_memory_does_not_grow_over_training_steps(run):
    assert growth(run, 300, 1200) < 4


@pytest.mark.slow
def test_memory_does_not_grow_over_many_training_steps(run):
    assert growth(run, 2000, 20_000) < 6
