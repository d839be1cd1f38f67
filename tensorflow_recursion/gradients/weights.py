"""How bodies use weights: which of them have a gradient that can be collected from terms.

A weight is a captured tensor, or an argument that is handed on. Weights that calls hand to each other are one.
"""
# SPDX-License-Identifier: Apache-2.0

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeAlias

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf import function_calls, nodes
from tensorflow_recursion.definitions import Definition
from tensorflow_recursion.gradients import contributions
from tensorflow_recursion.gradients.contributions import Kind
from tensorflow_recursion.gradients.tracer import Tracer
from tensorflow_recursion.tracing import body_around

_STANDS_FOR_INPUT = ("Identity", "ReadVariableOp")
_CALLS = (names.INVOKE, *function_calls.OPERATORS)
_PRODUCTS_OF_BATCHES = ("BatchMatMulV2", "BatchMatMulV3")
_ELEMENTS_OF_A_SMALL_TERM = 1000

# Function and position of an argument; or None and a reference to the captured tensor.
Weight: TypeAlias = tuple[str | None, Hashable]


@dataclasses.dataclass(frozen=True)
class Use:
    """An operator that reads a weight.

    Attributes:
      op: the operator.
      position: of the weight among its inputs.
      kind: the terms it makes of the gradient; None for a call.
      target: what the weight is in the callee; None for anything but a call that hands it on.
    """

    op: tf.Operation
    position: int
    kind: Kind | None
    target: Weight | None = None


def uses(
    weight: tf.Tensor, results: Sequence[tf.Tensor], target_of: Callable[[tf.Operation, int], Weight | None]
) -> Iterator[Use]:
    """All uses of an argument or captured tensor in a body, with its branches and loops, which are If, Case and While.

    Args:
      weight: the tensor inside the body: the weight, or its variable's handle.
      results: what the body returns.
      target_of: of a call and the position of an input, what the callee has there; None if that is not to be known.
    """
    for tensor in inner_tensors(weight):
        if any(tensor is result for result in results) or _is_returned(tensor):
            yield Use(tensor.op, 0, Kind.OTHER)
        for op, position in _readers(tensor):
            if not _stands_for(op, position):
                target = target_of(op, position) if op.type in _CALLS else None
                yield Use(op, position, None if target is not None else _kind(op, position), target)


def inner_tensors(weight: tf.Tensor) -> list[tf.Tensor]:
    """The tensor, what stands for it inside of branches and loops and behind loops, and its identities."""
    found, pending = [], [weight]
    while pending:
        tensor = pending.pop()
        found.append(tensor)
        for op, position in _readers(tensor):
            pending += _stands_for(op, position)
    return found


def _readers(tensor: tf.Tensor) -> Iterator[tuple[tf.Operation, int]]:
    """The inputs that `tensor` is."""
    for op in tensor.consumers():
        yield from ((op, position) for position, source in enumerate(op.inputs) if source is tensor)


def _stands_for(op: tf.Operation, position: int) -> list[tf.Tensor]:
    """The tensors that are input `position` of `op` under another name; none if `op` makes use of it."""
    if op.type in (*nodes.CONDITIONALS, *nodes.CASES) and position > 0:
        return [branch.inputs[position - 1] for branch in nodes.branches(op)]
    if op.type in nodes.LOOPS:
        body = nodes.loop_body(op)
        is_unchanged = _origin(body.outputs[position]) is body.inputs[position]
        return [body.inputs[position], op.outputs[position]] if is_unchanged else []
    return [op.outputs[0]] if op.type in _STANDS_FOR_INPUT else []


def _origin(tensor: tf.Tensor) -> tf.Tensor:
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor


def _is_returned(tensor: tf.Tensor) -> bool:
    """Whether a branch returns a tensor, or the body of a loop does other than to the next iteration."""
    graph = tensor.graph
    return any(
        output is tensor and not (nodes.is_loop_body(graph) and _origin(tensor) is graph.inputs[position])
        for position, output in enumerate(getattr(graph, "outputs", ()))
    )


def _kind(op: tf.Operation, position: int) -> Kind:
    """The terms that `op` makes of the gradient for its input `position`."""
    if op.type == "MatMul":
        return Kind.PRODUCT if _has_few_rows(op, position) else Kind.OTHER
    if op.type in _PRODUCTS_OF_BATCHES:  # they conjugate what they transpose
        is_matrix = op.inputs[position].shape.rank == 2 and not op.inputs[position].dtype.is_complex
        return Kind.PRODUCT if is_matrix and _has_few_rows(op, position) else Kind.OTHER
    if op.type == "ResourceGather" and op.get_attr("batch_dims") == 0:
        return Kind.ROWS
    if op.type == "GatherV2" and position == 0 and op.get_attr("batch_dims") == 0:
        return Kind.ROWS if tf.get_static_value(op.inputs[2]) == 0 else Kind.OTHER
    if op.type in ("ResourceGatherNd", "GatherNd") and position == 0:
        indices = op.inputs[1].shape
        return Kind.ROWS if indices.rank == 2 and indices[1] == 1 else Kind.OTHER  # a row each, as for TensorFlow
    if op.type == "StridedSlice" and position == 0:
        return Kind.SLICES if _is_row(op) else Kind.OTHER
    return Kind.OTHER


