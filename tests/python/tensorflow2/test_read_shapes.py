"""One trace serves calls of several shapes, but for the ranks and sizes that Python reads: each has its own trace."""
# SPDX-License-Identifier: Apache-2.0

import warnings

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion.argument_kinds import sharing

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


def ends_at_size(x):
    """A mean of means, by halves, as a fast Fourier transform goes."""
    if x.shape[0] == 1:
        return x[0] * x[0]
    return tf.sin(ends_at_size(x[::2])) + ends_at_size(x[1::2])


def ends_at_length_of_rows(x):
    return x[0] * x[0] if len(x) == 1 else 2.0 * ends_at_length_of_rows(x[1:]) + x[0]


def ends_at_shape(x):
    return x[0] * x[0] if x.shape == [1, 3, 4] else 2.0 * ends_at_shape(x[1:]) + x[0]


def unpacks_sizes(x):
    rows, columns, _ = x.shape
    return x[0] * columns if rows == 1 else rows * unpacks_sizes(x[1:]) + x[0]


def ends_at_number_of_elements(x):
    return tf.reduce_sum(x) if x.shape.num_elements() < 7 else ends_at_number_of_elements(x[:, :-1] * 2.0)


def goes_over_range(x):
    total = tf.zeros([3, 4])
    for i in range(x.shape[0]):
        total += x[i] * (i + 1.0)
    return total * total if tf.shape(x)[0] < 2 else total + goes_over_range(x[1:])


def differs_at_one_size(x):
    """Without an error where the size is open."""
    if x.shape[1] == 2:
        x = x * 10.0
    return tf.reduce_sum(x * x) if tf.shape(x)[1] < 2 else tf.reduce_sum(x) + differs_at_one_size(x[:, 1:])


def reads_behind_a_call(x):
    """What is read only behind a call comes out before anything is traced, too."""
    if tf.shape(x)[1] < 2:
        return tf.reduce_sum(x * x)
    rest = reads_behind_a_call(x[:, 1:])
    return rest * 10.0 if x.shape[1] == 2 else rest + tf.reduce_sum(x)


def reads_in_a_loop(x):
    total = tf.reduce_sum(x)
    for _ in tf.range(2):
        if x.shape[1] == 2:
            total *= 10.0
    return total if tf.shape(x)[1] < 2 else total + reads_in_a_loop(x[:, 1:])


def reads_by_builtins(x):
    """AutoGraph calls these in place of the user."""
    for axis, size in enumerate(x.shape):
        if size == 2 and axis == 1:
            x = x * 3.0
    if x.shape.as_list()[1] == 3:
        x = x * 5.0
    if tuple(x.shape)[1:] == (4, 4) or getattr(x, "shape")[np.int64(1)] == 1:  # noqa: B009
        x = x * 7.0
    return tf.reduce_sum(x) if tf.shape(x)[1] < 2 else tf.reduce_sum(x) + reads_by_builtins(x[:, 1:])


def reads_of_a_computed_tensor(x):
    y = tf.sin(x)
    total = tf.reduce_sum(y if y.shape[1] == 2 else x * 3.0)
    return total if tf.shape(x)[1] < 2 else total + reads_of_a_computed_tensor(x[:, 1:])


def compares_by_the_other_side(x):
    if [2, 2, 4] == x.shape or tf.TensorShape([2, 1, 4]) == x.shape:
        x = x * 3.0
    if x.shape.is_compatible_with([2, 1, 4]):
        x = x + 1.0
    return tf.reduce_sum(x) if tf.shape(x)[1] < 2 else tf.reduce_sum(x) + compares_by_the_other_side(x[:, 1:])


def splits_unevenly(x):
    """Many sizes, and few calls in a row."""
    middle = x.shape[2] // 3 + 1
    if x.shape[2] == 1:
        return tf.reduce_sum(x * x)
    return tf.sin(splits_unevenly(x[:, :, :middle])) + splits_unevenly(x[:, :, middle:])


def makes_constant(x):
    """An operator needs to know sizes, which TensorFlow reads."""
    return tf.reduce_sum(x) if tf.shape(x)[1] < 2 else tf.reduce_sum(tf.ones(x.shape) * x) + makes_constant(x[:, 1:])


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
    [ends_at_size],
    [ends_at_length_of_rows],
    [ends_at_shape],
    [unpacks_sizes],
    [ends_at_number_of_elements],
    [goes_over_range],
    [differs_at_one_size],
    [reads_behind_a_call],
    [reads_in_a_loop],
    [reads_by_builtins],
    [reads_of_a_computed_tensor],
    [compares_by_the_other_side],
    [splits_unevenly],
    [makes_constant],
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


@pytest.mark.sampled(4)
@pytest.mark.each_value
@pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
@pytest.mark.parametrize("options", [{}, {"output_signature": tf.TensorSpec(None)}], ids=["inferred", "stated"])
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


@pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
def test_sizes_that_are_read_are_known_whatever_calls_came_before(outermost):
    @tfr.recursive
    def scaled(x, n):
        if n > 0:
            return scaled(x, n - 1)
        return x * 10.0 if x.shape[0] == 3 else x

    call = outermost(lambda *vectors: [tf.reduce_sum(scaled(vector, tf.constant(1))) for vector in vectors])
    found = call(*(tf.ones([size]) for size in (2, 3, 4, 3, 5)))
    assert [float(one) for one in found] == [2, 30, 4, 30, 5]


def test_sizes_that_nobody_reads_are_open():
    @tfr.recursive
    def doubled(x, n):
        return x * float(x.shape[1]) if n < 1 else doubled(x, n - 1)

    for size in range(1, 9):
        assert float(tf.reduce_sum(doubled(tf.ones([size, 2]), tf.constant(1)))) == 4 * size
    assert doubled.experimental_get_tracing_count() == 2


OPEN = r"size 0 of 'x' is read, as x.shape\[0\], and is None"


def test_sizes_that_a_line_unpacks_and_nobody_uses_are_open(no_warnings):
    @tfr.recursive
    def total(x):
        rows, columns = x.shape
        size = x.shape[0]  # noqa: F841
        return tf.zeros([columns]) if tf.shape(x)[0] < 1 else total(x[1:]) + x[0]

    for size in range(1, 9):
        assert total(tf.ones([size, 2])).numpy().tolist() == [size, size]
    assert total.experimental_get_tracing_count() == 2


def test_many_sizes_share_a_trace_at_last_and_the_user_is_told():
    @tfr.recursive
    def total(x):
        rows = x.shape[0]
        return tf.zeros([]) if tf.shape(x)[0] < 1 else total(x[1:]) + x[0] * (2.0 if rows == 200 else 1.0)

    with pytest.warns(RuntimeWarning, match=OPEN):
        assert total(tf.ones([200])) == 201


def test_many_sizes_of_calls_from_outside_share_a_trace_at_last_and_the_user_is_told(monkeypatch):
    monkeypatch.setattr(sharing, "_MANY_OUTSIDE", 6)

    @tfr.recursive
    def first(x, n):
        if n > 0:
            return first(x, n - 1)
        return x[0] * (2.0 if x.shape[0] == 5 else 1.0)

    with pytest.warns(RuntimeWarning, match=OPEN):
        for size in range(1, 12):
            assert first(tf.ones([size]), tf.constant(1)) == (2 if size == 5 else 1)
    assert first.experimental_get_tracing_count() < 9


@pytest.mark.thorough
def test_sizes_that_a_function_reads_in_place_of_its_caller_are_known():
    @tfr.recursive
    def total(x):
        return x[0] if x.shape[0] == 1 else total(x[:-1]) + x[-1]

    @tfr.recursive
    def mean(x):
        return total(x) / 2.0

    @tfr.recursive
    def scaled(x):
        y = tf.sin(x)
        return tf.reduce_sum(x) * (10.0 if y.shape[0] == 3 else 1.0)

    @tfr.recursive
    def rescaled(x, n):
        return scaled(x) if n < 1 else rescaled(x, n - 1)

    for size in (2, 3, 4, 3, 5):
        assert mean(tf.ones([size])) == size / 2
        assert scaled(tf.ones([size])) == rescaled(tf.ones([size]), tf.constant(2)) == (30 if size == 3 else size)


def test_sizes_that_numpy_reads_are_known():
    @tfr.recursive
    def total(x):
        if np.prod(x.shape) == 4:
            return tf.reduce_sum(x) * 10.0
        return total(x[:-1]) if tf.shape(x)[0] > 1 else tf.reduce_sum(x)

    assert [float(total(tf.ones([size, 2]))) for size in (3, 2, 1, 4)] == [40, 40, 2, 40]


@pytest.mark.thorough
def test_python_values_and_calls_in_a_graph_do_not_count_as_sizes(monkeypatch):
    monkeypatch.setattr(sharing, "_MANY_OUTSIDE", 4)

    @tfr.recursive
    def total(x, k):
        return x[0] * k if x.shape[0] == 1 else total(x[:-1], k) + x[-1] * k

    for k in range(1, 6):
        assert total(tf.ones([2]), k) == 2 * k
    assert [float(total(tf.ones([size]), 1)) for size in (3, 4)] == [3, 4]
    both = tf.function(lambda: total(tf.ones([5]), 1) + total(tf.ones([7]), 1))
    assert both() == 12


