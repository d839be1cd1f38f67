"""What tests build their functions with."""
# SPDX-License-Identifier: Apache-2.0

import itertools

import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1
_numbers = itertools.count()


def new_name(base):
    """A name that no other test gives to a function: those of eager mode share one space of names in a process."""
    return f"{base}_{next(_numbers)}"


def recursive(name, inputs, outputs, shapes=None, **options):
    """A declared function, and the decorator that defines it. In eager mode it has a new name."""
    if tf.executing_eagerly():
        name = new_name(name)
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
