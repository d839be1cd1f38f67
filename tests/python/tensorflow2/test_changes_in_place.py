"""InplaceAdd and its like change a tensor that others have, too: who reads it before does not see the change."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

pytestmark = pytest.mark.every_case
F32 = tf.float32
SIZE = 128  # a matrix is large enough to be shared instead of copied


@pytest.fixture(params=[True, False], ids=["static", "dynamic"], autouse=True)
def execution(request):
    with tfr.config.static_execution(request.param):
        yield


@pytest.fixture(params=[True, False], ids=["inlined", "called"])
def add_to_first(request):
    """What adds numbers to the first matrix of a stack, in place."""

    @tf.function(experimental_attributes={"_noinline": not request.param})
    def add(stack, numbers):
        return tf.raw_ops.InplaceAdd(x=stack, i=[0], v=numbers)

    return add


def test_matrix_of_a_stack_is_copied_before_the_stack_changes(add_to_first):
    @tfr.recursive(output_signature=tf.TensorSpec([SIZE, SIZE], F32))
    def total(n, stack):
        if n < 1:
            return tf.zeros([SIZE, SIZE])
        stack = stack * tf.cast(n, F32)
        first = tf.gather(stack, n * 0)
        changed = add_to_first(stack, first[tf.newaxis])
        return total(n - 1, tf.zeros_like(stack) + tf.reduce_max(changed) / (2.0 * tf.cast(n, F32))) + first

    np.testing.assert_allclose(total(tf.constant(3), tf.ones([4, SIZE, SIZE]))[0, 0], 3 + 2 + 1)


def test_control_dependencies_order_changes_and_reads():
    @tfr.recursive(output_signature=tf.TensorSpec([2], F32))
    def total(n, stack):
        if n < 1:
            return tf.zeros([2])
        stack = stack * tf.cast(n, F32)
        before = tf.reduce_max(tf.cumsum(stack))
        with tf.control_dependencies([tf.group(before)]):
            changed = tf.raw_ops.InplaceAdd(x=stack, i=[0], v=tf.ones([1, SIZE, SIZE]))
        with tf.control_dependencies([changed]):
            after = tf.reduce_max(stack)
        return total(n - 1, tf.ones_like(stack)) + [before, after]

    before, after = 4.0 * (3 + 2 + 1), 4.0 + 3 + 2
    np.testing.assert_allclose(total(tf.constant(3), tf.ones([4, SIZE, SIZE])), [before, after])
