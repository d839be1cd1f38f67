"""Python functions become functions of the graph: whole, or as the operations of a function graph that are wanted."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import function_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.framework import c_api_util
from tensorflow.python.framework import function as stock
from tensorflow.python.ops import variable_scope

from tensorflow_recursion._tf import branches, copies, graphs, origins, patches, recorders
from tensorflow_recursion._tf.functions import TracedFunction

tf1 = tf.compat.v1

# Those options of a stock Defun that its function graph takes.
_GRAPH_OPTIONS = ("capture_by_value", "allowlisted_stateful_ops", "capture_resource_var_by_value")


def trace(
    graph: tf.Graph,
    func: Callable[..., Any],
    inputs: Sequence[tuple[str, tf.DType]],
    name: str,
    *,
    branch_suffix: str,
    control_flow_v2: bool,
    doc: str | None,
    out_names: Sequence[str] | None,
    device: Any,
    options: Mapping[str, Any],
) -> TracedFunction:
    """Trace `func` into a function graph whose outer graph is `graph`, clear of control dependencies and contexts.

    The names of functions for branches in it end with `branch_suffix`. With `control_flow_v2`, and wherever it is
    around a `tf.function`, its conditionals and loops are If and While.
    """
    bodies: list[tf.Graph] = []

    def build(*args: tf.Tensor) -> Any:
        body = tf1.get_default_graph()
        bodies.append(body)
        graphs.follow_captures(body)
        if control_flow_v2 or graph.building_function:
            branches.use_control_flow_v2(body)
        return func(*args)

    build.__doc__ = doc
    arg_names, arg_types = [arg for arg, _ in inputs], [dtype for _, dtype in inputs]
    with (
        graph.as_default(),
        graph.control_dependencies(None),
        recorders.suspended(),
        branches.named(branch_suffix),
    ):
        traced = TracedFunction(build, arg_names, arg_types, name, out_names=out_names, **options)
        traced._caller_device = device
        traced._create_definition_if_needed()
    origins.set_origins(traced, origins.origins_of(bodies[0].get_operations()))
    copies.set_source(traced, copies.Source.whole(bodies[0]))
    return traced


def trace_graph(
    graph: tf.Graph,
    func: Callable[..., Any],
    inputs: Sequence[tuple[str, tf.DType]],
    arg_shapes: Sequence[tf.TensorShape],
    name: str,
    *,
    branch_suffix: str,
    device: Any,
    options: Mapping[str, Any],
) -> tf.Graph:
    """Trace as `trace` does, with static argument shapes and with control flow v2; returns the function graph."""
    keys = [*tf1.GraphKeys._VARIABLE_COLLECTIONS, variable_scope._VARSTORE_KEY]

    def build(*args: tf.Tensor) -> Any:
        graphs.follow_captures(tf1.get_default_graph())
        return func(*args)

    with (
        graph.as_default(),
        graph.control_dependencies(None),
        patches.control_flow_for_gradients(),
        recorders.suspended(),
        branches.named(branch_suffix),
    ):
        return stock.func_graph_from_py_func(
            build,
            [arg for arg, _ in inputs],
            [dtype for _, dtype in inputs],
            name,
            device=device,
            collections_ref={key: graph.get_collection_ref(key) for key in keys},
            arg_shapes=arg_shapes,
            **{key: options[key] for key in _GRAPH_OPTIONS if key in options},
        )


def make_function(
    graph: tf.Graph,
    name: str,
    operations: Sequence[tf.Operation],
    inputs: Sequence[tf.Tensor],
    outputs: Sequence[tf.Tensor],
    out_names: Sequence[str],
    made: origins.Origins,
) -> TracedFunction:
    """The function that some operations of a function graph make up; `made` says where those of the graph were made."""
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
    origins.set_origins(traced, made)
    return traced
