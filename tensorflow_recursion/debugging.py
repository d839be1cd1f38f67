"""Looks inside: the static graph that would run."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def transform_graph(graph_def: tf.compat.v1.GraphDef | tf.Graph, fetches: Any) -> tf.compat.v1.GraphDef:
    """Transform the calls of user functions into one static graph, without running it.

    Args:
      graph_def: the graph as a GraphDef or a `tf.Graph`; left unchanged.
      fetches: what a run would ask for: a tensor, an operation, a name (`"y"`, `"y:0"`), or a list of these.

    Returns:
      The transformed GraphDef. Every function body stands in it once, or once for each device that is asked for by
      variables passed as the same argument; each call site is one `Recursion>Call` node per argument and one
      `Recursion>Return` node per output with a common `call_id`. No node calls a user function.

    Raises:
      TypeError: if `graph_def` or a fetch has another type.
      tf.errors.InvalidArgumentError: if a fetch is not in the graph, or the graph is malformed; the message names the
        fetch or the function.

    Source: tags and token matching as in Arvind and Nikhil, "Executing a Program on the MIT Tagged-Token Dataflow
    Architecture", IEEE Transactions on Computers 39(3), 1990.

    Examples:
      >>> count = tfr.Declare("Count", [("n", tf.int32)], [("ret", tf.int32)])
      >>> @tfr.Defun(tf.int32, func_name="Count", out_names=["ret"])
      ... def CountImpl(n):
      ...     return tf.cond(n < 1, lambda: n, lambda: count(n - 1))
      >>> static = tfr.transform_graph(tf1.get_default_graph(), CountImpl(5))
      >>> sum(node.op == "Recursion>Call" for node in static.node)  # one in the main graph, one in the body
      2
    """
    if isinstance(graph_def, tf.Graph):
        graph_def = graph_def.as_graph_def()
    elif not isinstance(graph_def, tf.compat.v1.GraphDef):
        raise TypeError(f"transform_graph: graph_def is a {type(graph_def).__name__}, expected a GraphDef or a Graph")
    names = [_fetch_name(fetch) for fetch in _as_list(fetches)]
    nodes = {node.name for node in graph_def.node}
    for name in names:
        if name.partition(":")[0] not in nodes:
            raise tf.errors.InvalidArgumentError(None, None, f"Fetch '{name}' is not in the graph")
    from tensorflow_recursion import _native

    try:
        static = _native.transform_graph(graph_def.SerializeToString(), names)
    except ValueError as error:
        raise tf.errors.InvalidArgumentError(None, None, str(error)) from None
    return tf.compat.v1.GraphDef.FromString(static)


def _as_list(fetches: Any) -> Sequence[Any]:
    return fetches if isinstance(fetches, (list, tuple)) else [fetches]


def _fetch_name(fetch: Any) -> str:
    if isinstance(fetch, str):
        return fetch
    if isinstance(fetch, (tf.Tensor, tf.Operation)):
        return str(fetch.name)
    raise TypeError(f"transform_graph: a fetch is a {type(fetch).__name__}, expected a tensor, an operation or a name")
