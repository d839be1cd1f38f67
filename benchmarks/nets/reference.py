"""The nets in numpy, with gradients and optimizers by hand in float64: what every method is checked against."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import abc
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.nets import data, weights
from benchmarks.nets.weights import Training, Weights
from benchmarks.treebank import Forest

Array: TypeAlias = npt.NDArray[Any]


def probabilities(net: str, start: Weights, forest: Forest) -> Array:
    """Returns the class probabilities of all nodes, `[n, 2]`."""
    model = _MODELS[net](_in_float64(start), forest)
    return _softmax(model.logits())


def loss_and_gradients(net: str, values: Weights, forest: Forest, l2: float) -> tuple[float, Weights]:
    """Returns the loss of a batch and its gradient by every weight, dense."""
    values = _in_float64(values)
    model = _MODELS[net](values, forest)
    logits, trees = model.logits(), len(forest.roots)
    every = np.arange(len(forest))
    loss = (np.logaddexp.reduce(logits, axis=1) - logits[every, forest.labels]).sum() / trees
    classes = _softmax(logits)
    classes[every, forest.labels] -= 1.0
    gradients = {name: np.zeros_like(value) for name, value in values.items()}
    model.backward(classes / trees, gradients)
    for name in weights.regularized(values):
        loss += l2 / 2 * np.square(values[name]).sum()
        gradients[name] += l2 * values[name]
    return float(loss), gradients


def losses(net: str, start: Weights, batches: Iterable[Forest], training: Training) -> list[float]:
    """Returns the losses of consecutive training steps, each before its update."""
    values, result = _in_float64(start), []
    slots: Weights = {}
    for step, forest in enumerate(batches, start=1):
        loss, gradients = loss_and_gradients(net, values, forest, training.l2)
        result.append(loss)
        for name in values:
            values[name] = values[name] - _update(slots, name, gradients[name], step, training)
    return result


def _in_float64(values: Weights) -> Weights:
    return {name: value.astype(np.float64) for name, value in values.items()}


def _update(slots: dict[str, Array], name: str, gradient: Array, step: int, training: Training) -> Array:
    """What is subtracted from a weight; keeps the optimizer's state in `slots`."""
    square = gradient * gradient
    step_size: Array
    if training.optimizer == "sgd":
        step_size = training.rate * gradient
        return step_size
    if training.optimizer == "adagrad":
        slots[name] = slots.get(name, weights.ADAGRAD_START) + square
        step_size = training.rate * gradient / np.sqrt(slots[name])
        return step_size
    beta1, beta2 = weights.ADAM_BETA1, weights.ADAM_BETA2
    first = slots[f"{name}/m"] = beta1 * slots.get(f"{name}/m", 0.0) + (1 - beta1) * gradient
    second = slots[f"{name}/v"] = beta2 * slots.get(f"{name}/v", 0.0) + (1 - beta2) * square
    rate = training.rate * np.sqrt(1 - beta2**step) / (1 - beta1**step)
    step_size = rate * first / (np.sqrt(second) + weights.ADAM_EPSILON)
    return step_size


def _softmax(logits: Array) -> Array:
    exponents: Array = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Array = exponents / exponents.sum(axis=1, keepdims=True)
    return shares


