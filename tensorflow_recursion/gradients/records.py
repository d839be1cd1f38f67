"""The records that gradients take: lets calls keep them, and gives the gradients for records themselves.

What a body's gradient needs of a call in that body is in the record of the call. When the gradient is differentiated in
turn, there is a gradient for the record, which is a record as well: it holds the gradients for what the record holds.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import handles, nodes
from tensorflow_recursion._tf.typed import registered_gradient
from tensorflow_recursion.forward_backward.groups import Group

# The name of a gradient, not of an operator.
_OF_SHAPE = f"{names.OP_PREFIX}OfShape"


def keep(op: tf.Operation, forward: str, num_results: int) -> tf.Tensor:
    """Let a call run the forward function `forward`, which keeps a record; returns the record."""
    if op.graph.building_function:
        return ops.run_forward(op, forward, num_results)
    ops.set_forward(op, forward)
    return op.outputs[-1]


def check_kept(op: tf.Operation, forward: str) -> None:
    """Raises LookupError if a call in a body runs another forward function: its record would have no gradient."""
    if (callee := ops.callee_of(op)) != forward:
        raise LookupError(
            f"Call {op.name!r} of '{names.of_user(callee)}' cannot be differentiated: it keeps what another gradient "
            "takes, in a tf.function around which a body has a tape; put the tape into that tf.function, or call "
            "what is in it without a tf.function"
        )


def of_recall(op: tf.Operation, grads: Sequence[Any], group: Group | None) -> tf.Tensor | None:
    """The gradient for a record that is read: a record of the gradients for what it holds."""
    found = {i for i, grad in enumerate(grads) if not is_none(grad)}
    if group is None or not found:
        return None
    owner = ops.owner_of(op)
    positions = group.known.note_record_gradient(owner, found)
    values = [
        handles.zeros_for(op.outputs[i]) if grads[i] is None else tf.convert_to_tensor(grads[i]) for i in positions
    ]
    return ops.retain(values, group.owner_of_gradient(owner)).outputs[0]


def of_retain(op: tf.Operation, grad: tf.Tensor, group: Group | None) -> list[tf.Tensor | None]:
    """The gradients for what a record holds, from that for the record."""
    positions = () if group is None else group.known.record_positions(ops.owner_of(op))
    if group is None or not positions:
        return [None] * len(op.inputs)
    like = [op.inputs[i] for i in positions]
    may_be_scalars = group.known.has_zero_records()
    types = [handles.gradient_type(tensor) for tensor in like]
    specs = [tf.TensorSpec(None if may_be_scalars else shape, dtype) for dtype, shape in types]
    values = ops.recall(grad, specs, group.owner_of_gradient(ops.owner_of(op)))
    if may_be_scalars:
        values = [_of_shape(value, tensor) for value, tensor in zip(values, like, strict=True)]
    of_lists = [i for i, value in enumerate(values) if value.dtype == tf.variant]
    handles.set_handle_data([values[i] for i in of_lists], [handles.handle_data(like[i]) for i in of_lists])
    found = dict(zip(positions, values, strict=True))
    return [found.get(i) for i in range(len(op.inputs))]


def is_none(grad: tf.Tensor | None) -> bool:
    """Whether there is no gradient, or only zeros that TensorFlow has put in its place, for a conditional to return."""
    return grad is None or (grad.dtype == tf.variant and nodes.is_zeros(grad))


def may_be_zeros(record: tf.Tensor | None) -> bool:
    """Whether the gradient for a record may be a record of zeros: there is none, or it is an element of a list.

    Of a loop, the gradients for the records of all iterations are in a list, of zeros if nothing depends on them.
    """
    return is_none(record) or not nodes.is_always_of(record, (names.INVOKE, names.RETAIN))


def _of_shape(value: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """The gradient `value` broadcast to the shape of `like`, as it may be a scalar zero. For lists, the length counts.

    Where the shape is known only at run time, `like` may be a scalar, too, if it is of a zero record, or of a branch
    that was not taken. Then `value` keeps its shape.
    """
    if value.dtype == tf.variant:
        return value if _is_record(like) else ops.list_or_zeros(value, like)
    _, shape = handles.gradient_type(like)
    if not shape.is_fully_defined():
        is_known = like.dtype == tf.resource
        shape = tf.shape(handles.zeros_for(like) if is_known else like)
        shape = shape if is_known else tf.broadcast_dynamic_shape(tf.shape(value), shape)
    result = tf.broadcast_to(value, shape)
    nodes.set_gradient_name(result.op, _OF_SHAPE)
    return result


def _is_record(variant: tf.Tensor) -> bool:
    """Whether a variant is a record, not a list. Of what a conditional returns, its branches may have to tell."""
    known = handles.handle_data(variant)
    # What a call returns beside its record is known.
    sources = (*ops.CALLS, names.RECALL, "FakeParam")
    return known == handles.OF_RECORD or (known is None and nodes.is_always_of(variant, sources))


@registered_gradient(_OF_SHAPE)
def _gradient_of_shape(_: tf.Operation, grad: Any) -> list[Any]:
    """Hand the gradient on. The value has the shape already, or is a zero, whose gradient is never read.

    Summing the gradient to the shape of a zero would make it a scalar, and those of higher orders, too.
    """
    return [grad, None]
