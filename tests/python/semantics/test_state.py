"""Variables, queues, files and random numbers that bodies use."""
# SPDX-License-Identifier: Apache-2.0

import functools

import numpy as np
import pytest
import tensorflow as tf
from building import counting, recursive
from modes import SESSIONS, STATIC_SESSIONS, everywhere

tf1 = tf.compat.v1
pytestmark = pytest.mark.fake_gpu


def test_captured_values_are_those_of_outermost_call(run, control_flow):
    w = tf1.get_variable("w", initializer=[1, 2, 3], use_resource=True)
    x = tf1.placeholder(tf.int32, [])
    f, define = recursive("Captured", [tf.int32], [tf.int32])
    g, define_g = recursive("CapturedToo", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: w * x, lambda: g(n - 1) + x))
    define_g(lambda n: tf.cond(n < 1, lambda: w - x, lambda: f(n - 1) * 2))
    assert run(f(3), {x: 5}).tolist() == [7, 9, 11]
    assert run(f(2), {x: 10}).tolist() == [30, 50, 70]
    run(w.assign([0, 0, 1]))
    assert run(f(0), {x: 2}).tolist() == [0, 0, 2]


@everywhere
def test_variable_is_assigned_in_every_invocation(run, control_flow):
    count = counting()
    f, define = recursive("FibCount", [tf.int32], [tf.int32])

    @define
    def FibCount(n):
        with tf.control_dependencies([count.assign_add(1)]):
            n = tf.identity(n)
        return tf.cond(n < 2, lambda: n, lambda: f(n - 1) + f(n - 2))

    assert run(f(12)) == 144
    assert run(count) == 465


@everywhere
def test_variable_is_assigned_in_order_when_control_dependencies_say_so(run, control_flow):
    text = tf1.get_variable("text", initializer="", use_resource=True)
    f, define = recursive("Hanoi", [tf.int32], [tf.int32])

    @define
    def Hanoi(n):
        def move():
            with tf.control_dependencies([f(n - 1)]):
                grown = text.assign(tf.strings.join([text.read_value(), tf.as_string(n)]))
            with tf.control_dependencies([grown]):
                right = f(n - 1)
            with tf.control_dependencies([right]):
                return tf.identity(n)

        return tf.cond(n < 1, lambda: 0, move)

    assert run(f(4)) == 4
    assert run(text) == b"121312141213121"


@everywhere
def test_resource_argument_is_the_callers_variable(run, control_flow):
    v, w = counting("v"), counting("w")
    f, define = recursive("Alternate", [tf.int32, tf.resource, tf.resource], [tf.int32])

    @define
    def Alternate(n, a, b):
        def step():
            with tf.control_dependencies([tf.raw_ops.AssignAddVariableOp(resource=a, value=n)]):
                return f(n - 1, b, a)

        return tf.cond(n < 1, lambda: tf.raw_ops.ReadVariableOp(resource=a, dtype=tf.int32), step)

    assert run(f(5, v.handle, w.handle)) == 4 + 2
    assert run([v, w]) == [5 + 3 + 1, 4 + 2]


@everywhere
def test_ref_variable_is_read_and_assigned_outside_of_call_when_session_runs_both(run, variable_kind):
    w = tf1.get_variable("w", initializer=2)
    f, define = recursive("Times", [tf.int32, tf.int32], [tf.int32])
    define(lambda n, x: tf.cond(n < 1, lambda: x, lambda: 2 * f(n - 1, x)))
    with tf.control_dependencies([tf1.assign(w, 3)]):
        y = f(3, w.read_value())
    assert run(y) == 24
    assert run(tf1.assign_add(w, f(1, 5))) == 13


@everywhere
def test_queue_passes_values_between_invocations(run, control_flow):
    queue = tf.queue.FIFOQueue(-1, tf.int32, [])
    f, define = recursive("Enqueue", [tf.int32], [tf.int32])

    @define
    def Enqueue(n):
        def step():
            with tf.control_dependencies([queue.enqueue(n * n)]):
                return f(n - 1) + 1

        return tf.cond(n < 1, lambda: 0, step)

    y = f(5)
    with tf.control_dependencies([y]):
        values = queue.dequeue_many(5)
    assert sorted(run(values)) == [1, 4, 9, 16, 25]
    assert run(queue.size()) == 0


@everywhere
def test_print_in_body_prints_once_per_invocation(run, tmp_path, control_flow):
    path = tmp_path / "log"
    f, define = recursive("Say", [tf.int32], [tf.int32])

    @define
    def Say(n):
        with tf.control_dependencies([tf.print("n is", n, output_stream=f"file://{path}")]):
            n = tf.identity(n)
        return tf.cond(n < 1, lambda: 0, lambda: f(n - 1))

    run(f(3))
    assert path.read_text().split("\n") == ["n is 3", "n is 2", "n is 1", "n is 0", ""]


@everywhere
def test_side_effects_are_done_when_what_waits_for_the_call_runs(run, control_flow):
    count = counting()
    f, define = recursive("Effect", [tf.int32], [])
    g, define_g = recursive("EffectBeside", [tf.int32], [tf.int32])

    @define
    def Effect(n):
        def deeper():
            with tf.control_dependencies([f(n - 1)]):
                return tf.identity(n)

        with tf.control_dependencies([count.assign_add(n)]):
            done = tf.cond(n < 1, lambda: n, deeper)
        with tf.control_dependencies([done]):
            return tf.no_op()

    @define_g
    def EffectBeside(n):
        f(n)
        return n + 1

    with tf.control_dependencies([f(4)]):
        after = count.read_value()
    assert run(after) == 10
    with tf.control_dependencies([g(3)]):
        later = count.read_value()
    assert run(later) == 16


