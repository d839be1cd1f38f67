"""Bodies of functions that are built anew from their definitions, not by Python: of SavedModels, and for gradients."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.python.framework import function_def_to_graph, importer, ops
from tensorflow.python.ops import cond_v2, control_flow_util_v2, while_v2

from tensorflow_recursion._tf import copies, function_calls, functions, handles
from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion._tf.nodes import BRANCHING, CONDITIONALS, LOOPS
from tensorflow_recursion._tf.replacements import Replacements, replace_for_good

# A branch or a part of a loop: the attribute of Python's where its graph is kept, its function, its inputs and their
# static shapes.
_Part: TypeAlias = tuple[str, str, list[tf.Tensor], list[Any]]
# The name scope of a body that is built from its definition.
_BODY = "body"


def inline(
    function: TracedFunction,
    args: Sequence[tf.Tensor],
    library: tf.Graph,
    *,
    has_its_shapes: bool = False,
) -> list[tf.Tensor]:
    """Build the body of a function in the default graph; returns its outputs, after what has to run before them.

    Where it is known what the function was made of, gradients of the user's own (`tf.custom_gradient`) in the body read
    the tensors of the copy where they name those of the source, and errors name the lines of Python that made the
    source.

    Args:
      function: what to build.
      args: its arguments, captured tensors included.
      library: the graph whose functions the body may call.
      has_its_shapes: whether the arguments have the static shapes of the source's. Then all tensors have.
    """
    graph = tf.compat.v1.get_default_graph()
    functions.add_missing(graph, functions.sub_functions(function))  # of a trace in progress no library has them
    with _callees_are_traced_later.active():
        results, made = _built(function, args, library)
        definition = function.cached_definition
        if (source := copies.source_of(function) or copies.source_of_branch(function)) is not None:
            copies.note_copy(graph, definition, source, args, f"{_BODY}/", has_its_shapes=has_its_shapes)
            copies.read_copies(graph)
        _keep_graphs(made, has_its_shapes=has_its_shapes)
    awaited = {f"{_BODY}/{name}" for name in definition.control_ret.values()}
    with graph.control_dependencies([op for op in made if op.name in awaited]):
        return [tf.identity(result) for result in results] if awaited else results


def has_all_derivatives(function: TracedFunction, call: str, is_gradient: Callable[[Any], bool]) -> bool:
    """Whether a copy of a traced function has all the derivatives that one more trace of it has.

    A copy lacks some in two cases:

    - The trace does not know what a list holds that the function is given, or that a call in it returns. When the
      function is differentiated it may be known, but TensorFlow infers it only while operations are made one after the
      other, also through branches and loops.
    - The body computes gradients by calls, which `is_gradient` tells. These are made anew for all functions that are
      differentiated together.
    """
    source = copies.source_of(function)
    assert source is not None, function.name
    parts = [getattr(part, "graph", None) for part in functions.sub_functions(function)]
    operations = [op for graph in (source.graph, *parts) if graph is not None for op in graph.get_operations()]
    calls = [op for op in operations if op.type == call]
    results = [result for op in calls for result in op.outputs]
    return not any(map(handles.is_of_unknown_kind, [*source.takes, *results])) and not any(map(is_gradient, calls))


class _CalleesAreTracedLater(Replacements):
    """Definitions may name functions that no graph around has yet: those whose bodies are being traced."""

    def _install(self) -> None:
        self.replace(function_def_to_graph, "is_function", lambda name, graph: True)


_callees_are_traced_later = _CalleesAreTracedLater()


def _built(
    function: TracedFunction, args: Sequence[tf.Tensor], library: tf.Graph
) -> tuple[list[tf.Tensor], list[tf.Operation]]:
    """The outputs of a body that is built in the default graph, and its operations."""
    graph = tf.compat.v1.get_default_graph()
    functions.add_missing(graph, library._functions.values())
    definition = function.cached_definition
    graph_def, tensor_names = function_def_to_graph.function_def_to_graph_def(definition)
    names = [arg.name for arg in definition.signature.input_arg]
    nodes = [node for node in graph_def.node if node.name not in names]
    read = _without_control_by(names, nodes)
    _drop_unknown_colocations(nodes)
    given = {f"{name}:0": arg for name, arg in zip(names, args, strict=True)}
    outputs = [tensor_names[definition.ret[arg.name]] for arg in definition.signature.output_arg]
    del graph_def.node[:]
    graph_def.node.extend(nodes)
    del graph_def.library.function[:]
    before = set(graph.get_operations())
    computed = [output for output in dict.fromkeys(outputs) if output not in given]
    inputs = {name: arg for name, arg in given.items() if name.split(":")[0] in read}
    results = tf.graph_util.import_graph_def(graph_def, inputs, computed, name=_BODY)
    by_name = {**given, **dict(zip(computed, results, strict=True))}
    return [by_name[output] for output in outputs], [op for op in graph.get_operations() if op not in before]


def _drop_unknown_colocations(nodes: list[Any]) -> None:
    """Drop what colocates a node with one that is not among `nodes`, as happens when a body is cut in two."""
    known = {f"loc:@{node.name}".encode() for node in nodes}
    for node in nodes:
        if "_class" in node.attr:
            kept = [name for name in node.attr["_class"].list.s if name in known]
            del node.attr["_class"].list.s[:]
            node.attr["_class"].list.s.extend(kept)


def keep_graphs_around(call: str) -> None:
    """From now on, make graphs of branches and loops once, as Python does, where these lead to the operator `call`.

    Of what was loaded or imported, TensorFlow makes such graphs of the definitions whenever a gradient is asked for. It
    knows nothing there of the variables behind handles that a loop takes and returns. What one gradient has changed,
    the next one would change again, for as long as there are derivatives of the derivatives.
    """
    branches_of, part_of = cond_v2.get_func_graphs, while_v2._get_graph

    def get_func_graphs(op: tf.Operation) -> Any:
        keep(op)
        return branches_of(op)

    def get_graph(op: tf.Operation, *args: Any) -> Any:
        keep(op)
        return part_of(op, *args)

    def keep(op: tf.Operation) -> None:
        parts = list(_parts(op))
        missing = [name for attribute, name, _, _ in parts if getattr(op, attribute, None) is None]
        reached = functions.nodes_reached(missing, lambda name: function_calls.function_in_reach(op.graph, name))
        if any(node.op == call for node in reached):
            _kept_graphs(op, parts)

    replace_for_good(cond_v2, "get_func_graphs", get_func_graphs)
    replace_for_good(while_v2, "_get_graph", get_graph)


def _keep_graphs(operations: list[tf.Operation], *, has_its_shapes: bool) -> None:
    """Make the graphs of branches and loop bodies once, as for control flow that Python made: gradients change them."""
    pending = list(operations)
    while pending:
        op = pending.pop()
        for graph, function in _kept_graphs(op, _parts(op)):
            if (source := copies.source_of_branch(function)) is not None:
                definition = function.cached_definition
                copies.note_copy(graph, definition, source, graph.inputs, has_its_shapes=has_its_shapes)
            pending += graph.get_operations()


def _kept_graphs(op: tf.Operation, parts: Iterable[_Part]) -> list[tuple[Any, Any]]:
    """Make the graphs of the branches or the parts of a loop that an operation runs, where there are none yet.

    Returns those that were made, each with its function.
    """
    made = []
    for attribute, name, inputs, shapes in parts:
        if getattr(op, attribute, None) is None:
            graph = _graph_of(op, name, inputs, shapes)
            graph.name = f"{graph.name}_{ops.uid()}"  # what gradients make of it is called by this name
            setattr(op, attribute, graph)
            made.append((graph, function_calls.function_in_reach(op.graph, name)))
    if op.type in LOOPS:
        returned = [handles.handle_data(result) for result in op._body_graph.outputs]
        handles.set_handle_data(op.outputs, returned)
    return made


def _parts(op: tf.Operation) -> Iterator[_Part]:
    """The branches or the parts of a loop that an operation runs."""
    if op.type in BRANCHING:
        inputs = list(op.inputs)[1:]
        shapes = [tensor.shape for tensor in inputs]
        if op.type in CONDITIONALS:
            yield "_true_graph", op.get_attr("then_branch").name, inputs, shapes
            yield "_false_graph", op.get_attr("else_branch").name, inputs, shapes
        else:
            for i, branch in enumerate(op.get_attr("branches")):
                yield f"_branch_graph_{i}", branch.name, inputs, shapes
    elif op.type in LOOPS:
        # Without the attribute, as `functional_ops.While` makes loops, shapes do not change.
        shapes = list(op.get_attr("output_shapes")) or [tensor.shape for tensor in op.inputs]
        shapes = [tf.TensorShape(shape) for shape in shapes]
        yield "_cond_graph", op.get_attr("cond").name, list(op.inputs), shapes
        yield "_body_graph", op.get_attr("body").name, list(op.inputs), shapes


def _graph_of(op: tf.Operation, function: str, inputs: Sequence[tf.Tensor], shapes: Sequence[Any]) -> Any:
    """The graph of a branch or a loop of `op`, which knows of its handles' variables what is known around it.

    A handle has the shape [], which TensorFlow would take for the variable's.
    """
    is_handle = [tensor.dtype == tf.resource for tensor in inputs]
    open_shapes = [None if is_one else shape for is_one, shape in zip(is_handle, shapes, strict=True)]
    data = [handles.handle_data(outer) if is_one else None for outer, is_one in zip(inputs, is_handle, strict=True)]
    with _handles_are_known.given(data):
        graph = control_flow_util_v2.get_func_graph(op, open_shapes, function)
    for inner, is_one in zip(graph.inputs, is_handle, strict=True):
        if is_one:
            inner.set_shape([])
    return graph


class _HandlesAreKnown(Replacements):
    """The nodes of a function are imported once it is known which variables its arguments are handles of.

    Else what is computed of a variable would have no static shape, which some gradients need.
    """

    def __init__(self) -> None:
        super().__init__()
        self._local = threading.local()

    @contextlib.contextmanager
    def given(self, data: Sequence[Any]) -> Iterator[None]:
        """Inside, `data` are those of the arguments of a function that is imported in this thread."""
        if any(data):
            self._local.data = data
            with self.active():
                yield
        else:
            yield

    def _install(self) -> None:
        self.replace(importer, "import_graph_def_for_function", self._import)

    def _import(self, graph_def: Any, **options: Any) -> None:
        data = self._local.data
        arguments, rest = graph_pb2.GraphDef(), graph_pb2.GraphDef()
        rest.CopyFrom(graph_def)
        del rest.node[:]
        arguments.node.extend(graph_def.node[: len(data)])
        rest.node.extend(graph_def.node[len(data) :])
        importer._import_graph_def_internal(arguments, validate_colocation_constraints=False, **options)
        graph = tf.compat.v1.get_default_graph()
        given = {f"{node.name}:0": graph.get_tensor_by_name(f"{node.name}:0") for node in arguments.node}
        handles.set_handle_data(list(given.values()), data)
        read = _without_control_by([node.name for node in arguments.node], rest.node)
        inputs = {name: tensor for name, tensor in given.items() if name.split(":")[0] in read}
        importer._import_graph_def_internal(rest, inputs, validate_colocation_constraints=False, **options)


_handles_are_known = _HandlesAreKnown()


def _without_control_by(arguments: Collection[str], nodes: Sequence[Any]) -> set[str]:
    """Let no node wait for an argument, as it is there before the body; returns the names that nodes read."""
    for node in nodes:
        sources = [source for source in node.input if source.lstrip("^") not in arguments or not source.startswith("^")]
        del node.input[:]
        node.input.extend(sources)
    return {source.lstrip("^").split(":")[0] for node in nodes for source in node.input}
