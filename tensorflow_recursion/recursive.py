"""tfr.recursive: recursive functions in eager mode, in tf.functions and in TF1 graphs."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import threading
import types
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NoReturn, TypedDict, overload

import tensorflow as tf

from tensorflow_recursion import (
    calls,
    endless,
    keras_functions,
    notices,
    ops,
    output_signatures,
    passed_numbers,
    signatures,
)
from tensorflow_recursion._tf import (
    bodies,
    dataclass_nests,
    function_types,
    graphs,
    inferring,
    keras_scopes,
    nests,
    python_functions,
    saved_attributes,
)
from tensorflow_recursion._tf.function_types import Arguments, CallType
from tensorflow_recursion._tf.typed import not_converted
from tensorflow_recursion.calls import Library
from tensorflow_recursion.errors import CallError
from tensorflow_recursion.explanations import with_users_frames
from tensorflow_recursion.keras_functions import KerasFunction
from tensorflow_recursion.made_variables import made_function
from tensorflow_recursion.sharing import ShapeReads, Sharing
from tensorflow_recursion.specializations import (
    Source,
    Specialization,
    note_call,
    unrolled,
)

__all__ = ["recursive"]

# What is made once, at the first call, is not made by two threads.
_making = threading.RLock()


class Options(TypedDict):
    """The arguments of `recursive` besides the function; its docstring explains them."""

    input_signature: Sequence[Any] | None
    output_signature: Any
    autograph: bool
    reduce_retracing: bool
    name: str | None
    max_depth: int | None


class _Known:
    """The specializations of one function in one outermost graph."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._sharing = Sharing(source.name, source.reads)
        self.by_type: dict[CallType, Specialization] = {}

    def find(self, call_type: CallType) -> Specialization | None:
        """The function that serves such a call, None if there is none."""
        found = self._sharing.find(call_type)
        if found is None or self.by_type[found].is_given_up:
            for known in [known for known, function in self.by_type.items() if function.is_given_up]:
                self._sharing.remove(known)
                del self.by_type[known]
            found = self._sharing.find(call_type)
        return None if found is None else self.by_type[found]

    def add(self, call_type: CallType, *, generalize: bool, is_inner: bool) -> Specialization:
        """Make a function that serves such a call, and others if it is to `generalize`.

        `is_inner` says whether the call is one of its own recursion.
        """
        if generalize:
            known = self._sharing.add(call_type, is_inner=is_inner)
        else:
            known = self._sharing.add_exactly(call_type)
        opens = function_types.opened(call_type, known)
        self.by_type[known] = Specialization(self._source, known, self._sharing, opens)
        return self.by_type[known]


