"""The private corners of TensorFlow this package stands on, all in one place (TensorFlow 2.16 to 2.21)."""
# SPDX-License-Identifier: Apache-2.0

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, function_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.eager import backprop_util, context
from tensorflow.python.framework import c_api_util, cpp_shape_inference_pb2, op_def_registry
from tensorflow.python.framework import function as stock
from tensorflow.python.framework.func_graph import FuncGraph, func_graph_from_py_func
from tensorflow.python.ops import (
    cond_v2,
    control_flow_util,
    default_gradient,
    gen_resource_variable_ops,
    gradients_util,
    handle_data_util,
    variable_scope,
)
from tensorflow.python.ops import control_flow_v2_func_graphs as control_flow_v2

tf1 = tf.compat.v1

CONDITIONALS = ("If", "StatelessIf")
_LOOPS = ("While", "StatelessWhile")
_TO_ZERO = "_convert_dynamic_dimension_to_zero"
_ZEROS_ATTRIBUTE = "_recursion_zeros"
_UNMARKS_ATTRIBUTE = "_recursion_unmarks_dataset_functions"

_CONTROL_FLOW_GRAPHS = (
    control_flow_v2.CondBranchFuncGraph,
    control_flow_v2.WhileCondFuncGraph,
    control_flow_v2.WhileBodyFuncGraph,
)

# What a stock Defun calls its traced function: has a definition, captured inputs and sub-functions.
TracedFunction = stock._DefinedFunction

# Dtype and shape of the variable that a handle is one of.
HandleData = cpp_shape_inference_pb2.CppShapeInferenceResult.HandleData


def is_registered_op(name: str) -> bool:
    """Whether TensorFlow knows an operator `name`; a function of that name would be refused on import."""
    return op_def_registry.get(name) is not None


def type_list_key(dtypes: Sequence[tf.DType]) -> str:
    """A short text for a list of dtypes, the one stock Defun appends to the names of overloads."""
    return stock._type_list_to_str(dtypes)


def enclosing_graphs(graph: tf.Graph) -> list[tf.Graph]:
    """`graph`, the graph around it, and so on; the last one builds no function."""
    graphs = [graph]
    while graph.building_function and getattr(graph, "outer_graph", None) is not None:
        graph = graph.outer_graph
        graphs.append(graph)
    return graphs


def is_eager_tensor(tensor: tf.Tensor) -> bool:
    """Whether `tensor` holds a value and belongs to no graph."""
    return isinstance(tensor, tf.__internal__.EagerTensor)


def is_func_graph(graph: tf.Graph) -> bool:
    """Whether `graph` is the body of a tf.function, a dataset function or a control flow v2 branch."""
    return isinstance(graph, FuncGraph)


def is_dataset_or_tf_function(graph: tf.Graph) -> bool:
    """Whether `graph` is the body of a tf.function or a dataset function, not of a control flow branch."""
    return isinstance(graph, FuncGraph) and not isinstance(graph, _CONTROL_FLOW_GRAPHS)


def hide_from_dataset_optimizer(graph: tf.Graph) -> None:
    """Take the mark `_tf_data_function` off dataset functions that are added to `graph` from now on.

    Grappler spreads that mark over everything such a function calls, and the optimizer of dataset graphs goes into
    marked functions without looking where it has been: with a recursive one among them the stack overflows and the
    process dies. Unmarked functions run the same; Grappler optimizes them with the graph, not with the dataset.
    """
    if hasattr(graph, _UNMARKS_ATTRIBUTE):
        return
    setattr(graph, _UNMARKS_ATTRIBUTE, True)
    add_function = graph._add_function

    def add_unmarked(function: Any) -> None:
        definition = function.cached_definition
        if "_tf_data_function" in definition.attr:
            unmarked = type(definition).FromString(definition.SerializeToString())
            del unmarked.attr["_tf_data_function"]
            function = stock._from_definition(unmarked)
        add_function(function)

    graph._add_function = add_unmarked


def innermost_device(graph: tf.Graph) -> Any:
    """The device scope that is current in `graph`, as stock Defun remembers it, or None."""
    functions = graph._device_functions_outer_to_inner
    return functions[-1] if functions else None


def trace(
    graph: tf.Graph,
    func: Callable[..., Any],
    inputs: Sequence[tuple[str, tf.DType]],
    name: str,
    *,
    doc: str | None,
    out_names: Sequence[str] | None,
    device: Any,
    options: dict[str, Any],
) -> TracedFunction:
    """Trace `func` into a function graph whose outer graph is `graph`, clear of control dependencies and contexts."""
    func.__doc__ = doc
    arg_names, arg_types = [arg for arg, _ in inputs], [dtype for _, dtype in inputs]
    with graph.as_default(), graph.control_dependencies(None):
        traced = TracedFunction(func, arg_names, arg_types, name, out_names=out_names, **options)
        traced._caller_device = device
        traced._create_definition_if_needed()
    return traced


