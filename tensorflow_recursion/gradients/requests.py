"""Answers `tf.gradients` when it meets calls of functions."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from tensorflow_recursion import names, ops
from tensorflow_recursion._tf import function_calls, graphs, handles, nodes, patches, tapes
from tensorflow_recursion._tf.typed import registered_gradient
from tensorflow_recursion.definitions import Definition, MadeDefinition
from tensorflow_recursion.gradients import contributions, repeats, snapshots, sums, user_functions
from tensorflow_recursion.gradients.contributions import Kind, Part
from tensorflow_recursion.gradients.groups import Group, Groups, Purpose
from tensorflow_recursion.gradients.higher_orders import GradientDefinition, name_of_gradient
from tensorflow_recursion.gradients.modes import Modes
from tensorflow_recursion.gradients.pair_functions import ForwardFunction
from tensorflow_recursion.gradients.pairs import Handles, Pair
from tensorflow_recursion.gradients.tracer import Tracer
from tensorflow_recursion.shapes import Shapes
from tensorflow_recursion.tracing import body_around

tf1 = tf.compat.v1

_UNDEFINED_REMEDY = (
    "define it, or, if the graph was imported, take the gradient before the graph is exported (it comes along), or "
    "build the graph by its Python code again and restore the variables"
)

# The name of a gradient, not of an operator.
_OF_SHAPE = f"{names.OP_PREFIX}OfShape"

Gradients: TypeAlias = list[tf.Tensor | tf.IndexedSlices | None]


class Differentiation:
    """The gradients of one outermost graph's functions.

    Attributes:
      modes: what is being built in that graph.
    """

    def __init__(self, tracer: Tracer) -> None:
        self.modes = Modes()
        self._tracer = tracer
        self._groups = Groups(tracer, self.modes)
        # Gradients as functions, by what they are of and what they depend on (`_gradient_definition`).
        self._gradient_definitions: dict[Hashable, GradientDefinition] = {}
        # What forward and backward functions were made of, by their names.
        self._by_forward: dict[str, tuple[Definition, Group]] = {}
        self._by_backward: dict[str, tuple[Pair, Group]] = {}
        # The graphs whose calls keep records, and the group in progress at that time.
        self._records_for: weakref.WeakKeyDictionary[tf.Graph, Group | None] = weakref.WeakKeyDictionary()
        # Gradients are built one after the other. In eager mode, threads may ask for those of one tf.function at once.
        self._lock = threading.RLock()

    def forward_name(self, name: str, graph_name: str, arguments: Sequence[tf.Tensor]) -> str:
        """What a call of the function `name` with these arguments runs should it be differentiated."""
        return self._groups.of(name, arguments).forward_name(graph_name)

    def result_shapes(self, name: str, otherwise: Shapes | None) -> Shapes | None:
        """What the group in progress knows of the results of a call of `name`; `otherwise` if it knows nothing."""
        group = self._groups.innermost
        return otherwise if group is None else group.result_shapes(name, otherwise)

    def result_handles(self, name: str, otherwise: Handles) -> Handles:
        """What it knows of the lists that a call of `name` returns; `otherwise` if it knows nothing."""
        group = self._groups.innermost
        return otherwise if group is None else group.result_handles(name, otherwise)

    def bring_in(self, capture: tf.Tensor, chain: Sequence[tf.Graph]) -> tf.Tensor:
        """A captured tensor for a call that a gradient makes: the gradients of branches only capture step by step.

        Args:
          capture: a tensor of the outermost graph, or an eager one, which the gradient of a branch cannot capture.
          chain: the graphs around the call, from inside out.
        """
        is_first = graphs.is_eager_tensor(capture) and graphs.is_gradient_of_branch(chain)
        if self.modes.in_gradient or is_first:
            for graph in reversed(chain if is_first else chain[:-1]):
                capture = graphs.capture_in(graph, capture)
        return capture

    def has_other_records(self, trace: tf.Graph) -> bool:
        """Whether calls in a graph keep records that are not those of the group whose functions are being traced."""
        return trace in self._records_for and self._records_for[trace] is not self._groups.innermost

    def of_call(self, op: tf.Operation, grads: Sequence[Any]) -> Gradients:
        """Gradients for the inputs of the call `op`, one per input, from those for its results."""
        with self._lock:
            return self._of_call(op, grads)

    def _of_call(self, op: tf.Operation, grads: Sequence[Any]) -> Gradients:
        callee = ops.callee_of(op)
        if callee in self._by_backward and (ops.carries_arguments(op) or self._groups.pair_function(callee) is None):
            return self._of_backward(op, *self._by_backward[callee], grads)
        if self._groups.innermost is None and ops.is_gradient(op) and self._groups.pair_function(callee) is None:
            return self._of_imported_backward(op, grads)
        definition = (
            self._groups.pair_function(callee)
            or self._definition_by_forward(callee)
            or self._tracer.registry.by_graph_name(callee)
            or (self._tracer.find_imported(callee) if op.type == names.INVOKE else self._tracer.tf_function(op))
        )
        if definition is None:
            raise LookupError(
                f"Call {op.name!r} of '{names.shown(callee.removesuffix(names.MANGLED_SUFFIX))}' cannot be "
                f"differentiated: the function has no definition by Defun in this graph; {_UNDEFINED_REMEDY}"
            )
        if definition.create_grad_func is False:
            raise LookupError(
                f"Call {op.name!r} of '{names.shown(definition.user_name)}' cannot be differentiated: the function is "
                "defined with create_grad_func=False"
            )
        if definition.python_grad_func is not None or definition.grad_func is not None:
            return user_functions.of_call(op, definition, grads)
        return self._of_built(op, definition, grads)

    # -- Of a call of a function ---------------------------------------------------------------------------------------

    def _of_built(self, op: tf.Operation, definition: Definition, grads: Sequence[Any]) -> Gradients:
        """Gradients by a call of the backward function, with the record of the forward call."""
        inputs = list(op.inputs)[: ops.num_arguments(op)]
        pair, group = self._pair_for(definition, inputs, op.graph, ops.callee_of(op))
        if len(inputs) < len(definition.inputs) + len(self._tracer.captures(definition.user_name)):
            raise LookupError(  # then the body that the call is in is traced again
                f"Call {op.name!r} of '{names.shown(definition.user_name)}' cannot be differentiated: it was made "
                "before it was known what the function captures"
            )
        num_results = len(self._tracer.output_types(definition.user_name))
        inputs = self._with_captured_tables(pair, group, inputs)
        record = _record_of(op, pair.forward, num_results)
        if self._groups.innermost is not None:
            _check_record(op, pair.forward)
        for graph in graphs.enclosing_graphs(op.graph):
            self._records_for[graph] = self._groups.innermost
        if isinstance(definition, ForwardFunction) and any(_may_be_zeros(grads[i]) for i in definition.records):
            group.known.note_zero_records()
        dys = _gradients_for_results(list(op.outputs)[:num_results], pair, grads)
        found = self._by_backward_call(pair, group, record, dys, inputs, snapshots.of_call(op))
        return [found.get(i) for i in range(len(op.inputs))]

    def _with_captured_tables(self, pair: Pair, group: Group, inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The inputs of a call, for its gradient. Outside of bodies, a table comes from where a function captured it.

        Such a table holds weights of which rows are gathered, or it is something else that is not a variable but has a
        handle, such as a lookup table. A function must not return it for its gradient, because nested tapes make zeros
        like everything that a function returns.
        """
        if self._groups.innermost is not None:
            return list(inputs)
        parts = {i: group.known.parts_of(pair.definition, i) for i in pair.trainable}
        tables = {i for i, found in parts.items() if Part(Kind.ROWS) in found}
        tables.update(i for i, tensor in enumerate(inputs) if handles.is_of_no_variable(tensor))
        chain = graphs.enclosing_graphs(tf1.get_default_graph())
        return [
            self.bring_in(graphs.captured_value(tensor, chain[0]), chain) if i in tables else tensor
            for i, tensor in enumerate(inputs)
        ]

    def _by_backward_call(
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
        definition = pair.definition
        count = len(definition.inputs)
        if self._groups.innermost is None:
            pair.check_asked()
            record, *others = _dead_together([record, *inputs, *snapshot], dys)
            inputs, snapshot = others[: len(inputs)], others[len(inputs) :]
        parts = {i: group.known.parts_of(definition, i) for i in pair.trainable}
        types, shapes = _types_of_gradients(inputs, {i: bool(found) for i, found in parts.items()})
        backward = ops.invoke(
            pair.backward,
            [record, *dys, *inputs[count:]],
            types,
            shapes,
            name=f"{definition.user_name}_grad",
            record_of=pair.forward,
            ignored=() if self.modes.in_gradient else inputs[:count],
            snapshot=() if self.modes.in_gradient else snapshot,
        )
        found = dict(zip(pair.trainable, backward.outputs, strict=False))
        lists = [i for i in found if inputs[i].dtype == tf.variant]
        handles.set_handle_data([found[i] for i in lists], [handles.handle_data(inputs[i]) for i in lists])
        for i, of_weight in parts.items():
            if of_weight and not (self._in_body_of_gradient() and patches.has_zeros(inputs[i])):
                is_dense = body_around(tf1.get_default_graph()) is not None  # one type in all traces of a body
                handles.set_handle_data([found[i]], [handles.OF_RECORD])  # only the sum asks for its gradient
                with _beside(found[i].op):
                    found[i] = contributions.total(of_weight, found[i], inputs[i], is_dense=is_dense)
        return found

    def _pair_for(
        self, definition: Definition, inputs: Sequence[tf.Tensor], graph: tf.Graph, callee: str | None = None
    ) -> tuple[Pair, Group]:
        """The functions that a call and its gradient call, made unless a group is in progress.

        A call runs one forward function, whoever asks for a gradient. So where `callee` is one that was made for
        tangents, and its gradient is asked for once more by a tape, both gradients read the record of that one.
        """
        group = self._groups.innermost
        if group is not None:
            pair = group.require(definition, inputs)
        else:
            _, group = self._by_forward.get(callee or "", (None, None))
            if group is None or group.purpose is not Purpose.FORWARD:
                purpose = Purpose.FORWARD if tapes.have_tangents(inputs) else Purpose.REVERSE
                group = self._groups.of(definition.user_name, inputs[: len(definition.inputs)], purpose)
            pair = group.require(definition, inputs)
            self._groups.settle(group, graph)
        self._by_backward[pair.backward] = (pair, group)
        self._by_forward[pair.forward] = (definition, group)
        return pair, group

    def _definition_by_forward(self, name: str) -> Definition | None:
        definition, _ = self._by_forward.get(name, (None, None))
        return definition

    def _in_body_of_gradient(self) -> bool:
        """Whether what is being built is a backward function: its callers collect contributions."""
        return self._groups.innermost is not None and self.modes.in_gradient

    # -- Of a call of a backward function ------------------------------------------------------------------------------

    def _of_backward(self, op: tf.Operation, pair: Pair, group: Group, grads: Sequence[Any]) -> Gradients:
        """Gradients by a call of the gradient as a function of x and dy, which is differentiated."""
        base = pair.definition
        args, snapshot = ops.ignored_by(op)
        if not ops.carries_arguments(op) and base.inputs:
            raise LookupError(
                f"Gradient call {op.name!r} of '{names.shown(base.user_name)}' cannot be differentiated again: it was "
                "built inside a body's gradient"
            )
        _, *others = list(op.inputs)[: ops.num_arguments(op)]
        # Of a function that came with a graph, what is captured is among the inputs.
        num_captures = len(base.inputs) + len(self._tracer.captures(base.user_name)) - len(args)
        num_dys = len(others) - num_captures
        dys, captures = others[:num_dys], others[num_dys:]
        inputs = self._with_captured_tables(pair, group, [*args, *captures])
        grads = self._for_sums(pair, group, grads, inputs)
        definition = self._gradient_definition(pair, inputs)
        found = self._of_gradient(definition, [*inputs, *dys], grads, snapshot)
        of_args, of_captures, of_dys = found[: len(args)], found[len(args) : len(inputs)], found[len(inputs) :]
        return [None, *of_dys, *of_captures, *of_args, *[None] * len(snapshot)]

    def _of_imported_backward(self, op: tf.Operation, grads: Sequence[Any]) -> Gradients:
        """Gradients by a call of a backward function that came along with a graph, from a pair that is made here."""
        name = names.base_of_forward(ops.record_of(op))
        base = self._tracer.registry.definitions.get(name) or self._tracer.find_imported(name)
        if not isinstance(base, MadeDefinition):
            raise LookupError(
                f"Gradient call {op.name!r} of '{names.shown(name)}' cannot be differentiated again: the function has "
                "not come along with the graph; build the graph by its Python code again and restore the variables"
            )
        arguments, _ = ops.ignored_by(op)
        passed = list(op.inputs)[: ops.num_arguments(op)]
        captures = passed[len(passed) + len(arguments) - len(base.inputs) :]
        pair, group = self._pair_for(base, [*arguments, *captures], op.graph)
        results = len(op.get_attr(names.RESULT_TYPES))
        if len(pair.trainable) != results:
            raise LookupError(
                f"Gradient call {op.name!r} of '{names.shown(base.user_name)}' cannot be differentiated again: it "
                f"returns {results} gradients, the function that came along with it has {len(pair.trainable)}; build "
                "the graph by its Python code again and restore the variables"
            )
        return self._of_backward(op, pair, group, grads)

    def _of_gradient(
        self,
        definition: GradientDefinition,
        inputs: Sequence[tf.Tensor],
        grads: Sequence[Any],
        snapshot: Sequence[tf.Tensor],
    ) -> Gradients:
        """Gradients for the `inputs` of a gradient as a function, which is called anew, from those for its results."""
        gated = _dead_together([*inputs, *snapshot], [grad for grad in grads if not _is_none(grad)])
        inputs, snapshot = gated[: len(inputs)], gated[len(inputs) :]
        pair, group = self._pair_for(definition, inputs, tf1.get_default_graph())
        again = ops.invoke(
            self._tracer.registry.graph_name(definition.user_name),
            snapshots.with_variables_of(snapshot, inputs),
            definition.signature.output_types,
            pair.result_shapes,
            name=definition.user_name,
        )
        record = _record_of(again, pair.forward, len(again.outputs) - 1)
        results = list(again.outputs)[:-1]
        # Zeros for terms that were not computed yet are not those of the sum.
        given = [None if _is_none(grads[i]) and y.dtype != tf.variant else grads[i] for i, y in enumerate(results)]
        dys = _gradients_for_results(results, pair, given)
        found = self._by_backward_call(pair, group, record, dys, inputs, snapshot)
        return [found.get(i) for i in range(len(inputs))]

    def _for_sums(self, pair: Pair, group: Group, grads: Sequence[Any], inputs: Sequence[tf.Tensor]) -> Gradients:
        """The gradients for what a gradient call returns; where that is a sum that is not computed yet, for the sum.

        Terms that TensorFlow takes out of a function, to make zeros like them, come back as an argument for those
        zeros: nothing computes a sum outside of the function that has its terms. An argument of a loop may be more.

        Args:
          pair: the functions of which the call runs one.
          group: that of the pair.
          grads: the gradients for what the call returns.
          inputs: those of the function that the call is the gradient of; their gradients are what it returns.
        """
        found = list(grads)
        for position, (i, grad) in enumerate(zip(pair.trainable, grads, strict=False)):
            is_collected = group.known.is_collected(pair.definition, i)
            if not is_collected or grad is None or grad.dtype != tf.variant:
                continue
            is_from_outside = nodes.is_argument(grad) and not graphs.is_control_flow(grad.graph)
            found[position] = None if _is_none(grad) or is_from_outside else sums.for_sum(grad, inputs[i])
        return found

    def _gradient_definition(self, pair: Pair, inputs: Sequence[tf.Tensor]) -> GradientDefinition:
        """The gradient of a function as a function E(x.., captures.., dy..) -> dx.., for a call with these inputs.

        It is made at the first call of its kind, and the graph knows it from then on.
        """
        base = pair.definition
        known = tuple(handles.holds_trainable(known) for known in pair.result_handles)
        key = (base.user_name, pair.trainable, known, tuple(handles.variable_key(tensor) for tensor in inputs))
        definition = self._gradient_definitions.get(key)
        if definition is None:
            if not isinstance(base, GradientDefinition):  # else it was warned of before
                repeats.warn_of_changes(base.user_name, self._tracer)
            name, in_graph = name_of_gradient(base, self._tracer)
            definition = GradientDefinition(name, pair, inputs, self._tracer, self._groups)
            self._tracer.adopt_made(definition, in_graph)
            self._gradient_definitions[key] = definition
        return definition

    # -- Of records ----------------------------------------------------------------------------------------------------

    def of_recall(self, op: tf.Operation, grads: Sequence[Any]) -> tf.Tensor | None:
        """The gradient for a record that is read: a record of the gradients for what it holds."""
        group = self._groups.innermost
        found = {i for i, grad in enumerate(grads) if not _is_none(grad)}
        if group is None or not found:
            return None
        owner = ops.owner_of(op)
        positions = group.known.note_record_gradient(owner, found)
        values = [
            handles.zeros_for(op.outputs[i]) if grads[i] is None else tf.convert_to_tensor(grads[i]) for i in positions
        ]
        return ops.retain(values, group.owner_of_gradient(owner)).outputs[0]

    def of_retain(self, op: tf.Operation, grad: tf.Tensor) -> list[tf.Tensor | None]:
        """The gradients for what a record holds, from that for the record."""
        group = self._groups.innermost
        positions = () if group is None else group.known.record_positions(ops.owner_of(op))
        if group is None or not positions:
            return [None] * len(op.inputs)
        like = [op.inputs[i] for i in positions]
        may_be_scalars = group.known.has_zero_records()
        types = [handles.gradient_type(tensor) for tensor in like]
        specs = [tf.TensorSpec(None if may_be_scalars else shape, dtype) for dtype, shape in types]
        values = ops.recall(grad, specs, group.owner_of_gradient(ops.owner_of(op)))
        if may_be_scalars:
            values = [_of_shape(value, tensor) for value, tensor in zip(values, like, strict=True)]
        of_lists = [i for i, value in enumerate(values) if value.dtype == tf.variant]
        handles.set_handle_data([values[i] for i in of_lists], [handles.handle_data(like[i]) for i in of_lists])
        found = dict(zip(positions, values, strict=True))
        return [found.get(i) for i in range(len(op.inputs))]


def _record_of(op: tf.Operation, forward: str, num_results: int) -> tf.Tensor:
    """Let a call run the forward function; returns the record."""
    if op.graph.building_function:
        return ops.run_forward(op, forward, num_results)
    ops.set_forward(op, forward)
    return op.outputs[-1]


def _check_record(op: tf.Operation, forward: str) -> None:
    """Raises LookupError if a call in a body runs another forward function: its record would have no gradient."""
    if (callee := ops.callee_of(op)) != forward:
        raise LookupError(
            f"Call {op.name!r} of '{names.shown(callee)}' cannot be differentiated: it keeps what another gradient "
            "takes, in a tf.function around which a body has a tape; put the tape into that tf.function, or call "
            "what is in it without a tf.function"
        )


def _dead_together(inputs: Sequence[tf.Tensor], grads: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """The `inputs` of a gradient call, which become dead where one of the `grads` is dead.

    A gradient is dead if its call is in a branch that is not taken. In one graph the inputs are dead, too. But where a
    function computes the gradient of another function, it gets an empty tensor in place of a dead result. Whether a
    gradient lives is told by a Merge of it alone, which is dead if the gradient is, and which Grappler leaves as it is.
    Zeros like an empty tensor are live, however, so a gradient made of them may be. Therefore a number among the inputs
    is asked, too, whether it is there.
    """
    graph = tf1.get_default_graph()
    sources = {id(tensor.graph): tensor.graph for tensor in inputs if tf.is_symbolic_tensor(tensor)}
    if not grads or all(source is graph or not graphs.has_switches(source) for source in sources.values()):
        return list(inputs)
    are_live = [tf.equal(tf.raw_ops.Merge(inputs=[grad]).value_index, 0) for grad in grads]
    numbers = [tensor for tensor in inputs if tensor.graph is not graph and _is_number(tensor)]
    are_live += [_is_there(tensor) for tensor in numbers[:1]]
    is_live = functools.reduce(tf.logical_and, are_live)
    gated = [tf.raw_ops.Switch(data=tensor, pred=is_live).output_true for tensor in inputs]
    for tensor in gated:
        nodes.set_gradient_function(tensor.op, lambda _, __, grad: [grad, None])
    handles.set_handle_data(gated, [handles.handle_data(tensor) for tensor in inputs])
    return gated


def _is_number(tensor: tf.Tensor) -> bool:
    return bool(tensor.shape.rank == 0 and (tensor.dtype.is_floating or tensor.dtype.is_integer))


def _is_there(number: tf.Tensor) -> tf.Tensor:
    """Whether a tensor that should be a number is one, not empty.

    Grappler would replace the size of a number by 1. It does not know how many values Unique finds.
    """
    return tf.raw_ops.Size(input=tf.raw_ops.Unique(x=tf.reshape(number, [-1])).y) > 0


def _is_none(grad: tf.Tensor | None) -> bool:
    """Whether there is no gradient, or only zeros that TensorFlow has put in its place, for a conditional to return."""
    return grad is None or (grad.dtype == tf.variant and nodes.is_zeros(grad))


def _may_be_zeros(record: tf.Tensor | None) -> bool:
    """Whether the gradient for a record may be a record of zeros: there is none, or it is an element of a list.

    Of a loop, the gradients for the records of all iterations are in a list, of zeros if nothing depends on them.
    """
    return _is_none(record) or not nodes.is_always_of(record, (names.INVOKE, names.RETAIN))


def _of_shape(value: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """A tensor that has the shape of another one, or is a zero for it; of lists the length takes the shape's place.

    Where the shape is known only at run time, both may be scalars: those of a zero record, or of a branch that was not
    taken.
    """
    if value.dtype == tf.variant:
        return value if _is_record(like) else ops.list_or_zeros(value, like)
    _, shape = handles.gradient_type(like)
    if not shape.is_fully_defined():
        is_known = like.dtype == tf.resource
        shape = tf.shape(handles.zeros_for(like) if is_known else like)
        shape = shape if is_known else tf.broadcast_dynamic_shape(tf.shape(value), shape)
    result = tf.broadcast_to(value, shape)
    nodes.set_gradient_name(result.op, _OF_SHAPE)
    return result


def _is_record(variant: tf.Tensor) -> bool:
    """Whether a variant is a record, not a list. Of what a conditional returns, its branches may have to tell."""
    known = handles.handle_data(variant)
    # What a call returns beside its record is known.
    sources = (names.INVOKE, *function_calls.OPERATORS, names.RECALL, "FakeParam")
    return known == handles.OF_RECORD or (known is None and nodes.is_always_of(variant, sources))


@registered_gradient(_OF_SHAPE)
def _gradient_of_shape(_: tf.Operation, grad: Any) -> list[Any]:
    """Hand the gradient on. The value has the shape already, or is a zero, whose gradient is never read.

    Summing the gradient to the shape of a zero would make it a scalar, and those of higher orders, too.
    """
    return [grad, None]


def _gradients_for_results(results: Sequence[tf.Tensor], pair: Pair, grads: Sequence[Any]) -> list[tf.Tensor]:
    """A tensor for each differentiable result of a call; zeros where nothing depends on it."""
    dys = []
    for i, (result, grad) in enumerate(zip(results, grads, strict=False)):
        if result.dtype == tf.variant and grad is not None and not nodes.is_zeros(grad):
            pair.asked.add(i)
        if pair.is_trainable_result(i, result.dtype):
            dys.append(tf.zeros_like(result) if grad is None else tf.convert_to_tensor(grad, name=f"grad_{i}"))
            if result.dtype == tf.variant:
                handles.set_handle_data(dys[-1:], [pair.result_handles[i]])
    return dys


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
