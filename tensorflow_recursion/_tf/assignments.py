"""Finds the variables that a function assigns to and that calls in it read."""
# SPDX-License-Identifier: Apache-2.0

import collections
import functools
from collections.abc import Iterable
from typing import Any, TypeAlias

import tensorflow as tf

from tensorflow_recursion._tf import functions, handles, nodes

# Dtypes and static shapes of variables, as far as they are known.
Kind: TypeAlias = tuple[tf.DType | None, str | None]
Kinds: TypeAlias = frozenset[Kind]

_ASSIGNING = ("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter", "ResourceStridedSliceAssign")
_HANDING_ON = ("Enter", "Identity", "Switch")
_WITH_CONDITION = ("Case", "If", "StatelessCase", "StatelessIf")  # the first input, which their functions do not get


def kinds_assigned(graph: tf.Graph, call: str) -> Kinds:
    """The kinds of variables that a function graph may assign to, itself or in functions that it runs.

    Those that an operator `call` runs are left out.
    """
    found: set[Kind] = set()
    for op in nodes.operations_within(graph):
        if op.type.startswith(_ASSIGNING):
            found.update(_kind(tensor) for tensor in op.inputs if tensor.dtype.base_dtype == tf.resource)
        elif op.type not in (call, *nodes.HAVE_BRANCHES) and _assigns(op, graph, call):
            found.add((None, None))
    return frozenset(found)


def first_among(operations: Iterable[tf.Operation], call: str) -> tf.Operation | None:
    """The first of some operations that assigns to a variable, itself, in a branch or loop, or in a function it runs.

    What an operator `call` runs is left out.
    """
    for op in nodes.with_inner(operations):
        if op.type.startswith(_ASSIGNING) or (
            op.type not in (call, *nodes.HAVE_BRANCHES) and _assigns(op, op.graph, call)
        ):
            return op
    return None


def is_among(handle: tf.Tensor, kinds: Kinds) -> bool:
    """Whether the variable with this handle may be of one of these kinds."""
    dtype, shape = _kind(handle)
    return any(
        (dtype is None or known is None or dtype == known) and (shape is None or size is None or shape == size)
        for known, size in kinds
    )


def _kind(handle: tf.Tensor) -> Kind:
    data = handles.handle_data(handle)
    if data is None or not data.shape_and_type:
        return None, None
    shape = tf.TensorShape(data.shape_and_type[0].shape)
    return tf.as_dtype(data.shape_and_type[0].dtype), str(shape) if shape.is_fully_defined() else None


def _assigns(op: tf.Operation, graph: tf.Graph, call: str) -> bool:
    """Whether functions that an operation refers to, or those that they run, assign to a variable."""
    find = functools.partial(functions.function_in, graph)
    return any(
        node.op.startswith(_ASSIGNING)
        for node in functions.nodes_reached(functions.referred_to(op.node_def), find, call)
    )


def assigned_and_passed(graph: tf.Graph, call: str) -> list[str]:
    """The variables that a function graph assigns to and passes to an operator `call`, itself or in functions it runs.

    An assignment in a function that `call` runs only counts if the variable's numbers have a gradient, as floats have.
    An int32 that counts the calls, or the state of a random generator, changes no derivative.
    """
    variables = {id(variable.handle): variable.name for variable in graph.variables}
    names = {inner.name: variables.get(id(outer), inner.op.name) for outer, inner in graph.captures}
    inputs = {tensor.name: tensor for tensor in [*graph.inputs, *(inner for _, inner in graph.captures)]}
    readers = _Readers(graph, call)

    def is_found(handle: tf.Tensor) -> bool:
        reading = readers.all_of(handle.op.name, looks_into_calls=True)
        if call not in reading:
            return False
        writing = reading if handles.is_trainable(handle) else readers.all_of(handle.op.name, looks_into_calls=False)
        return any(op.startswith(_ASSIGNING) for op in writing)

    found = [name for name, tensor in inputs.items() if tensor.dtype == tf.resource and is_found(tensor)]
    return sorted(names.get(name, inputs[name].op.name) for name in found)


class _Readers:
    """The operators of a function graph, and of the functions in its library, by what they read."""

    def __init__(self, graph: tf.Graph, call: str) -> None:
        self._graph = graph
        self._call = call
        self._by_function = {"": _by_input(op.node_def for op in graph.get_operations())}

    def all_of(self, name: str, *, looks_into_calls: bool) -> set[str]:
        """The types of the operators that read a handle, the one called `name` in the graph, here or in functions."""
        found: set[str] = set()
        pending = [("", name)]
        seen = set(pending)
        while pending:
            function, name = pending.pop()
            for node, position in self._of(function)[name]:
                found.add(node.op)
                further = [(function, node.name)] if node.op in _HANDING_ON else []
                if looks_into_calls or node.op != self._call:
                    further += self._arguments(node, position)
                pending += set(further) - seen
                seen.update(further)
        return found

    def _arguments(self, node: Any, position: int) -> list[tuple[str, str]]:
        """What the functions that a node runs call its input at `position`: names of functions and of arguments."""
        runs = [run.name for value in node.attr.values() for run in (value.func, *value.list.func) if run.name]
        known = [(name, functions.function_in(self._graph, name)) for name in runs]
        number = position - (node.op in _WITH_CONDITION)
        signatures = [(name, one.cached_definition.signature) for name, one in known if one is not None]
        return [(name, one.input_arg[number].name) for name, one in signatures if number < len(one.input_arg)]

    def _of(self, function: str) -> dict[str, list[tuple[Any, int]]]:
        if function not in self._by_function:
            known = functions.function_in(self._graph, function)
            self._by_function[function] = _by_input(known.cached_definition.node_def)
        return self._by_function[function]


def _by_input(nodes: Iterable[Any]) -> dict[str, list[tuple[Any, int]]]:
    """The nodes by the name of each input, an argument or another node, with its position."""
    found = collections.defaultdict(list)
    for node in nodes:
        for position, read in enumerate(node.input):
            found[read.split(":")[0]].append((node, position))
    return found
