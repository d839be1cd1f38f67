"""A tf.function computes the gradients that it reads, and not those for other weights, whose terms would be kept."""
# SPDX-License-Identifier: Apache-2.0

import warnings

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion import names

F64, I32 = tf.float64, tf.int32
SIZE, DEPTH = 4, 5
# What a layer makes of x: of each, what its gradient for the weight is collected by.
LAYERS = {
    "product": lambda x, w, n: x @ w,
    "row": lambda x, w, n: x * w[n % SIZE],
    "gathered rows": lambda x, w, n: x * tf.gather(w, [n % SIZE]),
    "view": lambda x, w, n: x @ tf.transpose(w),
}


def build(layer, w):
    @tfr.recursive(output_signature=tf.TensorSpec([1, SIZE], F64))
    def net(x, n):
        if n < 1:
            return x
        return tf.sin(layer(net(x, n - 1), w, n))

    return net


def operators_that_run(function):
    """The types of the operators that what a function returns waits for, and of those that it runs in any case."""
    pending = [output.op for output in function.graph.outputs] + list(function.graph.control_outputs)
    seen = set(pending)
    while pending:
        op = pending.pop()
        new = {tensor.op for tensor in op.inputs} | set(op.control_inputs)
        pending += new - seen
        seen |= new
    return {op.type for op in seen}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", ["tape", "gradients"])
@pytest.mark.parametrize("layer", LAYERS)
def test_only_gradients_that_are_read_are_collected(layer, how):
    w = tf.Variable(np.linspace(-0.5, 0.5, SIZE * SIZE).reshape(SIZE, SIZE))
    net = build(LAYERS[layer], w)
    x, n = tf.constant([[0.1, 0.2, 0.3, 0.4]], F64), tf.constant(DEPTH)

    def both(x, n):
        if how == "gradients":
            y = net(x, n)
            return [tf.convert_to_tensor(dx) for dx in tf.gradients(y, [x, w])]
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = net(x, n)
        return [tf.convert_to_tensor(dx) for dx in tape.gradient(y, [x, w])]

    signature = [tf.TensorSpec([1, SIZE], F64), tf.TensorSpec([], I32)]
    of_both, of_x = (tf.function(f, input_signature=signature) for f in (both, lambda x, n: both(x, n)[0]))
    assert names.COLLECT in operators_that_run(of_both.get_concrete_function())
    assert not {names.COLLECT, names.TOTAL} & operators_that_run(of_x.get_concrete_function())
    np.testing.assert_allclose(of_both(x, n)[0], of_x(x, n), rtol=1e-12)


def test_warning_of_a_dense_gradient_is_at_a_line_of_the_user():
    w = tf.Variable(tf.eye(64))

    @tfr.recursive(output_signature=tf.TensorSpec([1, 64]))
    def net(x, n):
        if n < 1:
            return x
        return net(x, n - 1) @ tf.tanh(w)

    @tf.function
    def slope(x):
        with tf.GradientTape() as tape:
            y = net(x, tf.constant(3))
        return tape.gradient(y, w)

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        slope(tf.ones([1, 64]))
    assert {warning.filename for warning in found if "whole gradient" in str(warning.message)} == {__file__}
