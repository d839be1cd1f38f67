"""Binary sentiment trees: the reader and writer of the Stanford treebank's format, and a generated treebank.

One tree a line, every node labelled 0..4 (very negative to very positive), every leaf a word::

    (3 (2 It) (4 (2 's) (4 lovely)))

A `Tree` holds its nodes in post-order (children before their parent, the root last), so an iteration from first
to last meets every child before its parent, and a recursion starts at the last node.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import gzip
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

NUM_CLASSES = 5
NO_CHILD = -1
UNKNOWN_WORD = 0  # the id of every word outside the vocabulary

SPLITS = ("train", "dev", "test")


@dataclasses.dataclass(frozen=True)
class Tree:
    """One sentence; every tuple is indexed by node, in post-order.

    `words` is None at inner nodes, `left` and `right` are `NO_CHILD` at leaves.
    """

    labels: tuple[int, ...]
    words: tuple[str | None, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def root(self) -> int:
        return len(self.labels) - 1

    def __len__(self) -> int:
        return len(self.labels)

    def leaves(self) -> list[str]:
        """Returns the sentence, word by word, as the file spells it."""
        return [word for word in self.words if word is not None]


class _Builder:
    """Collects nodes in post-order; a node's children must have been added before it."""

    def __init__(self) -> None:
        self.labels: list[int] = []
        self.words: list[str | None] = []
        self.left: list[int] = []
        self.right: list[int] = []

    def leaf(self, label: int, word: str) -> int:
        return self._add(label, word, NO_CHILD, NO_CHILD)

    def inner(self, label: int, left: int, right: int) -> int:
        return self._add(label, None, left, right)

    def tree(self) -> Tree:
        return Tree(tuple(self.labels), tuple(self.words), tuple(self.left), tuple(self.right))

    def _add(self, label: int, word: str | None, left: int, right: int) -> int:
        self.labels.append(label)
        self.words.append(word)
        self.left.append(left)
        self.right.append(right)
        return len(self.labels) - 1


class BrokenTree(ValueError):
    """A text that is not one binary tree whose nodes are labelled 0..4; says what was found where."""


# --- Reading and writing ----------------------------------------------------------------------------------------

_TOKEN = re.compile(r"[()]|[^() \t\r]+")  # other kinds of space occur inside words ("8 1/2")


def parse_tree(text: str) -> Tree:
    """Parses one tree, without recursion, so that its depth does not matter.

    Raises:
        BrokenTree: says column, expected and found.

    Example::

        parse_tree("(3 (2 nice) (2 film))").left == (-1, -1, 0)
    """
    builder = _Builder()
    open_nodes: list[list[int | str]] = []  # per open node: its label, then its word or its children
    root: int | None = None
    for match in _TOKEN.finditer(text):
        token, column = match.group(), match.start() + 1
        if root is not None:
            raise BrokenTree(f"column {column}: expected the end of the tree, got '{token}'")
        if token == "(":
            open_nodes.append([])
        elif not open_nodes:
            raise BrokenTree(f"column {column}: expected '(', got '{token}'")
        elif token == ")":
            node = _close_node(builder, open_nodes.pop(), column)
            if open_nodes:
                open_nodes[-1].append(node)
            else:
                root = node
        elif not open_nodes[-1]:
            open_nodes[-1].append(_parse_label(token, column))
        else:
            open_nodes[-1].append(token)
    if root is None:
        missing = ")" if open_nodes else "("
        raise BrokenTree(f"column {len(text) + 1}: expected '{missing}', got the end of the line")
    return builder.tree()


def _parse_label(token: str, column: int) -> int:
    if token not in ("0", "1", "2", "3", "4"):
        raise BrokenTree(f"column {column}: expected a label 0..4, got '{token}'")
    return int(token)


def _close_node(builder: _Builder, parts: list[int | str], column: int) -> int:
    match parts:
        case [int(label), str(word)]:
            return builder.leaf(label, word)
        case [int(label), int(left), int(right)]:
            return builder.inner(label, left, right)
    raise BrokenTree(f"column {column}: expected a label with one word or with two subtrees")


def format_tree(tree: Tree) -> str:
    """Writes `tree` as `parse_tree` reads it."""
    texts: list[str] = []
    for node, (label, word) in enumerate(zip(tree.labels, tree.words, strict=True)):
        inside = word if word is not None else f"{texts[tree.left[node]]} {texts[tree.right[node]]}"
        texts.append(f"({label} {inside})")
    return texts[-1]


