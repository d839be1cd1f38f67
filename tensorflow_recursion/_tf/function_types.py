"""How a call binds to the parameters of a Python function, and which tensors it passes: as tf.function has it."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf
from tensorflow.core.function import trace_type
from tensorflow.core.function.polymorphism import function_cache, function_type, type_dispatch
from tensorflow.core.function.trace_type import custom_nest_trace_type, default_types
from tensorflow.python.eager.polymorphic_function import function_type_utils
from tensorflow.python.types import trace
from tensorflow.python.util import nest

from tensorflow_recursion._tf import arrays, function_copies, function_kinds, function_parts, nests, type_texts
from tensorflow_recursion._tf.read_shapes import Part

# The kinds of all arguments of a call: specs of tensors, and the values of what is no tensor. Equal and hashed by that.
CallType: TypeAlias = function_type.FunctionType
# What is no tensor, no nest and not hashable, in TensorFlow's words.
_UNKNOWN_KIND = re.compile(r"(?s)Could not generate a generic TraceType for (.*?)\.\s*Please verify")

# Classes of Python values that are written alike where they are equal.
_PLAIN = (int, bool, float, complex, str, bytes, type(None))

# What `tf.convert_to_tensor` makes a tensor of.
_VALUES = (int, float, complex, str, bytes, list, tuple, np.ndarray, np.generic)

# A tensor among the arguments, by its number, and a part of its shape, which a type may leave open.
OpenPart: TypeAlias = tuple[int, Part]

# The dtypes of tensors in the place of Python integers, and of other numbers.
Dtypes: TypeAlias = tuple[tf.DType, tf.DType]

# The parameters whose Python numbers are passed as tensors, by name.
AsTensors: TypeAlias = Mapping[str, Dtypes]


@dataclasses.dataclass(frozen=True)
class Kept:
    """What a type does not leave open to serve calls that differ in it: all ranks, or some parts of shapes.

    Much of TensorFlow has to know ranks.
    """

    ranks: bool = False
    parts: Collection[OpenPart] = ()

    def allows(self, opened: Collection[OpenPart]) -> bool:
        """Whether a type may leave these open."""
        of_open_rank = {i for i, part in opened if part is None}
        return not (of_open_rank and self.ranks) and not any(
            (i, part) in opened or i in of_open_rank for i, part in self.parts
        )


class Parameters:
    """The parameters of a Python function, some of which an `input_signature` restricts."""

    def __init__(self, func: Callable[..., Any], input_signature: Sequence[Any] | None) -> None:
        """Reads the parameters of `func`; errors as those of tf.function."""
        self._signature = inspect.signature(func)
        self._input_signature = None if input_signature is None else tuple(input_signature)
        self._type, self._defaults = function_type_utils.make_function_type(func, input_signature)

    @property
    def names(self) -> str:
        """The parameters as they are written, for messages."""
        return str(self._signature)

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any], as_tensors: AsTensors | None = None) -> Arguments:
        """The arguments of a call, with tensors for Python numbers of parameters that are in `as_tensors`.

        Raises:
          TypeError: if they do not fit the parameters, or are not what the `input_signature` says.
        """
        bound = self._bound(*arrays.in_graph((args, kwargs)))
        kept: list[Any] = []
        typed, by_keyword = nest.map_structure(lambda leaf: _with_spec(leaf, kept), (bound.args, bound.kwargs))
        if self._input_signature is not None:
            typed = (*self._input_signature, *typed[len(self._input_signature) :])
        try:
            call_type, _ = function_type_utils.make_canonicalized_monomorphic_type(typed, by_keyword, {}, self._type)
        except (TypeError, ValueError) as error:
            raise TypeError(_explained(error)) from error
        if as_tensors and _numbers(call_type, as_tensors):
            return self.bind(*_with_tensors(call_type, bound, as_tensors))
        return Arguments(call_type, bound)

    def check_keywords(self, kwargs: Mapping[str, Any]) -> None:
        """Raises TypeError if a call passes a keyword by which TensorFlow would not pass it, or leaves one out."""
        parameters = self._signature.parameters
        only_by_keyword = [one.name for one in parameters.values() if one.kind is one.KEYWORD_ONLY]
        renamed = next((name for name in (*only_by_keyword, *kwargs) if name.startswith("_")), None)
        if renamed is None:
            return
        is_default = renamed not in kwargs
        may_be_positional = renamed in parameters and renamed not in only_by_keyword
        raise TypeError(
            f"'{renamed}' {'can only be' if is_default else 'is'} passed by keyword, and TensorFlow gives keywords "
            f"that begin with an underscore another name{', also where a default is passed' * is_default}; "
            f"{'pass it by position, or ' * may_be_positional}rename it"
        )

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """What a call passes by parameter, whether or not it fits; without what it passes for `*args`."""
        return {**dict(zip(self._type.parameters, args, strict=False)), **kwargs}

    def stated_for_values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, tf.DType, Any]]:
        """The numbers, arrays and lists of a call for which the `input_signature` states tensors.

        Yields:
          their parameters, the dtypes that are stated, and what is passed.
        """
        if self._input_signature is None:
            return
        for name, value in self.named(args, kwargs).items():
            stated = self._type.parameters[name].type_constraint if name in self._type.parameters else None
            if isinstance(stated, tf.TensorSpec) and isinstance(value, _VALUES):
                yield name, stated.dtype, value

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        """The arguments of a call by parameter, as tensors where the `input_signature` says so."""
        try:
            self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(self._unknown(kwargs) or str(error)) from None
        try:
            bound: inspect.BoundArguments = function_type_utils.canonicalize_function_inputs(
                tuple(args), dict(kwargs), self._type, self._defaults
            )
        except TypeError as error:
            raise TypeError(self._unfit(args, kwargs) or str(error.__cause__ or error)) from error
        return bound

    def _unknown(self, kwargs: Mapping[str, Any]) -> str:
        """What is wrong with the keywords of a call, empty if all are known. Python says what others are missing."""
        known = self._signature.parameters.values()
        if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known):
            return ""
        named = {parameter.name for parameter in known if parameter.kind is not parameter.POSITIONAL_ONLY}
        unknown = next((name for name in kwargs if name not in named), None)
        return "" if unknown is None else f"got an unexpected keyword argument '{unknown}'"

    def _unfit(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Which argument of a call is not what the `input_signature` says, empty if that is not to blame."""
        for name, value in self._type.bind(*args, **kwargs).arguments.items():
            stated = self._type.parameters[name].type_constraint
            try:
                if stated is not None:
                    stated.cast(value, trace_type.InternalCastContext(allow_specs=True))
            except Exception as error:  # of whatever kind a conversion raises
                why = f": {error}".rstrip(". \n") if isinstance(value, _VALUES) else ""
                states = f"input_signature states {type_texts.text(stated)}"
                return f"argument '{name}' is {type_texts.text_of(value)}, {states}{why}"
        return ""