def trace_graph(
    graph: tf.Graph,
    func: Callable[..., Any],
    inputs: Sequence[tuple[str, tf.DType]],
    arg_shapes: Sequence[tf.TensorShape],
    name: str,
    *,
    device: Any,
    options: dict[str, Any],
) -> Any:
    """Trace as `trace` does, with static argument shapes and with control flow v2; returns the function graph."""
    keys = [*tf1.GraphKeys._VARIABLE_COLLECTIONS, variable_scope._VARSTORE_KEY]
    names = ("capture_by_value", "allowlisted_stateful_ops", "capture_resource_var_by_value")
    with graph.as_default(), graph.control_dependencies(None), control_flow_for_gradients():
        return stock.func_graph_from_py_func(
            func,
            [arg for arg, _ in inputs],
            [dtype for _, dtype in inputs],
            name,
            device=device,
            collections_ref={key: graph.get_collection_ref(key) for key in keys},
            arg_shapes=arg_shapes,
            **{key: options[key] for key in names if key in options},
        )


@contextlib.contextmanager
def control_flow_for_gradients() -> Iterator[None]:
    """Conditionals and loops are If and While: their gradients can be cut off what they are gradients of."""
    before, control_flow_util.ENABLE_CONTROL_FLOW_V2 = control_flow_util.ENABLE_CONTROL_FLOW_V2, True
    try:
        with _plain_branch_outputs(), _gradients_beside_operators():
            yield
    finally:
        control_flow_util.ENABLE_CONTROL_FLOW_V2 = before


@contextlib.contextmanager
def _gradients_beside_operators() -> Iterator[None]:
    """The gradient of an operator is made on its device, so that a backward body is split as the forward one is.

    Not by TensorFlow's colocation: its gradients of branches leave that out, and its groups name what is cut off.
    """
    before = gradients_util._maybe_colocate_with
    gradients_util._maybe_colocate_with = _on_device_of
    try:
        yield
    finally:
        gradients_util._maybe_colocate_with = before


def _on_device_of(op: tf.Operation, _gradient_uid: Any, _colocate: bool) -> contextlib.AbstractContextManager:
    return tf1.device(op.device or None)


@contextlib.contextmanager
def _plain_branch_outputs() -> Iterator[None]:
    """Gradients of If get intermediates as tensors, as for XLA, not in Optionals: a kernel less for each."""
    patches = {
        "control_flow_util": _AsForXla(),
        "default_gradient": _Zeros(),
        "_create_grad_func": _create_branch_gradient,
    }
    if hasattr(cond_v2, _TO_ZERO):
        patches[_TO_ZERO] = lambda shape: shape  # XLA takes no open dimension; everyone else would take 0 for true
    before = {name: getattr(cond_v2, name) for name in patches}
    for name, patch in patches.items():
        setattr(cond_v2, name, patch)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(cond_v2, name, value)


def _create_branch_gradient(func_graph: Any, grads: Sequence[Any], name: str) -> Any:
    """As cond_v2 does, but without an order of side effects: it would make every output wait for all of them."""
    return func_graph_from_py_func(
        name,
        lambda: cond_v2._grad_fn(func_graph, grads),
        [],
        {},
        func_graph=_BranchGradient(name, func_graph),
        add_control_dependencies=False,
    )


class _BranchGradient(cond_v2._CondGradFuncGraph):
    """The gradient of a branch, which takes handles from where the branch has them."""

    def _capture_helper(self, tensor: tf.Tensor, name: str | None) -> tf.Tensor:
        if tensor.dtype == tf.resource and tensor.graph is self._forward_graph:
            source = _source_of_handle(tensor)
            if any(source is known for known in self._forward_graph.inputs):
                tensor = source  # an output more of the If would be taken for a variable, and have no gradient
        return super()._capture_helper(tensor, name)


def _source_of_handle(handle: tf.Tensor) -> tf.Tensor:
    """Where a handle comes from that only went through loops, which leave handles as they are."""
    while handle.op.type in (*_LOOPS, "Identity"):
        handle = handle.op.inputs[handle.value_index]
    return handle


class _AsForXla:
    """`control_flow_util` as seen by cond_v2."""

    def __getattr__(self, name: str) -> Any:
        if name == "GraphOrParentsInXlaContext":
            return lambda graph: True
        return getattr(control_flow_util, name)


