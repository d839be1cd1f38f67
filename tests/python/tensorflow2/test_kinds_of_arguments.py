"""For which kinds of arguments `tfr.recursive` makes functions, how many, and for which objects."""
# SPDX-License-Identifier: Apache-2.0

import threading
import warnings

import attr
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

import tensorflow_recursion as tfr
from tensorflow_recursion.argument_kinds import endless

THREADS = 6
MANY = 70  # more than a recursion may unroll


@attr.s
class Node:
    value = attr.ib()
    weight = attr.ib()


@pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
def test_attrs_classes_are_taken_and_returned(outermost):
    @tfr.recursive
    def descend(node, n):
        if n < 1:
            return node
        return descend(Node(node.value * node.weight, node.weight + 1.0), n - 1)

    got = outermost(lambda value, n: descend(Node(value, tf.constant(2.0)), n))(
        tf.constant([1.0, 10.0]), tf.constant(3)
    )
    assert isinstance(got, Node)
    assert got.value.numpy().tolist() == [24.0, 240.0]
    assert got.weight.numpy() == 5.0


def test_attrs_classes_are_taken_by_signature():
    spec = Node(tf.TensorSpec([None], tf.float32), tf.TensorSpec([], tf.float32))

    @tfr.recursive(input_signature=[spec, tf.TensorSpec([], tf.int32)], output_signature=spec)
    def descend(node, n):
        if n < 1:
            return node
        return descend(Node(node.value * node.weight, node.weight), n - 1)

    for values in ([1.0], [1.0, 2.0]):
        got = descend(Node(tf.constant(values), tf.constant(3.0)), tf.constant(2))
        np.testing.assert_allclose(got.value, 9.0 * np.array(values))
    assert descend.experimental_get_tracing_count() == 1


@pytest.fixture
def scaled():
    @tfr.recursive
    def scaled(x, factor):
        if x < 1.0:
            return x * factor
        return scaled(x / 2.0, factor)

    return scaled


@pytest.mark.full_matrix
def test_many_kinds_of_arguments_are_taken_one_beside_the_other(scaled):
    @tf.function
    def total(x):
        return tf.add_n([scaled(x, factor) for factor in range(MANY)])

    assert total(tf.constant(1.0)).numpy() == 0.5 * sum(range(MANY))


@pytest.mark.full_matrix
def test_many_kinds_of_arguments_are_taken_in_another_body(scaled):
    @tfr.recursive
    def total(x, n):
        if n < 1:
            return x
        return tf.add_n([scaled(x, factor) for factor in range(MANY)]) + total(x, n - 1) * 0.0

    assert total(tf.constant(1.0), tf.constant(2)).numpy() == 0.5 * sum(range(MANY))


def test_recursion_unrolled_by_a_python_value_ends():
    @tfr.recursive
    def power(x, n):
        if n == 0:
            return tf.ones_like(x)
        return x * power(x, n - 1)

    assert power(tf.constant(2.0), 20).numpy() == 2.0**20


@pytest.mark.each_value
@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_stated", [False, True], ids=["found out", "stated"])
@pytest.mark.parametrize("is_mutual", [False, True], ids=["self", "mutual"])
def test_endless_kinds_of_arguments_are_an_error(is_stated, is_mutual):
    recursive = tfr.recursive(output_signature=tf.TensorSpec([], tf.float32)) if is_stated else tfr.recursive

    @recursive
    def deeper(x, depth):
        if x < 1.0:
            return x
        return (other if is_mutual else deeper)(x - 1.0, depth + "x")

    @recursive
    def other(x, depth):
        if x < 1.0:
            return x
        return deeper(x - 1.0, depth + "x")

    with pytest.raises(TypeError, match=r"Call of '(deeper|other)'.*other kinds of arguments.*tf\.constant\(n\)"):
        deeper(tf.constant(3.0), "x")


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor

    @tfr.recursive
    def power(self, n):
        if n < 1:
            return tf.constant(1.0)
        return self.factor * self.power(n - 1)


class SlottedWithReferences(Slotted):
    __slots__ = ("__weakref__",)


def test_objects_with_slots_have_methods_if_they_can_be_referred_to():
    twos, threes = SlottedWithReferences(2.0), SlottedWithReferences(3.0)
    assert [each.power(tf.constant(3)).numpy() for each in (twos, threes)] == [8.0, 27.0]


