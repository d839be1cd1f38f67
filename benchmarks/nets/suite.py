"""Training and inference of the nets by every method, as cases to measure.

A case is one net, d and batch size, and either training steps or inference. All methods start from the same weights and
are given the same batches; in training, their first 20 losses must be those of `reference` before anything is timed, in
inference every probability of every node.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import tensorflow_recursion as tfr
from benchmarks import treebank
from benchmarks.harness import (
    Case,
    GraphRunner,
    Runner,
    SessionRunner,
    Variant,
    WrongResult,
    format_seconds,
    session_config,
)
from benchmarks.nets import by_depth, data, graph, iteration, paper, recursion, reference, unrolled, weights
from benchmarks.nets.graph import NetGraph
from benchmarks.nets.weights import Training, Weights
from benchmarks.treebank import Forest, Tree

tf1 = tf.compat.v1

DIMS = {"treernn": (35, 50, 150, 300), "treelstm": (50, 300)}
BATCHES = {"treernn": (1, 5, 10, 25, 100), "treelstm": (1, 10)}
FIGURE_DIMS = (50, 300)
TREES = 50
TREES_AT_LARGE_DIM = 25
UNROLLED_TREES = 10  # every one is a graph of its own, prepared within seconds
PAPER_DIM = 35
BY_DEPTH = "static-by-depth"
WORKERS_BATCH = 25  # of the cases that compare two workers with one
WORKERS_LABEL = "-workers"
# After the other session has run, it takes some 100 ms until two workers are as fast as in a loop that trains, which
# has one session.
WORKERS_SETTLING_SECONDS = 0.15
# A machine that is slower or faster for a while changes ratios by more than what is judged. So a round is parted where
# that takes little time, which it does with batches: the slow methods take seconds with a tree at a time.
WORKERS_PARTS, BATCHES_PARTS = 3, 5
WORKERS_SAMPLE_SECONDS = 0.2  # more than 10 steps at d = 300
QUICK_DIMS = (50,)
QUICK_BATCHES = (1, 10)
QUICK_TREES = 20

CHECKED_STEPS = 20
# Of a probability, and of a loss, relative to a loss above 1. Losses are about 30: a relu at 0 that float32 rounds to
# the other side makes all of TensorFlow's methods differ from the reference by 2e-3, and much less from one another.
TOLERANCE = 1e-4
VOCABULARY_TREES = 700  # the words of the first 700 training trees have embeddings

HAS_TORCH = importlib.util.find_spec("torch") is not None
TRAINING, INFERENCE = "training", "inference"
NETS_OF_SUITE = {"treernn": (weights.TREERNN,), "treelstm": (weights.TREELSTM, weights.TOPDOWN)}


@dataclasses.dataclass(frozen=True)
class Input:
    """Trees to train with and others to run on; `source` says where they come from."""

    train: list[Tree]
    test: list[Tree]
    words: dict[str, int]
    source: str


def load_input(directory: Path | None = None) -> Input:
    """Loads the treebank in `directory`, or generates one without it; labels are of two classes."""
    if directory is None:
        train, test = (treebank.generate_split(split, VOCABULARY_TREES) for split in ("train", "test"))
    else:
        train, test = (treebank.load_split(directory, split) for split in ("train", "test"))
    words = treebank.vocabulary(train[:VOCABULARY_TREES])
    return Input(
        [data.binarize(tree) for tree in train], [data.binarize(tree) for tree in test], words, _name(directory)
    )


def load_paper_input(directory: Path | None = None) -> Input:
    """Load what `load_input` does, but the paper's selection: short sentences of clear sentiment."""
    splits = data.load_sentiment(directory)
    words = treebank.vocabulary(splits.train)
    return Input(splits.train, splits.test, words, f"{_name(directory)}, the paper's selection")


def _name(directory: Path | None) -> str:
    return "generated treebank" if directory is None else "Stanford Sentiment Treebank"


