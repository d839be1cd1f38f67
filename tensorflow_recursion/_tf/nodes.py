"""Changes operations after they were made, and looks into the branches of conditionals."""
# SPDX-License-Identifier: Apache-2.0

import collections
import contextlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import backprop_util
from tensorflow.python.framework import ops
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.ops import cond_v2, while_v2

from tensorflow_recursion import names
from tensorflow_recursion._tf.attributes import Attribute

CONDITIONALS = ("If", "StatelessIf")
CASES = ("Case", "StatelessCase")
BRANCHING = (*CONDITIONALS, *CASES)
LOOPS = ("While", "StatelessWhile")
HAVE_BRANCHES = (*BRANCHING, *LOOPS)
# Of such an operation: its inputs and the graphs of its branches, whose captures are these.
_BOUND_BRANCHES: Attribute[tuple[Any, tuple[tf.Graph, ...]]] = Attribute(names.BOUND_BRANCHES)


def set_attribute(op: tf.Operation, name: str, value: tf.compat.v1.AttrValue) -> None:
    """Set an attribute; one that the operator does not have must begin with an underscore."""
    op._set_attr(name, value)


def set_gradient_function(op: tf.Operation, gradient: Callable[..., Any]) -> None:
    """Let `tf.gradients` call `gradient` for this operation, in place of what is registered for its operator."""
    op._gradient_function = gradient


def set_gradient_name(op: tf.Operation, name: str) -> None:
    """Let `tf.gradients` call the gradient that is registered as `name` for this operation, and for copies of it."""
    op._set_attr(names.GRADIENT_TYPE, tf.compat.v1.AttrValue(s=name.encode()))


def registered_gradients(op: tf.Operation, *grads: Any) -> Sequence[Any]:
    """What the gradient function that is registered for the operator makes, whatever was set for this operation."""
    found: Sequence[Any] = ops._gradient_registry.lookup(op.type)(op, *grads)
    return found


def has_no_gradient(op: tf.Operation) -> bool:
    """Whether TensorFlow takes what `op` returns for constant: it has no dtype of gradients, or is `tf.stop_gradient`.

    It is False for what TensorFlow refuses to differentiate.
    """
    if not op.outputs:
        return False
    if not any(backprop_util.IsTrainable(output) for output in op.outputs):
        return True
    try:
        return ops.get_gradient_function(op) is None
    except LookupError:
        return False


def replace_input(op: tf.Operation, position: int, tensor: tf.Tensor) -> None:
    """Make `tensor` the input at `position` of `op`."""
    op._update_input(position, tensor)


def replace_control_input(op: tf.Operation, control_input: tf.Operation) -> None:
    """Make `control_input` the only control input of `op`."""
    op._remove_all_control_inputs()
    op._add_control_input(control_input)


def keep_control_inputs(op: tf.Operation, keep: Callable[[tf.Operation], bool]) -> None:
    """Drop the control inputs of `op` that are not to be kept."""
    sources = op.control_inputs
    kept = [source for source in sources if keep(source)]
    if len(kept) < len(sources):
        op._remove_all_control_inputs()
        op._add_control_inputs(kept)


def copy_of(constant: tf.Tensor) -> tf.Tensor:
    """One more Const node, in the default graph."""
    return tf.constant(tf.make_ndarray(constant.op.get_attr("value")), constant.dtype, name="constant")


def ancestors(operations: Iterable[tf.Operation]) -> set[tf.Operation]:
    """The operations and all they depend on, within their graph."""
    found = set(operations)
    pending = list(found)
    while pending:
        op = pending.pop()
        for source in [*(tensor.op for tensor in op.inputs), *op.control_inputs]:
            if source not in found:
                found.add(source)
                pending.append(source)
    return found


def in_every_run(graph: Any, told: Callable[[tf.Operation], str | None]) -> set[str]:
    """What `told` says of the operations of a function that every run needs, whichever branches conditionals take."""
    found = set()
    for op in ancestors([*(output.op for output in graph.outputs), *getattr(graph, "control_outputs", ())]):
        if op._get_control_flow_context() is not None:  # it is in a branch or loop of control flow v1
            continue
        if (one := told(op)) is not None:
            found.add(one)
        elif op.type in BRANCHING:
            found |= set.intersection(*(in_every_run(branch, told) for branch in branches(op)))
    return found


def sources_of(tensor: tf.Tensor) -> Iterator[tf.Operation]:
    """The operations that `tensor` depends on by data, nearest first: those of branches and of graphs around, too."""
    seen = {tensor.ref()}
    pending = collections.deque([tensor])
    while pending:
        tensor = pending.popleft()
        yield tensor.op
        outer = captured_by(tensor)
        around = [outer] if tf.is_symbolic_tensor(outer) else []  # an eager tensor has no operation
        for source in [*tensor.op.inputs, *branch_outputs(tensor), *around]:
            if source.ref() not in seen:
                seen.add(source.ref())
                pending.append(source)


