"""Tells which graph stands in which, and of what kind a graph is."""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework import device, dtypes, errors, op_def_registry, ops
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.ops import control_flow_util
from tensorflow.python.ops import control_flow_v2_func_graphs as control_flow_v2

from tensorflow_recursion import names
from tensorflow_recursion._tf import recorders
from tensorflow_recursion._tf.attributes import Attribute

_CONTROL_FLOW_GRAPHS = (
    control_flow_v2.CondBranchFuncGraph,
    control_flow_v2.WhileCondFuncGraph,
    control_flow_v2.WhileBodyFuncGraph,
)

_KERAS_SCRATCH_GRAPH = "scratch_graph"
_IS_CALLED_EAGERLY: Attribute[bool] = Attribute(names.IS_CALLED_EAGERLY)
_CHANGED: Attribute[bool] = Attribute(names.HAS_CHANGED)
_CONSTANTS: Attribute[dict[Hashable, tf.Tensor]] = Attribute(names.CONSTANTS)
_SWITCHES: Attribute[tuple[int, bool]] = Attribute(names.HAS_SWITCHES)  # in which version of the graph
_BACKWARD = "__backward_"  # what TensorFlow puts before the name of a tf.function for that of its gradient
# A device function for each replica of a distribution strategy.
_of_replicas: weakref.WeakKeyDictionary[tf.distribute.Strategy, dict[Hashable, device.MergeDevice]] = (
    weakref.WeakKeyDictionary()
)


def is_registered_op(name: str) -> bool:
    """Whether TensorFlow knows an operator `name`; a function of that name would be refused on import."""
    return op_def_registry.get(name) is not None


def has_operation(graph: tf.Graph, name: str) -> bool:
    """Whether `graph` has an operation `name`."""
    try:
        graph.get_operation_by_name(name)
    except KeyError:
        return False
    return True


def enclosing_graphs(graph: tf.Graph) -> list[tf.Graph]:
    """`graph`, the graph around it, and so on; the last one builds no function that is called in a graph."""
    graphs = [graph]
    while graph.building_function and getattr(graph, "outer_graph", None) is not None:
        if _is_called_eagerly(graph) or _is_thrown_away(graph):
            break
        graph = graph.outer_graph
        graphs.append(graph)
    return graphs


def forget(variables: Sequence[tf.Variable]) -> None:
    """Let the functions that are being built not refer to `variables`, which stand for arguments of a body.

    Each time a function is called beside a tape, it looks up the variables that were read while it was built, in it or
    in a graph inside of it. It leaves out those that stand for its own arguments. Those that stand for arguments of a
    body inside of it are gone by then, as they live as long as the body is built.
    """
    graph: tf.Graph | None = tf.compat.v1.get_default_graph()
    while graph is not None:
        for variable in variables if is_func_graph(graph) else ():
            graph._watched_variables.discard(variable)
        graph = getattr(graph, "outer_graph", None)


def note_change(graph: tf.Graph) -> None:
    """Say that a node of `graph` was changed, and with it what the graphs around it say of their branches and loops."""
    for changed in enclosing_graphs(graph):
        _CHANGED.set(changed, True)


def take_change(graph: tf.Graph) -> bool:
    """Whether a node of `graph` was changed since this was asked last."""
    was_changed = bool(_CHANGED.of(graph))
    _CHANGED.set(graph, False)
    return was_changed


def _is_called_eagerly(graph: tf.Graph) -> bool:
    """Whether `graph` is the body of a function that is made in eager mode, outside of all graphs.

    TensorFlow gives it the process's default graph as the graph around it, in which nothing is. Whether eager mode is
    on is only known while the function is being made, which is when it is asked for first; so the answer is kept.
    """
    if not isinstance(graph, FuncGraph) or graph.outer_graph.building_function:
        return False
    return _IS_CALLED_EAGERLY.made(graph, lambda: bool(tf.compat.v1.executing_eagerly_outside_functions()))


