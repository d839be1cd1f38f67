"""What is the same in all calls of a body that agree in certain arguments, and need not be computed by each.

Take a body with the arguments n and w that captures v. `tf.tanh(w) * v` depends on w alone, so calls that pass on w
compute it anew each time. `tf.tanh(w) * f(n - 1, w)` does not: nobody knows what a call returns.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import tensorflow as tf

from tensorflow_recursion import ops
from tensorflow_recursion._tf import nodes


class FixedValues:
    """Finds out which arguments of one body the operators in it depend on."""

    def __init__(self, arguments: Sequence[tf.Tensor], captures: Sequence[tf.Tensor]) -> None:
        """Arguments of the body, and what stands in it for captured tensors, which are the same in all calls."""
        self._fixed_by: dict[Hashable, frozenset[Hashable]] = {tensor.ref(): frozenset() for tensor in captures}
        self._fixed_by.update((tensor.ref(), frozenset([tensor.ref()])) for tensor in arguments)
        # For each operator that was asked for, what `arguments_of` says.
        self._arguments_of: dict[tf.Operation, frozenset[Hashable] | None] = {}

    def note_same(self, tensor: tf.Tensor, others: Iterable[tf.Tensor]) -> None:
        """Learn that other tensors, inside of a branch for example, are `tensor` under other names."""
        if (arguments := self._arguments_behind(tensor)) is not None:
            self._fixed_by.update((other.ref(), arguments) for other in others)

    def arguments_of(self, op: tf.Operation) -> frozenset[Hashable] | None:
        """References to the arguments that an operator depends on, besides constants and captured tensors.

        None if it depends on what may differ between calls whatever the arguments are, such as the result of a call.
        """
        known = self._arguments_of
        pending = [] if op in known else [op]
        while pending:
            sources = self._sources(pending[-1])
            if sources is None:
                known[pending.pop()] = None
            elif unknown := [tensor.op for tensor in sources if not self._is_known(tensor)]:
                pending += unknown
            else:
                found = [self._arguments_behind(tensor) for tensor in sources]
                of_inputs = [arguments for arguments in found if arguments is not None]
                known[pending.pop()] = frozenset().union(*of_inputs) if len(of_inputs) == len(found) else None
        return known[op]

    def _is_known(self, tensor: tf.Tensor) -> bool:
        return tensor.ref() in self._fixed_by or tensor.op in self._arguments_of

    def _arguments_behind(self, tensor: tf.Tensor) -> frozenset[Hashable] | None:
        """`arguments_of` what makes a tensor."""
        fixed_by = self._fixed_by.get(tensor.ref())
        return self.arguments_of(tensor.op) if fixed_by is None else fixed_by

    def _sources(self, op: tf.Operation) -> list[tf.Tensor] | None:
        """What an operator depends on; None if not only on its inputs."""
        if op.type != "Placeholder":
            is_fixed = op.type == "ReadVariableOp" or not op.op_def.is_stateful
            has_function = op.type in (*ops.CALLS, *nodes.HAVE_BRANCHES)
            return list(op.inputs) if is_fixed and not has_function else None
        if op.outputs[0].ref() in self._fixed_by:
            return [op.outputs[0]]
        outer = nodes.captured_by(op.outputs[0])
        return None if outer is None else [outer]
