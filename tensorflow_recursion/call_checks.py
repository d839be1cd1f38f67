"""Checks what a call passes to a function, and what a declaration says of one."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf import functions, graphs, handles
from tensorflow_recursion.traces import signatures
from tensorflow_recursion.traces.definitions import Definition, Tensors
from tensorflow_recursion.traces.signatures import Signature
from tensorflow_recursion.traces.traced_bodies import Body, body_around


def check_in_reach(name: str, tensors: Sequence[tf.Tensor], chain: Sequence[tf.Graph], how: str) -> None:
    """Raises ValueError or TypeError if a call in the innermost graph of `chain` cannot take one of the tensors."""
    for tensor in tensors:
        if graphs.is_eager_tensor(tensor):
            if graphs.takes_eager_tensors(chain[0]):
                continue
            raise TypeError(
                f"Call of '{names.shown(name)}': {how} an eager tensor, which belongs to no graph; use its value, "
                "x.numpy(), or make it in the graph"
            )
        if any(tensor.graph is graph for graph in chain):
            continue
        if any(graphs.is_gradient_of(graph, tensor.graph) or graphs.captures(graph, tensor) for graph in chain):
            continue
        is_of_outermost = graphs.enclosing_graphs(tensor.graph)[-1] is chain[-1]
        if is_of_outermost and body_around(chain[0]) is not None:
            continue  # becomes a capture of that body, and is checked where that one is called
        if graphs.is_around_shapes_of(tensor.graph, chain[-1]):
            continue  # the graph captures it, or becomes a capture as above
        shown, body = names.shown(name), body_around(tensor.graph)
        where, remedy = "another graph", f"call '{shown}' in the graph of that tensor"
        if body is not None:
            owner = names.shown(body.definition.user_name)
            where, remedy = f"the body of '{owner}'", f"let '{owner}' return it, or call '{shown}' in that body"
        raise ValueError(
            f"Call of '{shown}': {how} tensor {tensor.name!r} of {where}, which is out of reach here; {remedy}, or, "
            "where a body has put it into an object (self.table = tf.ones([2])), make it outside of bodies, which are "
            "built more than once"
        )


def check_replica(name: str, captures: Tensors, *, is_for_replica: bool) -> None:
    """Raises ValueError if a captured tensor is a variable of another replica than the one that is being built."""
    if graphs.replica() is None or not any(map(handles.is_of_other_replica, captures)):
        return
    cause = (
        "and something in the body was made for another replica than this one, a concrete function for example; let "
        "the body call the tf.function itself, and read the variable by itself"
        if is_for_replica
        else "but a body of Defun belongs to no replica, wherever it is defined, and would read the first one's here; "
        "define the function by tfr.recursive, which traces a body for each replica"
    )
    raise ValueError(
        f"Call of '{names.shown(name)}': its body reads a variable of which each replica of the tf.distribute "
        f"strategy has its own, {cause}"
    )


def check_imported(declared: Signature, function: functions.TracedFunction | None) -> None:
    """Check a declaration against the function of that name that the graph got by import, if any.

    Raises:
      TypeError: if they take or return other types.
    """
    if function is None:
        return
    signature = function.definition.signature
    for verb, expected, args in (
        ("takes", declared.input_types, signature.input_arg),
        ("returns", declared.output_types, signature.output_arg),
    ):
        got = [tf.as_dtype(arg.type) for arg in args]
        if not signatures.same_types(expected, got):
            where = "in the graph's library, captured tensors included,"
            raise signatures.mismatch(declared, verb, expected, got, where)


def check_definition(definition: Definition, declared: Signature, body: Body | None) -> None:
    """Check a declaration against the definition, and against what the last trace of it, `body`, returns.

    Raises:
      TypeError: if they take or return other types.
    """
    definition.check_against(declared)
    if (
        body is not None
        and body.traced is not None
        and not signatures.same_types(body.output_types, declared.output_types)
    ):
        raise signatures.mismatch(declared, "returns", declared.output_types, body.output_types)
