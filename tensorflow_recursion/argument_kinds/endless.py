"""Refuses recursions that seem to go on without end while they are traced, as the kind of arguments changes each time.

Take for example `f(x, k)` with a Python number k, whose body calls `f(x, k + 1)`. Each k is a kind of argument of its
own, for which the body is traced, and calls f with the next one. (Where TensorFlow ends such a recursion, numbers may
be tensors instead: see `passed_numbers`.)
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from tensorflow_recursion._tf import function_types, type_texts
from tensorflow_recursion._tf.function_types import CallType
from tensorflow_recursion.argument_kinds.specializations import Source, remedy_for_kinds, unrolled
from tensorflow_recursion.errors import CallError, EndlessError

# How often in a row the body of a function may ask for a new kind of its own arguments. More are taken for a recursion
# that never ends.
_MAX_UNROLLED = 64
# How many tensors the arguments of such calls may come to hold, unless the first of them holds half as many.
_MAX_GROWN = 1000
# In so many calls in a row, the functions among the arguments may refer to more and more others. To trace the last one
# of those that apply the one before twice takes twice as long each time.
_MAX_DEEPER = 12
# How many characters of Python strings and other Python values the arguments may come to hold, unless those of the
# first call are half as many.
_MAX_SIZE = 10_000


def check_end(source: Source, call_type: CallType) -> None:
    """Raises CallError if a call of a new kind seems to be part of a recursion that has no end.

    Each call of such a recursion passes arguments of another kind. Notes which Python numbers change from call to call.

    Args:
      source: the function that is called.
      call_type: the kind of its arguments.
    """
    earlier = unrolled(source)
    if earlier:
        source.numbers.note(function_types.changing_numbers(earlier[0].call_type, call_type))
    if len(earlier) >= _MAX_UNROLLED:
        how = type_texts.difference(earlier[0].call_type, call_type)
        raise EndlessError(
            f"Call of '{source.name}': one led to the next one with other kinds of arguments {len(earlier)} times "
            f"in a row, and here is another one{how}. {_remedy(source, earlier[0].call_type, call_type)}"
        )
    depths = [function_types.depth_of_functions(kind) for kind in (call_type, *(one.call_type for one in earlier))]
    if len(depths) > _MAX_DEEPER and all(a > b for a, b in zip(depths[:_MAX_DEEPER], depths[1:], strict=False)):
        how = type_texts.difference(earlier[-1].call_type, call_type)
        raise CallError(
            f"Call of '{source.name}': one led to the next one {_MAX_DEEPER} times in a row with a function that "
            f"calls the one before{how}. Functions that grow from call to call of a recursion make it trace "
            "without end; pass one function, and how often to apply it as a tensor"
        )
    count = len(function_types.tensor_specs(call_type))
    if len(earlier) > 1 and count > max(_MAX_GROWN, 2 * len(earlier[-1].specs)):
        raise CallError(
            f"Call of '{source.name}': the arguments hold {count} tensors, those of the first call "
            f"{len(earlier[-1].specs)}. Lists that grow from call to call of a recursion make it trace without "
            "end (Python repeats a list by `x * 2`, and lengthens it by `x + y`); pass one tensor in place of a "
            "list of them, tf.stack(values) for example"
        )
    size = function_types.size_of_values(call_type)
    if len(earlier) > 1 and size > max(_MAX_SIZE, 2 * function_types.size_of_values(earlier[-1].call_type)):
        raise CallError(
            f"Call of '{source.name}': the Python strings and lists among the arguments have grown to {size:,} "
            "characters and values. What grows from call to call of a recursion makes it trace without end; pass "
            "it as a tensor, tf.constant(text) for example"
        )


def _remedy(source: Source, before: CallType, after: CallType) -> str:
    """What to do about a recursion that has gone from one kind of arguments to the other, and would go on."""
    if source.reads.kept and type_texts.shapes_differ(before, after):
        return (
            "Each shape makes a trace, because the body reads sizes in Python, as x.shape[0]; write tf.shape(x)[0], "
            "which each call computes, and let a condition on that end the recursion"
        )
    return remedy_for_kinds(before, after)
