"""Makes calls: finds the function that is called, traces it, adds it to the graph, and passes it its captures.

A graph that builds no function is an *outermost* graph. It has one Library, which the graphs in it share: those of its
branches and loop bodies, for example.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import call_checks, names, ops
from tensorflow_recursion._tf import copies, function_calls, functions, graphs, handles, inferring, patches, tapes
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion._tf.handles import HandleData
from tensorflow_recursion._tf.typed import registered_gradient
from tensorflow_recursion.argument_kinds.inference import Inference
from tensorflow_recursion.errors import DefinitionError
from tensorflow_recursion.forward_backward import tf_functions
from tensorflow_recursion.forward_backward.tracer import has_built_gradient
from tensorflow_recursion.gradients import snapshots
from tensorflow_recursion.gradients.gradient_calls import Gradients
from tensorflow_recursion.gradients.requests import Differentiation
from tensorflow_recursion.imports import ImportedDefinition
from tensorflow_recursion.ops import Result
from tensorflow_recursion.traces import nested_calls, signatures
from tensorflow_recursion.traces.definitions import Definition, MadeDefinition, Registry, Tensors, graph_name
from tensorflow_recursion.traces.installation import Installation
from tensorflow_recursion.traces.signatures import Named, Signature
from tensorflow_recursion.traces.traced_bodies import Body, body_around
from tensorflow_recursion.traces.tracing import Traces
from tensorflow_recursion.traces.unresolved import UnresolvedCalls

tf1 = tf.compat.v1

# The library of a function, by the function's name. Only names with the number of a trace are in it, such as
# `fib__trace3`, because no other function of the process has the same.
_libraries: weakref.WeakValueDictionary[str, Library] = weakref.WeakValueDictionary()
_LIBRARY: Attribute[Library] = Attribute(names.LIBRARY)


class Library:
    """The functions of one outermost graph.

    Order of use: `declare` and `define` enter names, `call` (or `require`) traces what is needed, adds it to the graph
    and makes the Invoke node. Not thread-safe, as building a graph is not.
    """

    def __init__(self, graph: tf.Graph) -> None:
        self.graph = graph
        # In eager mode all graphs share one library of functions, the one of the process.
        self.registry = Registry(numbers_traces=graph.building_function)
        self.differentiation = Differentiation(self)
        self._traces = Traces(graph, self.registry, self.differentiation.modes.body)
        self._installation = Installation(graph, self._traces)
        self._unresolved = UnresolvedCalls(graph, self._traces, self._invoke)
        self.inference = Inference(graph, self._traces.variables_of, self._traces.reads)
        self._kept: list[Any] = []
        # The `tf.function`s that are differentiated as parts of bodies, by the names of their traces.
        self._tf_functions: dict[str, tf_functions.TfFunction] = {}

    # -- Names ---------------------------------------------------------------------------------------------------------

    def declare(self, signature: Signature) -> None:
        """Enter a declaration.

        Raises:
          ValueError: if the name is declared differently.
          TypeError: if the name is defined differently.
        """
        name = signature.name
        known = self.registry.declarations.get(name, signature)
        if known != signature:
            raise ValueError(f"Function '{name}' is declared twice: first as {known}, then as {signature}")
        if (definition := self.registry.definitions.get(name)) is not None:
            call_checks.check_definition(definition, signature, self._traces.get(name))
        self.registry.declarations[name] = signature

    def define(self, definition: Definition) -> None:
        """Enter a definition; calls in any graph that waited for it are resolved now.

        Raises:
          ValueError: if the name has another definition.
          TypeError: if the definition does not match the declaration.
        """
        name = definition.user_name
        self.adopt(definition)
        self._traces.note_definition(name)
        waiting = self.registry.waiting(name)
        try:
            for library in waiting:
                library.adopt(definition)
                library.require(name)
        except BaseException:  # an interrupt by the user, too
            for registry in [self.registry, *(library.registry for library in waiting)]:
                registry.definitions.pop(name, None)
            raise
        self.registry.stop_waiting(name)

    def adopt(self, definition: Definition, *, is_local: bool = False) -> None:
        """Let `definition` be the one of its name in this graph; errors as for `define`.

        `is_local` says that the code of a body makes the function, so that each trace of that body makes another one.
        """
        name = definition.user_name
        if is_local and name not in self.registry.definitions:
            self._traces.note_definition(name)
        if self.registry.definitions.get(name, definition) is not definition:
            remedy = "give one of the two another func_name"
            if self._traces.is_made_in_body(name):
                remedy = (
                    "a body defines it, and defines it anew where it is traced for its gradient: define it outside of "
                    "that body, or leave out its func_name"
                )
            if graphs.replica() is not None:
                remedy = "each replica of a tf.distribute strategy defines it: use tfr.recursive"
            raise DefinitionError(f"Function '{name}' is defined twice in one graph; {remedy}")
        if (declared := self.registry.declarations.get(name)) is not None:
            call_checks.check_definition(definition, declared, self._traces.get(name))
        self.registry.definitions[name] = definition

    def keep(self, objects: Sequence[Any]) -> None:
        """Keep what bodies use as long as the graph is there: they are traced again, for their gradient for example."""
        self._kept += objects

    def find(self, name: str, declared_in: Registry) -> None:
        """Look for a definition of `name` here, then in `declared_in`; without one, wait for it in both."""
        if name in self.registry.definitions:
            return
        if functions.has_function(self.graph, graph_name(name)):
            self.registry.note_import(name)
            return
        if (definition := declared_in.definitions.get(name)) is not None:
            self.adopt(definition)
            return
        self.registry.wait(name, self)
        declared_in.wait(name, self)

    # -- Calls ---------------------------------------------------------------------------------------------------------

    def note_scope(self, definition: Definition) -> None:
        """Let a function that is called be traced in the variable scope of its first call, wherever that is done."""
        self._traces.note_scope(definition)

    def call(self, name: str, inputs: Sequence[Named], args: Sequence[Any], node_name: str | None) -> Result:
        """Add a call of the function `name` to the default graph, which is this library's or nested in it."""
        if inferring.is_inferring():
            self.check_not_left_out(name)
        op, captures = self._make_call(name, inputs, args, node_name)
        is_final = body_around(op.graph) is not None or self._traces.is_closed(name)
        return ops.result_of(op) if is_final else self._unresolved.add(name, op, captures)

    def check_not_left_out(self, name: str) -> None:
        """Raises Unknown if the graph that is being built looks at the paths through a body that do not call `name`."""
        for look in (self._traces.result_shapes.look, self._traces.contradictions.look):
            look.check_not_left_out(name)

    def require(self, name: str) -> Body | None:
        """The trace of `name`, made and added to the graph if need be; None if the function is not defined here yet."""
        is_new = self._traces.get(name) is None
        definition = self.registry.definitions.get(name)
        if is_new and (definition is None or not definition.needs_trace):
            return None
        if is_new or self._traces.has_stale:
            with self._traces.all_or_nothing():
                if is_new:
                    self._traces.trace(self.registry.definitions[name])
                if not self._traces.is_in_progress:
                    self._traces.settle()
                    self._bring_up_to_date()
        return self._traces.get(name)

    def use_trace(self, trace: tf.Graph) -> bool:
        """Whether a `tf.function` that is called in the default graph can run `trace`, which was made in a body."""
        is_recorded = self.differentiation.has_other_records(trace)
        return not is_recorded and nested_calls.use(trace, tf1.get_default_graph(), self._traces)

    def find_imported(self, name: str) -> Definition | None:
        """The function that a tf.function's graph calls `name`, if it came with a SavedModel."""
        function = functions.function_in(self.graph, name) if self.graph.building_function else None
        if function is None:
            return None
        definition = ImportedDefinition(function, self.graph)
        self.adopt_made(definition, graph_name(name))
        self._note_trace(name)
        return definition

    def tf_function(self, op: tf.Operation) -> Definition:
        """The `tf.function` that a call in a body runs, as a function that is differentiated along with the body."""
        name = ops.callee_of(op)
        if name not in self._tf_functions:
            definition = tf_functions.TfFunction(function_calls.function_in_reach(op.graph, name), self.graph)
            self.adopt_made(definition, definition.user_name)
            self._tf_functions[name] = definition
        return self._tf_functions[name]

    def adopt_made(self, definition: MadeDefinition, in_graph: str) -> None:
        """Let `definition`, which needs no trace, be the one of its name; the graph calls it `in_graph`."""
        name = definition.user_name
        self.registry.note_graph_name(name, in_graph)
        self.registry.declarations[name] = definition.signature
        self.registry.definitions[name] = definition

    def add_to(self, name: str, graph: tf.Graph) -> None:
        """Add the traced function `name` and all it calls to the function graphs from `graph` outwards."""
        self._installation.share(name, graphs.enclosing_graphs(graph)[:-1])

    def _make_call(
        self, name: str, inputs: Sequence[Named], args: Sequence[Any], node_name: str | None
    ) -> tuple[tf.Operation, Tensors]:
        """Make the Invoke node of a call; returns it and the captures it passes."""
        signatures.check_count(name, inputs, args)
        chain = graphs.enclosing_graphs(tf1.get_default_graph())
        if any(map(graphs.is_loop, chain)):
            self._traces.want_shapes()
        if self._traces.may_wait(name):
            self._traces.postpone(name)
        else:
            self.require(name)
        captures = self.captures(name)
        call_checks.check_in_reach(name, captures, chain, "its body captures")
        definition = self.registry.definitions.get(name)
        call_checks.check_replica(
            name, captures, is_for_replica=definition is not None and definition.strategies is not None
        )
        with tf1.name_scope(node_name or self._target(name)) as scope:
            tensors = signatures.convert_arguments(name, inputs, args)
            call_checks.check_in_reach(name, tensors, chain, "it is given")
            tapes.note_reads(self._traces.variables_read(name))
            brought = tuple(self.differentiation.bring_in(tensor, chain) for tensor in captures)
            with self._before_call(name, [*tensors, *brought]):
                op = self._invoke(name, tensors, brought, scope)
        nested_calls.note(op.graph, self._traces, name, captures)
        if body_around(op.graph) is None and self._traces.is_closed(name):
            self._installation.share(name, chain[:-1])
        return op, captures

    def _invoke(self, name: str, arguments: Sequence[tf.Tensor], captures: Tensors, node_name: str) -> tf.Operation:
        """Add an Invoke node of `name` to the default graph."""
        self.tell_of_lists(arguments)
        forward = self._forward_name(name, arguments)
        self._note_trace(self._target(name))
        types, shapes = self._outputs(name)
        inputs = [*arguments, *captures]
        op = ops.invoke(self._target(name), inputs, types, shapes, name=node_name, forward=forward)
        known = self._result_handles(name, inputs)
        handles.set_handle_data(list(op.outputs)[: len(known)], known)
        definition = self.registry.definitions.get(name)
        if definition is not None and definition.max_depth is not None:
            ops.set_max_depth(op, definition.max_depth)
        return op

    def _before_call(self, name: str, inputs: Sequence[tf.Tensor]) -> contextlib.AbstractContextManager[None]:
        """Inside, the call is made, after a snapshot of its variables if a derivative may run the function again."""
        if body_around(tf1.get_default_graph()) is not None or not _may_run_again(self.registry.definitions.get(name)):
            return contextlib.nullcontext()
        return snapshots.taken_before_call(inputs, self._traces.kinds_assigned(name))

    def _note_trace(self, in_graph: str) -> None:
        """Let `library_of_call` find this library for calls of `in_graph`, also where TensorFlow has copied them."""
        if (trace := names.trace_in(in_graph)) is not None:
            _libraries[trace] = self

    def _result_handles(self, name: str, inputs: Sequence[tf.Tensor]) -> Sequence[HandleData | None]:
        """What is known of the lists and handles that a call of `name` with these inputs returns."""
        body = self._traces.get(name)
        known = self.differentiation.result_handles(name, () if body is None else tuple(body.output_handles))
        return self._traces.with_handed_on(known, name, inputs)

    def tell_of_lists(self, tensors: Sequence[tf.Tensor]) -> None:
        """Let lists and handles tell what they hold that could not when they were made.

        A loop of control flow v1 does not tell, nor does a call that was made before its function was defined.
        """
        handles.set_handle_data(tensors, list(map(self._traces.known_of, tensors)))

    def _bring_up_to_date(self) -> None:
        """After traces have settled, update the graph's function library and the calls that waited for definitions."""
        to_move = self._unresolved.to_move()
        self._installation.bring_up_to_date()
        for call in to_move:
            self._unresolved.move(call)
        resolved = self._unresolved.take_resolved()
        for call in resolved:
            self.add_to(call.name, call.op.graph)
        if resolved:  # not before: a session would keep a function that is traced again when what it calls is defined
            functions.make_sessions_take_library(self.graph)

    def _forward_name(self, name: str, arguments: Sequence[tf.Tensor]) -> str:
        """The forward function that a call of `name` runs if it is differentiated; empty if that is forbidden.

        Which one a call in a body runs is decided when that body is differentiated.
        """
        definition = self.registry.definitions.get(name)
        if definition is not None and definition.create_grad_func is False:
            return ""
        return self.differentiation.forward_name(name, self._target(name), arguments)

    def _target(self, name: str) -> str:
        """What the graph calls the function `name`."""
        return self.registry.graph_name(name)

    def _outputs(self, name: str) -> tuple[Sequence[tf.DType], Sequence[tf.TensorShape] | None]:
        """Dtypes and stated shapes of what a call returns."""
        declared = self.registry.declarations.get(name)
        definition = self.registry.definitions.get(name)
        known = (None if declared is None else declared.output_shapes) or self._traces.result_shapes.get(name)
        shapes = None if definition is None else definition.output_shapes
        shapes = shapes or self.differentiation.result_shapes(name, known)
        if declared is not None:
            if definition is None:
                call_checks.check_imported(declared, functions.function_in(self.graph, self._target(name)))
            return declared.output_types, shapes
        body = self._traces.get(name)
        assert body is not None, name  # without a declaration, a call has a definition, which it traces
        if body.traced is None:
            raise ValueError(
                f"Function '{name}' is called while its own body is traced, and what it returns is not known yet; "
                f"make the call through a Declare('{name}', inputs, outputs)"
            )
        return body.output_types, shapes

    # -- For those who differentiate: see forward_backward/tracer.py ---------------------------------------------------

    def new_body(self, definition: Definition) -> Body:
        """A body for one more trace of a function, whose captures are known."""
        self.require(definition.user_name)
        return self._traces.new_body(definition)

    def final_trace(self, name: str) -> functions.TracedFunction | None:
        """What calls of a function run; None if that may change, because bodies are being traced."""
        return self._traces.final(name)

    def is_tracing(self, name: str) -> bool:
        """Whether the body of `name` is being traced."""
        return self._traces.is_tracing(name)

    def captures(self, name: str) -> Tensors:
        """What calls of `name` append to the declared arguments, as far as it is known."""
        return self._traces.captures(name)

    def note_missing(self, name: str, captures: Tensors) -> None:
        """Learn that a function captures more than is known; a trace of it that is in progress begins anew."""
        self._traces.note_missing(name, captures)

    def output_types(self, name: str) -> Sequence[tf.DType]:
        """Dtypes of what a traced function returns."""
        if (declared := self.registry.declarations.get(name)) is not None:
            return declared.output_types
        body = self._traces.get(name)
        return () if body is None else body.output_types


