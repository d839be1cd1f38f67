"""Static execution by kernels, seen from outside: gradients, profiles, several devices, a program in C."""
# SPDX-License-Identifier: Apache-2.0

import glob
import os
import pathlib
import re
import subprocess
import warnings

import numpy as np
import processes
import pytest
import tensorflow as tf
from limits import HANG_SECONDS
from tensorflow.python.saved_model import loader_impl

import tensorflow_recursion as tfr
from tensorflow_recursion import _loader

pytestmark = pytest.mark.usefixtures("static_or_error")

tf1 = tf.compat.v1

LIBRARY = pathlib.Path(tfr.__file__).with_name(_loader.LIBRARY)


def define_product(weight):
    """sin(weight * x) to the power of n, by recursion."""
    declared = tfr.Declare("Product", [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])

    @tfr.Defun(tf.float32, tf.int32, func_name="Product", out_names=["y"])
    def Product(x, n):
        return tf.cond(n < 1, lambda: tf.ones_like(x), lambda: tf.sin(x * weight) * declared(x, n - 1))

    return Product


def unrolled(x, n, weight):
    y = tf.ones_like(x)
    for _ in range(n):
        y = tf.sin(x * weight) * y
    return y


def count_dynamic(call):
    """What a call returns, and how many calls ran dynamically in it."""
    before = tfr.config.outermost_calls()["dynamic"]
    result = call()
    return result, tfr.config.outermost_calls()["dynamic"] - before


# --- Gradients: the record goes from one program to another ---------------------------------------------------------


def differentiate_in_function(x, n, weight):
    @tf.function
    def both(x):
        y = define_product(weight)(x, n)
        (first,) = tf.gradients(y, [x])
        return y, first, tf.gradients(first, [x])[0]

    return both(x)


def differentiate_in_dataset(x, n, weight):
    def both(x):
        y = define_product(weight)(x, n)
        (first,) = tf.gradients(y, [x])
        return y, first, tf.gradients(first, [x])[0]

    return next(iter(tf.data.Dataset.from_tensors(x).map(both)))


def differentiate_in_branch(x, n, weight):
    @tf.function
    def both(x, go):
        product = define_product(weight)
        y = tf.cond(go, lambda: product(x, n), lambda: x)
        (first,) = tf.gradients(y, [x])
        return y, first, tf.gradients(first, [x])[0]

    return both(x, tf.constant(True))


@pytest.mark.parametrize(
    "differentiate", [differentiate_in_function, differentiate_in_dataset, differentiate_in_branch]
)
def test_gradients_of_first_and_second_order_are_static(differentiate):
    weight = tf.constant(1.5)
    x = tf.constant([1.0, 2.0])

    @tf.function
    def expected(x):
        y = unrolled(x, 4, weight)
        (first,) = tf.gradients(y, [x])
        return y, first, tf.gradients(first, [x])[0]

    results, dynamic = count_dynamic(lambda: differentiate(x, 4, weight))
    for result, wanted in zip(results, expected(x), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-4)
    assert dynamic == 0


def test_record_serves_a_function_that_recalls_less_than_was_retained():
    """The gradient for the weight alone does not read what that for x needs."""
    weight = tf.Variable(1.5)

    @tf.function
    def gradients(x):
        y = define_product(weight)(x, 3)
        return tf.gradients(y, [weight.handle])[0], tf.gradients(y, [x])[0]

    @tf.function
    def expected(x):
        y = unrolled(x, 3, weight)
        return tf.gradients(y, [weight.handle])[0], tf.gradients(y, [x])[0]

    x = tf.constant([1.0, 2.0])
    results, dynamic = count_dynamic(lambda: gradients(x))
    for result, wanted in zip(results, expected(x), strict=True):
        np.testing.assert_allclose(result, wanted, rtol=1e-4)
    assert dynamic == 0