@dataclasses.dataclass(frozen=True)
class Spec:
    """What one case measures; `trees` is how many trees it takes, `paper` says whether from the paper's selection."""

    net: str
    dim: int
    batch: int
    training: Training | None
    methods: tuple[str, ...]
    trees: int
    label: str = ""
    paper: bool = False

    @property
    def mode(self) -> str:
        return INFERENCE if self.training is None else TRAINING

    @property
    def name(self) -> str:
        return f"{self.net}-{'infer' if self.training is None else 'train'}-d{self.dim}-b{self.batch}{self.label}"


def plan(
    suite: str, dims: Sequence[int], batches: Sequence[int], trees: int | None = None, infer_only: bool = False
) -> list[Spec]:
    """Returns the cases of "treernn" or "treelstm": training and inference of every net, d and batch size.

    Beside them the TreeRNN has a case that is the paper's, and for every d one of static unrolling, on few trees, and
    one of two workers against one.
    """
    trainings = (None,) if infer_only else (weights.BENCHMARK_TRAINING, None)
    specs = []
    for net, dim, training in itertools.product(NETS_OF_SUITE[suite], dims, trainings):
        count = trees or (TREES if dim < 100 else TREES_AT_LARGE_DIM)
        for batch in batches:
            specs.append(Spec(net, dim, batch, training, methods_for(net, batch), max(count, batch)))
        if net == weights.TREERNN and training is not None and WORKERS_BATCH in batches:
            trees_of_workers = max(count, WORKERS_BATCH)
            specs.append(Spec(net, dim, WORKERS_BATCH, training, _WORKER_METHODS, trees_of_workers, WORKERS_LABEL))
        if net == weights.TREERNN and 1 in batches:
            few = min(count, UNROLLED_TREES)
            specs.append(Spec(net, dim, 1, training, ("static", "unrolled"), few, "-unrolled"))
            if training is None:
                methods = ("static", "dynamic", "iteration-all-in-loop", "iteration-in-loop")
                specs.append(Spec(weights.TREERNN5, dim, 1, None, methods, count))
    if suite == "treernn" and not infer_only:
        of_paper = ("paper-form", *methods_for(weights.TREERNN, 1))
        training = weights.PAPER_TRAINING
        specs.append(Spec(weights.TREERNN, PAPER_DIM, 1, training, of_paper, trees or TREES, "-paper", paper=True))
    return specs


def make_cases(specs: Sequence[Spec], directory: Path | None, seed: int) -> Iterator[Case]:
    """Makes the cases of a plan, from the treebank in `directory` or generated trees.

    The first session of a process chooses how many threads the pool has that all sessions share. It is one with the
    default, not one whose steps run on the thread that calls.
    """
    tf1.Session(graph=tf.Graph()).close()
    load = {False: functools.cache(load_input), True: functools.cache(load_paper_input)}
    for spec in specs:
        yield make_case(spec, load[spec.paper](directory), seed)


@dataclasses.dataclass(frozen=True)
class Setting:
    """What all methods of a case have in common; `training` None means inference, `notes` become the case's.

    `on_calling_thread` says whether sessions run their steps on the thread that calls, not on one of the pool.
    """

    net: str
    batches: Sequence[Forest]
    start: Weights
    training: Training | None
    notes: list[str]
    on_calling_thread: bool = False

    @property
    def batch(self) -> int:
        return len(self.batches[0].roots)

    @property
    def session_config(self) -> tf.compat.v1.ConfigProto:
        """What sessions of all methods are made with."""
        return session_config(self.on_calling_thread)


# --- Methods ------------------------------------------------------------------------------------------------------


class _PreparedRunner:
    """A runner that is called with a batch's number: what it is fed for the batch is made once, before."""

    def __init__(self, runner: Runner, values: Sequence[tuple[Any, ...]]) -> None:
        self.runner, self._values = runner, values

    def __call__(self, number: int) -> Any:
        return self.runner(*self._values[number])

    def runs_statically(self, number: int) -> bool:
        return isinstance(self.runner, GraphRunner) and self.runner.runs_statically(*self._values[number])

    def close(self) -> None:
        self.runner.close()


Method = Callable[[Setting], _PreparedRunner]


