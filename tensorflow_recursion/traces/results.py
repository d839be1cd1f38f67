"""What a Python body returned, as tensors, checked against what was declared or stated of them."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence, Set
from typing import Any

import tensorflow as tf

from tensorflow_recursion.errors import DefinitionError
from tensorflow_recursion.traces import signatures
from tensorflow_recursion.traces.signatures import Signature

# How the names of operations begin that check what was stated: in a Defun or Declare, and in tfr.recursive.
CHECKS = ("output_shapes_", "output_signature_")


@dataclasses.dataclass(frozen=True)
class Results:
    """What is known of the results of a function before its body is traced.

    Attributes:
      function: name of the function, for messages.
      out_names: as given to Defun.
      output_shapes: as given to Defun.
      declared: the declaration, if there is one.
    """

    function: str
    out_names: Sequence[str] | None
    output_shapes: tuple[tf.TensorShape, ...] | None
    declared: Signature | None

    def tensors(self, returned: Any) -> list[tf.Tensor]:
        """What the Python function returned, as tensors.

        Raises:
          TypeError: if it is of another kind, number or dtype than declared.
          ValueError: if it differs from what was stated of names or shapes, or holds None.
        """
        outputs = self._listed(returned)
        self._check_stated(outputs)
        types = self._declared_types(len(outputs))
        tensors = [self._to_tensor(i, *pair) for i, pair in enumerate(zip(outputs, types, strict=True))]
        if self.declared is not None and not signatures.same_types(
            self.declared.output_types, got := [tensor.dtype for tensor in tensors]
        ):
            raise signatures.mismatch(self.declared, "returns", self.declared.output_types, got)
        return self._with_stated_shapes(tensors)

    def _listed(self, returned: Any) -> list[Any]:
        """The outputs as a list; an operation is run for its effect, and is none."""
        if isinstance(returned, (Mapping, Set)):
            raise TypeError(
                f"Function '{self.function}' returns a {type(returned).__name__}, "
                "expected a tensor, or a list or tuple of tensors"
            )
        if returned is None:
            self._check_none()
        if returned is None or isinstance(returned, tf.Operation):
            return []
        outputs = list(returned) if isinstance(returned, (list, tuple)) else [returned]
        if any(output is None for output in outputs):
            raise ValueError(f"Function '{self.function}' returns None among its outputs; it can not return None there")
        for i, output in enumerate(outputs):
            if what := _holds(output):
                raise TypeError(
                    f"Function '{self.function}': output {i} is a {type(output).__name__} that holds {what}, expected "
                    "a tensor; return a flat list or tuple, or tf.stack what is to be one tensor"
                )
        return outputs

    def _check_none(self) -> None:
        """Raises TypeError if a body that returns None has outputs by its declaration or names."""
        if not (self.declared.outputs if self.declared is not None else self.out_names):
            return
        expected, source = ", ".join(self.out_names or ()), "its out_names"
        if self.declared is not None:
            expected, source = signatures.type_names(self.declared.output_types), "its declaration"
        raise TypeError(
            f"Function '{self.function}' returns {expected} by {source}, but the body of its definition returns None; "
            "return a tensor on every path, from each branch of a tf.cond, too"
        )

    def _check_stated(self, outputs: Sequence[Any]) -> None:
        for what, stated in (("out_names", self.out_names), ("output_shapes", self.output_shapes)):
            if stated is None or len(stated) == len(outputs):
                continue
            message = (
                f"Function '{self.function}' has {len(stated)} {what}, but its body returns {len(outputs)} outputs"
            )
            if what == "output_shapes":
                raise ValueError(message)
            raise DefinitionError(
                f"{message}: output names must be either empty or equal in size to outputs. "
                f"output names size = {len(stated)} outputs size = {len(outputs)}"
            )

    def _declared_types(self, count: int) -> Sequence[tf.DType | None]:
        if self.declared is None:
            return [None] * count
        if len(self.declared.outputs) != count:
            raise TypeError(
                f"Function '{self.function}' returns {signatures.type_names(self.declared.output_types)} "
                f"by its declaration, but the body of its definition returns {count} outputs"
            )
        return self.declared.output_types

    def _to_tensor(self, index: int, output: Any, dtype: tf.DType | None) -> tf.Tensor:
        is_value = dtype is not None and not tf.is_tensor(output)
        if is_value:
            signatures.check_fits(f"Function '{self.function}': output {index}", output, dtype, "returns")
        try:
            return tf.convert_to_tensor(output, dtype=dtype if is_value else None)
        except (TypeError, ValueError) as error:
            if (remedy := signatures.remedy_for_parts(output, "return")) is not None:
                kind = type(error) if tf.is_tensor(output) else TypeError
                raise kind(
                    f"Function '{self.function}': output {index} is a {type(output).__name__}, expected a tensor; "
                    f"{remedy}"
                ) from error
            expected = "a tensor" if dtype is None else dtype.name
            raise TypeError(f"Function '{self.function}' returns {output!r}, expected {expected}: {error}") from error

    def _with_stated_shapes(self, outputs: list[tf.Tensor]) -> list[tf.Tensor]:
        """The outputs with the shapes that are stated; where those of the trace do not tell, the run checks them."""
        shapes = self.output_shapes or (self.declared.output_shapes if self.declared else None)
        if shapes is None:
            return outputs
        for i, (output, shape) in enumerate(zip(outputs, shapes, strict=True)):
            if not output.shape.is_compatible_with(shape):
                raise ValueError(
                    f"Function '{self.function}': output {i} has shape {output.shape}, output_shapes states {shape}"
                )
        return [checked(i, output, shape) for i, (output, shape) in enumerate(zip(outputs, shapes, strict=True))]


def _holds(output: Any) -> str | None:
    """What is in an output that is a nest; None if it is one tensor, as a list of numbers is: `[1.0, 2.0]`.

    A tuple of values looks like further outputs, as in `return (1.0, 2.0), 3.0`.
    """
    if not isinstance(output, (list, tuple)):
        return None
    if any(map(tf.is_tensor, tf.nest.flatten(output))):
        return "tensors"
    return "values" if isinstance(output, tuple) else next(filter(None, map(_holds, output)), None)


def is_check(op: tf.Operation) -> bool:
    """Whether an operation of a body is what `checked` has made."""
    return op.type == "EnsureShape" and any(check in op.name for check in CHECKS)


def checked(index: int, output: tf.Tensor, shape: tf.TensorShape, *, is_of_nest: bool = False) -> tf.Tensor:
    """`output`, whose shape is checked when the function runs unless the trace says enough of it.

    `is_of_nest` says that an output_signature states the shape.
    """
    if output.dtype in (tf.resource, tf.variant) or output.shape.is_subtype_of(shape):
        return output
    with tf.compat.v1.device(output.device or None):
        return tf.ensure_shape(output, shape, name=f"{CHECKS[is_of_nest]}{index}")
