"""The nets in PyTorch, by recursion in Python over eager operations. Needs torch, which is optional.

What can be taken out of the recursion is: one lookup fetches a batch's embeddings, one classifier takes all nodes.
Torch works on one thread: a node's operators are too small for more, which made it slower.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.nn import functional

from benchmarks.nets import weights
from benchmarks.nets.weights import Training, Weights
from benchmarks.treebank import Forest

Node: TypeAlias = "tuple[int, Node | None, Node | None]"  # place in the batch, children; none at leaves
State = tuple[torch.Tensor, ...]

VERSION = torch.__version__

sys.setrecursionlimit(max(sys.getrecursionlimit(), 10_000))


class Batch:
    """A forest as nested Python tuples and tensors; made before anything is timed."""

    def __init__(self, forest: Forest, top_down: bool) -> None:
        nodes: list[Node] = []
        for place in range(len(forest)):
            leaf = forest.is_leaf[place]
            left, right = (None, None) if leaf else (nodes[forest.left[place]], nodes[forest.right[place]])
            nodes.append((place, left, right))
        self.roots = [nodes[root] for root in forest.roots]
        looked_up = np.arange(len(forest)) if top_down else np.flatnonzero(forest.is_leaf)
        self.places = looked_up.tolist()
        self.words = torch.from_numpy(forest.words[looked_up].astype(np.int64))
        self.labels = torch.from_numpy(forest.labels.astype(np.int64))


class TorchRunner:
    """Trains or runs a net over batches: a call returns `[loss]`, or `[probabilities]` of all nodes `[n, 2]`."""

    def __init__(self, net: str, start: Weights, training: Training | None) -> None:
        self._net, self._training = net, training
        torch.set_num_threads(1)
        torch.set_flush_denormal(True)  # as TensorFlow does
        torch.sparse.check_sparse_tensor_invariants.disable()  # the default, which warns unless it is stated
        self._weights = {name: torch.tensor(value) for name, value in start.items()}
        self._dim, self._steps = start["embeddings"].shape[1], 0
        if training is not None:
            for weight in self._weights.values():
                weight.requires_grad_(True)
            self._optimizer = _make_optimizer(training, self._weights)
            self._matrices = [self._weights[name] for name in weights.regularized(start)]

    def __call__(self, batch: Batch) -> list[Any]:
        if self._training is None:
            with torch.inference_mode():
                return [functional.softmax(self._logits(batch), 1).numpy()]
        self._optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(self._logits(batch), batch.labels, reduction="sum") / len(batch.roots)
        for matrix in self._matrices:
            loss = loss + self._training.l2 / 2 * matrix.square().sum()
        loss.backward()
        self._match_epsilon(self._training)
        self._optimizer.step()
        return [loss.item()]

    def close(self) -> None:
        self._weights.clear()

    def _match_epsilon(self, training: Training) -> None:
        """Sets Adam's epsilon to TensorFlow's, which is added before the bias of the second moment is corrected."""
        if training.optimizer == "adam":
            self._steps += 1
            correction = (1 - weights.ADAM_BETA2**self._steps) ** 0.5
            self._optimizer.param_groups[0]["eps"] = weights.ADAM_EPSILON / correction

    def _logits(self, batch: Batch) -> torch.Tensor:
        # Only Adam needs the embeddings' gradient dense: it updates every row.
        sparse = self._training is not None and self._training.optimizer != "adam"
        rows = functional.embedding(batch.words, self._weights["embeddings"], sparse=sparse)
        vectors: list[torch.Tensor] = [None] * len(batch.labels)
        if self._net == weights.TOPDOWN:
            words = dict(zip(batch.places, rows.split(1), strict=True))
            zero = torch.zeros(1, self._dim)
            for root in batch.roots:
                self._down(root, words, vectors, zero, zero)
        else:
            leaves = dict(zip(batch.places, zip(*self._leaf(rows), strict=True), strict=True))
            for root in batch.roots:
                self._up(root, leaves, vectors)
        return self._dense("classes", torch.cat(vectors))

    def _up(self, node: Node, leaves: dict[int, State], vectors: list[torch.Tensor]) -> State:
        place, left, right = node
        if left is None or right is None:
            state = leaves[place]
        else:
            state = self._inner(self._up(left, leaves, vectors), self._up(right, leaves, vectors))
        vectors[place] = state[0]
        return state

    def _down(
        self,
        node: Node,
        words: dict[int, torch.Tensor],
        vectors: list[torch.Tensor],
        h: torch.Tensor,
        c: torch.Tensor,
    ) -> None:
        place, left, right = node
        vectors[place] = h
        if left is None or right is None:
            return
        for side, child in (("left", left), ("right", right)):
            gates, u = self._dense(side, torch.cat([words[child[0]], h], 1)).split([3 * self._dim, self._dim], 1)
            i, f, o = gates.sigmoid().split(self._dim, 1)
            child_c = i * u.tanh() + f * c
            self._down(child, words, vectors, o * child_c.tanh(), child_c)

    def _leaf(self, x: torch.Tensor) -> list[tuple[torch.Tensor, ...]]:
        """The leaves' states, each part split into rows."""
        if self._net in weights.TREERNNS:
            return [x.split(1)]
        c, o = self._dense("leaf", x).split(self._dim, 1)
        return [(o.sigmoid() * c.tanh()).split(1), c.split(1)]

    def _inner(self, left: State, right: State) -> State:
        z = self._dense("inner", torch.cat([left[0], right[0]], 1))
        if self._net in weights.TREERNNS:
            return (z.tanh() if self._net == weights.TREERNN5 else z.relu(),)
        gates, u = z.split([4 * self._dim, self._dim], 1)
        i, fl, fr, o = gates.sigmoid().split(self._dim, 1)
        c = i * u.tanh() + fl * left[1] + fr * right[1]
        return o * c.tanh(), c

    def _dense(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self._weights[f"{name}_bias"], x, self._weights[name])


def _make_optimizer(training: Training, values: dict[str, torch.Tensor]) -> torch.optim.Optimizer:
    parameters = list(values.values())
    if training.optimizer == "adam":
        betas = (weights.ADAM_BETA1, weights.ADAM_BETA2)
        return torch.optim.Adam(parameters, training.rate, betas, weights.ADAM_EPSILON)
    if training.optimizer == "adagrad":
        return torch.optim.Adagrad(parameters, training.rate, initial_accumulator_value=weights.ADAGRAD_START)
    return torch.optim.SGD(parameters, training.rate)
