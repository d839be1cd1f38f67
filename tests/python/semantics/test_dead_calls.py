"""Calls some of whose arguments come late, are dead, or never come."""
# SPDX-License-Identifier: Apache-2.0

import threading

import numpy as np
import pytest
import switches
import tensorflow as tf
from building import counting, recursive
from modes import STATIC_GRAPHS

tf1 = tf.compat.v1
pytestmark = pytest.mark.fake_gpu

# --- Partial invocation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_constant", [False, True], ids=["fed", "constant"])
@pytest.mark.parametrize("mode", STATIC_GRAPHS, indirect=True)
def test_output_returns_when_argument_it_does_not_need_waits_for_it(run, control_flow, is_constant):
    f, define = recursive("Pair", [tf.int32, tf.int32], [tf.int32, tf.int32])
    define(lambda a, b: (a * 2, b + 1))
    queue = tf.queue.FIFOQueue(1, tf.int32, [])
    first, second = f(4 if is_constant else tf1.placeholder_with_default(4, []), queue.dequeue())
    with tf.control_dependencies([queue.enqueue(first)]):
        result = second + 0
    for _ in range(3):
        assert run(result) == 9


@pytest.mark.parametrize("mode", STATIC_GRAPHS, indirect=True)
def test_output_returns_when_constant_call_waits_inside_a_branch_and_a_callee(run, control_flow):
    f, define = recursive("Pair", [tf.int32, tf.int32], [tf.int32, tf.int32])
    define(lambda a, b: (a * 2, b + 1))
    queue = tf.queue.FIFOQueue(1, tf.int32, [])
    take, define_take = recursive("Take", [tf.int32], [tf.int32])
    define_take(lambda n: tf.cond(n < 1, lambda: tf.ensure_shape(queue.dequeue(), []), lambda: take(n - 1)))

    def branch():
        first, second = f(4, take(3))
        with tf.control_dependencies([queue.enqueue(first)]):
            return second + 0

    assert run(tf.cond(tf1.placeholder_with_default(True, []), branch, lambda: 0)) == 9


@pytest.mark.parametrize("mode", STATIC_GRAPHS, indirect=True)
def test_outputs_return_one_by_one_when_each_argument_waits_for_an_output(run):
    f, define = recursive("Relay", [tf.int32] * 4, [tf.int32] * 4)
    define(lambda n, a, b, c: tf.cond(n < 1, lambda: (n, a + 1, b + 1, c + 1), lambda: f(n - 1, a, b, c)))
    queues = [tf.queue.FIFOQueue(1, tf.int32, []) for _ in range(3)]
    outputs = f(tf1.placeholder_with_default(5, []), *[queue.dequeue() for queue in queues])
    passed = [queue.enqueue(output) for queue, output in zip(queues, outputs, strict=False)]
    with tf.control_dependencies(passed):
        result = tf.identity(outputs[-1])
    assert run(result) == 3


@pytest.mark.parametrize("mode", STATIC_GRAPHS, indirect=True)
def test_cond_ends_when_branch_not_taken_has_the_late_argument(run, control_flow):
    f, define = recursive("Choose", [tf.bool, tf.int32, tf.int32], [tf.int32])
    define(lambda p, a, b: tf.cond(p, lambda: a + 1, lambda: b + 2))
    queue = tf.queue.FIFOQueue(1, tf.int32, [])
    p = tf1.placeholder(tf.bool, [])
    y = f(p, 1, queue.dequeue())
    fill = queue.enqueue(10)
    # The step as a whole ends when the queue is filled: by what the call returns, else by another run.
    with tf.control_dependencies([y]):
        refill = queue.enqueue(20)
    assert run([y, refill], {p: True})[0] == 2
    assert run(queue.size()) == 0
    run(fill)
    assert run(y, {p: False}) == 12