def test_objects_without_room_for_references_are_an_error_that_says_what_to_add():
    message = "Function 'power' is a method of a Slotted, .*__slots__, add '__weakref__'"
    with pytest.raises(TypeError, match=message):
        Slotted(2.0).power(tf.constant(3))


class Plain:
    def __init__(self, traces):
        self.traces = traces

    @tfr.recursive
    def count(self, n):
        self.traces.append(n)
        return tf.cond(n < 1, lambda: n, lambda: 1 + self.count(n - 1))


def function(traces):
    @tfr.recursive
    def count(n):
        traces.append(n)
        return tf.cond(n < 1, lambda: n, lambda: 1 + count(n - 1))

    return count


def method(traces):
    plain = Plain(traces)
    return lambda n: plain.count(n)


@pytest.mark.parametrize("make", [function, method], ids=lambda make: make.__name__)
def test_first_calls_of_several_threads_trace_as_often_as_one(make):
    alone = []
    make(alone)(tf.constant(5))
    traces, results, start = [], [], threading.Barrier(THREADS)
    count = make(traces)

    def call():
        start.wait()
        results.append(int(count(tf.constant(5))))

    in_threads(call)
    assert results == [5] * THREADS
    assert len(traces) == len(alone)


def test_first_gradients_of_several_threads_are_those_of_one():
    v = tf.Variable(2.0)
    results, start = [], threading.Barrier(THREADS)

    @tfr.recursive
    def power(x, n):
        if n < 1:
            return x
        return v * power(x, n - 1)

    def differentiate():
        x = tf.constant(3.0)
        start.wait()
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = power(x, tf.constant(4))
        results.append([float(gradient) for gradient in tape.gradient(y, [x, v])])

    in_threads(differentiate)
    assert results == [[16.0, 96.0]] * THREADS


def in_threads(function):
    def run():
        with context.eager_mode():  # other threads begin as the tests do, without
            function()

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_stated", [False, True])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_gradient_is_of_the_body_for_the_shapes_that_it_is_traced_for(length, is_stated):
    """The last call passes an empty vector, for which alone the body makes no sense."""
    table = tf.Variable([[1.0], [10.0], [100.0]])
    seen = set()

    @tfr.recursive(input_signature=[tf.TensorSpec([None], tf.int32)] if is_stated else None)
    def weighed(rows):
        seen.add(str(rows.shape))  # rows.shape[0], where Python reads it, would be known in each trace
        if tf.size(rows) == 0:
            return tf.zeros([1])
        return tf.gather(table, rows[0]) + 2.0 * weighed(rows[1:])

    for outermost in (lambda function: function, tf.function):
        with tf.GradientTape() as tape:
            y = outermost(lambda rows: weighed(rows))(tf.range(length))
        got = tf.convert_to_tensor(tape.gradient(y, table))
        assert got.numpy().ravel().tolist() == [2.0**i if i < length else 0.0 for i in range(3)]
    assert seen <= ({"(None,)"} if is_stated else {"(None,)", f"({length},)", f"({length - 1},)"})


@tfr.recursive
def powers_of(weights, n):
    if n == 0:
        return tf.ones([2])
    return weights["scale"] * powers_of(weights, n - 1) + tf.gather(weights["table"], n)


