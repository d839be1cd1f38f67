"""What `tfr.recursive` makes: functions to call in eager mode, in tf.functions and in TF1 graphs."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import inspect
import types
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypedDict

import tensorflow as tf

from tensorflow_recursion import calls, ops
from tensorflow_recursion._tf import (
    arrays,
    autograph,
    dataclass_nests,
    function_copies,
    function_kinds,
    function_types,
    graphs,
    inferring,
    keras_scopes,
    nests,
    saved_attributes,
)
from tensorflow_recursion._tf.function_types import Arguments
from tensorflow_recursion._tf.typed import not_converted
from tensorflow_recursion.argument_kinds import endless, output_signatures, passed_numbers
from tensorflow_recursion.argument_kinds.known_specializations import KnownSpecializations
from tensorflow_recursion.argument_kinds.sharing import ShapeReads
from tensorflow_recursion.argument_kinds.specializations import Source, Specialization, note_call, unrolled
from tensorflow_recursion.call_arguments import CallArguments
from tensorflow_recursion.calls import Library
from tensorflow_recursion.eager_functions import EagerFunctions
from tensorflow_recursion.explanations import with_users_frames
from tensorflow_recursion.keras_functions import KerasFunction
from tensorflow_recursion.methods import Method, Methods, Owner
from tensorflow_recursion.traces.made_variables import made_function


class Options(TypedDict):
    """The arguments of `recursive` besides the function; its docstring explains them."""

    input_signature: Sequence[Any] | None
    output_signature: Any
    autograph: bool
    reduce_retracing: bool
    name: str | None
    max_depth: int | None


class RecursiveFunction(KerasFunction):
    """A function made by `tfr.recursive`. Called as the Python function is, it returns what that one returns.

    In eager mode a call runs in a `tf.function` (`EagerFunctions`). In the graph of that one, as in any other graph, a
    call is one node, an Invoke of a specialization.

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
        self._name = self.__name__ = options["name"] or _name_of(func)
        self._owner = Owner(self._name, owner)
        self.input_signature = options["input_signature"]
        self.output_signature = options["output_signature"]
        self._take_attributes_of(func)
        dataclass_nests.open_in([self.input_signature, self.output_signature])
        try:
            self._arguments = CallArguments(self._name, func, self.python_function, self.input_signature)
            self._source = self._new_source(like)
        except (TypeError, ValueError) as error:
            raise type(error)(f"Function '{self._name}': {error}") from error
        self._eager = EagerFunctions(
            self, func, self._in_graph, self._source.reads, reduce_retracing=options["reduce_retracing"]
        )
        self._num_traces = 0
        # The specializations in each library, by the replica of a distribution strategy (which has variables of its
        # own), and by what Keras layers do.
        self._known: weakref.WeakKeyDictionary[Library, dict[Hashable, KnownSpecializations]] = (
            weakref.WeakKeyDictionary()
        )
        self._methods = Methods(self._name, self._made_for)

    def _take_attributes_of(self, func: Callable[..., Any]) -> None:
        """Have the attributes by which Python, Keras and users know a function. (`__wrapped__` is a property.)"""
        self.__qualname__ = getattr(func, "__qualname__", self._name)
        self.__module__ = func.__module__
        self.__doc__ = func.__doc__
        self.__annotations__ = getattr(func, "__annotations__", {})
        self.__isabstractmethod__ = getattr(func, "__isabstractmethod__", False)
        self.__signature__ = inspect.signature(self.python_function)

    def _new_source(self, like: Source | None) -> Source:
        """What specializations are built from. `like` is that of the same method of another object, if there is one."""
        name, func, options = self._name, self._func, self._options
        has_signature = self.output_signature is not None
        is_local = calls.is_in_body() if like is None else like.is_local
        return Source(
            name=name,
            function=func,
            bound=lambda: self.python_function,
            call=lambda func, args, kwargs: autograph.call(
                function_copies.with_itself(self._owner.bound(func), self), args, kwargs, autograph=options["autograph"]
            ),
            autograph=options["autograph"],
            doc=func.__doc__,
            output_signature=nests.checked_spec(self.output_signature) if has_signature else None,
            has_signature=has_signature,
            max_depth=options["max_depth"],
            is_local=is_local,
            made=made_function(name) if is_local else None,
            reads=ShapeReads() if like is None else like.reads,
            numbers=passed_numbers.of(name, func, is_local=is_local) if like is None else like.numbers,
        )

    @property
    def python_function(self) -> Callable[..., Any]:
        return self._owner.bound(self._func)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """Where `inspect` looks for the source. So AutoGraph converts a decorator with `functools.wraps` above this."""
        return self.python_function

    def __tf_tracing_type__(self, context: Any) -> function_kinds.ObjectKind:
        """As an argument of a `tf.function` this is itself. TensorFlow would take it for what it wraps."""
        return function_kinds.ObjectKind(self)

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
            self._arguments.check(args, kwargs)
            to_pass, by_keyword, _kept = function_types.with_kinds(args, kwargs)
            return self._source.call_from_outside(lambda: self._eager.here(*to_pass, **by_keyword))
        except Exception as error:
            self._arguments.explain(error, args, kwargs, self._source.numbers.as_tensors)
            raise with_users_frames(error) from error.__cause__

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> Any:
        """The `tf.ConcreteFunction` for arguments of one kind, given as values or as specs."""
        dataclass_nests.open_in((args, kwargs))
        to_pass, by_keyword, _kept = function_types.with_kinds(args, kwargs)
        trace = self._eager.here.get_concrete_function
        try:
            return self._source.call_from_outside(lambda: trace(*to_pass, **by_keyword))
        except Exception as error:
            self._arguments.explain(error, args, kwargs, self._source.numbers.as_tensors)
            raise

    def pretty_printed_signature(self) -> str:
        """The parameters and results of what has been traced in eager mode, as text."""
        return str(self._eager.here.pretty_printed_concrete_signatures())

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
        return Method(self._methods.function_of(instance), instance)

    def __reduce__(self) -> str:
        """What `copy` and `pickle` make of it: itself, by its name in its module, as of a Python function."""
        return self.__qualname__

    def _made_for(self, instance: Any) -> RecursiveFunction:
        """The function of one object.

        Often a body is what asks for a method first. It is not local to that body: the next build finds it again.
        """
        made = RecursiveFunction(self._func, self._options, instance, self._source)
        made.of_class = self
        return made

    def as_saved(self) -> Any:
        """The tf.function that a SavedModel has in place of this one.

        Without an input signature it is traced for what eager calls have passed, and for what calls in tf.functions
        have, but not for what only bodies pass to their own calls.

        Raises:
          TypeError: if the input signature has an array.
        """
        if arrays.holds_spec(self.input_signature):
            raise TypeError(
                f"Function '{self._name}' takes a tf.TensorArray by its input_signature, which TensorFlow does not save"
                "; take a tensor, and let the body make the array: tf.TensorArray(dtype, n).unstack(x)"
            )
        saved, here = self._eager.here, (graphs.replica(), keras_scopes.kind())
        if self.input_signature is not None:
            return saved
        known = [by_place[here] for by_place in list(self._known.values()) if here in by_place]
        for function in [function for one in known for function in list(one.by_type.values())]:
            args, kwargs = function_types.specs(function.call_type)
            if function.is_called_outside and saved_attributes.can_be_saved((args, kwargs)):
                with contextlib.suppress(Exception):  # a call that failed is known, too, and fails again
                    saved_attributes.trace_if_new(saved, function.call_type, args, kwargs)
        return saved

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
        arguments = self._arguments.bind(args, kwargs, self._source.numbers.as_tensors)
        library = calls.current_library()
        function = self._specialization_with_results(library, arguments)
        tensors = arguments.tensors(function.call_type)
        if inferring.is_inferring():
            return library.inference.result_of(function, tensors)
        library.declare(function.signature)
        library.adopt(function, is_local=self._source.is_local)
        result = library.call(function.user_name, function.inputs, tensors, self._name)
        return nests.pack(function.returns, _listed(result))

    def _specialization_with_results(self, library: Library, arguments: Arguments) -> Specialization:
        """What `_specialization` finds, once it is known what that one returns, and it is not given up for another."""
        while True:
            function = self._specialization(library, arguments)
            library.note_scope(function)
            if inferring.is_inferring():
                library.check_not_left_out(function.user_name)
            library.inference.require_and_check(function)
            if not function.is_given_up:
                return function

    def _specialization(self, library: Library, arguments: Arguments) -> Specialization:
        """Find or make the function of a graph that serves a call with such arguments; note that it is called."""
        call_type = arguments.type
        here = (graphs.replica(), keras_scopes.kind())
        known = self._known.setdefault(library, {}).setdefault(here, KnownSpecializations(self._source))
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
        return f"<tfr.recursive '{self._name}'{self._arguments.shown}>"


def _listed(result: ops.Result) -> list[tf.Tensor]:
    if isinstance(result, tf.Operation):
        return []
    return list(result) if isinstance(result, tuple) else [result]


def _name_of(func: Callable[..., Any]) -> str:
    """The name of a Python function, such that a graph may call a function so."""
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in getattr(func, "__name__", "function"))
    return name.strip("_") or "function"
