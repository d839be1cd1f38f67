"""Control flow whose gradient can be cut off what it is a gradient of.

TensorFlow's own gradients of conditionals are made so that forward and backward part stand in one graph. While a body
is differentiated, a few functions of `cond_v2` and `gradients_util` are replaced so that the two can be told apart.
"""
# SPDX-License-Identifier: Apache-2.0

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.func_graph import func_graph_from_py_func
from tensorflow.python.ops import cond_v2, control_flow_util, default_gradient, gradients_util

from tensorflow_recursion._tf import handles

_LOOPS = ("While", "StatelessWhile")
_TO_ZERO = "_convert_dynamic_dimension_to_zero"
_ZEROS_ATTRIBUTE = "_recursion_zeros"


@contextlib.contextmanager
def control_flow_for_gradients() -> Iterator[None]:
    """Conditionals and loops are If and While: their gradients can be cut off what they are gradients of."""
    before, control_flow_util.ENABLE_CONTROL_FLOW_V2 = control_flow_util.ENABLE_CONTROL_FLOW_V2, True
    try:
        with _plain_branch_outputs(), _gradients_beside_operators():
            yield
    finally:
        control_flow_util.ENABLE_CONTROL_FLOW_V2 = before


def set_zeros(tensor: tf.Tensor, make: Callable[[], tf.Tensor]) -> None:
    """Let `make` make the gradient for `tensor`, an input of a branch, where the branch does not use it."""
    setattr(tensor, _ZEROS_ATTRIBUTE, make)


def has_zeros(tensor: tf.Tensor) -> bool:
    """Whether `set_zeros` was called for a tensor."""
    return hasattr(tensor, _ZEROS_ATTRIBUTE)


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


def _on_device_of(op: tf.Operation, _gradient_uid: Any, _colocate: bool) -> contextlib.AbstractContextManager[None]:
    device: contextlib.AbstractContextManager[None] = tf.compat.v1.device(op.device or None)
    return device


@contextlib.contextmanager
def _plain_branch_outputs() -> Iterator[None]:
    """Gradients of If get intermediates as tensors, as for XLA, not in Optionals: a kernel less for each."""
    patches: dict[str, Any] = {
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


def _create_branch_gradient(func_graph: tf.Graph, grads: Sequence[Any], name: str) -> tf.Graph:
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
        return handles.zeros_for(tensor) if handles.is_trainable(tensor) else default_gradient.zeros_like(tensor)
