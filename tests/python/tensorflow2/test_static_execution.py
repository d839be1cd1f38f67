"""Calls outside of sessions are static by themselves: in tf.functions, in datasets, in loops that kernels run."""
# SPDX-License-Identifier: Apache-2.0

import functools
import threading
import warnings

import numpy as np
import processes
import pytest
import tensorflow as tf
from limits import HANG_SECONDS
from tensorflow.python.eager import cancellation, context

import tensorflow_recursion as tfr

pytestmark = pytest.mark.usefixtures("static_or_error")

# Deeper than dynamic calls may nest.
DEEP = 1_000_000


def define_fib(name="Fib"):
    declared = tfr.Declare(name, [("n", tf.int32)], [("ret", tf.int32)])

    @tfr.Defun(tf.int32, func_name=name, out_names=["ret"])
    def Fib(n):
        return tf.cond(n < 2, lambda: n, lambda: declared(n - 1) + declared(n - 2))

    return Fib


def define_sum(dtype=tf.int64):
    """The sum of the numbers up to n."""
    declared = tfr.Declare("SumTo", [("n", dtype)], [("ret", dtype)], output_shapes=[[]])

    @tfr.Defun(dtype, func_name="SumTo", out_names=["ret"])
    def SumTo(n):
        return tf.cond(n < 1, lambda: n, lambda: n + declared(n - 1))

    return SumTo


def define_failing():
    declared = tfr.Declare("Failing", [("n", tf.int64)], [("ret", tf.int64)])

    @tfr.Defun(tf.int64, func_name="Failing", out_names=["ret"])
    def Failing(n):
        return tf.cond(n < 1, lambda: tf.math.floordiv(n, n, name="culprit"), lambda: n + declared(n - 1))

    return Failing


def in_function(define, **options):
    """A tf.function that calls what `define` makes."""
    return tf.function(lambda *args: define()(*args), **options)


class Counted:
    """Which calls began inside of the `with` block."""

    def __enter__(self):
        self._before = tfr.config.outermost_calls()
        return self

    def __exit__(self, *_):
        after = tfr.config.outermost_calls()
        self.static, self.dynamic = (after[kind] - self._before[kind] for kind in ("static", "dynamic"))


# --- Where it is static ---------------------------------------------------------------------------------------------


def test_call_in_tf_function_is_static():
    fib = in_function(define_fib)
    with Counted() as calls:
        assert [int(fib(tf.constant(n))) for n in (0, 1, 10, 20)] == [0, 1, 55, 6765]
    assert (calls.static, calls.dynamic) == (4, 0)


@pytest.mark.parametrize("dtype", [tf.int64, tf.float64])
def test_recursion_is_deep(dtype):
    result = in_function(lambda: define_sum(dtype))(tf.constant(DEEP, dtype))
    assert int(result) == DEEP * (DEEP + 1) // 2


def test_calls_of_one_function_in_one_tf_function_are_static():
    @tf.function
    def call(n):
        fib = define_fib()
        return fib(n) + fib(n + 1) * tf.cond(n > 3, lambda: fib(n), lambda: fib(n + 2))

    with Counted() as calls:
        assert int(call(tf.constant(5))) == 5 + 8 * 5
    assert (calls.static, calls.dynamic) == (3, 0)


def test_calls_in_while_loop_and_map_fn_are_static():
    @tf.function
    def call(numbers):
        fib = define_fib()
        _, total = tf.while_loop(lambda i, _: i < 4, lambda i, a: (i + 1, a + tf.ensure_shape(fib(i), [])), (0, 0))
        return tf.map_fn(fib, numbers, fn_output_signature=tf.int32), total

    with Counted() as calls:
        mapped, total = call(tf.range(8))
    assert (mapped.numpy().tolist(), int(total)) == ([0, 1, 1, 2, 3, 5, 8, 13], 4)
    assert (calls.static, calls.dynamic) == (12, 0)


@pytest.mark.parametrize("threads", [None, 1])
@pytest.mark.parametrize("parallel", [None, tf.data.AUTOTUNE, 4])
def test_calls_in_dataset_are_static(parallel, threads):
    dataset = tf.data.Dataset.range(20).map(lambda i: define_fib()(tf.cast(i, tf.int32)), num_parallel_calls=parallel)
    if threads is not None:
        options = tf.data.Options()
        options.threading.private_threadpool_size = threads
        dataset = dataset.with_options(options)
    with Counted() as calls:
        numbers = [int(n) for n in dataset]
    assert numbers[:8] == [0, 1, 1, 2, 3, 5, 8, 13] and len(numbers) == 20
    assert (calls.static, calls.dynamic) == (20, 0)