def test_call_that_dies_argument_by_argument_leaves_what_waits_beside_it(run):
    """Its arguments' places are those of others, which still wait, until one of them comes alive."""
    down, define_down = recursive("Down", [tf.int32], [tf.float32])
    define_down(lambda n: tf.cond(n < 1, lambda: tf.constant([1.0, 2.0]), lambda: down(n - 1) + 1.0))
    dies, define_dies = recursive("Dies", [tf.float32] * 2, [tf.float32])
    define_dies(lambda p, q: tf.cond(tf.reduce_sum(p) < 0, lambda: dies(p + 1.0, q), lambda: p + q))
    f, define = recursive("Beside", [tf.float32, tf.int32, tf.bool, tf.bool], [tf.float32] * 2)

    @define
    def Beside(v, n, p, q):
        x = tf.concat([tf.concat([v, v], 0), down(n)], 0)
        first = tf.raw_ops.Switch(data=x, pred=tf.logical_not(p))
        second = tf.raw_ops.Switch(data=x, pred=tf.logical_not(q))
        y = dies(first[1], second[1])
        return x, tf.raw_ops.Merge(inputs=[first[0], y])[0]

    v, n = tf1.placeholder(tf.float32, [2]), tf1.placeholder(tf.int32, [])
    p, q = tf1.placeholder(tf.bool, []), tf1.placeholder(tf.bool, [])
    outputs = f(v, n, p, q)
    x = [10, 20, 10, 20, 4, 5]
    for is_dead in (True, False):
        result = run(list(outputs), {v: [10, 20], n: 3, p: is_dead, q: is_dead})
        np.testing.assert_array_equal(result, [x, x if is_dead else np.multiply(x, 2)])


def test_call_ends_when_another_thread_fills_the_queue(run):
    f, define = recursive("Wait", [tf.int32, tf.int32], [tf.int32])
    define(lambda n, x: tf.cond(n < 1, lambda: x, lambda: f(n - 1, x) + 1))
    queue = tf.queue.FIFOQueue(1, tf.int32, [])
    y = f(10, queue.dequeue())
    fill = queue.enqueue(100)
    timer = threading.Timer(0.1, lambda: run(fill))
    timer.start()
    assert run(y) == 110
    timer.join()


def test_dequeue_in_body_waits_for_enqueue_in_another_branch_of_recursion(run):
    """Kernels that wait do not hold workers: many frames wait in the queue at once."""
    take, define_take = recursive("Take", [tf.int32], [tf.int32])
    queue = tf.queue.FIFOQueue(-1, tf.int32, [])
    define_take(lambda n: tf.cond(n < 1, queue.dequeue, lambda: take(n - 1) + take(n - 1)))
    total = take(5)
    put = queue.enqueue_many([tf.range(32)])
    timer = threading.Timer(0.1, lambda: run(put))
    timer.start()
    assert run(total) == sum(range(32))
    timer.join()


# --- Dead calls ---------------------------------------------------------------------------------------------------


def test_body_runs_only_in_branch_taken_when_call_stands_in_cond(run, control_flow):
    count = counting()
    f, define = recursive("Counted", [tf.int32], [tf.int32])

    @define
    def Counted(n):
        with tf.control_dependencies([count.assign_add(1)]):
            n = tf.identity(n)
        return tf.cond(n < 1, lambda: 0, lambda: f(n - 1))

    p = tf1.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: f(3), lambda: -f(10) - 1)
    assert (run(y, {p: True}), run(count)) == (0, 4)
    assert (run(y, {p: False}), run(count)) == (-1, 15)


def test_call_is_dead_when_all_of_its_arguments_are(run):
    """What reads a dead call through a merge gets the other branch."""
    f, define = recursive("Inc", [tf.int32, tf.int32], [tf.int32])
    define(lambda a, b: a + b)
    p = tf1.placeholder(tf.bool, [])
    x = tf.constant(5)
    when_false, when_true = tf.raw_ops.Switch(data=x, pred=p)
    result, index = tf.raw_ops.Merge(inputs=[f(when_false, when_false), f(when_true, when_true) * 3])
    assert run([result, index], {p: False}) == [10, 0]
    assert run([result, index], {p: True}) == [30, 1]


