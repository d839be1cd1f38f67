"""Graphs of sessions that are imported into functions, where no session makes their calls static."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import importer

from tensorflow_recursion._tf import graphs
from tensorflow_recursion._tf.replacements import replace_for_good


def install(call: str, static: str) -> None:
    """Let TensorFlow set an attribute of calls in graphs that are imported into a function, as on calls made there.

    Args:
      call: the operator that calls.
      static: its boolean attribute, which lets the kernel run the call statically.
    """
    process = importer._ProcessGraphDefParam

    def process_graph(graph_def: Any) -> Any:
        graph_def = process(graph_def)
        if all(static in node.attr for node in _calls(graph_def, call)):
            return graph_def
        if not graphs.is_func_graph(graphs.enclosing_graphs(tf.compat.v1.get_default_graph())[-1]):
            return graph_def
        result = tf.compat.v1.GraphDef()
        result.CopyFrom(graph_def)  # whose owner may give it to a session as well
        let_be_static(result, call, static)
        return result

    replace_for_good(importer, "_ProcessGraphDefParam", process_graph)


def let_be_static(graph_def: Any, call: str, static: str) -> None:
    """Set the attribute of all calls in a graph and in its functions; `call` and `static` are those of `install`."""
    for node in _calls(graph_def, call):
        node.attr[static].b = True


def _calls(graph_def: Any, call: str) -> Iterator[Any]:
    in_functions = (node for function in graph_def.library.function for node in function.node_def)
    return (node for node in (*graph_def.node, *in_functions) if node.op == call)
