"""Makes the calls of backward functions, which compute gradients.

Such a call is made in one of three places, which differ in who asks for the gradient and in what becomes of it:

- OUTSIDE: no gradient of a body is being built. Somebody asks for dy/dx of y = f(x): in the main graph, in a
  `tf.function`, or in a body that is traced for calls to run.
- IN_BODY: a body that itself asks for dy/dx is being traced once more, because that body is differentiated.
- IN_GRADIENT: the gradient of a body that calls f is being built, so that `g__backward1` calls `f__backward1`.

|                                                            | OUTSIDE | IN_BODY | IN_GRADIENT              |
| ---------------------------------------------------------- | ------- | ------- | ------------------------ |
| reads what may come from a branch that was not taken       | yes     | no      | no                       |
| carries along what its own gradient takes                  | yes     | yes     | no: callers' calls do so |
| sums up the terms of gradients for weights                 | yes     | yes     | unless its callers do so |
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from tensorflow_recursion import ops
from tensorflow_recursion._tf import graphs, handles, nodes, patches
from tensorflow_recursion.forward_backward.groups import Group, Groups
from tensorflow_recursion.forward_backward.modes import Modes
from tensorflow_recursion.forward_backward.pairs import Pair
from tensorflow_recursion.gradients.dead_inputs import dead_together
from tensorflow_recursion.traces.traced_bodies import body_around
from tensorflow_recursion.weight_gradients import contributions
from tensorflow_recursion.weight_gradients.contributions import Kind, Part

tf1 = tf.compat.v1

Gradients: TypeAlias = list[tf.Tensor | tf.IndexedSlices | None]


class Place(enum.Enum):
    """Where a gradient call is made; this module's docstring has a table."""

    OUTSIDE = enum.auto()
    IN_BODY = enum.auto()
    IN_GRADIENT = enum.auto()