@pytest.mark.thorough
def test_dataset_runs_compiled_functions():
    """A dataset measures the operators of its functions; that is no trace, for which bytecode would not run.

    So many frames take more memory than a run may have; compiled calls take less than half of it. The arguments change
    places from call to call: those that stay the same are in no frame.
    """
    depth = 1_950_000
    numbers = list(range(13))
    names = ["n", *(f"a{i}" for i in numbers)]
    declared = tfr.Declare("Sums", [(name, tf.int64) for name in names], [("ret", tf.int64)])

    @tfr.Defun(*[tf.int64] * len(names), func_name="Sums", out_names=["ret"])
    def Sums(n, *added):
        return tf.cond(n < 1, lambda: n, lambda: functools.reduce(tf.add, added, declared(n - 1, *added[1:], added[0])))

    def last(n):
        return Sums(n, *numbers)

    assert [int(n) for n in tf.data.Dataset.from_tensors(np.int64(depth)).map(last)] == [sum(numbers) * depth]
    tfr.config.set_options(compile=False)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="take 512 MiB"):
        tf.function(last)(tf.constant(depth, tf.int64))


def test_dataset_goes_on_after_an_error_that_it_ignores():
    dataset = tf.data.Dataset.from_tensor_slices(tf.constant([3, -1, 2, -5], tf.int64))
    dataset = dataset.map(lambda n: tf.cond(n < 0, lambda: n, lambda: define_failing()(n))).ignore_errors()
    assert [int(n) for n in dataset] == [-1, -5]


