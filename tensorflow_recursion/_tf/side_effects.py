"""Side effects of a body: which operators have one, and that they happen in their order, as in a tf.function."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import function_pb2
from tensorflow.python.framework import (
    auto_control_deps,
    auto_control_deps_utils,
    op_callbacks,
    op_def_registry,
    ops,
)
from tensorflow.python.ops import custom_gradient, gradients_util

from tensorflow_recursion import names
from tensorflow_recursion._tf import functions
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion._tf.functions import TracedFunction
from tensorflow_recursion._tf.replacements import Replacements, replace_for_good

# Stateful operators that change nothing which another one sees, apart from those that read resources: handles, and
# lists whose operations are in order by their data.
_WITHOUT_EFFECT = ("VarHandleOp", "VariableV2", "TensorArray", "Stack", "Placeholder", names.OP_PREFIX)

# What changes a table, or takes something out of a queue or a dataset's iterator, so that it is another one afterwards.
_TAKES_AWAY = ("LookupTableInsert", "LookupTableRemove", "LookupTableImport", "QueueDequeue", "IteratorGetNext")

# Whether something runs in place of an operation.
_is_replaced: Attribute[bool] = Attribute(names.IS_REPLACED)

# The modules of gradient functions that are not the user's begin so.
_LIBRARIES = ("tensorflow.python.", f"{names.__package__}.")


def in_order(build: Callable[[], list[tf.Tensor]]) -> list[tf.Tensor]:
    """What `build` returns, in the default graph, after all its side effects, which happen in their order."""
    with _one_order.active(), auto_control_deps.AutomaticControlDependencies() as order:
        return [order.mark_as_return(tensor) for tensor in build()]


class _OneOrder(Replacements):
    """One order of all side effects in a body and in its branches.

    TensorFlow keeps an order for each resource, and one for the operators that take no resource, such as `tf.print`. A
    call or a conditional that prints and assigns a variable is in the order of the variable alone, so it would not wait
    for a print before it. Nor would an assignment wait for an assertion before it.
    """

    def _install(self) -> None:
        exit_of_tensorflow = auto_control_deps.AutomaticControlDependencies.__exit__

        def leave(order: Any, *error: Any) -> None:
            _order_calls(order._graph.get_operations()[order._n_operations :])
            exit_of_tensorflow(order, *error)

        self.replace(auto_control_deps.AutomaticControlDependencies, "__exit__", leave)


_one_order = _OneOrder()


class _EffectsOfGradients(Replacements):
    """What gradient functions return comes after the side effects that they make, which happen in their order.

    A user's gradient function may have side effects: `tf.print(dy)` in that of a `tf.custom_gradient`, for example. So
    may all others while all operators are watched, as by `tf.debugging.enable_check_numerics`. A `tf.function` runs
    whatever has a side effect. Of the gradient of a body only that runs which its results need, so these have to wait.
    """

    def _install(self) -> None:
        compute = gradients_util._MaybeCompile
        self.replace(gradients_util, "_MaybeCompile", lambda *args: _after_effects(args[1], lambda: compute(*args)))


_effects_of_gradients = _EffectsOfGradients()


def effects_in_gradients() -> contextlib.AbstractContextManager[None]:
    """Inside, in this thread, whatever reads the result of a gradient function comes after its side effects."""
    return _effects_of_gradients.active()


def _after_effects(op: tf.Operation, compute: Callable[[], Any]) -> Any:
    """What the gradient function of `op` returns, gradients or one gradient; they come after its side effects."""
    if not (_has_users_gradient(op) or op_callbacks.should_invoke_op_callbacks()):
        return compute()
    graph = tf.compat.v1.get_default_graph()
    before = graph._add_control_dependencies, graph.experimental_acd_manager
    try:
        with _one_order.active(), auto_control_deps.AutomaticControlDependencies() as order:
            found = compute()
            made = [made for made in graph.get_operations()[order._n_operations :] if made._is_stateful]
            if _have_effects([made.node_def for made in made], graph, names.INVOKE, lambda _: True):
                _tell_apart(made)
                grads = found if isinstance(found, (list, tuple)) else [found]
                found = [grad if grad is None else order.mark_as_return(grad) for grad in grads]
    finally:
        graph._add_control_dependencies, graph.experimental_acd_manager = before
    return found


def _has_users_gradient(op: tf.Operation) -> bool:
    """Whether the gradient function of `op` may be a user's. Others have no side effects, or call what has some."""
    try:
        gradient = ops.get_gradient_function(op)
    except LookupError:  # it has none, and TensorFlow raises an error that says so
        return False
    module = getattr(gradient, "__module__", "")
    return module == custom_gradient.__name__ or not module.startswith(_LIBRARIES)


