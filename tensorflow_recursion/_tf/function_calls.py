"""Calls of `tf.function`s in graphs, and what they call."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.function.polymorphism import function_cache

from tensorflow_recursion._tf import functions, handles
from tensorflow_recursion._tf.nodes import operations_within, replace_input
from tensorflow_recursion._tf.replacements import replace_for_good

OPERATORS = ("PartitionedCall", "StatefulPartitionedCall")


def function_in_reach(graph: tf.Graph | None, name: str) -> Any:
    """The function `name` in the library of `graph` or of a graph around it; None if none of them has it."""
    while graph is not None:
        if (function := functions.function_in(graph, name)) is not None:
            return function
        graph = getattr(graph, "outer_graph", None)
    return None


def called_graph(op: tf.Operation) -> tf.Graph | None:
    """The graph of the `tf.function` that `op` calls; None if it calls none, or one that has no graph."""
    if op.type not in OPERATORS:
        return None
    return getattr(function_in_reach(op.graph, str(op.get_attr("f").name)), "graph", None)


def reaches(op: tf.Operation, op_type: str) -> bool:
    """Whether an operator `op_type` stands in the function that a call runs, or in one that this refers to."""
    nodes = functions.nodes_reached([str(op.get_attr("f").name)], lambda name: function_in_reach(op.graph, name))
    return any(node.op == op_type for node in nodes)


def reached_by(call: str, library: Any, nodes: Iterable[Any] = ()) -> set[str]:
    """The functions that the operator `call` calls, in a library or among `nodes`, and all that these refer to."""
    in_functions = (node for function in library.function for node in function.node_def)
    called = [name for node in (*nodes, *in_functions) if node.op == call for name in references(node)]
    return _with_all_they_refer_to(called, library)


def nodes_run_by(graph_def: Any) -> Iterator[Any]:
    """The nodes of a graph, and those of all functions in its library that they lead to."""
    yield from graph_def.node
    named = [name for node in graph_def.node for name in references(node)]
    reached = _with_all_they_refer_to(named, graph_def.library)
    for function in graph_def.library.function:
        yield from function.node_def if function.signature.name in reached else ()


def reached_otherwise(call: str, library: Any, reached: Collection[str], roots: Iterable[str] = ()) -> set[str]:
    """The functions of a library that are not among those `reached` by `call`, or that are needed beside it.

    These are `roots`, and all that functions which are not reached refer to otherwise than by the operator `call`.
    """
    others = [function.signature.name for function in library.function if function.signature.name not in reached]
    return _with_all_they_refer_to([*others, *roots], library, stops_at=call)


def _with_all_they_refer_to(names: Iterable[str], library: Any, stops_at: str = "") -> set[str]:
    """The functions of a library that are among `names`, and all that they refer to but by the operator `stops_at`."""
    by_name = {function.signature.name: function for function in library.function}
    pending, found = list(names), set()
    while pending:
        name = pending.pop()
        if name in by_name and name not in found:
            found.add(name)
            nodes = (node for node in by_name[name].node_def if node.op != stops_at)
            pending += [other for node in nodes for other in references(node)]
    return found


def references(node: Any) -> Iterator[str]:
    """Names that may be those of functions in a node."""
    yield node.op
    yield from functions.referred_to(node)
    # Calls name by a string what they run once they are differentiated.
    yield from (value.s.decode(errors="replace") for value in node.attr.values() if value.HasField("s"))


def let_traces_be_outdated(can_run: Callable[[tf.Graph], bool]) -> None:
    """From now on, let `tf.function`s be traced again where `can_run` says that calls cannot run a trace of them."""
    lookup = function_cache.FunctionCache.lookup

    def look_up(cache: Any, function_type: Any, context: Any = None) -> Any:
        found = lookup(cache, function_type, context)
        if found is None or can_run(found.graph):
            return found
        cache.delete(found.function_type, context)
        return None

    replace_for_good(function_cache.FunctionCache, "lookup", look_up)


def must_be_compiled(op: tf.Operation) -> bool:
    """Whether XLA compiles what a call runs, as of `tf.function(jit_compile=True)`."""
    return "_XlaMustCompile" in op.node_def.attr and bool(op.get_attr("_XlaMustCompile"))


def was_made_by_python(op: tf.Operation) -> bool:
    """Whether a call knows the gradient of what it calls; one that was built from a definition does not."""
    return op._gradient_function is not None


def pass_handles_around(graph: tf.Graph) -> None:
    """Let readers of a handle that a call in `graph` returns unchanged read the handle that the call was given.

    A call returns the handles that its gradient reads. But a variable has its gradient at the handle of the body.
    """
    for op in list(operations_within(graph)):
        if op.type not in OPERATORS or all(output.dtype != tf.resource for output in op.outputs):
            continue
        function = function_in_reach(op.graph, str(op.get_attr("f").name))
        if function is None:
            continue
        definition = function.cached_definition
        given = {arg.name: tensor for arg, tensor in zip(definition.signature.input_arg, op.inputs, strict=True)}
        for result, output in zip(definition.signature.output_arg, op.outputs, strict=False):
            source = given.get(definition.ret[result.name])
            if output.dtype != tf.resource or source is None:
                continue
            for consumer in output.consumers():
                for i, tensor in enumerate(consumer.inputs):
                    if tensor is output:
                        replace_input(consumer, i, source)


def run_instead(op: tf.Operation, function: str, more: Sequence[tf.DType]) -> None:
    """Let a call run another function, which returns scalars of the dtypes `more` besides."""
    types = [*(output.dtype for output in op.outputs), *more]
    op._set_func_attr("f", function)
    op._set_type_list_attr("Tout", [dtype.as_datatype_enum for dtype in types])
    op._add_outputs([dtype.as_datatype_enum for dtype in more], [tf.TensorShape([]) for _ in more])
    new = op.outputs[len(types) - len(more) :]
    handles.set_handle_data(new, [handles.WITHOUT_GRADIENT if one.dtype == tf.variant else None for one in new])
