"""What a function takes and returns, and the checks of calls and definitions against it."""
# SPDX-License-Identifier: Apache-2.0

import dataclasses
import inspect
import re
import reprlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from tensorflow_recursion._tf import graphs
from tensorflow_recursion.errors import CallError, with_message

_NAME = re.compile(r"[A-Za-z0-9.]([A-Za-z0-9_.\-/]*[A-Za-z0-9_.\-])?")
_ARGUMENT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# A node of the body is called like the output and a suffix.
_OUTPUT_NAME = re.compile(r"[A-Za-z0-9_.\-/]*")

# Name and dtype of an argument or output.
Named: TypeAlias = tuple[str, tf.DType]

# What stands for a value of several tensors in a list of tensors.
_PARTS = (
    (tf.RaggedTensor, "x.flat_values and the tensors of x.nested_row_splits"),
    (tf.SparseTensor, "x.indices, x.values and x.dense_shape"),
    (tf.IndexedSlices, "x.values and x.indices"),
    (tf.TensorArray, "x.stack()"),
)


@dataclasses.dataclass(frozen=True)
class Signature:
    """Names and dtypes of a function's arguments and outputs.

    Attributes:
      name: the user's name of the function.
      inputs: `(name, dtype)` of each declared argument.
      outputs: `(name, dtype)` of each output.
      output_shapes: the static shape of each output as the user stated it; None if not stated.
    """

    name: str
    inputs: tuple[Named, ...]
    outputs: tuple[Named, ...]
    output_shapes: tuple[tf.TensorShape, ...] | None = None

    @property
    def input_types(self) -> list[tf.DType]:
        """Dtypes of the declared arguments."""
        return [dtype for _, dtype in self.inputs]

    @property
    def output_types(self) -> list[tf.DType]:
        """Dtypes of the outputs."""
        return [dtype for _, dtype in self.outputs]

    def __str__(self) -> str:
        """The signature as one line of text, for messages."""
        inputs, outputs = (
            ", ".join(f"{name}: {dtype.name}" for name, dtype in pairs) for pairs in (self.inputs, self.outputs)
        )
        shapes = f" with output_shapes {self.output_shapes}" if self.output_shapes is not None else ""
        return f"({inputs}) -> ({outputs}){shapes}"


def mismatch(
    declared: Signature, verb: str, expected: Sequence[tf.DType], got: Sequence[tf.DType], where: str = ""
) -> TypeError:
    """The error for a definition that is not what was declared: what it `takes` or `returns`."""
    return TypeError(
        f"Function '{declared.name}' {verb} {type_names(expected)} by its declaration, "
        f"but its definition {where + ' ' if where else ''}{verb} {type_names(got)}"
        f"{number_hint(expected, got) if verb == 'returns' and not where else ''}"
    )


def number_hint(expected: Sequence[tf.DType], got: Sequence[tf.DType]) -> str:
    """What may be the matter where a result has the dtype that a Python number gets in TensorFlow."""
    for want, have in zip(expected, got, strict=False):
        is_number = (want.is_integer and have == tf.int32) or (want.is_floating and have == tf.float32)
        if is_number and want.base_dtype != have:
            return (
                f"; a Python number in a branch is {have.name}, write tf.constant(0, tf.{want.base_dtype.name}) there"
            )
    return ""


def check_returns_values(decorator: str, func: Callable[..., Any]) -> None:
    """Raises TypeError if a Python function has a `yield` or is `async`: calls of it return what makes values later."""
    if inspect.isgeneratorfunction(func):
        what, remedy = "a `yield`", "Return the values, stacked to one tensor for example"
    elif inspect.iscoroutinefunction(func) or inspect.isasyncgenfunction(func):
        what, remedy = "`async`", "Write a plain `def`"
    else:
        return
    name = getattr(func, "__qualname__", repr(func))
    raise TypeError(f"{decorator} decorates a Python function that returns values, but '{name}' has {what}. {remedy}")


