"""Small programs that mean the same in Python and in every mode; and how deep they may recurse."""
# SPDX-License-Identifier: Apache-2.0

import call_programs
import loop_programs
import number_programs
import pytest
import tensorflow as tf
from building import recursive
from modes import MODES, STATIC, STATIC_GRAPHS, everywhere
from programs import check

import tensorflow_recursion as tfr

tf1 = tf.compat.v1
pytestmark = pytest.mark.fake_gpu

PROGRAMS = {**number_programs.PROGRAMS, **call_programs.PROGRAMS, **loop_programs.PROGRAMS}
# Arguments where a call costs a round trip or more.
FEWER_INPUTS = {
    "fib": [[-1], [11]],
    "ack": [[2, 3]],
    "tak": [[6, 4, 2]],
    "mutual_recursion_of_three": [[0], [7]],
    "many_call_sites": [[0]],
    "loop_whose_length_is_from_a_call": [[0], [3]],
}


# --- The programs in every mode -----------------------------------------------------------------------------------


@pytest.mark.sampled(6)
@everywhere
@pytest.mark.every_program
@pytest.mark.parametrize("name", PROGRAMS)
def test_result_is_that_of_python_when_run(name, run, mode, control_flow):
    build, types, inputs = PROGRAMS[name]
    if mode == "processes":
        inputs = FEWER_INPUTS.get(name, inputs)
    call, oracle = build()
    function = run.function(call, types)
    for values in inputs:
        check(function(*values), oracle(*values))
    if types:
        constant = call(*[tf.constant(value, dtype) for dtype, value in zip(types, inputs[-1], strict=True)])
        check(run(constant), oracle(*inputs[-1]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name", ["fib", "ack", "primes", "wide_recursion", "many_call_sites", "nested_loops_with_calls"]
)
def test_result_is_the_same_when_run_many_times_on_several_workers(name):
    build, types, inputs = PROGRAMS[name]
    call, oracle = build()
    arguments = [tf1.placeholder(dtype) for dtype in types]
    results = call(*arguments)
    expected = oracle(*inputs[-1])
    with tf1.Session(config=tfr.session_config(workers=4)) as session:
        call = session.make_callable(results, arguments)
        for _ in range(20):
            check(call(*inputs[-1]), expected)


# --- Depth --------------------------------------------------------------------------------------------------------


@everywhere
def test_deep_recursion_ends_when_linear(run, mode):
    depth = MODES[mode].depth
    f, define = recursive("SumTo", [tf.int64], [tf.int64])
    define(lambda n: tf.cond(n < 1, lambda: tf.constant(0, tf.int64), lambda: n + f(n - 1)))
    assert run(f(depth)) == depth * (depth + 1) // 2


@pytest.mark.parametrize("mode", STATIC, indirect=True)
def test_deep_recursion_ends_when_each_level_has_loop_and_tensor(run, mode, control_flow):
    f, define = recursive("Deep", [tf.int32, tf.string], [tf.int32], shapes=[[]])

    @define
    def Deep(n, s):
        loop = lambda: tf.while_loop(lambda i, _: i < 2, lambda i, t: (i + 1, t + f(n - 1, s) * i), [0, 0])[1]
        return tf.cond(n < 1, lambda: tf.strings.length(s), lambda: tf.cond(n > 2, lambda: f(n - 1, s), loop))

    assert run(f(MODES[mode].depth // 2, "abc")) == 3


@pytest.mark.parametrize("mode", STATIC_GRAPHS, indirect=True)
def test_late_argument_goes_down_a_chain_of_open_frames_when_deep(run, mode):
    """The argument comes only once the recursion has returned its other output through a queue."""
    f, define = recursive("Chain", [tf.int32, tf.int32], [tf.int32, tf.int32])
    define(lambda n, x: tf.cond(n < 1, lambda: (n - 1, x + 1), lambda: f(n - 1, x)))
    queue = tf.queue.FIFOQueue(1, tf.int32, [])
    early, late = f(tf1.placeholder_with_default(MODES[mode].depth, []), queue.dequeue())
    with tf.control_dependencies([queue.enqueue(early)]):
        result = tf.identity(late)
    assert run(result) == 0


@everywhere
def test_runs_may_alternate_when_deep_and_shallow(run, mode):
    deep = min(MODES[mode].depth, 5000)
    f, define = recursive("Count", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: 1 + f(n - 1)))
    count = run.function(f, [tf.int32])
    assert [count(k) for k in (3, deep, 0, deep, 2)] == [3, deep, 0, deep, 2]
