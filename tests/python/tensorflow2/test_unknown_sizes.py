"""Where Python ends a recursion by a size that the caller does not know, an error says so: the size is None there."""
# SPDX-License-Identifier: Apache-2.0

import re

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion.argument_kinds import endless


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


NUMBER = tf.TensorSpec([], tf.float32)


@tfr.recursive(output_signature=NUMBER)
def stated_total(x):
    return tf.constant(0.0) if x.shape[0] == 0 else x[0] + stated_total(x[1:])


@tfr.recursive(output_signature=NUMBER)
def stated_first(x):
    return x if x.shape.rank == 0 else stated_first(x[0])


@tfr.recursive(output_signature=NUMBER)
def stated_odd(x):
    return x[0] + stated_even(x[1:])


@tfr.recursive(output_signature=NUMBER)
def stated_even(x):
    return tf.constant(0.0) if x.shape[0] == 0 else stated_odd(x[1:])


@tfr.recursive(output_signature=NUMBER)
def of_rest(x):
    rest = x[1:]
    return x[0] if rest.shape[0] == 0 else x[0] + of_rest(rest)


@tfr.recursive(output_signature=NUMBER)
def on_both_paths(x):
    if x.shape[0] == 0:
        return tf.constant(0.0)
    return x[0] + on_both_paths(x[1:]) if x[0] > 0.0 else on_both_paths(x[1:])


@pytest.mark.parametrize(
    ("function", "shape", "reader", "what", "instead"),
    [
        (stated_total, [None], "stated_total", "size 0 of 'x'", "tf.shape(x)[0]"),
        (stated_first, None, "stated_first", "the rank of 'x'", "tf.rank(x)"),
        (stated_odd, [None], "stated_even", "size 0 of 'x'", "tf.shape(x)[0]"),
        (of_rest, [None], "of_rest", "size 0 of what it computes", "tf.shape(x)[0]"),
        (on_both_paths, [None], "on_both_paths", "size 0 of 'x'", "tf.shape(x)[0]"),
    ],
)
def test_error_says_which_line_reads_a_size_where_the_result_is_stated(function, shape, reader, what, instead):
    step = tf.function(lambda x: function(x), input_signature=[tf.TensorSpec(shape)])
    expected = f"the body of '{reader}' reads {what} (test_unknown_sizes.py, line "
    with pytest.raises(TypeError, match=rf"none ends; {re.escape(expected)}.*; write {re.escape(instead)}, and end "):
        step(tf.ones([3]))


def test_error_says_which_line_of_a_defun_reads_a_size():
    with tf.Graph().as_default():
        total = tfr.Declare("Total", [("x", tf.float32)], [("ret", tf.float32)])

        @tfr.Defun(tf.TensorSpec([None]), func_name="Total", out_names=["ret"])
        def total_impl(x):
            return tf.constant(0.0) if x.shape[0] == 0 else x[0] + total(x[1:])

        with pytest.raises(TypeError, match="'Total': every call .* reads size 0 of 'x' .*; write tf.shape"):
            total_impl(tf.ones([3]))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_stated_results_of_known_sizes_need_no_other_end():
    assert [float(stated_total(tf.ones([size]))) for size in range(20)] == [*range(20)]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_sizes_that_end_no_recursion_may_be_unknown():
    @tfr.recursive(output_signature=NUMBER)
    def scaled(x, n):
        if n < 1:
            return x[0] * (2.0 if x.shape[0] == 1 else 1.0)
        return scaled(x, n - 1)

    step = tf.function(lambda x: scaled(x, tf.constant(2)), input_signature=[tf.TensorSpec([None])])
    assert float(step(tf.ones([1]))) == 1.0


@pytest.mark.parametrize("function", [total, stated_total])
def test_error_of_many_sizes_in_a_row_says_what_to_write(function, monkeypatch):
    monkeypatch.setattr(endless, "_MAX_UNROLLED", 12)  # more than the sizes for which one trace is tried in their place
    with pytest.raises(TypeError, match=r"'x' is a tensor float32\(.*body reads sizes in Python.*tf\.shape\(x\)\[0\]"):
        function(tf.ones([30]))
