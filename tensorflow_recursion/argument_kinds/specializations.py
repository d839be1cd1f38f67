"""A Python function for arguments of one kind: what `tfr.recursive` traces, and what it learns from that."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf import (
    autograph_errors,
    dataclass_nests,
    function_kinds,
    function_types,
    graphs,
    keras_scopes,
    nests,
    read_shapes,
    side_effects,
    type_texts,
)
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion._tf.function_types import CallType, OpenPart
from tensorflow_recursion._tf.inferring import Unknown
from tensorflow_recursion._tf.read_shapes import Part
from tensorflow_recursion.argument_kinds import output_signatures, passed_numbers
from tensorflow_recursion.argument_kinds.passed_numbers import PassedNumbers
from tensorflow_recursion.argument_kinds.sharing import ShapeReads, Sharing, unknown_read
from tensorflow_recursion.errors import CallError, of_results, with_causes, with_message
from tensorflow_recursion.explanations import explained, is_explained
from tensorflow_recursion.traces import signatures
from tensorflow_recursion.traces.definitions import TraceAgain, TraceOptions
from tensorflow_recursion.traces.made_functions import MadeFunction
from tensorflow_recursion.traces.signatures import Signature

# With so many kinds of its own arguments in a row, a recursion may be one that never ends.
_MANY_KINDS = 16

# How often the traces of a body may call a function with other Python values than the trace before.
_MAX_UNSTEADY = 8

# What to do about such a recursion.
_REMEDY_FOR_KINDS = (
    "Python values and shapes that differ from call to call of a recursion make it trace without end; pass numbers as "
    "tensors, tf.constant(n), and a list or a string that grows as one tensor (tf.concat, tf.strings.join), or state "
    "input_signature=[tf.TensorSpec(shape, dtype), ...] with None for the dimensions that differ"
)
_REMEDY_FOR_OBJECTS = (
    "Each call of the recursion passes another {name}, and it is the object that tells calls apart, not what is in it; "
    "make '{name}' a nest of tensors (a typing.NamedTuple, a @dataclass that is compared by its fields, a "
    "tf.experimental.ExtensionType), or pass the tensors that are in it"
)
_REMEDY_FOR_FUNCTIONS = (
    "A function that is passed on may refer to tensors of the body, but not to a list, a dictionary or an object with "
    "them in it: let it refer to the tensors in them"
)

# Of errors: whether they came out of the body of a function.
_CAME_OUT: Attribute[bool] = Attribute(names.CAME_OUT_OF_A_BODY)

# How a note begins that is appended to an error of a body.
_NOTE = "\n\nFunction '"

# How many characters of a spec an error shows.
_MAX_TEXT = 500


@dataclasses.dataclass(frozen=True)
class Source:
    """The Python function behind the specializations.

    Attributes:
      name: what messages call it.
      function: the Python function.
      bound: returns it, of a method bound to its object.
      call: calls the function, or one that does the same, with positional and keyword arguments; AutoGraph converts it
        then, if it is to.
      autograph: whether AutoGraph converts the function.
      doc: its docstring.
      output_signature: what it returns, as a nest of specs; None if it is to be found out.
      has_signature: whether the user stated that.
      max_depth: how deep calls may nest, None if that is not stated.
      is_local: whether it was made by a body, which makes another one each time it is built.
      made: what it is in all builds of that body; None if it is not local.
      reads: what its body reads of the shapes of arguments.
      numbers: which of its parameters take Python numbers as tensors.
    """

    name: str
    function: Callable[..., Any]
    bound: Callable[[], Callable[..., Any]]
    call: Callable[..., Any]
    autograph: bool
    doc: str | None
    output_signature: Any
    has_signature: bool
    max_depth: int | None
    is_local: bool
    made: MadeFunction | None
    reads: ShapeReads
    numbers: PassedNumbers

    def call_from_outside(self, call: Callable[[], Any]) -> Any:
        """What a call from outside of graphs returns. It is traced anew if arguments are to be passed otherwise."""
        return passed_numbers.make_call(lambda: self.reads.eager_call(call))

    def lasting_name_for(self, call_type: CallType) -> str | None:
        """The lasting name of a new specialization; None if no body makes the function."""
        if self.made is None:
            return None
        specs = function_types.tensor_specs(call_type)
        in_common = (*(spec.dtype.name for spec in specs), *function_types.plain_values(call_type))
        return self.made.name_for(in_common, [spec.shape for spec in specs])


class _Building(threading.local):
    """The functions whose bodies are being built in this thread, innermost last."""

    def __init__(self) -> None:
        self.functions: list[Specialization] = []


_building = _Building()


class Specialization:
    """One function of a graph: a Python function for arguments of one kind.

    What it returns is known before its body is traced: stated by the user, or by inference, which goes by the paths
    through the body that do not call it. The trace may find a shape to be more general. Then those who called it by
    what was known before are traced again (`promise`).

    Attributes:
      returns: the spec of what it returns, as a nest; None before it is known.
      is_known: whether what it returns is known.
      has_effects: whether a trace has found side effects in the body; they are in order from the next trace on.
      caller: the function whose body was the first to call it; None if that was no body.
      is_called_outside: whether something has called it that is no body.
      opens: which ranks and sizes of arguments it leaves open, though the call that it was made for knows them.
      open_parts: these, and those unknown ranks and sizes that its callers, or traces for eager calls, leave open.
      unknown_read: what to say of a line that reads a part of a shape which callers do not know; empty if none does.
      reads_open_part: whether a look at it, or at what it calls, has found that one of these is read.
      is_checked: whether nothing that a later look finds can make it be given up.
      was_given_up: whether other traces are made in place of it.
      in_doubt: of this function and the callers that led to it, those that may still be given up.
    """

    base = None
    grad_func = None
    python_grad_func = None
    gradient_name = None
    create_grad_func = None
    needs_trace = True
    wants_shapes = False  # they are part of `returns`
    orders_effects = True
    is_built_once = True

    def __init__(self, source: Source, call_type: CallType, sharing: Sharing, opens: Collection[OpenPart]) -> None:
        """Makes the function.

        Args:
          source: the Python function.
          call_type: the kind of its arguments.
          sharing: what traces of the Python function leave open.
          opens: which ranks and sizes this one leaves open, though the call knows them.
        """
        self.user_name = names.of_trace(source.name)
        self.source = source
        self.caller = innermost_being_built()
        self.is_called_outside = False
        self.strategies = graphs.strategies()  # a variable is another one in each replica
        self._keras = keras_scopes.current()
        self.max_depth = source.max_depth
        self.call_type = call_type
        self.specs = function_types.tensor_specs(call_type)
        self.lasting_name = source.lasting_name_for(call_type) or self.user_name
        unknown = function_types.open_parts(self.specs)
        is_from_caller = self.caller is not None and bool(self.caller.open_parts)
        self.opens = opens
        self.open_parts: Collection[OpenPart] = {
            *opens,
            *(unknown if is_from_caller else unknown.intersection(source.reads.opened_outside)),
        }
        self.unknown_read = ""
        self.reads_open_part = False
        self._sharing = sharing
        self.was_given_up = False
        may_change = sharing.may_change(opens)
        before = () if self.caller is None else tuple(one for one in self.caller.in_doubt if not one.is_checked)
        self.in_doubt: tuple[Specialization, ...] = (*before, self) if may_change else before
        self.is_checked: bool = not self.in_doubt
        arg_names = _unique(signatures.legal_argument_names(function_types.parameter_names(call_type)))
        types = [tf.as_dtype(spec.dtype.as_datatype_enum) for spec in self.specs]
        self.inputs = tuple(zip(arg_names, types, strict=True))
        self.returns: Any = source.output_signature
        self.is_known = source.has_signature and not may_change
        self.has_effects = False
        self._function: Any = None  # as it was when the body was first built
        self._calls: dict[Specialization, bool] = {}  # what the last build has called, and whether that was new
        self._has_open_sizes = False  # whether it was traced with no size of guessed results known
        self._unsteady = 0  # how many builds have called something new in place of what the one before called

    @property
    def signature(self) -> Signature:
        """The function as a declaration says it; once it is known what it returns."""
        outputs = nests.tensor_specs(self.returns)
        types = [tf.as_dtype(spec.dtype.as_datatype_enum) for spec in outputs]
        return Signature(self.user_name, self.inputs, tuple((f"output_{i}", dtype) for i, dtype in enumerate(types)))

    @property
    def arg_shapes(self) -> tuple[tf.TensorShape, ...]:
        """The static shapes of its kind of arguments. The body is traced for these even if a call's shapes say more.

        For example, the last call of a recursion on `x[1:]` passes an empty vector. A body that reads `x[0]` makes no
        sense for that shape, `[0]`; so it is traced for `[None]`.
        """
        return tuple(spec.shape for spec in self.specs)

    @property
    def output_shapes(self) -> tuple[tf.TensorShape, ...]:
        """The static shapes of the outputs, as far as they are known."""
        return tuple(spec.shape for spec in nests.tensor_specs(self.returns))

    @property
    def python_function(self) -> Callable[..., Any]:
        """The Python function, of a method bound to its object."""
        return self.source.bound()

    @property
    def promise(self) -> Hashable:
        """What calls rely on that a trace may change. A SparseTensor has a shape besides those of its tensors."""
        return str((self.output_shapes, tf.nest.flatten(self.returns)))

    def check_against(self, declared: Signature) -> None:
        """Accepts any declaration: it is made from this function."""

    def build(self, args: Sequence[tf.Tensor], declared: Signature | None) -> list[tf.Tensor]:
        """Build the body in the default graph."""

        def build() -> list[tf.Tensor]:
            return self._checked(self.call(args))

        try:
            return side_effects.in_order(build) if self.has_effects else build()
        except ValueError as error:
            if isinstance(error, CallError) or _came_out_of_inner_body(error) or not self._guesses_sizes():
                raise
            raise TraceAgain(error, self._open_guessed_sizes) from error

    def _guessed(self) -> dict[Specialization, Any]:
        """What this function and those that its body calls were seen to return on the paths that do not recurse."""
        return {one: one.returns for one in (self, *self._calls) if one.is_known and not one.source.has_signature}

    def _guesses_sizes(self) -> bool:
        guessed = self._guessed().values()
        return not self._has_open_sizes and any(nests.with_open_sizes(returns) != returns for returns in guessed)

    def _open_guessed_sizes(self) -> Callable[[], None]:
        """Take no size for known that was only seen on some paths; returns what undoes that."""
        self._has_open_sizes = True
        guessed = self._guessed()
        for one in guessed:
            one.returns = nests.with_open_sizes(one.returns)

        def undo() -> None:
            for one, returns in guessed.items():
                one.returns = returns

        return undo

    def call(self, args: Sequence[tf.Tensor]) -> Any:
        """What the Python function returns for tensors as its arguments, as a nest of tensors."""
        dataclass_nests.open_named_by(self.source.function)
        for tensor, spec in zip(args, self.specs, strict=True):
            tensor.set_shape(spec.shape)
        parameters = function_types.parameter_names(self.call_type)
        tells = [functools.partial(self._argument_is_read, i, parameter) for i, parameter in enumerate(parameters)]
        of_computed = self._unknown_of_computed_is_read if self.open_parts or self.source.has_signature else None
        given = function_types.values(self.call_type, args)
        before = nests.copied(given)
        variables = [value for value in tf.nest.flatten(given) if isinstance(value, tf.Variable)]
        with (
            self._explained(),
            self._being_built(),
            graphs.inside_of_strategies(self.strategies),  # those of the first call, as the Keras layers
            keras_scopes.inside_of(self._keras, self.source.name),
            read_shapes.watched(args, tells, of_computed),
        ):
            try:
                returned = self.source.call(self._function or self.source.function, *given)
                _check_unchanged(self.source.name, function_types.changed_parameters(self.call_type, before, given))
                self._function = self._function or function_kinds.frozen(self.source.function)
            finally:
                graphs.forget(variables)
        return output_signatures.as_tensors(self.source.name, returned, self.returns)

    def _argument_is_read(self, i: int, parameter: str, part: Part, file: str, line: int) -> None:
        """Note that a line of the body reads a part of the shape of an argument."""
        is_known = (i, part) not in function_types.open_parts(self.specs)
        self.unknown_read = self.unknown_read or ("" if is_known else unknown_read(f"'{parameter}'", part, file, line))
        if is_known or (i, part) in self.open_parts:
            self.source.reads.note([(i, part)])
        if (i, part) in self.open_parts:
            self._note_read(f"'{parameter}'", part, file, line)

    def _unknown_of_computed_is_read(self, part: Part, file: str, line: int) -> None:
        """Note that a line of the body reads an unknown part of the shape of a tensor that the body computes."""
        self.unknown_read = self.unknown_read or unknown_read("what it computes", part, file, line)
        if self.open_parts:
            self._note_read("what the body computes", part, file, line)

    def _note_read(self, what: str, part: Part, file: str, line: int) -> None:
        """Note that a line reads a part of a shape that a trace leaves open. If no look sees that, warn of it."""
        looked_at = [function for function in _callers(self) if function.opens and not function.is_checked]
        for function in looked_at:
            function.reads_open_part = True
        *_, outermost = _callers(self)
        if not (looked_at or outermost.source.reads.note_open_read()):
            self.source.reads.warn(self.source.name, what, part, file, line)

    @contextlib.contextmanager
    def _being_built(self) -> Iterator[None]:
        _building.functions.append(self)
        before, self._calls = self._calls, {}
        try:
            yield
            self._check_calls(before)
        except Unknown:
            self._check_calls(before)
            raise
        finally:
            _building.functions.pop()

    @property
    def callees(self) -> Collection[Specialization]:
        """What the last build of the body has called."""
        return self._calls.keys()

    def note_call(self, callee: Specialization, *, is_new: bool) -> None:
        """Note that the body, which is being built, calls `callee`, and whether that one is new."""
        self._calls[callee] = is_new or self._calls.get(callee, False)

    def _check_calls(self, before: Mapping[Specialization, bool]) -> None:
        """Raises CallError if each build of the body calls something new, so that there would be no end of traces.

        `before` is what the last build called. Functions that the body makes are always new.
        """
        new = [callee for callee, is_new in self._calls.items() if is_new and not callee.source.is_local]
        old = [callee for callee in before if callee not in self._calls]
        pairs = [(a, b) for a in new for b in old if a.source is b.source and a.specs == b.specs]
        self._unsteady += bool(pairs)
        if pairs and self._unsteady >= _MAX_UNSTEADY:
            callee, last = pairs[0]
            raise CallError(
                f"Function '{self.source.name}': each time its body is traced, it calls '{callee.source.name}' with "
                f"other Python values{type_texts.difference(last.call_type, callee.call_type)}. An object that the "
                "body makes is another one each time: make it outside of the body, or give its class __eq__ and "
                f"__hash__. {_REMEDY_FOR_FUNCTIONS}. Draw random numbers by TensorFlow's operators"
            )

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Let errors of the body say what is wrong with it, and what its calls are taken to return."""
        try:
            with explained(self.source.name, autograph=self.source.autograph, note=self._note):
                yield
        except (TypeError, ValueError) as error:
            message = autograph_errors.message_of(error)
            if is_explained(message) or _NOTE in message or isinstance(error, CallError) or not (note := self._note()):
                raise
            raise with_message(error, f"{error}{note}") from error

    def _note(self) -> str:
        """What to append to errors about tensors in the body; empty if there is nothing to say."""
        before = [function for function in _callers(self.caller) if function.source is self.source]
        if len(before) >= _MANY_KINDS:
            return (
                f"{_NOTE}{self.source.name}': {len(before)} calls of it led here, each with other kinds of arguments"
                f"{type_texts.difference(before[0].call_type, self.call_type)}. "
                f"{remedy_for_kinds(before[0].call_type, self.call_type)}"
            )
        if not self.is_known or self.source.has_signature:
            return ""
        return (
            f"{_NOTE}{self.source.name}': from the paths through its body that do not call it, it is taken to return "
            f"{_shortened(self.returns)}; where that is not meant, state output_signature in tfr.recursive"
        )

    def learn(self, returned: Any) -> None:
        """Take what inference found the function to return."""
        if not self.source.has_signature:
            self.returns = nests.spec_of(returned)
        self.is_known = True

    @property
    def is_given_up(self) -> bool:
        """Whether other traces are made in place of this one, or of one that led to it."""
        return any(function.was_given_up for function in self.in_doubt)

    def give_up(self, error: Exception | None) -> bool:
        """Give the function up after a look at it, or at what it calls, if other shapes are to be left open.

        Returns whether it is given up, now or before. `error` is what the look has raised, None if nothing.
        """
        self.was_given_up |= self._sharing.reject(self.opens, is_read=self.reads_open_part, error=error)
        return self.was_given_up

    def trace_options(self) -> TraceOptions:
        """The options of a function without names of outputs or a device of its own."""
        options = {"capture_resource_var_by_value": False}
        return {"doc": self.source.doc, "out_names": None, "device": None, "options": options}

    def _checked(self, returned: Any) -> list[tf.Tensor]:
        """The tensors of what a trace of the body returned; more general shapes than known are noted."""
        name, known = self.source.name, self.returns
        with of_results():
            if self.source.has_signature:
                return output_signatures.as_stated(name, returned, known)
            self.returns = output_signatures.joined(name, returned, known, is_stated=False)
        return nests.tensors_of(returned)

    def contradiction(self, args: Sequence[tf.Tensor], declared: Signature | None) -> Exception | None:
        """The error if what the body returns is not as its user states; None if it is, or nothing is stated."""
        if not self.source.has_signature:
            return None
        returned = self.call(args)
        try:
            output_signatures.as_stated(self.source.name, returned, self.returns, is_of_path=True)
        except (TypeError, ValueError) as error:
            return error
        return None


