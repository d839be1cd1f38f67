"""Copies of the graphs of functions: what stands in a copy for a tensor of the graph that it is a copy of.

The body of a `tfr.recursive` function that is differentiated is a copy, and so is each body that is differentiated
again, with the branches and loops in it. But a gradient that was registered for one operator, by `tf.custom_gradient`,
reads tensors of the graph in which the operator was made. In a copy it has to read the copies of these tensors.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf import graphs, handles, recorders
from tensorflow_recursion._tf.attributes import Attribute


@dataclasses.dataclass(frozen=True)
class Source:
    """What a function is made of.

    Attributes:
      graph: where it was traced.
      takes: the tensors that its arguments stand for.
      operations: those of its body.
    """

    graph: tf.Graph
    takes: Sequence[tf.Tensor]
    operations: Sequence[tf.Operation]

    @classmethod
    def whole(cls, graph: Any) -> Source:
        """What a function is made of that is the whole of a function graph."""
        inputs = {tensor.op for tensor in graph.inputs}
        return cls(graph, list(graph.inputs), [op for op in graph.get_operations() if op not in inputs])


_SOURCE: Attribute[Source] = Attribute(names.SOURCE)  # of traced functions


def set_source(function: Any, source: Source) -> None:
    """Let a traced function know what it was made of."""
    _SOURCE.set(function, source)


def source_of(function: Any) -> Source | None:
    """What a function was made of that was traced here; None if nothing but its definition is known."""
    return _SOURCE.of(function)


@dataclasses.dataclass(frozen=True)
class _Copy:
    """What stands in a copy of a graph for parts of that graph.

    Attributes:
      source: the graph that was copied.
      arguments: the tensors of the copy that stand for arguments, by references to those of the source.
      names: the names of operations in the copy, by their names in the source.
    """

    source: tf.Graph
    arguments: Mapping[Hashable, tf.Tensor]
    names: Mapping[str, str]

    @functools.cached_property
    def sources(self) -> Mapping[str, str]:
        """The names of operations of the source, by those of their copies."""
        return {copy: source for source, copy in self.names.items()}


_COPY: Attribute[_Copy] = Attribute(names.COPY)  # of graphs


def note_copy(
    copy: tf.Graph,
    definition: Any,
    source: Source,
    given: Iterable[tf.Tensor],
    scope: str = "",
    *,
    has_its_shapes: bool,
) -> None:
    """Remember that in `copy` is the body of a function, and let it know what Python has told the source's operations.

    These are the gradients of calls of `tf.function`s, the variables of handles and, if the copy `has_its_shapes`,
    static shapes, and what lists hold.

    Args:
      copy: a graph.
      definition: the FunctionDef of the function. Its nodes are in the order of the operations it was made of, but may
        have other names: no node has the name of an argument or a result.
      source: what the function was made of.
      given: what is in the places of `source.takes`.
      scope: what the names of the copied operations begin with.
      has_its_shapes: whether `given` have the static shapes of `source.takes`.
    """
    arguments = {tensor.ref(): inner for tensor, inner in zip(source.takes, given, strict=False)}
    pairs = zip(source.operations, definition.node_def, strict=False)
    copied = {op.name: scope + node.name for op, node in pairs if op.type == node.op}
    _COPY.set(copy, _Copy(source.graph, arguments, copied))
    _take_over(copy, source.graph, copied, has_its_shapes=has_its_shapes)


def source_of_branch(function: Any) -> Source | None:
    """What the function of a branch or a loop was made of; None if it has no graph of its own."""
    graph = getattr(function, "graph", None)
    return None if graph is None else Source.whole(graph)


def _take_over(copy: tf.Graph, graph: tf.Graph, copied: Mapping[str, str], *, has_its_shapes: bool) -> None:
    """Let the operations of a copy know what those of `graph` do; `copied` has their names by those in `graph`."""
    for source_name, name in copied.items():
        source, op = graph.get_operation_by_name(source_name), copy.get_operation_by_name(name)
        if source._gradient_function is not None:
            op._gradient_function = source._gradient_function
        pairs = zip(source.outputs, op.outputs, strict=False)  # gradients append outputs to conditionals
        for before, tensor in pairs:
            if has_its_shapes and not tensor.shape.is_fully_defined():
                tensor.set_shape(before.shape)
            if tensor.dtype == tf.resource or (has_its_shapes and tensor.dtype == tf.variant):
                handles.set_handle_data([tensor], [handles.handle_data(before)])


def original_of(op: tf.Operation) -> tf.Operation:
    """The operation that Python made: `op`, or what it is a copy of, or a copy of a copy."""
    while (copy := _COPY.of(op.graph)) is not None and (name := copy.sources.get(op.name)) is not None:
        op = copy.source.get_operation_by_name(name)
    return op


def in_copy(tensor: tf.Tensor, graph: tf.Graph) -> tf.Tensor | None:
    """What stands for `tensor` in `graph`; None unless that is a copy of its graph, or of a copy, and has it."""
    copy = _COPY.of(graph)
    if copy is None:
        return None
    before = _in_source(tensor, copy.source)
    if before is None:
        return None
    if (argument := copy.arguments.get(before.ref())) is not None:
        return argument
    name = copy.names.get(before.op.name)
    return None if name is None else graph.get_tensor_by_name(f"{name}:{before.value_index}")


def operation_in_copy(op: tf.Operation, graph: tf.Graph) -> tf.Operation | None:
    """What stands for `op` in `graph`: itself in its own graph; None unless that is a copy of its graph, and has it."""
    if op.graph is graph:
        return op
    copy = _COPY.of(graph)
    before = None if copy is None else operation_in_copy(op, copy.source)
    name = None if copy is None or before is None else copy.names.get(before.name)
    return None if name is None else graph.get_operation_by_name(name)


def operation_around(op: tf.Operation, graph: tf.Graph) -> tf.Operation:
    """What stands for `op` in `graph`, or in a graph around it.

    Where one of these is the gradient of a branch or a loop, that branch or loop counts, too. It is `op` itself if none
    of them is the graph of `op`, or a copy of it.
    """
    around = graphs.enclosing_graphs(graph)
    forward = [one._forward_graph for one in around if getattr(one, "_forward_graph", None) is not None]
    return next((inner for one in [*around, *forward] if (inner := operation_in_copy(op, one)) is not None), op)


def _in_source(tensor: tf.Tensor, graph: Any) -> tf.Tensor | None:
    """What stands for `tensor` in `graph`, which has it, has taken it from another graph or is a copy of that one.

    The gradient of a loop's body takes what the body keeps for it in lists.
    """
    is_symbolic = not graphs.is_eager_tensor(tensor)
    if is_symbolic and tensor.graph is graph:
        return tensor
    captured: Mapping[Hashable, tf.Tensor] = getattr(graph, "_captured", {})  # if this is the graph of a body
    if (argument := captured.get(tensor.ref())) is not None:
        return argument
    same = [tensor]
    forward = getattr(graph, "_forward_graph", None)  # if this is the gradient of a branch or a loop's body
    if forward is not None and (in_forward := _in_source(tensor, forward)) is not None:
        same.append(in_forward)
    from_lists: Mapping[int, tf.Tensor] = getattr(graph, "_indirect_captures", {})
    for known in same:
        if (element := from_lists.get(known._id)) is not None:
            return element
    if is_symbolic:
        same += [outer for known in same if (outer := _outside(known)) is not None]
    taken = (inner for outer, inner in getattr(graph, "captures", ()) if any(outer is known for known in same))
    inner = next(taken, None)
    return in_copy(tensor, graph) if inner is None else inner


def _outside(tensor: tf.Tensor) -> tf.Tensor | None:
    """What stands for a tensor of a branch in the graph around the conditional; None if it is in no branch.

    That is an output of the conditional if the branch returns the tensor, and an input if the branch takes it.
    """
    branch: Any = tensor.graph
    conditional = getattr(branch, "_forward_cond", None)
    if conditional is None:
        return None
    for i, output in enumerate(branch.outputs):
        if output is tensor:
            output_outside: tf.Tensor = conditional.outputs[i]
            return output_outside
    return next((outer for outer, inner in branch.captures if inner is tensor), None)


def read_copies(graph: tf.Graph) -> None:
    """From now on, let operations of `graph` read its copies of what they are given, and wait for these."""
    capture, wait_for = graph.capture, graph.control_dependencies

    def control_dependencies(control_inputs: Sequence[Any] | None) -> Any:
        return wait_for(control_inputs and [_awaited(element, graph) for element in control_inputs])

    def capture_copy(tensor: tf.Tensor, name: str | None = None) -> tf.Tensor:
        inner = in_copy(tensor, graph)
        if inner is None:
            inner = capture(tensor, name)
        recorders.record_same(inner, tensor)  # a tape in a gradient of the user's own may watch `tensor`
        return inner

    graph.capture, graph.control_dependencies = capture_copy, control_dependencies


def keep_values(graph: tf.Graph) -> None:
    """From now on, let eager tensors that `graph`, that of a body, has not captured be constants in it.

    Handles and lists, which cannot be constants, are captured.
    """
    capture = graph.capture

    def capture_or_keep(tensor: tf.Tensor, name: str | None = None) -> tf.Tensor:
        is_known = not graphs.is_eager_tensor(tensor) or tensor.ref() in graph._captured
        if is_known or tensor.dtype in (tf.resource, tf.variant) or in_copy(tensor, graph) is not None:
            return capture(tensor, name)
        constant = graphs.constant_of(tensor, graph)
        recorders.record_same(constant, tensor)
        return constant

    graph.capture = capture_or_keep


def _awaited(element: Any, graph: tf.Graph) -> Any:
    """What something in `graph` waits for that is told to wait for an operation or tensor."""
    op = element if isinstance(element, tf.Operation) else getattr(element, "op", None)
    inner = operation_in_copy(op, graph) if isinstance(op, tf.Operation) else None
    return element if inner is None else inner
