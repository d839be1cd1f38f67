"""Functions of datasets that call recursive ones are kept from the optimizer of datasets, which would never end."""
# SPDX-License-Identifier: Apache-2.0

from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import atomic_function

from tensorflow_recursion._tf import functions

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

    atomic_function.from_func_graph = make_unmarked
