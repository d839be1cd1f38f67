"""Keras' `fit` of the TreeLSTM of examples/keras_treelstm.py against a plain training loop over the same batches."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks import treebank
from benchmarks.figures import Figure
from benchmarks.harness import WrongResult

keras = tf.keras

FIT_OVER_LOOP = 1.3

TREES, QUICK_TREES = 500, 100
UNITS, BATCH, RATE = 150, 25, 0.05
SEED = 20260101
# The optimizer needs about as many to have learned which labels are frequent.
_EPOCHS_BEFORE = 2


def figure(repeats: int, quick: bool) -> Figure:
    """Epochs by `fit` and epochs by the loop, in turns; their medians' ratio.

    Raises:
      WrongResult: one of the two does not learn.
    """
    example = _example()
    trees = treebank.generate_split("train", QUICK_TREES if quick else TREES)
    words = treebank.vocabulary(trees)
    batches = example.make_dataset(trees, words, BATCH, True).cache()
    epochs = {name: make(example, len(words) + 1, batches) for name, make in (("fit", _by_fit), ("loop", _by_loop))}
    seconds: dict[str, list[float]] = {name: [] for name in epochs}
    losses: dict[str, list[float]] = {name: [] for name in epochs}
    for number in range(_EPOCHS_BEFORE + repeats):
        for name, epoch in epochs.items():
            start = time.perf_counter()
            losses[name].append(epoch())
            if number >= _EPOCHS_BEFORE:
                seconds[name].append(time.perf_counter() - start)
    for name, found in losses.items():
        if not found[-1] < found[0]:
            raise WrongResult(f"TreeLSTM by {name}: expected a loss that falls, got {found}")
    ratio = statistics.median(seconds["fit"]) / statistics.median(seconds["loop"])
    return Figure("Keras' fit of the TreeLSTM over a plain training loop", ratio, FIT_OVER_LOOP, " times")


def _example() -> ModuleType:
    path = Path(__file__).resolve().parents[1] / "examples" / "keras_treelstm.py"
    spec = importlib.util.spec_from_file_location("keras_treelstm", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _by_fit(example: ModuleType, vocabulary_size: int, batches: tf.data.Dataset) -> Callable[[], float]:
    keras.utils.set_random_seed(SEED)
    model = example.make_model(vocabulary_size, UNITS, RATE)

    def epoch() -> float:
        return float(model.fit(batches, verbose=0).history["loss"][-1])

    return epoch


def _by_loop(example: ModuleType, vocabulary_size: int, batches: tf.data.Dataset) -> Callable[[], float]:
    """The loop that one writes without `fit`: a step in a tf.function, with a tape, for each batch."""
    keras.utils.set_random_seed(SEED)
    model = example.make_model(vocabulary_size, UNITS, RATE)
    optimizer, weights = model.optimizer, model.trainable_variables
    optimizer.build(weights)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def step(forest: Any, labels: Any) -> tf.Tensor:
        with tf.GradientTape() as tape:
            outputs = model(forest, training=True)
            loss = loss_of(labels["nodes"], outputs["nodes"]) + tf.add_n(model.losses)
        optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    # With open lengths from the start, as `fit` has them: there is one trace for batches of all sizes.
    compiled = tf.function(step, input_signature=batches.element_spec)

    def epoch() -> float:
        return float(np.mean([compiled(forest, labels).numpy() for forest, labels in batches]))

    return epoch