def _sigmoid(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


class _Model(abc.ABC):
    """A net that has run forward over one forest: `h` holds all nodes' vectors `[n, d]`."""

    def __init__(self, values: Weights, forest: Forest) -> None:
        self.values, self.forest = values, forest
        self.leaves = np.flatnonzero(forest.is_leaf)
        self.h = np.zeros((len(forest), values["embeddings"].shape[1]))
        self.c = np.zeros_like(self.h)
        self.forward()

    @abc.abstractmethod
    def forward(self) -> None:
        """Fills in `h`, and `c` if the net has cells."""

    @abc.abstractmethod
    def backward_nodes(self, dh: Array, gradients: Weights) -> None:
        """Adds the gradients of everything but the classifier.

        `dh` is the gradient `[n, d]` for all nodes' vectors that comes from the classifier; it is overwritten.
        """

    def logits(self) -> Array:
        return self._dense("classes", self.h)

    def backward(self, dlogits: Array, gradients: Weights) -> None:
        self.backward_nodes(self._dense_backward("classes", self.h, dlogits, gradients), gradients)

    def word_vectors(self, nodes: Array) -> Array:
        vectors: Array = self.values["embeddings"][self.forest.words[nodes]]
        return vectors

    def word_gradients(self, nodes: Array, dx: Array, gradients: Weights) -> None:
        np.add.at(gradients["embeddings"], self.forest.words[nodes], dx)

    def children(self, nodes: Array) -> tuple[Array, Array]:
        return self.forest.left[nodes], self.forest.right[nodes]

    def _dense(self, name: str, x: Array) -> Array:
        z: Array = x @ self.values[name] + self.values[f"{name}_bias"]
        return z

    def _dense_backward(self, name: str, x: Array, dz: Array, gradients: Weights) -> Array:
        gradients[name] += x.T @ dz
        gradients[f"{name}_bias"] += dz.sum(axis=0)
        dx: Array = dz @ self.values[name].T
        return dx


class _TreeRNN(_Model):
    @staticmethod
    def activate(z: Array) -> Array:
        h: Array = np.maximum(z, 0.0)
        return h

    @staticmethod
    def slope(h: Array) -> Array:
        """Derivative of the activation by its argument, from its value."""
        is_active: Array = h > 0
        return is_active

    def forward(self) -> None:
        self.h[self.leaves] = self.word_vectors(self.leaves)
        self.levels = data.levels(data.heights(self.forest), np.flatnonzero(~self.forest.is_leaf))
        for nodes in self.levels:
            self.h[nodes] = self.activate(self._dense("inner", self._inputs(nodes)))

    def backward_nodes(self, dh: Array, gradients: Weights) -> None:
        for nodes in reversed(self.levels):
            dz = dh[nodes] * self.slope(self.h[nodes])
            dleft, dright = np.split(self._dense_backward("inner", self._inputs(nodes), dz, gradients), 2, axis=1)
            left, right = self.children(nodes)
            dh[left] += dleft
            dh[right] += dright
        self.word_gradients(self.leaves, dh[self.leaves], gradients)

    def _inputs(self, nodes: Array) -> Array:
        left, right = self.children(nodes)
        return np.concatenate([self.h[left], self.h[right]], axis=1)


class _TreeRNN5(_TreeRNN):
    @staticmethod
    def activate(z: Array) -> Array:
        h: Array = np.tanh(z)
        return h

    @staticmethod
    def slope(h: Array) -> Array:
        slope: Array = 1 - h * h
        return slope


class _TreeLSTM(_TreeRNN):
    def forward(self) -> None:
        c, o = np.split(self._dense("leaf", self.word_vectors(self.leaves)), 2, axis=1)
        self.c[self.leaves], self.h[self.leaves] = c, _sigmoid(o) * np.tanh(c)
        self.levels = data.levels(data.heights(self.forest), np.flatnonzero(~self.forest.is_leaf))
        for nodes in self.levels:
            left, right = self.children(nodes)
            i, fl, fr, o, u = self._gates(nodes)
            self.c[nodes] = i * u + fl * self.c[left] + fr * self.c[right]
            self.h[nodes] = o * np.tanh(self.c[nodes])

    def backward_nodes(self, dh: Array, gradients: Weights) -> None:
        dc = np.zeros_like(dh)
        for nodes in reversed(self.levels):
            left, right = self.children(nodes)
            i, fl, fr, o, u = self._gates(nodes)
            tanh_c = np.tanh(self.c[nodes])
            down = dc[nodes] + dh[nodes] * o * (1 - tanh_c**2)
            dz = np.concatenate(
                [
                    down * u * i * (1 - i),
                    down * self.c[left] * fl * (1 - fl),
                    down * self.c[right] * fr * (1 - fr),
                    dh[nodes] * tanh_c * o * (1 - o),
                    down * i * (1 - u**2),
                ],
                axis=1,
            )
            dleft, dright = np.split(self._dense_backward("inner", self._inputs(nodes), dz, gradients), 2, axis=1)
            dh[left] += dleft
            dh[right] += dright
            dc[left] += down * fl
            dc[right] += down * fr
        x = self.word_vectors(self.leaves)
        o = _sigmoid(np.split(self._dense("leaf", x), 2, axis=1)[1])
        tanh_c, dleaf = np.tanh(self.c[self.leaves]), dh[self.leaves]
        dz = np.concatenate([dc[self.leaves] + dleaf * o * (1 - tanh_c**2), dleaf * tanh_c * o * (1 - o)], axis=1)
        self.word_gradients(self.leaves, self._dense_backward("leaf", x, dz, gradients), gradients)

    def _gates(self, nodes: Array) -> list[Array]:
        *gates, u = np.split(self._dense("inner", self._inputs(nodes)), 5, axis=1)
        return [*(_sigmoid(gate) for gate in gates), np.tanh(u)]


class _TopDownLSTM(_Model):
    def forward(self) -> None:
        self.levels = data.levels(data.depths(self.forest), np.flatnonzero(~self.forest.is_leaf))
        for parents in self.levels:
            for side, children in zip(("left", "right"), self.children(parents), strict=True):
                i, f, o, u = self._gates(side, parents, children)
                self.c[children] = i * u + f * self.c[parents]
                self.h[children] = o * np.tanh(self.c[children])

    def backward_nodes(self, dh: Array, gradients: Weights) -> None:
        dc = np.zeros_like(dh)
        for parents in reversed(self.levels):
            for side, children in zip(("left", "right"), self.children(parents), strict=True):
                i, f, o, u = self._gates(side, parents, children)
                tanh_c = np.tanh(self.c[children])
                down = dc[children] + dh[children] * o * (1 - tanh_c**2)
                dz = np.concatenate(
                    [
                        down * u * i * (1 - i),
                        down * self.c[parents] * f * (1 - f),
                        dh[children] * tanh_c * o * (1 - o),
                        down * i * (1 - u**2),
                    ],
                    axis=1,
                )
                dinput = self._dense_backward(side, self._inputs(parents, children), dz, gradients)
                dx, dparent = np.split(dinput, 2, axis=1)
                self.word_gradients(children, dx, gradients)
                dh[parents] += dparent
                dc[parents] += down * f

    def _inputs(self, parents: Array, children: Array) -> Array:
        return np.concatenate([self.word_vectors(children), self.h[parents]], axis=1)

    def _gates(self, side: str, parents: Array, children: Array) -> list[Array]:
        *gates, u = np.split(self._dense(side, self._inputs(parents, children)), 4, axis=1)
        return [*(_sigmoid(gate) for gate in gates), np.tanh(u)]


_MODELS = {
    weights.TREERNN: _TreeRNN,
    weights.TREERNN5: _TreeRNN5,
    weights.TREELSTM: _TreeLSTM,
    weights.TOPDOWN: _TopDownLSTM,
}
