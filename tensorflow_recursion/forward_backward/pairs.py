"""The forward and the backward function that differentiating a function takes."""
# SPDX-License-Identifier: Apache-2.0

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf import handles
from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion._tf.handles import HandleData
from tensorflow_recursion.forward_backward.knowledge import Told
from tensorflow_recursion.traces import shapes as static_shapes
from tensorflow_recursion.traces.definitions import Definition
from tensorflow_recursion.traces.shapes import Shapes
from tensorflow_recursion.weight_gradients.obstacles import Obstacle
from tensorflow_recursion.weight_gradients.usages import Weight

Handles: TypeAlias = tuple[HandleData | None, ...]

# What an error says of a result that has a gradient if more were known of it.
_UNTOLD_VARIANT = (
    "variant, and its body does not tell what that holds; return a list of tensors (tf.raw_ops.TensorList...) whose "
    "dtype can be seen, or the tensors"
)
_UNTOLD_HANDLE = (
    "handle, and its body does not tell of what variable; return the variable's value, or the handle as it was passed"
)


@dataclasses.dataclass(frozen=True)
class Templates:
    """The two functions of a pair without the record, from which functions are made that can be differentiated.

    Attributes:
      forward: takes arguments and captures; returns results, and behind them what is retained.
      backward: takes what is retained, gradients for results, and captures; returns gradients for arguments.
      retained: dtypes and static shapes of what the record holds.
      awaited: operations that `forward` was made of, which the record comes after.
      handles: what is known of the lists and variables in it.
      dy_handles: what is known of the lists among the gradients for the results.
      capture_handles: what is known of the variables and lists among the captured tensors.
      dx_handles: what is known of the lists among the gradients for the inputs.
    """

    forward: TracedFunction
    backward: TracedFunction
    retained: tuple[tf.TensorSpec, ...]
    awaited: tuple[tf.Operation, ...]
    handles: Handles
    dy_handles: Handles
    capture_handles: Handles
    dx_handles: Handles


@dataclasses.dataclass(eq=False)
class Pair:
    """The forward and the backward function of one function in one group.

    Attributes:
      definition: what is differentiated.
      forward, backward: names of the two functions.
      arg_shapes: static shapes of the declared arguments, as far as all calls of the group agree.
      handles: what all calls of the group agree on of the variables and lists whose handles are declared arguments.
      trainable: positions of the arguments and captures that have a gradient.
      result_shapes: static shapes of the results, None before the first trace.
      result_handles: what is known of the lists among the results; empty before the first trace.
      asked: positions of the variants and handles among the results that a call has a gradient for, with their dtypes.
      changes: how often shapes turned out to be less than was assumed.
      told: what the last trace was told of the group; None if there has to be one in any case.
      callees: the functions that the body calls where a gradient is taken, by their lasting names.
      weights: those that the body uses, not only hands on.
      obstacles: uses of weights in the last trace that make no terms.
      assignment: an operator of the gradient that assigns to a variable, as a message calls it, if there is one.
      functions: the two functions, once traced.
      templates: the two functions without their record, once traced, where the gradient is to be differentiated.
    """

    definition: Definition
    forward: str
    backward: str
    arg_shapes: Shapes
    handles: Handles
    trainable: tuple[int, ...]
    result_shapes: Shapes | None = None
    result_handles: Handles = ()
    asked: dict[int, tf.DType] = dataclasses.field(default_factory=dict)
    changes: int = 0
    told: Told | None = None
    callees: set[str] = dataclasses.field(default_factory=set)
    weights: Sequence[Weight] = ()
    obstacles: Sequence[Obstacle] = ()
    assignment: str | None = None
    functions: tuple[TracedFunction, ...] = ()
    templates: Templates | None = None

    def is_trainable_result(self, position: int, dtype: tf.DType) -> bool:
        """Whether a result has a gradient, as far as is known: by its dtype, or as a list or handle of such values."""
        if not handles.has_data(dtype):
            return handles.is_trainable_type(dtype.base_dtype)
        return position < len(self.result_handles) and handles.holds_trainable(self.result_handles[position])

    def is_stale(self) -> bool:
        """Whether the body is to be traced, for the first time or because it rests on less than is known by now."""
        return self.told is None or self.told.is_stale()

    def assumed(self) -> tuple[object, ...]:
        """What a trace begins with."""
        return self.definition, static_shapes.shown(self.arg_shapes), self.handles, self.trainable

    def known_lists(self) -> tuple[tuple[int, HandleData], ...]:
        """What is known of the lists among the results, with their positions."""
        return tuple((i, known) for i, known in enumerate(self.result_handles) if known is not None)

    def joined_shapes(self, found: Shapes) -> Shapes:
        """The most exact shapes that hold for the results of a trace, `found`, and for those of the traces before."""
        return found if self.result_shapes is None else tuple(map(static_shapes.join, found, self.result_shapes))

    def add_trainable(self, positions: Iterable[int]) -> None:
        """Learn that inputs have a gradient, such as lists of which more is known now. All gradient calls return it."""
        self.trainable = tuple(sorted({*self.trainable, *positions}))

    def check_asked(self) -> None:
        """Raises LookupError if there is a gradient for a result of which nothing is known."""
        for i, dtype in sorted(self.asked.items()):
            if not self.is_trainable_result(i, dtype):
                untold = _UNTOLD_HANDLE if dtype == tf.resource else _UNTOLD_VARIANT
                raise LookupError(
                    f"Function '{names.shown(self.definition.user_name)}' cannot be differentiated: output {i} is a "
                    f"{untold}"
                )
