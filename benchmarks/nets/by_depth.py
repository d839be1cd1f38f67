"""Recursion over sets of nodes: all nodes of one depth, of all trees of a batch, are one call.

The function takes the numbers of some nodes, and calls itself once, for the children of them all. So it is as many
calls deep as the deepest tree, and multiplies the rows of a depth at once, as a loop over levels does, but needs no
lists of levels: which nodes are left is found in the recursion. It returns one row for every node at and below those
that it was given, and whose they are.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

import tensorflow_recursion as tfr
from benchmarks.nets import weights
from benchmarks.nets.graph import NetGraph


def build(net: NetGraph) -> tf.Tensor:
    """Adds the net over all trees: the summed loss when training, else all nodes' probabilities `[n, 2]`."""
    order, rows = _nodes(net)(net.forest.roots)[-2:]
    if net.training is None:
        return tf.gather(rows, tf.math.invert_permutation(order))
    return tf.reduce_sum(net.losses(rows, tf.gather(net.forest.labels, order)))


def _nodes(net: NetGraph) -> Callable[[tf.Tensor], Sequence[tf.Tensor]]:
    """The function of some nodes `[k]`: their states `[k, d]`, nodes in the order of the rows `[m]`, rows `[m, ..]`."""
    forest = net.forest
    width = weights.num_classes(net.net) if net.training is None else net.dim
    outputs = [*[(name, tf.float32) for name in "hc"[: net.state_size]], ("order", tf.int32), ("rows", tf.float32)]
    shapes: list[list[int | None]] = [*[[None, net.dim]] * net.state_size, [None], [None, width]]
    declared = tfr.Declare("Nodes", [("ids", tf.int32)], outputs, output_shapes=shapes)

    @tfr.Defun(
        tf.TensorSpec([None], tf.int32),
        func_name="Nodes",
        out_names=[name for name, _ in outputs],
        output_shapes=shapes,
        create_grad_func=True,
    )
    def nodes(ids: tf.Tensor) -> tuple[tf.Tensor, ...]:
        def none() -> tuple[tf.Tensor, ...]:
            return tuple(tf.zeros([0, *shape[1:]], dtype) for shape, (_, dtype) in zip(shapes, outputs, strict=True))

        def some() -> tuple[tf.Tensor, ...]:
            leaves, inner = tf.dynamic_partition(tf.range(tf.size(ids)), 1 - _is_leaf(ids), 2)
            parents = tf.gather(ids, inner)
            children = tf.concat([tf.gather(forest.left, parents), tf.gather(forest.right, parents)], axis=0)
            *states, order, rows = declared(children)
            count = tf.size(parents)
            of_inner = net.inner(tuple(state[:count] for state in states), tuple(state[count:] for state in states))
            of_leaves = net.leaf(net.word_vectors(tf.gather(forest.words, tf.gather(ids, leaves))))
            place = tf.math.invert_permutation(tf.concat([leaves, inner], axis=0))
            made = [tf.gather(tf.concat(both, axis=0), place) for both in zip(of_leaves, of_inner, strict=True)]
            row = net.probabilities(made[0]) if net.training is None else made[0]
            return *made, tf.concat([order, ids], axis=0), tf.concat([rows, row], axis=0)

        found: tuple[tf.Tensor, ...] = tf.cond(tf.size(ids) < 1, none, some)
        return found

    def _is_leaf(ids: tf.Tensor) -> tf.Tensor:
        return tf.cast(tf.gather(forest.is_leaf, ids), tf.int32)

    return lambda ids: list(nodes(ids))
