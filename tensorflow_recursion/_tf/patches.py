"""Gradients of conditionals and loops that can be cut off from the conditionals and loops themselves.

TensorFlow makes them for a graph in which the forward and the backward part stand together. Here the two parts of a
body become two functions (`forward_backward.cut`). So while a body is differentiated, a few functions of `cond_v2`,
`while_v2`, `control_flow_util` and `gradients_util` are replaced.
"""
# SPDX-License-Identifier: Apache-2.0

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import backprop_util
from tensorflow.python.framework import ops
from tensorflow.python.framework.func_graph import FuncGraph, func_graph_from_py_func
from tensorflow.python.ops import (
    cond_v2,
    control_flow_state,
    control_flow_util,
    default_gradient,
    gen_functional_ops,
    gradients_util,
    list_ops,
    while_v2,
)
from tensorflow.python.ops.control_flow_v2_func_graphs import ControlFlowFuncGraph

from tensorflow_recursion import names
from tensorflow_recursion._tf import branches, copies, function_calls, graphs, handles, nodes, recorders
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion._tf.replacements import Replacements

# Of the inputs of a branch or a loop: what makes the gradient where nothing uses them.
_ZEROS: Attribute[Callable[[], tf.Tensor]] = Attribute(names.ZEROS)


class _ForGradients(Replacements):
    """The replacements by which gradients of conditionals and loops can be cut off."""

    def _install(self) -> None:
        # Conditionals and loops are If and While.
        self.replace(control_flow_util, "EnableControlFlowV2", lambda graph: True)
        of_branch = ControlFlowFuncGraph.__init__
        self.replace(ControlFlowFuncGraph, "__init__", lambda *args, **kwargs: _begin(of_branch, *args, **kwargs))
        # The gradient of an operator is made on its device, so that a backward body is split as the forward one is.
        # Not by TensorFlow's colocation: its gradients of branches leave that out, and its groups name what is cut off.
        self.replace(gradients_util, "_maybe_colocate_with", _as_gradient_of)
        # Gradients of If get intermediates as tensors, as for XLA, not in Optionals: a kernel less for each.
        as_for_xla = _Seen(control_flow_util)
        self.replace(as_for_xla, "GraphOrParentsInXlaContext", lambda graph: True)
        self.put(cond_v2, "control_flow_util", as_for_xla)
        self.replace(cond_v2, "_create_fakeparams", _stand_ins)
        operations = _Seen(ops)
        self.replace(operations, "get_gradient_function", _gradient_function)
        self.put(gradients_util, "ops", operations)
        states = _Seen(control_flow_state)
        self.replace(states, "ZerosLike", _zeros_for_result)
        self.put(gradients_util, "control_flow_state", states)
        zeros = _Seen(default_gradient)
        self.replace(zeros, "zeros_like", _zeros_like)
        self.put(cond_v2, "default_gradient", zeros)
        self.replace(cond_v2, "_create_grad_func", _create_branch_gradient)
        self.put(while_v2._WhileBodyGradFuncGraph, "while_op_needs_rewrite", property(_needs_new_loop))
        self.replace(while_v2._WhileBodyGradFuncGraph, "control_dependencies", _control_dependencies)
        self.replace(while_v2._WhileBodyGradFuncGraph, "capture", _capture_in_loop)
        lists = _Seen(list_ops)
        self.replace(lists, "empty_tensor_list", _empty_list)
        self.put(while_v2, "list_ops", lists)
        of_result = while_v2._preprocess_grad
        self.replace(while_v2, "_preprocess_grad", lambda *args: _gradient_for_loop_result(of_result, *args))
        given = gradients_util._DefaultGradYs
        self.replace(gradients_util, "_DefaultGradYs", lambda *args: _given_gradients(given, *args))
        resolve = cond_v2._resolve_grad_inputs
        self.replace(cond_v2, "_resolve_grad_inputs", lambda *graphs: _resolved(resolve, *graphs))


def _begin(of_branch: Callable[..., None], branch: Any, *args: Any, **kwargs: Any) -> None:
    """Make the graph of a branch or of a loop's body, with the gradients that `gradient_override_map` names around it.

    TensorFlow gives them to what stands in a v1 conditional or loop, as a body may have that is differentiated here.
    """
    of_branch(branch, *args, **kwargs)
    branch._gradient_override_map = dict(branch.outer_graph._gradient_override_map)