def test_gradient_is_right_when_the_switch_is_turned_between_forward_and_backward():
    """A static forward call and a dynamic backward call agree on what a record holds."""
    x = tf.constant([1.0, 2.0])
    product = define_product(tf.constant(1.5))
    call = tf.function(lambda x: product(x, 3))
    with tf.GradientTape() as tape:
        tape.watch(x)
        wanted = unrolled(x, 3, 1.5)
    wanted = tape.gradient(wanted, x)
    for forward, backward in ((True, False), (False, True)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            with tfr.config.static_execution(forward):
                y = call(x)
        with tfr.config.static_execution(backward):
            np.testing.assert_allclose(tape.gradient(y, x), wanted, rtol=1e-4)


# --- Profiles -------------------------------------------------------------------------------------------------------


def test_profile_shows_operators_of_the_body(tmp_path):
    declared = tfr.Declare("Shown", [("x", tf.float64)], [("y", tf.float64)])

    @tfr.Defun(tf.float64, func_name="Shown", out_names=["y"])
    def Shown(x):
        return tf.cond(x < 1, lambda: tf.sin(x, name="remarkable"), lambda: declared(x - 1))

    call = tf.function(lambda x: Shown(x))
    call(tf.constant(3.0, tf.float64))
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=3)
    tf.profiler.experimental.start(str(tmp_path), options)
    call(tf.constant(3.0, tf.float64))
    tf.profiler.experimental.stop()
    (profile,) = glob.glob(str(tmp_path / "**" / "*.xplane.pb"), recursive=True)
    assert b"remarkable" in pathlib.Path(profile).read_bytes()


# --- Several devices ------------------------------------------------------------------------------------------------

TWO_CPUS = """
import tensorflow as tf, tensorflow_recursion as tfr
(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
tfr.config.set_options(on_fallback="error")
"""

PINNED = """
fib = tfr.Declare("Fib", [("n", tf.int32)], [("r", tf.int32)])
@tfr.Defun(tf.int32, func_name="Fib", out_names=["r"])
def Fib(n):
    with tf.device("CPU:1"):
        m = n - 1
    return tf.cond(n < 2, lambda: n, lambda: fib(m) + fib(n - 2))

call = tf.function(lambda n: Fib(n) * 1000 + Fib(n + 1))
dataset = tf.data.Dataset.range(6).map(lambda n: Fib(tf.cast(n, tf.int32)), num_parallel_calls=4)
print(int(call(tf.constant(10))), int(call(tf.constant(11))), [int(n) for n in dataset])
print(tfr.config.outermost_calls())
"""

PINNED_ERRORS = """
f = tfr.Declare("SumTo", [("n", tf.int64)], [("r", tf.int64)])
@tfr.Defun(tf.int64, func_name="SumTo", out_names=["r"])
def SumTo(n):
    with tf.device("CPU:1"):
        m = n - 1
    return tf.cond(n < 1, lambda: tf.math.floordiv(n, n, name="culprit"), lambda: f(m) + n)

for max_depth in (100, 10):
    tfr.config.set_options(max_depth=max_depth)
    try:
        tf.function(lambda n: SumTo(n))(tf.constant(20, tf.int64))
    except tf.errors.OpError as error:
        print(type(error).__name__, error.message.replace("\\n", " "))
"""

PINNED_GRADIENTS = """
with tf.device("CPU:1"):
    weight = tf.Variable(1.5)
f = tfr.Declare("Product", [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])
@tfr.Defun(tf.float32, tf.int32, func_name="Product", out_names=["y"])
def Product(x, n):
    with tf.device("CPU:1"):
        a = x * weight
    with tf.device("CPU:0"):
        b = tf.sin(a)
    return tf.cond(n < 1, lambda: tf.ones_like(x), lambda: b * f(x, n - 1))

x = tf.constant([1.0, 2.0])
for compute in (tf.function(lambda x: Product(x, 3)), lambda x: tf.sin(x * weight) ** 3):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = compute(x)
    print([f"{value:.4f}" for part in (y, *tape.gradient(y, [x, weight])) for value in tf.reshape(part, [-1]).numpy()])
print(tfr.config.outermost_calls())
"""

MIRRORED = """
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
f = tfr.Declare("Power", [("x", tf.float32), ("w", tf.float32), ("n", tf.int32)], [("y", tf.float32)])
@tfr.Defun(tf.float32, tf.float32, tf.int32, func_name="Power", out_names=["y"])
def Power(x, w, n):
    return tf.cond(n < 1, lambda: x, lambda: w * f(x, w, n - 1))

with strategy.scope():
    weight = tf.Variable(1.5)

@tf.function
def step(n):
    return strategy.experimental_local_results(strategy.run(lambda: Power(1.0, weight, n)))

print([float(y) for y in step(tf.constant(3))], tfr.config.outermost_calls())
"""

