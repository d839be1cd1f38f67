"""What `tf.debugging` watches of operators: in bodies, and in their gradients."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


@pytest.fixture
def checked_numerics():
    tf.debugging.enable_check_numerics()
    yield
    tf.debugging.disable_check_numerics()


def root_after(steps):
    @tfr.recursive
    def root(x, n):
        if n < 1:
            return tf.sqrt(x)
        return root(x * 1.0, n - 1)

    return lambda x: root(x, tf.constant(steps))


def gradient(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


@pytest.mark.usefixtures("checked_numerics")
@pytest.mark.parametrize("wrapped", [lambda f: f, tf.function], ids=["eagerly", "in a tf.function"])
def test_check_numerics_finds_the_operator_when_a_body_makes_no_number(wrapped):
    compute = wrapped(root_after(2))
    assert float(compute(tf.constant(4.0))) == 2.0
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)return tf\.sqrt\(x\)\n.*graph op \"Sqrt\""):
        compute(tf.constant(-1.0))


@pytest.mark.usefixtures("checked_numerics")
def test_check_numerics_finds_the_operator_when_a_gradient_is_infinite():
    function = root_after(2)
    compute = tf.function(lambda x: gradient(function, x))
    assert float(compute(tf.constant(1.0))) == 0.5
    of_forward = r"(?s)It computes a gradient of .*tf\.sqrt\(x\).*graph op \"SqrtGrad\""
    with pytest.raises(tf.errors.InvalidArgumentError, match=of_forward):
        compute(tf.constant(0.0))
