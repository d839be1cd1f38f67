"""Mistakes of users: each is an error that names the function, what was expected and what was given."""
# SPDX-License-Identifier: Apache-2.0

import json
import re

import numpy as np
import processes
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion import debugging

tf1 = tf.compat.v1


def declare(name="F", inputs=(("n", tf.int32),), outputs=(("ret", tf.int32),), **kwargs):
    return tfr.Declare(name, list(inputs), list(outputs), **kwargs)


def define(name="F", types=(tf.int32,), func=lambda n: n, **kwargs):
    return tfr.Defun(*types, func_name=name, **kwargs)(func)


def contains(*parts):
    """A pattern for a message that holds all parts, in order."""
    return "(?s)" + ".*".join(re.escape(part) for part in parts)


# --- Calls --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("through", [declare, define])
@pytest.mark.parametrize("args", [(), (1, 2)])
def test_call_is_error_when_number_of_arguments_is_wrong(through, args):
    with pytest.raises(TypeError, match=contains("'F'", f"got {len(args)} argument", "takes 1", "n: int32")):
        through()(*args)


@pytest.mark.parametrize("through", [declare, define])
def test_call_is_error_when_tensor_has_wrong_dtype(through):
    with pytest.raises(TypeError, match=contains("'F'", "argument 0 ('n')", "float32", "int32")):
        through()(tf.constant(1.0))


def test_call_is_error_when_variable_has_wrong_dtype(variable_kind):
    w = tf1.get_variable("w", initializer=1.0)
    with pytest.raises(TypeError, match=contains("'F'", "argument 0 ('n')", "float32", "int32")):
        declare()(w)


@pytest.mark.parametrize("value", [1.5, "one", None, [1, [2]], 2**40, object(), np.float32(1), np.array(["a"])])
def test_call_is_error_when_value_does_not_convert(value):
    with pytest.raises(TypeError, match=contains("'F'", "argument 0 ('n')", "int32")):
        declare()(value)


@pytest.mark.parametrize("through", [declare, define, lambda: tfr.Defun(func_name="F")(lambda n: n)])
def test_call_is_error_when_keyword_is_unknown(through):
    with pytest.raises(TypeError, match=contains("'F'", "'foo'", "name")):
        through()(1, foo=2)


# Values of several tensors, and what stands for them in a list of tensors.
COMPOSITES = {
    "RaggedTensor": (lambda: tf.ragged.constant([[1], [2, 3]]), "x.nested_row_splits"),
    "SparseTensor": (lambda: tf.SparseTensor([[0]], [1], [2]), "x.dense_shape"),
    "TensorArray": (lambda: tf.TensorArray(tf.int32, 3), "x.stack()"),
}


@pytest.mark.parametrize("kind", COMPOSITES)
@pytest.mark.parametrize("through", [declare, define, lambda: tfr.Defun(func_name="F")(lambda n: n)])
def test_call_is_error_that_says_the_parts_when_argument_is_composite(through, kind):
    make, parts = COMPOSITES[kind]
    with pytest.raises(
        TypeError, match=contains("Call of 'F': argument 0", f"is a {kind}", "pass", parts, "recursive")
    ):
        through()(make())


@pytest.mark.parametrize("value", [None, object()])
def test_call_of_function_without_dtypes_is_error_that_names_it(value):
    with pytest.raises((TypeError, ValueError), match="Call of 'F': argument 1: cannot convert"):
        tfr.Defun(func_name="F")(lambda n, m: n)(1, value)


@pytest.mark.parametrize("kind", COMPOSITES)
@pytest.mark.parametrize("is_declared", [False, True], ids=["undeclared", "declared"])
@pytest.mark.parametrize("in_branch", [False, True], ids=["in the body", "in a branch"])
def test_result_is_error_that_says_the_parts_when_it_is_composite(kind, is_declared, in_branch):
    make, parts = COMPOSITES[kind]
    if is_declared:
        declare(outputs=[("first", tf.int32), ("ret", tf.int32)])
    func = (lambda n: (n, tf.cond(n < 1, make, make))) if in_branch else (lambda n: (n, make()))
    with pytest.raises(TypeError, match=contains("Function 'F': output 1 is a", kind, "return", parts, "recursive")):
        define(func=func)(1)


