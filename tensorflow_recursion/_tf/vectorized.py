"""How `tf.vectorized_map` and jacobians run an operation for all elements: by a loop, one element after the other.

TensorFlow has such a loop too, but not for operations that return variants, as calls do with their record.
"""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.python.ops.parallel_for import pfor

from tensorflow_recursion._tf import handles, side_effects
from tensorflow_recursion._tf.replacements import replace_for_good

# Runs an operation for one element: of the operation and its inputs there; returns all its outputs.
RunOne: TypeAlias = Callable[[tf.Operation, list[tf.Tensor]], Sequence[tf.Tensor]]
# Makes one tensor of the values that an output has for all elements. It takes the output, the values and their number.
Stack: TypeAlias = Callable[[tf.Tensor, tf.TensorArray, Any], tf.Tensor]
# What a TensorArray in a function adds to the graph where it is stacked.
_STACK_OF_LIST = "TensorListStack"


def stack(_: tf.Tensor, elements: tf.TensorArray, number: Any) -> tf.Tensor:
    """Stacks tensors of one shape."""
    return elements.stack()


def register_loop(
    op_type: str, run_one: RunOne, stacked: Stack = stack, unread: Callable[[], tf.Tensor] | None = None
) -> None:
    """Let operators of a type run in a loop where TensorFlow vectorizes what is around them.

    Args:
      op_type: the type of the operators.
      run_one: runs one of them for one element.
      stacked: makes one tensor of the values that an output has for all elements.
      unread: what stands for a variant that nobody reads; by default that is treated like other outputs.
    """

    def convert(call: Any) -> list[Any]:
        length = tf.get_static_value(call.pfor.loop_len_vector)
        number = call.pfor.loop_len_vector[0] if length is None else length.item()
        skipped = [unread is not None and not _is_read(output) for output in call.outputs]
        elements = [_element_of(tensor, number) if is_stacked else None for tensor, is_stacked, _ in call.inputs]

        def body(i: tf.Tensor, *arrays: tf.TensorArray) -> tuple[Any, ...]:
            pairs = zip(elements, call.inputs, strict=True)
            inputs = [tensor if element is None else element(i) for element, (tensor, _, _) in pairs]
            results = [result for result, skip in zip(run_one(call.op, inputs), skipped, strict=False) if not skip]
            return (i + 1, *(array.write(i, result) for array, result in zip(arrays, results, strict=True)))

        outputs = [output for output, skip in zip(call.outputs, skipped, strict=True) if not skip]
        arrays = [_array_for(output, number) for output in outputs]
        _, *arrays = tf.while_loop(lambda i, *_: i < number, body, [0, *arrays])
        made = (stacked(output, array, number) for output, array in zip(outputs, arrays, strict=True))
        return [pfor.wrap(unread(), False) if unread and skip else pfor.wrap(next(made)) for skip in skipped]

    pfor.RegisterPFor(op_type)(convert)


def leave_out_converted(call: str, op_types: Collection[str]) -> None:
    """Let functions leave out what TensorFlow has built for one element, once it is converted for all of them.

    TensorFlow builds the function that is mapped for element 0, and makes operators for all elements of that. A
    `tf.function` would run both, as those that call count as stateful: one call too many, with all side effects, and an
    error if there are no elements.

    Args:
      call: the operator that calls functions. A conditional with calls, say, is left out unless it does more.
      op_types: operators that are left out in any case.
    """
    add_conversion = pfor.PFor._add_conversion

    def add(converter: Any, old: Any, new: Any) -> None:
        add_conversion(converter, old, new)
        op = old if isinstance(old, tf.Operation) else old.op
        is_same = (new if isinstance(new, tf.Operation) else new.t) is old
        if op._is_stateful and not is_same and (op.type in op_types or side_effects.only_calls(op, call)):
            side_effects.note_replaced(op)

    replace_for_good(pfor.PFor, "_add_conversion", add)


def _array_for(output: tf.Tensor, number: Any) -> tf.TensorArray:
    """An array for the values of an output. In a branch that no element takes it is empty, and has to know a shape."""
    shape = output.shape if output.shape.is_fully_defined() else None
    if output.dtype == tf.variant:
        is_record = handles.handle_data(output) == handles.OF_RECORD
        shape = tf.TensorShape([]) if is_record or output.shape.rank == 0 else None
    return tf.TensorArray(output.dtype, number, infer_shape=False, element_shape=shape)


def _element_of(stacked: tf.Tensor, number: Any) -> Callable[[tf.Tensor], tf.Tensor]:
    """Tells the elements of a stacked tensor. A loop gets variants in a list: there are no zeros like several ones.

    The list is that which they were stacked from, if there is one, so that gradients for the list are for no stack.
    """
    if stacked.dtype != tf.variant:
        return lambda i: stacked[i, ...]
    if tf.is_symbolic_tensor(stacked) and stacked.op.type == _STACK_OF_LIST:
        array = tf.TensorArray(stacked.dtype, flow=stacked.op.inputs[0], infer_shape=False)
    else:
        array = tf.TensorArray(stacked.dtype, number, infer_shape=False).unstack(stacked)
    return lambda i: array.read(i)


def register_once(op_type: str, run: RunOne) -> None:
    """Let operators of a type run once for all elements, with inputs that are the same for all of them."""

    def convert(call: Any) -> list[Any]:
        inputs = [call.unstacked_input(i) for i in range(call.num_inputs)]
        return [pfor.wrap(output, False) for output in run(call.op, inputs)]

    pfor.RegisterPFor(op_type)(convert)


def _is_read(output: tf.Tensor) -> bool:
    """Whether anything reads a tensor, apart from variants that nobody does."""
    returned = getattr(output.graph, "outputs", ())
    return output.dtype != tf.variant or bool(output.consumers()) or any(output is known for known in returned)
