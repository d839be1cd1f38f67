"""What tracing, calling and differentiating need to know of a function, and the names of functions in a graph."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import abc
import contextlib
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypedDict

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf import graphs
from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion.traces.signatures import Named, Signature

Tensors: TypeAlias = tuple[tf.Tensor, ...]


class TraceOptions(TypedDict):
    """How a body is traced.

    Attributes:
      doc: the docstring of the Python function.
      out_names: names of the outputs, None if not stated.
      device: the device scope in which the function was defined.
      options: what stock TensorFlow's Defun takes besides.
    """

    doc: str | None
    out_names: list[str] | None
    device: Any
    options: dict[str, Any]


class TraceAgain(ValueError):
    """A body could not be built, maybe because a guess was wrong. It says what the error says that came up."""

    def __init__(self, error: Exception, drop_guess: Callable[[], Callable[[], None]]) -> None:
        """Wraps the `error` that came up; `drop_guess` drops the guess, and returns a function that brings it back."""
        super().__init__(str(error))
        self._error, self._drop_guess = error, drop_guess

    @contextlib.contextmanager
    def without_guess(self) -> Iterator[None]:
        """Inside, the body is traced again. If that fails, too, the guess was right, and the first error is raised."""
        bring_back = self._drop_guess()
        try:
            yield
        except BaseException as error:
            bring_back()
            if not isinstance(error, Exception):  # an interrupt by the user
                raise
            raise self._error  # noqa: B904 - the second error is of no interest


class Definition(Protocol):
    """A function: one that the user made by Defun, or the gradient of another one.

    Attributes:
      user_name: the name that the user gave it, by which a graph's functions know one another; messages say it, without
        the number that a function of one trace has in it (`names.shown`).
      lasting_name: a name that stays the same when a body is traced again. A function that a body makes is another one,
        with another `user_name`, in each trace of that body; `outer/inner1` is its lasting name, for example.
      inputs: `(name, dtype)` of each declared argument.
      arg_shapes: the static shapes of the arguments that its body is always traced for; None if they are the call's.
      output_shapes: the stated static shapes of the outputs, or None.
      grad_func: the user's gradient as a function of the arguments and the gradients for the outputs, or None.
      python_grad_func: the user's gradient as a function of the call's operation, or None.
      gradient_name: what the user calls the gradient function in the graph, or None.
      create_grad_func: False if the function must not be differentiated.
      base: the function whose gradient this is; None for a function of the user's.
      promise: what calls assume of the function besides its signature, the shapes of its results for example. Where a
        trace of the function changes that, the bodies that call it are traced again.
      needs_trace: whether a call requires a trace of the body. It does not where the graph has the function already,
        by import for example, nor where only derivatives of the function run.
      wants_shapes: whether its body is traced again so that the static shapes of its results are known.
      max_depth: how deep calls may nest, None if that is not stated.
      orders_effects: whether the side effects of the body happen in the order in which they are written.
      is_built_once: whether its gradient is made of a copy of the trace that calls run, if possible, not of a new
        trace. The copy knows the shapes of the arguments, and of what calls return, as well as a new one would.
      strategies: the distribution strategies inside of which its body is built, and its gradient is taken: each replica
        of a `tf.distribute` strategy has a function of its own, whose body reads the variables of that replica. None
        for a function that replicas share.
      python_function: the Python function that is traced, of a method bound to its object; None if there is none.
      unknown_read: what to say of a line that reads a part of a shape which callers do not know; empty if none does.
      has_effects: whether a trace found side effects in the body; only kept where they are ordered.
    """

    @property
    def user_name(self) -> str: ...
    @property
    def lasting_name(self) -> str: ...
    @property
    def inputs(self) -> tuple[Named, ...]: ...
    @property
    def arg_shapes(self) -> tuple[tf.TensorShape, ...] | None: ...
    @property
    def output_shapes(self) -> tuple[tf.TensorShape, ...] | None: ...
    @property
    def grad_func(self) -> Callable[..., Any] | None: ...
    @property
    def python_grad_func(self) -> Callable[..., Any] | None: ...
    @property
    def gradient_name(self) -> str | None: ...
    @property
    def create_grad_func(self) -> bool | None: ...
    @property
    def base(self) -> Definition | None: ...
    @property
    def promise(self) -> Hashable: ...
    @property
    def needs_trace(self) -> bool: ...
    @property
    def wants_shapes(self) -> bool: ...
    @property
    def max_depth(self) -> int | None: ...
    @property
    def orders_effects(self) -> bool: ...
    @property
    def is_built_once(self) -> bool: ...
    @property
    def strategies(self) -> graphs.Strategies | None: ...
    @property
    def python_function(self) -> Callable[..., Any] | None: ...
    @property
    def unknown_read(self) -> str: ...

    has_effects: bool

    def check_against(self, declared: Signature) -> None:
        """Raises TypeError if what is known before the trace does not match the declaration."""

    def build(self, args: Sequence[tf.Tensor], declared: Signature | None) -> list[tf.Tensor]:
        """Build the body in the default graph; returns its outputs.

        Raises:
          TraceAgain: if it could not be built, maybe for what was guessed of it.
        """

    def contradiction(self, args: Sequence[tf.Tensor], declared: Signature | None) -> Exception | None:
        """Build the body in the default graph, which is for inference; the error if what it returns is not as stated.

        None if that is as stated, or nothing is stated. Raises what building the body does.
        """

    def trace_options(self) -> TraceOptions:
        """How the body is traced, beyond what follows from its declaration."""


def original_of(definition: Definition) -> Definition:
    """The user's function of which `definition` is a derivative, itself if it is none."""
    while definition.base is not None:
        definition = definition.base
    return definition


