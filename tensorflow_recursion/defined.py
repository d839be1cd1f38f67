"""The classes that Defun makes: functions of stated dtypes, and functions whose dtypes are those of each call."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import functools
import inspect
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import tensorflow as tf

from tensorflow_recursion import calls
from tensorflow_recursion._tf import autograph, functions, graphs, read_shapes
from tensorflow_recursion._tf.read_shapes import Part
from tensorflow_recursion._tf.typed import not_converted
from tensorflow_recursion.argument_kinds.sharing import unknown_read
from tensorflow_recursion.errors import CallError, of_results
from tensorflow_recursion.explanations import explained
from tensorflow_recursion.ops import Result
from tensorflow_recursion.traces import signatures
from tensorflow_recursion.traces.definitions import TraceOptions, graph_name
from tensorflow_recursion.traces.results import Results
from tensorflow_recursion.traces.signatures import Named, Signature

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class Settings:
    """The arguments of Defun besides the name and the dtypes; Defun explains them."""

    out_names: list[str] | None
    grad_func: Callable[..., Any] | None
    gradient_name: str | None
    python_grad_func: Callable[..., Any] | None
    create_grad_func: bool | None
    output_shapes: tuple[tf.TensorShape, ...] | None
    options: dict[str, Any]


class DefinedFunction:
    """A function made by Defun. Called, it adds a call of the function to the default graph.

    Each outermost graph in which it is used has a trace of its own. The properties speak of the trace in the current
    graph if there is one, else of the one in the graph where the function was defined.

    Attributes:
      python_grad_func: as given to Defun.
      grad_func: the function given to Defun as `grad_func`, or None.
      gradient_name: the name given to Defun as `grad_func`, or None.
      create_grad_func: as given to Defun.
      output_shapes: the stated static shapes of the outputs, or None.
    """

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        arg_names: Sequence[str],
        input_types: Sequence[tf.DType],
        settings: Settings,
        input_shapes: Sequence[tf.TensorShape] | None = None,
        lasting_name: str | None = None,
    ) -> None:
        self.base = None  # it is no gradient
        self.needs_trace = True
        self.promise = None
        self.arg_shapes = None
        self.max_depth = None
        self.orders_effects = False  # as in TensorFlow's own Defun
        self.strategies = None
        self.is_built_once = False  # its gradient is made for the shapes of the outermost call
        self.has_effects = False
        self.unknown_read = ""  # of the latest trace
        self.user_name = name
        self.lasting_name = lasting_name or name
        self.inputs = tuple(zip(signatures.legal_argument_names(arg_names), input_types, strict=True))
        self._input_shapes = input_shapes or [tf.TensorShape(None)] * len(self.inputs)
        self.wants_shapes = any(shape.rank is not None for shape in self._input_shapes)
        self.output_shapes = settings.output_shapes
        self._eager_calls = EagerCalls(name, self.inputs, self._input_shapes)
        self.grad_func = settings.grad_func
        self.gradient_name = settings.gradient_name
        self.python_grad_func = settings.python_grad_func
        self.create_grad_func = settings.create_grad_func
        self.python_function = func
        self._func = func
        self._out_names = settings.out_names
        self._options = {"capture_resource_var_by_value": False, **settings.options}
        self._shape_func = self._options.pop("shape_func", None)
        self._device = graphs.innermost_device(tf1.get_default_graph())
        self._defined_in = weakref.ref(graphs.enclosing_graphs(tf1.get_default_graph())[-1])

    @property
    def name(self) -> str:
        """Name of the function in a graph's function library: the user's, or `<name>__fn` if an operator has that."""
        return graph_name(self.user_name)

    @property
    def definition(self) -> Any:
        """The FunctionDef. Arguments for what the body captures come after the declared ones."""
        return self._traced().definition

    @property
    def declared_input_types(self) -> list[tf.DType]:
        """Dtypes of the declared arguments."""
        return [dtype for _, dtype in self.inputs]

    @property
    def captured_inputs(self) -> list[tf.Tensor]:
        """The tensors that calls append to the declared arguments."""
        return list(self._traced().captured_inputs)

    @property
    def stateful_ops(self) -> list[tuple[str, str]]:
        """`(name, type)` of each stateful operation in the body."""
        return list(self._traced().stateful_ops)

    def add_to_graph(self, graph: tf.Graph) -> None:
        """Add the function, and all it calls, to the function library of `graph`."""
        if not isinstance(graph, tf.Graph):
            kind = type(graph).__name__
            raise TypeError(f"Function '{self.user_name}': add_to_graph is given a {kind}, expected a tf.Graph")
        library = calls.library_of(graph)
        self._enter(library)
        library.require(self.user_name)
        library.add_to(self.user_name, graph)

    @not_converted
    def __call__(self, *args: Any, name: str | None = None, **unknown: NoReturn) -> Any:
        """Add a call to the default graph; arguments, result and errors as for `Declare`."""
        signatures.check_call_keywords(self.user_name, name, unknown)
        if tf.executing_eagerly():
            return self._eager_calls(self, args)
        library = calls.current_library()
        self._enter(library)
        result = library.call(self.user_name, self.inputs, args, name)
        self._set_shapes(result)
        return result

    def check_against(self, declared: Signature) -> None:
        """Raises TypeError if what is known before the trace does not match the declaration."""
        if not signatures.same_types(declared.input_types, self.declared_input_types):
            raise signatures.mismatch(declared, "takes", declared.input_types, self.declared_input_types)
        for what, names in (("out_names", self._out_names), ("output_shapes", self.output_shapes)):
            if names is not None and len(names) != len(declared.outputs):
                raise TypeError(
                    f"Function '{declared.name}' returns {signatures.type_names(declared.output_types)} "
                    f"by its declaration, but its definition has {len(names)} {what}"
                )

    def build(self, args: Sequence[tf.Tensor], declared: Signature | None) -> list[tf.Tensor]:
        """Build the body in the default graph; called by the library while it traces."""
        returned = self._returned(args)
        with of_results():
            return self._results(declared).tensors(returned)

    def contradiction(self, args: Sequence[tf.Tensor], declared: Signature | None) -> Exception | None:
        """The error if what the body returns is not as its declaration, or Defun, states; None if it is."""
        returned = self._returned(args)
        try:
            self._results(declared).tensors(returned)
        except (TypeError, ValueError) as error:
            return error
        return None

    def _results(self, declared: Signature | None) -> Results:
        return Results(self.user_name, self._out_names, self.output_shapes, declared)

    def _returned(self, args: Sequence[tf.Tensor]) -> Any:
        """What the Python function returns for these tensors. AutoGraph converts nothing, whoever asks for a trace."""
        for tensor, shape in zip(args, self._input_shapes, strict=True):
            tensor.set_shape(shape)
        self.unknown_read = ""
        tells = [
            functools.partial(self._shape_is_read, name, arg) for arg, (name, _) in zip(args, self.inputs, strict=True)
        ]
        with explained(self.user_name), read_shapes.watched(args, tells, None):
            return autograph.call(self._func, args, {}, autograph=False)

    def _shape_is_read(self, name: str, argument: tf.Tensor, part: Part, file: str, line: int) -> None:
        """Note that a line of the body reads a part of the shape of an argument, if that is not known."""
        known = argument.shape.rank if part is None else argument.shape[part]
        if known is None:
            self.unknown_read = self.unknown_read or unknown_read(f"'{name}'", part, file, line)

    def trace_options(self) -> TraceOptions:
        """How the body is traced, beyond what the library knows."""
        return {
            "doc": self._func.__doc__,
            "out_names": self._out_names,
            "device": self._device,
            "options": self._options,
        }

    def _set_shapes(self, result: Result) -> None:
        """Apply a stock `shape_func` to the outputs of a call."""
        if self._shape_func is None or isinstance(result, tf.Operation):
            return
        outputs = result if isinstance(result, tuple) else (result,)
        shapes = self._shape_func(outputs[0].op)
        if len(shapes) != len(outputs):
            raise ValueError(
                f"Function '{self.user_name}': shape_func gives {len(shapes)} shapes for {len(outputs)} outputs"
            )
        for output, shape in zip(outputs, shapes, strict=True):
            output.set_shape(shape)

    def _enter(self, library: calls.Library) -> None:
        """Let `library` know this function, and what its declaration states where it was defined."""
        defined_in = self._defined_in()
        if defined_in is not None:
            declared = calls.library_of(defined_in).registry.declarations.get(self.user_name)
            if declared is not None:
                library.declare(declared)
        library.adopt(self)

    def _traced(self) -> functions.TracedFunction:
        """The trace that the properties describe: of the current graph, or else of the graph of the definition."""
        library = calls.current_library()
        defined_in = self._defined_in()
        if library.registry.definitions.get(self.user_name) is not self and defined_in is not None:
            library = calls.library_of(defined_in)
        self._enter(library)
        body = library.require(self.user_name)
        if body is None or body.traced is None:
            raise ValueError(f"Function '{self.user_name}': its definition is not known before its body is traced")
        return body.traced

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name}: {dtype.name}" for name, dtype in self.inputs)
        return f"<Defun '{self.user_name}' ({inputs})>"


class OverloadedFunction:
    """A function made by Defun without input types: each call is one of a definition for its arguments' dtypes."""

    def __init__(
        self, name: str, func: Callable[..., Any], settings: Settings, lasting_name: str | None = None
    ) -> None:
        self.user_name = name
        self._func = func
        self._settings = settings
        self._lasting_name = lasting_name
        self._overloads: dict[tuple[tf.DType, ...], DefinedFunction] = {}

    def instantiate(self, input_types: Sequence[tf.DType]) -> DefinedFunction:
        """The definition for these dtypes; its name is the function's, an underscore and a text for the dtypes."""
        types = tuple(signatures.checked_type(self.user_name, dtype) for dtype in input_types)
        if types not in self._overloads:
            names = argument_names(self.user_name, self._func, len(types))
            if len(names) != len(types):
                raise CallError(
                    f"Call of '{self.user_name}': got {len(types)} arguments. "
                    f"Expected {len(names)}: the function takes {len(names)}"
                )
            name = f"{self.user_name}_{functions.type_list_key(types)}"
            lasting_name = self._lasting_name and name.replace(self.user_name, self._lasting_name, 1)
            function = DefinedFunction(name, self._func, names, types, self._settings, lasting_name=lasting_name)
            calls.current_library().define(function)
            self._overloads[types] = function
        return self._overloads[types]

    @not_converted
    def __call__(self, *args: Any, name: str | None = None, **unknown: NoReturn) -> Any:
        """Add a call to the default graph; result and errors as for `Declare`."""
        signatures.check_call_keywords(self.user_name, name, unknown)
        tensors = [signatures.convert_argument(self.user_name, i, arg) for i, arg in enumerate(args)]
        return self.instantiate([tensor.dtype for tensor in tensors])(*tensors, name=name)


