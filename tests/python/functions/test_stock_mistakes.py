"""Mistakes are errors of the kind that stock TensorFlow's Defun raises for them, whatever else they are and say."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

# Numbers of arguments that a call passes, of functions that take so many.
WRONG_COUNTS = [(taken, passed) for taken in range(3) for passed in range(4) if taken != passed]


def taking(count, **options):
    """A function of so many numbers; their dtypes are stated or not."""
    functions = [lambda: tf.constant(1), lambda a: a + 1, lambda a, b: (a + b, b - a)]
    return tfr.Defun(*[tf.int32] * count, **options)(functions[count])


@pytest.mark.parametrize("taken, passed", WRONG_COUNTS)
def test_wrong_number_of_arguments_is_value_error_and_type_error(taken, passed):
    for kind in (ValueError, TypeError):
        with pytest.raises(kind, match=f"Expected {taken}"):
            taking(taken)(*range(passed))


def test_wrong_number_of_arguments_is_value_error_when_dtypes_are_those_of_the_call():
    function = tfr.Defun()(lambda a: a + 1)
    for passed in (0, 2):
        with pytest.raises(ValueError, match="Expected 1|takes 1 arguments"):
            function(*range(passed))


@pytest.mark.parametrize("call", [lambda **options: taking(1)(1, **options), tfr.Defun])
def test_unknown_keyword_is_value_error(call):
    with pytest.raises(ValueError, match="Unknown keyword arguments 'device'"):
        call(device="/device:GPU:0")


def test_names_for_too_many_outputs_are_invalid_argument_error():
    function = taking(1, func_name="F", out_names=["a", "b"])
    expected = "equal in size to outputs. output names size = 2 outputs size = 1"
    for kind in (tf.errors.InvalidArgumentError, ValueError):
        with pytest.raises(kind, match=expected) as caught:
            function(1)
        assert str(caught.value).startswith("Function 'F' has 2 out_names")


def test_second_definition_of_a_name_is_invalid_argument_error():
    taking(1, func_name="F")(1)
    for kind in (tf.errors.InvalidArgumentError, ValueError):
        with pytest.raises(kind, match="Function 'F' is defined twice in one graph"):
            taking(1, func_name="F")(1)


def optional(a=1):
    return a


def keyword(**a):
    return 1


@pytest.mark.parametrize("function", [optional, keyword])
def test_arguments_that_are_not_plain_are_value_error(function):
    with pytest.raises(ValueError, match="are not supported"):
        tfr.Defun()(function)


@pytest.mark.parametrize("count", [1, 3])
def test_wrong_number_of_input_types_is_value_error(count):
    with pytest.raises(ValueError, match="tf.function input types"):
        tfr.Defun(*[tf.int32] * count)(lambda a, b: a + b)


def test_none_among_results_is_value_error():
    function = tfr.Defun()(lambda: (None, None))
    with pytest.raises(ValueError, match="can not return None"):
        _ = function.definition


def test_function_that_differentiates_another_by_its_name_is_right(run):
    tfr.Defun(tf.float32, func_name="SquarePlusOne")(lambda x: x * x + 1.0)(2.0)
    operator = tf.raw_ops.SymbolicGradient
    function = tfr.Defun(tf.float32, tf.float32)(
        lambda x, dy: operator(input=[x, dy], Tout=[tf.float32], f=tf.compat.v1.NameAttrList(name="SquarePlusOne"))
    )
    assert run(function([2.0], [0.5])) == [2.0]