def _stand_ins(branch: tf.Graph, templates: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """What a branch returns in the place of values that another branch makes, `templates`.

    Those of an open shape are scalars, which any other shape can be broadcast with. TensorFlow would take open
    dimensions for 0, and say so to whoever asks for their static shape.
    """
    made = []
    with branch.as_default():
        for like in templates:
            shape = like.shape if like.shape.is_fully_defined() else None
            made.append(gen_functional_ops.fake_param(dtype=like.dtype, shape=shape))
            made[-1].set_shape(like.shape)
    return made


class _Seen:
    """A module as another one sees it, with some of its functions replaced."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


_replacements = _ForGradients()
# Which calls of `tf.function`s are differentiated by functions of ours, and by which; `set_gradient_of_calls`.
_of_calls: list[tuple[Callable[[tf.Operation], bool], Callable[..., Any]]] = []


def set_gradient_of_calls(is_meant: Callable[[tf.Operation], bool], gradient: Callable[..., Any]) -> None:
    """Let `gradient` be the gradient function of those calls of `tf.function`s for which `is_meant` says so.

    It is inside of `control_flow_for_gradients`. TensorFlow's own would differentiate what is called once, whatever it
    is that is differentiated: for all groups of functions, and for all orders.
    """
    _of_calls.append((is_meant, gradient))


def _gradient_function(op: tf.Operation) -> Any:
    if op.type in function_calls.OPERATORS:
        for is_meant, gradient in _of_calls:
            if is_meant(op):
                return gradient
    return ops.get_gradient_function(op)


def control_flow_for_gradients() -> contextlib.AbstractContextManager[None]:
    """Inside, in this thread, gradients of conditionals and loops are made such that they can be cut off."""
    return _replacements.active()


def set_zeros(tensor: tf.Tensor, make: Callable[[], tf.Tensor]) -> None:
    """Let `make` make the gradient for `tensor`, an input of a branch or a loop, where that does not use it."""
    _ZEROS.set(tensor, make)


def has_zeros(tensor: tf.Tensor) -> bool:
    """Whether `set_zeros` was called for a tensor."""
    return _ZEROS.is_set(tensor)


@contextlib.contextmanager
def _as_gradient_of(op: tf.Operation, _gradient_uid: Any, _colocate: bool) -> Iterator[None]:
    """Make operations on the device of `op`, and note that they compute its gradient.

    TensorFlow notes that in the graph of `op`; the gradient of a branch is in another one.
    """
    with tf.compat.v1.device(op.device or None), tf.compat.v1.get_default_graph()._original_op(op):
        yield


def _create_branch_gradient(func_graph: tf.Graph, grads: Sequence[Any], name: str) -> tf.Graph:
    """As cond_v2 does, but without an order of side effects: it would make every output wait for all of them.

    Gradients that are rows (IndexedSlices) become whole tensors in the branch, because outside of it the shape of the
    whole may not be known: a scalar stands there for a tensor of a branch that was not taken. Results without a
    gradient are left out, for which TensorFlow would begin with ones: in what is vectorized, handles that are not
    known to be of variables.
    """

    def gradients() -> list[Any]:
        pairs = zip(func_graph.outputs, grads, strict=True)
        given = [(y, _term(y, grad)) for y, grad in pairs if grad is not None and backprop_util.IsTrainable(y)]
        ys, dys = [y for y, _ in given], [grad for _, grad in given]
        found = gradients_util._GradientsHelper(ys, func_graph.inputs, dys, src_graph=func_graph)
        return [tf.convert_to_tensor(grad) if isinstance(grad, tf.IndexedSlices) else grad for grad in found]

    return func_graph_from_py_func(
        name,
        gradients,
        [],
        {},
        func_graph=_BranchGradient(name, func_graph),
        add_control_dependencies=False,
    )


def _needs_new_loop(gradient: Any) -> bool:
    """Whether a loop has to be written anew, as TensorFlow does it where the gradient needs values not returned yet.

    A loop that returns all intermediates lacks none; but calls in it may have come to keep records.
    """
    has_new_calls = graphs.take_change(gradient._forward_graph)
    return bool(gradient.extra_inputs) or has_new_calls


def _resolved(resolve: Callable[..., Any], branch: tf.Graph, gradient: tf.Graph) -> list[tf.Tensor]:
    """Call `resolve`, which says what a conditional passes to the gradient of a branch, and mend two mistakes of it.

    - Where the gradient makes the conditional return intermediates, TensorFlow lets it state the shapes that its first
      branch returns. Here it states what is known of its outputs.
    - A tensor may be passed that the graph of the gradient's conditional has captured. The tensor and what stands for
      it in that graph would be two inputs, of which one is lost. Here only the latter is passed.
    """
    op = branch._forward_cond
    op._set_shape_list_attr("output_shapes", [tensor.shape for tensor in op.outputs])
    brought = _brought_in(gradient.outer_graph)
    return [brought.get(ops.tensor_id(tensor), tensor) for tensor in resolve(branch, gradient)]


def _brought_in(graph: Any) -> dict[int, tf.Tensor]:
    """What stands in `graph` for each tensor that it has captured, by the number of that one.

    The gradient of a loop's body takes what the body has computed from lists.
    """
    captured = {ops.tensor_id(outer): inner for outer, inner in getattr(graph, "captures", ())}
    return {**captured, **getattr(graph, "_indirect_captures", {})}


def _awaited_by(gradient: Any, control_inputs: Sequence[Any] | None) -> Sequence[Any] | None:
    """What the gradient of a branch or of a loop's body waits for where it is told to wait for `control_inputs`."""
    return control_inputs and [awaited for element in control_inputs for awaited in _awaited(gradient, element)]


def _awaited(gradient: Any, element: Any) -> Iterator[Any]:
    """What a gradient waits for in place of one operation or tensor; nothing if that is in a graph which is not around.

    No control edge leads from one function to another. So what waits for an operation of the branch waits for a token
    that the branch returns after the operation has run (cc/kernels/has_run_op.h).
    """
    op = element if isinstance(element, tf.Operation) else getattr(element, "op", None)
    if not isinstance(op, tf.Operation) or op.graph is gradient:
        yield element
        return
    forward = gradient._forward_graph
    op = _in_copy(op.outputs[0], forward).op if op.outputs else copies.operation_around(op, forward)
    if op.graph is forward:
        with forward.as_default(), forward.control_dependencies([op]):
            token = _has_run(forward, [])
        yield _has_run(gradient, [gradient.capture(token)])
    elif any(op.graph is graph for graph in [*graphs.enclosing_graphs(gradient), *graphs.enclosing_graphs(forward)]):
        yield op


def _has_run(graph: tf.Graph, tokens: Sequence[tf.Tensor]) -> tf.Tensor:
    """A token that comes after others, and after what is waited for where this is called."""
    count = tf.compat.v1.AttrValue(i=len(tokens))
    return graph.create_op(names.HAS_RUN, tokens, [tf.int32], name="has_run", attrs={"N": count}).outputs[0]


def _control_dependencies(
    gradient: Any, control_inputs: Sequence[Any] | None
) -> contextlib.AbstractContextManager[None]:
    manager: contextlib.AbstractContextManager[None]
    manager = FuncGraph.control_dependencies(gradient, _awaited_by(gradient, control_inputs))
    return manager


def _capture_in_loop(gradient: Any, tensor: tf.Tensor, *args: Any, **kwargs: Any) -> tf.Tensor:
    """Let the gradient of a loop's body take a tensor; one of the body, if that is a copy of the tensor's graph."""
    here = tensor if graphs.is_eager_tensor(tensor) else _in_copy(tensor, gradient._forward_graph)
    captured = branches.capture(gradient, here, *args, **kwargs)
    captured.set_shape(here.shape)  # the list that it comes from may not tell
    recorders.record_same(captured, tensor)
    return captured


def _empty_list(element_shape: Any, element_dtype: tf.DType, **kwargs: Any) -> tf.Tensor:
    """A list for what the gradient of a loop reads of each iteration.

    An element of open shape may be one of a branch that was not taken. There a scalar stands for it, which a list that
    checks shapes would refuse.
    """
    shape = tf.TensorShape(element_shape)
    shape = shape if shape.is_fully_defined() else tf.TensorShape(None)
    return list_ops.empty_tensor_list(shape, element_dtype, **kwargs)


class _BranchGradient(cond_v2._CondGradFuncGraph):
    """The gradient of a branch, which takes handles from where the branch has them.

    What it takes from further out than the branch comes in graph by graph, as TensorFlow expects it to be there.
    """

    def control_dependencies(self, control_inputs: Sequence[Any] | None) -> contextlib.AbstractContextManager[None]:
        return _control_dependencies(self, control_inputs)

    def capture(self, tensor: tf.Tensor, *args: Any, **kwargs: Any) -> tf.Tensor:
        captured = self._captured_from_around(tensor, *args, **kwargs)
        recorders.record_same(captured, tensor)
        return captured

    def _captured_from_around(self, tensor: tf.Tensor, *args: Any, **kwargs: Any) -> tf.Tensor:
        around = graphs.enclosing_graphs(self.outer_graph)
        if graphs.is_eager_tensor(tensor):  # the body takes it as it is
            level = next(i for i, graph in enumerate(around) if not graphs.is_control_flow(graph)) + 1
        else:
            tensor = self._from_further_out(_in_copy(tensor, self._forward_graph), around)
            if tensor.graph is not self and not any(tensor.graph is graph for graph in (self._forward_graph, *around)):
                raise LookupError(
                    f"a gradient that tf.custom_gradient was given reads tensor {tensor.name!r}, which is not there, "
                    "as happens when a function is frozen, or when that tf.custom_gradient is in the gradient of "
                    "another one that does not use the tensor; differentiate the function that was frozen, pass the "
                    "tensor to the inner tf.custom_gradient as an argument, or let the gradient compute it anew"
                )
            level = next((i for i, graph in enumerate(around) if tensor.graph is graph), 0)
        for graph in reversed(around[:level]):
            tensor = graphs.capture_in(graph, tensor)
        if tensor.graph is self.outer_graph:  # the branch may have it, and cond_v2 loses one of two equal inputs
            brought = _brought_in(self.outer_graph)
            known = ((brought.get(ops.tensor_id(outer), outer), inner) for outer, inner in self._forward_graph.captures)
            tensor = next((inner for outer, inner in known if outer is tensor), tensor)
        return super().capture(tensor, *args, **kwargs)

    def _from_further_out(self, tensor: tf.Tensor, around: Sequence[tf.Graph]) -> tf.Tensor:
        """A tensor of a branch around the one that is differentiated as the gradient of that branch has it."""
        forward = graphs.enclosing_graphs(self._forward_graph)[1:]
        is_known = any(tensor.graph is graph for graph in around)
        is_of_branch_around = any(tensor.graph is graph for graph in forward)
        return graphs.capture_in(self.outer_graph, tensor) if is_of_branch_around and not is_known else tensor

    def _capture_helper(self, tensor: tf.Tensor, name: str | None) -> tf.Tensor:
        if tensor.dtype == tf.resource and tensor.graph is self._forward_graph:
            source = _source_of_handle(tensor)
            if any(source is known for known in self._forward_graph.inputs):
                tensor = source  # an output more of the If would be taken for a variable, and have no gradient
        return super()._capture_helper(tensor, name)


def _in_copy(tensor: tf.Tensor, branch: tf.Graph) -> tf.Tensor:
    """What stands for `tensor` in a branch or a loop, or in a graph around it, if that is a copy of its graph."""
    around = graphs.enclosing_graphs(branch)
    if any(tensor.graph is graph for graph in around):
        return tensor
    return next((inner for graph in around if (inner := copies.in_copy(tensor, graph)) is not None), tensor)


def _source_of_handle(handle: tf.Tensor) -> tf.Tensor:
    """Where a handle comes from that only went through loops, which leave handles as they are."""
    while handle.op.type in (*nodes.LOOPS, "Identity"):
        handle = handle.op.inputs[handle.value_index]
    return handle


def _zeros_like(tensor: tf.Tensor) -> tf.Tensor:
    """What a branch returns as the gradient for an input that it does not use."""
    make = _ZEROS.of(tensor)
    if make is not None:
        return make()
    return handles.zeros_for(tensor) if handles.is_trainable(tensor) else default_gradient.zeros_like(tensor)


def _zeros_for_result(op: tf.Operation, index: int) -> tf.Tensor:
    """The gradient for a result that nothing uses, of an operator that has others.

    TensorFlow asks the result for its shape in a branch, where it would be kept for the gradient. Some kernels return
    another shape than the static one: `tf.linalg.eigvalsh` a scalar of no value for vectors of shape [0].
    """
    result = op.outputs[index]
    if result.dtype in (tf.variant, tf.resource) or not result.shape.is_fully_defined():
        return control_flow_state.ZerosLike(op, index)
    return tf.zeros(result.shape, result.dtype)


def _term(y: tf.Tensor, grad: Any) -> Any:
    """The gradient for what a branch returns; if that is a weight, the terms, or none where nothing uses it.

    It is a tensor of the gradient's own graph, because a branch may return an input.
    """
    make = _ZEROS.of(y)
    if make is None:
        return grad
    return tf.identity(grad) if grad.dtype == tf.variant else make()


def _gradient_for_loop_result(
    of_result: Callable[..., Any], grad: Any, body: Any, source: tf.Tensor, *rest: Any
) -> Any:
    """What the gradient of a loop begins with for one of its results, which has `source` before the first iteration.

    It is zeros for a tensor that goes through the loop unchanged. Of a weight, they are as those of a branch.
    """
    make = _ZEROS.of(source)
    if make is None:
        return of_result(grad, body, source, *rest)
    return grad if grad is not None and grad.dtype == tf.variant else make()


def _given_gradients(given: Callable[..., list[Any]], grads: Sequence[Any], ys: Sequence[Any], *rest: Any) -> list[Any]:
    """Gradients for what is differentiated. TensorFlow checks their dtypes; those of a weight may be terms of a sum."""
    is_term = [_ZEROS.is_set(y) and grad is not None for grad, y in zip(grads, ys, strict=True)]
    others = [(grad, y) for grad, y, is_one in zip(grads, ys, is_term, strict=True) if not is_one]
    checked = iter(given([grad for grad, _ in others], [y for _, y in others], *rest))
    return [grad if is_one else next(checked) for grad, is_one in zip(grads, is_term, strict=True)]
