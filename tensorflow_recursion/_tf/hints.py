"""What a SavedModel says where it is loaded without this package: names that say what to import."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from typing import Any

from tensorflow.core.framework import function_pb2
from tensorflow.python.framework import meta_graph
from tensorflow.python.saved_model import builder_impl, save

from tensorflow_recursion import names
from tensorflow_recursion._tf import function_calls
from tensorflow_recursion._tf.replacements import replace_for_good

# The name of the function, and of the node.
_HINT = "import_tensorflow_recursion_before_loading"


def install(call: str, operator: str) -> None:
    """Let what TensorFlow writes into SavedModels with calls say what to import.

    Args:
      call: the operator of a call.
      operator: one that does nothing; its name says what to import.
    """
    fill, add = save._fill_meta_graph_def, builder_impl._SavedModelBuilder._tag_and_add_meta_graph

    def add_hints(meta_graph_def: Any) -> None:
        _add_function(meta_graph_def.graph_def.library, call)
        _add_node(meta_graph_def, operator)

    def fill_with_hints(meta_graph_def: Any, *args: Any, **kwargs: Any) -> Any:
        result = fill(meta_graph_def, *args, **kwargs)
        add_hints(meta_graph_def)
        return result

    def add_with_hints(builder: Any, meta_graph_def: Any, *args: Any, **kwargs: Any) -> None:
        add_hints(meta_graph_def)
        add(builder, meta_graph_def, *args, **kwargs)

    replace_for_good(save, "_fill_meta_graph_def", fill_with_hints)
    replace_for_good(builder_impl._SavedModelBuilder, "_tag_and_add_meta_graph", add_with_hints)


def without_hint(library: Any) -> Any:
    """A function library as it was before the hint was written into it."""
    if not _has_function(library):
        return library
    rest = function_pb2.FunctionDefLibrary()
    rest.CopyFrom(library)
    del rest.function[:]
    rest.function.extend(function for function in library.function if function.signature.name != _HINT)
    return rest


def _has_function(library: Any) -> bool:
    """Whether a library has the hint, as that of a graph that was loaded from a SavedModel has."""
    return any(function.signature.name == _HINT for function in library.function)


def _add_function(library: Any, call: str) -> None:
    """Add the hint to a library with calls, for `tf.saved_model.load`.

    In a process without this package it does not know that the operator `call` lets functions call each other. It lists
    the functions that it finds in cycles, by their names, and this one is in a cycle with itself. Nothing calls it.
    """
    if _has_function(library) or all(node.op != call for function in library.function for node in function.node_def):
        return
    hint = library.function.add()
    hint.signature.name = _HINT
    node = hint.node_def.add(name="hint", op="NoOp")
    node.attr[names.HINT].func.name = _HINT


def _add_node(meta_graph_def: Any, operator: str) -> None:
    """Let an `operator` be the first node of a graph whose nodes lead to operators of ours.

    What imports the whole graph, as TensorFlow 1's loader, saved_model_cli and TensorFlow's C API do, begins with this
    node. Its error for an operator that it does not know tells no more than the operator's name.
    """
    graph = meta_graph_def.graph_def
    if not any(node.op.startswith(names.OP_PREFIX) for node in function_calls.nodes_run_by(graph)):
        return
    if all(node.op != operator for node in graph.node):  # a graph that was loaded from a SavedModel has it
        taken = {node.name for node in graph.node}
        candidates = itertools.chain([_HINT], (f"{_HINT}_{i}" for i in itertools.count(1)))
        graph.node.add(name=next(name for name in candidates if name not in taken), op=operator)
    graph.node.sort(key=lambda node: bool(node.op != operator))
    operators = meta_graph_def.meta_info_def.stripped_op_list
    operators.CopyFrom(meta_graph.stripped_op_list_for_graph(graph))
