"""The functions of one graph: what is declared, what is defined, what is traced, and who captures what.

A graph that builds no function (an *outermost* graph) has one Library. Bodies are traced under that graph, so what
they capture are its tensors. A function captures what it or any function it reaches captures, because a call has to
pass these tensors on. That is only known once all of them are traced: bodies whose calls passed too little are traced
again, with the known captures as extra arguments from the start, until nothing changes. Without captures each body is
traced once.

A body is not traced inside the trace of its caller if the declaration says what the call returns: it waits until that
one is done. So Python's stack does not limit how many functions call each other.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import tensorflow as tf

from tensorflow_recursion import _gradients, _signature, _tf, ops
from tensorflow_recursion._signature import Signature

tf1 = tf.compat.v1

_LIBRARY_ATTRIBUTE = "_recursion_library"
_BODY_ATTRIBUTE = "_recursion_body"

Result = tf.Tensor | tuple[tf.Tensor, ...] | tf.Operation
Tensors = tuple[tf.Tensor, ...]


class Definition(Protocol):
    """What a Library needs to know of a Defun."""

    user_name: str
    graph_name: str
    inputs: tuple[_signature.Named, ...]
    output_shapes: tuple[tf.TensorShape, ...] | None

    def check_against(self, declared: Signature) -> None: ...

    python_grad_func: Any
    grad_func: Any
    create_grad_func: bool | None

    def build(self, args: Sequence[tf.Tensor], declared: Signature | None) -> list[tf.Tensor]: ...

    def trace_options(self) -> dict[str, Any]: ...


class Names:
    """Who is called what in one graph. Knows no tensors, so that declarations may outlive their graph."""

    def __init__(self) -> None:
        self.declarations: dict[str, Signature] = {}
        self.definitions: dict[str, Definition] = {}
        # Libraries that called a function before it was defined.
        self.waiting: dict[str, weakref.WeakSet[Library]] = {}

    def wait(self, name: str, library: Library) -> None:
        self.waiting.setdefault(name, weakref.WeakSet()).add(library)


class VariableLog:
    """The variables a body made, so that tracing it again finds the same ones instead of making more."""

    def __init__(self) -> None:
        self._by_name: dict[str, Any] = {}
        self._created: list[Any] = []

    @contextlib.contextmanager
    def replay(self) -> Iterator[None]:
        """Give the code inside the logged variables; those it makes beyond them are logged."""
        logged = dict(self._by_name)
        created = iter(list(self._created))

        def get_variable(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
            if name in logged:
                return logged[name]
            initializer = kwargs.get("initializer")
            if initializer is not None and not callable(initializer):
                kwargs["dtype"] = None  # the value's own; here stands the scope's default, with which stock would fail
            variable = getter(name, *args, **kwargs)
            self._by_name.setdefault(name, variable)
            return variable

        def create_variable(next_creator: Any, **kwargs: Any) -> Any:
            variable = next(created, None)
            if variable is None:
                variable = next_creator(**kwargs)
                self._created.append(variable)
            return variable

        with tf1.variable_scope("", custom_getter=get_variable), tf.variable_creator_scope(create_variable):
            yield


@dataclasses.dataclass(eq=False)
class Body:
    """One trace of a function.

    Attributes:
      definition: what was traced.
      known: captures that were known before the trace; they come first among its own.
      variables: the variables of this function in this graph, shared by all its traces.
      captures: the tensors that calls append to the declared arguments; None while the trace is in progress.
      callees: name of each function the body calls -> the captures that the first such call passed.
      output_types: dtypes of the traced outputs.
      made_here: names of functions that were defined inside the body.
      traced: the function graph; None while the trace is in progress.
    """

    definition: Definition
    known: Tensors
    variables: VariableLog
    captures: Tensors | None = None
    callees: dict[str, Tensors] = dataclasses.field(default_factory=dict)
    output_types: list[tf.DType] = dataclasses.field(default_factory=list)
    made_here: list[str] = dataclasses.field(default_factory=list)
    traced: _tf.TracedFunction | None = None

    @contextlib.contextmanager
    def building(self, seed: int | None) -> Iterator[None]:
        """Prepare the function graph that is the default graph now; the body is built inside."""
        graph = tf1.get_default_graph()
        setattr(graph, _BODY_ATTRIBUTE, self)
        graph.seed = seed
        for tensor in self.known:
            graph.capture(tensor)
        with self.variables.replay():
            yield


@dataclasses.dataclass(eq=False)
class OpenCall:
    """A call outside every body whose callee still reaches a function without a definition.

    Attributes:
      name: the user's name of the callee.
      op: the Invoke node.
      captures: the captures it passes.
      results: identities of the outputs (a NoOp if there are none), which can be moved to another Invoke node; empty if
        the call sits in a nested function graph, where that cannot be done.
    """

    name: str
    op: tf.Operation
    captures: Tensors
    results: tuple[tf.Operation, ...]


class Library:
    """The functions of one outermost graph.

    Order of use: `declare` and `define` enter names, `call` (or `require`) traces what is needed, adds it to the graph
    and makes the Invoke node. Not thread-safe, as building a graph is not.
    """

    def __init__(self, graph: tf.Graph) -> None:
        self.graph = graph
        self.names = Names()
        self._bodies: dict[str, Body] = {}
        self._installed: dict[str, Body] = {}
        self._tracing: list[Body] = []
        # Names of functions that bodies call, which are to be traced once no trace is in progress.
        self._pending: list[str] = []
        self._variables: weakref.WeakKeyDictionary[Definition, VariableLog] = weakref.WeakKeyDictionary()
        self._open_calls: list[OpenCall] = []
        self.differentiation = _gradients.Differentiation(self)

    # -- Names ---------------------------------------------------------------------------------------------------------

    def declare(self, signature: Signature) -> None:
        """Enter a declaration.

        Raises:
          ValueError: if the name is declared differently.
          TypeError: if the name is defined differently.
        """
        name = signature.name
        known = self.names.declarations.get(name, signature)
        if known != signature:
            raise ValueError(f"Function '{name}' is declared twice: first as {show(known)}, then as {show(signature)}")
        if (definition := self.names.definitions.get(name)) is not None:
            self._check_definition(definition, signature)
        self.names.declarations[name] = signature

    def define(self, definition: Definition) -> None:
        """Enter a definition; calls in any graph that waited for it are resolved now.

        Raises:
          ValueError: if the name has another definition.
          TypeError: if the definition does not match the declaration.
        """
        name = definition.user_name
        self.adopt(definition)
        if self._tracing:
            self._tracing[-1].made_here.append(name)
        waiting = list(self.names.waiting.get(name, ()))
        try:
            for library in waiting:
                library.adopt(definition)
                library.require(name)
        except Exception:
            for library in [self, *waiting]:
                library.names.definitions.pop(name, None)
            raise
        self.names.waiting.pop(name, None)

    def adopt(self, definition: Definition) -> None:
        """Let `definition` be the one of its name in this graph; errors as for `define`."""
        name = definition.user_name
        if self.names.definitions.get(name, definition) is not definition:
            raise ValueError(f"Function '{name}' is defined twice in one graph; give one of the two another func_name")
        if (declared := self.names.declarations.get(name)) is not None:
            self._check_definition(definition, declared)
        self.names.definitions[name] = definition

    def find(self, name: str, home: Names) -> None:
        """Look for a definition of `name` here, then in `home`; without one, wait for it in both."""
        if name in self.names.definitions or _tf.has_function(self.graph, graph_name(name)):
            return
        if (definition := home.definitions.get(name)) is not None:
            self.adopt(definition)
            return
        self.names.wait(name, self)
        home.wait(name, self)

    def _check_definition(self, definition: Definition, declared: Signature) -> None:
        definition.check_against(declared)
        body = self._bodies.get(definition.user_name)
        if (
            body is not None
            and body.traced is not None
            and not _signature.same_types(body.output_types, declared.output_types)
        ):
            raise mismatch(declared, "returns", declared.output_types, body.output_types)

    # -- Calls ---------------------------------------------------------------------------------------------------------

    def call(self, name: str, inputs: Sequence[_signature.Named], args: Sequence[Any], node_name: str | None) -> Result:
        """Add a call of the function `name` to the default graph, which is this library's or nested in it."""
        op, captures = self._make_call(name, inputs, args, node_name)
        is_final = self._owner(op) is not None or self._is_closed(name)
        return result_of(op) if is_final else self._open_call(name, op, captures)

    def call_op(
        self, name: str, inputs: Sequence[_signature.Named], args: Sequence[Any], node_name: str | None
    ) -> tf.Operation:
        """Like `call`, for a function that is defined with all it calls; returns the Invoke node."""
        return self._make_call(name, inputs, args, node_name)[0]

    def _make_call(
        self, name: str, inputs: Sequence[_signature.Named], args: Sequence[Any], node_name: str | None
    ) -> tuple[tf.Operation, Tensors]:
        _signature.check_count(name, inputs, args)
        if self._may_wait(name):
            self._pending.append(name)
        else:
            self.require(name)
        target = self._target(name)
        chain = _tf.enclosing_graphs(tf1.get_default_graph())
        captures = self.captures(name)
        self._check_in_reach(name, captures, chain, "its body captures")
        with tf1.name_scope(node_name or target) as scope:
            tensors = _signature.convert_arguments(name, inputs, args)
            self._check_in_reach(name, tensors, chain, "it is given")
            arguments = [*tensors, *(self.differentiation.bring_in(tensor, chain) for tensor in captures)]
            forward = self._forward_name(name, tensors)
            op = ops.invoke(target, arguments, *self._outputs(name), name=scope, forward=forward)
        if any(_tf.is_dataset_or_tf_function(graph) for graph in chain):
            _tf.hide_from_dataset_optimizer(self.graph)
        if (owner := self._owner(op)) is not None:
            owner.callees.setdefault(name, captures)
        elif self._is_closed(name):
            self._share(name, chain[:-1])
        return op, captures

    @staticmethod
    def _owner(op: tf.Operation) -> Body | None:
        """The body that `op` is part of."""
        chain = _tf.enclosing_graphs(op.graph)
        return next((body for graph in chain if (body := getattr(graph, _BODY_ATTRIBUTE, None))), None)

    def _forward_name(self, name: str, arguments: Sequence[tf.Tensor]) -> str:
        """What a call of `name` runs if it is differentiated; in bodies that is decided when they are."""
        definition = self.names.definitions.get(name)
        if definition is not None and definition.create_grad_func is False:
            return ""
        return self.differentiation.forward_name(name, self._target(name), arguments)

    def require(self, name: str) -> Body | None:
        """The trace of `name`, made and added to the graph if need be; None if the function is not defined here yet."""
        if name not in self._bodies:
            if (definition := self.names.definitions.get(name)) is None:
                return None
            with self._all_or_nothing():
                self._trace(definition)
                if not self._tracing:
                    self._settle()
        return self._bodies[name]

    def _may_wait(self, name: str) -> bool:
        """Whether a call of `name` can be made before its trace.

        Its declaration has to say what it returns. Where a body in progress defined functions, whatever it calls may
        reach them, and what they capture of it is lost once it is done.
        """
        return (
            bool(self._tracing)
            and name in self.names.declarations
            and name not in self._bodies
            and not any(body.made_here for body in self._tracing)
        )

    def captures(self, name: str) -> Tensors:
        """What calls of `name` append to the declared arguments, as far as it is known."""
        body = self._bodies.get(name)
        if body is None:
            return ()
        return body.known if body.captures is None else body.captures

    def add_to(self, name: str, graph: tf.Graph) -> None:
        """Add the traced function `name` and all it calls to the function graphs from `graph` outwards."""
        self._share(name, _tf.enclosing_graphs(graph)[:-1])

    # -- Differentiation ---------------------------------------------------------------------------------------------

    def new_body(self, definition: Definition) -> Body:
        """For one more trace of a function, whose captures are known."""
        self.require(definition.user_name)
        return Body(definition, self.captures(definition.user_name), self._variable_log(definition))

    def definition_in_graph(self, name: str) -> Definition | None:
        """The definition of the function that the graph calls `name`."""
        return next((known for known in self.names.definitions.values() if known.graph_name == name), None)

    def is_in_trace(self, name: str) -> bool:
        """Whether the body of `name` is being traced."""
        return any(body.definition.user_name == name for body in self._tracing)

    def output_types(self, name: str) -> list[tf.DType]:
        """Dtypes of what a traced function returns."""
        declared = self.names.declarations.get(name)
        return self._bodies[name].output_types if declared is None else declared.output_types

    def _variable_log(self, definition: Definition) -> VariableLog:
        return self._variables.setdefault(getattr(definition, "base", definition), VariableLog())

    def _target(self, name: str) -> str:
        definition = self.names.definitions.get(name)
        return graph_name(name) if definition is None else definition.graph_name

    def _outputs(self, name: str) -> tuple[list[tf.DType], tuple[tf.TensorShape, ...] | None]:
        """Dtypes and stated shapes of what a call returns."""
        declared = self.names.declarations.get(name)
        definition = self.names.definitions.get(name)
        shapes = None if definition is None else definition.output_shapes
        shapes = shapes or self.differentiation.result_shapes(name)
        if declared is not None:
            if definition is None:
                self._check_imported(declared)
            return declared.output_types, shapes or declared.output_shapes
        body = self._bodies[name]
        if body.traced is None:
            raise ValueError(
                f"Function '{name}' is called while its own body is traced, and what it returns is not known yet; "
                f"make the call through a Declare('{name}', inputs, outputs)"
            )
        return body.output_types, shapes

    def _check_imported(self, declared: Signature) -> None:
        """Check a declaration against the function of that name that the graph got by import, if any."""
        function = _tf.function_in(self.graph, graph_name(declared.name))
        if function is None:
            return
        signature = function.definition.signature
        for verb, expected, args in (
            ("takes", declared.input_types, signature.input_arg),
            ("returns", declared.output_types, signature.output_arg),
        ):
            got = [tf.as_dtype(arg.type) for arg in args]
            if not _signature.same_types(expected, got):
                raise mismatch(declared, verb, expected, got, "in the graph's library, captured tensors included,")

    def _check_in_reach(self, name: str, tensors: Sequence[tf.Tensor], chain: list[tf.Graph], how: str) -> None:
        for tensor in tensors:
            if _tf.is_eager_tensor(tensor) or any(tensor.graph is graph for graph in chain):
                continue
            if any(tensor.graph is _tf.differentiated_graph(graph) for graph in chain):
                continue  # a branch's, for its gradient
            if _tf.enclosing_graphs(tensor.graph)[-1] is self.graph and any(
                getattr(graph, _BODY_ATTRIBUTE, None) for graph in chain
            ):
                continue  # becomes a capture of that body, and is checked where that one is called
            raise ValueError(
                f"Call of '{name}': {how} tensor {tensor.name!r} of another graph, which is out of reach here; "
                f"call '{name}' in the graph of that tensor"
            )

    def _share(self, name: str, graphs: Iterable[tf.Graph]) -> None:
        """Put `name` and all it reaches into nested function graphs, whose own libraries TensorFlow looks into."""
        bodies = [self._installed[n] for n in self._reachable(name) if n in self._installed]
        for body in bodies:
            _tf.add_to_eager_context(body.traced)
        for graph in graphs:
            if _tf.is_func_graph(graph):
                for body in bodies:
                    _tf.add_function(graph, body.traced)

    # -- Tracing -------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Forget the traces made inside if one of them fails: they may call what was never finished."""
        if self._tracing:
            yield
            return
        before = dict(self._bodies)
        try:
            yield
        except Exception:
            self._bodies = before
            self._pending.clear()
            raise

    def _trace(self, definition: Definition) -> None:
        name = definition.user_name
        previous = self._bodies.get(name)
        for inner in previous.made_here if previous else ():
            self.names.definitions.pop(inner, None)
            self._bodies.pop(inner, None)
        body = Body(definition, self.captures(name), self._variable_log(definition))
        self._bodies[name] = body
        self._tracing.append(body)
        try:
            traced = self._trace_body(body)
        finally:
            self._tracing.pop()
        body.traced = traced
        body.captures = tuple(traced.captured_inputs)

    def _trace_body(self, body: Body) -> _tf.TracedFunction:
        definition = body.definition
        declared = self.names.declarations.get(definition.user_name)

        def func(*args: tf.Tensor) -> list[tf.Tensor]:
            with body.building(self.graph.seed), self.differentiation.mode(True, in_gradient=False):
                outputs = definition.build(args, declared)
            body.output_types = [tensor.dtype.base_dtype for tensor in outputs]
            return outputs

        options = definition.trace_options()
        if options["out_names"] is None and declared is not None:
            options["out_names"] = [name for name, _ in declared.outputs]
        return _tf.trace(self.graph, func, definition.inputs, definition.graph_name, **options)

    def _settle(self) -> None:
        """Trace again until every call passes all that its callee captures, then bring graph and calls up to date."""
        self._trace_pending()
        # Each round carries a capture one call further, so this many rounds are enough.
        for _ in range(len(self._bodies) + 2):
            if not (stale := self._trace_stale()):
                break
            self._trace_pending()
        else:
            names = ", ".join(f"'{name}'" for name in stale)
            raise ValueError(
                f"Function {names}: the body captures a new tensor of the surrounding graph each time it is traced; "
                "create that tensor outside of the body"
            )
        moved = [call for call in self._open_calls if not _same(call.captures, self.captures(call.name))]
        self._check_movable(moved)
        for body in self._bodies.values():
            self._install(body)
        for call in moved:
            self._move(call)
        closed = [call for call in self._open_calls if self._is_closed(call.name)]
        for call in closed:
            self._open_calls.remove(call)
            self._share(call.name, _tf.enclosing_graphs(call.op.graph)[:-1])
        if closed:  # not before: a session would keep a function that is traced again when what it calls is defined
            _tf.make_sessions_take_library(self.graph)

    def _trace_pending(self) -> None:
        """Trace the functions whose calls were made before their trace, and those they call in turn."""
        while self._pending:
            name = self._pending.pop()
            if name not in self._bodies and (definition := self.names.definitions.get(name)) is not None:
                self._trace(definition)

    def _trace_stale(self) -> list[str]:
        """Trace again each function whose body passes less than its callees capture; returns their names."""
        stale = []
        for name in reversed(list(self._bodies)):  # callees, which mostly come later, before their callers
            body = self._bodies.get(name)  # None if it was defined inside another body and went with it
            if body is not None and any(
                not _same(passed, self.captures(callee)) for callee, passed in body.callees.items()
            ):
                stale.append(name)
                self._trace(body.definition)
        return stale

    def _install(self, body: Body) -> None:
        """Put a settled function into the graph's library, in place of an earlier trace of it."""
        definition = body.definition
        previous = self._installed.get(definition.user_name)
        if previous is body:
            return
        if previous is not None:
            _tf.remove_function(self.graph, previous.traced)
        elif _tf.has_function(self.graph, definition.graph_name):
            raise ValueError(
                f"Function '{definition.user_name}' is defined twice in one graph: its library has one already "
                "(from an imported graph?); give this one another func_name"
            )
        _tf.add_function(self.graph, body.traced)
        self._installed[definition.user_name] = body

    def _reachable(self, name: str) -> list[str]:
        """`name` and every function that a call of it may reach, as far as bodies are traced."""
        found = {name: None}
        pending = [name]
        while pending:
            body = self._bodies.get(pending.pop())
            for callee in body.callees if body else ():
                if callee not in found:
                    found[callee] = None
                    pending.append(callee)
        return list(found)

    def _is_closed(self, name: str) -> bool:
        """Whether all that `name` reaches is defined, so that its captures are final."""
        return all(n in self._bodies or _tf.has_function(self.graph, graph_name(n)) for n in self._reachable(name))

    # -- Calls before the definition -----------------------------------------------------------------------------------

    def _open_call(self, name: str, op: tf.Operation, captures: Tensors) -> Result:
        """Return results that can be moved to another node, should the callee turn out to capture tensors."""
        if op.graph is not self.graph:
            self._open_calls.append(OpenCall(name, op, captures, ()))
            return result_of(op)
        with tf1.name_scope(op.name + "/"):
            if len(op.outputs) > 1:
                results = tuple(tf.identity(output, name="result").op for output in op.outputs[:-1])
            else:
                with tf.control_dependencies([op]):
                    results = (tf.no_op(name="result"),)
        self._open_calls.append(OpenCall(name, op, captures, results))
        if not results[0].outputs:
            return results[0]
        return results[0].outputs[0] if len(results) == 1 else tuple(result.outputs[0] for result in results)

    def _check_movable(self, calls: Sequence[OpenCall]) -> None:
        for call in calls:
            if not call.results:
                captured = ", ".join(repr(tensor.name) for tensor in self.captures(call.name))
                raise ValueError(
                    f"Function '{call.name}' captures {captured}, but node {call.op.name!r} calls it in a nested "
                    f"function graph (a branch, a loop, a dataset function) that was built before '{call.name}' and "
                    "all it calls were defined; define them before that call, or pass what is captured as arguments"
                )

    def _move(self, call: OpenCall) -> None:
        """Make the call anew, with the captures it lacks; the old node remains, without consumers."""
        captures = self.captures(call.name)
        arguments = list(call.op.inputs)[: ops.num_arguments(call.op) - len(call.captures)]
        with _tf.place_of(call.op):
            forward = self._forward_name(call.name, arguments)
            arguments = [*arguments, *captures]
            outputs = self._outputs(call.name)
            op = ops.invoke(self._target(call.name), arguments, *outputs, name=call.op.name, forward=forward)
        if len(op.outputs) > 1:
            for result, output in zip(call.results, op.outputs[:-1], strict=True):
                _tf.replace_input(result, output)
        else:
            _tf.replace_control_input(call.results[0], op)
        call.op, call.captures = op, captures