def is_binding_error(error: TypeError | ValueError) -> bool:
    """Whether a tf.function raised `error` because of the arguments of a call."""
    if str(error).startswith("Binding inputs to tf.function failed"):
        return True
    return _UNKNOWN_KIND.match(str(error)) is not None or isinstance(error.__context__, OverflowError)


def _explained(error: TypeError | ValueError) -> str:
    """What an error means that a kind of arguments cannot be told."""
    found = _UNKNOWN_KIND.match(str(error))
    if isinstance(error.__context__, OverflowError):
        # Python does not write numbers of very many digits, which is another error then.
        number = f"{found[1][:12]}... is" if found else "an argument is"
        digits = f"{len(found[1].lstrip('-'))} digits" if found else "thousands of digits"
        return (
            f"{number} a Python number of {digits}, too large to tell calls apart; a number that grows from call to "
            "call of a recursion makes it trace without end, so pass it as a tensor, tf.constant(n)"
        )
    if found is None:
        return str(error)
    return (
        f"{found[1]} is one Python value to TensorFlow, and not a hashable one, by which calls could be told apart; to "
        "pass the tensors in it, give its class __tf_flatten__ and __tf_unflatten__, as tf.nest wants of a dataclass, "
        "or take a tuple, a named tuple or a dictionary"
    )