@everywhere
def test_assert_in_body_ends_the_run_when_it_fails(run, control_flow):
    f, define = recursive("Checked", [tf.int32], [tf.int32])

    @define
    def Checked(n):
        with tf.control_dependencies([tf1.assert_greater(n, 2, message="too small")]):
            n = tf.identity(n)
        return tf.cond(n < 10, lambda: f(n - 1), lambda: n)

    checked = run.function(f, [tf.int32])
    for _ in range(2):
        assert checked(11) == 11
        with pytest.raises(tf.errors.InvalidArgumentError, match="too small"):
            checked(5)


# --- Random numbers -----------------------------------------------------------------------------------------------


def random_number():
    return tf.random.uniform([], 0, 2**30, tf.int32, seed=11)


@functools.cache
def stock_stream(count):
    """What a session without any function draws."""
    with tf.Graph().as_default(), tf1.Session() as session:
        tf1.set_random_seed(5)
        number = random_number()
        return [int(session.run(number)) for _ in range(count)]


@pytest.mark.parametrize("mode", SESSIONS, indirect=True)  # where an operator has one kernel, not one in each function
def test_random_stream_goes_on_when_fetches_change(run):
    tf1.set_random_seed(5)
    r = random_number()
    f, define = recursive("Id", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: 1 + f(n - 1)))
    y, z = f(3), f(r % 4)
    drawn = [run(r), run([r, y])[0], run([y, r])[1], run(r), run([z, r])[1], run({"r": r, "y": y})["r"], run(r)]
    assert drawn == stock_stream(7)


@pytest.mark.parametrize("mode", STATIC_SESSIONS, indirect=True)
def test_random_stream_of_body_goes_on_when_fetches_change(run):
    """The operator stands in the graph once: its stream is the one it has outside of functions."""
    tf1.set_random_seed(5)
    f, define = recursive("Draw", [tf.int32], [tf.int32])
    define(
        lambda n: tf.cond(n < 1, lambda: tf.constant([], tf.int32), lambda: tf.concat([[random_number()], f(n - 1)], 0))
    )
    one, three = f(1), f(3)
    x = tf1.placeholder_with_default(2, [])
    drawn = [run(one), run([one, x])[0], run(three), run([x, f(2)])[1], run(one)]
    assert sorted(np.concatenate(drawn)) == sorted(stock_stream(8))
    assert [drawn[0][0], drawn[1][0], drawn[-1][0]] == [stock_stream(8)[i] for i in (0, 1, 7)]


@pytest.mark.parametrize("mode", STATIC_SESSIONS, indirect=True)
def test_random_stream_of_body_goes_on_when_the_graph_has_its_name(run):
    """Its operators are `Draw/...` in the graph, unless the graph has nodes of these names, fetched or not."""
    tf1.set_random_seed(5)
    f, define = recursive("Draw", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: f(n - 1)) + random_number())
    y = f(0)
    with tf1.name_scope("Draw/"):
        other = random_number()
    drawn = [run([y, other])[0], run(y), run(y), run([y, other])[0]]
    assert drawn == stock_stream(4)


def slowly(x):
    """x, after products that take longer than a call would if it did not wait."""
    product = tf1.placeholder_with_default(np.eye(300, dtype=np.float32), [300, 300])
    for _ in range(20):
        product = product @ product
    return x + tf.cast(product[0, 1], x.dtype)


def assigning(name):
    """A function f(n, handle) whose every invocation adds 1 to the variable, whatever n is."""
    f, define = recursive(name, [tf.int32, tf.resource], [tf.int32])

    @define
    def body(n, handle):
        with tf.control_dependencies([tf.raw_ops.AssignAddVariableOp(resource=handle, value=1)]):
            n = tf.identity(n)
        return tf.cond(n < 1, lambda: n, lambda: f(n - 1, handle))

    return f


def summing(name, v):
    """A function f(n) that adds up v over its n + 1 invocations."""
    f, define = recursive(name, [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: f(n - 1)) + v.read_value())
    return f


@everywhere
def test_call_that_assigns_comes_after_the_assignment_that_its_argument_waits_for(run, control_flow):
    v = counting("v")
    f = assigning("AddOnes")
    with tf.control_dependencies([v.assign(slowly(tf.constant(10)))]):
        y = f(tf.identity(3), v.handle)
    with tf.control_dependencies([y]):
        after = v.read_value()
    assert run(after) == 14


@everywhere
def test_call_that_reads_comes_after_the_assignment_that_its_argument_waits_for(run, control_flow):
    v = counting("v")
    f = summing("AddUp", v)
    assert run(f(v.assign(slowly(tf.constant(4))) - 1)) == 16


@everywhere
def test_call_that_assigns_comes_after_the_read_that_its_argument_waits_for(run, control_flow):
    v = counting("v")
    f = assigning("AddOnesLater")
    with tf.control_dependencies([slowly(tf.constant(0))]):
        before = v.read_value()
    with tf.control_dependencies([before]):
        y = f(tf.identity(2), v.handle)
    with tf.control_dependencies([y]):
        after = v.read_value()
    assert run([before, after]) == [0, 3]


@everywhere
def test_call_in_body_comes_after_the_assignment_that_its_argument_waits_for(run, control_flow):
    v = counting("v")
    f = assigning("AddOnesBelow")
    g, define = recursive("Above", [tf.int32, tf.int32], [tf.int32])

    @define
    def Above(n, to):
        def below():
            with tf.control_dependencies([v.assign(slowly(to))]):
                return f(tf.identity(n), v.handle)

        return tf.cond(n < 1, lambda: 0, lambda: g(n - 1, to + 5)) + tf.cond(n < 1, below, lambda: 0)

    with tf.control_dependencies([g(2, 5)]):
        after = v.read_value()
    assert run(after) == 16