def _check_unchanged(name: str, changed: Sequence[str]) -> None:
    """Raises ValueError if a body has changed parameters in place, as neither its caller nor other calls see."""
    if changed:
        parameters = " and ".join(f"'{parameter}'" for parameter in changed)
        raise ValueError(
            f"Function '{name}': its body changes {parameters} in place, a list, a dictionary or an object that is "
            "passed to it. The body has one of its own, so neither the caller nor other calls would see that; change a "
            "copy (values = [*values, x], state = {**state, 'x': x}), and pass it on or return it"
        )


def _came_out_of_inner_body(error: BaseException) -> bool:
    """Note that an error leaves a body; returns whether it has left another one before, traced within this one."""
    is_inner = any(map(_CAME_OUT.is_set, with_causes(error)))
    _CAME_OUT.set(error, True)
    return is_inner


def _shortened(spec: Any) -> str:
    """A spec as text of a few lines, however many tensors it is of."""
    text = str(spec)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]} ... ({len(nests.tensor_specs(spec))} tensors)"


def remedy_for_kinds(before: CallType, after: CallType) -> str:
    """What to do about a recursion that has gone from one kind of arguments to the other, and would go on."""
    if (name := type_texts.differing_object(before, after)) is not None:
        return _REMEDY_FOR_OBJECTS.replace("{name}", name)
    are_functions = type_texts.only_functions_differ(before, after)
    return _REMEDY_FOR_FUNCTIONS if are_functions else _REMEDY_FOR_KINDS


