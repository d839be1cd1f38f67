"""Trains a TreeLSTM in Keras to tell how positive sentences, and all of their phrases, are.

    python examples/keras_treelstm.py [--sst DIR] [--epochs N] [--units N] [--threads N] [--quick] [--out DIR]

Every sentence is a binary tree of phrases. The layer walks it by two calls of itself: a word's state comes from its
vector, that of a phrase from those of its two parts (Tai, Socher, Manning 2015). Each state is classified: from very
negative (0) to very positive (4). Everything around the layer is plain Keras: tf.data, compile, fit, callbacks, save.
A batch is a forest: the nodes of its trees, one tree after the other. Without --sst it makes up a treebank.

Against learning the treebank by heart: dropout on the words' vectors and on what is classified, l2, and rare words that
are taken for unknown ones now and then, which also teaches what an unknown word says (docs/keras.md has results).
"""
# SPDX-License-Identifier: Apache-2.0

import argparse
import importlib.util
import os
import sys
import time
from collections import Counter
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras
import numpy as np
import tensorflow as tf

import tensorflow_recursion as tfr

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for the treebank, which is not installed
from benchmarks import treebank

CLASSES, NEUTRAL = treebank.NUM_CLASSES, 2
SEED = 7
QUICK_TREES = 200
DROPOUT, VECTOR_DROPOUT = 0.5, 0.3
L2 = 3e-6  # the loss is a mean over some 37 nodes a tree: about 1e-4 a tree
UNKNOWN = 0.5  # a word that occurs n times is taken for an unknown one in UNKNOWN / (UNKNOWN + n) of the cases

FOREST = {"words": tf.int32, "left": tf.int32, "right": tf.int32, "is_leaf": tf.bool, "roots": tf.int32}