def _may_run_again(definition: Definition | None) -> bool:
    """Whether a derivative of the second order may run a function once more. One that is not defined yet (None) may."""
    return definition is None or has_built_gradient(definition)


def library_of(graph: tf.Graph) -> Library:
    """The library of the outermost graph around `graph`; it lives as long as that graph."""
    outermost = graphs.enclosing_graphs(graph)[-1]
    return _LIBRARY.made(outermost, lambda: Library(outermost))


def library_of_call(op: tf.Operation) -> Library:
    """The library whose function an Invoke node calls: its graph's, unless TensorFlow copied it to another graph.

    `tf.vectorized_map` and gradients copy calls from a tf.function to functions of their own.
    """
    trace = names.trace_in(ops.callee_of(op))
    return (_libraries.get(trace) if trace is not None else None) or library_of(op.graph)


def library_of_trace(suffix: str) -> Library | None:
    """The library of the function whose name ends with the number of a trace, as long as it is there."""
    return next((library for name, library in list(_libraries.items()) if name.endswith(suffix)), None)


def current_library() -> Library:
    """The library of the default graph."""
    return library_of(tf1.get_default_graph())


def is_in_body() -> bool:
    """Whether the default graph is part of a body that is being built, maybe just to find out what it returns."""
    if tf.executing_eagerly():
        return False
    chain = graphs.enclosing_graphs(tf1.get_default_graph())
    return any(map(inferring.is_for_inference, chain)) or body_around(chain[0]) is not None


