"""Where Python ends a recursion by a size that the caller does not know, an error says so: the size is None there."""
# SPDX-License-Identifier: Apache-2.0

import re

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


@tfr.recursive
def total(x):
    return tf.constant(0.0) if x.shape[0] == 0 else x[0] + total(x[1:])


@tfr.recursive
def first(x):
    if x.shape.rank == 0:
        return x
    return first(x[0])


@tfr.recursive
def is_odd(x):
    return is_even(x[1:])


@tfr.recursive
def is_even(x):
    if x.shape.as_list()[-1] == 0:
        return True
    return is_odd(x[1:])


@pytest.mark.parametrize(
    ("function", "shape", "reader", "what", "instead"),
    [
        (total, [None], "total", "size 0 of 'x'", "tf.shape(x)[0]"),
        (first, None, "first", "the rank of 'x'", "tf.rank(x)"),
        (is_odd, [None], "is_even", "size 0 of 'x'", "tf.shape(x)[0]"),
    ],
)
def test_error_says_which_line_reads_a_size_that_is_none(function, shape, reader, what, instead):
    step = tf.function(lambda x: function(x), input_signature=[tf.TensorSpec(shape)])
    expected = f"the body of '{reader}' reads {what} (test_unknown_sizes.py, line "
    with pytest.raises(TypeError, match=f"{re.escape(expected)}.*; write {re.escape(instead)}. Else let a path return"):
        step(tf.ones([3]))


def test_error_names_no_line_where_all_sizes_are_known():
    @tfr.recursive
    def endless(x):
        return endless(x) * float(x.shape[0])

    with pytest.raises(TypeError, match="needs the result of another call of 'endless'; let a path return"):
        endless(tf.ones([3]))


def test_size_that_the_graph_computes_ends_the_recursion_in_its_place():
    @tfr.recursive
    def sum_of(x):
        return tf.constant(0.0) if tf.shape(x)[0] == 0 else x[0] + sum_of(x[1:])

    assert float(tf.function(sum_of, input_signature=[tf.TensorSpec([None])])(tf.ones([3]))) == 3.0
