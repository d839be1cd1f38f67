"""The TreeRNN in the paper's form: recursion over heap-laid-out arrays, everything an argument, losses in a list.

Nine arguments: the node i, three arrays of the tree and five weights, all passed on unchanged but for i. Two outputs:
the node's vector `[1, d]` and the losses `[k]` of the k nodes below and at it, whose number depends on the data.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from typing import Any

import tensorflow as tf

import tensorflow_recursion as tfr
from benchmarks.nets import data
from benchmarks.nets.graph import NetGraph, State
from benchmarks.treebank import Forest

tf1 = tf.compat.v1

_ARGUMENTS = {
    "i": tf.int32,
    "is_leaf": tf.bool,
    "words": tf.int32,
    "embeddings": tf.float32,
    "W": tf.float32,
    "b": tf.float32,
    "labels": tf.int32,
    "U": tf.float32,
    "bs": tf.float32,
}


def feed_values(forest: Forest) -> tuple[Any, ...]:
    """Returns what the feeds take: the heap's arrays, and the roots, whose number is the batch's size."""
    heap = data.to_heap(forest)
    return heap.is_leaf, heap.words, heap.labels, forest.roots


def build(net: NetGraph) -> tf.Tensor:
    """Adds the TreeRNN over one tree, for training; returns the summed loss."""
    dim = net.dim
    is_leaf = tf1.placeholder(tf.bool, [None], "heap_is_leaf")
    words = tf1.placeholder(tf.int32, [None], "heap_words")
    labels = tf1.placeholder(tf.int32, [None], "heap_labels")
    net.feeds[:] = [is_leaf, words, labels, net.forest.roots]
    outputs, shapes = [("node", tf.float32), ("losses", tf.float32)], [[1, dim], [None]]
    tree_rnn = tfr.Declare("TreeRNN", list(_ARGUMENTS.items()), outputs, output_shapes=shapes)

    @tfr.Defun(
        *_ARGUMENTS.values(),
        func_name="TreeRNN",
        out_names=["node", "losses"],
        output_shapes=shapes,
        create_grad_func=True,
    )
    def tree_rnn_impl(
        i: tf.Tensor,
        is_leaf: tf.Tensor,
        words: tf.Tensor,
        embeddings: tf.Tensor,
        W: tf.Tensor,
        b: tf.Tensor,
        labels: tf.Tensor,
        U: tf.Tensor,
        bs: tf.Tensor,
    ) -> State:
        W.set_shape([2 * dim, dim])
        embeddings.set_shape([None, dim])

        def leaf() -> State:
            return tf.gather(embeddings, tf.gather(words, [i])), tf.zeros([0])

        def inner() -> State:
            left, left_losses = tree_rnn(2 * i, is_leaf, words, embeddings, W, b, labels, U, bs)
            right, right_losses = tree_rnn(2 * i + 1, is_leaf, words, embeddings, W, b, labels, U, bs)
            node = tf.nn.relu(tf.nn.bias_add(tf.matmul(tf.concat([left, right], 1), W), b))
            return node, tf.concat([left_losses, right_losses], 0)

        node, losses = tf.cond(tf.gather(is_leaf, i), leaf, inner)
        logits = tf.nn.bias_add(tf.matmul(node, U), bs)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.gather(labels, [i]), logits=logits)
        return node, tf.concat([losses, loss], 0)

    weights = [net.variables[name].read_value() for name in ("embeddings", "inner", "inner_bias")]
    classifier = [net.variables[name].read_value() for name in ("classes", "classes_bias")]
    _, losses = tree_rnn_impl(1, is_leaf, words, *weights, labels, *classifier)
    return tf.reduce_sum(losses)
