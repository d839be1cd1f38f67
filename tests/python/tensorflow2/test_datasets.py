"""Recursive functions in datasets: of a tf.function, in the function of another dataset, through a tf.function."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import nested_derivative

import tensorflow_recursion as tfr

I64 = tf.int64
FIB = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]


@pytest.fixture
def fib():
    @tfr.recursive(input_signature=[tf.TensorSpec([], I64)])
    def fib(n):
        if n < 2:
            return n
        return fib(n - 1) + fib(n - 2)

    return fib


def numbers(dataset):
    return [int(n) for n in dataset.as_numpy_iterator()]


def total(dataset):
    return dataset.reduce(tf.constant(0, I64), lambda a, b: a + b)


def in_a_function(fib):
    """The dataset of a dataset's function."""
    inner = lambda n: tf.data.Dataset.range(n + 1).map(lambda m: fib(m))
    expected = [FIB[m] for n in range(5) for m in range(n + 1)]
    return tf.data.Dataset.range(5).flat_map(inner), expected


def summed_up_in_a_function(fib):
    """A dataset that is read where it is made, in the function of another one's function."""
    inner = lambda n: tf.data.Dataset.range(n + 1).map(lambda m: total(tf.data.Dataset.range(m + 1).map(fib)))
    expected = [sum(FIB[: m + 1]) for n in range(5) for m in range(n + 1)]
    return tf.data.Dataset.range(5).flat_map(inner), expected


def in_parallel(fib):
    inner = lambda n: tf.data.Dataset.range(n + 1).map(fib, num_parallel_calls=2)
    expected = [FIB[m] for n in range(5) for m in range(n + 1)]
    read = tf.data.Dataset.range(5).interleave(inner, cycle_length=1, num_parallel_calls=1)
    return read.filter(lambda n: fib(n) >= 0).batch(2).unbatch(), expected


def through_a_tf_function(fib):
    """The call is in a function that was traced before, and for itself."""
    called = tf.function(lambda n: fib(n), input_signature=[tf.TensorSpec([], I64)])
    called(tf.constant(3, I64))
    inner = lambda n: tf.data.Dataset.range(n + 1).map(lambda m: called(m))
    return tf.data.Dataset.range(4).map(lambda n: total(inner(n))), [sum(FIB[: n + 1]) for n in range(4)]