class GradientCalls:
    """Makes gradient calls in one outermost graph, and gets them what they read."""

    def __init__(self, groups: Groups, modes: Modes) -> None:
        self._groups = groups
        self._modes = modes

    @property
    def place(self) -> Place:
        """Where a call that is made now is."""
        if self._groups.innermost is None:
            return Place.OUTSIDE
        return Place.IN_GRADIENT if self._modes.in_gradient else Place.IN_BODY

    def make(
        self,
        pair: Pair,
        group: Group,
        record: tf.Tensor,
        dys: Sequence[tf.Tensor],
        inputs: Sequence[tf.Tensor],
        snapshot: Sequence[tf.Tensor],
    ) -> dict[int, Any]:
        """Gradients for the `inputs` of a call, by position, from its record and the gradients for its results.

        The gradient call carries along what its own gradient takes: the arguments, and the snapshot if there is one.
        """
        count = len(pair.definition.inputs)
        if self.place is Place.OUTSIDE:
            pair.check_asked()
            record, *others = dead_together([record, *inputs, *snapshot], dys)
            inputs, snapshot = others[: len(inputs)], others[len(inputs) :]
        parts = {i: group.known.parts_of(pair.definition, i) for i in pair.trainable}
        types, shapes = _types_of_gradients(inputs, {i: bool(found) for i, found in parts.items()})
        carries_along = self.place is not Place.IN_GRADIENT
        backward = ops.invoke(
            pair.backward,
            [record, *dys, *inputs[count:]],
            types,
            shapes,
            name=f"{pair.definition.user_name}_grad",
            record_of=pair.forward,
            ignored=inputs[:count] if carries_along else (),
            snapshot=snapshot if carries_along else (),
        )
        found = dict(zip(pair.trainable, backward.outputs, strict=False))
        lists = [i for i in found if inputs[i].dtype == tf.variant]
        handles.set_handle_data([found[i] for i in lists], [handles.handle_data(inputs[i]) for i in lists])
        self._sum_up(found, parts, inputs)
        return found

    def _sum_up(
        self, found: dict[int, Any], parts: Mapping[int, Mapping[Part, int]], inputs: Sequence[tf.Tensor]
    ) -> None:
        """Put sums in the place of the terms that were `found`, unless the callers of what is being built sum up."""
        is_in_gradient = self.place is Place.IN_GRADIENT
        for i, of_weight in parts.items():
            if of_weight and not (is_in_gradient and patches.has_zeros(inputs[i])):
                is_dense = body_around(tf1.get_default_graph()) is not None  # one type in all traces of a body
                handles.set_handle_data([found[i]], [handles.OF_RECORD])  # only the sum asks for its gradient
                with _beside(found[i].op):
                    found[i] = contributions.total(of_weight, found[i], inputs[i], is_dense=is_dense)

    def with_captured_tables(self, pair: Pair, group: Group, inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The inputs of a call, for its gradient. Outside of bodies, a table comes from where a function captured it.

        Such a table holds weights of which rows are gathered, or it is something else that is not a variable but has a
        handle, such as a lookup table. A function must not return it for its gradient, because nested tapes make zeros
        like everything that a function returns.
        """
        if self.place is not Place.OUTSIDE:
            return list(inputs)
        parts = {i: group.known.parts_of(pair.definition, i) for i in pair.trainable}
        tables = {i for i, found in parts.items() if Part(Kind.ROWS) in found}
        tables.update(i for i, tensor in enumerate(inputs) if handles.is_of_no_variable(tensor))
        chain = graphs.enclosing_graphs(tf1.get_default_graph())
        return [
            self.bring_in(graphs.captured_value(tensor, chain[0]), chain) if i in tables else tensor
            for i, tensor in enumerate(inputs)
        ]

    def bring_in(self, capture: tf.Tensor, chain: Sequence[tf.Graph]) -> tf.Tensor:
        """A captured tensor for a call that a gradient makes: the gradients of branches only capture step by step.

        Args:
          capture: a tensor of the outermost graph, or an eager one.
          chain: the graphs around the call, from inside out.
        """
        if self._modes.in_gradient:
            for graph in reversed(chain[:-1]):
                capture = graphs.capture_in(graph, capture)
        return capture


def gradients_for_results(results: Sequence[tf.Tensor], pair: Pair, grads: Sequence[Any]) -> list[tf.Tensor]:
    """A tensor for each differentiable result of a call; zeros where nothing depends on it."""
    dys = []
    for i, (result, grad) in enumerate(zip(results, grads, strict=False)):
        if handles.has_data(result.dtype) and _may_count(grad):
            pair.asked[i] = result.dtype
        if pair.is_trainable_result(i, result.dtype):
            handles.set_handle_data([result], pair.result_handles[i : i + 1] or [None])
            dys.append(handles.zeros_for(result) if grad is None else tf.convert_to_tensor(grad, name=f"grad_{i}"))
            if result.dtype == tf.variant:
                handles.set_handle_data(dys[-1:], [pair.result_handles[i]])
    return dys


def _may_count(grad: Any) -> bool:
    """Whether this may be a gradient for a handle or a list. Zeros do not count, and integers are no gradients."""
    if grad is None or not (grad.dtype == tf.variant or handles.is_trainable_type(grad.dtype)):
        return False
    return not (isinstance(grad, tf.Tensor) and nodes.is_zeros(grad))


def _types_of_gradients(
    inputs: Sequence[tf.Tensor], are_collected: Mapping[int, bool]
) -> tuple[list[tf.DType], list[tf.TensorShape]]:
    """Dtypes and static shapes of what the backward function returns for inputs: gradients, or terms of these."""
    types, shapes = [], []
    for i, is_collected in are_collected.items():
        dtype, shape = handles.gradient_type(inputs[i])
        types.append(tf.variant if is_collected else dtype)
        shapes.append(tf.TensorShape(None) if is_collected else shape)
    return types, shapes


@contextlib.contextmanager
def _beside(op: tf.Operation) -> Iterator[None]:
    """Make nodes on the device of `op`, in a tf.function outside of bodies, because terms cannot go to other processes.

    In a session's graph this is not needed: there the call that makes the terms has been expanded before placement.
    """
    graph = tf1.get_default_graph()
    is_call = graphs.enclosing_graphs(graph)[-1].building_function and body_around(graph) is None
    with graph.colocate_with(op) if is_call else contextlib.nullcontext():
        yield