def _is_thrown_away(graph: tf.Graph) -> bool:
    """Whether Keras made `graph` to learn the shapes that a layer returns, and throws it away.

    In it, variables stand for their initial values, so a body that is traced there must not be used in the graph
    around.
    """
    return isinstance(graph, FuncGraph) and str(graph.name).startswith(_KERAS_SCRATCH_GRAPH)


def is_around_shapes_of(graph: tf.Graph, inner: tf.Graph) -> bool:
    """Whether Keras learns shapes in `inner`, the last one of its `enclosing_graphs`, from tensors of `graph`.

    Keras does that when a layer that has not been built yet is called in a graph.
    """
    if not _is_thrown_away(inner):
        return False
    around = enclosing_graphs(inner.outer_graph)
    return any(graph is one for one in around) or is_around_shapes_of(graph, around[-1])


def is_eager_tensor(tensor: tf.Tensor) -> bool:
    """Whether `tensor` holds a value and belongs to no graph."""
    return isinstance(tensor, tf.__internal__.EagerTensor)


def is_composite(value: Any) -> bool:
    """Whether `value` is made of tensors to TensorFlow, as an ExtensionType is.

    Some of its classes only say so, and `tf.IndexedSlices(values, [n])`, which holds a list, has no kind.
    """
    return isinstance(value, tf.__internal__.CompositeTensor) and getattr(value, "_type_spec", None) is not None


def captures(graph: tf.Graph, tensor: tf.Tensor) -> bool:
    """Whether a function graph has captured `tensor`, as one does that is traced for the spec of a variable."""
    return is_func_graph(graph) and any(outer is tensor for outer, _ in graph.captures)


def can_be_lifted(tensor: tf.Tensor) -> bool:
    """Whether a tensor of a function can be computed outside of it: from no argument, nor from what it captures."""
    seen: set[int] = set()
    pending = [tensor.op]
    while pending:
        op = pending.pop()
        if op.type == "Placeholder":
            return False
        if id(op) not in seen:
            seen.add(id(op))
            pending += [one.op for one in op.inputs]
    return True


def constant_of(tensor: tf.Tensor, graph: tf.Graph) -> tf.Tensor:
    """The constant in `graph` that has the value of an eager tensor of numbers or strings."""
    constants = _CONSTANTS.made(graph, dict)
    if tensor.ref() not in constants:
        with graph.as_default(), graph.control_dependencies(None):
            constants[tensor.ref()] = tf.constant(tensor.numpy(), tensor.dtype)
    return constants[tensor.ref()]


def inner_variable_creator_scope(creator: Callable[..., Any]) -> contextlib.AbstractContextManager[None]:
    """As `tf.variable_creator_scope`, but inside of distribution strategies, for the variable of each device."""
    scope: contextlib.AbstractContextManager[None] = tf.compat.v1.get_default_graph()._variable_creator_scope(
        creator,
        priority=75,  # strategies have 100, and are called first; that of a tf.function has 50
    )
    return scope


def follow_captures(body: tf.Graph) -> None:
    """From now on, let active tapes and accumulators know what each tensor stands for that the graph `body` captures.

    The graphs of `tf.function` do that, those of stock Defuns do not: of a conditional in a body that reads a variable,
    a tape would know that it depends on a placeholder, and on nothing else.

    An eager tensor that is made after this becomes a constant: the code of the body makes it, in a `tf.init_scope`. As
    an argument it would be another one in each trace of the body. (One that a cache keeps is an argument from the next
    trace on.) In a graph of TF1 it is what it was, and refused.

    A tensor of a branch or loop in the body is refused with an InaccessibleTensorError, as by a `tf.function`.
    """
    capture, start = body.capture, ops.uid()
    is_in_eager = tf.compat.v1.executing_eagerly_outside_functions()

    def followed(tensor: tf.Tensor, name: str | None = None) -> tf.Tensor:
        check_in_scope(tensor, body)
        is_value = tensor.dtype in dtypes.TF_VALUE_DTYPES
        is_of_body = is_in_eager and is_value and is_eager_tensor(tensor) and tensor._id > start
        captured: tf.Tensor = constant_of(tensor, body) if is_of_body else capture(tensor, name)
        recorders.record_same(captured, tensor)
        return captured

    body.capture = followed