def innermost_being_built() -> Specialization | None:
    """The function whose body is being built in this thread, None if there is none."""
    return _building.functions[-1] if _building.functions else None


def note_call(callee: Specialization, *, is_new: bool) -> None:
    """Note that a call of `callee`, which may be new, is being made: in a body, or else outside of all bodies."""
    if (caller := innermost_being_built()) is not None:
        caller.note_call(callee, is_new=is_new)
    else:
        callee.is_called_outside = True


def unrolled(source: Source) -> list[Specialization]:
    """The specializations of one function among the body that is being built and the callers that led to it.

    The nearest comes first. For example, there are 3 if `f(x, 0)` has called `f(x, 1)`, that one `f(x, 2)`, and the
    body of the last is being built.
    """
    return [function for function in _callers(innermost_being_built()) if function.source is source]


def _callers(function: Specialization | None) -> Iterator[Specialization]:
    """The function, the one whose body was the first to call it, and so on."""
    while function is not None:
        yield function
        function = function.caller


def _unique(arg_names: Sequence[str]) -> list[str]:
    """The names, with a number appended to each that has come before: `x`, `x_1`."""
    found: dict[str, None] = {}
    numbers: collections.Counter[str] = collections.Counter()  # how many of a name are there, or have been tried
    for name in arg_names:
        unique = name
        while unique in found:
            numbers[name] += 1
            unique = f"{name}_{numbers[name]}"
        found[unique] = None
    return list(found)
