"""The library of functions that a process has in eager mode: nothing stays behind, nothing is taken for another one."""
# SPDX-License-Identifier: Apache-2.0

import gc
import json
import pathlib

import processes
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

import tensorflow_recursion as tfr

pytestmark = pytest.mark.usefixtures("short_collections")
ROOT = pathlib.Path(__file__).resolve().parents[3]
TRACES = 3


def functions():
    gc.collect()
    return set(context.context().list_function_names())


def make_power(v):
    @tfr.recursive
    def power(x, n):
        if n < 1:
            return v * 1.0
        return x * power(x, n - 1)

    return power


def slope_in_tf_function(power):
    @tf.function
    def slope(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = power(x, n)
        return tape.gradient(y, x)

    return slope(tf.constant(2.0), tf.constant(3))


def slope_by_eager_tape(power):
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = power(x, tf.constant(3))
    return tape.gradient(y, x)


def slope_around_tf_function(power):
    x, call = tf.constant(2.0), tf.function(lambda x, n: power(x, n))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = call(x, tf.constant(3))
    return tape.gradient(y, x)


SLOPES = [slope_in_tf_function, slope_by_eager_tape, slope_around_tf_function]


@pytest.mark.thorough
@pytest.mark.parametrize("slope", SLOPES, ids=lambda slope: slope.__name__)
def test_functions_that_are_gone_leave_no_traces_behind(slope):
    v = tf.Variable(1.5)
    slope(make_power(v))  # what is made once
    before = functions()
    for _ in range(TRACES):
        assert slope(make_power(v)).numpy() == 18.0
    assert not functions() - before


@pytest.mark.thorough
@pytest.mark.parametrize("slope", [slope_in_tf_function, slope_around_tf_function], ids=lambda slope: slope.__name__)
def test_function_that_is_traced_again_leaves_no_traces_behind(slope):
    power = make_power(tf.Variable(1.5))
    slope(power)
    before = functions()
    for _ in range(TRACES):
        assert slope(power).numpy() == 18.0
    assert not functions() - before


@pytest.mark.thorough
def test_functions_stay_as_long_as_they_are_needed():
    """The graph that holds the gradient outlives the recursive function."""

    def make():
        power = make_power(tf.Variable(1.5))
        return tf.function(lambda x, n: power(x, n))

    call, x = make(), tf.constant(2.0)
    call(x, tf.constant(1))
    gc.collect()
    for _ in range(2):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = call(x, tf.constant(3))
            slope = inner.gradient(y, x)
            gc.collect()
        assert [slope.numpy(), outer.gradient(slope, x).numpy()] == [18.0, 18.0]


@pytest.mark.thorough
def test_loaded_functions_stay_as_long_as_what_was_loaded(tmp_path):
    v = tf.Variable(1.5)
    power = make_power(v)
    module = tf.Module()
    module.v = v
    module.call = tf.function(
        lambda x, n: power(x, n), input_signature=[tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)]
    )
    tf.saved_model.save(module, str(tmp_path))

    def use():
        module = tf.saved_model.load(str(tmp_path))
        gc.collect()
        return slope_by_eager_tape(module.call).numpy()

    assert use() == 18.0
    before = functions()
    for _ in range(2):
        assert use() == 18.0
    assert not functions() - before


PROGRAM = """
import sys
import tensorflow as tf
import tensorflow_recursion as tfr

tf1 = tf.compat.v1
FACTOR, OWN_PATH, OTHER_PATHS = float(sys.argv[1]), sys.argv[2], sys.argv[3:]

@tfr.recursive
def power(x, n):
    return tf.cond(n < 1, lambda: tf.constant(FACTOR), lambda: x * power(x, n - 1))

specs = [tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)]
call = tf.function(lambda x, n: power(x, n), input_signature=specs)
graph = call.get_concrete_function().graph.as_graph_def()
with open(OWN_PATH, "wb") as file:
    file.write(graph.SerializeToString())

def read(path):
    with open(path, "rb") as file:
        return tf1.GraphDef.FromString(file.read())

def function_of(path):
    wrapped = tf1.wrap_function(lambda: tf.import_graph_def(read(path), name=""), [])
    return wrapped.prune(["x:0", "n:0"], "Identity:0")

others = [function_of(path) for path in OTHER_PATHS]
print([float(function(tf.constant(2.0), tf.constant(3))) for function in (call, *others)])
"""


def run(*arguments):
    done = processes.run_python("-c", PROGRAM, *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.thorough
def test_graphs_of_other_processes_have_bodies_of_their_own(tmp_path):
    """Each process makes the functions of the same program, but for one number in the body."""
    one, two = tmp_path / "one.pb", tmp_path / "two.pb"
    assert run(10.0, one) == [80.0]
    assert run(100.0, two, one) == [800.0, 80.0]
    assert run(1000.0, tmp_path / "three.pb", one, two) == [8000.0, 80.0, 800.0]


def graph_of_sum(name):
    """A session's graph, in which `name` is called for the sum of the numbers up to `n`."""
    with tf.Graph().as_default() as graph:
        declared = tfr.Declare(name, [("n", tf.int32)], [("ret", tf.int32)])

        @tfr.Defun(tf.int32, func_name=name, out_names=["ret"])
        def sum_to(n):
            return tf.cond(n < 1, lambda: n, lambda: n + declared(n - 1))

        sum_to(tf.compat.v1.placeholder(tf.int32, [], name="n"))
    return graph.as_graph_def()


def test_calls_of_a_sessions_graph_are_static_in_a_function_that_imports_it():
    graph_def = graph_of_sum("SumTo")
    before = graph_def.SerializeToString(deterministic=True)
    wrapped = tf.compat.v1.wrap_function(lambda: tf.import_graph_def(graph_def, name=""), []).prune("n:0", "SumTo:0")
    calls = tfr.config.outermost_calls()["static"]
    assert int(wrapped(tf.constant(10))) == 55
    assert tfr.config.outermost_calls()["static"] == calls + 1
    assert graph_def.SerializeToString(deterministic=True) == before


def test_import_in_a_tf_function_brings_no_functions_which_the_error_says():
    """`tf.import_graph_def` leaves them in the graph of the tf.function, in stock TensorFlow, too."""
    graph_def = graph_of_sum("SumAway")

    @tf.function
    def imported(n):
        return tf.graph_util.import_graph_def(graph_def, {"n": n}, ["SumAway:0"])[0]

    with pytest.raises(tf.errors.InvalidArgumentError, match="'SumAway' is declared but has no .*wrap_function does"):
        imported(tf.constant(3))