def test_result_is_error_that_names_the_function_when_slices_have_no_shape():
    slices = lambda n: tf.IndexedSlices(tf.ones([1, 2]), [n])
    with pytest.raises(ValueError, match=contains("Function 'F': output 0 is a", "IndexedSlices", "x.values")):
        define(func=slices)(1)


def test_call_is_error_when_argument_cannot_be_a_resource():
    f = declare(inputs=[("v", tf.resource)])
    for value in (3, tf.constant(3)):
        with pytest.raises(TypeError, match=contains("'F'", "argument 0 ('v')", "resource")):
            f(value)


def test_call_is_error_when_argument_is_of_another_graph():
    with tf.Graph().as_default():
        x = tf.constant(1, name="far")
    with pytest.raises(ValueError, match=contains("'F'", "'far:0'", "another graph")):
        declare()(x)


EAGER_PROGRAM = """
import tensorflow as tf, tensorflow_recursion as tfr
f = tfr.Declare("F", [("n", tf.int32)], [("ret", tf.int32)])
w = tf.Variable(2)

@tf.function
def outer(n):
    return f(n)

@tfr.Defun(tf.int32, func_name="F", out_names=["ret"])
def F(n):
    return tf.cond(n < 1, lambda: 0, lambda: f(n - 1) + w)

print(outer(tf.constant(5)).numpy(), [int(y) for y in tf.data.Dataset.from_tensor_slices([1, 2]).map(f)])
print(f(1).numpy(), F(2).numpy())
try:
    f(1.5)
except TypeError as error:
    print(error)
"""


@pytest.mark.thorough
def test_calls_are_made_in_tf_functions_and_eagerly():
    result = processes.run_python("-c", EAGER_PROGRAM)
    assert result.returncode == 0, result.stderr
    in_functions, eagerly, error = result.stdout.splitlines()
    assert in_functions == "10 [2, 4]"
    assert eagerly == "2 4"
    assert re.search(contains("'F'", "1.5", "int32"), error)


def test_call_is_error_when_body_calls_itself_undeclared():
    functions = []
    functions.append(define(func=lambda n: functions[0](n - 1)))
    with pytest.raises(ValueError, match=contains("'F'", "its own body", "Declare('F'")):
        functions[0](1)


def test_errors_speak_users_name_when_it_is_an_operator():
    with pytest.raises(TypeError, match="'Sum'"):
        declare("Sum")(1.5)
    define("Sum", (tf.int32,))
    with pytest.raises(ValueError, match="'Sum' is defined twice"):
        define("Sum", (tf.int32,))


# --- Never defined ------------------------------------------------------------------------------------------------


def test_run_is_error_when_function_is_never_defined(run):
    with pytest.raises(tf.errors.OpError, match="Missing"):
        run(declare("Missing")(1))


def test_run_is_error_when_callee_is_never_defined(run):
    missing = declare("Missing")
    f = define(func=lambda n: missing(n) + 1)
    with pytest.raises(tf.errors.OpError, match="Missing"):
        run(f(1))


# --- Declarations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "a b", "a>b", "_a", "a:0", "a/", "ä", "^a", None, 3])
def test_name_is_error_when_not_legal(name):
    with pytest.raises(ValueError, match=re.escape(repr(name))):
        declare(name)
    if name is not None:
        with pytest.raises(ValueError, match=re.escape(repr(name))):
            define(name)


def test_declaration_is_error_when_it_differs_from_earlier_one():
    declare()
    with pytest.raises(ValueError, match=contains("'F'", "declared twice", "n: int32", "n: int64")):
        declare(inputs=[("n", tf.int64)])
    with pytest.raises(ValueError, match=contains("'F'", "declared twice")):
        declare(outputs=[])


@pytest.mark.parametrize("inputs", [[("n",)], [tf.int32], ["n"], [("n", "no such dtype")], [(tf.int32, "n")]])
def test_declaration_is_error_when_inputs_are_no_pairs(inputs):
    with pytest.raises(TypeError, match="'F'"):
        declare(inputs=inputs)


@pytest.mark.parametrize("what", ["inputs", "outputs"])
@pytest.mark.parametrize("value", [None, 3, tf.int32, ("n", tf.int32), "n", {"n": tf.int32}, [None], [("n", None)]])
def test_declaration_is_error_when_inputs_or_outputs_have_wrong_structure(what, value):
    arguments = {"inputs": [], "outputs": [], what: value}
    expected = "dtype" if value == [("n", None)] else "(name, dtype)"
    with pytest.raises(TypeError, match=contains("'F'", *([what] * (expected != "dtype")), expected)):
        tfr.Declare("F", **arguments)


