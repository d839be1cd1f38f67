"""Mistakes in the backward function of a tf.custom_gradient in a body: the error names the function and the line."""
# SPDX-License-Identifier: Apache-2.0

import inspect
import math
import re

import pytest
import tensorflow as tf
from building import recursive

I32, F32 = tf.int32, tf.float32


def lines_of(func):
    lines, first = inspect.getsourcelines(func)
    return range(first, first + len(lines))


def if_in_gradient(dy):
    return dy if dy > 3 else dy * 2.0


def sum_of_dtypes_in_gradient(dy):
    return dy + tf.constant(1)


def python_number_in_gradient(dy):
    return dy * math.sin(dy)


def two_gradients_for_one_argument(dy):
    return dy, dy


def gradient_of_another_shape(dy):
    return tf.ones([3])


MISTAKES_IN_GRADIENTS = {
    if_in_gradient: "Python's `if`, .* write tf.cond",
    sum_of_dtypes_in_gradient: "an operator takes values of one dtype here",
    python_number_in_gradient: "no value before the graph runs.*TensorFlow's operators",
    two_gradients_for_one_argument: "more or fewer gradients than its function has arguments",
    gradient_of_another_shape: r"a gradient of shape \(3,\) is given for an argument of shape \(\)",
}


@pytest.mark.parametrize("backward", MISTAKES_IN_GRADIENTS, ids=lambda backward: backward.__name__)
@pytest.mark.parametrize("in_branch", [False, True], ids=["in the body", "in a branch"])
def test_mistake_in_custom_gradient_says_function_line_and_remedy(control_flow, backward, in_branch):
    custom = tf.custom_gradient(lambda x: (tf.sin(x), lambda dy: backward(dy)))
    call, define = recursive("F", [I32, F32], [F32], [[]])
    inner = lambda n, x: call(n - 1, tf.cond(n > 1, lambda: custom(x), lambda: x) if in_branch else custom(x))
    define(lambda n, x: tf.cond(n < 1, lambda: x, lambda: inner(n, x)))
    x = tf.constant(1.0)
    y = call(2, x)
    with pytest.raises((TypeError, ValueError)) as caught:
        tf.gradients(y, x)
    message = str(caught.value)
    assert re.search(MISTAKES_IN_GRADIENTS[backward], message), message
    place = re.match(r"Function 'F'(?: \(test_messages_of_gradients.py, line (\d+)\))?: ", message).group(1)
    if backward in (two_gradients_for_one_argument, gradient_of_another_shape):
        assert place is None  # TensorFlow finds it when the function has returned
    else:
        assert int(place) in lines_of(backward)
    assert message.count("Function '") == 1
