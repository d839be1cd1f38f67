"""Traces of functions: what a body captures, whom it calls, and when it has to be traced again.

Bodies are traced under the outermost graph, so what they capture are its tensors. A function captures what it or any
function it reaches captures, because a call has to pass these tensors on. That is only known once all of them are
traced: bodies whose calls passed too little are traced again, with the known captures as extra arguments from the
start, until nothing changes. Without captures each body is traced once.

If a declaration says what a call returns, the callee is not traced inside of its caller's trace, but when that is done.
So Python's stack does not limit how many functions call each other.

There are two reasons to build a body more than once. While it is traced, an attempt may fail, and the failure may tell
something (attempts.py). After it was traced, more may be known of its callees than it relied on (`Reliance`). Then it
is *stale*, and `Traces.settle` traces all stale bodies, in rounds, until there are none.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import assignments, function_parts, functions, graphs, inferring, recorders, tapes
from tensorflow_recursion._tf.handles import HandleData
from tensorflow_recursion.traces import ends, handed_on
from tensorflow_recursion.traces.attempts import BodyTracer
from tensorflow_recursion.traces.contradictions import Contradictions
from tensorflow_recursion.traces.definitions import Definition, Registry, Tensors, original_of
from tensorflow_recursion.traces.made_variables import VariableLog
from tensorflow_recursion.traces.result_shapes import ResultShapes
from tensorflow_recursion.traces.traced_bodies import Body, Reliance, body_around

tf1 = tf.compat.v1

# How often bodies are traced again for shapes and side effects, where functions call none but themselves.
_ROUNDS = 8


class Traces:
    """The bodies of one outermost graph's functions, by the user's names.

    Order of use: inside `all_or_nothing`, `trace` a function and then, unless another trace is in progress, `settle`.
    """

    def __init__(
        self,
        graph: tf.Graph,
        registry: Registry,
        while_building: Callable[[], contextlib.AbstractContextManager[None]],
    ) -> None:
        """Traces in `graph` the definitions of `registry`; each body is built inside a `while_building()`."""
        self._graph = graph
        self._registry = registry
        self._bodies: dict[str, Body] = {}
        # Whether a body may have to be traced again, although none was since all have settled.
        self.has_stale = False
        # Traces in progress, innermost last.
        self._open: list[Body] = []
        # Names of functions that bodies call, which are to be traced once no trace is in progress.
        self._pending: list[str] = []
        self.result_shapes = ResultShapes(graph, registry)
        self.contradictions = Contradictions(graph)
        # By lasting names: a function that a body makes is another one in each trace, and makes the same variables.
        self._variables: dict[str, VariableLog] = {}
        self._tracer = BodyTracer(graph, registry, self.result_shapes, self.contradictions, self, while_building)

    def get(self, name: str) -> Body | None:
        """The latest trace of a function; it may be in progress."""
        return self._bodies.get(name)

    def final(self, name: str) -> functions.TracedFunction | None:
        """The last trace of a function; None if it, or what it reaches, may have to be traced again."""
        body = self._bodies.get(name)
        if body is None or (self._open and not all(map(self._is_final, self.reachable(name)))):
            return None
        return body.traced

    def with_handed_on(
        self, known: Sequence[HandleData | None], name: str, inputs: Sequence[tf.Tensor]
    ) -> Sequence[HandleData | None]:
        """What is `known` of the lists and handles that a call returns, and what its inputs tell of the others."""
        body = self._bodies.get(name)
        if body is None or (graph := body.graph) is None:
            return known
        return [
            handed_on.known_of_result(graph, i, inputs, self._graph_run_by) if data is None else data
            for i, data in enumerate(known)
        ]

    def known_of(self, tensor: tf.Tensor) -> HandleData | None:
        """What is known by now of a list or a handle; calls that it comes from may have been made too early to tell."""
        return handed_on.known_of(tensor, self._graph_run_by)

    def _graph_run_by(self, call: tf.Operation) -> Any:
        """The graph that the body was traced in which a call runs; None if it is not known."""
        body = self._body_run_by(ops.callee_of(call))
        return None if body is None else body.graph

    def _body_run_by(self, in_graph: str) -> Body | None:
        """The latest trace of the function that the graph calls `in_graph`; None if it is not known."""
        definition = self._registry.by_graph_name(in_graph)
        return None if definition is None else self._bodies.get(definition.user_name)

    def _is_final(self, name: str) -> bool:
        body = self._bodies.get(name)
        return body is not None and body.traced is not None and not self._is_stale(body)

    def graph_name(self, name: str) -> str:
        """What the graph calls the function `name`."""
        return self._registry.graph_name(name)

    def bodies(self) -> list[Body]:
        """The latest trace of each function."""
        return list(self._bodies.values())

    @property
    def is_in_progress(self) -> bool:
        """Whether any body is being traced."""
        return bool(self._open)

    def is_tracing(self, name: str) -> bool:
        """Whether the body of `name` is being traced."""
        return any(body.definition.user_name == name for body in self._open)

    def captures(self, name: str) -> Tensors:
        """What calls of `name` append to the declared arguments, as far as it is known."""
        body = self._bodies.get(name)
        if body is None:
            return ()
        return body.known if body.captures is None else body.captures

    def note_missing(self, name: str, captures: Tensors) -> None:
        """Learn that `name` captures more than is known. A trace of it that is in progress fails, and begins anew."""
        for body in self._open:
            if body.definition.user_name == name:
                body.missing = captures

    def note_call(self, caller: Body | None, name: str, captures: Tensors) -> Reliance:
        """Learn that a body calls `name`, and passes these captures; returns what the call relies on.

        There is no body where one is built just to find out what it returns.
        """
        orders_effects = caller is None or caller.definition.orders_effects
        is_watched = caller is not None and recorders.num_watching() > caller.watching
        reliance = Reliance(
            captures,
            orders_effects,
            self._promise(name, orders_effects=orders_effects),
            self.result_shapes.get(name),
            self._num_read(name) if is_watched else None,
        )
        if caller is not None:
            first = caller.callees.setdefault(name, reliance)
            if first.num_variables is None:
                caller.callees[name] = dataclasses.replace(first, num_variables=reliance.num_variables)
        return reliance

    def has_changed(self, name: str, relied_on: Reliance) -> bool:
        """Whether something else, or more, is known of the function `name` by now than what a call relied on."""
        return self._does_other_things(name, relied_on) or self.result_shapes.is_stale(name, relied_on.shapes)

    def _does_other_things(self, name: str, relied_on: Reliance) -> bool:
        """Whether what has changed is more than what is known of shapes."""
        return (
            not are_same(relied_on.captures, self.captures(name))
            or relied_on.promise != self._promise(name, orders_effects=relied_on.orders_effects)
            or (relied_on.num_variables is not None and relied_on.num_variables < self._num_read(name))
        )

    def _promise(self, name: str, *, orders_effects: bool) -> Hashable:
        """What a call of `name` in a body relies on that a trace may change."""
        definition, body = self._registry.definitions.get(name), self._bodies.get(name)
        has_effects = orders_effects and body is not None and body.has_effects
        promise = None if definition is None else definition.promise
        return promise, has_effects

    def want_shapes(self) -> None:
        """Let all functions be traced such that the shapes of their results are known: calls in loops need them."""
        guesses = {name: body.guess for name, body in self._bodies.items() if body.traced is not None}
        if self.result_shapes.want_all(guesses):
            self.has_stale = True

    def reachable(self, name: str) -> list[str]:
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

    def variables_read(self, name: str) -> tapes.Variables:
        """The trainable variables that a call of `name` may read, as far as bodies are traced."""
        bodies = [body for known in self.reachable(name) if (body := self._bodies.get(known)) is not None]
        read = [(body.variables_read, body.read_before if body.traced is None else []) for body in bodies]
        return [variable for found, before in read for variable in (*found, *before)]

    def reads(self, name: str) -> inferring.Reads | None:
        """What a call of `name` reads besides its arguments; None as long as that is not all known."""
        if self.final(name) is None or not self.is_closed(name):
            return None
        return inferring.Reads(self.captures(name), self.variables_read(name), are_all=True)

    def kinds_assigned(self, name: str) -> assignments.Kinds:
        """The kinds of variables that a call of `name` may assign to, as far as bodies are traced."""
        bodies = [body for known in self.reachable(name) if (body := self._bodies.get(known)) is not None]
        return frozenset().union(*(body.assigned for body in bodies))

    def _num_read(self, name: str) -> int:
        return len({id(reference()) for reference in self.variables_read(name)})

    def is_closed(self, name: str) -> bool:
        """Whether all that `name` reaches is defined, so that its captures are final."""
        return all(
            known in self._bodies or functions.has_function(self._graph, self._registry.graph_name(known))
            for known in self.reachable(name)
        )

    def note_definition(self, name: str) -> None:
        """Learn of a definition; if it is made inside a body, it goes with the trace of that body."""
        if self._open:
            self._open[-1].made_here.append(name)

    def is_made_in_body(self, name: str) -> bool:
        """Whether the function of this name was made in the latest trace of a body."""
        return any(name in body.made_here for body in self._bodies.values())

    def may_wait(self, name: str) -> bool:
        """Whether a call of `name` can be made before its trace.

        Its declaration has to say what it returns. Where a body in progress defined functions, whatever it calls may
        reach them, and what they capture of it is lost once it is done.
        """
        return (
            bool(self._open)
            and name in self._registry.declarations
            and name not in self._bodies
            and not any(body.made_here for body in self._open)
        )

    def postpone(self, name: str) -> None:
        """Trace `name`, for which `may_wait` holds, once the trace in progress is done."""
        if (definition := self._registry.definitions.get(name)) is not None:
            self.note_scope(definition)
        self._pending.append(name)

    @contextlib.contextmanager
    def all_or_nothing(self) -> Iterator[None]:
        """Forget the traces made inside if one of them fails: they may call what was never finished."""
        if self._open:
            yield
            return
        before = dict(self._bodies)
        try:
            yield
        except BaseException:  # an interrupt by the user, too
            self._bodies = before
            self._pending.clear()
            raise

    def has_effects(self, in_graph: str) -> bool:
        """Whether the function that the graph calls `in_graph` has side effects, as far as it is known."""
        body = self._body_run_by(in_graph)
        return body is not None and body.has_effects

    def are_pending(self, body: Body) -> bool:
        """Whether a body calls functions that wait to be traced."""
        return any(name in self._pending for name in body.callees)

    def new_body(self, definition: Definition) -> Body:
        """A body for one more trace of a function, with the captures and variables that are known."""
        return Body(definition, self.captures(definition.user_name), self._log(definition))

    def note_scope(self, definition: Definition) -> None:
        """A call, if it is the first one, says in which variable scope the body is traced, now or later."""
        self._log(definition)

    def variables_of(self, definition: Definition) -> contextlib.AbstractContextManager[None]:
        """Inside, the body of `definition` is built for a while, with its variables."""
        return self._log(definition).replay()

    def _log(self, definition: Definition) -> VariableLog:
        original = original_of(definition)
        if original.lasting_name not in self._variables:
            is_kept = original.orders_effects and tf1.executing_eagerly_outside_functions()
            self._variables[original.lasting_name] = VariableLog(self._graph, original.lasting_name, is_kept=is_kept)
        return self._variables[original.lasting_name]

    def trace(self, definition: Definition) -> None:
        """Trace a function, again if it was before."""
        name = definition.user_name
        previous = self._bodies.get(name)
        is_for_shapes = previous is not None and not self._lacks_more_than_shapes(previous)
        for inner in previous.made_here if previous else ():
            self._registry.definitions.pop(inner, None)
            self._bodies.pop(inner, None)
        if previous is not None and previous.traced is not None:
            functions.remove_from_eager_context(previous.traced)
        body = self.new_body(definition)
        body.read_before = [] if previous is None else previous.variables_read
        body.has_effects = body.is_ordered = definition.has_effects
        self._bodies[name] = body
        self._open.append(body)
        try:
            traced = self._tracer.trace(body)
        finally:
            self._open.pop()
        body.traced = traced
        body.captures = tuple(traced.captured_inputs)
        if previous is not None and is_for_shapes and _may_be_alike(previous, body):
            body.like = previous.like or previous

    def settle(self) -> None:
        """Trace what is pending, and again whatever passes less than its callees capture.

        Raises:
          ValueError: if a body captures a new tensor each time it is traced.
          TypeError: if Python was to end a recursion by a size that is not known, so that it never ends.
        """
        self.trace_pending()
        # Each round carries a capture, or that there is a side effect, one call further; a shape becomes more general.
        for _ in range(_ROUNDS + 2 * len(self._bodies)):
            if not (stale := self._trace_stale()):
                self.has_stale = False
                ends.check(self.bodies(), self._body_run_by)
                return
            self.trace_pending()
        raise _new_capture([body for name in stale if (body := self._bodies.get(name)) is not None])

    def trace_pending(self) -> None:
        """Trace the functions whose calls were made before their trace, and those they call in turn."""
        while self._pending:
            name = self._pending.pop()
            if name not in self._bodies and (definition := self._registry.definitions.get(name)) is not None:
                self.trace(definition)

    def _trace_stale(self) -> list[str]:
        """Trace again each function of whose callees more is known now, captures above all; returns their names."""
        stale = []
        for name in reversed(list(self._bodies)):  # callees, which mostly come later, before their callers
            body = self._bodies.get(name)  # None if it was defined inside another body and went with it
            if body is not None and self._is_stale(body):
                stale.append(name)
                self.trace(body.definition)
        return stale

    def _is_stale(self, body: Body) -> bool:
        """Whether a body was traced when less was known."""
        return self._lacks_more_than_shapes(body) or any(
            self.result_shapes.is_stale(callee, relied_on.shapes) for callee, relied_on in body.callees.items()
        )

    def _lacks_more_than_shapes(self, body: Body) -> bool:
        """Whether a body was traced when less was known of what it has to do."""
        if body.has_effects and body.definition.orders_effects and not body.is_ordered:
            return True
        return any(self._does_other_things(callee, relied_on) for callee, relied_on in body.callees.items())


def _new_capture(stale: Sequence[Body]) -> ValueError:
    """The error of bodies that capture something new in each trace. It names what holds a tensor of another trace."""
    text = ", ".join(f"'{names.shown(body.definition.user_name)}'" for body in stale)
    for body in stale:
        function = body.definition.python_function
        holder = None if function is None else function_parts.path_to(function, _is_of_body)
        if holder is not None:
            return ValueError(
                f"Function {text}: the body captures a new tensor each time it is traced, because it assigns to "
                f"'{holder}', and reads it. The body runs in Python once for all calls, so no call finds there what "
                "another one has assigned; pass it as an argument, and return what it becomes, or let it be a "
                "tf.Variable that is made outside of the body, and call its assign"
            )
    return ValueError(
        f"Function {text}: the body captures a new tensor of the surrounding graph each time it is traced; create that "
        "tensor, or variable, outside of the body, or keep the variable, and make it only where there is none yet"
    )


def _is_of_body(value: Any) -> bool:
    """Whether a value is a tensor of a trace of a body, which no other trace can use."""
    return isinstance(value, tf.Tensor) and not graphs.is_eager_tensor(value) and body_around(value.graph) is not None


def _may_be_alike(before: Body, after: Body) -> bool:
    """Whether nothing that a trace found out, but for shapes, differs from what the one before it found."""
    makes_functions = before.made_here or after.made_here
    return (
        not makes_functions
        and before.captures is not None
        and after.captures is not None
        and are_same(before.captures, after.captures)
        and (before.has_effects, before.is_ordered) == (after.has_effects, after.is_ordered)
    )


def are_same(a: Tensors, b: Tensors) -> bool:
    """Whether two lists hold the same tensors."""
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))