@pytest.mark.parametrize("inputs", [[("n m", tf.int32)], [("n", tf.int32), ("n", tf.int32)], [("", tf.int32)]])
def test_declaration_is_error_when_argument_names_are_bad(inputs):
    with pytest.raises(ValueError, match="'F'"):
        declare(inputs=inputs)


@pytest.mark.parametrize("shapes", [[], [[], []], ["x"], 5])
def test_declaration_is_error_when_output_shapes_do_not_fit(shapes):
    with pytest.raises(ValueError, match=contains("'F'", "output_shapes")):
        declare(output_shapes=shapes)


# --- Definitions --------------------------------------------------------------------------------------------------


def test_definition_is_error_when_name_has_one():
    define()
    with pytest.raises(ValueError, match="'F' is defined twice"):
        define()


def test_definition_is_error_when_used_in_graph_that_has_another():
    f = define()
    with tf.Graph().as_default():
        define()
        with pytest.raises(ValueError, match="'F' is defined twice"):
            f(1)


def test_failed_definition_can_be_made_again(run):
    f = declare()
    y = f(2)
    with pytest.raises(RuntimeError):
        define(func=lambda n: exec("raise RuntimeError"))
    define(func=lambda n: n * 3)
    assert run(y) == 6


def test_definition_is_error_when_inputs_differ_from_declaration():
    declare()
    with pytest.raises(TypeError, match=contains("'F'", "takes (int32)", "takes (float32)")):
        define(types=(tf.float32,))
    with pytest.raises(TypeError, match=contains("'F'", "takes (int32)", "takes (int32, int32)")):
        define(types=(tf.int32, tf.int32), func=lambda a, b: a)


def test_definition_is_error_when_outputs_differ_from_declaration():
    declare()
    with pytest.raises(TypeError, match=contains("'F'", "(int32)", "2 out_names")):
        define(out_names=["a", "b"])


@pytest.mark.parametrize("returned", [lambda n: tf.cast(n, tf.float32), lambda n: (n, n), lambda n: None])
def test_trace_is_error_when_outputs_differ_from_declaration(returned):
    declare()
    f = define(func=returned)
    with pytest.raises(TypeError, match=contains("'F'", "returns (int32)", "returns")):
        f(1)


def test_declaration_is_error_when_definition_differs():
    f = define()
    with pytest.raises(TypeError, match=contains("'F'", "takes (int64)", "takes (int32)")):
        declare(inputs=[("n", tf.int64)])
    f(1)


def test_declaration_is_error_when_traced_outputs_differ():
    define()(1)
    with pytest.raises(TypeError, match=contains("'F'", "returns (float32)", "returns (int32)")):
        declare(outputs=[("ret", tf.float32)])


def test_declaration_may_be_corrected_after_error(run):
    define()
    with pytest.raises(TypeError):
        declare(inputs=[("n", tf.int64)])
    assert run(declare()(3)) == 3


def test_trace_is_error_when_number_of_outputs_is_not_that_of_out_names():
    with pytest.raises(ValueError, match=contains("'F'", "2 out_names", "1 output")):
        define(out_names=["a", "b"])(1)


def test_trace_is_error_when_an_output_is_none():
    with pytest.raises(ValueError, match=contains("'F'", "None")):
        define(func=lambda n: (n, None))(1)


@pytest.mark.parametrize("declared", [False, True])
def test_trace_is_error_when_body_returns_dict_or_set(declared):
    if declared:
        declare()
    for name, body in (("dict", lambda n: {"ret": n}), ("set", lambda n: {1})):
        with tf.Graph().as_default(), pytest.raises(TypeError, match=contains("'F'", name, "list or tuple")):
            define(func=body)(1)


def test_trace_is_error_when_body_returns_none_where_outputs_are_expected():
    with pytest.raises(TypeError, match=contains("'F'", "a, b by its out_names", "returns None")):
        define(out_names=["a", "b"], func=lambda n: None)(1)
    with tf.Graph().as_default():
        f = declare()
        define(func=lambda n: None)
        with pytest.raises(TypeError, match=contains("'F'", "(int32) by its declaration", "returns None")):
            f(1)


