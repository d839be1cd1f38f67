"""Switches of TensorFlow that are put back when a scope ends."""
# SPDX-License-Identifier: Apache-2.0

import contextlib

import tensorflow as tf

tf1 = tf.compat.v1


def control_flow_v2(wanted):
    """If and While, or Switch/Merge operators in graphs."""
    return _switched(wanted, tf1.control_flow_v2_enabled, tf1.enable_control_flow_v2, tf1.disable_control_flow_v2)


def resource_variables(wanted):
    """What tf1 variables are, or else references."""
    switches = (tf1.resource_variables_enabled, tf1.enable_resource_variables, tf1.disable_resource_variables)
    return _switched(wanted, *switches)


def tensor_equality(wanted):
    """Whether `==` compares the elements of tensors, or else asks whether they are one; then dictionaries take them."""
    is_on = lambda: tf.Tensor._USE_EQUALITY
    return _switched(wanted, is_on, tf1.enable_tensor_equality, tf1.disable_tensor_equality)


@contextlib.contextmanager
def _switched(wanted, is_on, turn_on, turn_off):
    before = is_on()
    try:
        (turn_on if wanted else turn_off)()
        yield
    finally:
        (turn_on if before else turn_off)()
