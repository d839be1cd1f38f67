"""The nets in PyTorch, by recursion in Python over eager operations. Needs torch, which is optional.

What can be taken out of the recursion is: one lookup fetches a batch's embeddings, one classifier takes all nodes.
Torch works on one thread: a node's operators are too small for more, which made it slower. `TorchRunner` is what this
method shares with that of `pytorch_levels`.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import abc
import sys
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch.nn import functional

from benchmarks.nets import weights
from benchmarks.nets.weights import Training, Weights
from benchmarks.treebank import Forest

Node: TypeAlias = "tuple[int, Node | None, Node | None]"  # place in the batch, children; none at leaves
State = tuple[torch.Tensor, ...]

VERSION = torch.__version__
DEFAULT_THREADS = torch.get_num_threads()  # before any runner asks for other ones

sys.setrecursionlimit(max(sys.getrecursionlimit(), 10_000))


class TorchBatch(Protocol):
    """Some trees, as a method wants them; made before anything is timed."""

    labels: torch.Tensor  # in the order of the method's logits
    num_trees: int


class Batch:
    """A forest as nested Python tuples and tensors; made before anything is timed."""

    def __init__(self, forest: Forest, top_down: bool) -> None:
        nodes: list[Node] = []
        for place in range(len(forest)):
            leaf = forest.is_leaf[place]
            left, right = (None, None) if leaf else (nodes[forest.left[place]], nodes[forest.right[place]])
            nodes.append((place, left, right))
        self.roots = [nodes[root] for root in forest.roots]
        self.num_trees = len(self.roots)
        looked_up = np.arange(len(forest)) if top_down else np.flatnonzero(forest.is_leaf)
        self.places = looked_up.tolist()
        self.words = torch.from_numpy(forest.words[looked_up].astype(np.int64))
        self.labels = torch.from_numpy(forest.labels.astype(np.int64))


class TorchRunner(abc.ABC):
    """Trains or runs a net over batches: a call returns `[loss]`, or `[probabilities]` of all nodes `[n, 2]`."""

    num_threads = 1

    def __init__(self, net: str, start: Weights, training: Training | None) -> None:
        self._net, self._training = net, training
        torch.set_flush_denormal(True)  # as TensorFlow does
        torch.sparse.check_sparse_tensor_invariants.disable()  # the default, which warns unless it is stated
        self._weights = {name: torch.tensor(value) for name, value in start.items()}
        self._dim, self._steps = start["embeddings"].shape[1], 0
        if training is not None:
            for weight in self._weights.values():
                weight.requires_grad_(True)
            self._optimizer = _make_optimizer(training, self._weights)
            self._matrices = [self._weights[name] for name in weights.regularized(start)]

    @abc.abstractmethod
    def _logits(self, batch: Any) -> torch.Tensor:
        """The logits of all nodes, in the order of the batch's labels."""

    def _in_node_order(self, values: torch.Tensor, batch: Any) -> torch.Tensor:
        """Rows in the order of the logits, in that of the nodes."""
        return values

    def __call__(self, batch: TorchBatch) -> list[Any]:
        torch.set_num_threads(self.num_threads)  # the process's: another method's runner may have another
        if self._training is None:
            with torch.inference_mode():
                return [self._in_node_order(functional.softmax(self._logits(batch), 1), batch).numpy()]
        self._optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(self._logits(batch), batch.labels, reduction="sum") / batch.num_trees
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

    def _embeddings(self, words: torch.Tensor) -> torch.Tensor:
        # Only Adam needs the embeddings' gradient dense: it updates every row.
        sparse = self._training is not None and self._training.optimizer != "adam"
        return functional.embedding(words, self._weights["embeddings"], sparse=sparse)

    def _leaf(self, x: torch.Tensor) -> State:
        """The leaves' states, from their words' embeddings `[k, d]`."""
        if self._net in weights.TREERNNS:
            return (x,)
        c, o = self._dense("leaf", x).split(self._dim, 1)
        return o.sigmoid() * c.tanh(), c

    def _inner(self, h: torch.Tensor, left_c: torch.Tensor | None, right_c: torch.Tensor | None) -> State:
        """The inner nodes' states, from their children's: both h side by side `[k, 2d]`, and the cells if there are."""
        z = self._dense("inner", h)
        if left_c is None or right_c is None:
            return (z.tanh() if self._net == weights.TREERNN5 else z.relu(),)
        gates, u = z.split([4 * self._dim, self._dim], 1)
        i, fl, fr, o = gates.sigmoid().split(self._dim, 1)
        c = i * u.tanh() + fl * left_c + fr * right_c
        return o * c.tanh(), c

    def _child(self, side: str, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> State:
        """Top-down: the states of "left" or "right" children from their embeddings and their parents' h and c."""
        gates, u = self._dense(side, torch.cat([x, h], 1)).split([3 * self._dim, self._dim], 1)
        i, f, o = gates.sigmoid().split(self._dim, 1)
        child_c = i * u.tanh() + f * c
        return o * child_c.tanh(), child_c

    def _dense(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self._weights[f"{name}_bias"], x, self._weights[name])


class RecursionRunner(TorchRunner):
    """Runs the net by recursion over the nodes, one call a node."""

    def _logits(self, batch: Batch) -> torch.Tensor:
        rows = self._embeddings(batch.words)
        vectors: list[torch.Tensor] = [None] * len(batch.labels)
        if self._net == weights.TOPDOWN:
            words = dict(zip(batch.places, rows.split(1), strict=True))
            zero = torch.zeros(1, self._dim)
            for root in batch.roots:
                self._down(root, words, vectors, zero, zero)
        else:
            parts = [part.split(1) for part in self._leaf(rows)]
            leaves = dict(zip(batch.places, zip(*parts, strict=True), strict=True))
            for root in batch.roots:
                self._up(root, leaves, vectors)
        return self._dense("classes", torch.cat(vectors))

    def _up(self, node: Node, leaves: dict[int, State], vectors: list[torch.Tensor]) -> State:
        place, left, right = node
        if left is None or right is None:
            state = leaves[place]
        else:
            of_left, of_right = self._up(left, leaves, vectors), self._up(right, leaves, vectors)
            cells = (of_left[1], of_right[1]) if len(of_left) == 2 else (None, None)
            state = self._inner(torch.cat([of_left[0], of_right[0]], 1), *cells)
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
            self._down(child, words, vectors, *self._child(side, words[child[0]], h, c))


def _make_optimizer(training: Training, values: dict[str, torch.Tensor]) -> torch.optim.Optimizer:
    parameters = list(values.values())
    if training.optimizer == "adam":
        betas = (weights.ADAM_BETA1, weights.ADAM_BETA2)
        return torch.optim.Adam(parameters, training.rate, betas, weights.ADAM_EPSILON)
    if training.optimizer == "adagrad":
        return torch.optim.Adagrad(parameters, training.rate, initial_accumulator_value=weights.ADAGRAD_START)
    return torch.optim.SGD(parameters, training.rate)
