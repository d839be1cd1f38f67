"""The dynamic path: depth, errors, cancellation, and where calls run without the switch."""
# SPDX-License-Identifier: Apache-2.0

import threading

import processes
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion import ops

tf1 = tf.compat.v1

DEEP = 100_000


def define_sum():
    declared = tfr.Declare("SumTo", [("n", tf.int64)], [("ret", tf.int64)], output_shapes=[[]])

    @tfr.Defun(tf.int64, func_name="SumTo", out_names=["ret"])
    def sum_to(n):
        return tf.cond(n < 1, lambda: n, lambda: n + declared(n - 1))

    return sum_to


def define_runaway(calls=1):
    declared = tfr.Declare("Runaway", [("n", tf.int64)], [("ret", tf.int64)], output_shapes=[[]])

    @tfr.Defun(tf.int64, func_name="Runaway", out_names=["ret"])
    def runaway(n):
        return tf.add_n([declared(n + 1) for _ in range(calls)])

    return runaway


def define_failing():
    declared = tfr.Declare("Failing", [("n", tf.int64)], [("ret", tf.int64)], output_shapes=[[]])

    @tfr.Defun(tf.int64, func_name="Failing", out_names=["ret"])
    def failing(n):
        return tf.cond(n < 1, lambda: tf.math.floordiv(n, n, name="culprit"), lambda: n + declared(n - 1))

    return failing


def config(inter_op=0, grappler=True):
    """`inter_op` -1 runs every kernel in the thread that calls `run`; without Grappler, If and While stay."""
    result = tf1.ConfigProto(inter_op_parallelism_threads=inter_op)
    result.graph_options.rewrite_options.disable_meta_optimizer = not grappler
    return result


@pytest.fixture
def low_limit(monkeypatch):
    monkeypatch.setenv("TENSORFLOW_RECURSION_DYNAMIC_MAX_DEPTH", "5000")


# --- Depth ----------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("inter_op", [0, -1])
@pytest.mark.parametrize("grappler", [True, False])
def test_recursion_is_deep_when_kernels_run_in_pool_or_inline(control_flow, inter_op, grappler):
    total = define_sum()(tf.constant(DEEP, tf.int64))
    with tf1.Session(config=config(inter_op, grappler)) as sess:
        assert sess.run(total) == DEEP * (DEEP + 1) // 2


@pytest.mark.full_matrix
@pytest.mark.parametrize("threads", [0, 1])
def test_recursion_is_deep_in_dataset_function(control_flow, threads):
    sum_to = define_sum()
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    dataset = tf.data.Dataset.from_tensors(tf.constant(DEEP, tf.int64)).map(sum_to).with_options(options)
    total = tf1.data.make_one_shot_iterator(dataset).get_next()
    with tf1.Session() as sess:
        assert sess.run(total) == DEEP * (DEEP + 1) // 2


def test_recursion_through_loop_is_deep(control_flow):
    declared = tfr.Declare("Looping", [("n", tf.int64)], [("ret", tf.int64)], output_shapes=[[]])

    @tfr.Defun(tf.int64, func_name="Looping", out_names=["ret"])
    def looping(n):
        def body(i, total):
            return i + 1, total + declared(n - 1)

        return tf.cond(n < 1, lambda: n, lambda: tf.while_loop(lambda i, _: i < 1, body, [0, n])[1])

    total = looping(tf.constant(3000, tf.int64))
    for inter_op in (0, -1):
        with tf1.Session(config=config(inter_op, grappler=False)) as sess:
            assert sess.run(total) == 3000 * 3001 // 2


@pytest.mark.parametrize("inter_op", [0, -1])
@pytest.mark.parametrize("calls", [1, 2])
def test_runaway_recursion_is_error_when_limit_is_reached(low_limit, inter_op, calls):
    result = define_runaway(calls)(tf.constant(0, tf.int64))
    fine = define_sum()(tf.constant(10, tf.int64))
    with tf1.Session(config=config(inter_op)) as sess:
        with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
            sess.run(result)
        assert sess.run(fine) == 55
    message = caught.value.message
    assert "function 'Runaway'" in message
    if inter_op == 0 or calls == 1:
        assert "reached depth 5001, the limit is 5000" in message
        assert "TENSORFLOW_RECURSION_DYNAMIC_MAX_DEPTH raises it" in message


def test_runaway_recursion_is_error_when_branches_have_frames_of_their_own(low_limit):
    declared = tfr.Declare("Runaway", [("n", tf.int64)], [("ret", tf.int64)], output_shapes=[[]])

    @tfr.Defun(tf.int64, func_name="Runaway", out_names=["ret"])
    def runaway(n):
        return tf.cond(n < 0, lambda: n, lambda: declared(n + 1))

    tf1.enable_control_flow_v2()
    with tf1.Session(config=config(grappler=False)) as sess:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="the limit is 5000"):
            sess.run(runaway(tf.constant(0, tf.int64)))


def test_run_is_error_when_limit_is_no_number(monkeypatch):
    monkeypatch.setenv("TENSORFLOW_RECURSION_DYNAMIC_MAX_DEPTH", "many")
    with tf1.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="_MAX_DEPTH is 'many', expected an integer >= 1"):
            sess.run(define_sum()(tf.constant(1, tf.int64)))


@pytest.mark.slow
def test_default_limit_ends_within_memory():
    program = """
import resource, tensorflow as tf, tensorflow_recursion as tfr
tf.compat.v1.disable_eager_execution()
f = tfr.Declare("F", [("n", tf.int64)], [("ret", tf.int64)])
@tfr.Defun(tf.int64, func_name="F", out_names=["ret"])
def f_impl(n): return tf.cond(n < 0, lambda: n, lambda: f(n + 1) + f(n + 2))
y = f_impl(tf.constant(0, tf.int64))
with tf.compat.v1.Session() as sess:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try: sess.run(y)
    except tf.errors.ResourceExhaustedError: pass
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20)
"""
    done = processes.run_python("-c", program)
    assert float(done.stdout) < 2  # GiB