def differentiated(fib):
    @tfr.recursive(input_signature=[tf.TensorSpec([]), tf.TensorSpec([], I64)])
    def power(x, n):
        if n < 1:
            return tf.constant(1.0)
        return x * power(x, n - 1)

    def slope(n):
        x = tf.constant(2.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = power(x, n)
        return tf.cast(tape.gradient(y, x), I64)

    return tf.data.Dataset.range(4).map(lambda n: total(tf.data.Dataset.range(n + 1).map(slope))), [0, 1, 5, 17]


@pytest.mark.each_value
@pytest.mark.sampled(2)
@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize(
    "make",
    [in_a_function, summed_up_in_a_function, in_parallel, through_a_tf_function, differentiated],
    ids=lambda make: make.__name__,
)
def test_functions_of_datasets(make, fib, static):
    with tfr.config.static_execution(static):
        dataset, expected = make(fib)
        assert numbers(dataset) == expected
        options = tf.data.Options()
        options.experimental_optimization.apply_default_optimizations = False
        assert numbers(dataset.with_options(options)) == expected
        assert int(tf.function(lambda: total(make(fib)[0]))()) == sum(expected)


def each(fib):
    def each(k):
        result = tf.constant(0, I64)
        for n in tf.data.Dataset.range(k):
            result += fib(n)
        return result

    return each, sum


def until(fib):
    def until(k):
        result = tf.constant(0, I64)
        for n in tf.data.Dataset.range(k).map(fib):
            if n > 5:
                break
            result += n
        return result

    return until, lambda fibs: sum(n for n in fibs if n <= 5)


def reduced(fib):
    def reduced(k):
        return tf.data.Dataset.range(k).map(fib).reduce(tf.constant(0, I64), lambda a, b: a + fib(b % 5))

    return reduced, lambda fibs: sum(FIB[n % 5] for n in fibs)


@pytest.mark.every_program
@pytest.mark.parametrize("make", [each, until, reduced], ids=lambda make: make.__name__)
def test_datasets_of_a_tf_function(make, fib):
    function, expected = make(fib)
    function = tf.function(function)
    for k in (9, 4):
        assert int(function(tf.constant(k, I64))) == expected(FIB[:k])


@tfr.recursive(input_signature=[tf.TensorSpec([], I64)])
def checked(n):
    tf.debugging.assert_less(n, tf.constant(4, I64))  # in the body
    if n < 1:
        tf.debugging.assert_equal(n, tf.constant(0, I64))  # in the branch
        return n
    return checked(n - 1)


@tfr.recursive(input_signature=[tf.TensorSpec([], I64)])
def gathered(n):
    row = tf.gather([1, 2, 3], n)  # needed in a branch alone
    if n < 1:
        return n
    return gathered(n - 1) + tf.cast(row, I64)


FAILURES = {
    "in the body": (checked, 4),
    "in the branch": (checked, -1),
    "needed in a branch alone": (gathered, 3),
}
READERS = {
    "map": lambda data, f: list(data.map(f)),
    "map in parallel": lambda data, f: list(data.map(f, num_parallel_calls=tf.data.AUTOTUNE)),
    "filter": lambda data, f: list(data.filter(lambda n: f(n) > 0)),
    "interleave": lambda data, f: list(data.interleave(lambda n: tf.data.Dataset.from_tensors(n).map(f))),
    "reduce": lambda data, f: data.reduce(tf.constant(0, I64), lambda total, n: total + f(n)),
    "the first one": lambda data, f: next(iter(data.map(f))),
    "a single one": lambda data, f: data.map(f).get_single_element(),
    "in a tf.function": lambda data, f: tf.function(lambda: data.map(f).reduce(tf.constant(0, I64), tf.add))(),
}


@pytest.mark.each_value
@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_static", [True, False])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("place", FAILURES)
def test_errors_name_the_line_of_python(place, reader, is_static):
    function, n = FAILURES[place]
    with tfr.config.static_execution(is_static), pytest.raises(tf.errors.InvalidArgumentError) as failure:
        READERS[reader](tf.data.Dataset.from_tensors(tf.constant(n, I64)), lambda n: function(n))
    message = str(failure.value)
    detected = message.partition("Detected at node")[2].partition("\nNode:")[0].rstrip().split("\n")
    assert f"# {place}" in detected[-1], message
    assert f"in {function.__name__}" in detected[-2], message
    assert message.count("Detected at node") == 1


def mapped(fib):
    return tf.data.Dataset.range(8).map(fib).prefetch(1)


def read_in_a_function(fib):
    return tf.data.Dataset.range(8).flat_map(lambda n: tf.data.Dataset.range(3).map(fib))


def in_a_branch_of_a_filter(fib):
    return tf.data.Dataset.range(8).filter(lambda n: tf.cond(n > 2, lambda: fib(n) > 2, lambda: True)).batch(2)


def beside_others(fib):
    return tf.data.Dataset.zip((tf.data.Dataset.range(8), tf.data.Dataset.range(8).map(fib)))


@pytest.mark.parametrize("make", [mapped, read_in_a_function, in_a_branch_of_a_filter, beside_others])
def test_snapshots_are_errors_that_say_what_to_do(make, fib, tmp_path):
    """TensorFlow ended the process."""
    with pytest.raises(NotImplementedError, match=r"Dataset.snapshot .* recursive functions.*dataset.save"):
        make(fib).snapshot(str(tmp_path))

    @tf.function
    def count():
        return make(fib).snapshot(str(tmp_path)).reduce(tf.constant(0, I64), lambda count, *_: count + 1)

    with pytest.raises(NotImplementedError, match=r"Dataset.snapshot .* recursive functions"):
        count()


def test_fingerprints_are_errors_that_say_what_to_do(fib):
    """TensorFlow ended the process."""
    numbers = tf.data.Dataset.range(8)
    with pytest.raises(NotImplementedError, match=r"Dataset.fingerprint .* recursive functions.*before the recursive"):
        numbers.map(fib).batch(2).fingerprint()
    assert numbers.fingerprint() != numbers.batch(2).fingerprint()


def test_datasets_are_kept_in_files(fib, tmp_path):
    """A snapshot before the calls, and what stands in place of one behind them."""
    path = str(tmp_path / "snapshot")
    read = tf.data.Dataset.range(8).map(lambda n: n + 1).snapshot(path, shard_func=lambda n: fib(n) % 2).map(fib)
    assert [sorted(numbers(read)) for _ in range(2)] == [FIB[1:9]] * 2
    cached = tf.data.Dataset.range(8).map(fib).cache(str(tmp_path / "cache"))
    assert [numbers(cached) for _ in range(2)] == [FIB[:8]] * 2
    tf.data.Dataset.range(8).map(fib).save(str(tmp_path / "saved"))
    assert numbers(tf.data.Dataset.load(str(tmp_path / "saved"))) == FIB[:8]


def test_iterators_are_kept_in_checkpoints_where_options_allow_it(fib, tmp_path):
    dataset, path = tf.data.Dataset.range(8).map(fib), str(tmp_path / "checkpoint")
    with pytest.raises(tf.errors.FailedPreconditionError, match="recursive functions.*external_state_policy.*IGNORE"):
        tf.train.Checkpoint(iterator=iter(dataset)).save(path)
    options = tf.data.Options()
    options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.IGNORE
    iterator = iter(dataset.with_options(options))
    next(iterator)
    checkpoint = tf.train.Checkpoint(iterator=iterator)
    saved = checkpoint.save(path)
    assert [int(n) for n in iterator] == FIB[1:8]
    checkpoint.restore(saved)
    assert [int(n) for n in iterator] == FIB[1:8]


def test_saved_models_have_datasets_that_their_functions_make(fib, tmp_path):
    module, dataset = tf.Module(), tf.data.Dataset.range(8).map(fib)
    module.dataset = dataset
    zero = tf.constant(0, I64)
    module.total = tf.function(lambda: module.dataset.reduce(zero, lambda a, b: a + b), input_signature=[])
    with pytest.raises(tf.errors.FailedPreconditionError, match="SavedModel cannot have it as an attribute"):
        tf.saved_model.save(module, str(tmp_path))
    module = tf.Module()
    module.total = tf.function(
        lambda: tf.data.Dataset.range(8).map(fib).reduce(tf.constant(0, I64), lambda a, b: a + b), input_signature=[]
    )
    tf.saved_model.save(module, str(tmp_path))
    assert int(tf.saved_model.load(str(tmp_path)).total()) == sum(FIB[:8])


# It is chance which functions the optimizers of a dataset lower before they come to others that hold them, so there are
# several. What must come of each of them is in tests/cc/expand/hold_calls_test.cc.
@pytest.mark.full_matrix
def test_gradients_of_loops_with_functions_of_weights_are_static(static_or_error):
    for _ in range(4):
        weight = tf.Variable([[0.5, -0.25], [0.125, 1.0]])
        layer = tf.function(lambda x, w: tf.tanh(x @ w))

        @tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([1, 2])])
        def net(n, x):
            if n > 0:
                for _ in tf.range(2):
                    x = layer(net(n - 1, x), weight)
            return x

        def gradient(_):
            with tf.GradientTape() as tape:
                y = net(2, tf.ones([1, 2]))
            return tape.gradient(y, weight)

        expected = gradient(0).numpy()
        for found in tf.data.Dataset.range(2).map(gradient, num_parallel_calls=2):
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def sum_of(dataset):
    total = tf.constant(0.0)
    for element in dataset:
        total += element
    return total


