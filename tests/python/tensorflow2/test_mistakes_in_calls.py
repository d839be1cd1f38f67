"""Mistakes in what is passed to functions, and in what bodies do with it, are errors that name the parameter."""
# SPDX-License-Identifier: Apache-2.0

import dataclasses
import re

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


@pytest.fixture(params=["eager", "tf.function"])
def called(request):
    """Calls a function eagerly, or in a tf.function."""
    return (lambda func: func()) if request.param == "eager" else (lambda func: tf.function(func)())


def contains(*texts):
    return "(?s)" + ".*".join(map(re.escape, texts))


@dataclasses.dataclass
class State:
    x: tf.Tensor


@tfr.recursive
def appends(values, n):
    if n < 1:
        return n
    values.append(n)
    return appends(values, n - 1)


@tfr.recursive
def appends_to_a_default(n, values=[]):  # noqa: B006  # as newcomers write
    values.append(n)
    return tf.stack(values) if n < 1 else appends_to_a_default(n - 1)


@tfr.recursive
def assigns(values, n):
    if n < 1:
        return values["x"]
    values["x"] = values["x"] + 1
    return assigns(values, n - 1)


@tfr.recursive
def deletes(n, *, values):
    del values["x"]
    return n if n < 1 else deletes(n - 1, values=values)


@tfr.recursive
def assigns_an_attribute(values, n):
    values.x = values.x + 1
    return values.x if n < 1 else assigns_an_attribute(values, n - 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: appends([tf.constant(1)], tf.constant(3)),
        lambda: appends_to_a_default(tf.constant(3)),
        lambda: assigns({"x": tf.constant(1)}, tf.constant(3)),
        lambda: deletes(tf.constant(3), values={"x": tf.constant(1)}),
        lambda: assigns_an_attribute(State(tf.constant(1)), tf.constant(3)),
    ],
)
def test_change_of_an_argument_in_place_is_an_error_as_in_a_tf_function(call, called):
    """It was made in the list, dictionary or object that the body alone has, and lost to the caller."""
    with pytest.raises(ValueError, match=contains("Function '", "changes 'values' in place", "change a copy")):
        called(call)


def test_changed_copy_of_an_argument_works_as_the_error_says(called):
    @tfr.recursive
    def count(state, n):
        state = {**state, "x": state["x"] + n}
        return state["x"] if n < 1 else count(state, n - 1)

    assert int(called(lambda: count({"x": tf.constant(1)}, tf.constant(3)))) == 7


@tfr.recursive(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([], tf.int32)])
def total(x, n):
    return 0.0 if n < 1 else x[n - 1] + total(x, n - 1)


@pytest.mark.parametrize(
    ("x", "n", "says"),
    [
        ([[1.0]], 1, "argument 'x' is [[1.0]], input_signature states a tensor float32(None,)"),
        (tf.zeros([1, 1]), 1, "argument 'x' is a tensor float32(1, 1), input_signature states a tensor float32(None,)"),
        (None, 1, "argument 'x' is None, input_signature states"),
        (tf.ragged.constant([[1.0], []]), 1, "argument 'x' is a RaggedTensor, input_signature states"),
        ([1.0], {"n": 1}, "argument 'n' is {'n': 1}, input_signature states a tensor int32()"),
        ([1.0], tf.constant(1.0), "argument 'n' is a tensor float32(), input_signature states a tensor int32()"),
        ([1.0], 2**40 + 1, "argument 'n': 1099511627777 is out of the range of int32"),
        ([1.0], np.float64(1.5), "argument 'n' is a numpy value of float64, the function takes int32"),
        (np.array([1.0j]), 1, "argument 'x' is a numpy value of complex128, the function takes float32"),
    ],
)
def test_argument_other_than_the_input_signature_is_an_error_that_says_which(x, n, says, called):
    """TensorFlow does not say which argument it is, and cuts numbers to fit a dtype without a word in eager mode."""
    with pytest.raises(TypeError, match=contains("Call of 'total'", says)):
        called(lambda: total(x, n))


def test_specs_other_than_the_input_signature_are_an_error_that_names_the_function():
    with pytest.raises(TypeError, match=contains("Call of 'total'", "'x' is a tensor float32(2, 2)", "states")):
        total.get_concrete_function(tf.TensorSpec([2, 2]), tf.TensorSpec([], tf.int32))