def captured_value(tensor: tf.Tensor, graph: tf.Graph) -> tf.Tensor:
    """What a gradient in `graph` takes for `tensor`, which a function that is differentiated may have captured.

    That is the eager tensor itself if the function has captured one and the gradient is in another function. What
    TensorFlow takes out of a function for its gradient has a gradient in turn for nested and persistent tapes: for a
    variable a dense one, zeros, which is added to the one that is not dense.
    """
    if is_eager_tensor(tensor) or _function_around(tensor.graph) is _function_around(graph):
        return tensor
    source = _eager_source(tensor)
    return tensor if source is None else source


def are_beside_each_other(variables: Sequence[tf.Tensor]) -> bool:
    """Whether no two handles are known to be of variables on two devices, and none of one in another process."""
    sources = [source for handle in variables if (source := _eager_source(handle)) is not None]
    devices = {tf.DeviceSpec.from_string(source.device) for source in sources}
    if len(devices) > 1:
        return False
    here = tf.DeviceSpec.from_string(context.context().host_address_space()) if devices else None
    return all((device.job, device.task) == (here.job, here.task) for device in devices if here is not None)


def _eager_source(tensor: tf.Tensor) -> tf.Tensor | None:
    """The eager tensor that a function has captured as `tensor`, if that is one; itself if it is eager."""
    source: tf.Tensor | None = tensor
    while source is not None and not is_eager_tensor(source):
        captures = source.graph.captures if is_func_graph(source.graph) else []
        source = next((outer for outer, inner in captures if inner is source), None)
    return source


def _function_around(graph: tf.Graph) -> tf.Graph:
    """The innermost graph that is no branch or loop."""
    return next(known for known in enclosing_graphs(graph) if not is_control_flow(known))


def check_in_scope(tensor: tf.Tensor, graph: tf.Graph) -> None:
    """Raises InaccessibleTensorError if a tensor is of a branch or loop in `graph`, which cannot use it."""
    if not is_eager_tensor(tensor) and any(around is graph for around in enclosing_graphs(tensor.graph)[1:]):
        raise errors.InaccessibleTensorError(f"{tensor!r} is out of scope and cannot be used here")


def takes_eager_tensors(graph: tf.Graph) -> bool:
    """Whether operations of `graph` may read tensors that hold a value: functions capture them, of any kind."""
    chain = enclosing_graphs(graph)
    return any(known.building_function and not isinstance(known, _CONTROL_FLOW_GRAPHS) for known in chain)


def is_control_flow(graph: tf.Graph) -> bool:
    """Whether `graph` is a branch, a loop's condition or body, or the gradient of one."""
    return isinstance(graph, _CONTROL_FLOW_GRAPHS)


def is_func_graph(graph: tf.Graph) -> bool:
    """Whether `graph` is the body of a tf.function, a dataset function or a control flow v2 branch."""
    return isinstance(graph, FuncGraph)


def is_loop(graph: tf.Graph) -> bool:
    """Whether `graph` is the body of a loop, or operations are added to a v1 loop in it."""
    if isinstance(graph, control_flow_v2.WhileBodyFuncGraph):
        return True
    return control_flow_util.GetContainingWhileContext(graph._get_control_flow_context()) is not None


def replica() -> Hashable:
    """Which replica of a distribution strategy is being built; None outside of them."""
    if not tf.distribute.has_strategy() or tf.distribute.in_cross_replica_context():
        return None
    replica_id = tf.distribute.get_replica_context()._replica_id_in_sync_group
    return int(tf.get_static_value(replica_id)) if tf.is_tensor(replica_id) else replica_id


