"""The forward and the backward function that differentiating a function takes."""
# SPDX-License-Identifier: Apache-2.0

import dataclasses
from typing import TypeAlias

from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion._tf.handles import HandleData
from tensorflow_recursion.definitions import Definition
from tensorflow_recursion.shapes import Shapes

Handles: TypeAlias = tuple[HandleData | None, ...]


@dataclasses.dataclass(eq=False)
class Pair:
    """The forward and the backward function of one function in one group.

    Attributes:
      definition: what is differentiated.
      forward, backward: names of the two functions.
      arg_shapes: static shapes of the declared arguments, as far as all calls of the group agree.
      handles: what all calls of the group agree on of the variables whose handles are declared arguments.
      trainable: positions of the arguments and captures that have a gradient.
      result_shapes: static shapes of the results, None before the first trace.
      rounds: number of traces.
      functions: the two functions, once traced.
    """

    definition: Definition
    forward: str
    backward: str
    arg_shapes: Shapes
    handles: Handles
    trainable: tuple[int, ...]
    result_shapes: Shapes | None = None
    rounds: int = 0
    functions: tuple[TracedFunction, ...] = ()
