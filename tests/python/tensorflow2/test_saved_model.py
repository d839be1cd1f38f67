"""SavedModels with recursive functions: saved here, loaded in a fresh process, run, differentiated, saved again."""
# SPDX-License-Identifier: Apache-2.0

import pathlib

import numpy as np
import processes
import pytest
import tensorflow as tf
from gradient_helpers import nested_derivative
from saved_models import LOAD, X, in_fresh_process
from tensorflow.python.eager import context
from tensorflow.python.saved_model import loader_impl

import tensorflow_recursion as tfr
from tensorflow_recursion import names

tf1 = tf.compat.v1

ROOT = pathlib.Path(__file__).resolve().parents[3]
N, V = 5, 1.5


class Power(tf.Module):
    """v x^n by two functions that call each other."""

    def __init__(self):
        super().__init__()
        self.v = tf.Variable(V)
        module = self
        number, count = tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)

        @tfr.recursive(input_signature=[number, count], output_signature=number)
        def power(x, n):
            return tf.cond(n < 1, lambda: module.v * 1.0, lambda: x * other(x, n - 1))

        @tfr.recursive(input_signature=[number, count], output_signature=number)
        def other(x, n):
            return tf.cond(n < 1, lambda: module.v * 1.0, lambda: power(x, n - 1) * x)

        @tf.function(input_signature=[number, count])
        def call(x, n):
            return power(x, n)

        @tf.function(input_signature=[number])
        def slope(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = power(x, 3)
            return tape.gradient(y, x)

        self.call, self.slope = call, slope


@pytest.fixture
def saved(tmp_path):
    directory = tmp_path / "model"
    module = Power()
    tf.saved_model.save(module, str(directory), signatures=module.call)
    return directory


RUN = """
with tf.GradientTape(persistent=True) as outer:
    outer.watch(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = module.call(x, tf.constant(5))
    dx, dv = tape.gradient(y, [x, module.v])
found = [y, dx, dv, outer.gradient(dx, x), module.slope(x), module.signatures["serving_default"](x=x, n=tf.constant(2))]
print(json.dumps([float(next(iter(value.values())) if isinstance(value, dict) else value) for value in found]))
"""
# y, by x, by v, twice by x, the slope of v x^3, v x^2
EXPECTED = [V * X**N, V * N * X ** (N - 1), X**N, V * N * (N - 1) * X ** (N - 2), V * 3 * X**2, V * X**2]


@pytest.mark.thorough
def test_loaded_module_runs_and_has_gradients(saved):
    assert in_fresh_process(LOAD + RUN, saved) == EXPECTED


@pytest.mark.full_matrix
def test_loaded_gradient_is_differentiated(saved):
    """A gradient that was saved, 3 v x^2, has derivatives like that of the function: they were silently 0."""
    program = """
with tf.GradientTape(persistent=True) as outer:
    outer.watch(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        slope = module.slope(x)
    second = tape.gradient(slope, x)
    # By then the variable is another one, which neither the calls before nor their derivatives read again.
    module.v.assign(100.0)
print(json.dumps([float(one) for one in (slope, second, outer.gradient(slope, module.v), outer.gradient(second, x))]))
"""
    assert in_fresh_process(LOAD + program, saved) == [3 * V * X**2, 6 * V * X, 3 * X**2, 6 * V]


@pytest.mark.full_matrix
def test_loaded_second_derivative_is_differentiated(tmp_path):
    module = tf.Module()
    module.v = tf.Variable(V)

    @tfr.recursive
    def power(x, n):
        return module.v * 1.0 if n < 1 else x * power(x, n - 1)

    def call(x):
        return power(x, tf.constant(N))

    module.second = tf.function(lambda x: nested_derivative(call, x, 2), autograph=False)
    x = tf.constant(X)
    module.second(x)
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    with tf.GradientTape() as tape:
        tape.watch(x)
        second = loaded.second(x)
    found = tape.gradient(second, [x, loaded.v])
    np.testing.assert_allclose(found, [N * (N - 1) * (N - 2) * V * X ** (N - 3), second / V], rtol=1e-5)


@pytest.mark.thorough
def test_module_loaded_twice_beside_one_like_it_is_each_its_own(saved):
    """Names of functions in files are those of another process, which may be names here too."""
    module = Power()
    loaded = [tf.saved_model.load(str(saved)) for _ in range(2)]
    loaded[0].v.assign(3.0)
    module.v.assign(4.0)
    x, n = tf.constant(X), tf.constant(N)
    assert [each.call(x, n).numpy() for each in (*loaded, module)] == [3.0 * X**N, V * X**N, 4.0 * X**N]


@pytest.mark.thorough
def test_loaded_module_is_trained_further(saved):
    train = """
optimizer = tf.keras.optimizers.SGD(0.0001)
losses = []
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = (module.call(x, tf.constant(5)) - 64.0) ** 2
    optimizer.apply_gradients([(tape.gradient(loss, module.v), module.v)])
    losses.append(float(loss))
print(json.dumps(losses))
"""
    losses = in_fresh_process(LOAD + train, saved)
    v, expected = V, []
    for _ in range(3):
        error = v * X**N - 64.0
        expected.append(error**2)
        v -= 0.0001 * 2 * error * X**N
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


@pytest.mark.full_matrix
def test_loaded_module_is_saved_again(saved, tmp_path):
    save = """
tf.saved_model.save(module, sys.argv[2], signatures=module.call)
print("[]")
"""
    again = tmp_path / "again"
    in_fresh_process(LOAD + save, saved, again)
    assert in_fresh_process(LOAD + RUN, again) == EXPECTED


@pytest.mark.thorough
def test_loaded_function_is_called_in_others(saved):
    program = """
@tf.function
def doubled(x, n):
    return 2.0 * module.call(x, n)
values = list(tf.data.Dataset.range(4).map(lambda n: doubled(x, tf.cast(n, tf.int32))).as_numpy_iterator())
with tf.GradientTape() as tape:
    y = doubled(x, tf.constant(5))
print(json.dumps([*map(float, values), float(tape.gradient(y, module.v))]))
"""
    assert in_fresh_process(LOAD + program, saved) == [2 * V * X**n for n in range(4)] + [2 * X**N]


@pytest.mark.thorough
def test_tf1_loader(saved):
    program = """
import json, sys
import tensorflow as tf
import tensorflow_recursion
tf1 = tf.compat.v1
tf1.disable_eager_execution()
with tf1.Session() as session:
    meta = tf1.saved_model.load(session, ["serve"], sys.argv[1])
    signature = meta.signature_def["serving_default"]
    feeds = {signature.inputs["x"].name: 2.0, signature.inputs["n"].name: 5}
    print(json.dumps(float(session.run(next(iter(signature.outputs.values())).name, feeds))))
"""
    assert in_fresh_process(program, saved) == V * X**N


COMMAND_LINE = "from tensorflow.python.tools.saved_model_cli import main; main()"
SIGNATURE_NAME = "serving_default"
SERVED = ["--tag_set", "serve", "--signature_def", SIGNATURE_NAME]


@pytest.mark.thorough
def test_command_line_of_saved_models_runs_one_once_the_package_is_imported(saved):
    program = f"import tensorflow_recursion; {COMMAND_LINE}"
    done = processes.run_python("-c", program, "run", "--dir", saved, *SERVED, "--input_exprs", "x=2.0;n=5")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-1] == str(V * 2.0**5)


