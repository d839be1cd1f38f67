"""The nets in PyTorch, a level at a time: what a user vectorizes by hand where recursion in Python is too slow.

All nodes of one height (top-down: of one depth) in all trees of a batch are computed together. Which rows a level reads
is found out when a batch is prepared, which is not timed. Between levels only those rows are carried on that a later
level reads: going up, the states of nodes whose parent is still to come, and a leaf joins them in its parent's level.
Both children of all nodes of a level are fetched by one `index_select`.

Torch works on as many threads as it takes by default, as TensorFlow's methods do.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import torch

from benchmarks.nets import data, weights
from benchmarks.nets.pytorch import DEFAULT_THREADS, State, TorchRunner
from benchmarks.treebank import Forest


@dataclasses.dataclass(frozen=True)
class Level:
    """One step of a net.

    Going up, a step reads the rows that are carried on from the levels before it and, behind them, the states of as
    many leaves as `leaves` says. Among these, `children` are the rows of the children, left and right in turn, and
    `kept` the rows that are carried on further, before the level's own.

    Going down, `children` are the rows of the parents among those of the level before. `words` are the words of the
    left children, then those of the right ones.
    """

    children: torch.Tensor
    leaves: int = 0
    kept: torch.Tensor | None = None  # None: all rows that are there are the children
    words: torch.Tensor | None = None


class Batch:
    """A forest by levels. `order` says of each node which row of the logits is its own."""

    def __init__(self, forest: Forest, top_down: bool) -> None:
        self.num_trees = len(forest.roots)
        nodes, self.words, self.levels = _levels_down(forest) if top_down else _levels_up(forest)
        self.labels = torch.from_numpy(forest.labels[nodes].astype(np.int64))
        order = np.empty(len(forest), np.int64)
        order[nodes] = np.arange(len(forest))
        self.order = torch.from_numpy(order)


def _levels_up(forest: Forest) -> tuple[np.ndarray, torch.Tensor, list[Level]]:
    """The nodes in the order in which they are computed, the leaves' words in theirs, and the levels."""
    groups = data.levels(data.heights(forest), np.flatnonzero(~forest.is_leaf))
    roots = set(forest.roots.tolist())
    waiting: list[int] = []
    leaves: list[int] = []
    levels = []
    for group in groups:
        children = [int(child) for pair in zip(forest.left[group], forest.right[group], strict=True) for child in pair]
        joining = [child for child in children if forest.is_leaf[child]]
        rows = {node: row for row, node in enumerate([*waiting, *joining])}
        done = roots.union(children)
        kept = [node for node in waiting if node not in done]
        levels.append(
            Level(
                _indices([rows[child] for child in children]),
                len(joining),
                _indices([rows[node] for node in kept]) if kept else None,
            )
        )
        leaves += joining
        waiting = [*kept, *(int(node) for node in group)]
    leaves += [int(root) for root in forest.roots if forest.is_leaf[root]]
    nodes = np.concatenate([np.array(leaves, np.int64), *groups])
    return nodes, _indices(forest.words[leaves]), levels


def _levels_down(forest: Forest) -> tuple[np.ndarray, torch.Tensor, list[Level]]:
    """The nodes in the order in which they are computed, no words before the first level, and the levels."""
    nodes = [forest.roots.astype(np.int64)]
    levels: list[Level] = []
    while True:
        is_parent = ~forest.is_leaf[nodes[-1]]
        parents = nodes[-1][is_parent]
        if not len(parents):
            return np.concatenate(nodes), _indices([]), levels
        nodes.append(np.concatenate([forest.left[parents], forest.right[parents]]).astype(np.int64))
        levels.append(Level(_indices(np.flatnonzero(is_parent)), words=_indices(forest.words[nodes[-1]])))


def _indices(numbers: Sequence[int] | np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.asarray(numbers, np.int64))


class LevelsRunner(TorchRunner):
    """A level at a time."""

    num_threads = DEFAULT_THREADS

    def _logits(self, batch: Batch) -> torch.Tensor:
        vectors = self._down(batch) if self._net == weights.TOPDOWN else self._up(batch)
        return self._dense("classes", torch.cat(vectors))

    def _in_node_order(self, values: torch.Tensor, batch: Batch) -> torch.Tensor:
        return values.index_select(0, batch.order)

    def _up(self, batch: Batch) -> list[torch.Tensor]:
        leaves = self._leaf(self._embeddings(batch.words))
        vectors = [leaves[0]]
        sizes = [level.leaves for level in batch.levels]
        sizes.append(len(batch.words) - sum(sizes))  # roots that are leaves
        joining = list(zip(*(part.split(sizes) for part in leaves), strict=True))
        waiting: State | None = None
        for level, of_leaves in zip(batch.levels, joining[:-1], strict=True):
            rows = of_leaves if waiting is None else _join(waiting, of_leaves)
            state = self._level_up(level, rows)
            vectors.append(state[0])
            waiting = state if level.kept is None else _join(_select(rows, level.kept), state)
        return vectors

    def _level_up(self, level: Level, rows: State) -> State:
        h, *cells = (part.view(-1, 2 * self._dim) for part in _select(rows, level.children))
        left_c, right_c = cells[0].split(self._dim, 1) if cells else (None, None)
        return self._inner(h, left_c, right_c)

    def _down(self, batch: Batch) -> list[torch.Tensor]:
        zero = torch.zeros(batch.num_trees, self._dim)
        state: State = (zero, zero)
        vectors = [zero]
        for level in batch.levels:
            assert level.words is not None  # every level down has them
            h, c = _select(state, level.children)
            left, right = self._embeddings(level.words).chunk(2)
            state = _join(self._child("left", left, h, c), self._child("right", right, h, c))
            vectors.append(state[0])
        return vectors


def _select(rows: State, indices: torch.Tensor) -> State:
    return tuple(part.index_select(0, indices) for part in rows)


def _join(first: State, second: State) -> State:
    return tuple(torch.cat(parts) for parts in zip(first, second, strict=True))