class Arguments:
    """The arguments of one call.

    Attributes:
      type: what they are.
      objects: the Python objects among them, to which `type` refers weakly: lambdas for example, which nobody else may
        keep. (Of numbers and strings a type has the value itself. What is an owner may not be kept.)
    """

    def __init__(self, call_type: CallType, bound: inspect.BoundArguments) -> None:
        self.type = call_type
        kinds = _parts([parameter.type_constraint for parameter in _parameters(call_type)])
        objects = [kind._ref() for kind in kinds if isinstance(kind, default_types.Weakref)]
        self.objects = [value for value in objects if not function_copies.is_owner(value)]
        self._bound = bound

    def tensors(self, target: CallType) -> list[tf.Tensor]:
        """The tensors to pass to a function for arguments of the type `target`, which is this one or more general."""
        bound = target.bind(*self._bound.args, **self._bound.kwargs)
        tensors = [
            tensor
            for parameter in _parameters(target)
            for tensor in parameter.type_constraint.to_tensors(bound.arguments[parameter.name])
        ]
        return [tf.convert_to_tensor(tensors[i]) for i in _first_uses(_flat_specs(target))]


def _parameters(call_type: CallType) -> list[function_type.Parameter]:
    """The parameters in the order of the tensors that a call passes: keyword-only ones come last, sorted by name."""
    parameters = list(call_type.parameters.values())
    keywords = [parameter for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    others = [parameter for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
    return others + sorted(keywords, key=lambda parameter: str(parameter.name))


def _parts(kind: Any) -> Iterator[trace.TraceType]:
    """The kinds of all that is in a kind of arguments, or in several kinds, as far as they are no tensors."""
    return (part for part in _all_parts(kind) if not isinstance(part, tf.TypeSpec))


def _all_parts(kind: Any) -> Iterator[trace.TraceType]:
    """The kinds of all that is in a kind of arguments, or in several kinds."""
    if isinstance(kind, (list, tuple)):
        for one in kind:
            yield from _all_parts(one)
    elif isinstance(kind, dict):
        yield from _all_parts(list(kind.values()))
    elif isinstance(kind, trace.TraceType):
        yield kind
        if not isinstance(kind, tf.TypeSpec):
            yield from _all_parts(vars(kind))


def size_of_values(call_type: CallType) -> int:
    """How large the Python values among the arguments are: a string counts as many as it has characters, others one."""
    kinds = _parts([parameter.type_constraint for parameter in _parameters(call_type)])
    values = (getattr(kind, "value", None) for kind in kinds)
    return sum(len(value) if isinstance(value, str | bytes) else 1 for value in values)


def plain_values(call_type: CallType) -> list[str]:
    """The numbers, strings and so on among the arguments, as Python writes them; no objects of other classes."""
    kinds = _parts([parameter.type_constraint for parameter in _parameters(call_type)])
    values = [kind.value for kind in kinds if isinstance(kind, default_types.Literal)]
    return [repr(value) for value in values if type(value) in _PLAIN]


def depth_of_functions(call_type: CallType) -> int:
    """How many Python functions among the arguments refer to one another in a row at most."""
    kinds = _parts([parameter.type_constraint for parameter in _parameters(call_type)])
    return max((kind.depth for kind in kinds if isinstance(kind, function_kinds.FunctionKind)), default=0)


def changing_numbers(before: CallType, after: CallType) -> dict[str, list[int | float]]:
    """The Python numbers of the second call, by parameter, for which the first one passes as many others.

    A list that gets longer does not count. Lists of two lengths are two kinds of arguments with tensors in them, too.
    """
    old, new = (_numbers(kind, kind.parameters) for kind in (before, after))
    return {
        name: numbers
        for name, numbers in new.items()
        if name in old and len(old[name]) == len(numbers) and old[name] != numbers
    }


def _numbers(call_type: CallType, names: Collection[str]) -> dict[str, list[int | float]]:
    """The Python numbers that these parameters are or hold, by parameter, as far as there are any."""
    kinds = [(parameter.name, parameter.type_constraint) for parameter in _parameters(call_type)]
    found: dict[str, list[int | float]] = {}
    for name, kind in kinds:
        values: list[Any] = [getattr(part, "value", None) for part in _parts(kind)]
        if name in names and any(map(_is_number, values)):
            found[name] = list(filter(_is_number, values))
    return found


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)  # True is an int, too


def holds(dtype: tf.DType, number: int | float) -> bool:
    """Whether a tensor of `dtype` can hold a number, up to its last digits."""
    if dtype.is_integer:
        return int(dtype.min) <= number <= int(dtype.max)
    return not math.isfinite(number) or abs(number) <= float(dtype.max)


def _with_tensors(
    call_type: CallType, bound: inspect.BoundArguments, as_tensors: AsTensors
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call, with tensors in place of the Python numbers of these parameters."""

    def of_parameter(name: str, argument: Any) -> Any:
        if name not in as_tensors:
            return argument
        return nest.map_structure(lambda leaf: _as_tensor(leaf, *as_tensors[name]), argument)

    by_position = zip(call_type.parameters, bound.args, strict=False)
    by_keyword = {name: of_parameter(name, argument) for name, argument in bound.kwargs.items()}
    return [of_parameter(*pair) for pair in by_position], by_keyword


def _as_tensor(leaf: Any, integer: tf.DType, other: tf.DType) -> Any:
    """A number as a tensor of the dtype for its kind, if that holds it; else the same."""
    dtype = integer if type(leaf) is int else other
    return tf.constant(leaf, dtype) if _is_number(leaf) and holds(dtype, leaf) else leaf


def _flat_specs(call_type: CallType) -> list[tf.TensorSpec]:
    """The specs of all tensors among the arguments: of a variable as often as it was passed."""
    return [spec for parameter in _parameters(call_type) for spec in parameter.type_constraint.flatten()]


def _first_uses(specs: Sequence[tf.TensorSpec]) -> list[int]:
    """Which of `specs` are passed: all that are no variable, and of each variable the first."""
    first: dict[Any, int] = {}
    for i, spec in enumerate(specs):
        alias = spec._alias_id()
        first.setdefault(("value", i) if alias is None else ("variable", alias), i)
    return sorted(first.values())


def tensor_specs(call_type: CallType) -> list[tf.TensorSpec]:
    """The specs of the tensors that a call passes, of each variable once."""
    specs = _flat_specs(call_type)
    return [specs[i] for i in _first_uses(specs)]


def parameter_names(call_type: CallType) -> list[str]:
    """The name of the parameter that each tensor of a call is, or is part of."""
    names = [parameter.name for parameter in _parameters(call_type) for _ in parameter.type_constraint.flatten()]
    return [names[i] for i in _first_uses(_flat_specs(call_type))]


def values(call_type: CallType, tensors: Sequence[tf.Tensor]) -> tuple[list[Any], dict[str, Any]]:
    """The positional and keyword arguments that `tensors`, in the order of `tensor_specs`, stand for."""
    given = iter(_with_aliases(call_type, tensors))
    found = {parameter.name: parameter.type_constraint.from_tensors(given) for parameter in _parameters(call_type)}
    args, kwargs = [], {}
    for parameter in call_type.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = found[parameter.name]
        else:
            args.append(found[parameter.name])
    return args, kwargs


def changed_parameters(
    call_type: CallType, before: tuple[list[Any], dict[str, Any]], after: tuple[list[Any], dict[str, Any]]
) -> list[str]:
    """The parameters whose arguments, as `values` makes them and `before` has copies of, have been changed in place."""
    positional = [name for name, one in call_type.parameters.items() if one.kind is not one.KEYWORD_ONLY]
    pairs = zip((*before[0], *before[1].values()), (*after[0], *after[1].values()), strict=True)
    return [
        name for name, (old, new) in zip((*positional, *before[1]), pairs, strict=True) if not nests.is_same(old, new)
    ]


def specs(call_type: CallType) -> tuple[list[Any], dict[str, Any]]:
    """The positional and keyword arguments of such a call, with specs in place of tensors."""
    context, args, kwargs = trace_type.InternalPlaceholderContext(unnest_only=True), [], {}
    for parameter in call_type.parameters.values():
        value = parameter.type_constraint.placeholder_value(context)
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = value
        else:
            args.append(value)
    return args, kwargs


def _with_aliases(call_type: CallType, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """`tensors`, with each variable as often as it was passed."""
    given, found, by_alias = iter(tensors), [], {}
    for spec in _flat_specs(call_type):
        alias = spec._alias_id()
        if alias is None:
            found.append(next(given))
            continue
        if alias not in by_alias:
            by_alias[alias] = next(given)
        found.append(by_alias[alias])
    return found


def _with_spec(leaf: Any, kept: list[Any]) -> Any:
    """A leaf of the arguments, or what tells its type, where TensorFlow takes it for one Python object.

    Args:
      leaf: part of an argument.
      kept: what the type needs is appended to it.
    """
    return tf.TensorArraySpec.from_value(leaf) if isinstance(leaf, tf.TensorArray) else _with_kind(leaf, kept)


def with_kinds(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Sequence[Any], Mapping[str, Any], list[Any]]:
    """The arguments of a call to give to a tf.function, with kinds in place of Python functions.

    By itself it tells functions by which objects they are, so that it does not see that a variable around one of them
    has another value by now.

    Returns:
      positional and keyword arguments, and what has to be kept as long as the call is not over.
    """
    kept: list[Any] = []
    if any(map(callable, nest.flatten((args, kwargs)))):
        args, kwargs = nest.map_structure(lambda leaf: _with_kind(leaf, kept), (args, kwargs))
    return args, kwargs, kept


def _with_kind(leaf: Any, kept: list[Any]) -> Any:
    """A leaf of the arguments, or what tells which function it is; arguments as those of `_with_spec`."""
    if function_parts.is_plain_function(leaf):
        kind, to_keep = function_kinds.kind_of(leaf)
        kept.append(to_keep)
        return kind
    return function_kinds.ObjectKind(leaf) if function_kinds.wraps_another(leaf) else leaf


class TypeTable:
    """The types of calls for which a function has been traced, and which of them serves a call."""

    def __init__(self, table: Any = None) -> None:
        """A new table, or one of TensorFlow's, a `TypeDispatchTable`."""
        self._table = type_dispatch.TypeDispatchTable() if table is None else table

    def num_joined(self, call_type: CallType) -> int:
        """How many of the types could be served by one that serves `call_type`, too."""
        joined = (_joined(call_type, other) for other in self._table.targets)
        return sum(one is not None and _is_whole(one) for one in joined)

    def find(self, call_type: CallType) -> CallType | None:
        """The closest type that serves such a call, or None."""
        found: CallType | None = self._table.dispatch(call_type)
        return found

    def add(self, call_type: CallType) -> None:
        """Enter a type."""
        self._table.add_target(call_type)

    def remove(self, call_type: CallType) -> None:
        """Forget a type."""
        self._table.delete(call_type)

    def generalized(self, call_type: CallType, kept: Kept) -> CallType:
        """`call_type`, or one that serves calls of known types, too: what differs is open, unless it is `kept`."""
        return _generalized(call_type, self._table.targets, kept)


def _generalized(call_type: CallType, known: Iterable[CallType], kept: Kept) -> CallType:
    """`call_type`, or one that serves calls of `known` types as well, but for what is `kept`."""
    for other in known:
        joined = _joined(call_type, other)
        if (
            joined is not None
            and _is_whole(joined)
            and kept.allows(opened(call_type, joined))
            and not (kept.ranks and _num_open_ranks(joined) != _num_open_ranks(call_type))
        ):
            call_type = joined
    return call_type


def _joined(one: CallType, other: CallType) -> CallType | None:
    """A type that serves calls of both types; None if there is none, as where `*args` or `**kwargs` take others."""
    if list(one.parameters) != list(other.parameters):
        return None  # TensorFlow goes by positions, up to the last one of `one`
    joined: CallType | None = one.most_specific_common_subtype([other])
    return joined


def _is_whole(call_type: CallType) -> bool:
    """Whether a type that TensorFlow has joined is one.

    Of two dataclasses with parts that have no type in common, TensorFlow makes one with None for these parts.
    """
    kinds = _parts([parameter.type_constraint for parameter in _parameters(call_type)])
    nests = (kind for kind in kinds if isinstance(kind, custom_nest_trace_type.CustomNestTraceType))
    return all(component is not None for kind in nests for component in kind.components)


def _num_open_ranks(call_type: CallType) -> int:
    """How many of the tensors among the arguments have an unknown rank. A SparseTensor has one besides its parts'."""
    kinds = _all_parts([parameter.type_constraint for parameter in _parameters(call_type)])
    specs = [kind for kind in kinds if isinstance(kind, tf.TypeSpec)]
    parts = [part for spec in specs for part in spec.flatten() if part is not spec]
    shapes = [getattr(spec, "shape", None) for spec in (*specs, *parts)]
    return sum(isinstance(shape, tf.TensorShape) and shape.rank is None for shape in shapes)


class _Traces(function_cache.FunctionCache):  # type: ignore[misc]  # it has no types
    """The traces of a `tf.function`, where it is ours to say which calls share one."""

    __slots__ = ("_generalized",)

    def __init__(self, generalized: Callable[[TypeTable, CallType], CallType]) -> None:
        super().__init__()
        self._generalized = generalized

    def generalize(self, context: Any, function_type: CallType) -> CallType:
        table = self._dispatch_dict.get(context)
        return function_type if table is None else self._generalized(TypeTable(table), function_type)


def generalize_by(function: Any, generalized: Callable[[TypeTable, CallType], CallType]) -> None:
    """Let a `tf.function` that reduces retracing trace for what `generalized(known types, type of a call)` returns."""
    function._function_cache = _Traces(generalized)


def opened(call_type: CallType, generalized: CallType) -> list[OpenPart]:
    """What a more general type leaves open of the shapes of a call."""
    found: list[OpenPart] = []
    for i, (one, general) in enumerate(zip(tensor_specs(call_type), tensor_specs(generalized), strict=False)):
        if general.shape.rank is not None:
            sizes = zip(one.shape.as_list(), general.shape.as_list(), strict=True)
            found += [(i, axis) for axis, (a, b) in enumerate(sizes) if a is not None and b is None]
        elif one.shape.rank is not None:
            found.append((i, None))
    return found


def open_parts(specs: Sequence[tf.TensorSpec]) -> set[OpenPart]:
    """What is not known of the shapes of tensors."""
    of_rank = {(i, None) for i, spec in enumerate(specs) if spec.shape.rank is None}
    known = [(i, spec.shape.as_list()) for i, spec in enumerate(specs) if spec.shape.rank is not None]
    return {*of_rank, *((i, axis) for i, sizes in known for axis, size in enumerate(sizes) if size is None)}
