"""Static unrolling: a graph for every tree, as one writes where a graph cannot recurse or branch.

Python walks the batch and adds one node's operators after another; nothing is left to decide when it runs. Batches of
the same shape share a subgraph (words and labels are fed), and all of them share the variables. Making and preparing a
subgraph happens at the first batch of its shape, and is counted apart from running it.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from benchmarks.nets import graph
from benchmarks.nets.graph import NetGraph, State
from benchmarks.nets.weights import Training, Weights
from benchmarks.treebank import Forest

tf1 = tf.compat.v1


class UnrolledRunner:
    """Trains or runs a net over batches, each by the subgraph of its shape.

    Attributes:
      subgraphs: how many have been made.
      build_seconds: what making them in Python and running each for the first time has taken.
    """

    def __init__(self, net: str, start: Weights, training: Training | None, config: tf.compat.v1.ConfigProto) -> None:
        self._graph = tf.Graph()
        with self._graph.as_default():
            self._net = NetGraph(net, start, training)
            self._optimizer = graph.make_optimizer(training) if training is not None else None
        self._session = tf1.Session(graph=self._graph, config=config)
        self._callables: dict[bytes, Callable[..., list[Any]]] = {}
        self.build_seconds = 0.0

    @property
    def subgraphs(self) -> int:
        return len(self._callables)

    def __call__(self, forest: Forest) -> list[Any]:
        key = forest.left.tobytes() + forest.right.tobytes() + forest.roots.tobytes()
        values = (forest.words, forest.roots, *((forest.labels,) if self._net.training is not None else ()))
        run = self._callables.get(key)
        if run is not None:
            return run(*values)
        start = time.perf_counter()
        first = not self._callables
        self._callables[key] = self._make_callable(forest, first)
        result = self._callables[key](*values)
        self.build_seconds += time.perf_counter() - start
        return result

    def close(self) -> None:
        self._callables.clear()
        self._session.close()

    def _make_callable(self, forest: Forest, first: bool) -> Callable[..., list[Any]]:
        feeds: list[tf.Tensor] = [self._net.forest.words, self._net.forest.roots]
        with self._graph.as_default():
            fetch = build(self._net, forest)
            if self._optimizer is not None:
                fetch = self._net.step(fetch, self._optimizer)
                feeds.append(self._net.forest.labels)
            if first:
                self._net.initialize(self._session)  # the optimizer's variables are those of its first use
        options = config_pb2.CallableOptions(feed=[feed.name for feed in feeds], fetch=[fetch.name])
        run: Callable[..., list[Any]] = self._session._make_callable_from_options(options)
        return run


def build(net: NetGraph, forest: Forest) -> tf.Tensor:
    """Adds the net for batches shaped as `forest`: the summed loss when training, else the probabilities `[n, 2]`."""
    leaves = [node for node in range(len(forest)) if forest.is_leaf[node]]
    rows = [tf.split(part, len(leaves)) for part in net.leaf(net.word_vectors(tf.gather(net.forest.words, leaves)))]
    states: dict[int, State] = dict(zip(leaves, zip(*rows, strict=True), strict=True))
    for node in range(len(forest)):
        if not forest.is_leaf[node]:
            states[node] = net.inner(states[forest.left[node]], states[forest.right[node]])
    return net.result(tf.concat([states[node][0] for node in range(len(forest))], axis=0))
