"""How TensorFlow makes functions of branches and loop bodies: in which graphs, what it calls them, what gradients take.

It numbers them from 1 in every process. So a graph that comes from another process may bring functions along that are
called as others are here, which is an error.
"""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.ops import cond_v2, control_flow_ops, control_flow_util, control_flow_util_v2, while_v2

from tensorflow_recursion import names
from tensorflow_recursion._tf import graphs
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion._tf.replacements import replace_for_good

_IS_V2: Attribute[bool] = Attribute(names.CONTROL_FLOW_V2)  # of graphs


class _Naming(threading.local):
    suffix = ""


_naming = _Naming()


@contextlib.contextmanager
def named(suffix: str) -> Iterator[None]:
    """Inside, in this thread, the names of functions for branches and loop bodies end with `suffix`."""
    before, _naming.suffix = _naming.suffix, suffix
    try:
        yield
    finally:
        _naming.suffix = before


def use_control_flow_v2(graph: tf.Graph) -> None:
    """Let conditionals and loops in `graph` be If and While, even if control flow v2 is switched off.

    In the function graph of a `tf.function` they are so by themselves. The graph of a body that is traced for a call in
    one is of another class, and would get v1 conditionals. These compare tensors by `!=`, which never ends where eager
    mode is around.
    """
    _IS_V2.set(graph, True)


def _follow() -> None:
    is_v2 = control_flow_util.EnableControlFlowV2
    replace_for_good(control_flow_util, "EnableControlFlowV2", lambda graph: is_v2(graph) or _IS_V2.is_set(graph))
    name_of = control_flow_util_v2.unique_fn_name
    named_anew = lambda scope, name: name_of(scope, name) + _naming.suffix
    replace_for_good(control_flow_util_v2, "unique_fn_name", named_anew)


def _take_eager_tensors() -> None:
    """Let the gradients of branches and loops take an eager tensor from the graph around, which takes it as it is.

    TensorFlow lets such a gradient take it, and forgets that a loop has to return it, too. The gradient of a call reads
    the table of which the body gathers rows from where a function has captured it
    (`GradientCalls.with_captured_tables`). TensorFlow's own gradients read what the function returns.
    """
    replace_for_good(cond_v2._CondGradFuncGraph, "capture", capture)
    replace_for_good(while_v2._WhileBodyGradFuncGraph, "capture", capture)


def capture(gradient: Any, tensor: tf.Tensor, *args: Any, **kwargs: Any) -> tf.Tensor:
    """What stands for a tensor in the gradient of a branch or a loop; an eager one comes from the graph around."""
    around = gradient.outer_graph
    if graphs.is_eager_tensor(tensor) and hasattr(around, "capture"):
        return graphs.capture_in(gradient, graphs.capture_in(around, tensor))
    captured: tf.Tensor = FuncGraph.capture(gradient, tensor, *args, **kwargs)
    return captured


def _capture_before_entering() -> None:
    """Let a body capture what enters its v1 conditionals and loops as it is, from the graph around.

    Examples are `tf.cond(p, lambda: x, lambda: y)` and the first value of a loop. TensorFlow tells apart what has
    entered by names, and `x` may be called in its graph as another tensor is in the body. That one's value was taken.
    """
    for_cond, for_loop = control_flow_ops.CondContext.AddValue, control_flow_ops.WhileContext.AddValue
    output = control_flow_ops.CondContext._ProcessOutputTensor
    replace_for_good(control_flow_ops.CondContext, "AddValue", lambda self, value: for_cond(self, _captured(value)))
    replace_for_good(control_flow_ops.WhileContext, "AddValue", lambda self, value: for_loop(self, _captured(value)))
    replace_for_good(
        control_flow_ops.CondContext, "_ProcessOutputTensor", lambda self, value: output(self, _captured(value))
    )


def _captured(value: tf.Tensor) -> tf.Tensor:
    """What stands for a tensor in the graph that is being built: itself, but in a function for one from around it."""
    graph = tf.compat.v1.get_default_graph()
    is_inside = not hasattr(graph, "capture") or (tf.is_symbolic_tensor(value) and value.graph is graph)
    return value if is_inside else graph.capture(value)


_follow()
_take_eager_tensors()
_capture_before_entering()
