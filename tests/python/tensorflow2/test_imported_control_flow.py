"""SavedModels that sessions wrote, whose bodies have control flow v1."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import switches
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1


def save(path):
    """Save a session's graph with a power x ** 4, whose conditional is of control flow v1."""
    with switches.control_flow_v2(False), tf.Graph().as_default():
        power = tfr.Declare("Power", [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])

        @tfr.Defun(tf.float32, tf.int32, func_name="Power", out_names=["y"])
        def define(x, n):
            return tf.cond(n < 1, lambda: x, lambda: x * power(x, n - 1))

        x = tf1.placeholder(tf.float32, [])
        y = define(x, 3)
        with tf1.Session(config=tfr.session_config()) as session:
            tf1.saved_model.simple_save(session, path, {"x": x}, {"y": y})


def test_gradient_is_an_error_that_says_what_to_do(tmp_path):
    path = str(tmp_path / "model")
    save(path)
    model = tf.saved_model.load(path)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        message = "Function 'Power' cannot be differentiated.* control flow v1 .*enable_control_flow_v2"
        with pytest.raises(LookupError, match=message):
            tape.gradient(model.signatures["serving_default"](x=x)["y"], x)
    assert model.signatures["serving_default"](x=x)["y"].numpy() == 16.0