class _Zeros:
    """`default_gradient` as seen by cond_v2: what a branch returns for an input that it does not use."""

    def __getattr__(self, name: str) -> Any:
        if name == "zeros_like":
            return self._zeros_like
        return getattr(default_gradient, name)

    @staticmethod
    def _zeros_like(tensor: tf.Tensor) -> tf.Tensor:
        make = getattr(tensor, _ZEROS_ATTRIBUTE, None)
        if make is not None:
            return make()
        return zeros_for(tensor) if is_trainable(tensor) else default_gradient.zeros_like(tensor)


def set_zeros(tensor: tf.Tensor, make: Callable[[], tf.Tensor]) -> None:
    """Let `make` make the gradient for `tensor`, an input of a branch, where the branch does not use it."""
    setattr(tensor, _ZEROS_ATTRIBUTE, make)


def has_zeros(tensor: tf.Tensor) -> bool:
    """Whether `set_zeros` was called for a tensor."""
    return hasattr(tensor, _ZEROS_ATTRIBUTE)


def make_function(
    graph: Any,
    name: str,
    operations: Sequence[tf.Operation],
    inputs: Sequence[tf.Tensor],
    outputs: Sequence[tf.Tensor],
    out_names: Sequence[str],
) -> TracedFunction:
    """The function that some operations of a function graph make up."""
    with graph._c_graph.get() as c_graph:
        c_function = pywrap_tf_session.TF_GraphToFunction_wrapper(
            c_graph,
            name,
            False,
            [op._c_op for op in operations],
            [tensor._as_tf_output() for tensor in inputs],
            [tensor._as_tf_output() for tensor in outputs],
            [out_name.encode() for out_name in out_names],
            [],
            [],
            None,
            None,
        )
    holder = c_api_util.ScopedTFFunction(c_function, name)
    with holder.get() as function, c_api_util.tf_buffer() as buffer:
        pywrap_tf_session.TF_FunctionToFunctionDef(function, buffer)
        definition = function_pb2.FunctionDef.FromString(pywrap_tf_session.TF_GetBuffer(buffer))
    traced = stock._from_definition(definition)
    traced._sub_functions = graph._functions
    return traced


def is_trainable(tensor: tf.Tensor) -> bool:
    """Whether `tensor` can have a gradient, as `tf.gradients` sees it; handles of lists of tensors cannot."""
    if tensor.dtype.base_dtype == tf.resource:
        data = handle_data(tensor)
        known = data.shape_and_type if data is not None else []
        return bool(known) and is_trainable_type(tf.as_dtype(known[0].dtype))
    return tensor.dtype.base_dtype != tf.variant and bool(backprop_util.IsTrainable(tensor))


def is_trainable_type(dtype: tf.DType) -> bool:
    """The same for what is known of a dtype alone."""
    return dtype not in (tf.variant, tf.resource) and bool(backprop_util.IsTrainable(dtype))


def set_size(op: tf.Operation, name: str, size: int) -> None:
    """Add an integer attribute to an operation, by a name that begins with an underscore."""
    op._set_attr(name, attr_value_pb2.AttrValue(i=size))


def differentiated_graph(graph: tf.Graph) -> Any:
    """The branch or loop body whose gradient `graph` is, or None."""
    return getattr(graph, "_forward_graph", None)


def capture_in(graph: Any, tensor: tf.Tensor) -> tf.Tensor:
    """What stands for `tensor`, of the graph around `graph`, in `graph`.

    The gradient of a branch must not capture one tensor twice, as itself and as what stands for it in the branch.
    """
    forward = differentiated_graph(graph)
    if forward is not None:
        tensor = next((inner for outer, inner in forward.captures if outer is tensor), tensor)
    with graph.as_default():
        return graph.capture(tensor)


def handle_data(tensor: tf.Tensor) -> HandleData | None:
    """What is known of the variable whose handle `tensor` is; None if nothing is, or it is no handle."""
    if tensor.dtype.base_dtype != tf.resource:
        return None
    data = handle_data_util.get_resource_handle_data(tensor)
    return data if data.is_set else None


def set_handle_data(tensors: Sequence[tf.Tensor], known: Sequence[HandleData | None]) -> None:
    """Let placeholders of handles say that of their variables, unless they say something already."""
    for tensor, data in zip(tensors, known, strict=True):
        if data is not None and handle_data(tensor) is None:
            handle_data_util.set_handle_data(tensor, data)