# A body of Defun would read the first replica's variable, wherever it is defined; tfr.recursive traces one for each.
MIRRORED_IN_BODIES = """
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    weight = tf.Variable(1.5)

f = tfr.Declare("Power", [("n", tf.int32)], [("y", tf.float32)])
@tfr.Defun(tf.int32, func_name="Power", out_names=["y"])
def Power(n):
    return tf.cond(n < 1, lambda: 1.0, lambda: weight * f(n - 1))

@tfr.recursive
def power(n):
    return tf.cond(n < 1, lambda: 1.0, lambda: weight * power(n - 1))

times_weight = tf.function(lambda x: weight * x)
times = tf.function(lambda x, w: w * x)
times_first = times_weight.get_concrete_function(tf.TensorSpec([]))

@tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32)])
def with_functions(n):
    return tf.cond(n < 2, lambda: weight * 1.0, lambda: times_weight(times(with_functions(n - 2), weight)))

@tfr.recursive
def with_concrete(n):
    return tf.cond(n < 1, lambda: 1.0, lambda: times_first(with_concrete(n - 1)))

def step(function):
    with tf.GradientTape() as tape:
        y = function(tf.constant(3))
    return tape.gradient(y, weight)

def defined_in_replica():
    @tfr.Defun(tf.int32)
    def of_replica(n):
        return weight * tf.cast(n, tf.float32)

    return step(of_replica)

print([float(dw) for dw in strategy.experimental_local_results(strategy.run(tf.function(lambda: step(power))))])
print(float(step(Power)))
for value, of_replica in enumerate(weight.values):
    of_replica.assign(value + 1.0)
for run in (lambda: step(with_functions), tf.function(lambda: step(with_functions))):
    print([float(dw) for dw in strategy.experimental_local_results(strategy.run(run))])
for run in (lambda: step(Power), tf.function(lambda: step(Power)), defined_in_replica, lambda: step(with_concrete)):
    try:
        strategy.run(run)
    except ValueError as error:
        print(error)
"""

VARIABLES_ON_TWO_DEVICES = """
with tf.device("CPU:0"):
    a = tf.Variable(2.0)
with tf.device("CPU:1"):
    b = tf.Variable(3.0)

@tfr.recursive
def product(n):
    return tf.cond(n < 1, lambda: a * 1.0, lambda: b * product(n - 1))

@tfr.recursive
def given(n, b):
    return tf.cond(n < 1, lambda: a * 1.0, lambda: b * given(n - 1, b))

for call in (product, tf.function(lambda n: product(n))):
    try:
        call(tf.constant(3))
    except tf.errors.InvalidArgumentError as error:
        print(" ".join(error.message.split()))
print(float(given(tf.constant(3), b.read_value())))
"""


def run_program(program):
    done = processes.run_python("-c", TWO_CPUS + program)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_body_on_two_devices_is_static():
    numbers, calls = run_program(PINNED)
    assert numbers == "55089 89144 [0, 1, 1, 2, 3, 5]"
    assert "'dynamic': 0" in calls


@pytest.mark.thorough
def test_errors_of_a_body_on_two_devices_have_call_path_and_remedy():
    division, depth = run_program(PINNED_ERRORS)
    assert division.startswith("InvalidArgumentError") and "culprit" in division
    assert "in call SumTo > SumTo > SumTo > (15 more) > SumTo" in division
    assert depth.startswith("ResourceExhaustedError") and "at depth 11, the limit is 10" in depth
    assert "tfr.config.set_options(max_depth=...)" in depth


@pytest.mark.thorough
def test_gradients_of_a_body_on_two_devices_are_static():
    recursive, unrolled_, calls = run_program(PINNED_GRADIENTS)
    assert recursive == unrolled_
    assert calls == "{'static': 2, 'dynamic': 0}"


@pytest.mark.thorough
def test_replicas_of_a_mirrored_strategy_are_static():
    (line,) = run_program(MIRRORED)
    assert line == "[3.375, 3.375] {'static': 2, 'dynamic': 0}"


@pytest.mark.thorough
def test_variables_of_replicas_in_bodies():
    by_replica, outside, eager, in_function, *errors = run_program(MIRRORED_IN_BODIES)
    assert by_replica == "[6.75, 6.75]"
    assert outside == "6.75"
    assert eager == in_function == "[3.0, 12.0]"
    found = "\n".join(errors)
    assert found.count("Call of 'Power': its body reads a variable of which each replica") == 2
    assert found.count("Call of 'of_replica__2': its body reads a variable of which each replica") == 1
    assert found.count("belongs to no replica, wherever it is defined, and would read the first one's here") == 3
    assert found.count("define the function by tfr.recursive") == 3
    assert found.count("Call of 'with_concrete': its body reads a variable of which each replica") == 1
    assert found.count("made for another replica than this one, a concrete function for example; let the body") == 1


