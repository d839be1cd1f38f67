"""Gradients of SavedModels with loops and branches around calls whose bodies read variables: they are as before."""
# SPDX-License-Identifier: Apache-2.0

import keras
import numpy as np
import pytest
import tensorflow as tf
from saved_models import LOAD, in_fresh_process

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

XS = [[0.5, -0.25], [1.0, 0.75], [-0.5, 0.125]]


class Net(tf.Module):
    """A recursive function that multiplies with a weight, one that looks up in a table, and a loop around calls."""

    def __init__(self, program):
        super().__init__()
        self.weight = tf.Variable([[0.5, 0.25], [-0.25, 0.75]])
        self.table = tf.Variable([[0.5, 1.0], [0.25, -0.5], [1.5, 0.5]])
        self._program = program

    @tfr.recursive
    def descend(self, x, n):
        if n < 1:
            return x
        return tf.tanh(tf.linalg.matvec(self.weight, self.descend(x, n - 1)))

    @tfr.recursive
    def look_up(self, x, n):
        if n < 1:
            return x * tf.gather(self.table, n)
        return tf.sin(tf.linalg.matvec(self.weight, self.look_up(x, n - 1))) + tf.gather(self.table, n)

    @tf.function
    def helper(self, x, n):
        return self.descend(x, n) * self.weight[0]

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def call(self, xs):
        return self._program(self, xs)


def mapped(net, xs):
    return tf.map_fn(lambda x: net.descend(x, 2), xs)


def scanned(net, xs):
    return tf.scan(lambda before, x: net.descend(before + x, 2), xs)


def loop(net, xs):
    total = tf.zeros([2])
    for i in tf.range(tf.shape(xs)[0]):
        total += net.descend(xs[i], i)
    return total


def not_recursive(net, xs):
    scale = tfr.recursive(lambda x: tf.linalg.matvec(net.weight, x) ** 2)
    return tf.map_fn(lambda x: scale(x), xs)


def loop_in_condition(net, xs):
    return loop(net, xs) if tf.reduce_sum(xs) > 0.0 else tf.zeros([2])


def condition_in_loop(net, xs):
    total = tf.zeros([2])
    for x in xs:
        if x[0] > 0.0:
            total += net.descend(x, 2)
    return total


def choice_in_loop(net, xs):
    choices = [lambda: net.descend(xs[0], 2), lambda: net.look_up(xs[1], 1), lambda: net.descend(xs[2], 1)]
    return tf.map_fn(lambda i: tf.switch_case(i, choices), tf.range(3), fn_output_signature=tf.TensorSpec([2]))


def nested_loops(net, xs):
    total = tf.zeros([2])
    for x in xs:
        for n in tf.range(2):
            total += net.descend(x * total + x, n + 1)
    return total


def loop_in_condition_in_loop(net, xs):
    total = tf.zeros([2])
    for x in xs:
        if x[0] > 0.0:
            total += loop(net, xs * x)
    return total


def vectorized(net, xs):
    return tf.vectorized_map(lambda x: net.descend(x, 2), xs)


def gathering(net, xs):
    return tf.map_fn(lambda x: net.look_up(x, 2), xs)


def two_functions(net, xs):
    return tf.map_fn(lambda x: net.look_up(net.descend(x, 2), 1), xs)


def through_function(net, xs):
    return tf.map_fn(lambda x: net.helper(x, 2), xs)


def reading_it_too(net, xs):
    return tf.map_fn(lambda x: tf.linalg.matvec(net.weight, net.descend(x, 2)), xs)


PROGRAMS = [
    mapped,
    scanned,
    loop,
    not_recursive,
    loop_in_condition,
    condition_in_loop,
    choice_in_loop,
    nested_loops,
    loop_in_condition_in_loop,
    vectorized,
    gathering,
    two_functions,
    through_function,
    reading_it_too,
]
# Those of which eager tapes in tapes do not take second derivatives before saving, either.
FIRST_ORDER = (choice_in_loop, gathering, two_functions)