@tfr.recursive
def powers_in_branches(weights, n):
    def step():
        return weights["scale"] * powers_in_branches(weights, n - 1) + tf.gather(weights["table"], n)

    return tf.cond(tf.equal(n, 0), lambda: tf.ones([2]), step)


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize("is_compiled", [False, True], ids=["eager", "tf_function"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("function", [powers_of, powers_in_branches])
def test_variables_are_arguments_of_calls_under_any_tape(function, order, is_compiled):
    scale, table = tf.Variable(2.0), tf.Variable(tf.reshape(tf.range(8.0), [4, 2]))

    def unrolled():
        result = tf.ones([2])
        for n in range(1, 4):
            result = scale * result + tf.gather(table, n)
        return result

    def gradients(value):
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_sum(value() ** 2)
            if order == 2:
                with tf.GradientTape() as inner:
                    loss = tf.reduce_sum(value() ** 2)
                loss += sum(tf.reduce_sum(tf.convert_to_tensor(g) ** 2) for g in inner.gradient(loss, [scale, table]))
            loss += tf.reduce_sum(table)  # read outside of the call, too
        return [tf.convert_to_tensor(tape.gradient(loss, variable)) for variable in (scale, table)]

    def called():
        return gradients(lambda: function({"scale": scale, "table": table}, tf.constant(3)))

    called = tf.function(called) if is_compiled else called
    expected = gradients(unrolled)
    for _ in range(3):  # a second call finds what the first one has traced
        for got, want in zip(called(), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_calls_of_other_ranks_are_of_other_kinds():
    @tfr.recursive
    def halved(x, n):
        return x if n < 1 else halved(x, n - 1) / 2.0

    shapes = []

    @tf.function
    def call(*tensors):
        shapes.extend(halved(tensor, tf.constant(1)).shape.as_list() for tensor in tensors)

    call(*map(tf.ones, ([2, 3], [], [4], [5])))
    assert shapes == [[2, 3], [], [4], [None]]


@pytest.mark.parametrize("kind", [tf.identity, tf.sparse.from_dense], ids=["dense", "sparse"])
@pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
def test_body_knows_the_rank_whatever_calls_came_before(outermost, kind):
    @tfr.recursive
    def rank_and_rows(x, n):
        if n > 0:
            return rank_and_rows(x, n - 1)
        if x.shape.rank == 1:
            return 1, tf.shape(x)[0]
        return 2, tf.shape(x)[0]

    call = outermost(lambda *tensors: [rank_and_rows(kind(tensor), tf.constant(1)) for tensor in tensors])
    found = call(*map(tf.ones, ([2, 3], [3], [4], [5, 2], [6], [7, 7])))
    assert [(int(rank), int(rows)) for rank, rows in found] == [(2, 2), (1, 3), (1, 4), (2, 5), (1, 6), (2, 7)]
    assert rank_and_rows.experimental_get_tracing_count() == 4


def read_rank(x):
    return x.shape.rank


def read_ndims(x):
    return x.get_shape().ndims


def read_nothing(x):
    return tf.rank(tf.squeeze(x))


@pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])
@pytest.mark.parametrize("read", [read_rank, read_ndims, read_nothing])
def test_reading_a_rank_that_a_recursion_leaves_open_is_a_warning_once(read, outermost):
    @tfr.recursive
    def scaled(x):
        if tf.rank(x) == 0:
            return x
        if read(x) == 2 and read(x) == 2:
            x = x * 10.0
        return scaled(x[0])

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call = outermost(lambda x: scaled(x))
        call(tf.ones([1, 1, 1]))
        call(tf.ones([2, 1, 1]))
    told = [str(one.message) for one in found if "rank" in str(one.message)]
    assert len(told) == (0 if read is read_nothing else 1)
    for text in told:
        line = read.__code__.co_firstlineno + 1
        assert text.startswith(f"Function 'scaled' (test_kinds_of_arguments.py, line {line}): the rank of 'x' is read")
        assert "tf.rank(x)" in text and "input_signature" in text


@pytest.mark.parametrize("signature", [[tf.TensorSpec(None)], [tf.TensorSpec([None, None])]], ids=["any", "two"])
def test_reading_a_rank_that_the_user_states_is_no_warning(signature):
    @tfr.recursive(input_signature=[*signature, tf.TensorSpec([], tf.int32)])
    def scaled(x, n):
        if n < 1 or read_rank(x) == 1:
            return x
        return scaled(x * 2.0, n - 1)

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert scaled(tf.ones([1, 1]), tf.constant(2)).numpy().tolist() == [[4.0]]


@pytest.mark.thorough
def test_calls_may_pass_more_and_fewer_arguments_than_those_before():
    @tfr.recursive
    def total(n, *rest, **named):
        if n < 1:
            return sum(rest) + sum(named.values())
        return total(n - 1, *rest, more=rest[0]) + total(n - 1, *rest[1:], rest[0])

    n, x = tf.constant(2), tf.constant(1.0)
    assert [float(total(n, x, *[x] * more, **dict.fromkeys("ab", x))) for more in (0, 2, 1)] == [6.0, 14.0, 10.0]


def test_number_of_arguments_that_grows_is_an_error_that_says_so(monkeypatch):
    monkeypatch.setattr(endless, "_MAX_UNROLLED", 3)

    @tfr.recursive
    def total(n, *rest):
        return sum(rest) if n < 1 else total(n - 1, *rest, *rest[:1])

    with pytest.raises(tfr.errors.CallError, match=r"here is another one \(with 5 arguments, and with 4 before\)"):
        total(tf.constant(2), tf.constant(1.0))