class RecursiveFunction(KerasFunction):
    """A function made by `tfr.recursive`. Called as the Python function is, it returns what that one returns.

    In eager mode a call runs in a `tf.function`, which TensorFlow makes and keeps as it does any other; inside of it,
    and in graphs, a call is one node.

    Attributes:
      input_signature: as given to `tfr.recursive`.
      output_signature: as given to `tfr.recursive`.
      python_function: the Python function; of a method, the one that takes no `self`.
      of_class: of a method of one object, the attribute of its class; else the function itself.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        options: Options,
        owner: Any = None,
        like: Source | None = None,
    ) -> None:
        """Makes a function of `func`, or, if there is an `owner`, of that object's method `func`.

        The functions of all objects share what is known of the method, by its source `like`. Without `like`, a function
        that is made while a body is built belongs to the body, which makes another one each time that it is traced.
        """
        self.of_class = self
        self._func = func
        self._options = options
        self._owner = None if owner is None else weakref.ref(owner)
        python_function = func if owner is None else python_functions.bound(func, owner)
        self._name = options["name"] or _name_of(func)
        self.__name__ = self._name
        self.__qualname__ = getattr(func, "__qualname__", self._name)
        self.__module__ = func.__module__
        self.__doc__ = func.__doc__
        self.__annotations__ = getattr(func, "__annotations__", {})
        self.__isabstractmethod__ = getattr(func, "__isabstractmethod__", False)
        self.__signature__ = inspect.signature(python_function)
        self.input_signature = options["input_signature"]
        self.output_signature = options["output_signature"]
        has_signature = self.output_signature is not None
        is_local = calls.is_in_body() if like is None else like.is_local
        dataclass_nests.open_in([self.input_signature, self.output_signature])
        try:
            self._parameters = function_types.Parameters(python_function, self.input_signature)
            output_spec = nests.checked_spec(self.output_signature) if has_signature else None
        except (TypeError, ValueError) as error:
            raise type(error)(f"Function '{self._name}': {error}") from error
        self._takes = _shown_parameters(self._parameters, func, is_method=python_function is not func)
        self._source = Source(
            self._name,
            func,
            lambda func, args, kwargs: bodies.call(
                python_functions.with_itself(self._bound(func), self), args, kwargs, autograph=options["autograph"]
            ),
            options["autograph"],
            func.__doc__,
            output_spec,
            has_signature,
            options["max_depth"],
            is_local,
            made_function(self._name) if is_local else None,
            ShapeReads() if like is None else like.reads,
            passed_numbers.of(self._name, func, is_local=is_local) if like is None else like.numbers,
        )
        self._entries: dict[Hashable, Any] = {}  # by what Keras layers do
        self._num_traces = 0
        # What is known in a library, by the replica of a distribution strategy (each has variables of its own) and by
        # what Keras layers do.
        self._known: weakref.WeakKeyDictionary[Library, dict[Hashable, _Known]] = weakref.WeakKeyDictionary()
        # Each instance with its function, by its identity, because it need not have a hash.
        self._methods: dict[int, tuple[weakref.ref[Any], RecursiveFunction]] = {}

    @property
    def python_function(self) -> Callable[..., Any]:
        return self._bound(self._func)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """Where `inspect` looks for the source. So AutoGraph converts a decorator with `functools.wraps` above this."""
        return self.python_function

    def __tf_tracing_type__(self, context: Any) -> python_functions.ObjectKind:
        """As an argument of a `tf.function` this is itself. TensorFlow would take it for what it wraps."""
        return python_functions.ObjectKind(self)

    def _bound(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """`func` as a method of the owner, if there is one."""
        if self._owner is None:
            return func
        owner = self._owner()
        if owner is None:
            raise ReferenceError(
                f"Function '{self._name}' is a method of an object that is gone; keep the object, and do not make it "
                "in the body of a recursive function, which is built more than once"
            )
        return python_functions.bound(func, owner)

    @not_converted
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function: at once in eager mode, else as a node of the default graph."""
        dataclass_nests.open_in((args, kwargs))
        if tf.executing_eagerly() and tf.config.functions_run_eagerly():
            return self._in_python(args, kwargs)
        try:
            if not tf.executing_eagerly():
                to_pass, by_keyword = keras_scopes.read_variables((args, kwargs))
                return passed_numbers.make_call(lambda: self._in_graph(to_pass, by_keyword))
            _check_values(self._name, self._parameters, args, kwargs)
            to_pass, by_keyword, _kept = function_types.with_kinds(args, kwargs)
            return self._source.call_from_outside(lambda: self._eagerly(*to_pass, **by_keyword))
        except Exception as error:
            if isinstance(error, (TypeError, ValueError)) and function_types.is_binding_error(error):
                self._bind(args, kwargs)  # says which function it is
            if str(error).startswith("A KerasTensor "):
                _refuse_keras_tensors(self._name, error)
            raise with_users_frames(error) from error.__cause__

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> Any:
        """The `tf.ConcreteFunction` for arguments of one kind, given as values or as specs."""
        dataclass_nests.open_in((args, kwargs))
        to_pass, by_keyword, _kept = function_types.with_kinds(args, kwargs)
        trace = self._eagerly.get_concrete_function
        try:
            return self._source.call_from_outside(lambda: trace(*to_pass, **by_keyword))
        except (TypeError, ValueError) as error:
            if function_types.is_binding_error(error):
                self._bind(args, kwargs)  # says which function it is
            raise

    def pretty_printed_signature(self) -> str:
        """The parameters and results of what has been traced in eager mode, as text."""
        return str(self._eagerly.pretty_printed_concrete_signatures())

    def experimental_get_tracing_count(self) -> int:
        """How often calls have traced the function for kinds of arguments that were new to them; its own do not count.

        Eager calls share their traces, each `tf.function` has its own. A trace may run the body more than once.
        """
        return self._num_traces

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """The function as a method of `instance`, which is its first argument where that is one to TensorFlow."""
        if instance is None:
            return self
        if self.input_signature is None and graphs.is_composite(instance):
            return types.MethodType(self, instance)
        return Method(self._bound_to(instance), instance)

    def __reduce__(self) -> str:
        """What `copy` and `pickle` make of it: itself, by its name in its module, as of a Python function."""
        return self.__qualname__

    def _bound_to(self, instance: Any) -> RecursiveFunction:
        """The function of one instance. It does not keep the instance alive."""
        key, methods = id(instance), self._methods
        with _making:
            if key not in methods:
                reference = _watched(self._name, instance, lambda _: methods.pop(key, None))
                # Often a body is what asks for a method first; but the next time the body is built, it finds this one.
                made = RecursiveFunction(self._func, self._options, instance, self._source)
                made.of_class = self
                methods[key] = (reference, made)
            return methods[key][1]

    @property
    def _eagerly(self) -> Any:
        """The tf.function that makes one call."""
        if keras_scopes.is_stateless():  # it reads values that nobody else gives to variables
            return self._make_entry()
        kind = keras_scopes.kind()
        if kind not in self._entries:
            with _making:
                if kind not in self._entries:
                    self._entries[kind] = self._make_entry()
        return self._entries[kind]

    def as_saved(self) -> Any:
        """The tf.function that a SavedModel has in place of this one.

        Without an input signature it is traced for what eager calls have passed, and for what calls in tf.functions
        have, but not for what only bodies pass to their own calls.
        """
        entry, here = self._eagerly, (graphs.replica(), keras_scopes.kind())
        if self.input_signature is not None:
            return entry
        known = [by_place[here] for by_place in list(self._known.values()) if here in by_place]
        for function in [function for one in known for function in list(one.by_type.values())]:
            args, kwargs = function_types.specs(function.call_type)
            if function.is_called_outside and saved_attributes.can_be_saved((args, kwargs)):
                with contextlib.suppress(Exception):  # a call that failed is known, too, and fails again
                    saved_attributes.trace_if_new(entry, function.call_type, args, kwargs)
        return entry

    def _make_entry(self) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._source.reads.checked(self._in_graph(args, kwargs))

        call.__name__ = call.__qualname__ = self._name
        call.__wrapped__ = self._func  # type: ignore[attr-defined]  # what TensorFlow counts traces by
        call.__doc__ = self.__doc__
        call.__signature__ = self.__signature__  # type: ignore[attr-defined]
        entry = tf.function(
            call,
            input_signature=self.input_signature,
            autograph=False,
            reduce_retracing=self._options["reduce_retracing"],
        )
        function_types.generalize_by(entry, self._source.reads.generalized)
        return entry

    def _in_python(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the Python function. What its user states of the result holds as in graphs."""
        returned, source = self.python_function(*args, **kwargs), self._source
        if not source.has_signature:
            return returned
        result = output_signatures.as_tensors(source.name, returned, source.output_signature)
        output_signatures.as_stated(source.name, result, source.output_signature)
        return result

    def _in_graph(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Add a call to the default graph."""
        arguments = self._bind(args, kwargs)
        library = calls.current_library()
        function = self._required(library, arguments)
        tensors = arguments.tensors(function.call_type)
        if inferring.is_inferring():
            return library.inference.result_of(function, tensors)
        library.declare(function.signature)
        library.adopt(function, is_local=self._source.is_local)
        result = library.call(function.user_name, function.inputs, tensors, self._name)
        return nests.pack(function.returns, _listed(result))

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arguments:
        _check_values(self._name, self._parameters, args, kwargs)
        try:
            return self._parameters.bind(args, kwargs, self._source.numbers.as_tensors)
        except TypeError as error:
            raise CallError(f"Call of '{self._name}': {error}; the function takes {self._takes}") from None

    def _required(self, library: Library, arguments: Arguments) -> Specialization:
        """The function of a graph that serves a call with such arguments. What it returns is known afterwards."""
        while True:
            function = self._specialization(library, arguments)
            library.note_scope(function)
            if inferring.is_inferring():
                library.check_not_left_out(function.user_name)
            library.inference.settle(function)
            if not function.is_given_up:
                return function

    def _specialization(self, library: Library, arguments: Arguments) -> Specialization:
        """The function of a graph that serves a call with such arguments."""
        call_type = arguments.type
        here = (graphs.replica(), keras_scopes.kind())
        known = self._known.setdefault(library, {}).setdefault(here, _Known(self._source))
        function = known.find(call_type)
        is_new = function is None
        if function is None:
            endless.check_end(self._source, call_type)
            generalize, is_inner = self._options["reduce_retracing"], bool(unrolled(self._source))
            self._num_traces += not is_inner
            function = known.add(call_type, generalize=generalize, is_inner=is_inner)
            library.keep(arguments.objects)
        note_call(function, is_new=is_new)
        return function

    def __repr__(self) -> str:
        return f"<tfr.recursive '{self._name}'{self._parameters.names}>"


class Method(KerasFunction):
    """A recursive function as a method of an instance: what `instance.method` returns, anew each time."""

    def __init__(self, function: RecursiveFunction, instance: Any) -> None:
        self._function = self.__func__ = function
        self.__self__ = instance
        self.__doc__ = function.__doc__
        self.__annotations__ = function.__annotations__

    @not_converted
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self._function(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        """Whether `other` is the same method of the same object, as of Python's methods; each use makes another one."""
        return isinstance(other, Method) and self.__func__ is other.__func__

    def __hash__(self) -> int:
        return hash(self.__func__)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """What `copy` and `pickle` make of it: the method of the instance that they make, as of Python's methods."""
        return RecursiveFunction.__get__, (self.__func__.of_class, self.__self__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __repr__(self) -> str:
        return repr(self._function)


def _shown_parameters(parameters: function_types.Parameters, func: Callable[..., Any], *, is_method: bool) -> str:
    """The parameters for messages; for a method, which of them is the object, as `self` may have been forgotten."""
    first = next(iter(inspect.signature(func).parameters), None)
    return f"{parameters.names} besides the object itself ({first!r})" if is_method else parameters.names


def _check_values(
    name: str, parameters: function_types.Parameters, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Raises TypeError if a call passes an eager tensor to a graph, or a number that its stated dtype cannot hold.

    TensorFlow would cut off what does not fit.
    """
    if not tf.executing_eagerly():
        for parameter, value in parameters.named(args, kwargs).items():
            for leaf in tf.nest.flatten(value):
                signatures.check_belongs_here(f"Call of '{name}': argument '{parameter}'", leaf)
    for parameter, dtype, value in parameters.stated_for_values(args, kwargs):
        signatures.check_fits(f"Call of '{name}': argument '{parameter}'", value, dtype)


def _refuse_keras_tensors(name: str, error: Exception) -> NoReturn:
    raise CallError(
        f"Call of '{name}': it is given a KerasTensor, which has no value before a functional model of Keras "
        "is made; call the function in the `call` of a keras.layers.Layer of your own, or in a keras.layers.Lambda"
    ) from error


def _watched(name: str, instance: Any, forget: Callable[[Any], object]) -> weakref.ref[Any]:
    try:
        return weakref.ref(instance, forget)
    except TypeError as error:
        raise TypeError(
            f"Function '{name}' is a method of a {type(instance).__name__}, which weak references cannot "
            "point to, so it cannot have a function of its own; where the class has __slots__, add '__weakref__' "
            "to them"
        ) from error


def _warn_of_unsaved(attributes: Sequence[str], error: Exception) -> None:
    notices.show(
        "unsaved",
        f"The SavedModel lacks {', '.join(attributes)}: a recursive function is saved with the variables that it "
        f"reads, for its input_signature or for what calls have passed, and that failed. {error}",
    )


python_functions.register_methods(RecursiveFunction, Method)
keras_functions.register(RecursiveFunction, Method)
saved_attributes.install((RecursiveFunction, Method), operator.methodcaller("as_saved"), _warn_of_unsaved)


def _listed(result: ops.Result) -> list[tf.Tensor]:
    if isinstance(result, tf.Operation):
        return []
    return list(result) if isinstance(result, tuple) else [result]


@overload
def recursive(
    func: Callable[..., Any],
    /,
    output_signature: Any = None,
    *,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    reduce_retracing: bool = True,
    name: str | None = None,
    max_depth: int | None = None,
) -> RecursiveFunction: ...


@overload
def recursive(
    input_signature: Sequence[Any] | None,
    /,
    output_signature: Any = None,
    *,
    autograph: bool = True,
    reduce_retracing: bool = True,
    name: str | None = None,
    max_depth: int | None = None,
) -> Callable[[Callable[..., Any]], RecursiveFunction]: ...


@overload
def recursive(
    *,
    input_signature: Sequence[Any] | None = None,
    output_signature: Any = None,
    autograph: bool = True,
    reduce_retracing: bool = True,
    name: str | None = None,
    max_depth: int | None = None,
) -> Callable[[Callable[..., Any]], RecursiveFunction]: ...


def recursive(
    func: Any = None,
    output_signature: Any = None,
    *,
    input_signature: Any = None,
    autograph: bool = True,
    reduce_retracing: bool = True,
    name: str | None = None,
    max_depth: int | None = None,
) -> Any:
    """Decorator that makes a Python function a recursive function of TensorFlow.

    In its body its own name is the function itself, and functions made so call each other, whichever is defined first.
    It can be called eagerly, in a `tf.function`, in Keras, `tf.data` functions and TF1 graphs, and can be a method.
    AutoGraph converts the body: `if`, `while`, `for`, `and`, `or`, `not` may go by tensors. Side effects are in order.

    Args:
      func: the Python function, or the `input_signature`, which needs no name where it comes first.
      input_signature: a `tf.TensorSpec` (or a nest of such) for each argument. Left out, the function is traced for
        each kind of arguments: dtypes and shapes of tensors, and values of all others, as with `tf.function`.
      output_signature: a `tf.TensorSpec`, a dtype, or a nest of such, for what is returned. Left out, it is inferred.
      autograph: whether AutoGraph converts the body.
      reduce_retracing: whether a function that is called with several shapes is traced for dimensions that are open,
        but for those that the body reads in Python, as `x.shape[0]`; if False, it is traced for each shape.
      name: what messages and graphs call the function; by default the Python function's name.
      max_depth: how deep calls may nest before the run ends in `ResourceExhaustedError`.

    Returns:
      The function; without `func`, what makes it of one. As a `tf.function` it has `get_concrete_function`,
      `input_signature`, `pretty_printed_signature` and `experimental_get_tracing_count`.

    Raises:
      TypeError: if what is decorated is no function, a signature holds what is no spec, or a flag is not True or False.
      ValueError: if `max_depth` is no integer >= 1, or `name` is not legal.

    Source: `tf.function`.

    Examples:
      >>> @tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32)])
      ... def fib(n):
      ...     if n < 2:
      ...         return n
      ...     return fib(n - 1) + fib(n - 2)
      >>> @tf.function
      ... def twice(n):
      ...     return 2 * fib(n)
      >>> with tf1.Session(config=tfr.session_config()) as session:  # in eager mode print(twice(20)) does
      ...     print(session.run(twice(20)))
      13530
    """
    options = Options(
        input_signature=_given_signature(func, input_signature),
        output_signature=output_signature,
        autograph=autograph,
        reduce_retracing=reduce_retracing,
        name=name,
        max_depth=max_depth,
    )
    _check_options(options)
    return _decorated(options, func) if callable(func) else functools.partial(_decorated, options)


def _given_signature(func: Any, input_signature: Any) -> Any:
    """The signature, which may be in the place of the function."""
    if callable(func) or func is None:
        return input_signature
    if input_signature is not None:
        raise TypeError(f"recursive decorates a Python function, got {func!r}")
    return func


def _decorated(options: Options, func: Callable[..., Any]) -> RecursiveFunction:
    if not callable(func) or isinstance(func, type):
        raise TypeError(f"recursive decorates a Python function, got {func!r}")
    if isinstance(func, tf.types.experimental.PolymorphicFunction):  # else all of the body would be in another function
        signature = options["input_signature"]
        options = {**options, "input_signature": func.input_signature if signature is None else signature}
        return RecursiveFunction(func.python_function, options)
    return RecursiveFunction(func, options)


def _check_options(options: Options) -> None:
    max_depth, signature = options["max_depth"], options["input_signature"]
    if signature is not None and not isinstance(signature, (list, tuple)):
        raise TypeError(f"recursive: got {signature!r}, expected a function, or a list as input_signature")
    for flag, value in (("autograph", options["autograph"]), ("reduce_retracing", options["reduce_retracing"])):
        if not isinstance(value, bool):
            raise TypeError(f"recursive: {flag} is {value!r}, expected True or False")
    if options["name"] is not None:
        signatures.checked_name(options["name"])
    if max_depth is not None and (isinstance(max_depth, bool) or not isinstance(max_depth, int) or max_depth < 1):
        raise ValueError(f"recursive: max_depth is {max_depth!r}, expected an integer >= 1")


def _name_of(func: Callable[..., Any]) -> str:
    """The name of a Python function, such that a graph may call a function so."""
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in getattr(func, "__name__", "function"))
    return name.strip("_") or "function"