def join_handle_data(a: HandleData | None, b: HandleData | None) -> HandleData | None:
    """The most that is true of both variables; of one dtype, as those are that may take one another's place."""
    if a is None or b is None or a == b:
        return a
    joined = HandleData.FromString(a.SerializeToString())
    for one, other in zip(joined.shape_and_type, b.shape_and_type, strict=False):
        shape = tf.TensorShape(one.shape).most_specific_common_supertype([tf.TensorShape(other.shape)])
        one.shape.CopyFrom((shape or tf.TensorShape(None)).as_proto())
    return joined


def _variable_of(handle: tf.Tensor) -> tuple[tf.DType, tf.TensorShape]:
    data = handle_data(handle).shape_and_type[0]
    return tf.as_dtype(data.dtype), tf.TensorShape(data.shape)


def gradient_type(tensor: tf.Tensor) -> tuple[tf.DType, tf.TensorShape]:
    """Dtype and static shape of the gradient for a trainable tensor: for a variable's handle those of the variable."""
    if tensor.dtype.base_dtype == tf.resource:
        return _variable_of(tensor)
    return tensor.dtype.base_dtype, tensor.shape


def variable_key(tensor: tf.Tensor) -> Any:
    """What is known of the variable whose handle `tensor` is; None for other tensors."""
    if tensor.dtype.base_dtype != tf.resource or not is_trainable(tensor):
        return None
    dtype, shape = _variable_of(tensor)
    return dtype.name, str(shape)


def zeros_for(tensor: tf.Tensor) -> tf.Tensor:
    """A gradient of zeros for a trainable tensor."""
    if tensor.dtype.base_dtype != tf.resource:
        return tf.zeros_like(tensor)
    dtype, shape = _variable_of(tensor)
    if not shape.is_fully_defined():
        shape = gen_resource_variable_ops.variable_shape(tensor)
    return tf.zeros(shape, dtype)


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


def branch_outputs(result: tf.Tensor) -> list[tf.Tensor]:
    """Where `result` is an output of a conditional: the outputs of its branches that it may be."""
    if result.op.type not in CONDITIONALS:
        return []
    return [branch.outputs[result.value_index] for branch in branches(result.op)]


def branches(op: tf.Operation) -> tuple[Any, ...]:
    """The function graphs of an If that is being built."""
    return cond_v2.get_func_graphs(op)


def sub_functions(traced: TracedFunction) -> Sequence[Any]:
    """The control flow branches and other functions that the traced body made."""
    return list(traced._sub_functions.values())


def has_function(graph: tf.Graph, name: str) -> bool:
    return graph._is_function(name)


def function_in(graph: tf.Graph, name: str) -> Any:
    """The function `name` in the library of `graph` (a TracedFunction, an imported function, ...), or None."""
    return graph._get_function(name)


def add_function(graph: tf.Graph, traced: TracedFunction) -> None:
    """Add a function and its sub-functions to the library of `graph`, unless they are there."""
    with graph.as_default():
        for function in [traced, *sub_functions(traced)]:
            graph._add_function_recursive(function)


def add_to_eager_context(traced: TracedFunction) -> None:
    """Where tf.functions run eagerly, make a function known to the context they run in; elsewhere do nothing."""
    if tf1.executing_eagerly_outside_functions() and not context.context().has_function(traced.name):
        with traced._c_func.get() as function:
            context.add_c_function(function)


def remove_function(graph: tf.Graph, traced: TracedFunction) -> None:
    """Take a function and its sub-functions out of the library of `graph`."""
    for function in [traced, *sub_functions(traced)]:
        if graph._is_function(function.name):
            graph._remove_function(function.name)
    if context.context().has_function(traced.name):
        context.remove_function(traced.name)


def make_sessions_take_library(graph: tf.Graph) -> None:
    """Let sessions that have run take functions added to `graph` since: they look only if it has a new node."""
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope(None), graph.device(None):
        tf1.no_op(name="function_defined")


@contextlib.contextmanager
def place_of(op: tf.Operation) -> Iterator[None]:
    """Create operations where `op` is: its graph, control inputs, control flow context and device."""
    graph = op.graph
    with graph.as_default(), graph.control_dependencies(None), graph.name_scope(None), graph.device(None):
        graph._set_control_flow_context(op._get_control_flow_context())
        with graph.control_dependencies(op.control_inputs), graph.device(op.device or None):
            yield


def replace_input(op: tf.Operation, tensor: tf.Tensor) -> None:
    """Make `tensor` the only data input of `op`."""
    op._update_input(0, tensor)


def replace_control_input(op: tf.Operation, control_input: tf.Operation) -> None:
    """Make `control_input` the only control input of `op`."""
    op._remove_all_control_inputs()
    op._add_control_input(control_input)