def test_calls_in_dataset_that_neither_tunes_itself_nor_reads_ahead_are_static():
    """Each element is computed when it is asked for."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    dataset = tf.data.Dataset.range(3).map(lambda n: define_sum(tf.float64)(tf.cast(n, tf.float64) * 1000))
    with Counted() as calls:
        assert [int(n) for n in dataset.with_options(options)] == [0, 500_500, 2_001_000]
    assert (calls.static, calls.dynamic) == (3, 0)


# --- What bodies use ------------------------------------------------------------------------------------------------


def test_body_captures_variable_and_eager_tensor():
    weight = tf.Variable(2.0)
    bias = tf.constant([1.0, 10.0])
    declared = tfr.Declare("Power", [("n", tf.int32)], [("y", tf.float32)])

    @tfr.Defun(tf.int32, func_name="Power", out_names=["y"])
    def Power(n):
        return tf.cond(n < 1, lambda: bias, lambda: weight * declared(n - 1))

    call = tf.function(lambda n: Power(n))
    with Counted() as calls:
        assert call(tf.constant(3)).numpy().tolist() == [8, 80]
        weight.assign(3.0)
        assert call(tf.constant(2)).numpy().tolist() == [9, 90]
    assert (calls.static, calls.dynamic) == (2, 0)


def test_side_effects_of_body_happen_once_for_each_frame():
    count = tf.Variable(0)
    declared = tfr.Declare("Visit", [("n", tf.int32)], [("ret", tf.int32)])

    @tfr.Defun(tf.int32, func_name="Visit", out_names=["ret"])
    def Visit(n):
        with tf.control_dependencies([count.assign_add(1)]):
            return tf.cond(n < 1, lambda: n, lambda: declared(n - 1) + declared(n - 2))

    @tf.function
    def call(n):
        result = Visit(n)
        with tf.control_dependencies([result]):
            return count.read_value()

    calls_of_visit = [1, 3, 5, 9, 15]
    for n, expected in enumerate(calls_of_visit):
        count.assign(0)
        assert int(call(tf.constant(n))) == expected


def test_function_without_outputs_runs():
    count = tf.Variable(0)
    declared = tfr.Declare("Tick", [("n", tf.int32)], [])

    @tfr.Defun(tf.int32, func_name="Tick")
    def Tick(n):
        def again():
            with tf.control_dependencies([count.assign_add(n)]):
                with tf.control_dependencies([declared(n - 1)]):
                    return tf.constant(0)

        tf.cond(n < 1, lambda: tf.constant(0), again)

    @tf.function
    def call(n):
        with tf.control_dependencies([Tick(n)]):
            return count.read_value()

    with Counted() as calls:
        assert int(call(tf.constant(4))) == 10
    assert (calls.static, calls.dynamic) == (1, 0)


def test_table_list_and_strings_pass_through():
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)
    declared = tfr.Declare("Join", [("n", tf.int32), ("text", tf.string)], [("text", tf.string), ("found", tf.int32)])

    @tfr.Defun(tf.int32, tf.string, func_name="Join", out_names=["text", "found"])
    def Join(n, text):
        return tf.cond(n < 1, lambda: (text, table.lookup(text)), lambda: declared(n - 1, text + "b"))

    call = tf.function(lambda n, text: Join(n, text))
    assert [value.numpy() for value in call(tf.constant(1), tf.constant(""))] == [b"b", 2]
    assert [value.numpy() for value in call(tf.constant(2), tf.constant(""))] == [b"bb", -1]


def test_state_of_random_operator_goes_on_from_call_to_call():
    declared = tfr.Declare("Draw", [("n", tf.int32)], [("x", tf.float32)])

    @tfr.Defun(tf.int32, func_name="Draw", out_names=["x"])
    def Draw(n):
        drawn = tf.random.uniform([], seed=7)
        return tf.cond(n < 1, lambda: drawn, lambda: drawn + declared(n - 1))

    call = tf.function(lambda n: Draw(n))
    drawn = {float(call(tf.constant(2))) for _ in range(5)}
    assert len(drawn) == 5


def test_calls_of_several_threads_return_what_each_asked_for():
    fib, results = in_function(define_fib), {}

    def run(n):
        with context.eager_mode():
            results[n] = [int(fib(tf.constant(n))) for _ in range(20)]

    threads = [threading.Thread(target=run, args=(n,)) for n in range(10, 16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    assert {n: set(values) for n, values in results.items()} == {
        10: {55}, 11: {89}, 12: {144}, 13: {233}, 14: {377}, 15: {610}
    }  # fmt: skip


# --- What goes wrong ------------------------------------------------------------------------------------------------


def test_error_has_the_call_path():
    call = in_function(define_failing)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        call(tf.constant(30, tf.int64))
    message = caught.value.message
    assert "culprit" in message
    assert "in call Failing > Failing > Failing > (25 more) > Failing > Failing" in message, message


def test_runaway_recursion_names_what_can_be_set():
    declared = tfr.Declare("Runaway", [("n", tf.float64)], [("ret", tf.float64)])

    @tfr.Defun(tf.float64, func_name="Runaway", out_names=["ret"])
    def Runaway(n):
        return declared(n + 1) + 1

    tfr.config.set_options(max_depth=5000)
    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        tf.function(lambda n: Runaway(n))(tf.constant(0.0, tf.float64))
    assert "'Runaway' would be at depth 5001, the limit is 5000" in caught.value.message
    assert "tfr.config.set_options(max_depth=...)" in caught.value.message


def test_options_hold_for_functions_traced_before():
    call = in_function(define_sum)
    assert int(call(tf.constant(1000, tf.int64))) == 500_500
    tfr.config.set_options(max_depth=100)
    with pytest.raises(tf.errors.ResourceExhaustedError, match="the limit is 100;"):
        call(tf.constant(1000, tf.int64))
    tfr.config.set_options(max_depth=2000)
    assert int(call(tf.constant(1000, tf.int64))) == 500_500


@pytest.mark.thorough
def test_frames_end_where_memory_does():
    """A frame has room for the branch that is never taken, too."""
    declared = tfr.Declare("Wide", [("n", tf.float64)], [("ret", tf.float64)])

    @tfr.Defun(tf.float64, func_name="Wide", out_names=["ret"])
    def Wide(n):
        terms = lambda: tf.add_n([tf.sin(n * float(i)) for i in range(300)])
        return declared(n + 1) + tf.cond(n < 0, terms, lambda: n)

    with pytest.raises(tf.errors.ResourceExhaustedError, match="take 512 MiB"):
        tf.function(lambda n: Wide(n))(tf.constant(0.0, tf.float64))


def test_cancellation_ends_a_call():
    started = threading.Event()
    declared = tfr.Declare("Forever", [("n", tf.int64)], [("ret", tf.int64)])

    @tfr.Defun(tf.int64, func_name="Forever", out_names=["ret"])
    def Forever(n):
        return tf.cond(n < 1, lambda: n, lambda: declared(n - 1) * 0 + declared(n - 1))

    @tf.function
    def call(n):
        with tf.control_dependencies([tf.numpy_function(started.set, [], [])]):
            return Forever(tf.identity(n))

    function = call.get_concrete_function(tf.TensorSpec([], tf.int64))
    manager = cancellation.CancellationManager()
    function = manager.get_cancelable_function(function)
    errors = []

    def run():
        try:
            with context.eager_mode():
                function(tf.constant(60, tf.int64))  # 2**60 calls
        except tf.errors.OpError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(HANG_SECONDS)
    manager.start_cancel()
    thread.join(HANG_SECONDS)
    assert not thread.is_alive() and isinstance(errors[0], tf.errors.CancelledError)


# --- The switch -----------------------------------------------------------------------------------------------------


def test_calls_are_dynamic_where_that_is_asked_for():
    fib = in_function(define_fib)
    with tfr.config.static_execution(False), Counted() as calls:
        assert int(fib(tf.constant(10))) == 55
    assert (calls.static, calls.dynamic) == (0, 1)
    with Counted() as calls:
        assert int(fib(tf.constant(10))) == 55
    assert (calls.static, calls.dynamic) == (1, 0)


@pytest.mark.thorough
@pytest.mark.parametrize("value, printed", [("0", "0 1"), ("1", "1 0"), ("no", "'no', expected 0 or 1")])
def test_environment_variable_turns_it_off(value, printed, monkeypatch):
    program = """