def checked_name(name: Any) -> str:
    """`name` if a node and a function of a graph may be called so, else a ValueError that says the name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a legal function name: it has to start with a letter, a digit or '.', "
            "and go on with letters, digits and any of _ . - /"
        )
    return name


def checked_named_types(function: str, what: str, pairs: Iterable[Any]) -> tuple[Named, ...]:
    """`[(name, dtype), ...]` with dtypes normalized; a mistake is an error that names the function."""
    if not isinstance(pairs, Iterable):
        raise TypeError(f"Function '{function}': {what} is {pairs!r}, expected a list of pairs (name, dtype)")
    result = []
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(f"Function '{function}': {what} holds {pair!r}, expected pairs (name, dtype)")
        name, dtype = pair
        if not _ARGUMENT_NAME.fullmatch(name):
            raise ValueError(f"Function '{function}': {name!r} in {what} is not a legal argument name")
        result.append((name, checked_type(function, dtype)))
    check_distinct(function, what, [name for name, _ in result])
    return tuple(result)


def check_distinct(function: str, what: str, names: Sequence[str]) -> None:
    """Raises ValueError if a name is twice in `names`, which are those of `what`, "out_names" for example."""
    if len(set(names)) < len(names):
        raise ValueError(f"Function '{function}': {what} has a name twice: {', '.join(names)}")


def check_output_name(function: str, name: str) -> None:
    """Raises ValueError if no output of a Defun may be called so."""
    if not _OUTPUT_NAME.fullmatch(name):
        raise ValueError(
            f"Function '{function}': {name!r} in out_names is not a legal name: it has letters, digits and any of "
            "_ . - / alone"
        )


def checked_type(function: str, dtype: Any) -> tf.DType:
    """`dtype` as a `tf.DType`, else a TypeError that names the function."""
    try:
        return tf.as_dtype(dtype).base_dtype
    except (TypeError, ValueError) as error:
        raise TypeError(f"Function '{function}': {dtype!r} is not a dtype") from error


def checked_shapes(function: str, shapes: Sequence[Any] | None, count: int | None) -> tuple[tf.TensorShape, ...] | None:
    """Stated output shapes as TensorShapes; a None entry is an unknown shape. `count`: how many, if that is known."""
    if shapes is None:
        return None
    try:
        result = tuple(tf.TensorShape(shape) for shape in shapes)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Function '{function}': output_shapes is {shapes!r}, expected a list of shapes") from error
    if count is not None and len(result) != count:
        raise ValueError(f"Function '{function}': output_shapes has {len(result)} entries for {count} outputs")
    return result


def legal_argument_names(names: Sequence[str]) -> list[str]:
    """Names that placeholders may have: Python's own where they are legal, else `arg<index>`."""
    return [name if _ARGUMENT_NAME.fullmatch(name) else f"arg{i}" for i, name in enumerate(names)]


def type_names(dtypes: Iterable[tf.DType]) -> str:
    """Dtypes in parentheses, for messages."""
    return "(" + ", ".join(dtype.name for dtype in dtypes) + ")"


def same_types(a: Sequence[tf.DType], b: Sequence[tf.DType]) -> bool:
    """Whether two lists of dtypes are the same; a reference is one of its base type."""
    return [dtype.base_dtype for dtype in a] == [dtype.base_dtype for dtype in b]


def check_count(function: str, inputs: Sequence[Named], args: Sequence[Any]) -> None:
    """Raises CallError if a call passes another number of arguments than the function takes."""
    if len(args) != len(inputs):
        names = ", ".join(f"{name}: {dtype.name}" for name, dtype in inputs)
        raise CallError(
            f"Call of '{function}': got {len(args)} argument{'s' * (len(args) != 1)}. "
            f"Expected {len(inputs)}: the function takes {len(inputs)} ({names})"
        )


def check_keywords(what: str, known: str, given: Iterable[str]) -> None:
    """Raises CallError if there are unknown keyword arguments `given`; `known` says in words which there are."""
    if given := list(given):
        names = ", ".join(f"'{name}'" for name in given)
        raise CallError(f"{what}: Unknown keyword arguments {names}; known: {known}")


def check_call_keywords(function: str, name: Any, given: Iterable[str]) -> None:
    """Raises CallError if a call passes keyword arguments besides `name`, TypeError if that is no text."""
    check_keywords(f"Call of '{function}'", "name (arguments are positional)", given)
    if name is not None and not isinstance(name, str):
        raise TypeError(f"Call of '{function}': name is {name!r}, expected a str or None")


def convert_arguments(function: str, inputs: Sequence[Named], args: Sequence[Any]) -> list[tf.Tensor]:
    """Make each argument a tensor of its declared dtype, in the default graph.

    Args:
      function: name for error messages.
      inputs: `(name, dtype)` of each argument.
      args: tensors, variables or Python values, as many as `inputs`.

    Raises:
      TypeError: if a tensor has another dtype, or a value does not convert; names function, argument and dtypes.
    """
    pairs = zip(inputs, args, strict=True)
    return [_convert(function, i, name, dtype, arg) for i, ((name, dtype), arg) in enumerate(pairs)]


def remedy_for_parts(value: Any, verb: str) -> str | None:
    """What to `verb` ("pass", "return") in place of a value that is made of several tensors; None if `value` is not."""
    parts = next((parts for kind, parts in _PARTS if isinstance(value, kind)), None)
    if parts is None:
        return None
    return f"{verb} {parts}, or define the function by tfr.recursive, which takes and returns such values as they are"


