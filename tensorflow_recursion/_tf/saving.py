"""The gradients of users' own that go into a SavedModel."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.saved_model import save

from tensorflow_recursion import names
from tensorflow_recursion._tf import function_calls, functions, graphs, handles, nodes
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion._tf.replacements import replace_for_good

# What TensorFlow says where the gradient of a `tf.recompute_grad` is to be differentiated.
_RECOMPUTED = "recompute_grad tried to transpose grad"
# What TensorFlow calls a `tf.custom_gradient`. It numbers them, so they have other names in other processes.
_NUMBERED = "CustomGradient-"
# At the end of the name under which a gradient is saved that takes the inputs of its operator, too.
GIVEN_INPUTS = "_given_inputs"
# Gradients in gradients, and in these: third derivatives. Two that call each other would have more without end.
_DEEPEST_IN_GRADIENTS = 2


def install(
    call: str, user_name_of: Callable[[Any, bool], str | None], warn_of_unsaved: Callable[[str, str], None]
) -> None:
    """Let TensorFlow save gradients of users' own in functions that are called by the operator `call`, if it can.

    Args:
      call: the operator.
      user_name_of: is given a function of the library, and whether bodies lead to it. It returns what the user calls
        the function. None: TensorFlow saves gradients of it as it does without this package.
      warn_of_unsaved: is called with a function, and why the gradient of an operator in it is not saved.
    """
    own_gradients, trace = save._iterate_op_types, save._trace_gradient_functions

    def iterate_op_types(function: Any) -> Iterator[tuple[Any, Any]]:
        name = tf.compat.as_str(function.name)
        user_name = user_name_of(function, name in _in_progress.reached)
        is_needed_by_both = name in _in_progress.reached_otherwise and not functions.is_traced(function)
        if user_name is None or is_needed_by_both:
            yield from own_gradients(function)
        if user_name is not None:
            yield from gradients_in(function, user_name, 0)

    def gradients_in(function: Any, user_name: str, depth: int) -> Iterator[tuple[Any, Any]]:
        is_traced = functions.is_traced(function)
        for op in _with_gradients(function.definition) if is_traced else function.graph.get_operations():
            if (name := gradient_of(op.node_def)) is None:
                continue
            try:
                to_save = _to_save(name, op)
            except _Unsavable as reason:
                warn_of_unsaved(user_name, str(reason))
                continue
            if to_save is None:
                continue
            graph = _in_progress.graph
            known = set(functions.function_names(graph))
            yield to_save  # TensorFlow traces the gradient, and adds it to the graph with what it calls directly
            new = [functions.function_in(graph, name) for name in functions.function_names(graph) if name not in known]
            _add_reached(graph, new)
            for one in new if depth < _DEEPEST_IN_GRADIENTS else ():
                yield from gradients_in(one, user_name, depth + 1)

    def trace_gradients(graph: tf.Graph, saveable_view: Any) -> Any:
        with _in_progress.saving(graph, call, saveable_view.concrete_functions):
            return trace(graph, saveable_view)

    replace_for_good(save, "_iterate_op_types", iterate_op_types)
    replace_for_good(save, "_trace_gradient_functions", trace_gradients)


class _InProgress(threading.local):
    """What is being saved in this thread.

    Attributes:
      graph: that whose function library will be in the SavedModel.
      reached: the functions that bodies lead to. They are loaded under other names, so what is saved cannot refer to
        tensors of theirs, as TensorFlow does it for what gradients read.
      reached_otherwise: functions that are needed for others than bodies, some of those that are reached among them.
    """

    graph: Any = None
    reached: Collection[str] = ()
    reached_otherwise: Collection[str] = ()

    @contextlib.contextmanager
    def saving(self, graph: tf.Graph, call: str, of_module: Iterable[Any]) -> Iterator[None]:
        """Inside, `graph` is saved, in which `call` is our operator; a module has the functions `of_module`."""
        library, roots = graph.as_graph_def().library, [tf.compat.as_str(function.name) for function in of_module]
        self.graph, self.reached = graph, function_calls.reached_by(call, library)
        self.reached_otherwise = function_calls.reached_otherwise(call, library, self.reached, roots)
        try:
            yield
        finally:
            self.graph, self.reached, self.reached_otherwise = None, (), ()


_in_progress = _InProgress()


def _add_reached(graph: tf.Graph, reached: list[Any]) -> None:
    """Add to the library of `graph`, and to `reached`, all functions that those in `reached` lead to."""
    for function in reached:  # which grows
        is_traced = functions.is_traced(function)
        known = functions.sub_functions(function) if is_traced else function.graph._functions.values()
        missing = [one for one in known if not functions.has_function(graph, tf.compat.as_str(one.name))]
        functions.add_missing(graph, missing)
        reached += missing


def gradient_of(node: Any) -> str | None:
    """The name of the `tf.custom_gradient` that a node has; None if it has none.

    Gradients with other names, which a `gradient_override_map` knows, are found by these where a node is loaded.
    """
    name = str(node.attr[names.GRADIENT_TYPE].s.decode()) if names.GRADIENT_TYPE in node.attr else ""
    return name if name.startswith(_NUMBERED) else None


def set_gradient_of(node: Any, name: str) -> None:
    """Give a node another `tf.custom_gradient`."""
    node.attr[names.GRADIENT_TYPE].s = name.encode()


def _with_gradients(definition: Any) -> list[tf.Operation]:
    """Operators like those of a definition that have a `tf.custom_gradient`."""
    made = []
    with tf.Graph().as_default() as graph:
        for node in definition.node_def:
            if gradient_of(node) is not None:  # they are all IdentityN
                inputs = [tf.compat.v1.placeholder(dtype) for dtype in node.attr["T"].list.type]
                attrs = {name: node.attr[name] for name in ("T", names.GRADIENT_TYPE)}
                made.append(graph.create_op(node.op, inputs, attrs=attrs, name=node.name))
    return made


class _Unsavable(Exception):
    """Says what keeps a gradient out of a SavedModel."""


@dataclasses.dataclass(frozen=True)
class _Operator:
    """What TensorFlow asks of an operator whose gradient it saves."""

    name: str
    inputs: Sequence[tf.TensorSpec]


@dataclasses.dataclass(frozen=True)
class GradientOfInputs:
    """The gradient of an operator that reads more than the gradients for the operator's results.

    Attributes:
      compute: takes these gradients, then the operator's inputs, then handles of variables.
      num_variables: how many handles it takes. They are those of the variables whose values are the last inputs.
    """

    compute: Callable[..., Any]
    num_variables: int

    def of_operator(self) -> Callable[..., Any]:
        """The same as TensorFlow calls it: the arguments are the operator, and the gradients for its results."""

        def gradient(op: tf.Operation, *grads: Any) -> Any:
            values = op.inputs[len(op.inputs) - self.num_variables :]
            return self.compute(*grads, *op.inputs, *map(_handle_read_by, values))

        _MADE_OF.set(gradient, self)
        return gradient


# Of a gradient function that a `GradientOfInputs` made: that object.
_MADE_OF: Attribute[GradientOfInputs] = Attribute(names.GRADIENT_OF_INPUTS)


def _handle_read_by(value: tf.Tensor) -> tf.Tensor:
    """The handle of the variable whose value this is.

    Raises:
      LookupError: if it is not read from a variable, but a constant that has taken its place, for example.
    """
    if value.op.type != "ReadVariableOp":
        raise LookupError(
            f"the gradient of a tf.custom_gradient that came with a SavedModel needs the variable behind "
            f"{value.name!r}, but this value comes from an operator {value.op.type}, as where a function is frozen; "
            "differentiate the function that was frozen"
        )
    return value.op.inputs[0]


def _to_save(name: str, op: tf.Operation) -> tuple[bytes, Any] | None:
    """The name under which the gradient of `op`, registered by `name`, is saved, and an operator with its arguments.

    None if it has no gradient before it is saved, either, as the gradient of `tf.recompute_grad` has none.

    A gradient that reads what the body computes, or a variable, is saved as one that takes the operator's inputs, too:
    these are the results and the arguments of the function that `tf.custom_gradient` decorates, and the values of the
    variables that it reads.

    Raises:
      _Unsavable: if it reads anything else of the body.
    """
    try:
        gradient = ops.gradient_registry.lookup(name)
    except LookupError:
        return None
    of_inputs = _MADE_OF.of(gradient)  # it comes from a SavedModel
    if of_inputs is None:
        try:
            function = tf.function(gradient).get_concrete_function(None, *op.inputs)
        except Exception as error:  # whatever it raises of arguments that are not the body's own
            if _RECOMPUTED in str(error):
                return None
            raise _Unsavable(f"it cannot be traced by itself ({type(error).__name__}: {error})") from error
        if not function.captured_inputs:
            return name.encode(), op
        of_inputs = _taking_inputs(name, op, function, _variables_of(gradient))
    with_inputs = name + GIVEN_INPUTS
    try:
        ops.gradient_registry.lookup(with_inputs)
    except LookupError:
        compute = of_inputs.compute
        traced_later = tf.autograph.experimental.do_not_convert(lambda _, *args: compute(*args))
        ops.RegisterGradient(with_inputs)(traced_later)
    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in op.inputs]
    variables = [tf.TensorSpec([], tf.resource)] * of_inputs.num_variables
    return with_inputs.encode(), _Operator(op.name, [*specs, *specs, *variables])


def _variables_of(gradient: Callable[..., Any]) -> Sequence[tf.Variable]:
    """The trainable variables that a decorated function reads; `gradient` is what TensorFlow registered for it.

    Nothing but the closure of the gradient knows them.
    """
    try:
        of_tape = inspect.getclosurevars(gradient).nonlocals["tape_grad_fn"]
        return tuple(inspect.getclosurevars(of_tape).nonlocals["variables"])
    except (KeyError, TypeError):  # a gradient that came with a SavedModel, for example
        return ()


def _taking_inputs(name: str, op: tf.Operation, function: Any, variables: Sequence[tf.Variable]) -> GradientOfInputs:
    """A gradient that computes what it reads of the body from the inputs of its operator, which is `op` or like it.

    `variables` are those whose values are the last inputs.

    Raises:
      _Unsavable: if that is not enough.
    """
    given = _handles_for(function, variables)
    rest = [tensor for tensor in function.captured_inputs if not _is_among(tensor, given)]
    if any(tensor.dtype == tf.resource for tensor in rest):
        raise _Unsavable(
            "it reads a variable, or another resource, which is not among the trainable variables that TensorFlow "
            "knows the decorated function to read"
        )
    read = [tensor for tensor in rest if tf.is_symbolic_tensor(tensor)]
    made = read[0].graph.get_operations() if read else []
    alike = (one for one in made if one.type == op.type and gradient_of(one.node_def) == name)
    for operator in (op, *alike):
        sources = list(operator.inputs)
        needed = _operations_between(sources, read)
        if needed is not None:
            again = _ComputedAgain(function, sources, needed, given)
            return GradientOfInputs(again.gradients, len(given))
    raise _Unsavable(f"it reads what the body computes ({', '.join(tensor.name for tensor in read)})")


def _handles_for(function: Any, variables: Sequence[tf.Variable]) -> Sequence[tf.Tensor]:
    """Handles of the last of the variables: of as few as hold all that a gradient reads.

    Raises:
      _Unsavable: if one has no handle.
    """
    try:
        handles_of_all = [variable.handle for variable in variables]
    except ValueError as error:  # of distributed variables that are saved as one for each replica
        raise _Unsavable(f"it reads a distributed variable ({error})") from error
    read = [i for i, handle in enumerate(handles_of_all) if _is_among(handle, function.captured_inputs)]
    return handles_of_all[read[0] :] if read else []


def _is_among(tensor: tf.Tensor, tensors: Sequence[tf.Tensor]) -> bool:
    return any(tensor is one for one in tensors)


@dataclasses.dataclass(frozen=True)
class _ComputedAgain:
    """A gradient that computes anew what it reads of the body.

    Attributes:
      function: the gradient that TensorFlow traced, which captures what it reads.
      sources: the inputs of the operator.
      needed: what computes of them what is read.
      variables: handles of the variables that are read.
    """

    function: Any
    sources: Sequence[tf.Tensor]
    needed: Sequence[tf.Operation]
    variables: Sequence[tf.Tensor]

    def gradients(self, *args: tf.Tensor) -> Any:
        """Call the gradient; `args` are the gradients for the operator's results, its inputs, and handles."""
        count = len(self.sources)
        grads, inputs, variables = args[:count], args[count : 2 * count], args[2 * count :]
        handles.set_handle_data(variables, [handles.handle_data(handle) for handle in self.variables])
        known = _Known([*zip(self.sources, inputs, strict=True), *zip(self.variables, variables, strict=True)])
        graph = tf.compat.v1.get_default_graph()
        for op in self.needed:
            given = [known.instead_of(tensor) for tensor in op.inputs]
            made = graph.create_op(op.type, given, [tensor.dtype for tensor in op.outputs], attrs=op.node_def.attr)
            known.add(zip(op.outputs, made.outputs, strict=True))
        captured = [
            known.instead_of(tensor) if tensor in known else graphs.constant_of(tensor, graph)
            for tensor in self.function.captured_inputs
        ]
        return self.function._call_flat(list(grads), captured)