def test_trace_is_error_when_output_is_no_tensor():
    declare()
    with pytest.raises(TypeError, match=contains("'F'", "int32")):
        define(func=lambda n: "text")(1)


@pytest.mark.parametrize(
    "value, says",
    [
        (2**40, "out of the range of int32"),
        ([1, 2**40], "out of the range of int32"),
        (np.int64(2**40), "out of the range of int32"),
        (np.float64(2.5), "a numpy value of float64, the function returns int32"),
        (np.array([1.0]), "a numpy value of float64, the function returns int32"),
        (np.array("1"), "the function returns int32"),
    ],
)
def test_trace_is_error_when_a_number_that_is_returned_would_be_changed(value, says):
    declare()
    with pytest.raises(TypeError, match=contains("'F'", "output 0", says)):
        define(func=lambda n: value if np.ndim(value) == 0 else [value])(1)


@pytest.mark.parametrize("value", [7, True, np.int64(7), np.int8(7), np.array(7)])
def test_number_that_is_returned_becomes_one_of_the_declared_dtype(run, value):
    declare()
    assert run(define(func=lambda n: value)(1)) == int(value)


def test_trace_is_error_when_output_shape_is_not_as_stated():
    with pytest.raises(ValueError, match=contains("'F'", "output 0", "(2,)", "(3,)")):
        define(func=lambda n: tf.zeros([2]), output_shapes=[[3]])(1)


def test_definition_is_error_when_python_function_takes_other_arguments():
    with pytest.raises(ValueError, match=contains("'F'", "takes 2 arguments", "1 input types")):
        define(func=lambda a, b: a)
    with pytest.raises(ValueError, match=contains("'F'", "takes 1 arguments", "2 input types")):
        define(types=(tf.int32, tf.int32))
    with pytest.raises(ValueError, match=contains("'F'", "optional")):
        define(func=lambda n=1: n)
    with pytest.raises(ValueError, match=contains("'F'", "Python function")):
        define(func=3)


def test_definition_is_error_when_input_type_is_no_dtype():
    with pytest.raises(TypeError, match=contains("'F'", "'n'")):
        define(types=("n",))


@pytest.mark.parametrize("out_names", ["ret", [5]])
def test_definition_is_error_when_out_names_are_no_list_of_names(out_names):
    with pytest.raises(TypeError, match=contains("'F'", f"out_names is {out_names!r}", "a list of names")):
        define(out_names=out_names)


@pytest.mark.parametrize("name", ["a b", "a:0", "^a", "ä"])
def test_definition_is_error_when_an_output_may_not_be_called_so(name):
    with pytest.raises(ValueError, match=contains("'F'", repr(name), "out_names")):
        define(out_names=[name])


def test_definition_is_error_when_arguments_of_the_function_are_not_known():
    with pytest.raises(ValueError, match=contains("'F'", "Defun decorates", "<class 'int'>", "lambda")):
        define(func=int)


def test_definition_is_error_when_function_stands_where_dtypes_belong():
    def double(n):
        return n * 2

    with pytest.raises(TypeError, match=contains("'double'", "dtypes", "@Defun(dtype, ...)")):
        tfr.Defun(double)
    with pytest.raises(TypeError, match="dtypes"):
        tfr.Defun(lambda n: n)


def test_definition_is_error_when_option_is_unknown():
    with pytest.raises(TypeError, match=contains("'funcname'", "func_name")):
        tfr.Defun(tf.int32, funcname="F")
    with pytest.raises(TypeError, match=contains("'F'", "'a', 'b'")):
        tfr.Defun(tf.int32, func_name="F", a=1, b=2)


@pytest.mark.parametrize("what", ["grad_func", "python_grad_func", "shape_func"])
def test_definition_is_error_when_what_is_called_is_no_function(what):
    with pytest.raises(TypeError, match=contains("'F'", what, "3", "function")):
        tfr.Defun(tf.int32, func_name="F", **{what: 3})


@pytest.mark.parametrize(
    "option, kind, says",
    [
        ({"create_grad_func": "yes"}, TypeError, "expected True, False or None"),
        ({"experimental_x": object}, ValueError, "expected a bool, an int, a float or a str"),
    ],
)
def test_definition_is_error_when_an_option_cannot_have_its_value(option, kind, says):
    ((name, value),) = option.items()
    with pytest.raises(kind, match=contains("'F'", f"{name} is {value!r}", says)):
        define(**option)