@keras.saving.register_keras_serializable("examples")
class TreeLSTM(keras.layers.Layer):
    """The states of all nodes of a forest, `[nodes, units]`, tree after tree, each in post-order."""

    def __init__(self, vocabulary_size, units, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size, self.units, self.dropout = vocabulary_size, units, dropout

    def build(self, _shapes):
        units, l2 = self.units, keras.regularizers.L2(L2)
        self.embeddings = self.add_weight(
            (self.vocabulary_size, units), keras.initializers.RandomUniform(-0.1, 0.1, seed=SEED), name="embeddings"
        )
        self.leaf_kernel = self.add_weight((units, 2 * units), "glorot_uniform", regularizer=l2, name="leaf_kernel")
        self.leaf_bias = self.add_weight((2 * units,), "zeros", name="leaf_bias")
        self.kernel = self.add_weight((2 * units, 5 * units), "glorot_uniform", regularizer=l2, name="kernel")
        self.bias = self.add_weight((5 * units,), "zeros", name="bias")

    @tfr.recursive
    def states(self, i, words, left, right, is_leaf, training):
        """The hidden state and the cell of node `i`, and the hidden states of all nodes below and at it."""
        if tf.gather(is_leaf, i):
            x = tf.gather(tf.convert_to_tensor(self.embeddings), tf.gather(words, [i]))
            if training:  # a Python value: there is a trace for training, and one for all else
                x = tf.nn.dropout(x, self.dropout)
            c, o = tf.split(tf.matmul(x, self.leaf_kernel) + self.leaf_bias, 2, axis=1)
            h = tf.sigmoid(o) * tf.tanh(c)
            return h, c, h
        left_h, left_c, left_rows = self.states(tf.gather(left, i), words, left, right, is_leaf, training)
        right_h, right_c, right_rows = self.states(tf.gather(right, i), words, left, right, is_leaf, training)
        z = tf.matmul(tf.concat([left_h, right_h], 1), self.kernel) + self.bias
        gates, u = tf.split(z, [4 * self.units, self.units], axis=1)
        i_gate, left_gate, right_gate, o = tf.split(tf.sigmoid(gates), 4, axis=1)
        c = i_gate * tf.tanh(u) + left_gate * left_c + right_gate * right_c
        h = o * tf.tanh(c)
        return h, c, tf.concat([left_rows, right_rows, h], 0)

    @tfr.recursive
    def forest(self, first, last, roots, words, left, right, is_leaf, training):
        """The states of the trees from the first up to, not including, the last: those of each half, side by side."""
        if last - first < 2:
            return self.states(tf.gather(roots, first), words, left, right, is_leaf, training)[2]
        middle = (first + last) // 2
        return tf.concat(
            [
                self.forest(first, middle, roots, words, left, right, is_leaf, training),
                self.forest(middle, last, roots, words, left, right, is_leaf, training),
            ],
            0,
        )

    def call(self, forest, training=False):
        parts = [forest[name] for name in ("roots", "words", "left", "right", "is_leaf")]
        return self.forest(0, tf.size(forest["roots"]), *parts, bool(training))

    def compute_output_shape(self, _shapes):
        return (None, self.units)

    def get_config(self):
        own = {"vocabulary_size": self.vocabulary_size, "units": self.units, "dropout": self.dropout}
        return {**super().get_config(), **own}


@keras.saving.register_keras_serializable("examples")
class Sentences(keras.layers.Layer):
    """The rows of the roots: of all nodes' logits, those of whole sentences."""

    def call(self, logits, roots):
        return tf.gather(logits, roots)

    def compute_output_shape(self, logits_shape, roots_shape):
        return logits_shape


class BinaryAccuracy(keras.metrics.Mean):
    """The share of sentences that are not neutral whose side, negative or positive, is found."""

    def update_state(self, labels, logits, sample_weight=None):
        probabilities = tf.nn.softmax(logits)
        is_positive = tf.reduce_sum(probabilities[:, 3:], 1) > tf.reduce_sum(probabilities[:, :2], 1)
        labels = tf.reshape(labels, [-1])
        right = tf.cast(tf.equal(is_positive, labels > NEUTRAL), tf.float32)
        super().update_state(right, sample_weight=tf.cast(tf.not_equal(labels, NEUTRAL), tf.float32))


def make_model(vocabulary_size, units, rate):
    inputs = {name: keras.Input((), dtype=dtype.name, name=name) for name, dtype in FOREST.items()}
    states = TreeLSTM(vocabulary_size, units, VECTOR_DROPOUT)(inputs)
    states = keras.layers.Dropout(DROPOUT)(states)
    nodes = keras.layers.Dense(CLASSES, kernel_regularizer=keras.regularizers.L2(L2), name="nodes")(states)
    sentences = Sentences(name="sentences")(nodes, inputs["roots"])
    model = keras.Model(inputs, {"nodes": nodes, "sentences": sentences})
    model.compile(
        optimizer=keras.optimizers.Adagrad(rate, initial_accumulator_value=1e-6, epsilon=1e-8),
        loss={"nodes": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "sentences": None},
        metrics={"sentences": [keras.metrics.SparseCategoricalAccuracy(name="five"), BinaryAccuracy(name="two")]},
    )
    return model


def make_dataset(trees, words, batch, for_training):
    """A dataset of forests of `batch` trees, and the labels of their nodes and sentences.

    For training the trees are shuffled, and now and then a word is an unknown one.
    """
    counts = Counter(word for tree in trees for word in tree.leaves())
    unknown = np.zeros(len(words) + 1)
    for word, number in words.items():
        unknown[number] = UNKNOWN / (UNKNOWN + counts[word]) if for_training else 0.0

    def forests():
        order = np.random.permutation(len(trees)) if for_training else np.arange(len(trees))
        for start in range(0, len(trees), batch):
            forest = treebank.to_forest([trees[i] for i in order[start : start + batch]], words)
            values = {name: getattr(forest, name) for name in FOREST}
            is_unknown = np.random.random(len(forest)) < unknown[forest.words]
            values["words"] = np.where(is_unknown, treebank.UNKNOWN_WORD, forest.words)
            yield values, forest.labels, forest.labels[forest.roots]

    vector = {name: tf.TensorSpec([None], dtype) for name, dtype in FOREST.items()}
    labels = tf.TensorSpec([None], tf.int32)
    dataset = tf.data.Dataset.from_generator(forests, output_signature=(vector, labels, labels))
    dataset = dataset.map(lambda forest, nodes, sentences: (forest, {"nodes": nodes, "sentences": sentences}))
    return dataset.prefetch(tf.data.AUTOTUNE)


def load(directory, is_quick):
    """The trees of each split."""
    counts = dict(zip(treebank.SPLITS, (QUICK_TREES, 40, 40) if is_quick else (8544, 1101, 2210), strict=True))
    if directory is None:
        return {split: treebank.generate_split(split, count) for split, count in counts.items()}
    return {split: treebank.load_split(directory, split)[:count] for split, count in counts.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sst", type=Path, metavar="DIR", help="Stanford Sentiment Treebank (train, dev, test)")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--units", type=int, default=150)
    parser.add_argument("--batch", type=int, default=25, help="trees of a step")
    parser.add_argument("--rate", type=float, default=0.05, help="Adagrad's learning rate")
    parser.add_argument("--threads", type=int, default=0, help="most threads of an operator, and operators at a time")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_TREES} trees, two epochs")
    parser.add_argument("--out", type=Path, default=Path("keras_treelstm"), help="where model and logs go")
    options = parser.parse_args()
    if options.quick:
        options.epochs = min(options.epochs, 2)
    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(options.threads)
    keras.utils.set_random_seed(SEED)
    trees = load(options.sst, options.quick)
    words = treebank.vocabulary(trees["train"])
    train, dev, test = (make_dataset(trees[split], words, options.batch, split == "train") for split in treebank.SPLITS)
    model = make_model(len(words) + 1, options.units, options.rate)
    best = options.out / "model.keras"
    options.out.mkdir(parents=True, exist_ok=True)
    callbacks = [
        keras.callbacks.ModelCheckpoint(best, monitor="val_sentences_five", mode="max", save_best_only=True),
        keras.callbacks.EarlyStopping(monitor="val_sentences_five", mode="max", patience=2),
    ]
    if importlib.util.find_spec("tensorboard"):
        callbacks.append(keras.callbacks.TensorBoard(options.out / "logs"))
    start = time.perf_counter()
    epochs = model.fit(train, validation_data=dev, epochs=options.epochs, callbacks=callbacks, verbose=2).epoch
    print(f"{len(epochs)} epochs in {(time.perf_counter() - start) / 60:.1f} minutes")
    model = keras.models.load_model(best, custom_objects={"BinaryAccuracy": BinaryAccuracy})
    found = model.evaluate(test, verbose=0, return_dict=True)
    print(f"test: five classes {found['sentences_five']:.1%}, two classes {found['sentences_two']:.1%}")


if __name__ == "__main__":
    main()
