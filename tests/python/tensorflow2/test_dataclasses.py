"""Dataclasses as arguments and results of recursive functions: nests of their fields."""
# SPDX-License-Identifier: Apache-2.0

import dataclasses
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

OUTERMOST = pytest.mark.parametrize("outermost", [lambda function: function, tf.function], ids=["eager", "tf.function"])


@dataclasses.dataclass
class State:
    x: tf.Tensor
    n: tf.Tensor


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: tf.Tensor
    n: tf.Tensor


@dataclasses.dataclass(slots=True)
class Slots:
    x: tf.Tensor
    n: tf.Tensor = dataclasses.field(default_factory=lambda: tf.constant(3))


@dataclasses.dataclass
class OwnMethods:
    x: tf.Tensor
    n: tf.Tensor
    factor: float = 2.0

    def __tf_flatten__(self):
        return (self.factor,), (self.x, self.n)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(*components, *metadata)


@dataclasses.dataclass
class Outer:
    state: State
    factor: float
    rest: list


@dataclasses.dataclass(frozen=True)
class Config:
    factor: int


@dataclasses.dataclass
class Result:
    x: tf.Tensor
    n: tf.Tensor


@dataclasses.dataclass
class Mode:
    x: tf.Tensor
    training: bool = False
    mask: Any = None


class OwnNest:
    """A class of the user's own, whose Python value is one of its parts."""

    def __init__(self, x, training=False, mask=None):
        self.x, self.training, self.mask = x, training, mask

    def __tf_flatten__(self):
        return (), (self.x, self.training, self.mask)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(*components)


@dataclasses.dataclass
class Weights:
    kernel: tf.Variable
    bias: tf.Variable


@tfr.recursive
def doubled(state):
    if state.n < 1:
        return state
    return doubled(dataclasses.replace(state, x=state.x * 2.0, n=state.n - 1))


@tfr.recursive
def in_another(outer):
    if outer.state.n < 1:
        return outer.state.x + outer.rest[0]
    return in_another(Outer(State(outer.state.x * outer.factor, outer.state.n - 1), outer.factor, outer.rest))


@tfr.recursive
def by_config(x, n, config):
    if n < 1:
        return x
    return by_config(x * float(config.factor), n - 1, config)


@tfr.recursive
def made_in_branches(x, n):
    if n < 1:
        return Result(x, n)
    result = made_in_branches(x * 2.0, n - 1)
    return Result(result.x + 1.0, result.n)


@pytest.mark.parametrize("kind", [State, Frozen, Slots, OwnMethods])
@OUTERMOST
def test_argument_and_result(kind, outermost):
    def value_and_slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = doubled(kind(x, tf.constant(3)))
            assert type(result) is kind
        return result.x, result.n, tape.gradient(result.x, x)

    np.testing.assert_allclose(outermost(value_and_slope)(tf.constant(1.5)), [12.0, 0.0, 8.0])


@OUTERMOST
def test_dataclass_in_another_beside_python_values(outermost):
    program = outermost(lambda x: in_another(Outer(State(x, tf.constant(2)), 3.0, [x])))
    assert float(program(tf.constant(1.0))) == 10.0


@OUTERMOST
def test_new_dataclass_in_one_that_calls_have_passed_before(outermost):
    @dataclasses.dataclass
    class New(State):
        pass

    @dataclasses.dataclass
    class Unrelated:
        x: tf.Tensor
        n: tf.Tensor

    @tfr.recursive
    def halved(outer):
        if outer.state.n < 1:
            return outer.state.x
        state = outer.state
        return halved(dataclasses.replace(outer, state=dataclasses.replace(state, x=state.x / 2.0, n=state.n - 1)))

    def of_each(x):
        return [halved(Outer(kind(x, tf.constant(2)), 1.0, [])) for kind in (State, New, Unrelated)]

    assert list(map(float, outermost(of_each)(tf.constant(8.0)))) == [2.0, 2.0, 2.0]