def _has_few_rows(op: tf.Operation, position: int) -> bool:
    """Whether a term of a product is no larger than the weight, or small; of x W with an open number of rows it is.

    Terms are kept until all calls have made theirs. A product of two weights, `u @ v`, makes larger ones. Those of W x
    are transposed copies besides, which do not pay for an x of many columns.
    """
    weight, result = op.inputs[position].shape, op.outputs[0].shape
    if not (weight.is_fully_defined() and result.is_fully_defined()):
        return position == 1 or result.rank is None or result[-1] is not None
    of_weight = result[-1 if position == 1 else -2]
    rows = result.num_elements() // max(of_weight, 1)  # of x in x W; columns of x in W x
    size = rows * sum(weight.as_list())
    return bool(size <= max(weight.num_elements(), _ELEMENTS_OF_A_SMALL_TERM))


def _is_row(op: tf.Operation) -> bool:
    """Whether a StridedSlice is `x[i]`, or `x[i, :]` and so on."""
    begin, strides = op.inputs[1], tf.get_static_value(op.inputs[3])
    if begin.shape.rank != 1 or begin.shape[0] is None or strides is None:
        return False
    others = 2 ** begin.shape[0] - 2  # a bit for each axis but the first one
    are_whole = op.get_attr("begin_mask") == others == op.get_attr("end_mask") & others and all(strides[1:] == 1)
    has_others = op.get_attr("ellipsis_mask") or op.get_attr("new_axis_mask")
    return op.get_attr("shrink_axis_mask") == 1 and are_whole and not has_others


class WeightKinds:
    """The kind of terms that the gradient for each weight of a group is made of, as far as bodies have been traced."""

    def __init__(self, tracer: Tracer, *, all_dense: bool) -> None:
        """`all_dense` says that every gradient is computed where it arises, whatever it is made of."""
        self._all_dense = all_dense
        self._tracer = tracer
        self._kinds: dict[Weight, Kind] = {}
        # Weights that are the same -> the first of them, or one nearer to it.
        self._same: dict[Weight, Weight] = {}
        # Those that several frames have: captured tensors, and arguments that a call hands on.
        self._shared: set[Weight] = set()

    def weight_of(self, definition: Definition, position: int) -> Weight:
        """The weight that an input of a function is: a captured tensor, or an argument, which goes by its position.

        What a function that a body makes captures of that body goes by its position, too, because it is another tensor
        in each trace.
        """
        count = len(definition.inputs)
        if position < count:
            return (definition.lasting_name, position)
        capture = self._tracer.captures(definition.user_name)[position - count]
        is_of_body = tf.is_symbolic_tensor(capture) and body_around(capture.graph) is not None
        return (definition.lasting_name, position) if is_of_body else (None, capture.ref())

    def kind_of(self, weight: Weight) -> Kind | None:
        """The kind of terms that the gradient for a weight is made of; None if it is dense.

        It is dense of what one frame has alone. There is nothing to be summed, and terms are more work.
        """
        first = self._first(weight)
        kind = self._kinds.get(first)
        return None if self._all_dense or kind is Kind.OTHER or first not in self._shared else kind

    def note_uses(self, weight: Weight, tensor: tf.Tensor, uses: Sequence[Use], *, is_captured: bool) -> None:
        """Learn how one body uses a weight, which is `tensor` there."""
        if self._all_dense:
            return
        if is_captured or any(use.target is not None for use in uses):
            self._shared.add(self._first(weight))
        for kind in {use.kind for use in uses if use.kind is not None}:
            self._restrict(weight, kind if contributions.can_be(kind, tensor) else Kind.OTHER)
        for use in uses:
            if use.target is not None and (first := self._first(use.target)) != self._first(weight):
                if (known := self._kinds.get(first)) is not None:
                    self._restrict(weight, known)
                self._same[first] = self._first(weight)

    def clear(self) -> None:
        """Forget everything."""
        self._kinds.clear()
        self._same.clear()
        self._shared.clear()

    def _first(self, weight: Weight) -> Weight:
        while weight in self._same:
            weight = self._same[weight]
        return weight

    def _restrict(self, weight: Weight, kind: Kind) -> None:
        first = self._first(weight)
        self._kinds[first] = self._kinds.get(first, kind).with_other(kind)
