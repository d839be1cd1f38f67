"""What a Keras layer knows while it is called holds in recursive functions of the layer, whenever they are traced."""
# SPDX-License-Identifier: Apache-2.0

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

ROWS = np.ones([50, 20], np.float32)


class Dropping(tf.keras.layers.Layer):
    """Drops half of its input, if it trains: says so to `Dropout` by Keras' own means alone."""

    def __init__(self):
        super().__init__()
        self.drop = tf.keras.layers.Dropout(0.5, seed=1)

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1],), initializer="ones")

    @tfr.recursive
    def times(self, x, n):
        if n == 0:
            return x
        return self.drop(self.times(x, n - 1)) * self.w

    def call(self, x):
        return self.times(x, tf.constant(1))


class Multiplying(tf.keras.layers.Layer):
    """The product of its input and of three times its weights."""

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1], shape[-1]), initializer="orthogonal")

    @tfr.recursive
    def times(self, x, n):
        if n == 0:
            return x
        return tf.matmul(self.times(x, n - 1), self.w)

    def call(self, x):
        return self.times(x, tf.constant(3))


def dropped(rows):
    return float(np.mean(np.asarray(rows) == 0))


def in_place(f, place):
    return tf.function(f) if place == "tf.function" else f


PLACES = pytest.mark.parametrize("place", ["eager", "tf.function"])


def assert_step_drops_half(layer, place):
    """A step in training drops about half of the numbers, and its gradient is that of what is left."""

    def step():
        with tf.GradientTape() as tape:
            y = layer(ROWS, training=True)
            loss = tf.reduce_sum(y)
        return y, tape.gradient(loss, layer.w)

    y, gradient = in_place(step, place)()
    assert 0.3 < dropped(y) < 0.7
    np.testing.assert_allclose(gradient, tf.reduce_sum(y, axis=0), rtol=1e-6)


@pytest.mark.each_value
@PLACES
def test_layers_drop_in_a_step_with_a_tape(place):
    layer = Dropping()
    assert_step_drops_half(layer, place)


@pytest.mark.each_value
@PLACES
def test_training_and_inference_are_different_functions(place):
    layer = Dropping()
    trained, inferred = in_place(lambda: (layer(ROWS, training=True), layer(ROWS, training=False)), place)()
    assert dropped(trained) > 0.3
    assert dropped(inferred) == 0


@pytest.mark.each_value
@pytest.mark.parametrize("kind", [int, np.bool_, tf.constant])
def test_training_need_not_be_a_bool(kind):
    layer = Dropping()
    layer(ROWS)  # in the call that builds layers, Keras makes symbols of tensors
    assert dropped(layer(ROWS, training=kind(False))) == 0
    assert dropped(layer(ROWS, training=kind(True))) > 0.3


class DroppingOnce(Dropping):
    """Drops its input, and has another `Dropout` let it through, which ends training for what comes after it."""

    @tfr.recursive
    def times(self, x, n):
        if n == 0:
            return x
        y = self.drop(self.times(x, n - 1) * self.w)
        return self.drop(y, training=False)


@pytest.mark.each_value
@PLACES
def test_what_one_trace_tells_layers_does_not_reach_the_next(place):
    layer = DroppingOnce()
    layer.build(ROWS.shape)
    assert_step_drops_half(layer, place)


@pytest.mark.thorough
def test_layers_are_gone_after_their_last_use():
    layer = Dropping()
    layer(ROWS, training=True)
    gone = weakref.ref(layer)
    del layer
    gc.collect()
    assert gone() is None


@PLACES
def test_stateless_calls_read_what_each_is_given(place):
    layer = Multiplying()
    layer.build([None, 2])
    x = tf.ones([1, 2])

    def calls(one, other):
        with tf.GradientTape() as tape:
            tape.watch(other)
            found = [layer.stateless_call([w], [], x)[0] for w in (one, other)]
            loss = tf.reduce_sum(found[1])
        return *found, tape.gradient(loss, other)

    first, second, gradient = in_place(calls, place)(tf.eye(2), 2 * tf.eye(2))
    np.testing.assert_array_equal([first, second], [[[1, 1]], [[8, 8]]])
    np.testing.assert_array_equal(gradient, np.full([2, 2], 12))
    np.testing.assert_allclose(layer(x), x @ layer.w @ layer.w @ layer.w, rtol=1e-6)


def test_stateless_call_cannot_take_new_values_from_a_body():
    layer = Dropping()
    layer.build(ROWS.shape)

    @tfr.recursive
    def dropping(x):
        return layer.drop(x, training=True)

    layer.call = dropping
    values = [[one.value for one in some] for some in (layer.trainable_variables, layer.non_trainable_variables)]
    with pytest.raises(NotImplementedError, match="Function 'dropping' assigns to Keras variables .*StatelessScope"):
        layer.stateless_call(*values, ROWS)


@pytest.mark.each_value
def test_functional_model_that_always_drops():
    x = tf.keras.Input([ROWS.shape[1]])
    model = tf.keras.Model(x, Dropping()(x, training=True))
    assert 0.3 < dropped(model(ROWS)) < 0.7


@PLACES
def test_gradients_of_mixed_precision(place):
    layer = Multiplying(dtype="mixed_float16")
    layer.build([None, 4])

    def step(net):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.cast(net(ROWS[:2, :4]), tf.float32))
        return tape.gradient(y, layer.trainable_weights)

    def unrolled(x):
        half = tf.cast(layer.w, tf.float16)
        return tf.cast(x, tf.float16) @ half @ half @ half

    (gradient,) = in_place(step, place)(layer)
    assert gradient.dtype == tf.float32
    np.testing.assert_allclose(gradient, step(unrolled)[0], rtol=1e-2, atol=1e-2)


def test_fit_in_mixed_precision():
    layer = Multiplying(dtype="mixed_float16")
    model = tf.keras.Sequential([tf.keras.Input([4]), layer])
    model.compile("sgd", "mse", jit_compile=False)
    before = layer.w.numpy()
    history = model.fit(ROWS[:, :4], ROWS[:, :4], epochs=3, verbose=0).history["loss"]
    assert history[-1] < history[0]
    assert not np.allclose(layer.w.numpy(), before)


class Counting(tf.keras.layers.Layer):
    """Notes in a metric how deep calls are."""

    def __init__(self):
        super().__init__()
        self.depth = tf.keras.metrics.Mean("depth")

    def build(self, shape):
        self.w = self.add_weight(shape=(), initializer="ones")

    @tfr.recursive
    def times(self, x, n):
        self.depth.update_state(tf.cast(n, tf.float32))
        if n == 0:
            return x
        return self.times(x * self.w, n - 1)

    def call(self, x):
        return self.times(x, tf.constant(3))


@pytest.mark.thorough
def test_metrics_in_bodies_of_functional_models():
    """Keras looks for the shape of what the layer returns in a scope where variables are tensors."""
    layer = Counting()
    inputs = tf.keras.Input((20,))
    model = tf.keras.Model(inputs, layer(inputs))
    model.compile("sgd", "mse", jit_compile=False)
    np.testing.assert_allclose(model(ROWS), ROWS)
    assert float(layer.depth.result()) == 1.5
    model.fit(ROWS, 0 * ROWS, verbose=0)
    assert float(layer.w) < 1