def test_values_that_fit_the_input_signature_are_taken(called):
    assert float(called(lambda: total(np.array([1, 2]), np.uint8(2)))) == 3.0
    assert float(called(lambda: total(np.array([0.5, 2.0]), n=True))) == 0.5


def test_unknown_keyword_is_an_error_that_names_it(called):
    with pytest.raises(TypeError, match=contains("Call of 'total'", "unexpected keyword argument 'm'", "(x, n)")):
        called(lambda: total([1.0], m=1))


def test_keyword_that_tensorflow_renames_is_an_error_that_says_what_to_write(called):
    scaled = tfr.recursive(lambda x, _factor=2.0: x * _factor)
    assert float(called(lambda: scaled(tf.constant(1.0)))) == 2.0
    assert float(called(lambda: scaled(tf.constant(1.0), 3.0))) == 3.0
    says = contains("'_factor' is passed by keyword", "by position, or rename it")
    with pytest.raises(TypeError, match=says):
        called(lambda: scaled(tf.constant(1.0), _factor=3.0))


def only_by_keyword(n, *, _step=1):
    return n if n < 1 else only_by_keyword(n - _step)


def only_by_keyword_without_default(n, *, _step):
    return n if n < 1 else only_by_keyword_without_default(n - _step, _step=_step)


def any_keyword(n, **steps):
    return n if n < 1 else any_keyword(n - steps["_step"], **steps)


@pytest.mark.parametrize(
    "function, keywords, says",
    [
        (only_by_keyword, {}, "can only be passed by keyword.*, also where a default is passed; rename it"),
        (only_by_keyword, {"_step": 2}, "is passed by keyword.*another name; rename it"),
        (only_by_keyword_without_default, {"_step": 2}, "is passed by keyword.*another name; rename it"),
        (any_keyword, {"_step": 2}, "is passed by keyword.*another name; rename it"),
    ],
)
def test_parameter_that_tensorflow_renames_is_an_error_that_says_what_to_do(called, function, keywords, says):
    recursive = tfr.recursive(function)
    with pytest.raises(ValueError, match=f"Call of '{function.__name__}': '_step' {says}; the function takes"):
        called(lambda: recursive(tf.constant(3), **keywords))


def test_method_without_self_is_an_error_that_says_what_the_object_is_passed_as(called):
    class Net:
        @tfr.recursive
        def visit(n):  # as newcomers write
            return n

    net = Net()
    with pytest.raises(TypeError, match=contains("'visit'", "too many", "() besides the object itself ('n')")):
        called(lambda: net.visit(tf.constant(1)))


def test_eager_tensor_in_a_graph_of_a_session_is_an_error_that_names_the_argument():
    eager = tf.constant(3)
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match=contains("'total': argument 'n' is an eager tensor", "x.numpy()")):
            total(tf.ones([3]), eager)
        assert total(tf.ones([3]), 3).graph is tf.compat.v1.get_default_graph()


@pytest.mark.thorough
@pytest.mark.parametrize("first", ["a" * 10, [1.0] * 10], ids=["str", "list"])
def test_value_that_grows_without_end_is_told_by_its_length(first):
    traces = []

    @tfr.recursive
    def grows(values, n):
        traces.append(len(values))
        return n if n < 1 else grows(values + values[:1], n - 1)

    with pytest.raises(TypeError, match=r"'values' is a (list|string) of 74\b.*, and was .* of 73\b.*as one tensor"):
        grows(first, tf.constant(3))
    assert traces.count(10) <= 2  # to infer and to trace; not again with tensors, of which there would be ever more


def test_gradient_of_another_dtype_is_an_error_that_says_both():
    """It was found by the run, which first went on dynamically."""

    @tf.custom_gradient
    def twice(x):
        return 2.0 * x, lambda dy: tf.cast(dy, tf.float64)

    @tfr.recursive
    def power(x, n):
        return x if n < 1 else twice(power(x, n - 1))

    x = tf.constant(2.0)
    message = contains("Function 'power'", "gradient for result 0", "float64, expected float32", "tf.custom_gradient")
    with pytest.raises(TypeError, match=message), tf.GradientTape() as tape:
        tape.watch(x)
        tape.gradient(power(x, tf.constant(3)), x)
    assert float(power(x, tf.constant(3))) == 16.0
