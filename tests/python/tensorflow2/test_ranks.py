"""Recursions over ranks: one trace serves all of them or, where Python reads ranks, each has its own."""
# SPDX-License-Identifier: Apache-2.0

import warnings

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

NUMBERS = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4) / 8


def ends_at_rank(x):
    """The most common way to write it."""
    if x.shape.rank == 0:
        return x * x
    return 2.0 * ends_at_rank(tf.reduce_sum(x, axis=0))


def ends_at_length(x):
    """Where the rank is open, this is an error."""
    return x * x if len(x.shape) == 0 else 2.0 * ends_at_length(tf.reduce_sum(x, axis=0))


def ends_at_ndim(x):
    """TensorFlow's `x.ndim` is -1 where the rank is open."""
    return x * x if x.ndim == 0 else 2.0 * ends_at_ndim(tf.reduce_sum(x, axis=0))


def ends_at_dims(x):
    return x * x if x.shape.dims == [] else 2.0 * ends_at_dims(tf.reduce_sum(x, axis=0))


def ends_at_rank_of_another_tensor(x):
    """Nobody sees this one read its rank; but no path is left that does not recurse."""
    square = x * x
    if square.shape.rank == 0:
        return square
    return 2.0 * ends_at_rank_of_another_tensor(tf.reduce_sum(x, axis=0))


def goes_over_rows(x):
    return x * x if x.shape.rank == 0 else tf.add_n([goes_over_rows(row) for row in tf.unstack(x)])


def needs_known_ranks(x):
    """An operator needs the rank, and none is read before."""
    (summed,) = tf.nest.flatten(tf.split(tf.reduce_sum(x, axis=0, keepdims=True), 1, axis=len(x.shape) - 1))
    return tf.reduce_sum(x * x) if len(x.shape) == 1 else needs_known_ranks(tf.reshape(summed, summed.shape[1:]))


def reads_by_the_other_one(x):
    return the_other_one(x * 1.5)


def the_other_one(x):
    return x * x if x.shape.rank == 0 else reads_by_the_other_one(tf.reduce_sum(x, axis=0))


def calls_the_reader(x):
    return x * x if x.shape.rank == 0 else the_one_between(tf.reduce_sum(x, axis=0))


def the_one_between(x):
    return calls_the_reader(x * 1.5)


def takes_a_vector_as_a_matrix(x):
    """The rank differs only once."""
    if x.shape.rank == 3:
        return takes_a_vector_as_a_matrix(tf.reshape(x, [6, 4]))
    if tf.shape(x)[0] < 2:
        return tf.reduce_sum(x * x)
    return 2.0 * takes_a_vector_as_a_matrix(x[1:] * (1.0 if x.shape.rank == 2 else 5.0))


PROGRAMS = [
    [ends_at_rank],
    [ends_at_length],
    [ends_at_ndim],
    [ends_at_dims],
    [ends_at_rank_of_another_tensor],
    [goes_over_rows],
    [needs_known_ranks],
    [reads_by_the_other_one, the_other_one],
    [calls_the_reader, the_one_between],
    [takes_a_vector_as_a_matrix],
]


@pytest.fixture(params=PROGRAMS, ids=lambda functions: functions[0].__name__)
def functions(request):
    return request.param


@pytest.fixture
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


def value_and_gradient(function):
    x = tf.constant(NUMBERS)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return y, tape.gradient(y, x)


@pytest.mark.each_value
@pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
@pytest.mark.parametrize("options", [{}, {"output_signature": tf.TensorSpec([])}], ids=["inferred", "stated"])
def test_values_and_gradients_are_those_of_python(functions, options, outermost, monkeypatch, no_warnings):
    expected = value_and_gradient(functions[0])
    for function in functions:
        monkeypatch.setitem(globals(), function.__name__, tfr.recursive(**options)(function))
    found = outermost(lambda: value_and_gradient(globals()[functions[0].__name__]))()
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_variables_of_methods_have_gradients(no_warnings):
    class Total(tf.Module):
        def __init__(self):
            super().__init__()
            self.weight = tf.Variable(3.0)

        @tfr.recursive
        def __call__(self, x):
            return x * self.weight if x.shape.rank == 0 else self(tf.reduce_sum(x, axis=0)) + self.weight

    total = Total()
    with tf.GradientTape() as tape:
        y = total(tf.constant(NUMBERS))
    assert float(tape.gradient(y, total.weight)) == NUMBERS.sum() + 3


