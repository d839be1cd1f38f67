"""The method of this project: a function that calls itself for a node's children.

This is the natural form: the function takes a node, and the trees' arrays and the weights are captured from the graph
around it. It returns the node's state and one row for every node below and at it, in post-order: in inference the
nodes' probabilities; in training their vectors, which are classified together in the end, or their logits. (One
classifier for all has the cheaper gradient. But long vectors take longer to hand up than logits, and the nodes
of a batch are classified by all workers.)

A batch is one more recursion, which halves a range of trees until one is left: the calls of a node's children, and
those of a batch's halves, do not wait for each other, so they run in parallel.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf

import tensorflow_recursion as tfr
from benchmarks.nets import weights
from benchmarks.nets.graph import NetGraph, State

# From this size of vectors on, to classify each node takes no more time than to classify all in the end.
LONG_VECTOR = 200

Tree = Callable[[tf.Tensor], tf.Tensor]  # the rows of a tree's nodes from its root


def build(net: NetGraph) -> tf.Tensor:
    """Adds the net over all trees: the summed loss when training, else all nodes' probabilities `[n, 2]`."""
    return _result(net, _forest(net, _tree(net))(0, tf.size(net.forest.roots)))


def build_tree(net: NetGraph) -> tf.Tensor:
    """Build what `build` does, for batches of one tree."""
    return _result(net, _tree(net)(net.forest.roots[0]))


def _classifies_nodes(net: NetGraph) -> bool:
    return net.training is None or net.dim >= LONG_VECTOR


def _row(net: NetGraph, h: tf.Tensor) -> tf.Tensor:
    if net.training is None:
        return net.probabilities(h)
    return net.logits(h) if _classifies_nodes(net) else h


def _row_shape(net: NetGraph) -> list[int | None]:
    return [None, weights.num_classes(net.net) if _classifies_nodes(net) else net.dim]


def _result(net: NetGraph, rows: tf.Tensor) -> tf.Tensor:
    if net.training is None:
        return rows
    return net.summed_loss(rows if _classifies_nodes(net) else net.logits(rows))


def _tree(net: NetGraph) -> Tree:
    return _top_down(net) if net.net == weights.TOPDOWN else _bottom_up(net)


def _bottom_up(net: NetGraph) -> Tree:
    """TreeRNN, TreeLSTM: a node's state is made from its children's."""
    forest = net.forest
    outputs = [*["h", "c"][: net.state_size], "rows"]
    shapes = [[1, net.dim]] * net.state_size + [_row_shape(net)]
    node = tfr.Declare("Node", [("i", tf.int32)], [(name, tf.float32) for name in outputs], output_shapes=shapes)

    @tfr.Defun(
        tf.TensorSpec([], tf.int32), func_name="Node", out_names=outputs, output_shapes=shapes, create_grad_func=True
    )
    def node_impl(i: tf.Tensor) -> State:
        def leaf() -> State:
            state = net.leaf(net.word_vectors(tf.gather(forest.words, [i])))
            return *state, _row(net, state[0])

        def inner() -> State:
            *left, left_rows = node(tf.gather(forest.left, i))
            *right, right_rows = node(tf.gather(forest.right, i))
            state = net.inner(tuple(left), tuple(right))
            return *state, tf.concat([left_rows, right_rows, _row(net, state[0])], axis=0)

        parts: State = tf.cond(tf.gather(forest.is_leaf, i), leaf, inner)
        return parts

    return lambda root: node_impl(root)[-1]


def _top_down(net: NetGraph) -> Tree:
    """Top-down TreeLSTM: a node is called with its state, and makes its children's."""
    forest = net.forest
    inputs = [("i", tf.int32), ("h", tf.float32), ("c", tf.float32)]
    types = [dtype for _, dtype in inputs]
    shapes = [_row_shape(net)]
    node = tfr.Declare("Node", inputs, [("rows", tf.float32)], output_shapes=shapes)

    @tfr.Defun(*types, func_name="Node", out_names=["rows"], output_shapes=shapes, create_grad_func=True)
    def node_impl(i: tf.Tensor, h: tf.Tensor, c: tf.Tensor) -> tf.Tensor:
        h.set_shape([1, net.dim])
        c.set_shape([1, net.dim])

        def child(side: str, children: tf.Tensor) -> tf.Tensor:
            i_child = tf.gather(children, i)
            return node(i_child, *net.child(side, net.word_vectors(tf.gather(forest.words, [i_child])), h, c))

        def inner() -> tf.Tensor:
            return tf.concat([child("left", forest.left), child("right", forest.right), _row(net, h)], axis=0)

        return tf.cond(tf.gather(forest.is_leaf, i), lambda: _row(net, h), inner)

    return lambda root: node_impl(root, tf.zeros([1, net.dim]), tf.zeros([1, net.dim]))


def _forest(net: NetGraph, tree: Tree) -> Callable[[int, tf.Tensor], tf.Tensor]:
    """Returns what computes the trees from the first up to, not including, the last."""
    types, shapes = [tf.int32, tf.int32], [_row_shape(net)]
    inputs = list(zip(("first", "last"), types, strict=True))
    forest = tfr.Declare("Forest", inputs, [("rows", tf.float32)], output_shapes=shapes)

    @tfr.Defun(*types, func_name="Forest", out_names=["rows"], output_shapes=shapes, create_grad_func=True)
    def forest_impl(first: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
        def halves() -> tf.Tensor:
            middle = (first + last) // 2
            return tf.concat([forest(first, middle), forest(middle, last)], axis=0)

        return tf.cond(last - first < 2, lambda: tree(tf.gather(net.forest.roots, first)), halves)

    return forest_impl