def _in_session(
    setting: Setting,
    build: Callable[[NetGraph], tf.Tensor],
    feed_values: Callable[[NetGraph, Forest], tuple[Any, ...]] = NetGraph.feed_values,
    static: bool = False,
    control_flow_v1: bool = False,
    workers: int = 0,
) -> _PreparedRunner:
    with tf.Graph().as_default() as in_graph, graph.control_flow(v1=control_flow_v1):
        net = NetGraph(setting.net, setting.start, setting.training)
        result = build(net)
        if setting.training is not None:
            result = net.step(result)

    def initialize(session: tf.compat.v1.Session) -> None:
        with in_graph.as_default():
            net.initialize(session)

    config = setting.session_config
    if static:
        config = tfr.session_config(config, workers=workers)
    runner = SessionRunner(in_graph, [result], net.feeds, config, initialize)
    return _PreparedRunner(runner, [feed_values(net, forest) for forest in setting.batches])


def _recursion(setting: Setting, static: bool, workers: int = 0) -> _PreparedRunner:
    build = recursion.build_tree if setting.batch == 1 else recursion.build
    return _in_session(setting, build, static=static, workers=workers)


class _UnrolledRunner(_PreparedRunner):
    """Runs the unrolled net; when it is closed, it notes how long making and preparing its graphs took."""

    def __init__(self, setting: Setting) -> None:
        config = setting.session_config
        self._unrolled = unrolled.UnrolledRunner(setting.net, setting.start, setting.training, config)
        super().__init__(self._unrolled, [(forest,) for forest in setting.batches])
        self._notes = setting.notes

    def close(self) -> None:
        if self._unrolled.subgraphs:
            each = format_seconds(self._unrolled.build_seconds / self._unrolled.subgraphs)
            self._notes.append(f"NOTE unrolled: {self._unrolled.subgraphs} graphs, {each} to make and prepare each")
        super().close()


def _pytorch(setting: Setting) -> _PreparedRunner:
    from benchmarks.nets import pytorch

    top_down = setting.net == weights.TOPDOWN
    runner = pytorch.RecursionRunner(setting.net, setting.start, setting.training)
    return _PreparedRunner(runner, [(pytorch.Batch(forest, top_down),) for forest in setting.batches])


def _pytorch_levels(setting: Setting) -> _PreparedRunner:
    from benchmarks.nets import pytorch_levels

    top_down = setting.net == weights.TOPDOWN
    runner = pytorch_levels.LevelsRunner(setting.net, setting.start, setting.training)
    return _PreparedRunner(runner, [(pytorch_levels.Batch(forest, top_down),) for forest in setting.batches])


METHODS: dict[str, Method] = {
    "static": lambda setting: _recursion(setting, static=True),
    "static-one-worker": lambda setting: _recursion(setting, static=True, workers=1),
    "static-two-workers": lambda setting: _recursion(setting, static=True, workers=2),
    BY_DEPTH: lambda setting: _in_session(setting, by_depth.build, static=True),
    "dynamic": lambda setting: _recursion(setting, static=False),
    "paper-form": lambda setting: _in_session(
        setting, paper.build, lambda _, forest: paper.feed_values(forest), static=True
    ),
    "iteration": lambda setting: _in_session(setting, iteration.build, control_flow_v1=True),
    "iteration-in-loop": lambda setting: _in_session(
        setting, iteration.build_in_loop, control_flow_v1=setting.training is None
    ),
    "iteration-all-in-loop": lambda setting: _in_session(setting, iteration.build_all_in_loop, control_flow_v1=True),
    "levels": lambda setting: _in_session(
        setting, iteration.build_levels, iteration.level_feed_values, control_flow_v1=True
    ),
    "unrolled": _UnrolledRunner,
    "pytorch": _pytorch,
    "pytorch-levels": _pytorch_levels,
}
_WORKER_METHODS = ("static-one-worker", "static-two-workers")
STATIC_METHODS = ("static", BY_DEPTH, "paper-form", *_WORKER_METHODS)
_TORCH_METHODS = ("pytorch", "pytorch-levels")
_TOPDOWN_METHODS = ("static", "dynamic", *_TORCH_METHODS)