# --- Errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("grappler", [True, False])
def test_error_in_body_names_node_and_call_path(control_flow, grappler):
    result = define_failing()(tf.constant(DEEP, tf.int64))
    with tf1.Session(config=config(grappler=grappler)) as sess:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run(result)  # every level copying a longer text would take hours
    message = caught.value.message
    assert "Integer division by zero" in message
    assert "culprit" in message or "floordiv" in message
    assert f"call path Failing > Failing > Failing > ({DEEP + 1 - 6} more) > Failing > Failing > Failing" in message
    assert len(message.partition("Integer division")[2]) < 1000  # before it are lines of Python


def test_error_is_the_first_one_when_other_calls_are_cancelled(control_flow):
    declared = tfr.Declare("Mixed", [("n", tf.int64)], [("ret", tf.int64)], output_shapes=[[]])

    @tfr.Defun(tf.int64, func_name="Mixed", out_names=["ret"])
    def mixed(n):
        return tf.cond(n < 1, lambda: n // n, lambda: declared(n - 1) + declared(n - 1))

    with tf1.Session() as sess:
        for _ in range(20):
            with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
                sess.run(mixed(tf.constant(12, tf.int64)))


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ([1, 2], [tf.int32], "Call 'f' of function 'AddOne': 2 arguments given, the function takes 1"),
        ([1.0], [tf.int32], "Call 'f' of function 'AddOne': argument 0 is float, the function takes int32"),
        ([1], [tf.float32], "Call 'f' of function 'AddOne': output 0 is read as float, the function returns int32"),
        ([1], [tf.int32] * 2, "Call 'f' of function 'AddOne': 2 outputs expected, the function returns 1"),
    ],
)
def test_call_is_error_when_node_does_not_fit_definition(graph, inputs, outputs, message):
    @tfr.Defun(tf.int32, func_name="AddOne")
    def add_one(n):
        return n + 1

    add_one.add_to_graph(graph)
    call = ops.invoke("AddOne", [tf.constant(value) for value in inputs], outputs, None, name="f")
    with tf1.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run(call.outputs[0])
    assert message in caught.value.message


def test_call_is_error_when_function_has_no_definition():
    call = ops.invoke("Nowhere", [tf.constant(1)], [tf.int32], None, name="f")
    with tf1.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="Call 'f': function 'Nowhere' is declared but has no"):
            sess.run(call.outputs[0])


def test_node_of_transformed_graph_is_error_outside_of_our_executor():
    @tfr.Defun(func_name="Stray", out_names=["ret"])
    def stray():
        attrs = {
            "T": tf1.AttrValue(type=tf.int32.as_datatype_enum),
            "function": tf1.AttrValue(s=b"F"),
            "index": tf1.AttrValue(i=0),
        }
        graph = tf1.get_default_graph()
        return graph.create_op("Recursion>Entry", [], [tf.int32], name="entry", attrs=attrs).outputs[0]

    with tf1.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"Node 'entry' \(Recursion>Entry\) runs only inside"):
            sess.run(stray())


# --- Cancellation ---------------------------------------------------------------------------------------------------


def define_endless():
    """2^60 calls, at most 60 deep."""
    declared = tfr.Declare("Endless", [("n", tf.int64)], [("ret", tf.int64)], output_shapes=[[]])

    @tfr.Defun(tf.int64, func_name="Endless", out_names=["ret"])
    def endless(n):
        return tf.cond(n < 1, lambda: n, lambda: declared(n - 1) + declared(n - 1))

    return endless


def test_timeout_ends_recursion(control_flow):
    endless = define_endless()
    result, fine = endless(tf.constant(60, tf.int64)), endless(tf.constant(3, tf.int64))
    with tf1.Session() as sess:
        with pytest.raises(tf.errors.DeadlineExceededError):  # it would run for years
            sess.run(result, options=tf1.RunOptions(timeout_in_ms=300))
        assert sess.run(fine) == 0


def test_close_ends_recursion(control_flow):
    result = define_endless()(tf.constant(60, tf.int64))
    sess = tf1.Session()
    timer = threading.Timer(0.5, sess.close)
    timer.start()
    with pytest.raises(tf.errors.CancelledError):
        sess.run(result)
    timer.join()


# --- State and sessions ---------------------------------------------------------------------------------------------


def test_concurrent_runs_agree():
    n = tf1.placeholder(tf.int64, [])
    result = define_sum()(n)
    wrong = []
    with tf1.Session() as sess:

        def work(size):
            for _ in range(10):
                if sess.run(result, {n: size}) != size * (size + 1) // 2:
                    wrong.append(size)

        threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_random_operator_in_body_goes_on_when_run_again():
    @tfr.Defun(func_name="Draw", out_names=["ret"])
    def draw():
        return tf.random.uniform([], seed=1)

    value = draw()
    other = tf.constant(1)
    with tf1.Session() as sess:
        drawn = [float(sess.run(value)) for _ in range(5)] + [float(sess.run([value, other])[0])]
    assert len(set(drawn)) >= 5


def test_trace_shows_nodes_of_body():
    result = define_sum()(tf.constant(3, tf.int64))
    metadata = tf1.RunMetadata()
    with tf1.Session() as sess:
        sess.run(result, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), run_metadata=metadata)
    names = [node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats]
    assert sum("Less" in name for name in names) >= 4