class _Known:
    """What takes the place of tensors: of those that it was told, and of others that have their values for certain."""

    def __init__(self, pairs: Iterable[tuple[tf.Tensor, Any]]) -> None:
        """`pairs` are tensors, and what takes their places."""
        self._exact: dict[Hashable, Any] = {}
        self._of_reads: dict[Hashable, Any] = {}
        self.add(pairs)

    def add(self, pairs: Iterable[tuple[tf.Tensor, Any]]) -> None:
        """Tell it of more tensors, as at first."""
        for tensor, instead in pairs:
            one: tf.Tensor | None = tensor
            while one is not None:  # the tensor, and what it stands for outside of the branches that it is in
                self._exact[one.ref()] = instead
                if (read := _read_by(one)) is not None:
                    self._of_reads[read] = instead
                is_placeholder = tf.is_symbolic_tensor(one) and one.op.type == "Placeholder"
                one = nodes.captured_by(one) if is_placeholder else None

    def __contains__(self, tensor: tf.Tensor) -> bool:
        return tensor.ref() in self._exact or _read_by(tensor) in self._of_reads

    def instead_of(self, tensor: tf.Tensor) -> Any:
        """What takes the place of a tensor that it contains."""
        return self._exact[tensor.ref()] if tensor.ref() in self._exact else self._of_reads[_read_by(tensor)]


