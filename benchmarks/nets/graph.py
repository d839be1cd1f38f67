"""A net in a graph: placeholders, variables, cells and the training step, which all TensorFlow methods share."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.nets import weights
from benchmarks.nets.weights import Training, Weights
from benchmarks.treebank import Forest

tf1 = tf.compat.v1

State = tuple[tf.Tensor, ...]  # of a node, or of k nodes: h `[k, d]`, and c `[k, d]` if the net has cells


class NetGraph:
    """Variables and placeholders for one net in the default graph, and what a node computes.

    A method adds its part, which ends in all nodes' summed loss (`training` given) or all nodes' class probabilities.

    Attributes:
      forest: a `Forest` of placeholders.
      feeds: the placeholders that a step is fed, in the order of `feed_values(forest)`; a method may add its own.
      variables: the weights' variables by name.
      dim, state_size: d, and how many tensors a node's state is.
    """

    def __init__(self, net: str, start: Weights, training: Training | None) -> None:
        self.net, self.training = net, training
        self.dim = start["embeddings"].shape[1]
        self.state_size = 1 if net in weights.TREERNNS else 2
        self.forest = _forest_placeholders()
        self.feeds = [getattr(self.forest, name) for name in _fed_names(training)]
        self._assignments: list[tuple[tf.Operation, tf.Tensor, np.ndarray]] = []
        self.variables = {name: self._variable(name, value) for name, value in start.items()}
        # Read once, outside of loops and functions. The embeddings are gathered through their variable when they are
        # trained: reading all of them would copy the table at every step that has updated rows.
        self._values = {
            name: variable.read_value()
            for name, variable in self.variables.items()
            if name != "embeddings" or training is None
        }
        self._embeddings = self._values.get("embeddings", self.variables["embeddings"])

    def feed_values(self, forest: Forest) -> tuple[Any, ...]:
        """Returns what `feeds` as made here take for `forest`."""
        return tuple(getattr(forest, name) for name in _fed_names(self.training))

    def initialize(self, session: tf.compat.v1.Session) -> None:
        """Puts the weights into the variables of `session`, and the optimizer's into their initial state."""
        own = {id(variable) for variable in self.variables.values()}
        others = [variable for variable in tf1.global_variables() if id(variable) not in own]
        feeds = {placeholder: value for _, placeholder, value in self._assignments}
        session.run([assign for assign, _, _ in self._assignments], feeds)
        session.run(tf1.variables_initializer(others))

    # --- What a node computes ---

    def word_vectors(self, words: tf.Tensor) -> tf.Tensor:
        """The embeddings `[k, d]` of words `[k]`."""
        return tf.gather(self._embeddings, words)

    def leaf(self, x: tf.Tensor) -> State:
        """The states of leaves from their words' embeddings `[k, d]`."""
        if self.net in weights.TREERNNS:
            return (x,)
        c, o = tf.split(self._dense("leaf", x), 2, axis=1)
        return tf.sigmoid(o) * tf.tanh(c), c

    def inner(self, left: State, right: State) -> State:
        """The states of inner nodes from their children's."""
        z = self._dense("inner", tf.concat([left[0], right[0]], axis=1))
        if self.net in weights.TREERNNS:
            return (tf.tanh(z) if self.net == weights.TREERNN5 else tf.nn.relu(z),)
        gates, u = tf.split(z, [4 * self.dim, self.dim], axis=1)
        i, fl, fr, o = tf.split(tf.sigmoid(gates), 4, axis=1)
        c = i * tf.tanh(u) + fl * left[1] + fr * right[1]
        return o * tf.tanh(c), c

    def child(self, side: str, x: tf.Tensor, h: tf.Tensor, c: tf.Tensor) -> State:
        """Top-down: the states of "left" or "right" children from their embeddings and their parents' h and c."""
        gates, u = tf.split(self._dense(side, tf.concat([x, h], axis=1)), [3 * self.dim, self.dim], axis=1)
        i, f, o = tf.split(tf.sigmoid(gates), 3, axis=1)
        c = i * tf.tanh(u) + f * c
        return o * tf.tanh(c), c

    def losses(self, h: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        """The cross entropies `[k]` of nodes from their vectors `[k, d]` and labels `[k]`."""
        return _cross_entropies(self.logits(h), labels)

    def probabilities(self, h: tf.Tensor) -> tf.Tensor:
        """The class probabilities `[k, 2]` of nodes from their vectors `[k, d]`."""
        return tf.nn.softmax(self.logits(h))

    def logits(self, h: tf.Tensor) -> tf.Tensor:
        """The logits `[k, classes]` of nodes from their vectors `[k, d]`."""
        return self._dense("classes", h)

    def result(self, h: tf.Tensor) -> tf.Tensor:
        """What a method ends in when it has all nodes' vectors `[n, d]` at once."""
        return self.probabilities(h) if self.training is None else self.summed_loss(self.logits(h))

    def summed_loss(self, logits: tf.Tensor) -> tf.Tensor:
        """The loss from all nodes' logits `[n, classes]` at once, before the weights' part and the mean over trees."""
        return tf.reduce_sum(_cross_entropies(logits, self.forest.labels))

    def _dense(self, name: str, x: tf.Tensor) -> tf.Tensor:
        return tf.nn.bias_add(tf.matmul(x, self._values[name]), self._values[f"{name}_bias"])

    # --- Training ---

    def step(self, summed_loss: tf.Tensor, optimizer: tf.compat.v1.train.Optimizer | None = None) -> tf.Tensor:
        """Adds one training step; returns the batch's loss before it, which is there when the step is done."""
        if self.training is None:
            raise ValueError("the net is made for inference")
        trees = tf.cast(tf.size(self.forest.roots), tf.float32)
        matrices = [self._values[name] for name in weights.regularized(self.variables)]
        loss = tf.reshape(summed_loss, []) / trees + self.training.l2 * tf.add_n([tf.nn.l2_loss(m) for m in matrices])
        optimizer = optimizer or make_optimizer(self.training)
        with tf.control_dependencies([optimizer.minimize(loss, var_list=list(self.variables.values()))]):
            return tf.identity(loss)

    def _variable(self, name: str, value: np.ndarray) -> tf.Variable:
        # Fed, not constants: the graph does not grow with the vocabulary.
        variable = tf1.get_variable(name, value.shape, tf.float32, use_resource=True)
        placeholder = tf1.placeholder(tf.float32, value.shape, f"{name}_start")
        self._assignments.append((variable.assign(placeholder, read_value=False), placeholder, value))
        return variable


def _cross_entropies(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)


def make_optimizer(training: Training) -> tf.compat.v1.train.Optimizer:
    """Returns the tf1 optimizer that `training` names."""
    if training.optimizer == "adam":
        return tf1.train.AdamOptimizer(
            training.rate, weights.ADAM_BETA1, weights.ADAM_BETA2, epsilon=weights.ADAM_EPSILON
        )
    if training.optimizer == "adagrad":
        return tf1.train.AdagradOptimizer(training.rate, initial_accumulator_value=weights.ADAGRAD_START)
    return tf1.train.GradientDescentOptimizer(training.rate)


def _fed_names(training: Training | None) -> Sequence[str]:
    names = [field.name for field in dataclasses.fields(Forest)]
    return [name for name in names if name != "labels" or training is not None]


def _forest_placeholders() -> Forest:
    dtypes = {"is_leaf": tf.bool}
    return Forest(
        *(tf1.placeholder(dtypes.get(field.name, tf.int32), [None], field.name) for field in dataclasses.fields(Forest))
    )


@contextlib.contextmanager
def control_flow(v1: bool) -> Iterator[None]:
    """Builds conditions and loops by control flow v1 or v2 for a while; the switch is the process's."""
    before = tf1.control_flow_v2_enabled()
    (tf1.disable_control_flow_v2 if v1 else tf1.enable_control_flow_v2)()
    try:
        yield
    finally:
        (tf1.enable_control_flow_v2 if before else tf1.disable_control_flow_v2)()
