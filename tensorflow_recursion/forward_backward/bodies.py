"""A body followed by its gradient, in one function graph."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion import explanations, names, ops
from tensorflow_recursion._tf import copies, function_calls, functions, graphs, handles, inlining, nodes
from tensorflow_recursion._tf import tracing as tf_tracing
from tensorflow_recursion.forward_backward import effects, tf_functions
from tensorflow_recursion.forward_backward.knowledge import Knowledge
from tensorflow_recursion.forward_backward.modes import Modes
from tensorflow_recursion.forward_backward.pairs import Pair
from tensorflow_recursion.forward_backward.tracer import Tracer, has_built_gradient
from tensorflow_recursion.traces import handed_on
from tensorflow_recursion.traces import shapes as static_shapes
from tensorflow_recursion.traces.definitions import Definition, came_along, original_of
from tensorflow_recursion.traces.traced_bodies import Body
from tensorflow_recursion.weight_gradients.obstacles import Obstacle, described
from tensorflow_recursion.weight_gradients.usages import Use, Weight
from tensorflow_recursion.weight_gradients.uses_in_body import UsesInBody

tf1 = tf.compat.v1

# Operators that read variables.
_READS = ("ReadVariableOp", "ResourceGather", "ResourceGatherNd")
# A tf.custom_gradient in a function that came with a graph, and what a message about it adds if it has no gradient.
_CUSTOM_GRADIENT = "(op type: IdentityN)"
_UNSAVED = (
    " It stands for a tf.custom_gradient whose gradient did not come along. If tf.saved_model.save wrote it, a warning "
    "said why, or experimental_custom_gradients was False, or it is none of the first three derivatives (for "
    "tf.recompute_grad, not the first one)"
)


class BodyWithGradient:
    """A body and its gradient, traced when this object is made.

    Attributes:
      graph: the function graph.
      args: the declared arguments.
      captures: what stands in the body for the captured tensors.
      results: what the body returns.
      dys: placeholders of the gradients for the differentiable results.
      dxs: gradients for the arguments and captures that have one.
      result_handles: what is known of the lists among the results.
      found_trainable: positions of variants among the arguments and captures that turned out to have a gradient.
      forward: the operations of the body, without those of its gradient.
      weights: those that the body uses, not only hands on.
      obstacles: uses of weights that make no terms.
      assignment: an operator of the gradient that assigns to a variable, as a message calls it, if there is one.
    """

    graph: tf.Graph
    args: list[tf.Tensor]
    captures: list[tf.Tensor]
    results: list[tf.Tensor]
    dys: list[tf.Tensor]
    dxs: list[tf.Tensor]
    result_handles: list[handles.HandleData | None]
    found_trainable: list[int]
    forward: set[tf.Operation]
    weights: list[Weight]
    obstacles: list[Obstacle]
    assignment: str | None

    def __init__(
        self, pair: Pair, body: Body, known: Knowledge, tracer: Tracer, modes: Modes, *, is_again: bool
    ) -> None:
        """Trace the function of `pair` as `body`.

        If `is_again`, the gradient was computed before, and is once more to be differentiated: without side effects.

        Raises:
          LookupError: if something in the body has no gradient.
          ValueError: if the gradient captures what the body does not.
        """
        self._pair = pair
        self._definition = pair.definition
        self._known = known
        self._tracer = tracer
        self._modes = modes
        self._is_again = is_again
        options = self._definition.trace_options()

        def build(*args: tf.Tensor) -> list[tf.Tensor]:
            handles.set_handle_data(args, pair.handles)
            with body.building(tracer.graph.seed):
                self._build(args, body)
            return []

        self.graph = tf_tracing.trace_graph(
            tracer.graph,
            build,
            self._definition.inputs,
            pair.arg_shapes,
            pair.forward,
            branch_suffix=names.trace_suffix(pair.forward),
            device=options["device"],
            options=options["options"],
        )
        _check_captures(self.graph, self._definition, len(body.known), tracer)

    def _build(self, args: Sequence[tf.Tensor], body: Body) -> None:
        """Build the body and its gradient in the default graph."""
        graph = tf1.get_default_graph()
        self.args = list(args)
        self.captures = [graph.capture(tensor) for tensor in body.known]
        with self._modes.body():
            results = self._results()
        function_calls.pass_handles_around(graph)
        self.results = [tf.identity(result) for result in results]
        self.result_handles = [handed_on.known_of(result) for result in self.results]
        forward = set(graph.get_operations())
        self._collect_gradients_of_weights()
        # Calls pass on what the body captures. What its gradient reads beyond that is kept in the gradient.
        copies.keep_values(graph)
        with self._modes.gradient(), self._effects():
            self._differentiate()
        self.forward = forward | nodes.ancestors([result.op for result in self.results])
        of_gradient = [op for op in graph.get_operations() if op not in self.forward]
        self.assignment = None if self._is_again else effects.assignment_among(self._definition, of_gradient)

    def _effects(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self._is_again else effects.of_gradient(self._definition)

    def _results(self) -> list[tf.Tensor]:
        """What the body returns, which is built here."""
        name = self._definition.user_name
        traced = self._tracer.final_trace(name) if self._definition.is_built_once else None
        if traced is None or not inlining.has_all_derivatives(traced, names.INVOKE, ops.is_gradient):
            return self._definition.build(self.args, self._tracer.registry.declarations.get(name))
        return inlining.inline(traced, [*self.args, *self.captures], self._tracer.graph, has_its_shapes=True)

    def _collect_gradients_of_weights(self) -> None:
        """Let the gradients of weights be collected where that can be done."""
        inputs = [*self.args, *self.captures]
        all_weights = self._known.weights
        arguments = [inputs[i] for i in self._pair.trainable if i < len(self.args)]
        in_body = UsesInBody(arguments, self.captures, self.results, self._target_of)
        name = names.shown(original_of(self._definition).user_name)
        _check_single_handles(name, inputs)
        found = {}
        self.weights, self.obstacles = [], []
        for i in self._pair.trainable:
            found[i] = in_body.usage(inputs[i])
        known = {inputs[i].ref(): self._known.weight_of(self._definition, i) for i in self._pair.trainable}
        for i, usage in found.items():
            in_body.settle(usage, known)
            weight, (_, shape) = known[inputs[i].ref()], handles.gradient_type(inputs[i])
            all_weights.note_uses(weight, usage.uses, is_captured=i >= len(self.args))
            if any(use.part is not None for use in usage.uses):
                self.weights.append(weight)
            for use in usage.obstacles():
                self.obstacles.append(_obstacle(use, weight, shape, name, in_body, known))
        for target in in_body.handed_otherwise(tf1.get_default_graph(), known):
            all_weights.note_change(target)
        for i in self._pair.trainable:
            if self._is_collected(i):
                found[i].collect(all_weights.number_of)

    def _differentiate(self) -> None:
        pair = self._pair
        found = tuple(result.shape for result in self.results)
        self._known.ask(lambda: static_shapes.shown(pair.joined_shapes(found)))
        self.dys, ys = [], []
        for i, (result, shape) in enumerate(zip(self.results, pair.joined_shapes(found), strict=True)):
            if not self._is_trainable_result(i):
                continue
            self.dys.append(self._given_for(result, shape, self.result_handles[i], name=f"grad_{i}"))
            ys.append(result)
        inputs = [*self.args, *self.captures]
        if came_along(self._definition):
            _check_handles(self._definition, [x for x in inputs if handles.is_of_no_variable(x)])
        sources = [inputs[i] for i in self._pair.trainable]
        is_collected = [self._is_collected(i) for i in self._pair.trainable]
        self.dxs = gradients_of(self._definition, ys, self.dys, sources, is_collected)
        unknown = [i for i, x in enumerate(inputs) if i not in self._pair.trainable and handles.is_of_unknown_kind(x)]
        self.found_trainable = [i for i in unknown if ys and _has_gradient(ys, inputs[i], self.dys)]

    def _is_trainable_result(self, position: int) -> bool:
        pair, dtype = self._pair, self.results[position].dtype
        known = handles.has_data(dtype) and handles.holds_trainable(self.result_handles[position])
        return known or self._known.ask(lambda: pair.is_trainable_result(position, dtype))

    @staticmethod
    def _given_for(result: tf.Tensor, shape: tf.TensorShape, known: handles.HandleData | None, name: str) -> tf.Tensor:
        """What stands for the gradient for a result: a tensor like it, or, for a handle, like the variable."""
        if result.dtype == tf.resource:
            dtype = handles.dtype_of_gradient(result.dtype, known)
            return tf1.placeholder(dtype, None, name=name)  # other calls may return other variables
        dy = tf1.placeholder(result.dtype, shape, name=name)
        handles.set_handle_data([dy], [known])
        return dy

    def _is_collected(self, position: int) -> bool:
        return self._known.is_collected(self._definition, position)

    def _target_of(self, op: tf.Operation, position: int) -> Weight | None:
        """What the input `position` of a call is in the callee, if that one is differentiated along with this body.

        The callee of a gradient call that carries arguments is not: another function is differentiated in its place.
        """
        if op.type == names.INVOKE and ops.carries_arguments(op):
            return None
        callee = self._tracer.registry.by_graph_name(ops.callee_of(op))
        if op.type in function_calls.OPERATORS and tf_functions.note_weights(op) and callee is None:
            callee = self._tracer.tf_function(op)
        if callee is None or not has_built_gradient(callee) or position >= ops.num_arguments(op):
            return None
        return self._known.weight_of(callee, position)


def _check_captures(graph: tf.Graph, definition: Definition, count: int, tracer: Tracer) -> None:
    """Raises ValueError if the trace captured more than the `count` tensors that the body is known to capture."""
    if len(graph.extra_inputs) > count:
        tracer.note_missing(definition.user_name, tuple(graph.extra_inputs[count:]))
        new = ", ".join(map(_described, graph.extra_inputs[count:]))
        name = names.shown(original_of(definition).user_name)
        if definition.base is not None:
            raise ValueError(
                f"Function '{name}': a derivative of its gradient uses {new}, which the gradient does not, as "
                "where a tf.custom_gradient is in the gradient of another one; pass it to the inner "
                "tf.custom_gradient as an argument, or let that compute it anew"
            )
        raise ValueError(
            f"Function '{name}': its gradient uses {new}, which its body does not; use it in the body, or pass it "
            "as an argument"
        )


def _check_single_handles(function: str, inputs: Sequence[tf.Tensor]) -> None:
    """Raises LookupError if one of the `inputs` holds the handles of several variables: its gradient has no type."""
    for i, tensor in enumerate(inputs):
        if tensor.dtype == tf.resource and tensor.shape.rank and handles.is_trainable(tensor):
            raise LookupError(
                f"Function '{function}' cannot be differentiated: argument {i} holds the handles of several variables; "
                "pass each handle as an argument of its own, or the variables' values"
            )


def _check_handles(definition: Definition, unknown: Sequence[tf.Tensor]) -> None:
    """Raises LookupError if a body reads variables by handles of which nothing is known: their gradients would be 0."""
    if not unknown:
        return
    for op in nodes.operations_within(tf1.get_default_graph()):
        if op.type in _READS and handles.is_trainable_type(op.get_attr("dtype")):
            handle = op.inputs[0]
            while (outer := nodes.captured_by(handle)) is not None:
                handle = outer
            if any(handle is one for one in unknown):
                raise LookupError(
                    f"Function '{names.shown(original_of(definition).user_name)}' cannot be differentiated: it came "
                    f"with a graph, and its body reads a variable (node {op.name!r}, {op.type}) by a handle that came "
                    "without the variable's dtype and shape; build the graph by its Python code again and restore the "
                    "variables, or let the function take the variable's value as an argument"
                )


def gradients_of(
    definition: Definition,
    ys: Sequence[tf.Tensor],
    dys: Sequence[tf.Tensor],
    xs: Sequence[tf.Tensor],
    is_collected: Sequence[bool],
) -> list[tf.Tensor]:
    """Gradients of `ys` for `xs`: dense tensors, or contributions where `is_collected` says so; zeros without a path.

    Raises:
      LookupError: if something on the path has no gradient; names the function.
    """
    try:
        # The backward functions of custom gradients in the body run in here, and may be wrong as the body may.
        with (
            explanations.explained(names.shown(original_of(definition).user_name)),
            graphs.inside_of_strategies(original_of(definition).strategies),
        ):
            dxs = tf1.gradients(list(ys), list(xs), list(dys)) if ys else [None] * len(xs)
    except LookupError as error:
        name = names.shown(original_of(definition).user_name)
        if f"'{name}'" in str(error):
            raise
        unsaved = _UNSAVED if came_along(definition) and _CUSTOM_GRADIENT in str(error) else ""
        raise LookupError(f"Function '{name}' cannot be differentiated: {error}{unsaved}") from error
    except AssertionError as error:
        if str(error) or not functions.holds(tf1.get_default_graph(), "TensorArrayV3"):
            raise
        raise LookupError(
            f"Function '{names.shown(original_of(definition).user_name)}' cannot be differentiated: its body has a "
            "TensorArrayV3, whose operators have no gradient under control flow v2, by which it is differentiated; use "
            "tf.TensorArray in place of tf.raw_ops.TensorArrayV3"
        ) from error
    return [_as_tensor(dx, x, collected) for dx, x, collected in zip(dxs, xs, is_collected, strict=True)]


def _obstacle(
    use: Use,
    weight: Weight,
    shape: tf.TensorShape,
    function: str,
    in_body: UsesInBody,
    weights: Mapping[Hashable, Weight],
) -> Obstacle:
    """What is kept of a use that makes no terms; `weights` says what arguments are."""
    if use.movable is None:
        return Obstacle(weight, shape, function, None)
    needed = in_body.fixed.arguments_of(use.movable) or ()
    return Obstacle(weight, shape, function, described(use.movable), frozenset(weights[one] for one in needed))


def _described(tensor: tf.Tensor) -> str:
    """What a message calls a tensor that a body captures."""
    is_symbolic = tf.is_symbolic_tensor(tensor)
    if tensor.dtype == tf.resource and (not is_symbolic or tensor.op.type == "Placeholder"):
        return "a variable (or another resource)"
    if is_symbolic:
        return repr(tensor.name)
    return f"an eager tensor of {tensor.dtype.name} and shape {tensor.shape}"


def _has_gradient(ys: Sequence[tf.Tensor], x: tf.Tensor, dys: Sequence[tf.Tensor]) -> bool:
    """Whether a variant of which nothing is known leads to `ys` by operators that have gradients."""
    try:
        dx = tf1.gradients(list(ys), [x], list(dys))[0]
    except LookupError:  # a dataset, for example, that is read
        return False
    return dx is not None and not nodes.is_zeros(dx)


def _as_tensor(dx: Any, x: tf.Tensor, is_collected: bool) -> tf.Tensor:
    if dx is None:
        return ops.contribute_none() if is_collected else handles.zeros_for(x)
    return tf.identity(tf.convert_to_tensor(dx))