@pytest.mark.thorough
def test_given_up_callee_of_two_shapes_is_looked_at_anew():
    """The size of `y` cannot be left open; that comes out behind two calls."""

    @tfr.recursive
    def f(x, y):
        if x.shape[0] == 1:
            return tf.reduce_sum(y)
        if tf.size(y) < 100:
            return f(x[::2], y) + f(x[::2], y[1:]) + tf.reduce_sum(tf.ones(y.shape) * y)
        return tf.reduce_sum(y)

    def plain(x, y):
        return y if x == 1 else plain(x // 2, y) + plain(x // 2, y - 1) + y

    assert f(tf.ones([8]), tf.ones([8])) == plain(8, 8)


def test_condition_of_a_loop_calls_where_sizes_are_read():
    """AutoGraph builds it once more in a graph of its own, of which TensorFlow knows no function of the body's."""
    variable = tf.Variable(2.0)

    @tfr.recursive
    def is_positive(x, of_empty):
        if x.shape[0] == 0:
            return of_empty
        if tf.size(x) > 0:
            i = tf.constant(0)
            while i < 2 and is_positive(x[1:], of_empty):
                i += 1
        return variable > 0.0

    assert is_positive(tf.ones([3]), tf.constant(True))


@pytest.mark.thorough
def test_sizes_too_many_for_traces_are_an_error_that_says_so(monkeypatch):
    monkeypatch.setattr(sharing, "_VERY_MANY", 20)

    @tfr.recursive
    def common(a, b):
        """The longest common subsequence."""
        if a.shape[0] == 0 or b.shape[0] == 0:
            return tf.constant(0)
        both = common(a[1:], b[1:]) + 1
        return both if a[0] == b[0] else tf.maximum(common(a[1:], b), common(a, b[1:]))

    assert common(tf.constant([1, 2, 3]), tf.constant([2, 3, 4])) == 2
    with pytest.raises(ValueError, match="'common': its calls pass more than 20 shapes"):
        common(tf.range(5), tf.range(5))
    assert common(tf.constant([1, 2]), tf.constant([2])) == 1


@pytest.mark.thorough
def test_as_many_sizes_as_calls_from_outside_pass_have_traces_where_python_ends_the_recursion(no_warnings):
    @tfr.recursive
    def total(x):
        return x[0] if x.shape[0] == 1 else total(x[:-1]) + x[-1]

    for columns in range(1, 20):
        found = total(tf.ones([columns % 3 + 1, columns]) if columns != 18 else tf.ones([7, columns]))
        assert found.numpy().tolist() == [7 if columns == 18 else columns % 3 + 1] * columns


def test_last_of_all_sizes_may_be_read_where_the_first_ones_are_many(no_warnings):
    @tfr.recursive
    def total(x):
        n = x.shape.as_list()[-1]
        return x[:, 0] if n == 1 else total(x[:, : n // 2]) + total(x[:, n // 2 :])

    for batch in range(1, 20):
        assert total(tf.ones([batch, 4])).numpy().tolist() == [4] * batch


@pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
def test_sizes_are_open_where_one_of_them_cannot_be_built(outermost):
    """The trace for no rows would have the row of an empty matrix in it, behind the call."""

    @tfr.recursive
    def total(x):
        rows, columns = x.shape
        x = tf.reshape(x, [-1 if rows is None else rows, columns])
        if tf.shape(x)[0] == 0:
            return tf.zeros([columns])
        return total(x[1:]) + x[0]

    with pytest.warns(RuntimeWarning, match=OPEN):
        assert outermost(total)(tf.ones([5, 2])).numpy().tolist() == [5, 5]
    for size in (1, 7, 3):
        assert outermost(total)(tf.ones([size, 2])).numpy().tolist() == [size, size]


@pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
def test_calls_from_outside_of_a_size_that_cannot_be_built_by_itself_share_a_trace(outermost):
    @tfr.recursive
    def first(x, n):
        if n > 0:
            return first(x, n - 1)
        return tf.constant(-1.0) if tf.size(x) == 0 else x[0] * (2.0 if x.shape[0] == 1 else 1.0)

    call = outermost(lambda *vectors: [first(vector, tf.constant(1)) for vector in vectors])
    assert [float(one) for one in call(*(tf.ones([size]) for size in (1, 2, 0)))] == [2, 1, -1]


@pytest.mark.thorough
def test_error_of_one_call_changes_nothing_for_others(no_warnings):
    @tfr.recursive
    def halves(x):
        n = x.shape[0]
        if n == 1:
            return x[0]
        if n % 2 == 1:
            raise ValueError(f"{n} is odd")
        return halves(x[: n // 2]) + halves(x[n // 2 :])

    for size, odd in ((6, 3), (4, 0), (6, 3), (8, 0), (5, 5), (2, 0), (40, 5), (16, 0)):
        if odd:
            with pytest.raises(ValueError, match=f"{odd} is odd"):
                halves(tf.ones([size]))
        else:
            assert halves(tf.ones([size])) == size


def test_users_own_open_sizes_are_no_matter_for_a_warning(no_warnings):
    @tfr.recursive
    def first(x, n):
        return x[0] * (2.0 if x.shape[0] == 1 else 1.0) if n < 1 else first(x, n - 1)

    n = tf.constant(1)
    assert [float(first(tf.ones([size]), n)) for size in (1, 2)] == [2, 1]
    assert tf.function(lambda x: first(x, n), input_signature=[tf.TensorSpec([None])])(tf.ones([1])) == 1


def test_error_of_a_body_is_the_users_whatever_is_kept():
    @tfr.recursive
    def total(x):
        if x.shape[0] == 1:
            return x[0]
        return total(x[1:]) + tf.reshape(x, [7, 7])[0, 0]

    with pytest.raises(ValueError, match="Cannot reshape a tensor with [234] elements to shape .7,7."):
        total(tf.ones([4]))