@registered_gradient(names.RETAIN)
def _retain_gradient(op: tf.Operation, grad: tf.Tensor) -> list[tf.Tensor | None]:
    return library_of(op.graph).differentiation.of_retain(op, grad)


@registered_gradient(names.RECALL)
def _recall_gradient(op: tf.Operation, *grads: Any) -> tf.Tensor | None:
    return library_of(op.graph).differentiation.of_recall(op, grads)


@registered_gradient(names.INVOKE)
def _invoke_gradient(op: tf.Operation, *grads: Any) -> Gradients:
    call = op.outputs[0].op  # `op` itself, or what a tape has in place of it
    # A tape that a tf.custom_gradient has kept knows the calls of the body that was traced, not those of its copies.
    call = copies.operation_around(call, tf1.get_default_graph())
    library = library_of_call(call)
    library.tell_of_lists(call.inputs)
    return library.differentiation.of_call(call, grads[:-1])


def _tf_function_gradient(op: tf.Operation, *grads: Any) -> Gradients:
    return library_of(op.graph).differentiation.of_call(op, grads)


def _can_run(trace: tf.Graph) -> bool:
    if not nested_calls.has_any(trace):
        return True
    return not tf.executing_eagerly() and current_library().use_trace(trace)


function_calls.let_traces_be_outdated(_can_run)
patches.set_gradient_of_calls(tf_functions.is_differentiated, _tf_function_gradient)