def methods_for(net: str, batch: int) -> tuple[str, ...]:
    """Returns what a case compares: the top-down net has no loops, the slowest are shown a tree at a time."""
    names = ("static", BY_DEPTH, "dynamic", "iteration", "iteration-in-loop", "levels", *_TORCH_METHODS)
    return tuple(
        name
        for name in names
        if (net != weights.TOPDOWN or name in _TOPDOWN_METHODS)
        and (batch == 1 or name not in ("dynamic", "iteration-in-loop"))
        and (batch > 1 or name != BY_DEPTH)
        and (HAS_TORCH or name not in _TORCH_METHODS)
    )


# --- Cases --------------------------------------------------------------------------------------------------------


def make_case(spec: Spec, source: Input, seed: int) -> Case:
    """Makes the case that `spec` describes, from the trees of `source`.

    Raises:
      ValueError: there are fewer trees than a batch takes.
    """
    trees = (source.test if spec.training is None else source.train)[: spec.trees]
    batches = data.batches(trees, spec.batch, source.words)
    if not batches:
        raise ValueError(f"Case '{spec.name}': a batch takes {spec.batch} trees, there are {len(trees)}")
    start = weights.make_weights(spec.net, len(source.words) + 1, spec.dim, seed)
    # A step over one tree runs on the thread that calls, as it does in PyTorch. Else TensorFlow hands it to a thread of
    # its pool and waits for it, which takes 15 to 20 microseconds of a few hundred at best, and several times that
    # where other processes run. Batches have work for several threads.
    setting = Setting(spec.net, batches, start, spec.training, notes=[], on_calling_thread=spec.batch == 1)
    compares_workers = spec.label == WORKERS_LABEL
    parts = WORKERS_PARTS if compares_workers else BATCHES_PARTS if spec.batch > 1 else 1
    return Case(
        suite=spec.net,
        name=spec.name,
        variants=[
            Variant(name, functools.partial(METHODS[name], setting), static=name in STATIC_METHODS)
            for name in spec.methods
        ],
        inputs=[(number,) for number in range(len(batches))],
        check=check_probabilities(setting) if spec.training is None else check_losses(setting),
        ratios=[(name, "static") for name in spec.methods if name != "static" and "static" in spec.methods],
        item="tree",
        items_per_call=spec.batch,
        checked_calls=CHECKED_STEPS if spec.training is not None else None,
        sample_seconds=parts * (WORKERS_SAMPLE_SECONDS if compares_workers else Case.sample_seconds),
        parts=parts,
        settling_seconds=WORKERS_SETTLING_SECONDS if compares_workers else 0.0,
        details={
            "net": spec.net,
            "dim": spec.dim,
            "batch": spec.batch,
            "mode": spec.mode,
            "training": dataclasses.asdict(spec.training) if spec.training is not None else None,
            "label": spec.label,
            "source": source.source,
            "nodes": sum(len(forest) for forest in batches),
            "vocabulary": len(source.words),
            "notes": setting.notes,
        },
    )


def check_losses(setting: Setting) -> Callable[[int, Any], None]:
    """Returns what raises WrongResult unless a step's loss is the reference's."""

    assert setting.training is not None, "inference has no losses"
    training = setting.training

    @functools.cache
    def expected() -> list[float]:
        order = [setting.batches[step % len(setting.batches)] for step in range(CHECKED_STEPS)]
        return reference.losses(setting.net, setting.start, order, training)

    def check(step: int, got: Sequence[Any]) -> None:
        want, loss = expected()[step], float(got[0])
        if not abs(loss - want) <= TOLERANCE * max(1.0, abs(want)):
            raise WrongResult(f"loss: expected {want:.6f}, got {loss:.6f}")

    return check


def check_probabilities(setting: Setting) -> Callable[[int, Any], None]:
    """Returns what raises WrongResult unless a batch's probabilities are the reference's."""

    @functools.cache
    def expected(number: int) -> np.ndarray:
        return reference.probabilities(setting.net, setting.start, setting.batches[number])

    def check(number: int, got: Sequence[np.ndarray]) -> None:
        want, have = expected(number), got[0]
        if want.shape != have.shape:
            raise WrongResult(f"probabilities: expected shape {want.shape}, got {have.shape}")
        if not np.allclose(have, want, rtol=0, atol=TOLERANCE):
            raise WrongResult(f"probabilities: differ from the reference by {np.abs(have - want).max():.3g}")

    return check