def _tell_apart(operations: Iterable[tf.Operation]) -> None:
    """Let no two of the operations be the same to TensorFlow's optimizers, which merge what prints the same."""
    for op in operations:
        op._set_attr(names.NUMBER, tf.compat.v1.AttrValue(i=names.new_number()))


def _order_calls(operations: Iterable[tf.Operation]) -> None:
    """Let calls of functions and what has a side effect run one after the other."""
    last = None
    for op in operations:
        if not auto_control_deps.op_is_stateful(op) or op._control_flow_context is not None:
            continue
        if functions.referred_to(op.node_def) or _is_effect(op.type):
            if last is not None:
                op._add_control_input(last)
            last = op


def has_effects(graph: tf.Graph, call: str, has_callee: Callable[[str], bool]) -> bool:
    """Whether something in `graph`, a function graph, has a side effect.

    Args:
      graph: where to look, and whose function library to look into.
      call: the operator that calls functions by their name in its attribute `f`.
      has_callee: whether such a function has side effects.
    """
    return _have_effects([op.node_def for op in graph.get_operations() if op._is_stateful], graph, call, has_callee)


def _have_effects(candidates: Iterable[Any], graph: tf.Graph, call: str, has_callee: Callable[[str], bool]) -> bool:
    """Whether some nodes of a graph, the `candidates`, have a side effect; see `has_effects`."""
    seen: set[str] = set()
    pending: list[Iterable[Any]] = [candidates]
    while pending:
        for node in pending.pop():
            if node.op == call:
                if has_callee(node.attr["f"].func.name):
                    return True
                continue
            callees = functions.referred_to(node)
            if not callees and _is_effect(node.op):
                return True
            for name in callees - seen:
                seen.add(name)
                definition = _definition(graph, name)
                if definition is None:
                    return True
                pending.append(definition.node_def)
    return False


def _definition(graph: tf.Graph, name: str) -> function_pb2.FunctionDef | None:
    function = graph._get_function(name)
    return None if function is None else function.cached_definition


def _is_effect(op_type: str) -> bool:
    """Whether an operator has a side effect. One that is not known to be harmless has one."""
    definition = op_def_registry.get(op_type)
    if definition is not None and not definition.is_stateful:
        return False
    is_harmless = (
        op_type in auto_control_deps_utils.RESOURCE_READ_OPS
        or op_type in auto_control_deps.LEGACY_RANDOM_OPS
        or op_type.startswith(_WITHOUT_EFFECT)
    )
    return not is_harmless


def first_that_changes(traced: TracedFunction) -> tuple[str, str, str] | None:
    """The first node of a function, or of its branches, that may give another value when the function runs again.

    Returns:
      The node, its operator, and what to do, or None. A `tf.py_function` is taken to give the same value.
    """
    for node in functions.nodes_of(traced):
        if node.op in auto_control_deps.LEGACY_RANDOM_OPS:
            return node.name, node.op, "draw by tf.random.stateless_uniform, say, or by a tf.random.Generator"
        if node.op.startswith(_TAKES_AWAY):
            return node.name, node.op, "do it outside of the function, and pass it what is needed"
    return None


def note_reader(op_type: str) -> None:
    """From now on, let operators of a type only read the variables that they take, where TensorFlow orders effects."""
    auto_control_deps_utils.register_read_only_resource_op(op_type)


def note_without_effect(op_types: Collection[str]) -> None:
    """From now on, let functions leave out operators of these types where nothing reads what they make.

    They count as stateful for TensorFlow's optimizers, which would merge them; a tf.function runs what is stateful in
    any case, in its order.
    """
    is_stateful = auto_control_deps.op_is_stateful
    replace_for_good(
        auto_control_deps,
        "op_is_stateful",
        lambda op: op.type not in op_types and not _is_replaced.is_set(op) and is_stateful(op),
    )
    resources_of = auto_control_deps._get_resource_inputs
    replace_for_good(
        auto_control_deps, "_get_resource_inputs", lambda op: () if _is_replaced.is_set(op) else resources_of(op)
    )


def note_replaced(op: tf.Operation) -> None:
    """Let a function leave out an operation in whose place others run, unless something reads what it makes."""
    _is_replaced.set(op, True)


def only_calls(op: tf.Operation, call: str) -> bool:
    """Whether an operation has functions, such as branches, with no side effect but calls by the operator `call`."""
    reached = functions.nodes_reached(functions.referred_to(op.node_def), op.graph._get_function, stops_at=call)
    if op.type == call or not any(node.op == call for node in reached):
        return False
    return not _have_effects([op.node_def], op.graph, call, lambda _: False)