def branch_outputs(result: tf.Tensor) -> list[tf.Tensor]:
    """Where `result` is an output of a conditional: the outputs of its branches that it may be.

    Of control flow v1 that is a Merge; one of a loop merges what the loop begins with and what an iteration makes.
    """
    if result.op.type == "Merge" and result.value_index == 0:
        return [] if _is_of_loop(result.op) else list(result.op.inputs)
    if result.op.type not in BRANCHING:
        return []
    return [branch.outputs[result.value_index] for branch in branches(result.op)]


def _is_of_loop(merge: tf.Operation) -> bool:
    return any(source.op.type in ("Enter", "RefEnter", "NextIteration") for source in merge.inputs)


def branches(op: tf.Operation) -> tuple[tf.Graph, ...]:
    """The function graphs of an If or a Case that is being built.

    TensorFlow binds all inputs of these graphs anew whenever it is asked, which it need not: walks over the outputs of
    a conditional ask once for each of them.
    """
    bound = _BOUND_BRANCHES.of(op)
    if bound is None or bound[0] is not op.inputs:  # an operation whose inputs change gets a new sequence of them
        bound = (op.inputs, tuple(cond_v2.get_func_graphs(op)))
        _BOUND_BRANCHES.set(op, bound)
    return bound[1]


def loop_body(op: tf.Operation) -> Any:
    """The function graph of the body of a While that is being built."""
    return while_v2._get_graph(op, "body", "_body_graph")


def operations_within(graph: tf.Graph) -> Iterator[tf.Operation]:
    """The operations of a graph, and those in the branches and loop bodies in it."""
    return with_inner(graph.get_operations())


def with_inner(operations: Iterable[tf.Operation]) -> Iterator[tf.Operation]:
    """Some operations, and those in the branches and loop bodies in them."""
    pending = [operations]
    while pending:
        for op in pending.pop():
            yield op
            if op.type in LOOPS:
                pending.append(loop_body(op).get_operations())
            elif op.type in HAVE_BRANCHES:
                pending += [branch.get_operations() for branch in branches(op)]


def is_loop_body(graph: tf.Graph) -> bool:
    """Whether `graph` is one that `loop_body` has returned."""
    return hasattr(graph, "_while")


def is_zeros(tensor: tf.Tensor) -> bool:
    """Whether TensorFlow made `tensor` as the gradient for what has none, here or in other branches."""
    pending = [tensor]
    while pending:
        tensor = pending.pop()
        if tensor.op.type in ("Identity", *BRANCHING):
            pending += branch_outputs(tensor) or [tensor.op.inputs[0]]
        elif (outer := captured_by(tensor)) is not None:
            pending.append(outer)
        elif tensor.op.type != "ZerosLike":
            return False
    return True


def is_always_of(tensor: tf.Tensor, op_types: Container[str]) -> bool:
    """Whether `tensor` comes from an operator of these types, whichever branches conditionals take.

    The zeros that TensorFlow makes for a branch without a gradient do not count. An element of a list is False, because
    the list may be zeros that are made when the graph runs. An argument of a body is True: where the body is called,
    this is asked of what the call passes.
    """
    pending = [tensor]
    while pending:
        tensor = pending.pop()
        if tensor.op.type in op_types:
            continue
        if tensor.op.type in ("Identity", "Switch", "Merge", *BRANCHING):
            data = list(tensor.op.inputs) if tensor.op.type == "Merge" else [tensor.op.inputs[0]]
            pending += [source for source in branch_outputs(tensor) or data if not is_zeros(source)]
        elif (outer := captured_by(tensor)) is not None:
            pending.append(outer)
        elif tensor.op.type != "Placeholder" or isinstance(tensor.graph, FuncGraph):  # a loop's variable is one, too
            return False
    return True


def is_argument(tensor: tf.Tensor) -> bool:
    """Whether `tensor` is an argument of the function that is being built, and no captured one."""
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return tensor.op.type == "Placeholder" and captured_by(tensor) is None


def captured_by(tensor: tf.Tensor) -> tf.Tensor | None:
    """The tensor of the graph around that `tensor` stands for; None if it stands for itself."""
    return next((outer for outer, inner in getattr(tensor.graph, "captures", ()) if inner is tensor), None)


@contextlib.contextmanager
def place_of(op: tf.Operation) -> Iterator[None]:
    """Create operations where `op` is: its graph, control inputs, control flow context and device."""
    graph = op.graph
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope(None), graph.device(None):
        graph._set_control_flow_context(op._get_control_flow_context())
        with graph.control_dependencies(op.control_inputs), graph.device(op.device or None):
            yield
