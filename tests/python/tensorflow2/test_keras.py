"""Keras layers and models whose `call` runs a recursive function over trees: training, prediction, saving."""
# SPDX-License-Identifier: Apache-2.0

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

WORDS, UNITS, TREES, NODES = 10, 4, 16, 5


class TreeRNN(keras.layers.Layer):
    """The state of the root of each tree: [trees, 3, nodes] of words, left and right children -> [trees, units]."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, shape):
        units = self.units
        self.embedding = self.add_weight(shape=(WORDS, units), name="embedding")
        self.kernel = self.add_weight(shape=(2 * units, units), name="kernel")
        self.bias = self.add_weight(shape=(units,), name="bias", initializer="zeros")
        layer, index, nodes = self, tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.int32)

        @tfr.recursive(input_signature=[index, *[nodes] * 3], output_signature=tf.TensorSpec([1, units], tf.float32))
        def state(i, word, left, right):
            if word[i] >= 0:
                return tf.gather(tf.convert_to_tensor(layer.embedding), [word[i]])
            children = [state(left[i], word, left, right), state(right[i], word, left, right)]
            return tf.tanh(tf.matmul(tf.concat(children, 1), layer.kernel) + layer.bias)

        self.state = state

    def call(self, trees):
        spec = tf.TensorSpec([self.units], tf.float32)
        return tf.map_fn(lambda tree: self.state(0, tree[0], tree[1], tree[2])[0], trees, fn_output_signature=spec)

    def compute_output_shape(self, shape):
        return (shape[0], self.units)

    def get_config(self):
        return {**super().get_config(), "units": self.units}


class UnrolledRNN(TreeRNN):
    """The same without recursion, for the one form of trees that `data` has."""

    def build(self, shape):
        super().build(shape)

        def state(_, word, left, right):
            a, b, c = (tf.gather(tf.convert_to_tensor(self.embedding), [word[i]]) for i in (3, 4, 2))
            ab = tf.tanh(tf.matmul(tf.concat([a, b], 1), self.kernel) + self.bias)
            return tf.tanh(tf.matmul(tf.concat([ab, c], 1), self.kernel) + self.bias)

        self.state = state


class Subclassed(keras.Model):
    def __init__(self, layer=TreeRNN):
        super().__init__()
        self.trees, self.classes = layer(UNITS), keras.layers.Dense(2)

    def call(self, trees):
        return self.classes(self.trees(trees))


def functional(layer=TreeRNN):
    trees = keras.Input((3, NODES), dtype="int32")
    return keras.Model(trees, keras.layers.Dense(2)(layer(UNITS)(trees)))


MODELS = {"functional": functional, "subclassed": Subclassed}


@pytest.fixture(scope="module")
def data():
    """Trees ((a b) c), and whether their words are many."""
    words = np.random.default_rng(0).integers(0, WORDS, (TREES, 3)).astype(np.int32)
    trees = np.zeros((TREES, 3, NODES), np.int32)
    trees[:, 0, :2] = -1
    trees[:, 0, 2:] = words
    trees[:, 1, :2] = [1, 3]
    trees[:, 2, :2] = [2, 4]
    return trees, (words.sum(axis=1) > 13).astype(np.int32)


def states_by_hand(layer, trees):
    """What the layer is to return, by plain operators."""
    embedding, kernel, bias = (np.asarray(weight) for weight in (layer.embedding, layer.kernel, layer.bias))

    def state(tree, i):
        if tree[0, i] >= 0:
            return embedding[tree[0, i]]
        return np.tanh(np.concatenate([state(tree, tree[1, i]), state(tree, tree[2, i])]) @ kernel + bias)

    return np.stack([state(tree, 0) for tree in trees])


def trained(make, data, eagerly=False):
    keras.utils.set_random_seed(1)
    model = make()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.05), loss, run_eagerly=eagerly, jit_compile=False)
    history = model.fit(*data, epochs=3, batch_size=8, shuffle=False, verbose=0)
    return model, history.history["loss"]


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", MODELS)
def test_model_is_trained_as_without_recursion_compiled_and_eagerly(kind, data):
    # An optimizer may do other things with rows of a gradient, which eager mode has, than with the whole.
    for eagerly in (True, False):
        compiled, losses = trained(MODELS[kind], data, eagerly)
        _, unrolled_losses = trained(functools.partial(MODELS[kind], UnrolledRNN), data, eagerly)
        np.testing.assert_allclose(losses, unrolled_losses, rtol=1e-4)
        assert losses[-1] < losses[0]
    layer = next(layer for layer in compiled.layers if isinstance(layer, TreeRNN))
    np.testing.assert_allclose(layer(data[0]), states_by_hand(layer, data[0]), atol=1e-5)
    dense = compiled.layers[-1]
    predicted = compiled.predict(data[0], verbose=0)
    np.testing.assert_allclose(predicted, dense(states_by_hand(layer, data[0])), atol=1e-5)
    expected = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(data[1], predicted)
    np.testing.assert_allclose(compiled.evaluate(*data, verbose=0), expected, rtol=1e-4)


def test_training_moves_the_weights_that_bodies_capture(data):
    keras.utils.set_random_seed(1)
    model = functional()
    before = [weight.numpy() for weight in model.trainable_weights]
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, jit_compile=False)
    model.fit(tf.data.Dataset.from_tensor_slices(data).batch(4), verbose=0)
    assert len(before) == 5
    assert all(np.any(old != new.numpy()) for old, new in zip(before, model.trainable_weights, strict=True))


@pytest.mark.thorough
def test_model_is_saved_and_loaded(data, tmp_path):
    model, _ = trained(functional, data)
    expected = model.predict(data[0], verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    model.export(tmp_path / "exported", verbose=False)
    loaded = keras.models.load_model(tmp_path / "model.keras", custom_objects={"TreeRNN": TreeRNN})
    other = functional()
    other.load_weights(tmp_path / "model.weights.h5")
    exported = tf.saved_model.load(str(tmp_path / "exported"))
    for found in (loaded.predict(data[0], verbose=0), other.predict(data[0], verbose=0), exported.serve(data[0])):
        np.testing.assert_allclose(found, expected, atol=1e-6)
    losses = loaded.fit(*data, epochs=3, batch_size=8, verbose=0).history["loss"]
    assert losses[-1] < losses[0]


@pytest.mark.thorough
def test_subclassed_model_on_integers_is_exported_for_the_inputs_that_are_stated(data, tmp_path):
    """Keras takes them for float32 else, of which a body, or a model without recursion, cannot make indices."""
    for layer in (TreeRNN, UnrolledRNN):
        model, _ = trained(functools.partial(Subclassed, layer), data)
        path = str(tmp_path / layer.__name__)
        model.export(path, input_signature=[tf.TensorSpec([None, 3, NODES], tf.int32)], verbose=False)
        exported = tf.saved_model.load(path)
        np.testing.assert_allclose(exported.serve(data[0]), model.predict(data[0], verbose=0), atol=1e-6)


@pytest.fixture
def as_with_gpu(monkeypatch):
    """Lets Keras decide as where there is a GPU."""
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda *_: [tf.config.PhysicalDevice("/gpu:0", "GPU")])


@pytest.mark.thorough
@pytest.mark.parametrize("jit_compile", [True, "auto"])
def test_compilation_by_xla_is_an_error_that_says_what_to_do(jit_compile, data, as_with_gpu):
    model = functional()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, jit_compile=jit_compile)
    says = "XLA has no form for .*; write jit_compile=False in Model.compile of Keras, which compiles by default where"
    for run in (lambda: model.fit(*data, verbose=0), lambda: model.predict(data[0], verbose=0)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=says) as error:
            run()
        assert "leave out" not in str(error.value)


@pytest.mark.thorough
def test_model_with_a_layer_that_says_so_is_not_compiled_by_default(data, as_with_gpu):
    def layer(units):
        made = TreeRNN(units)
        made.supports_jit = False
        return made

    model = functional(layer)
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    assert np.all(np.isfinite(model.fit(*data, verbose=0).history["loss"]))


class WithWeightAsArgument(tf.keras.layers.Layer):
    def build(self, shape):
        self.weight = self.add_weight(shape=(3, 3), name="weight")

    @tfr.recursive
    def encode(self, n, x, weight):
        if n < 1:
            return x
        return tf.tanh(self.encode(n - 1, x, weight) @ weight)

    def call(self, x):
        return self.encode(tf.constant(2), x, self.weight)


@pytest.mark.sampled(2)
@pytest.mark.thorough
@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_weights_of_keras_may_be_arguments(policy):
    layer = WithWeightAsArgument(dtype=policy)
    model = tf.keras.Sequential([layer])
    model.compile("sgd", "mse", jit_compile=False)
    x = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
    eager = model(x)
    before = np.array(layer.weight)
    np.testing.assert_allclose(model.predict(x, verbose=0), eager, rtol=1e-2 if policy != "float32" else 1e-5)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.cast(model(x), tf.float32) - x))
    expected = before - 0.01 * tape.gradient(loss, layer.weight.value)
    model.fit(x, x, batch_size=8, epochs=1, verbose=0)
    np.testing.assert_allclose(layer.weight, expected, rtol=1e-2 if policy != "float32" else 1e-5)


@keras.saving.register_keras_serializable("tests")
@tfr.recursive(input_signature=[tf.TensorSpec(None)], output_signature=tf.TensorSpec(None))
def halved(x):
    return tf.cond(tf.reduce_max(tf.abs(x)) < 0.125, lambda: x, lambda: halved(x / 2.0))


@tfr.recursive
def doubled(x):
    return x * 2.0


class WithMethod:
    @tfr.recursive
    def tripled(self, x):
        return x * 3.0


def saved_and_loaded(layer, path, **options):
    """What a model of one layer gives before it is saved, and after it is loaded."""
    model, x = keras.Sequential([keras.Input((2,)), layer]), tf.constant([[1.0, 2.0]])
    model.compile("sgd", halved, metrics=[halved], jit_compile=False)
    model.save(path / "model.keras")
    loaded = keras.models.load_model(path / "model.keras", **options)
    assert loaded.loss is halved
    return model(x).numpy(), loaded(x).numpy()


@pytest.mark.parametrize(
    "make",
    [
        lambda: keras.layers.Dense(3, activation=halved, kernel_regularizer=halved, bias_constraint=halved),
        lambda: keras.layers.Activation(halved),
        lambda: keras.layers.Lambda(halved),
    ],
)
def test_recursive_functions_in_layers_are_saved_by_name_as_python_functions_are(make, tmp_path):
    before, after = saved_and_loaded(make(), tmp_path)
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("function", [doubled, WithMethod().tripled])
def test_saved_function_that_keras_does_not_know_is_given_by_name(function, tmp_path):
    before, after = saved_and_loaded(
        keras.layers.Activation(function), tmp_path, custom_objects={function.__name__: function}
    )
    np.testing.assert_array_equal(before, after)
    with pytest.raises(TypeError, match=f"Keras knows no function '{function.__name__}'.*register_keras_serializable"):
        saved_and_loaded(keras.layers.Activation(function), tmp_path)


@pytest.mark.parametrize("kind", ["activations", "constraints", "initializers", "losses", "metrics", "regularizers"])
def test_keras_finds_recursive_functions_by_what_it_made_of_them(kind):
    module = getattr(keras, kind)
    assert module.deserialize(module.serialize(halved)) is halved
    assert module.get(module.serialize(halved)) is halved


class BuiltByFit(keras.Model):
    """A model that Keras builds where it first calls it: in the graph of a step, with tensors of that graph."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(2)

    @tfr.recursive
    def repeat(self, x, n):
        if n < 1:
            return x
        return self.dense(self.repeat(x, n - 1))

    def call(self, x):
        return self.repeat(x, tf.constant(2))


@pytest.mark.thorough
def test_model_that_fit_has_built_is_loaded_with_its_weights(tmp_path):
    model, x = BuiltByFit(), np.ones((4, 2), np.float32)
    model.compile("sgd", "mse", jit_compile=False)
    model.fit(x, x, verbose=0)
    assert model.get_build_config() == {"input_shape": (None, 2)}
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras", custom_objects={"BuiltByFit": BuiltByFit})
    np.testing.assert_array_equal(loaded(x), model(x))
