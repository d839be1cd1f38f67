"""Keeps TensorFlow from walking without end through functions of datasets that call recursive functions."""
# SPDX-License-Identifier: Apache-2.0

import functools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.data.ops import snapshot_op
from tensorflow.python.data.ops.dataset_ops import DatasetV2
from tensorflow.python.eager.polymorphic_function import atomic_function

from tensorflow_recursion._tf import functions
from tensorflow_recursion._tf.replacements import replace_for_good

_MARK = "_tf_data_function"


def hide_from_optimizer(call: str) -> None:
    """Take the mark `_tf_data_function` off dataset functions in which the operator `call` calls functions.

    Grappler spreads that mark over everything such a function calls, and the optimizer of dataset graphs goes into
    marked functions without looking where it has been: with a recursive one among them the stack overflows and the
    process dies. Unmarked functions run the same; Grappler optimizes them with the graph, not with the dataset.

    It is taken off when the function is made, so that no library has it with the mark: not the graph in which the
    dataset stands, not that of an outer dataset's function, and not the process's, where tf.functions find theirs.
    """
    make = atomic_function.from_func_graph

    def make_unmarked(name: Any, graph: tf.Graph, attrs: Any, *args: Any, **kwargs: Any) -> Any:
        if attrs and _MARK in attrs and functions.holds(graph, call):
            attrs = {key: value for key, value in attrs.items() if key != _MARK}
        return make(name, graph, attrs, *args, **kwargs)

    replace_for_good(atomic_function, "from_func_graph", make_unmarked)


def refuse_fingerprints(call: str) -> None:
    """Let fingerprints of datasets be errors where functions of the dataset call functions by the operator `call`.

    TensorFlow computes a number from the dataset's graph, for `Dataset.fingerprint`, and for `Dataset.snapshot` to know
    a snapshot again. For that it goes into functions without looking where it has been: with a recursive one the stack
    overflows and the process dies.
    """
    snapshot_instead = (
        "put the recursive ones behind the snapshot, or keep the dataset by dataset.cache(filename), or by "
        "dataset.save(path) and tf.data.Dataset.load(path)"
    )
    snapshot = _refusing(call, snapshot_op._snapshot, "snapshot", snapshot_instead)
    replace_for_good(snapshot_op, "_snapshot", snapshot)
    fingerprint_instead = "take the fingerprint of the dataset before the recursive ones are mapped over it"
    fingerprint = _refusing(call, DatasetV2.fingerprint, "fingerprint", fingerprint_instead)
    replace_for_good(DatasetV2, "fingerprint", fingerprint)


def _refusing(call: str, original: Callable[..., Any], method: str, instead: str) -> Callable[..., Any]:
    """`original`, which takes the fingerprint of a dataset, with an error for datasets with the operator `call`."""

    @functools.wraps(original)
    def checked(dataset: Any, *args: Any, **kwargs: Any) -> Any:
        if any(functions.holds(graph, call) for graph in _graphs_of(dataset)):
            raise NotImplementedError(
                f"Dataset.{method} of a dataset that calls recursive functions: TensorFlow walks into the functions of "
                f"such a dataset, and would never end; {instead}"
            )
        return original(dataset, *args, **kwargs)

    return checked


def _graphs_of(dataset: Any) -> Iterator[tf.Graph]:
    """The graphs of the functions of a dataset, and of those that it reads."""
    pending = [dataset]
    while pending:
        dataset = pending.pop()
        for wrapped in dataset._functions():
            yield wrapped.function.graph
        pending += dataset._inputs()
