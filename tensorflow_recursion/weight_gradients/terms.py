"""Terms of the gradient for a weight: which ones an operator makes that reads it, and how."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeAlias

import tensorflow as tf

from tensorflow_recursion.weight_gradients.contributions import Kind
from tensorflow_recursion.weight_gradients.weight_views import Step

_ELEMENTS_OF_A_SMALL_TERM = 1000
# A part is small beside a weight that has this many times its elements.
SMALL_PART = 4

# A term is two tensors, made from the gradient for what the operator returns.
Term: TypeAlias = tuple[tf.Tensor, tf.Tensor]


@dataclasses.dataclass(frozen=True)
class Terms:
    """The terms that an operator makes of the gradient for one of its inputs.

    Attributes:
      kind: what they are.
      make: makes one.
      shape: the static shape of what they are terms for: of the input, or of a view of it.
      steps: to that view.
    """

    kind: Kind
    make: Callable[[tf.Operation, tf.Tensor], Term]
    shape: tf.TensorShape
    steps: tuple[Step, ...] = ()


def is_small(size: int, weight: tf.TensorShape) -> bool:
    """Whether a term of so many elements is no larger than the weight, or small.

    Terms are kept until all calls have made theirs. A product of two weights, `u @ v`, makes larger ones.
    """
    return bool(size <= max(weight.num_elements(), _ELEMENTS_OF_A_SMALL_TERM))


def is_small_beside_open(rows: int | None, sizes: Sequence[int | None]) -> bool:
    """Whether a term of so many rows is small beside a matrix, or stack of matrices, of which sizes are open."""
    if rows is None:
        return False
    return rows == 1 or all(size is None or rows * SMALL_PART <= size for size in sizes[-2:])