import tensorflow as tf, tensorflow_recursion as tfr
@tf.function
def f(n): return tfr.Defun(tf.int32, func_name="Inc", out_names=["r"])(lambda n: n + 1)(n)
try: f(tf.constant(1))
except tf.errors.InvalidArgumentError as error: print(error.message)
calls = tfr.config.outermost_calls()
print(calls["static"], calls["dynamic"])
"""
    monkeypatch.setenv("TENSORFLOW_RECURSION_STATIC", value)
    done = processes.run_python("-c", program)
    assert printed in done.stdout, done.stderr


@pytest.mark.parametrize("enabled", [None, 0, "False"])
def test_switch_is_refused_when_it_is_no_bool(enabled):
    with pytest.raises(TypeError, match="enabled is .*, expected True or False"):
        tfr.config.set_static_execution(enabled)


@pytest.mark.parametrize(
    "options", [{"max_depth": 0}, {"workers": -1}, {"compile": 1}, {"on_fallback": "never"}, {"depth": 3}]
)
def test_options_are_refused_when_they_are_none(options):
    before = tfr.config.get_options()
    with pytest.raises(ValueError, match="^set_options: "):
        tfr.config.set_options(**options)
    assert tfr.config.get_options() == before


@pytest.mark.parametrize("native", ["0", "1"], ids=["stock kernels", "native kernels"])
def test_results_are_those_of_dynamic_runs(native, monkeypatch):
    monkeypatch.setenv("TENSORFLOW_RECURSION_NATIVE_KERNELS", native)
    declared = tfr.Declare(f"Mix{native}", [("n", tf.int32), ("x", tf.float32)], [("y", tf.float32)])

    @tfr.Defun(tf.int32, tf.float32, func_name=f"Mix{native}", out_names=["y"])
    def Mix(n, x):
        return tf.cond(n < 1, lambda: tf.tanh(x), lambda: tf.tensordot(x, declared(n - 1, x + 1), 1) + x)

    call = tf.function(lambda n, x: Mix(n, x))
    x = tf.constant(np.random.default_rng(1).normal(size=(5, 5)), tf.float32)
    static = call(tf.constant(4), x)
    with tfr.config.static_execution(False):
        dynamic = call(tf.constant(4), x)
    if native == "1":  # products add in another order than stock's
        np.testing.assert_allclose(static, dynamic, rtol=1e-5)
    else:
        assert np.array_equal(static, dynamic)


def test_session_without_switch_stays_dynamic():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session, Counted() as calls:
        dataset = tf.data.Dataset.range(3).map(lambda i: define_fib()(tf.cast(i, tf.int32)))
        item = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert session.run([item, define_fib("Other")(5)]) == [0, 5]
    assert calls.static == 0