def test_checkpoint_restores_what_bodies_capture(tmp_path):
    module = Power()
    module.v.assign(7.0)
    path = tf.train.Checkpoint(module=module).save(str(tmp_path / "checkpoint"))
    other = Power()
    tf.train.Checkpoint(module=other).restore(path).assert_consumed()
    assert other.call(tf.constant(X), tf.constant(N)).numpy() == 7.0 * X**N


WHAT_TO_DO = "mport_tensorflow_recursion"  # names of operators begin with a capital letter
HINT = "import_tensorflow_recursion_before_loading"
SIGNATURE = [tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)]


@tfr.recursive(input_signature=SIGNATURE)
def power(x, n):
    if n < 1:
        return 1.0
    return x * power(x, n - 1)


def twice(x, n):
    return 2.0 * x + 0.0 * tf.cast(n, tf.float32)


def power_in_branch(x, n):
    return tf.cond(n > 0, lambda: power(x, n), lambda: x)


def powers_in_dataset(x, n):
    return tf.data.Dataset.range(3).map(lambda _: power(x, n)).reduce(0.0, lambda a, b: a + b)


# With calls in every place from where TensorFlow finds functions; `once` is in no cycle, and would be loaded in part.
FUNCTIONS = {
    "call": power,
    "branch": power_in_branch,
    "dataset": powers_in_dataset,
    "once": lambda x, n: tfr.recursive(twice)(x, n),
}
MODELS = (*FUNCTIONS, "session")