def came_along(definition: Definition) -> bool:
    """Whether a function came with a graph, or is a derivative of one that did."""
    original = original_of(definition)
    return isinstance(original, MadeDefinition) and original.is_imported


def graph_name(name: str) -> str:
    """The name of a function in a graph where it is traced once: the user's, with a suffix if an operator has that."""
    return f"{name}{names.MANGLED_SUFFIX}" if graphs.is_registered_op(name) else name


class MadeDefinition(abc.ABC):
    """A `Definition` that is not the user's: a derivative, or a function of which nobody has the Python code.

    Attributes:
      signature: what it takes, captured tensors included, and returns.
      is_imported: whether it came with a graph, and maybe some of its derivatives with it.
    """

    user_name: str
    signature: Signature

    base: Definition | None = None
    arg_shapes = None
    output_shapes = None
    grad_func = None
    python_grad_func = None
    gradient_name = None
    create_grad_func = None
    promise = None
    needs_trace = False
    wants_shapes = False
    max_depth = None
    orders_effects = False
    is_built_once = False  # no call runs a trace of it
    strategies = None
    python_function = None
    unknown_read = ""
    has_effects = False
    is_imported = False

    @property
    def lasting_name(self) -> str:
        """Its name, which is the same in all traces: no body makes such a function."""
        return self.user_name

    @property
    def inputs(self) -> tuple[Named, ...]:
        """Names and dtypes of the arguments."""
        return self.signature.inputs

    @abc.abstractmethod
    def check_against(self, declared: Signature) -> None:
        """Raises nothing for a declaration that is made from the signature."""

    @abc.abstractmethod
    def build(self, args: Sequence[tf.Tensor], declared: Signature | None) -> list[tf.Tensor]:
        """Build the body in the default graph; returns its outputs."""

    def contradiction(self, args: Sequence[tf.Tensor], declared: Signature | None) -> Exception | None:
        """None, because nobody states what such a function returns."""
        return None

    @abc.abstractmethod
    def trace_options(self) -> TraceOptions:
        """How the body is traced, beyond what follows from its signature."""


class CopiedDefinition(MadeDefinition):
    """A function whose body is copied from its definition in a graph.

    Attributes:
      signature: what it takes, captured tensors included, and returns.
    """

    def __init__(self, user_name: str, function: TracedFunction, graph: tf.Graph) -> None:
        """`graph` is one whose library has the functions that `function` calls."""
        self.user_name = user_name
        self._function = function
        self._graph = graph
        signature = function.cached_definition.signature
        inputs = tuple((arg.name, tf.as_dtype(arg.type)) for arg in signature.input_arg)
        outputs = tuple((arg.name, tf.as_dtype(arg.type)) for arg in signature.output_arg)
        self.signature = Signature(user_name, inputs, outputs)

    def check_against(self, declared: Signature) -> None:
        """Accepts any declaration: it is made from the definition."""

    def trace_options(self) -> TraceOptions:
        """The options of a Defun that was given none."""
        return {"doc": None, "out_names": None, "device": None, "options": {"capture_resource_var_by_value": False}}


class Registry:
    """The functions of one graph by name, and the names by which the graph knows them.

    It holds no tensors, so that declarations may outlive their graph.

    Attributes:
      declarations: the declarations, by the user's names.
      definitions: the definitions, by the user's names.
    """

    def __init__(self, *, numbers_traces: bool = False) -> None:
        """Starts empty.

        `numbers_traces` says whether functions get a number in the graph, as `fib__trace3`, because several traces of
        one function are in the same function library.
        """
        self._numbers_traces = numbers_traces
        self._graph_names: dict[str, str] = {}
        self.declarations: dict[str, Signature] = {}
        self.definitions: dict[str, Definition] = {}
        self._waiting: dict[str, weakref.WeakSet[Waiter]] = {}

    def graph_name(self, name: str) -> str:
        """What the graph calls the function `name`."""
        if name in self._graph_names:
            return self._graph_names[name]
        if not self._numbers_traces or names.is_of_trace(name):
            return graph_name(name)
        self._graph_names[name] = names.of_trace(name)
        return self._graph_names[name]

    def note_import(self, name: str) -> None:
        """Learn that the graph has the function `name` by import, under its own name."""
        self.note_graph_name(name, graph_name(name))

    def note_graph_name(self, name: str, in_graph: str) -> None:
        """Learn what the graph calls the function `name`."""
        self._graph_names.setdefault(name, in_graph)

    def by_graph_name(self, name: str) -> Definition | None:
        """The definition of the function that the graph calls `name`."""
        return next((known for key, known in self.definitions.items() if self.graph_name(key) == name), None)

    def wait(self, name: str, waiter: Waiter) -> None:
        """Note that `waiter` called a function that is not defined yet."""
        self._waiting.setdefault(name, weakref.WeakSet()).add(waiter)

    def waiting(self, name: str) -> list[Waiter]:
        """Who called `name` before it was defined."""
        return list(self._waiting.get(name, ()))

    def stop_waiting(self, name: str) -> None:
        """Forget who waited for `name`: it is defined."""
        self._waiting.pop(name, None)


class Waiter(Protocol):
    """The functions of a graph in which a function was called before its definition; a `Library` is one."""

    @property
    def registry(self) -> Registry: ...

    def adopt(self, definition: Definition) -> None:
        """Let `definition` be the one of its name."""

    def require(self, name: str) -> object:
        """Trace the function `name`, which is defined now."""
