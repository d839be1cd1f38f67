"""Operators of ours with attributes and inputs that no trace gives them: an error of the run, not the process's end."""
# SPDX-License-Identifier: Apache-2.0

import pathlib

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion import _loader

tf1 = tf.compat.v1

OPERATORS = tf.load_op_library(str(pathlib.Path(tfr.__file__).with_name(_loader.LIBRARY)))
LARGE = np.array([0, 2**40, 2**40])
LONG = "a string that is too long to stand in the tensor itself"


def rows_of(values, row_shape=()):
    """The rows of a gradient that has one term, these values."""
    indices = tf.zeros(tf.shape(values, tf.int64)[:1], tf.int64)
    term = OPERATORS.recursion_contribute(first=values, second=indices)
    return OPERATORS.recursion_collect(
        contributions=term, T=values.dtype, U=indices.dtype, first_shape=row_shape, second_shape=[]
    )


def handles():
    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[], shared_name="of_no_variable")
    return tf.stack([handle, handle])


def no_handle():
    return tf.gather(handles(), tf.zeros([0], tf.int32))


def parts_of(gradient):
    parts = [tf.zeros([1]), tf.zeros([1])]
    return OPERATORS.recursion_concat_gradient(axis=0, gradient=gradient, parts=parts, N=2, are_shapes=[False, False])


FORGED = {
    "rows of strings": (lambda: rows_of(tf.constant([LONG, LONG])), "rows of string"),
    "rows of handles": (lambda: rows_of(handles()), "rows of resource"),
    "rows larger than any tensor": (lambda: rows_of(tf.fill(LARGE, 0.0), [None, None]), "overflow|too many"),
    "snapshot of no handle": (
        lambda: OPERATORS.recursion_snapshot(variables=[no_handle()], positions=[0]),
        r"expected the handle of a variable, got shape \[0\]",
    ),
    "parts of strings": (lambda: parts_of(tf.constant([LONG, LONG])), "is of numbers, got string"),
}


@pytest.mark.parametrize("make, says", FORGED.values(), ids=FORGED)
def test_forged_operator_is_invalid_argument_error(session_config, make, says):
    results = make()
    with tf1.Session(config=session_config) as session:
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match=says):
                session.run(results)
