"""What a function of `tfr.recursive` returned, checked against its `output_signature`, or what else is known of it."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tensorflow_recursion._tf import nests
from tensorflow_recursion.traces import signatures
from tensorflow_recursion.traces.results import checked


def as_tensors(function: str, returned: Any, known: Any) -> Any:
    """What a function returned, as a nest of tensors; Python values get the dtypes that are `known`, if they fit.

    Raises:
      TypeError: if it holds what is no tensor.
    """
    try:
        return nests.to_tensors(returned, known, signatures.fits)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Function '{function}' returns {returned!r}, expected tensors, or what converts to them, in tuples, lists "
            f"or dictionaries: {error}"
        ) from error


def joined(function: str, returned: Any, known: Any, *, is_stated: bool, is_of_path: bool = False) -> Any:
    """The spec of what is known of a function and of what it returned.

    Args:
      function: its name.
      returned: a nest of tensors.
      known: a spec.
      is_stated: whether the user states that.
      is_of_path: whether only some paths through the body return this.

    Raises:
      TypeError: if these are of different kinds, or dtypes.
    """
    found = nests.spec_of(returned)
    try:
        return nests.join(known, found)
    except ValueError as error:
        text = f"Function '{function}' returns {found}, but other paths through its body return {known}"
        if is_stated:
            text = f"Function '{function}' returns {found}, but output_signature states {known}"
        if is_of_path:
            text = f"Function '{function}': output_signature states {known}, a path through its body returns {found}"
            if str(error) == f"{known} and {found}":
                raise TypeError(text) from error
        raise TypeError(f"{text}; they differ in {error}{_hint(known, found) if is_stated else ''}") from error


def as_stated(function: str, returned: Any, stated: Any, *, is_of_path: bool = False) -> list[tf.Tensor]:
    """The tensors of what a function returned, with the shapes that its `output_signature` states.

    Where the trace does not tell them, the run checks them. Arguments as those of `joined`.

    Raises:
      TypeError: if it is of another kind, or dtype.
      ValueError: if it has another shape.
    """
    joined(function, returned, stated, is_stated=True, is_of_path=is_of_path)
    tensors, specs = nests.tensors_of(returned), nests.tensor_specs(stated)
    for i, (tensor, spec) in enumerate(zip(tensors, specs, strict=True)):
        if tensor.shape.is_compatible_with(spec.shape):
            continue
        text = f"output {i} has shape {tensor.shape}, output_signature states {spec.shape}"
        if is_of_path:
            text = (
                f"output_signature states {spec.shape} for output {i}, a path through its body returns {tensor.shape}"
            )
        raise ValueError(f"Function '{function}': {text}")
    return [
        checked(i, tensor, spec.shape, is_of_nest=True)
        for i, (tensor, spec) in enumerate(zip(tensors, specs, strict=True))
    ]


def _hint(known: Any, found: Any) -> str:
    """What may be the matter where a Python number has become a tensor of another dtype than is stated."""
    stated, got = (
        [tf.as_dtype(spec.dtype.as_datatype_enum) for spec in nests.tensor_specs(spec_of_nest)]
        for spec_of_nest in (known, found)
    )
    return signatures.number_hint(stated, got) if len(stated) == len(got) else ""
