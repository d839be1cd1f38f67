"""Declare and Defun: recursive functions of a graph, for scripts written against TensorFlow's own Defun."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NoReturn, ParamSpec, TypedDict, TypeVar, overload

import tensorflow as tf

if TYPE_CHECKING:
    from typing_extensions import Unpack

from tensorflow_recursion import calls
from tensorflow_recursion._tf.typed import not_converted
from tensorflow_recursion.defined import (
    DefinedFunction,
    EagerCalls,
    OverloadedFunction,
    Settings,
    argument_names,
)
from tensorflow_recursion.traces import signatures
from tensorflow_recursion.traces.definitions import graph_name
from tensorflow_recursion.traces.made_variables import made_function
from tensorflow_recursion.traces.signatures import Signature

__all__ = ["Declare", "Defun"]

# What a Defun makes: a function whose dtypes are stated, or one whose dtypes are those of a call.
Made = TypeVar("Made", bound=DefinedFunction | OverloadedFunction)

Parameters = ParamSpec("Parameters")

_OPTIONS = (
    "shape_func",
    "capture_by_value",
    "allowlisted_stateful_ops",
    "capture_resource_var_by_value",
    "noinline",
    "compiled",
    "separate_compiled_gradients",
    "_implements",
    "_reference",
)

_unnamed: dict[str, itertools.count[int]] = {}


class Declare:
    """A function that is defined elsewhere, before or after: what makes recursion possible.

    A body calls itself, or functions that are defined later, through their declarations. A declaration belongs to the
    graph that is the default graph when it is made; calls in other graphs look for the definition there.

    Source: Jeong et al., "Improving the Expressiveness of Deep Learning Frameworks with Recursion", EuroSys 2018, whose
    forks of TensorFlow have a `Declare` of this form.

    Examples:
      >>> fib = tfr.Declare("Fib", [("n", tf.int32)], [("ret", tf.int32)])
      >>> @tfr.Defun(tf.int32, func_name="Fib", out_names=["ret"])
      ... def FibImpl(n):
      ...     return tf.cond(n < 2, lambda: n, lambda: fib(n - 1) + fib(n - 2))
      >>> with tf1.Session(config=tfr.session_config()) as session:
      ...     print(session.run(fib(20)))
      6765
    """

    def __init__(
        self,
        func_name: str,
        inputs: Sequence[tuple[str, tf.DType]],
        outputs: Sequence[tuple[str, tf.DType]],
        output_shapes: Sequence[Any] | None = None,
    ) -> None:
        """Declare a function in the current graph.

        Args:
          func_name: name of the function, the `func_name` of its Defun.
          inputs: `(name, dtype)` of each argument.
          outputs: `(name, dtype)` of each output.
          output_shapes: static shape of each output (`[]`, `[None, 50]`, a `tf.TensorShape`), None for an unknown one.
            By default they are those that a trace of the definition tells, if it is made before the call.

        Raises:
          ValueError: if a name is not legal, or the graph has another declaration of this function.
          TypeError: if an entry is no pair of name and dtype, or the function's definition does not match.
        """
        name = signatures.checked_name(func_name)
        outputs = signatures.checked_named_types(name, "outputs", outputs)
        self._signature = Signature(
            name,
            signatures.checked_named_types(name, "inputs", inputs),
            outputs,
            signatures.checked_shapes(name, output_shapes, len(outputs)),
        )
        library = calls.current_library()
        library.declare(self._signature)
        self._declared_in = library.registry
        unknown = [tf.TensorShape(None)] * len(self._signature.inputs)
        self._eager_calls = EagerCalls(name, self._signature.inputs, unknown)

    @property
    def name(self) -> str:
        """Name of the function in a graph's function library."""
        return graph_name(self._signature.name)

    @property
    def declared_input_types(self) -> list[tf.DType]:
        """Dtypes of the arguments."""
        return self._signature.input_types

    @not_converted
    def __call__(self, *args: Any, name: str | None = None, **unknown: NoReturn) -> Any:
        """Add a call to the default graph.

        Args:
          *args: tensors, variables, or values that convert to the declared dtypes.
          name: name of the call's node, by default the function's.

        Returns:
          One tensor; a tuple for several outputs; the operation if the function has none, None in eager mode. (Type
          checkers see `Any`, as how many there are is not known to them.)

        Raises:
          TypeError: if the number or dtype of an argument is wrong, a keyword argument is unknown, or the definition
            does not match.
        """
        function = self._signature.name
        signatures.check_call_keywords(function, name, unknown)
        if tf.executing_eagerly():
            return self._eager_calls(self, args)
        library = calls.current_library()
        library.declare(self._signature)
        library.find(function, self._declared_in)
        return library.call(function, self._signature.inputs, args, name)

    def __repr__(self) -> str:
        return f"<Declare '{self._signature.name}' {self._signature}>"


