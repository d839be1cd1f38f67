"""The method that one uses without recursion: a `tf.while_loop` over the nodes in post-order, or over levels.

`build` takes one node a step, with a `tf.cond` that tells leaves from inner nodes and a TensorArray of the nodes'
vectors: the children of a node come before it. A batch is one loop over all nodes of all its trees. What need not be
in the loop is not: the embeddings are looked up before it, for all nodes at once, and the classifier runs after it,
over all vectors. It is the strongest form of this method known to us. Control flow v1 trains it faster than v2.

`build_in_loop` looks a leaf's word up in the loop, as the recursion does in the body. The gradient of that is dear: v1
copies a list of rows at every step; v2, which is faster, adds up whole tables of embeddings. Inference is faster by v1.

`build_all_in_loop` does all of a node's work in the loop, the classifier too: the original iteration method, forward.

`build_levels` takes all nodes of one height in all trees of the batch a step, gathers their children's vectors and
scatters theirs; leaves come before the loop. Trees are sorted into levels when they are prepared, which is not timed.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.nets import data, weights
from benchmarks.nets.graph import NetGraph, State
from benchmarks.treebank import Forest

tf1 = tf.compat.v1

Arrays = tuple[tf.TensorArray, ...]  # of the nodes' states


def build(net: NetGraph) -> tf.Tensor:
    """Adds the loop over nodes: the summed loss when training, else all nodes' probabilities `[n, 2]`."""
    words = net.forest.words
    rows = tf.TensorArray(tf.float32, size=tf.size(words), element_shape=[net.dim], clear_after_read=False)
    rows = rows.unstack(net.word_vectors(words))
    return _loop(net, lambda i: tf.expand_dims(rows.read(i), 0))


def build_in_loop(net: NetGraph) -> tf.Tensor:
    """Build what `build` does, with the embeddings looked up in the loop."""
    return _loop(net, lambda i: _looked_up(net, i))


def _loop(net: NetGraph, word_vector: Callable[[tf.Tensor], tf.Tensor]) -> tf.Tensor:
    nodes = tf.size(net.forest.words)

    def step(i: tf.Tensor, *arrays: tf.TensorArray) -> tuple[Any, ...]:
        state = _node_state(net, i, arrays, word_vector)
        return i + 1, *(array.write(i, part) for array, part in zip(arrays, state, strict=True))

    _, *arrays = tf.while_loop(lambda i, *_: i < nodes, step, (tf.constant(0), *_state_arrays(net, nodes, [1])))
    return net.result(arrays[0].concat())


def build_all_in_loop(net: NetGraph) -> tf.Tensor:
    """Build what `build_in_loop` does, with the classifier in the loop as well, at every node; for inference."""
    nodes = tf.size(net.forest.words)
    shape = [1, weights.num_classes(net.net)]
    classes = tf.TensorArray(tf.float32, size=nodes, element_shape=shape)

    def step(i: tf.Tensor, classes: tf.TensorArray, *arrays: tf.TensorArray) -> tuple[Any, ...]:
        state = _node_state(net, i, arrays, lambda i: _looked_up(net, i))
        written = (array.write(i, part) for array, part in zip(arrays, state, strict=True))
        return i + 1, classes.write(i, net.probabilities(state[0])), *written

    start = (tf.constant(0), classes, *_state_arrays(net, nodes, [1]))
    return tf.while_loop(lambda i, *_: i < nodes, step, start)[1].concat()


def _looked_up(net: NetGraph, i: tf.Tensor) -> tf.Tensor:
    return net.word_vectors(tf.gather(net.forest.words, tf.expand_dims(i, 0)))


def _state_arrays(net: NetGraph, nodes: tf.Tensor, rows: list[int]) -> Arrays:
    shape = [*rows, net.dim]
    return tuple(
        tf.TensorArray(tf.float32, size=nodes, element_shape=shape, clear_after_read=False)
        for _ in range(net.state_size)
    )


def _node_state(net: NetGraph, i: tf.Tensor, arrays: Arrays, word_vector: Callable[[tf.Tensor], tf.Tensor]) -> State:
    forest = net.forest

    def leaf() -> State:
        return net.leaf(word_vector(i))

    def inner() -> State:
        left, right = (tf.gather(children, i) for children in (forest.left, forest.right))
        return net.inner(tuple(array.read(left) for array in arrays), tuple(array.read(right) for array in arrays))

    state = tf.cond(tf.gather(forest.is_leaf, i), leaf, inner)
    return state if isinstance(state, tuple) else (state,)


# --- A level a step -----------------------------------------------------------------------------------------------


def level_feed_values(net: NetGraph, forest: Forest) -> tuple[Any, ...]:
    """Returns what the feeds of `build_levels` take: beside the forest, its leaves, its inner nodes by level, and
    where in them each level begins and the last one ends."""
    groups = data.levels(data.heights(forest), np.flatnonzero(~forest.is_leaf))
    starts = np.cumsum([0, *(len(group) for group in groups)]).astype(np.int32)
    inner = np.concatenate([*groups, []]).astype(np.int32)
    return *net.feed_values(forest), np.flatnonzero(forest.is_leaf).astype(np.int32), inner, starts


def build_levels(net: NetGraph) -> tf.Tensor:
    """Adds the loop over levels: the summed loss when training, else all nodes' probabilities `[n, 2]`."""
    forest = net.forest
    leaves, inner, starts = (tf1.placeholder(tf.int32, [None], name) for name in ("leaves", "inner", "starts"))
    net.feeds += [leaves, inner, starts]
    states = net.leaf(net.word_vectors(tf.gather(forest.words, leaves)))
    empty = _state_arrays(net, tf.size(forest.words), [])
    arrays = tuple(array.scatter(leaves, state) for array, state in zip(empty, states, strict=True))

    def step(level: tf.Tensor, *arrays: tf.TensorArray) -> tuple[Any, ...]:
        nodes = inner[starts[level] : starts[level + 1]]
        left, right = (tf.gather(children, nodes) for children in (forest.left, forest.right))
        states = net.inner(tuple(array.gather(left) for array in arrays), tuple(a.gather(right) for a in arrays))
        return level + 1, *(array.scatter(nodes, state) for array, state in zip(arrays, states, strict=True))

    levels = tf.size(starts) - 1
    _, *arrays = tf.while_loop(lambda level, *_: level < levels, step, (tf.constant(0), *arrays))
    return net.result(arrays[0].stack())