def orders_of(net, order):
    """The function's value, and its derivatives by the input and the variables up to an order, as tensors."""
    xs = tf.constant(XS)
    inputs = [xs, net.weight, net.table]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        found = [net.call(xs)] if order == 1 else orders_of(net, order - 1)[1:]
        total = sum(tf.reduce_sum(one**2) for one in found)
    slopes = tape.gradient(total, inputs, unconnected_gradients="zero")
    return [total, *map(tf.convert_to_tensor, slopes)]


def check_orders(loaded, net, orders):
    """Checks derivatives of what was loaded against those of what was saved, in eager mode and in a tf.function."""
    for order in orders:
        expected = orders_of(net, order)
        assert np.abs(expected[2]).min() > 0.0  # every program multiplies with the weight
        for compute in (orders_of, tf.function(orders_of)):
            for one, expected_one in zip(compute(loaded, order), expected, strict=True):
                np.testing.assert_allclose(one, expected_one, rtol=1e-4, atol=1e-5)


@pytest.mark.full_matrix
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_derivatives_are_as_before_saving(tmp_path, program):
    """What was loaded can be saved once more."""
    net = Net(program)
    tf.saved_model.save(net, str(tmp_path / "once"))
    loaded = tf.saved_model.load(str(tmp_path / "once"))
    check_orders(loaded, net, (1,) if program in FIRST_ORDER else (1, 2))
    tf.saved_model.save(loaded, str(tmp_path / "again"))
    check_orders(tf.saved_model.load(str(tmp_path / "again")), net, (1,))


@pytest.mark.thorough
def test_gradient_of_loop_in_fresh_process(tmp_path):
    net = Net(mapped)
    tf.saved_model.save(net, str(tmp_path))
    program = f"""
with tf.GradientTape() as tape:
    total = tf.reduce_sum(module.call(tf.constant({XS})) ** 2)
print(json.dumps(tape.gradient(total, module.weight).numpy().tolist()))
"""
    np.testing.assert_allclose(in_fresh_process(LOAD + program, str(tmp_path)), orders_of(net, 1)[2], rtol=1e-5)


class Trees(keras.layers.Layer):
    """Applies a layer of its own as often as there are levels, to each row of a batch by itself."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(2, activation="tanh")

    def build(self, _shape):
        self.dense.build((None, 2))

    @tfr.recursive
    def descend(self, x, n):
        if n < 1:
            return x
        return self.dense(self.descend(x, n - 1))

    def call(self, xs):
        return tf.map_fn(lambda x: self.descend(x[None], 2)[0], xs)


@pytest.mark.thorough
def test_layer_with_loop_over_the_batch_is_trained_on_after_export(tmp_path):
    model = keras.Sequential([keras.Input((2,)), Trees(), keras.layers.Dense(1)])
    model.export(str(tmp_path), verbose=False)
    loaded = tf.saved_model.load(str(tmp_path))

    def slopes(function, variables):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(function(tf.constant(XS)) ** 2)
        return tape.gradient(loss, variables)

    expected = slopes(model, model.trainable_variables)
    for compute in (slopes, tf.function(slopes)):
        found = compute(loaded.serve, loaded.trainable_variables)
        for one, expected_one in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, expected_one, rtol=1e-4, atol=1e-6)


def test_variable_of_which_nothing_is_known_is_an_error_that_says_what_to_do():
    with tf.Graph().as_default() as graph:

        @tfr.Defun(tf.float32, tf.resource, func_name="Scale")
        def scale(x, handle):
            return x * tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)

        scale(tf1.placeholder(tf.float32, [], "x"), tf1.placeholder(tf.resource, [], "handle"))

    def slope(x, handle):
        inputs = {"x:0": x, "handle:0": handle}
        [y] = tf.graph_util.import_graph_def(graph.as_graph_def(), inputs, ["Scale:0"])
        return tf.gradients(y, x)

    message = "Function 'Scale' cannot be differentiated: .* a handle that came without the variable's dtype"
    with pytest.raises(LookupError, match=message):
        tf.function(slope, autograph=False).get_concrete_function(
            tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.resource)
        )