class Options(TypedDict, total=False):
    """The keyword arguments of Defun, for type checkers.

    Defun also takes attributes `experimental_...`. Type checkers refuse these, because they have no list of them.
    """

    func_name: str | None
    out_names: Sequence[str] | None
    grad_func: Callable[..., Any] | str | None
    python_grad_func: Callable[..., Any] | None
    create_grad_func: bool | None
    output_shapes: Sequence[Any] | None
    shape_func: Callable[[tf.Operation], Sequence[Any]] | None
    capture_by_value: bool
    allowlisted_stateful_ops: Collection[tf.Operation] | None
    capture_resource_var_by_value: bool
    noinline: bool
    compiled: bool
    separate_compiled_gradients: bool


class Defun(Generic[Made]):
    """Decorator that makes a Python function a function of the graph, which may call itself.

    The body is traced at the first call, or when its definition is asked for. Tensors and variables of the graph around
    it may be used inside. Variables are captured by reference: the body reads their value when it runs (stock Defun
    reads those of `get_variable` once, before the call; `capture_resource_var_by_value=True` does that here too).

    Source: `tensorflow.python.framework.function.Defun` of TensorFlow, whose scripts this one runs.

    Examples:
      A call can be differentiated; forward values are computed once and shared with the backward pass.

      >>> power = tfr.Declare("Power", [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])
      >>> @tfr.Defun(tf.float32, tf.int32, func_name="Power", out_names=["y"], create_grad_func=True)
      ... def PowerImpl(x, n):
      ...     return tf.cond(n < 1, lambda: 1.0, lambda: x * power(x, n - 1))
      >>> x = tf.constant(2.0)
      >>> y = PowerImpl(x, 3)
      >>> with tf1.Session(config=tfr.session_config()) as session:
      ...     value, gradient = session.run([y, tf.gradients(y, x)[0]])
      >>> float(value), float(gradient)
      (8.0, 12.0)

      Several outputs are a tuple. Without input types there is a definition for each list of dtypes.

      >>> @tfr.Defun()
      ... def Swap(a, b):
      ...     return b, a
      >>> a, b = Swap(1, "text")
      >>> a.dtype.name, b.dtype.name
      ('string', 'int32')
    """

    @overload
    def __init__(
        self: Defun[DefinedFunction],
        first: tf.DType | tf.TensorSpec,
        /,
        *others: tf.DType | tf.TensorSpec,
        **options: Unpack[Options],
    ) -> None: ...

    @overload
    def __init__(self: Defun[OverloadedFunction], /, **options: Unpack[Options]) -> None: ...

    def __init__(
        self,
        *input_types: tf.DType | tf.TensorSpec,
        func_name: str | None = None,
        out_names: Sequence[str] | None = None,
        grad_func: Any = None,
        python_grad_func: Callable[..., Any] | None = None,
        create_grad_func: bool | None = None,
        output_shapes: Sequence[Any] | None = None,
        **options: Any,
    ) -> None:
        """State what the decorated function takes and returns.

        Args:
          *input_types: dtype of each argument, or a `tf.TensorSpec`: then its static shape is known in the body. Left
            out, they are those of a call's arguments, a definition for each different list of dtypes.
          func_name: name in the graph; by default the Python function's, made unique.
          out_names: name of each output.
          grad_func: the gradient as a function (a Defun or any callable): of the arguments, then of the gradients for
            the differentiable outputs; it returns one gradient per argument, or per differentiable argument. A string
            names the gradient function that is built (the first one, if calls of different shapes have several).
          python_grad_func: the gradient as stock `RegisterGradient` has it: of the call's operation (its first inputs
            are the arguments) and the gradients for all outputs; it returns one gradient or None per argument.
          create_grad_func: False forbids `tf.gradients` through calls. True and None allow it: the gradient is built
            when it is first asked for.
          output_shapes: static shape of each output, None for an unknown one. By default the trace tells them.
          **options: as for stock Defun: `shape_func`, `capture_by_value`, `allowlisted_stateful_ops`,
            `capture_resource_var_by_value` (False by default), `noinline`, `experimental_...` attributes.

        Raises:
          ValueError: if `func_name`, one of `out_names` or the gradient's name is not legal, or `output_shapes` and
            `out_names` differ in length, or a name is twice in `out_names`, or a gradient is named that is forbidden,
            or an `experimental_...` attribute is neither a number nor a text.
          TypeError: if an input type is not a dtype, what should be a function is not callable, `create_grad_func` is
            not a bool, or an option is unknown.
        """
        self._name = None if func_name is None else signatures.checked_name(func_name)
        where = self._name or "decorated by Defun"
        _check_options(where, options)
        gradient_name = _gradient_name(where, grad_func, create_grad_func)
        grad_func = None if gradient_name is not None else grad_func
        _check_functions(
            where, grad_func=grad_func, python_grad_func=python_grad_func, shape_func=options.get("shape_func")
        )
        self._input_types = [_checked_type(where, spec) for spec in input_types]
        self._input_shapes = [tf.TensorShape(_shape_of(spec)) for spec in input_types]
        listed = None if out_names is None else _listed_names(where, out_names)
        self._settings = Settings(
            out_names=listed,
            grad_func=grad_func,
            gradient_name=gradient_name,
            python_grad_func=python_grad_func,
            create_grad_func=create_grad_func,
            output_shapes=signatures.checked_shapes(where, output_shapes, None if listed is None else len(listed)),
            options=options,
        )

    @overload
    def __call__(self, func: Callable[[], Any]) -> DefinedFunction: ...

    @overload
    def __call__(self, func: Callable[Concatenate[Any, Parameters], Any]) -> Made: ...

    def __call__(self, func: Callable[..., Any]) -> DefinedFunction | OverloadedFunction:
        """Define `func` in the current graph.

        Returns:
          The function, to be called with tensors or values: `f(*args, name=None)`. It has `name`, `definition` (a
          FunctionDef), `captured_inputs` and `add_to_graph(graph)`, as stock TensorFlow's defined functions.

        Raises:
          ValueError: if the graph has another function of that name, or `func` takes another number of arguments.
          TypeError: if the definition does not match its declaration.
        """
        name = self._name or _unique_name(func)
        made = None if self._name else made_function(_python_name(func))
        lasting = None if made is None else made.lasting_name
        arg_names = argument_names(name, func, len(self._input_types))
        if len(arg_names) > len(self._input_types):
            if self._input_types:
                raise ValueError(
                    f"Function '{name}': the Python function takes {len(arg_names)} arguments, "
                    f"Defun states {len(self._input_types)} input types; "
                    "give as many tf.function input types as there are arguments"
                )
            return OverloadedFunction(name, func, self._settings, lasting)
        function = DefinedFunction(
            name, func, arg_names, self._input_types, self._settings, self._input_shapes, lasting
        )
        calls.current_library().define(function)
        return function