def read_trees(path: Path) -> list[Tree]:
    """Reads a file of one tree a line, gzipped when its name ends in `.gz`; empty lines are skipped.

    Raises:
        BrokenTree: a line is no tree; the text names file, line and column.
        OSError: the file cannot be read.
    """
    open_file = gzip.open if path.suffix == ".gz" else open
    trees = []
    with open_file(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                trees.append(parse_tree(line.rstrip("\n")))
            except BrokenTree as error:
                raise BrokenTree(f"{path}:{number}: {error}") from None
    return trees


def load_split(directory: Path, split: str) -> list[Tree]:
    """Reads `<split>.txt` or `<split>.txt.gz` of a treebank directory.

    Raises:
        FileNotFoundError: `directory` has neither file.
    """
    for name in (f"{split}.txt", f"{split}.txt.gz"):
        if (directory / name).is_file():
            return read_trees(directory / name)
    raise FileNotFoundError(f"{directory} has neither {split}.txt nor {split}.txt.gz")


# --- The generated treebank --------------------------------------------------------------------------------------

_WORDS: dict[str, Sequence[str]] = {
    "awful": ("awful", "dreadful", "unwatchable", "insulting", "worthless", "painful"),
    "bad": ("dull", "clumsy", "tired", "shallow", "forced", "bland", "messy", "predictable"),
    "good": ("funny", "warm", "clever", "lively", "tender", "fresh", "solid", "engaging"),
    "great": ("brilliant", "wonderful", "dazzling", "superb", "masterful", "unforgettable"),
    "negation": ("not", "never", "hardly", "n't"),
    "boost": ("very", "truly", "deeply", "utterly"),
    "neutral": (
        "the a an this that of in on with and but or for to from by as at its it is was has film movie story plot "
        "cast actor director scene script music camera ending picture character drama comedy thriller screen "
        "audience moment dialogue hour year hero city family love war road house night summer"
    ).split(),
}
_VALENCE = {"awful": -2, "bad": -1, "good": 1, "great": 2}
_KIND_SHARES = (("negation", 0.04), ("boost", 0.04), ("awful", 0.03), ("bad", 0.11), ("good", 0.14), ("great", 0.04))


@dataclasses.dataclass
class _Phrase:
    node: int
    score: float
    kind: str


def generate_trees(count: int, seed: int = 0) -> list[Tree]:
    """Makes `count` labelled trees, the same for the same `seed` on every platform.

    Sentence lengths, depths and label shares are near the Stanford treebank's (mean 19 words, 2 to 52, depth
    about 11, most nodes neutral). A phrase's label follows from its parts: negations flip what they precede,
    boosters strengthen it, so a net over the tree has something to learn.

    Example::

        sentence = generate_trees(1)[0].leaves()
    """
    # Only random() is used: its sequence is the one that Python promises never to change.
    draw = random.Random(seed).random
    return [_generate_tree(draw) for _ in range(count)]


def generate_split(split: str, count: int) -> list[Tree]:
    """Makes `count` trees of "train", "dev" or "test": disjoint streams of one generator."""
    return generate_trees(count, seed=1 + SPLITS.index(split))


def _generate_tree(draw: Callable[[], float]) -> Tree:
    length = min(52, max(2, round(19 + 9.5 * (draw() + draw() + draw() + draw() - 2) * 1.75)))
    builder = _Builder()
    done: list[_Phrase] = []
    todo = [length]  # phrases still to make, by number of words; 0 stands for "join the last two phrases"
    while todo:
        words = todo.pop()
        if words == 0:
            right, left = done.pop(), done.pop()
            done.append(_join(builder, left, right))
        elif words == 1:
            done.append(_make_word(builder, draw))
        else:
            # Splits near the left edge are the likelier ones, as in English.
            first = 1 + int((words - 1) * draw() ** 2.6)
            todo += [0, words - first, first]
    return builder.tree()


def _make_word(builder: _Builder, draw: Callable[[], float]) -> _Phrase:
    kind, rest = "neutral", draw()
    for name, share in _KIND_SHARES:
        if rest < share:
            kind = name
            break
        rest -= share
    choices = _WORDS[kind]
    word = choices[int(len(choices) * draw())]
    score = float(_VALENCE.get(kind, 0))
    return _Phrase(builder.leaf(_label(score), word), score, kind)


def _join(builder: _Builder, left: _Phrase, right: _Phrase) -> _Phrase:
    if left.kind == "negation":
        score = -0.75 * right.score
    elif left.kind == "boost":
        score = 1.5 * right.score
    else:
        score = max(-2.0, min(2.0, 0.8 * (left.score + right.score)))
    return _Phrase(builder.inner(_label(score), left.node, right.node), score, "phrase")


def _label(score: float) -> int:
    return int(np.clip(np.floor(score + 0.5), -2, 2)) + 2


# --- Arrays for a graph ------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Forest:
    """A batch of trees as vectors over all their n nodes, tree after tree, each in post-order: what a graph is fed.

    `words` int32 [n] (0 at inner nodes), `left` and `right` int32 [n] (positions in these vectors; 0 at leaves),
    `is_leaf` bool [n], `labels` int32 [n], `roots` int32 [trees]. There is no padding: n is what the trees have.
    """

    words: np.ndarray
    left: np.ndarray
    right: np.ndarray
    is_leaf: np.ndarray
    labels: np.ndarray
    roots: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)


def vocabulary(trees: Iterable[Tree]) -> dict[str, int]:
    """Numbers the words of `trees` from 1, the most frequent first; 0 is left for unknown words."""
    counts = Counter(word for tree in trees for word in tree.leaves())
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return {word: number for number, word in enumerate(ordered, start=UNKNOWN_WORD + 1)}


def to_forest(trees: Sequence[Tree], words: dict[str, int]) -> Forest:
    """Returns `trees` as arrays, their words numbered by `words`; unknown ones get `UNKNOWN_WORD`."""
    ends = np.cumsum([len(tree) for tree in trees])
    starts = [end - len(tree) for end, tree in zip(ends, trees, strict=True)]
    all_words = [word for tree in trees for word in tree.words]
    return Forest(
        words=np.array([0 if word is None else words.get(word, UNKNOWN_WORD) for word in all_words], np.int32),
        left=np.concatenate([_child_array(tree.left, start) for tree, start in zip(trees, starts, strict=True)]),
        right=np.concatenate([_child_array(tree.right, start) for tree, start in zip(trees, starts, strict=True)]),
        is_leaf=np.array([word is not None for word in all_words], bool),
        labels=np.array([label for tree in trees for label in tree.labels], np.int32),
        roots=(ends - 1).astype(np.int32),
    )


def _child_array(children: Sequence[int], start: int) -> np.ndarray:
    return np.array([0 if child == NO_CHILD else start + child for child in children], np.int32)