@pytest.mark.parametrize("in_cond", [False, True])
def test_call_runs_only_in_iterations_that_take_place_when_loop_reads_from_outside(run, control_flow, in_cond):
    """In control flow v1 what is read from outside lives in the iteration too that finds the condition false."""
    count, x = counting(), tf1.placeholder_with_default(5, [])
    f, define = recursive("Counted", [tf.int32, tf.int32], [tf.int32])

    @define
    def Counted(x, n):
        with tf.control_dependencies([count.assign_add(1)]):
            n = tf.identity(n)
        return tf.cond(n < 1, lambda: x, lambda: f(x, n - 1) + 1)

    def step(i, total):
        call = (lambda: tf.cond(x > 0, lambda: f(x, i), lambda: 0)) if in_cond else (lambda: f(x, i))
        return i + 1, total + tf.ensure_shape(call(), [])

    total = tf.while_loop(lambda i, _: i < 3, step, [0, 0])[1]
    assert run(total) == 5 + 6 + 7
    assert run(count) == 1 + 2 + 3


@pytest.mark.parametrize("mode", STATIC_GRAPHS, indirect=True)
def test_output_is_live_when_only_the_argument_of_the_other_is_dead(run):
    f, define = recursive("Apart", [tf.int32, tf.int32], [tf.int32, tf.int32])
    define(lambda a, b: (a + 1, b + 1))
    p = tf1.placeholder(tf.bool, [])
    when_false, when_true = tf.raw_ops.Switch(data=tf.constant(5), pred=p)
    live, maybe = f(tf1.placeholder_with_default(1, []), when_true)
    merged, _ = tf.raw_ops.Merge(inputs=[maybe, when_false * 100])
    assert run([live, merged], {p: True}) == [2, 6]
    assert run([live, merged], {p: False}) == [2, 500]


@pytest.mark.parametrize("mode", STATIC_GRAPHS, indirect=True)
def test_argument_from_outside_of_loop_waits_for_no_other(run, control_flow):
    """The body puts into the queue what the other argument waits for."""
    queue = tf1.FIFOQueue(10, [tf.int32], [[]])
    f, define = recursive("Feed", [tf.int32, tf.int32], [tf.int32])

    @define
    def Feed(taken, x):
        with tf.control_dependencies([queue.enqueue(x)]):
            put = tf.identity(x)
        return taken + put

    x = tf1.placeholder_with_default(5, [])

    def step(i, total):
        with tf.control_dependencies([i]):
            return i + 1, total + tf.ensure_shape(f(queue.dequeue(), x), [])

    total = tf.while_loop(lambda i, _: i < 3, step, [0, 0], parallel_iterations=1)[1]
    assert run(total) == 3 * (5 + 5)


def test_loop_runs_with_variables_that_live(run):
    """Only in control flow v1 there is a way: a While is dead as a whole."""
    f, define = recursive("Count", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 1, lambda: f(n - 1) + 1))
    p, n = tf1.placeholder(tf.bool, []), tf1.placeholder(tf.int32, [])
    when_false, when_true = tf.raw_ops.Switch(data=tf.constant(5), pred=p)
    step = lambda i, x, total: (i + 1, x + i, total + tf.ensure_shape(f(i), []))
    with switches.control_flow_v2(False):
        i, x, total = tf.while_loop(lambda i, *_: i < n, step, [0, when_false, 0])
        below, _ = tf.while_loop(lambda x, _: x < n, lambda x, i: (x + 1, i + 1), [when_false, 0])
    x, _ = tf.raw_ops.Merge(inputs=[x, when_true * 100])
    below, _ = tf.raw_ops.Merge(inputs=[below, when_true * 200])
    assert run([i, x, total, below], {p: False, n: 3}) == [3, 5 + 0 + 1 + 2, 1 + 2 + 3, 5]
    assert run([i, x, total, below], {p: True, n: 3}) == [3, 500, 1 + 2 + 3, 1000]
    assert run([i, x, total, below], {p: True, n: 0}) == [0, 500, 0, 1000]


def test_control_dependency_on_dead_call_is_dead(run, control_flow):
    count = counting()
    f, define = recursive("Void", [tf.int32], [tf.int32])
    define(lambda n: n + 1)
    p = tf1.placeholder(tf.bool, [])

    def branch():
        with tf.control_dependencies([f(1)]):
            return count.assign_add(1, read_value=True)

    y = tf.cond(p, branch, lambda: tf.constant(-1))
    assert [run(y, {p: b}) for b in (False, True, False)] == [-1, 1, -1]
    assert run(count) == 1