def convert_argument(function: str, index: int, value: Any) -> tf.Tensor:
    """Make an argument whose dtype nobody states a tensor.

    Raises:
      TypeError, ValueError: as tf.convert_to_tensor does; names function and argument.
    """
    try:
        return tf.convert_to_tensor(value)
    except (TypeError, ValueError) as error:
        where = f"Call of '{function}': argument {index}"
        if (remedy := remedy_for_parts(value, "pass")) is not None:
            raise with_message(error, f"{where} is a {type(value).__name__}, expected a tensor; {remedy}") from error
        message = f"{where}: cannot convert {reprlib.repr(value)} to a tensor: {error}"
        raise with_message(error, message) from error


def _convert(function: str, index: int, name: str, dtype: tf.DType, value: Any) -> tf.Tensor:
    where = f"Call of '{function}': argument {index} ('{name}')"
    check_belongs_here(where, value)
    if dtype == tf.resource and isinstance(value, tf.Variable) and hasattr(value, "handle"):
        return value.handle
    if isinstance(value, (tf.Tensor, tf.Variable)):
        if value.dtype.base_dtype != dtype:
            raise TypeError(f"{where} is {value.dtype.base_dtype.name}, the function takes {dtype.name}")
        return tf.convert_to_tensor(value)
    check_fits(where, value, dtype)
    try:
        return tf.convert_to_tensor(value, dtype=dtype, name=name)
    except (TypeError, ValueError, OverflowError, tf.errors.OpError) as error:
        if (remedy := remedy_for_parts(value, "pass")) is not None:
            kind = type(value).__name__
            raise TypeError(f"{where} is a {kind}, the function takes {dtype.name}; {remedy}") from error
        raise TypeError(f"{where}: cannot convert {reprlib.repr(value)} to {dtype.name}: {error}") from error


def check_fits(where: str, value: Any, dtype: tf.DType, verb: str = "takes") -> None:
    """Raises TypeError, which begins with `where`, if TensorFlow would change numbers in `value` without a word.

    `verb` is what the function does with such a value, "takes" or "returns".
    """
    if isinstance(value, (np.ndarray, np.generic)) and not _casts(value.dtype, dtype):
        raise TypeError(f"{where} is a numpy value of {value.dtype.name}, the function {verb} {dtype.name}")
    if _overflows(value, dtype):
        raise TypeError(f"{where}: {reprlib.repr(value)} is out of the range of {dtype.name}")


def fits(value: Any, dtype: tf.DType) -> bool:
    """Whether TensorFlow would keep the numbers in `value` as they are, as far as `check_fits` sees that."""
    try:
        check_fits("", value, dtype)
    except TypeError:
        return False
    return True


def check_belongs_here(where: str, value: Any) -> None:
    """Raises TypeError, which begins with `where`, if `value` is an eager tensor that calls here cannot take."""
    if graphs.is_eager_tensor(value) and not _are_taken_here():
        raise TypeError(
            f"{where} is an eager tensor, which belongs to no graph; pass its value, x.numpy(), or make it in the graph"
        )


def _are_taken_here() -> bool:
    """Whether calls in the default graph may take eager tensors: in eager mode and in the graphs of functions."""
    return tf.executing_eagerly() or graphs.takes_eager_tensors(tf.compat.v1.get_default_graph())


def _casts(source: np.dtype, target: tf.DType) -> bool:
    """Whether numpy values of `source` may become `target` without losing their kind (1.5 is never cut to 1)."""
    if source.kind in "SU":
        return bool(target == tf.string)  # a text is no number, although numpy reads "1" as one
    if source.kind in "OV" or target in (tf.resource, tf.variant, tf.string):
        return True  # tf.convert_to_tensor decides
    numpy_type = np.dtype(target.as_numpy_dtype)
    if source.kind == "i" and numpy_type.kind == "u":
        return True  # if they are in its range
    return numpy_type.kind == "V" or np.can_cast(source, numpy_type, "same_kind")  # "V": bfloat16 and the like


def _overflows(value: Any, dtype: tf.DType) -> bool:
    """Whether integers in `value` would be cut to fit `dtype`, as TensorFlow does without a word."""
    if not dtype.is_integer:
        return False
    try:
        array = np.asarray(value)
    except Exception:  # what numpy does not take, e.g. a list of tensors, tf.convert_to_tensor may
        return False
    return array.dtype.kind in "iu" and array.size > 0 and not dtype.min <= array.min() <= array.max() <= dtype.max
