"""What tests build their functions with."""
# SPDX-License-Identifier: Apache-2.0

import itertools

import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1
_numbers = itertools.count()


def recursive(name, inputs, outputs, shapes=None, **options):
    """A declared function, and the decorator that defines it.

    In eager mode a process has one function of a name: there, a number makes it another one in the next test.
    """
    if tf.executing_eagerly():
        name = f"{name}{next(_numbers)}"
    declared = tfr.Declare(
        name,
        [(f"a{i}", dtype) for i, dtype in enumerate(inputs)],
        [(f"r{i}", dtype) for i, dtype in enumerate(outputs)],
        output_shapes=shapes,
    )
    out_names = [f"r{i}" for i in range(len(outputs))]
    return declared, tfr.Defun(*inputs, func_name=name, out_names=out_names, **options)


def counting(name="count"):
    """A variable that bodies count with."""
    return tf1.get_variable(name, [], tf.int32, tf1.zeros_initializer(), use_resource=True)