def _read_by(tensor: tf.Tensor) -> Hashable | None:
    """Equal for values of one variable with no assignment in between, which a later read would wait for."""
    if not tf.is_symbolic_tensor(tensor) or tensor.op.type != "ReadVariableOp":
        return None
    return tensor.op.inputs[0].ref(), frozenset(op.name for op in tensor.op.control_inputs)


def _operations_between(sources: Sequence[tf.Tensor], results: Sequence[tf.Tensor]) -> list[tf.Operation] | None:
    """The operations that compute `results` of `sources` alone, each behind those that it needs.

    None if they need anything else, or would compute something else the second time.
    """
    known = _Known((source, True) for source in sources)
    found: dict[tf.Operation, None] = {}
    pending = list(results)
    while pending:
        tensor = pending[-1]
        unknown = [] if tensor in known else [one for one in tensor.op.inputs if one not in known]
        if not unknown:
            pending.pop()
            if tensor not in known:
                if not _can_repeat(tensor.op):
                    return None
                found[tensor.op] = None
                known.add((output, True) for output in tensor.op.outputs)
        pending += unknown
    return list(found)


def _can_repeat(op: tf.Operation) -> bool:
    """Whether a copy of an operation computes the same: it has no state, no argument, and calls no function."""
    definition, attributes = op.op_def, op.node_def.attr
    calls = any(attribute.type in ("func", "list(func)") for attribute in definition.attr)
    return not (definition.is_stateful or calls or op.type == "Placeholder" or names.GRADIENT_TYPE in attributes)
