"""Layers in bodies whose operators TensorFlow fuses, some of them into operators that only oneDNN has kernels for."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

RANDOM = np.random.RandomState(0)
IMAGES = RANDOM.randn(2, 6, 6, 4).astype(np.float32)
ROWS = RANDOM.randn(2, 2, 5, 8).astype(np.float32)
WEIGHTS = {
    "filters": RANDOM.randn(3, 3, 4, 4),
    "depthwise": RANDOM.randn(3, 3, 4, 1),
    "four": RANDOM.rand(4) + 0.5,
    "square": RANDOM.randn(8, 8),
    "eight": RANDOM.rand(8),
    "mask": RANDOM.randn(1, 1, 5, 5),
}


def batch_norm(x, w, **statistics):
    return tf1.nn.fused_batch_norm(x, w["four"], w["four"] * 0.5, **statistics)[0]


def attention(x, w, activation):
    scores = activation(tf.matmul(x, x, transpose_b=True) * 0.35 + w["mask"])
    return tf.matmul(scores, x)


LAYERS = {
    "batch_norm": (IMAGES, lambda x, w, act: act(batch_norm(x, w))),
    "batch_norm_of_inference": (
        IMAGES,
        lambda x, w, act: act(batch_norm(x, w, mean=w["four"] * 0.1, variance=w["four"], is_training=False)),
    ),
    "batch_norm_and_side_input": (IMAGES, lambda x, w, act: act(batch_norm(x, w) + x)),
    "depthwise": (
        IMAGES,
        lambda x, w, act: act(tf.nn.bias_add(tf.nn.depthwise_conv2d(x, w["depthwise"], [1] * 4, "SAME"), w["four"])),
    ),
    "convolution": (
        IMAGES,
        lambda x, w, act: act(tf.nn.bias_add(tf.nn.conv2d(x, w["filters"], 1, "SAME"), w["four"]) + x),
    ),
    "product": (ROWS, lambda x, w, act: act(tf.nn.bias_add(tf.matmul(x, w["square"]), w["eight"]) + x)),
    "attention": (ROWS, attention),
}
ACTIVATIONS = {
    "none": lambda x: x,
    "relu": tf.nn.relu,
    "relu6": tf.nn.relu6,
    "elu": tf.nn.elu,
    "leaky_relu": tf.nn.leaky_relu,
    "gelu": tf.nn.gelu,
    "silu": tf.nn.silu,
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_layer_and_its_gradients(layer, activation):
    value, apply = LAYERS[layer]
    x, weights = tf.constant(value), {name: tf.Variable(w, dtype=tf.float32) for name, w in WEIGHTS.items()}

    @tfr.recursive
    def repeated(x, n):
        if n == 0:
            return x
        return repeated(apply(x, weights, ACTIVATIONS[activation]), n - 1)

    def by_python(x, n):
        return x if n == 0 else by_python(apply(x, weights, ACTIVATIONS[activation]), n - 1)

    found = []
    for function, count in [(repeated, tf.constant(2)), (by_python, 2)]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x, count)
            total = tf.reduce_sum(y * y) / 1000.0
        gradients = tape.gradient(total, [x, *weights.values()], unconnected_gradients="zero")
        found.append([y, *gradients])
    for ours, expected in zip(*found, strict=True):
        scale = max(1.0, float(tf.reduce_max(tf.abs(expected))))
        np.testing.assert_allclose(ours / scale, expected / scale, atol=2e-4)


@pytest.mark.parametrize("layer", ["batch_norm", "batch_norm_of_inference", "depthwise"])
def test_layer_in_a_session(layer):
    value, apply = LAYERS[layer]
    with tf1.Graph().as_default() as graph:
        weights = {name: tf1.get_variable(name, initializer=w.astype(np.float32)) for name, w in WEIGHTS.items()}
        repeated = tfr.Declare("Repeated", [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])

        @tfr.Defun(tf.float32, tf.int32, func_name="Repeated", out_names=["y"], create_grad_func=True)
        def body(x, n):
            return tf.cond(n < 1, lambda: x, lambda: repeated(apply(x, weights, tf.nn.relu), n - 1))

        x = tf1.placeholder(tf.float32, value.shape)
        once = apply(x, weights, tf.nn.relu)
        pairs = [body(x, tf.constant(2)), apply(once, weights, tf.nn.relu)]
        fetches = [*pairs, *(tf1.gradients(tf.reduce_sum(y * y), x)[0] for y in pairs)]
        with tf1.Session(graph=graph, config=tfr.session_config(on_fallback="error")) as session:
            session.run(tf1.global_variables_initializer())
            ours, expected, slope, expected_slope = session.run(fetches, {x: value})
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(slope, expected_slope, rtol=1e-3, atol=1e-2)