class Strategies(NamedTuple):
    """The distribution strategies and replicas in which a graph is built, and the device of eager operations."""

    stack: Sequence[Any]
    device: str | None


def strategies() -> Strategies:
    """The strategies and replicas in which this thread builds the default graph."""
    return Strategies(
        tuple(tf.compat.v1.get_default_graph()._distribution_strategy_stack), context.context().device_name
    )


@contextlib.contextmanager
def inside_of_strategies(found: Strategies | None) -> Iterator[None]:
    """Inside, the default graph is built in the strategies `found` elsewhere by `strategies`; None changes nothing."""
    if found is None:
        yield
        return
    graph = tf.compat.v1.get_default_graph()
    before, graph._distribution_strategy_stack = graph._distribution_strategy_stack, list(found.stack)
    try:
        with _traces_of_replica(graph, found.device):
            yield
    finally:
        graph._distribution_strategy_stack = before


@contextlib.contextmanager
def _traces_of_replica(graph: tf.Graph, eager_device: str | None) -> Iterator[None]:
    """Inside, a `tf.function` that is called in `graph` is traced for the replica that is being built.

    It reads the variables of that one. TensorFlow tells replicas by the devices that they are on: by that of eager
    operations, or else by those that the graph around the call asks for. A body asks for none, so that it runs where it
    is called. In a graph it asks for one without a name, which is another object for each replica.
    """
    scope: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if (number := replica()) is not None:
        if tf.compat.v1.executing_eagerly_outside_functions():
            scope = context.device(eager_device)
        else:
            of_replicas = _of_replicas.setdefault(tf.distribute.get_strategy(), {})
            scope = graph.device(of_replicas.setdefault(number, device.MergeDevice("")))
    with scope:
        yield


def has_switches(graph: tf.Graph) -> bool:
    """Whether a function graph has conditionals that were taken apart to Switch and Merge: its values may be dead."""
    if not isinstance(graph, FuncGraph):
        return False
    version, answer = _SWITCHES.of(graph) or (-1, False)
    if version != graph.version:
        answer = any(op.type == "Switch" for op in graph.get_operations())
        _SWITCHES.set(graph, (graph.version, answer))
    return bool(answer)


def innermost_device(graph: tf.Graph) -> Any:
    """The device scope that is current in `graph`, as stock Defun remembers it, or None."""
    functions = graph._device_functions_outer_to_inner
    return functions[-1] if functions else None


def here(tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """What stands for tensors, of graphs around the default graph or of none, in the default graph."""
    graph = tf.compat.v1.get_default_graph()
    return [graph.capture(tensor) for tensor in tensors] if is_func_graph(graph) else list(tensors)


def differentiated_graph(graph: tf.Graph) -> tf.Graph | None:
    """The branch or loop body whose gradient `graph` is, or None."""
    return getattr(graph, "_forward_graph", None)


def is_gradient_of(graph: tf.Graph, other: tf.Graph) -> bool:
    """Whether `graph` is the gradient of `other`, a branch, a loop body or the graph of a `tf.function`.

    It captures tensors of `other`, which has been built before.
    """
    if differentiated_graph(graph) is other:
        return True
    return is_func_graph(graph) and is_func_graph(other) and graph.name.startswith(f"{_BACKWARD}{other.name}_")


def capture_in(graph: tf.Graph, tensor: tf.Tensor) -> tf.Tensor:
    """What stands for `tensor`, of the graph around `graph`, in `graph`.

    The gradient of a branch must not capture one tensor twice, as itself and as what stands for it in the branch.
    """
    forward, source = differentiated_graph(graph), tensor
    if forward is not None:
        tensor = next((inner for outer, inner in forward.captures if outer is tensor), tensor)
    with graph.as_default():
        captured: tf.Tensor = graph.capture(tensor)
    recorders.record_same(captured, source)
    return captured