def test_function_made_in_a_body(no_warnings):
    @tfr.recursive
    def outer(x, n):
        @tfr.recursive
        def total(x):
            return x if x.shape.rank == 0 else 2.0 * total(tf.reduce_sum(x, axis=0))

        return total(x) if n < 1 else outer(x, n - 1) + 1.0

    assert float(outer(tf.constant(NUMBERS), tf.constant(2))) == 8 * NUMBERS.sum() + 2


def test_calls_of_a_session(no_warnings):
    @tfr.recursive
    def total(x):
        return x if x.shape.rank == 0 else 2.0 * total(tf.reduce_sum(x, axis=0))

    with tf.Graph().as_default():
        y = total(tf.constant(NUMBERS))
        with tf.compat.v1.Session(config=tfr.session_config()) as session:
            assert session.run(y) == 8 * NUMBERS.sum()


def test_loaded_function(tmp_path, no_warnings):
    module = tf.Module()
    module.total = tf.function(ends_at_rank_in_a_module, input_signature=[tf.TensorSpec([2, 3, 4])])
    tf.saved_model.save(module, str(tmp_path))
    assert float(tf.saved_model.load(str(tmp_path)).total(NUMBERS)) == 8 * NUMBERS.sum()


@tfr.recursive
def ends_at_rank_in_a_module(x):
    return x if x.shape.rank == 0 else 2.0 * sum_of_rest(x)


def sum_of_rest(x):
    """Plain Python between a function and its call of itself."""
    return ends_at_rank_in_a_module(tf.reduce_sum(x, axis=0))


def test_error_is_that_of_the_trace_of_one_rank(no_warnings):
    @tfr.recursive
    def broken(x):
        if x.shape.rank == 2:
            x = tf.matmul(x, tf.ones([7, 7]))
        return x if x.shape.rank == 0 else broken(tf.reduce_sum(x, axis=0))

    with pytest.raises(ValueError, match=r"Dimensions must be equal, but are 4 and 7"):
        broken(tf.constant(NUMBERS))


@pytest.mark.parametrize("reads", [False, True], ids=["unread", "read"])
def test_ranks_that_no_trace_can_keep_are_shared(reads):
    """At rank 0, TensorFlow cannot build the path that is not taken there."""

    @tfr.recursive
    def last(x):
        if reads and x.shape.rank == 2:
            x = x * 10.0
        if tf.rank(x) == 0:
            return x
        return last(x[-1])

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert float(last(tf.constant(NUMBERS))) == NUMBERS[-1, -1, -1] * (10 if reads else 1)
    assert sum("rank" in str(one.message) for one in found) == reads


def test_ranks_that_grow_without_end_are_shared():
    @tfr.recursive
    def grown(x, n):
        if n < 1:
            return tf.reduce_sum(x)
        return grown(tf.expand_dims(x, 0) * (1.0 if x.shape.rank == 1 else 2.0), n - 1)

    with pytest.warns(RuntimeWarning, match=r"the rank of 'x' is read"):
        assert float(grown(tf.constant(NUMBERS), tf.constant(3))) == 8 * NUMBERS.sum()


def test_traces_share_ranks_that_nobody_reads():
    ranks = []

    @tfr.recursive
    def halved(x, n):
        ranks.append(tf.TensorShape(x.op.get_attr("shape")).rank)
        return tf.reduce_sum(x) if n < 1 else halved(tf.expand_dims(x, 0) / 2.0, n - 1)

    assert float(halved(tf.constant(NUMBERS), tf.constant(2))) == NUMBERS.sum() / 4
    assert set(ranks) == {3, None}
