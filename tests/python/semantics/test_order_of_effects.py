"""What waits for side effects comes after them, also if they take long and something else is told early."""
# SPDX-License-Identifier: Apache-2.0

import time

import pytest
import tensorflow as tf
from building import counting, recursive
from modes import GRAPHS

tf1 = tf.compat.v1

# Python functions of one process are unknown to others.
pytestmark = [
    pytest.mark.fake_gpu,
    pytest.mark.parametrize("mode", [name for name in GRAPHS if name != "processes"], indirect=True),
]


def noted_late(events, text, value, stateful=True):
    """`value`, a scalar int32, and the text in `events`, both after other operators have had much time to run."""

    def note(passed_on):
        time.sleep(0.05)
        events.append(f"{text} {passed_on}")
        return passed_on

    noted = tf.numpy_function(note, [value], tf.int32, stateful=stateful)
    noted.set_shape([])
    return noted


def test_callers_wait_for_effects_before_a_branch_that_is_not_taken(run, control_flow):
    events = []
    f, define = recursive("EffectBeforeBranch", [tf.int32], [])

    @define
    def EffectBeforeBranch(n):
        def deeper():
            with tf.control_dependencies([f(n - 1)]):
                return noted_late(events, "after", n)

        is_deep = n > 0
        with tf.control_dependencies([noted_late(events, "before", n)]):
            last = tf.cond(is_deep, deeper, lambda: tf.constant(0))
        with tf.control_dependencies([last]):
            return tf.no_op()

    run(f(2))
    assert events == ["before 2", "before 1", "before 0", "after 1", "after 2"]


def test_callers_wait_for_effects_that_unread_arguments_come_from(run, control_flow):
    events = []
    first, define_first = recursive("First", [tf.int32, tf.int32], [tf.int32])
    f, define = recursive("EffectBehindArgument", [tf.int32], [])
    define_first(lambda x, y: tf.cond(x < 1, lambda: x, lambda: first(x - 1, y) + y))

    @define
    def EffectBehindArgument(n):
        zero = first(0, noted_late(events, "argument", n))
        with tf.control_dependencies([noted_late(events, "last", zero)]):
            return tf.no_op()

    with tf.control_dependencies([f(3)]):
        after = noted_late(events, "caller", tf.constant(4))
    run(after)
    assert sorted(events[:2]) == ["argument 3", "last 0"]
    assert events[2:] == ["caller 4"]


@pytest.mark.sampled(2)
def test_what_waits_for_a_call_waits_for_each_of_its_outputs(run, control_flow):
    events = []
    count = counting()
    f, define = recursive("TwoOutputs", [tf.int32, tf.int32], [tf.int32, tf.int32])

    @define
    def TwoOutputs(n, x):
        with tf.control_dependencies([count.assign_add(1)]):
            deeper = tf.cond(n < 1, lambda: x, lambda: f(n - 1, x)[1])
        late = n + 0 * deeper
        for _ in range(10):
            late = noted_late(events, "output", late, stateful=False)
        return late, deeper + 1

    outputs = f(1, 5)
    with tf.control_dependencies([outputs[0].op]):
        after = noted_late(events, "caller", tf.constant(4))
    assert run([after, outputs[1]]) == [4, 7]
    assert events[: events.index("caller 4")].count("output 1") == 10


def shifted(name):
    """A recursive function of two numbers that returns the first one, if it is 0, before the second has come."""
    first, define_first = recursive(name, [tf.int32, tf.int32], [tf.int32])
    define_first(lambda x, y: tf.cond(x < 1, lambda: x, lambda: first(x - 1, y) + y))
    return first


def count_and_read(first, n):
    """Adds 1 to a variable, slowly, and reads it; in between are calls that return early."""
    with tf.control_dependencies([counting().assign_add(noted_late([], "", n) * 0 + 1)]):
        counted = tf.identity(n)
    zero = first(0, counted)
    later = first(zero, counted)
    with tf.control_dependencies([counted.op, later]):
        return counting().read_value()


def variable_scope():
    return tf1.variable_scope("count", reuse=tf1.AUTO_REUSE)


def test_reads_behind_calls_come_after_assignments_that_the_calls_need_not_wait_for(run, control_flow):
    first = shifted("FirstOfReads")
    with variable_scope():
        assert run(count_and_read(first, tf1.placeholder_with_default(5, []))) == 1


def test_reads_in_bodies_come_after_assignments_before_calls(run, control_flow):
    first = shifted("FirstInBody")
    f, define = recursive("CountAndRead", [tf.int32], [tf.int32])

    @define
    def CountAndRead(n):
        with variable_scope():
            read = count_and_read(first, n)
        with tf.control_dependencies([read]):
            return tf.cond(n < 1, lambda: read, lambda: 10 * f(n - 1) + read)

    assert run(f(2)) == 321


def test_assignments_behind_calls_come_after_reads_before_them(run, control_flow):
    first = shifted("FirstOfAssignments")
    with variable_scope():
        late = noted_late([], "", tf1.placeholder_with_default(5, []))
        with tf.control_dependencies([late]):
            read = counting().read_value()
        later = first(first(0, read), read)
        with tf.control_dependencies([read, later]):
            assigned = counting().assign(later + 7)
        with tf.control_dependencies([assigned]):
            after = counting().read_value()
        assert run([read, after]) == [0, 7]
