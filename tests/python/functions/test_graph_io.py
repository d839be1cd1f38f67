"""Graphs with functions, written and read again."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1


def define_sum(name="SumTo"):
    """0 + 1 + ... + n by recursion."""
    f = tfr.Declare(name, [("n", tf.int32)], [("ret", tf.int32)])

    @tfr.Defun(tf.int32, func_name=name, out_names=["ret"])
    def SumTo(n):
        return tf.cond(n < 1, lambda: 0, lambda: n + f(n - 1))

    return SumTo


@pytest.fixture
def graph_def(control_flow):
    """A graph whose `y` is the sum from 0 to `x`."""
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.int32, [], name="x")
        tf.identity(define_sum()(x), name="y")
        return graph.as_graph_def()


def test_imported_graph_runs(run, graph_def):
    (y,) = tf1.import_graph_def(graph_def, return_elements=["y:0"])
    assert run(y, {"import/x:0": 10}) == 55


def test_graph_imported_twice_runs_with_mapped_inputs(run, graph_def):
    (inner,) = tf1.import_graph_def(graph_def, {"x": tf.constant(3)}, ["y:0"], name="a")
    (outer,) = tf1.import_graph_def(graph_def, {"x": inner}, ["y:0"], name="b")
    assert run([inner, outer]) == [6, 21]


def test_imported_function_is_called_by_new_declaration(run, graph_def):
    tf1.import_graph_def(graph_def)
    f = tfr.Declare("SumTo", [("n", tf.int32)], [("ret", tf.int32)])
    g = tfr.Defun(tf.int32, func_name="Twice", out_names=["ret"])(lambda n: 2 * f(n))
    assert run([f(4), g(4)]) == [10, 20]


def test_imported_function_is_called_by_new_declaration_when_named_like_operator(run):
    with tf.Graph().as_default() as graph:
        define_sum("Sum")(1)
        graph_def = graph.as_graph_def()
    tf1.import_graph_def(graph_def)
    assert run(tfr.Declare("Sum", [("n", tf.int32)], [("ret", tf.int32)])(4)) == 10


def test_imported_function_with_captures_takes_them_as_arguments(run):
    with tf.Graph().as_default() as graph:
        a = tf.constant(5)
        tfr.Defun(tf.int32, func_name="AddA", out_names=["ret"])(lambda n: n + a)(1)
        graph_def = graph.as_graph_def()
    tf1.import_graph_def(graph_def)
    f = tfr.Declare("AddA", [("n", tf.int32), ("a", tf.int32)], [("ret", tf.int32)])
    assert run(f(1, 2)) == 3


def test_declaration_of_imported_function_is_error_when_types_differ(graph_def):
    tf1.import_graph_def(graph_def)
    f = tfr.Declare("SumTo", [("n", tf.int64)], [("ret", tf.int32)])
    with pytest.raises(TypeError, match=r"'SumTo' takes \(int64\).*library.*\(int32\)"):
        f(1)


def test_definition_is_error_when_an_imported_function_has_its_name(graph_def):
    tf1.import_graph_def(graph_def)
    with pytest.raises(ValueError, match="'SumTo' is defined twice.*import"):
        define_sum()(1)


def test_meta_graph_round_trip_keeps_functions_and_variables(session_config, control_flow, tmp_path):
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), tf1.Session(config=session_config) as session:
        w = tf1.get_variable("w", initializer=2, use_resource=True)
        f = tfr.Declare("Power", [("n", tf.int32)], [("ret", tf.int32)])

        @tfr.Defun(tf.int32, func_name="Power", out_names=["ret"])
        def Power(n):
            return tf.cond(n < 1, lambda: 1, lambda: w * f(n - 1))

        x = tf1.placeholder(tf.int32, [], name="x")
        tf.identity(Power(x), name="y")
        session.run(w.assign(3))
        tf1.train.Saver().save(session, path)
    with tf.Graph().as_default(), tf1.Session(config=session_config) as session:
        tf1.train.import_meta_graph(path + ".meta").restore(session, path)
        assert session.run("y:0", {"x:0": 4}) == 81


def test_exported_meta_graph_text_is_imported(run, graph_def):
    with tf.Graph().as_default():
        tf1.import_graph_def(graph_def, name="")
        meta = tf1.train.export_meta_graph()
    tf1.train.import_meta_graph(meta)
    assert run("y:0", {"x:0": 3}) == 6


def test_saved_model_round_trip_runs(session_config, tmp_path):
    path = str(tmp_path / "saved")
    with tf.Graph().as_default(), tf1.Session(config=session_config) as session:
        x = tf1.placeholder(tf.int32, [], name="x")
        y = define_sum()(x)
        tf1.saved_model.simple_save(session, path, {"x": x}, {"y": y})
    with tf.Graph().as_default(), tf1.Session(config=session_config) as session:
        signature = tf1.saved_model.load(session, ["serve"], path).signature_def["serving_default"]
        assert session.run(signature.outputs["y"].name, {signature.inputs["x"].name: 4}) == 10


def define_scaled_sum(variables_in_body):
    """w * (0 + 1 + ... + n), by two functions that call each other and use the variable `w`."""
    f, g = (tfr.Declare(name, [("n", tf.int32)], [("ret", tf.int32)]) for name in ("ScaledSum", "Rest"))
    initializer = tf1.constant_initializer(2)
    outer = None if variables_in_body else tf1.get_variable("w", [], tf.int32, initializer)

    @tfr.Defun(tf.int32, func_name="ScaledSum", out_names=["ret"])
    def ScaledSum(n):
        w = tf1.get_variable("w", [], tf.int32, initializer) if outer is None else outer
        return tf.cond(n < 1, lambda: 0, lambda: n * w + g(n - 1))

    @tfr.Defun(tf.int32, func_name="Rest", out_names=["ret"])
    def Rest(n):
        return f(n)

    return ScaledSum


def save_simple(session, path, x, y):
    tf1.saved_model.simple_save(session, path, {"x": x}, {"y": y})


def save_by_builder(session, path, x, y):
    signature = tf1.saved_model.predict_signature_def({"x": x}, {"y": y})
    builder = tf1.saved_model.Builder(path)
    signatures = {"serving_default": signature}
    builder.add_meta_graph_and_variables(session, ["serve"], signatures, strip_default_attrs=True)
    builder.save()


def load_by_loader(session, path):
    signature = tf1.saved_model.load(session, ["serve"], path).signature_def["serving_default"]
    return signature.inputs["x"].name, signature.outputs["y"].name


def save_meta_graph(session, path, x, y):
    tf1.train.Saver().save(session, path)


def load_meta_graph(session, path):
    tf1.train.import_meta_graph(path + ".meta").restore(session, path)
    return "x:0", "y:0"


@pytest.mark.parametrize(
    "save, load",
    [(save_simple, load_by_loader), (save_by_builder, load_by_loader), (save_meta_graph, load_meta_graph)],
)
@pytest.mark.parametrize("variables_in_body", [False, True])
def test_saved_recursive_functions_keep_captured_variables(
    session_config, control_flow, variable_kind, tmp_path, save, load, variables_in_body
):
    path = str(tmp_path / "model")
    with tf.Graph().as_default(), tf1.Session(config=session_config) as session:
        x = tf1.placeholder(tf.int32, [], name="x")
        y = tf.identity(define_scaled_sum(variables_in_body)(x), name="y")
        (w,) = tf1.global_variables()
        session.run(tf1.assign(w, 5))
        assert session.run(y, {x: 4}) == 50
        save(session, path, x, y)
    with tf.Graph().as_default(), tf1.Session(config=session_config) as session:
        x, y = load(session, path)
        assert session.run(y, {x: 4}) == 50
        (w,) = tf1.global_variables()
        session.run(tf1.assign(w, 1))
        assert session.run(y, {x: 4}) == 10


def test_graph_def_with_shapes_can_be_written(fib):
    fib(3)
    assert tf1.get_default_graph().as_graph_def(add_shapes=True).library.function


def test_extract_sub_graph_and_import_runs(run, graph_def):
    part = tf1.graph_util.extract_sub_graph(graph_def, ["y"])
    part.library.CopyFrom(graph_def.library)
    (y,) = tf1.import_graph_def(part, return_elements=["y:0"])
    assert run(y, {"import/x:0": 4}) == 10


@pytest.mark.parametrize("is_imported", [False, True])
def test_gradient_of_a_function_without_python_code_says_what_to_do(is_imported):
    with tf.Graph().as_default() as graph:
        tfr.Defun(tf.float32, func_name="Square", out_names=["ret"])(lambda x: x * x)(3.0)
        graph_def = graph.as_graph_def()
    if is_imported:
        tf1.import_graph_def(graph_def)
    x = tf.constant(3.0)
    y = tfr.Declare("Square", [("x", tf.float32)], [("ret", tf.float32)])(x)
    with pytest.raises(LookupError, match="'Square' cannot be differentiated: .*; define it, .* before .* exported"):
        tf.gradients(y, x)


def define_power():
    f = tfr.Declare("Power", [("n", tf.int32), ("x", tf.float32)], [("ret", tf.float32)])
    define = tfr.Defun(tf.int32, tf.float32, func_name="Power", out_names=["ret"])
    return define(lambda n, x: tf.cond(n < 1, lambda: 1.0, lambda: x * f(n - 1, x)))


def test_gradient_that_was_exported_runs_where_it_is_imported(run):
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [], name="x")
        tf.identity(tf.gradients(define_power()(3, x), x)[0], name="gradient")
        graph_def = graph.as_graph_def()
    tf1.import_graph_def(graph_def, name="")
    assert run("gradient:0", {"x:0": 2.0}) == 12


@pytest.mark.thorough
def test_higher_orders_that_were_exported_with_shapes_run_where_they_are_imported(run):
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [], name="x")
        derivative = define_power()(4, x)
        for order in (1, 2, 3):
            (derivative,) = tf.gradients(derivative, x)
            tf.identity(derivative, name=f"order_{order}")
        graph_def = graph.as_graph_def(add_shapes=True)  # as a SavedModel's and a MetaGraph's is
    tf1.import_graph_def(graph_def, name="")
    assert run([f"order_{order}:0" for order in (1, 2, 3)], {"x:0": 2.0}) == [32, 48, 48]