def reads_a_captured_dataset(define):
    dataset = tf.data.Dataset.from_tensor_slices([1.0, 0.5])

    @define
    def function(n, x):
        y = sum_of(dataset) * tf.sin(x)
        return y if n < 1 else function(n - 1, y)

    return function


def reads_it_in_a_branch(define):
    dataset = tf.data.Dataset.from_tensor_slices([1.0, 0.5]).map(lambda a: a * 2.0)

    @define
    def function(n, x):
        return sum_of(dataset) * x * x if n < 1 else tf.sin(function(n - 1, x))

    return function


def is_given_one(define):
    dataset = tf.data.Dataset.from_tensor_slices([1.0, 0.5])

    @define
    def inner(n, x, data):
        y = sum_of(data) * tf.sin(x)
        return y if n < 1 else inner(n - 1, y, data)

    return lambda n, x: inner(n, x, dataset)


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
@pytest.mark.parametrize("make", [reads_a_captured_dataset, reads_it_in_a_branch, is_given_one])
def test_derivatives_of_functions_that_read_datasets(make, outermost):
    """A dataset has no gradient, and no zeros like it either."""

    def derivatives(function, n):
        return lambda x: [nested_derivative(lambda x: function(n, x), x, order) for order in range(3)]

    x = tf.constant(0.3)
    found = outermost(derivatives(make(tfr.recursive), tf.constant(2)))(x)
    np.testing.assert_allclose(found, derivatives(make(lambda body: body), 2)(x), rtol=1e-5)