@OUTERMOST
def test_dataclass_with_a_hash_is_one_object(outermost):
    assert float(outermost(lambda x: by_config(x, tf.constant(2), Config(3)))(tf.constant(1.0))) == 9.0
    assert not hasattr(Config, "__tf_flatten__")


@OUTERMOST
def test_result_that_branches_make(outermost):
    result = outermost(made_in_branches)(tf.constant(1.0), tf.constant(3))
    assert (type(result), float(result.x), int(result.n)) == (Result, 11.0, 0)


@OUTERMOST
def test_variables(outermost):
    weights = Weights(tf.Variable(2.0), tf.Variable(1.0))

    @tfr.recursive
    def power(x, n, weights):
        if n < 1:
            return x
        return power(x * weights.kernel + weights.bias, n - 1, weights)

    def gradients(x):
        with tf.GradientTape() as tape:
            y = power(x, tf.constant(2), weights)  # (x k + b) k + b
        return y, *tape.gradient(y, [weights.kernel, weights.bias])

    np.testing.assert_allclose(outermost(gradients)(tf.constant(1.0)), [7.0, 5.0, 3.0])


@OUTERMOST
def test_signatures(outermost):
    @dataclasses.dataclass
    class Pair:
        x: tf.Tensor
        n: tf.Tensor

    spec = Pair(tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32))

    @tfr.recursive(input_signature=[spec], output_signature=spec)
    def power(pair):
        if pair.n < 1:
            return pair
        return power(Pair(pair.x * 2.0, pair.n - 1))

    assert float(outermost(lambda x: power(Pair(x, tf.constant(3))))(tf.constant(1.0)).x) == 8.0


@OUTERMOST
def test_body_that_returns_another_dataclass_than_stated_is_an_error(outermost):
    spec = State(tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32))

    @tfr.recursive(output_signature=spec)
    def other(x, n):
        return Result(x, n)

    with pytest.raises(TypeError, match="'other' returns Result.*output_signature states State"):
        outermost(other)(tf.constant(1.0), tf.constant(3))


IN_ANOTHER = {
    "itself": lambda mode: mode,
    "in a tuple": lambda mode: (1, mode),
    "in a dictionary": lambda mode: {"mode": mode},
    "in a dataclass": lambda mode: Outer(mode, 1.0, [mode.x]),
}
OUT_OF_ANOTHER = {
    "itself": lambda nest: nest,
    "in a tuple": lambda nest: nest[1],
    "in a dictionary": lambda nest: nest["mode"],
    "in a dataclass": lambda nest: nest.state,
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("where", IN_ANOTHER)
@pytest.mark.parametrize("kind", [Mode, OwnNest])
@OUTERMOST
def test_python_fields_differ_from_call_to_call(outermost, kind, where):
    @tfr.recursive
    def scaled(nest, n):
        mode = OUT_OF_ANOTHER[where](nest)
        if n < 1:
            return mode.x if mode.mask is None else mode.x * mode.mask
        return (2.0 if mode.training else 3.0) * scaled(nest, n - 1)

    def call(x, mask):
        modes = [(x,), (x, True), (x[:1], True), (x, True, mask), (x, False, mask), (x[:1], False, mask[:1])]
        return [scaled(IN_ANOTHER[where](kind(*fields)), tf.constant(2)) for fields in modes]

    got = outermost(call)(tf.constant([1.0, 2.0]), tf.constant([0.0, 1.0]))
    assert [one.numpy().tolist() for one in got] == [[9.0, 18.0], [4.0, 8.0], [4.0], [0.0, 8.0], [0.0, 18.0], [0.0]]


@OUTERMOST
def test_python_field_counts_the_calls_of_a_recursion(outermost):
    @dataclasses.dataclass
    class Counted:
        x: tf.Tensor
        depth: int = 0

    @tfr.recursive
    def doubled_thrice(counted):
        if counted.depth == 3:
            return counted.x
        return doubled_thrice(dataclasses.replace(counted, x=counted.x * 2.0, depth=counted.depth + 1))

    assert float(outermost(lambda x: doubled_thrice(Counted(x)))(tf.constant(1.0))) == 8.0