def test_definition_is_error_when_two_outputs_have_one_name():
    with pytest.raises(ValueError, match=contains("'F'", "out_names has a name twice", "a, b, a")):
        define(out_names=["a", "b", "a"])


def test_function_is_added_to_nothing_but_graphs():
    with pytest.raises(TypeError, match=contains("'F'", "add_to_graph", "GraphDef", "tf.Graph")):
        define().add_to_graph(tf1.GraphDef())


@pytest.mark.parametrize("through", [declare, define, lambda: tfr.Defun(func_name="F")(lambda n: n)])
def test_call_is_error_when_its_name_is_no_text(through):
    with pytest.raises(TypeError, match=contains("Call of 'F'", "name is 3", "expected a str")):
        through()(1, name=3)


# --- Gradients, configuration, debugging --------------------------------------------------------------------------


def test_session_config_is_error_when_option_is_unknown():
    with pytest.raises(ValueError, match=contains("'depth'", "max_depth", "workers")):
        tfr.session_config(depth=3)


@pytest.mark.parametrize(
    "options", [{"max_depth": 0}, {"max_depth": 1.5}, {"workers": -1}, {"workers": True}, {"max_depth": 2**63}]
)
def test_session_config_is_error_when_option_is_out_of_range(options):
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=contains(name, repr(value), "integer")):
        tfr.session_config(**options)


def test_session_config_is_error_when_config_is_something_else():
    with pytest.raises(TypeError, match="ConfigProto"):
        tfr.session_config({"max_depth": 3})


def test_static_execution_is_error_when_it_is_neither_on_nor_off():
    with pytest.raises(TypeError, match=contains("static_execution: enabled is 'no'", "True or False")):
        with tfr.config.static_execution("no"):
            pass


def test_is_static_is_error_when_given_no_session(fib):
    y = fib(3)
    with pytest.raises(TypeError, match=contains("is_static: session is a ", "Tensor", "expected an open session")):
        tfr.is_static(y, tf1.Session)
    with pytest.raises(TypeError, match=contains("is_static: session is a NoneType", "expected an open session")):
        tfr.is_static(None, y)


def test_transform_graph_is_error_when_given_something_else(monkeypatch):
    with pytest.raises(TypeError, match="GraphDef"):
        tfr.transform_graph("graph", ["y"])
    with pytest.raises(TypeError, match="fetch"):
        debugging._fetch_name(3)


def test_transform_graph_is_invalid_argument_error_when_function_is_missing():
    f = tfr.Declare("Nowhere", [("n", tf.int32)], [("r", tf.int32)])
    y = f(1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Nowhere"):
        tfr.transform_graph(tf1.get_default_graph(), y)


@pytest.mark.parametrize("with_calls", [False, True])
def test_transform_graph_is_invalid_argument_error_when_fetch_is_unknown(with_calls):
    if with_calls:
        define()(1)
    tf.constant(1, name="y")
    tf.split(tf.ones([3]), 3, name="parts")
    tf.identity_n([tf.ones([1]), tf.ones([2])], name="both")
    there = ["y", "y:0", "parts:2", "both:1"]
    tfr.transform_graph(tf1.get_default_graph(), there)
    for fetch in ("nope", "nope:0", "y:1", "y:-1", "y:x", "parts:3", "both:2"):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"'{fetch}'"):
            tfr.transform_graph(tf1.get_default_graph(), [*there, fetch])


class OfNoNumber:
    def __array__(self, dtype=None, copy=None):
        return json.loads("no json")  # JSONDecodeError is a ValueError that takes more than a message


def test_error_of_a_kind_that_takes_more_than_a_message_names_the_function():
    with pytest.raises(ValueError, match=contains("Call of 'F': argument 0: cannot convert", "Expecting value")):
        tfr.Defun(func_name="F")(lambda n: n)(OfNoNumber())


def test_error_of_a_gradient_function_names_the_function_whatever_its_kind():
    f = tfr.Defun(tf.float32, func_name="F", python_grad_func=lambda op, dy: b"\xff".decode())(lambda x: x * x)
    x = tf.constant(1.0)
    with pytest.raises(ValueError, match=contains("Function 'F'", "python_grad_func", "can't decode")) as error:
        tf.gradients(f(x), x)
    assert isinstance(error.value.__cause__, UnicodeDecodeError)