@pytest.mark.thorough
def test_body_that_reads_variables_of_two_devices_is_an_error_with_remedy():
    *errors, passed = run_program(VARIABLES_ON_TWO_DEVICES)
    assert passed == "54.0"
    assert len(errors) == 2
    for error in errors:
        assert "reads variables of several devices" in error and "pass what was read as arguments" in error


# --- C --------------------------------------------------------------------------------------------------------------


def save_sum(folder):
    """A SavedModel that sums up the numbers up to n, deeper than dynamic calls may nest."""
    with tf.Graph().as_default(), tf1.Session() as session:
        declared = tfr.Declare("SumTo", [("n", tf.int64)], [("ret", tf.int64)])

        @tfr.Defun(tf.int64, func_name="SumTo", out_names=["ret"])
        def SumTo(n):
            return tf.cond(n < 1, lambda: n, lambda: n + declared(n - 1))

        n = tf1.placeholder(tf.int64, [], name="n")
        total = SumTo(n)
        total.op._set_attr("_recursion_static", tf1.AttrValue(b=True))
        tf1.saved_model.simple_save(session, folder, {"n": n}, {"total": tf.identity(total, name="total")})


def compile_c(*arguments, code=None):
    subprocess.run(["cc", *map(str, arguments)], input=code, text=True, check=True, timeout=HANG_SECONDS)


@pytest.fixture(scope="module")
def run_model(tmp_path_factory):
    """The program of run_model.c, linked with libraries that have TensorFlow's names and the functions that it calls.

    It runs with TensorFlow's own. To link with those takes the linker seconds, in which it reads all of their symbols.
    """
    folder = tmp_path_factory.mktemp("run_model")
    program, source = folder / "run_model", pathlib.Path(__file__).with_name("run_model.c")
    called = sorted(set(re.findall(r"\bTF_\w+(?=\()", source.read_text())))
    libraries = ["libtensorflow_cc.so.2", "libtensorflow_framework.so.2"]
    for name in libraries:
        code = "".join(f"void {function}(void) {{}}\n" for function in called)
        compile_c("-shared", "-x", "c", "-", "-o", folder / name, f"-Wl,-soname,{name}", code=code)
    compile_c(
        *(source, "-o", program, f"-I{tf.sysconfig.get_include()}"),
        *(f"-L{folder}", "-Wl,--no-as-needed", *(f"-l:{name}" for name in libraries)),
        f"-Wl,-rpath,{tf.sysconfig.get_lib()}",
    )
    return program


@pytest.mark.thorough
def test_saved_model_is_static_in_a_program_in_c(tmp_path, run_model):
    folder = str(tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save_sum(folder)

    def run(number, **environment):
        return subprocess.run(
            [str(run_model), str(LIBRARY), folder, "n", "total", str(number)],
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", **environment},
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
        ).stdout

    assert run(1_000_000) == "500000500000\n"
    assert run(1_000, TENSORFLOW_RECURSION_STATIC="0") == "500500\n"
    assert "reached depth" in run(1_000_000, TENSORFLOW_RECURSION_STATIC="0")


@pytest.mark.thorough
def test_saved_model_of_tensorflow_2_is_static_in_a_program_in_c(tmp_path, run_model):
    """The function reads a variable, which the model restores before it runs."""
    module, number = tf.Module(), tf.TensorSpec([], tf.int64)
    module.step = tf.Variable(2, dtype=tf.int64)

    @tfr.recursive(input_signature=[number], output_signature=number)
    def total(n):
        return tf.cond(n < 1, lambda: n, lambda: n * module.step + total(n - 1))

    module.call = tf.function(lambda n: total(n), input_signature=[tf.TensorSpec([], tf.int64, name="n")])
    tf.saved_model.save(module, str(tmp_path), signatures=module.call)
    signature = loader_impl.parse_saved_model(str(tmp_path)).meta_graphs[0].signature_def["serving_default"]
    names = [signature.inputs["n"].name, next(iter(signature.outputs.values())).name]
    done = subprocess.run(
        [str(run_model), str(LIBRARY), str(tmp_path), *(name.split(":")[0] for name in names), "1000000"],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert done.stdout == "1000001000000\n"