def argument_names(function: str, func: Callable[..., Any], count: int) -> list[str]:
    """Names of the positional arguments of `func`, at least those of `count` ones if it takes so many."""
    if not callable(func):
        raise ValueError(f"Function '{function}': Defun decorates a Python function, got {func!r}")
    signatures.check_returns_values(f"Function '{function}': Defun", func)
    try:
        parameters = inspect.signature(func).parameters.values()
    except ValueError as error:  # of some functions and classes in C
        raise ValueError(
            f"Function '{function}': Defun decorates a Python function whose arguments are known, got {func!r}; write "
            "a `def` or a lambda that calls it"
        ) from error
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for parameter in parameters:
        if parameter.default is not parameter.empty or parameter.kind in (
            inspect.Parameter.KEYWORD_ONLY,
            inspect.Parameter.VAR_KEYWORD,
        ):
            raise ValueError(
                f"Function '{function}': argument '{parameter}' is optional or a keyword; Defun takes neither, "
                "they are not supported"
            )
    names = [parameter.name for parameter in parameters if parameter.kind in plain]
    if any(parameter.kind == inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        names += [f"arg{i}" for i in range(len(names), count)]
    elif len(names) < count:
        raise ValueError(
            f"Function '{function}': the Python function takes {len(names)} arguments, "
            f"Defun states {count} input types; give as many tf.function input types as there are arguments"
        )
    return names


class EagerCalls:
    """Calls of a function in eager mode, by a tf.function that makes one call of it."""

    def __init__(self, function: str, inputs: Sequence[Named], shapes: Sequence[tf.TensorShape]) -> None:
        """Makes calls of `function`, which takes `inputs` of these shapes."""
        self._function = function
        self._inputs = inputs
        self._specs = [tf.TensorSpec(shape, dtype) for (_, dtype), shape in zip(inputs, shapes, strict=True)]
        self._entry: Any = None
        self._making = threading.Lock()

    def __call__(self, call: Callable[..., Any], args: Sequence[Any]) -> Any:
        """What `call`, which makes a call in a graph, returns for `args`; None if the function has no outputs."""
        signatures.check_count(self._function, self._inputs, args)
        tensors = signatures.convert_arguments(self._function, self._inputs, args)
        with self._making:
            if self._entry is None:
                self._entry = self._make_entry(call)
        # The body of a Defun is always a graph. Run in Python, the entry would call itself without end.
        entry = self._entry.get_concrete_function() if tf.config.functions_run_eagerly() else self._entry
        return entry(*tensors)

    def _make_entry(self, call: Callable[..., Any]) -> Any:
        def entry(*tensors: tf.Tensor) -> Any:
            result = call(*tensors)
            return None if isinstance(result, tf.Operation) else result

        return tf.function(entry, input_signature=self._specs, autograph=False)