def _checked_type(function: str, spec: Any) -> tf.DType:
    """The dtype of what a user states of an argument: a TensorSpec, or the dtype itself."""
    if inspect.isroutine(spec):
        raise TypeError(
            f"Defun is given the Python function {spec.__name__!r} where dtypes belong; "
            "write @Defun(dtype, ...) or @Defun() above it"
        )
    return signatures.checked_type(function, spec.dtype if isinstance(spec, tf.TensorSpec) else spec)


def _shape_of(spec: Any) -> Any:
    """The static shape that a user states of an argument, None if there is none. (`np.int32` has a `shape`, too.)"""
    return spec.shape if isinstance(spec, tf.TensorSpec) else None


def _gradient_name(function: str, grad_func: Any, create_grad_func: bool | None) -> str | None:
    """What a string given as `grad_func` calls the gradient; None if a function or nothing is given."""
    if create_grad_func is not None and not isinstance(create_grad_func, bool):
        raise TypeError(
            f"Function '{function}': create_grad_func is {create_grad_func!r}, expected True, False or None"
        )
    if not isinstance(grad_func, str):
        return None
    if create_grad_func is False:
        raise ValueError(
            f"Function '{function}': grad_func names a gradient, {grad_func!r}, that create_grad_func=False forbids"
        )
    return signatures.checked_name(grad_func)


def _listed_names(function: str, out_names: Any) -> list[str]:
    listed = [] if isinstance(out_names, str) else list(out_names)
    if isinstance(out_names, str) or not all(isinstance(name, str) for name in listed):
        raise TypeError(f"Function '{function}': out_names is {out_names!r}, expected a list of names")
    for name in listed:
        signatures.check_output_name(function, name)
    signatures.check_distinct(function, "out_names", listed)
    return listed


def _check_functions(function: str, **given: Any) -> None:
    """Raises TypeError if what Defun is given as a function cannot be called."""
    for what, func in given.items():
        if func is not None and not callable(func):
            raise TypeError(f"Function '{function}': {what} is {func!r}, expected a function")


def _check_options(function: str, options: dict[str, Any]) -> None:
    """Raises an error if neither Defun nor stock Defun knows an option, or an attribute cannot have its value."""
    unknown = [name for name in options if name not in _OPTIONS and not name.startswith("experimental_")]
    known = ["func_name", "out_names", "grad_func", "python_grad_func", "create_grad_func", "output_shapes", *_OPTIONS]
    text = ", ".join([*(name for name in known if not name.startswith("_")), "experimental_..."])
    signatures.check_keywords(f"Function '{function}'", text, unknown)
    for name, value in options.items():
        if name.startswith("experimental_") and not isinstance(value, (bool, int, float, str)):
            raise ValueError(f"Function '{function}': {name} is {value!r}, expected a bool, an int, a float or a str")


def _python_name(func: Callable[..., Any]) -> str:
    """What Python calls a function; objects that can be called, a `functools.partial` for example, have no name."""
    return str(getattr(func, "__name__", "function"))


def _unique_name(func: Callable[..., Any]) -> str:
    """A name no other function has: the Python function's and a number."""
    base = "".join(c if c.isalnum() and c.isascii() else "_" for c in _python_name(func)).strip("_")
    count = _unnamed.setdefault(base or "function", itertools.count(1))
    return f"{base or 'function'}__{next(count)}"
