"""Looks inside: the static graph that would run, whether it is static, what functions are compiled to."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import config, names
from tensorflow_recursion._tf import functions, sessions

tf1 = tf.compat.v1


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
    fetch_names = [_fetch_name(fetch) for fetch in _as_list(fetches)]
    nodes = {node.name: node for node in graph_def.node}
    for name in fetch_names:
        _check_fetch(name, nodes.get(name.partition(":")[0]))
    from tensorflow_recursion import _native

    try:
        static = _native.transform_graph(graph_def.SerializeToString(), fetch_names)
    except ValueError as error:
        raise tf.errors.InvalidArgumentError(None, None, str(error)) from None
    return tf.compat.v1.GraphDef.FromString(static)


def bytecode(session_or_graph: tf.compat.v1.Session | tf.Graph, function: str) -> str:
    """Print what a function is compiled to.

    Args:
      session_or_graph: a session, or the graph that calls the function.
      function: the name of the function, as in `Declare` and `Defun`.

    Returns:
      A text with one line for each instruction, `r0`, `r1`, ... being registers, the first of which hold the arguments.
      Of a function that is not compiled, a sentence that says why.

    Raises:
      TypeError: if an argument has another type.
      tf.errors.InvalidArgumentError: if the graph does not call the function.

    Source: register machines as in Ierusalimschy, de Figueiredo and Celes, "The Implementation of Lua 5.0", Journal of
    Universal Computer Science 11(7), 2005.

    Examples:
      >>> fib = tfr.Declare("Fib", [("n", tf.int32)], [("ret", tf.int32)])
      >>> @tfr.Defun(tf.int32, func_name="Fib", out_names=["ret"])
      ... def FibImpl(n):
      ...     return tf.cond(n < 2, lambda: n, lambda: fib(n - 1) + fib(n - 2))
      >>> y = FibImpl(5)
      >>> print(tfr.bytecode(tf1.get_default_graph(), "Fib").splitlines()[0])
      Fib(int32) -> int32
    """
    graph = session_or_graph.graph if isinstance(session_or_graph, tf.compat.v1.Session) else session_or_graph
    if not isinstance(graph, tf.Graph):
        raise TypeError(f"bytecode: expected a session or a graph, got a {type(session_or_graph).__name__}")
    if not isinstance(function, str):
        raise TypeError(f"bytecode: the function is a {type(function).__name__}, expected its name")
    graph_def = graph.as_graph_def()
    calls = [node.name for node in graph_def.node if node.op == names.INVOKE]
    from tensorflow_recursion import _native

    try:
        return str(_native.bytecode(graph_def.SerializeToString(), calls, function))
    except ValueError as error:
        raise tf.errors.InvalidArgumentError(None, None, str(error)) from None


def is_static(session: tf.compat.v1.Session, fetches: Any, feeds: Any = ()) -> bool:
    """Tell whether a run of `session` for `fetches` runs no call of a recursive function dynamically.

    The graph is prepared for the fetches once more, in another session with the same configuration on the same server,
    up to where it would run. Nothing runs.

    Args:
      session: a session, or a wrapped one as `MonitoredSession`.
      fetches: what a run asks for: a tensor, an operation, a name, a variable, or any nest of these.
      feeds: the tensors that the run is fed, where they are not placeholders.

    Returns:
      False if a call of a recursive function runs dynamically: in a session without `tfr.session_config()`, in a
      function of `tf.data`, or where a run warns of it. True if all are static, or the fetches need none.

    Raises:
      TypeError: if `session` is no open session.
      ValueError, KeyError: if a fetch is not in the session's graph.
      tf.errors.OpError: if the graph cannot be prepared at all.

    Source: the callables of TensorFlow's sessions (`CallableOptions` in tensorflow/core/protobuf/config.proto).

    Examples:
      >>> double = tfr.Defun(tf.int32, func_name="Double", out_names=["ret"])(lambda n: n + n)
      >>> y = double(tf1.placeholder(tf.int32, []))
      >>> with tf1.Session() as dynamic, tf1.Session(config=tfr.session_config()) as static:
      ...     print(tfr.is_static(dynamic, y), tfr.is_static(static, y))
      False True
    """
    if not sessions.is_session(session):
        raise TypeError(f"is_static: session is a {type(session).__name__}, expected an open session")
    fed = _element_names(session.graph, feeds)
    wanted = [name for name in _element_names(session.graph, fetches) if name not in fed]
    if not wanted:
        return True
    if not config.has_switch(sessions.config_of(session)):
        return not _reaches_call(session.graph, wanted, fed)
    strict = config.session_config(sessions.config_of(session), on_fallback="error")
    strict.experimental.ClearField("session_metadata")  # no two sessions may have one name
    with tf1.Session(sessions.target_of(session), graph=session.graph, config=strict) as twin:
        try:
            sessions.prepare(twin, wanted, fed)
        except tf.errors.FailedPreconditionError as error:
            if "runs dynamically" not in error.message:
                raise
            return False
    return True


def _element_names(graph: tf.Graph, elements: Any) -> list[str]:
    found = [graph.as_graph_element(element) for element in tf.nest.flatten(elements, expand_composites=True)]
    return [str(element.name) for element in found]


def _reaches_call(graph: tf.Graph, wanted: Sequence[str], fed: Sequence[str]) -> bool:
    """Whether tensors and operations need a call of a recursive function, be it in functions that operators run.

    What is `fed` needs none.
    """
    functions = {function.signature.name: function for function in graph.as_graph_def().library.function}
    operations = [graph.get_operation_by_name(name.partition(":")[0]) for name in wanted]
    nodes = [operation.node_def for operation in _ancestors(operations, fed)]
    seen: set[str] = set()
    while nodes:
        node = nodes.pop()
        if node.op == names.INVOKE:
            return True
        for name in {node.op, *_functions_of(node)} & functions.keys() - seen:
            seen.add(name)
            nodes.extend(functions[name].node_def)
    return False


def _ancestors(operations: Sequence[tf.Operation], fed: Sequence[str]) -> list[tf.Operation]:
    """Operations and all that they need, but for the `fed` tensors."""
    found = list(dict.fromkeys(operations))
    seen = set(found)
    for operation in found:  # grows on the way
        inputs = [tensor.op for tensor in operation.inputs if tensor.name not in fed]
        for source in [*inputs, *operation.control_inputs]:
            if source not in seen:
                seen.add(source)
                found.append(source)
    return found


def _functions_of(node: Any) -> list[str]:
    attributes = node.attr.values()
    return [a.func.name for a in attributes] + [function.name for a in attributes for function in a.list.func]


def _check_fetch(name: str, node: Any) -> None:
    """Raises InvalidArgumentError if a fetch is not in the graph; `node` is the node of that name, None if none is."""
    if node is None:
        raise tf.errors.InvalidArgumentError(None, None, f"Fetch '{name}' is not in the graph")
    index = name.partition(":")[2]
    if not index:
        return
    count = functions.num_outputs(node)
    if not index.isdecimal() or (count is not None and int(index) >= count):
        has = "" if count is None else f", whose node has {count} output{'s' * (count != 1)}"
        raise tf.errors.InvalidArgumentError(None, None, f"Fetch '{name}' is not in the graph{has}")


def _as_list(fetches: Any) -> Sequence[Any]:
    return fetches if isinstance(fetches, (list, tuple)) else [fetches]


def _fetch_name(fetch: Any) -> str:
    if isinstance(fetch, str):
        return fetch
    if isinstance(fetch, (tf.Tensor, tf.Operation)):
        return str(fetch.name)
    raise TypeError(f"transform_graph: a fetch is a {type(fetch).__name__}, expected a tensor, an operation or a name")