def save_session(folder):
    with tf.Graph().as_default(), tf1.Session() as session:
        x, n = (tf1.placeholder(spec.dtype, spec.shape, name) for spec, name in zip(SIGNATURE, "xn", strict=True))
        tf1.saved_model.simple_save(session, folder, {"x": x, "n": n}, {"y": power(x, n)})


def save_functions(folder, served, *others):
    """Saves `served` as what is served, and `others` beside it."""
    module = tf.Module()
    module.served, *module.others = (tf.function(one, input_signature=SIGNATURE) for one in (served, *others))
    tf.saved_model.save(module, folder, signatures=module.served)


@pytest.fixture(scope="module")
def folder_of_models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with context.eager_mode():
        for name, function in FUNCTIONS.items():
            save_functions(str(folder / name), function)
        save_functions(str(folder / "without"), twice, power)
    save_session(str(folder / "session"))
    return folder


WITHOUT_IMPORT = """
import json, sys
import tensorflow as tf
tf1 = tf.compat.v1

def load_in_session(folder):
    with tf.Graph().as_default(), tf1.Session() as session:
        signature = tf1.saved_model.load(session, ["serve"], folder).signature_def["serving_default"]
        feeds = {signature.inputs["x"].name: 3.0, signature.inputs["n"].name: 4}
        return str(session.run(next(iter(signature.outputs.values())).name, feeds))

def error_of(load, folder):
    try:
        return load(folder)
    except (ValueError, tf.errors.NotFoundError) as error:
        return str(error)

load = {"tf": tf.saved_model.load, "tf1": load_in_session}[sys.argv[1]]
print(json.dumps([error_of(load, folder) for folder in sys.argv[2:]]))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("loader", ["tf", "tf1"])
def test_loading_without_the_package_names_what_to_import(loader, folder_of_models):
    folders = [str(folder_of_models / model) for model in MODELS]
    errors = in_fresh_process(WITHOUT_IMPORT, loader, *folders)
    assert [model for model, error in zip(MODELS, errors, strict=True) if WHAT_TO_DO not in error] == []


@pytest.mark.thorough
def test_model_that_serves_no_call_is_loaded_by_tf1_without_the_package(folder_of_models):
    assert in_fresh_process(WITHOUT_IMPORT, "tf1", folder_of_models / "without") == ["6.0"]


@pytest.mark.thorough
def test_command_line_without_the_package_names_what_to_import(folder_of_models):
    words = ["--dir", folder_of_models / "call", *SERVED, "--input_exprs", "x=2.0;n=5"]
    done = processes.run_python("-c", COMMAND_LINE, "run", *words)
    assert f"Op type not registered '{names.IMPORT}'" in done.stdout + done.stderr
    assert done.returncode != 0


@pytest.mark.thorough
@pytest.mark.parametrize("model", MODELS)
def test_model_of_which_a_session_is_saved_again_says_what_to_import_once(model, folder_of_models, tmp_path):
    folder = str(tmp_path / "again")
    with tf.Graph().as_default(), tf1.Session(config=tfr.session_config()) as session:
        tf1.placeholder(tf.float32, [], name="before")
        served = tf1.saved_model.load(session, ["serve"], str(folder_of_models / model)).signature_def[SIGNATURE_NAME]
        builder = tf1.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(session, ["serve"], {SIGNATURE_NAME: served})
        builder.save()
    graph = loader_impl.parse_saved_model(folder).meta_graphs[0].graph_def
    assert [i for i, node in enumerate(graph.node) if node.op == names.IMPORT] == [0]
    assert len([one for one in graph.library.function if one.signature.name == HINT]) == 1
    expected = {"dataset": 24.0, "once": 4.0}.get(model, 8.0)
    assert_serves(folder, expected)
    assert_serves(str(folder_of_models / model), expected)


@pytest.mark.thorough
def test_node_that_says_what_to_import_takes_a_free_name(tmp_path):
    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), tf1.Session(config=tfr.session_config()) as session:
        x = tf1.placeholder(tf.float32, [], name=HINT)
        n = tf1.placeholder(tf.int32, [])
        tf1.saved_model.simple_save(session, folder, {"x": x, "n": n}, {"y": power(x, n)})
    with tf.Graph().as_default(), tf1.Session(config=tfr.session_config()) as session:
        served = tf1.saved_model.load(session, ["serve"], folder).signature_def[SIGNATURE_NAME]
        feeds = {served.inputs["x"].name: 2.0, served.inputs["n"].name: 3}
        assert session.run(served.outputs["y"].name, feeds) == 8.0


def assert_serves(folder, expected):
    """Whether a model gives what is expected for x = 2, n = 3, in a session and as functions."""
    with tf.Graph().as_default(), tf1.Session(config=tfr.session_config()) as session:
        signature = tf1.saved_model.load(session, ["serve"], folder).signature_def[SIGNATURE_NAME]
        feeds = {signature.inputs["x"].name: 2.0, signature.inputs["n"].name: 3}
        assert session.run(next(iter(signature.outputs.values())).name, feeds) == expected
    call = tf.saved_model.load(folder).signatures[SIGNATURE_NAME]
    (found,) = call(x=tf.constant(2.0), n=tf.constant(3)).values()
    assert found.numpy() == expected


class Rows(tf.Module):
    """Multiplies x by the sums of the rows n mod 2 of a table, for n, n - 1, ... 1."""

    def __init__(self):
        super().__init__()
        self.table = tf.Variable([[1.0, 2.0], [3.0, 4.0]])

    @tfr.recursive
    def product(self, x, n):
        if n < 1:
            return x
        return self.product(x * tf.reduce_sum(tf.gather_nd(self.table, tf.reshape(n % 2, [1, 1]))), n - 1)

    @tf.function(input_signature=[tf.TensorSpec([]), tf.TensorSpec([], tf.int32)])
    def call(self, x, n):
        return self.product(x, n)


def test_loaded_module_that_gathers_in_a_branch_has_gradients(tmp_path):
    tf.saved_model.save(Rows(), str(tmp_path))
    module = tf.saved_model.load(str(tmp_path))
    x = tf.constant(1.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = module.call(x, tf.constant(3))
    assert float(y) == 220.5
    of_x, of_table = tape.gradient(y, [x, module.table])
    assert float(of_x) == 147.0
    np.testing.assert_allclose(tf.convert_to_tensor(of_table), [[73.5, 73.5], [63.0, 63.0]])


@pytest.mark.thorough
def test_module_whose_bodies_differentiate_functions_of_numbers_is_saved(tmp_path):
    """What the innermost function captures is learned after the pairs of those around it were made."""
    module = tf.Module()
    module.w = tf.Variable([[0.5, 0.25], [0.25, 0.5]])

    @tfr.recursive
    def layers(x, n):
        return x if n < 1 else tf.sin(layers(x, n - 1) @ module.w)

    @tfr.recursive
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layers(x, 2)
        return tape.gradient(y, x)

    module.call = tf.function(lambda x: slope(x), input_signature=[tf.TensorSpec([1, 2])])
    x = tf.constant([[0.5, 1.0]])
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_allclose(loaded.call(x), module.call(x), rtol=1e-6)


@pytest.mark.thorough
def test_model_of_a_session_is_loaded_as_functions(tmp_path):
    tf1 = tf.compat.v1
    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), tf1.Session(config=tfr.session_config()) as session:
        declared = tfr.Declare("Power", [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])
        v = tf1.get_variable("v", initializer=V, use_resource=True)

        @tfr.Defun(tf.float32, tf.int32, func_name="Power", out_names=["y"])
        def power(x, n):
            return tf.cond(n < 1, lambda: v * 1.0, lambda: x * declared(x, n - 1))

        x, n = tf1.placeholder(tf.float32, [], name="x"), tf1.placeholder(tf.int32, [], name="n")
        y = tf.cond(n > 0, lambda: power(x, n), lambda: power(x, 1))
        session.run(tf1.global_variables_initializer())
        outputs = {"y": y, "dx": tf.gradients(power(x, n), x)[0]}
        tf1.saved_model.simple_save(session, folder, {"x": x, "n": n}, outputs)
    program = """
call = module.signatures["serving_default"]
with tf.GradientTape() as tape:
    tape.watch(x)
    found = call(x=x, n=tf.constant(5))
dy = tape.gradient(found["y"], x)
print(json.dumps([float(found["y"]), float(found["dx"]), float(dy), tensorflow_recursion.config.outermost_calls()]))
"""
    *found, calls = in_fresh_process(LOAD + program, folder)
    assert found == [V * X**N, V * N * X ** (N - 1), V * N * X ** (N - 1)]
    assert calls["static"] > 0 and calls["dynamic"] == 0