def library_of(graph: tf.Graph) -> Library:
    """The library of the outermost graph around `graph`; it lives as long as that graph."""
    outermost = _tf.enclosing_graphs(graph)[-1]
    if not hasattr(outermost, _LIBRARY_ATTRIBUTE):
        # An attribute, not a weak dictionary: captured tensors lead back to the graph and would keep it alive.
        setattr(outermost, _LIBRARY_ATTRIBUTE, Library(outermost))
    return getattr(outermost, _LIBRARY_ATTRIBUTE)


def current_library() -> Library:
    """The library of the default graph."""
    return library_of(tf1.get_default_graph())


def graph_name(name: str) -> str:
    """What a function is called in a graph: as the user says, but never like an operator."""
    return f"{name}__fn" if _tf.is_registered_op(name) else name


def mismatch(
    declared: Signature, verb: str, expected: Sequence[tf.DType], got: Sequence[tf.DType], where: str = ""
) -> TypeError:
    """The error for a definition that is not what was declared."""
    return TypeError(
        f"Function '{declared.name}' {verb} {_signature.type_names(expected)} by its declaration, "
        f"but its definition {where + ' ' if where else ''}{verb} {_signature.type_names(got)}"
    )


def show(signature: Signature) -> str:
    """A signature as one line of text."""
    inputs, outputs = (
        ", ".join(f"{name}: {dtype.name}" for name, dtype in pairs) for pairs in (signature.inputs, signature.outputs)
    )
    shapes = f" with output_shapes {signature.output_shapes}" if signature.output_shapes is not None else ""
    return f"({inputs}) -> ({outputs}){shapes}"


def result_of(op: tf.Operation) -> Result:
    """What a call returns: one tensor, a tuple of several, or the operation if there is no output."""
    *results, _ = op.outputs  # the last is the record
    if not results:
        return op
    return results[0] if len(results) == 1 else tuple(results)


def _same(a: Tensors, b: Tensors) -> bool:
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


@tf.RegisterGradient(ops.INVOKE)
def _invoke_gradient(op: tf.Operation, *grads: Any) -> _gradients.Gradients:
    return library_of(op.graph).differentiation.of_call(op, grads[:-1])
