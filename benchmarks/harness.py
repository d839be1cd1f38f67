"""How variants of one computation are measured: checked first, warmed up, interleaved, medians and ratios.

A suite makes `Case`s; `run_case` measures one and returns a `CaseResult`, which knows its greppable line and its
JSON form. Graph construction, the first run (which prepares the graph) and the steady runs are timed
apart. Nothing here knows what is measured.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import gc
import importlib.metadata
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

from tensorflow_recursion.names import INVOKE

SCHEMA_VERSION = 1

_MAX_CALLS_PER_SAMPLE = 10_000

_OUR_OPS = "Recursion>"


class Runner(Protocol):
    """Something to time: called with one input's values; `close` frees what it holds."""

    def __call__(self, *values: Any) -> Any: ...

    def close(self) -> None: ...


@runtime_checkable
class GraphRunner(Runner, Protocol):
    """A runner of a graph, which can tell how its calls were executed."""

    def runs_statically(self, *values: Any) -> bool: ...


class PlainRunner:
    """A Python function as a `Runner`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *values: Any) -> Any:
        return self._function(*values)

    def close(self) -> None:
        pass


def session_config(on_calling_thread: bool) -> tf.compat.v1.ConfigProto:
    """A session that runs its steps on the thread that calls, or on threads of TensorFlow's pool as by default."""
    return config_pb2.ConfigProto(inter_op_parallelism_threads=-1 if on_calling_thread else 0)


class SessionRunner:
    """Runs fixed fetches of one graph in a session of its own, by a callable made from CallableOptions.

    Every variant that runs in a session is called this way: it costs about 20 microseconds of Python a step, where
    `Session.run` costs about 100. The callable is made at the first call, so this call's time is what preparing the
    graph costs. `initialize`, when given, is called with the session before.
    """

    def __init__(
        self,
        graph: tf.Graph,
        fetches: Sequence[tf.Tensor],
        feeds: Sequence[tf.Tensor],
        config: tf.compat.v1.ConfigProto,
        initialize: Callable[[tf.compat.v1.Session], None] | None = None,
        target: str = "",
    ) -> None:
        self._options = config_pb2.CallableOptions(
            feed=[feed.name for feed in feeds], fetch=[fetch.name for fetch in fetches]
        )
        self._callable: Callable[..., list[Any]] | None = None
        self._session = tf.compat.v1.Session(target, graph=graph, config=config)
        if initialize is not None:
            initialize(self._session)

    def __call__(self, *values: Any) -> list[Any]:
        if self._callable is None:
            self._callable = self._session._make_callable_from_options(self._options)
        return self._callable(*values)

    def runs_statically(self, *values: Any) -> bool:
        """Runs once more, and returns whether what the session ran was transformed and makes no dynamic call.

        A failing graph optimizer is not an error in TensorFlow: the session then runs the graph as it was.
        """
        graphs = self._run(config_pb2.RunOptions(output_partition_graphs=True), values).partition_graphs
        ops = {node.op for graph in graphs for node in graph.node}
        return any(op.startswith(_OUR_OPS) for op in ops) and INVOKE not in ops

    def trace(self, *values: Any) -> config_pb2.RunMetadata:
        """Runs once more; returns what the session ran, device by device, and when: millions of calls take a minute."""
        trace_level = config_pb2.RunOptions.FULL_TRACE
        return self._run(config_pb2.RunOptions(output_partition_graphs=True, trace_level=trace_level), values)

    def _run(self, options: config_pb2.RunOptions, values: Sequence[Any]) -> config_pb2.RunMetadata:
        metadata = config_pb2.RunMetadata()
        feeds = dict(zip(self._options.feed, values, strict=True))
        self._session.run(list(self._options.fetch), feeds, options=options, run_metadata=metadata)
        return metadata

    def close(self) -> None:
        self._callable = None
        self._session.close()


@dataclasses.dataclass(frozen=True)
class Variant:
    """One way to compute a case: `build` constructs its graph and returns what runs it."""

    name: str
    build: Callable[[], Runner]
    static: bool = False  # it is meant to run statically: a graph that falls back to dynamic execution is an error


@dataclasses.dataclass(frozen=True)
class Case:
    """One computation and the variants that are compared.

    `inputs` holds one tuple of arguments per call; a timed pass makes all of them. A call is for `items_per_call`
    items (a batch's trees), and times are per item. Before, `checked_calls` calls are made over the inputs in turn
    (each input once by default), and `check(call, got)` raises `WrongResult` when a variant's result of that call is
    wrong; where a call changes what the next one does, as training does, there may be more of them than inputs.
    `ratios` names pairs of variants, each reported as the first one's time over the second one's.

    Before it is timed, every variant makes `warm_up_passes` passes. A sample shorter than `sample_seconds` is repeated
    inside one timing: the clock and other processes are ~1 ms of noise. Where variants differ by a few percent, a round
    is parted into `parts` rounds of samples that are shorter by as much: what slows the machine for a while then slows
    all variants alike. Where variants are slower at first, after others have run, each makes untimed passes for
    `settling_seconds` before each sample.
    """

    suite: str
    name: str
    variants: Sequence[Variant]
    inputs: Sequence[tuple[Any, ...]]
    check: Callable[[int, Any], None]
    ratios: Sequence[tuple[str, str]]
    item: str = "call"
    items_per_call: int = 1
    checked_calls: int | None = None
    warm_up_passes: int = 1
    sample_seconds: float = 0.05
    parts: int = 1
    settling_seconds: float = 0.0
    details: dict[str, Any] = dataclasses.field(default_factory=dict)


class WrongResult(Exception):
    """A variant's output differs from the oracle's; says case, variant, expected and got."""


class NotStatic(Exception):
    """A variant that is meant to run statically runs dynamically: its figures would mean nothing."""


@dataclasses.dataclass
class VariantResult:
    """Seconds: `build` the graph and its session, `first_run` of a call, `samples` per item, one a part of a round."""

    name: str
    build: float
    first_run: float
    samples: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """The quartiles' distance relative to the median: how noisy the samples are."""
        if len(self.samples) < 2:
            return 0.0
        quartiles = statistics.quantiles(self.samples, n=4, method="inclusive")
        return (quartiles[2] - quartiles[0]) / self.median

    def as_json(self) -> dict[str, Any]:
        return {
            "build_seconds": self.build,
            "first_run_seconds": self.first_run,
            "median_seconds": self.median,
            "per_second": 1 / self.median,
            "spread": self.spread,
            "samples_seconds": self.samples,
        }


@dataclasses.dataclass
class CaseResult:
    """What one case took, variant by variant."""

    case: Case
    variants: dict[str, VariantResult]

    def ratio(self, slower: str, faster: str) -> float:
        """Returns the median over the rounds of `slower`'s time over `faster`'s in the same round."""
        pairs = zip(self.variants[slower].samples, self.variants[faster].samples, strict=True)
        return statistics.median(a / b for a, b in pairs)

    def ratios(self) -> dict[str, float]:
        return {f"{a}/{b}": self.ratio(a, b) for a, b in self.case.ratios}

    def line(self) -> str:
        """Returns the case's one greppable line."""
        times = [f"{name}={format_seconds(result.median)}" for name, result in self.variants.items()]
        ratios = [f"{name}={value:.2f}x" for name, value in self.ratios().items()]
        return f"RESULT suite={self.case.suite} case={self.case.name} " + " ".join(times + ratios)

    def as_json(self) -> dict[str, Any]:
        return {
            "suite": self.case.suite,
            "case": self.case.name,
            "item": self.case.item,
            "items": len(self.case.inputs) * self.case.items_per_call,
            "checked": True,
            "variants": {name: result.as_json() for name, result in self.variants.items()},
            "ratios": self.ratios(),
            **self.case.details,
        }


Progress = Callable[[str], None]


def run_case(case: Case, repeats: int, progress: Progress = lambda step: None) -> CaseResult:
    """Checks every variant of `case`, warms it up, then times `repeats` rounds of all variants in turn.

    With `repeats` 0 it only checks; the result then has no medians.

    Raises:
        WrongResult: a variant's output is not the expected one; nothing has been timed then.
        NotStatic: a static variant fell back to dynamic execution.
    """
    runners: dict[str, Runner] = {}
    results: dict[str, VariantResult] = {}
    try:
        for variant in case.variants:
            progress(f"{case.name}: {variant.name}: build and check")
            start = time.perf_counter()
            runner = runners[variant.name] = variant.build()
            build = time.perf_counter() - start
            results[variant.name] = VariantResult(variant.name, build, checked_run(case, variant.name, runner), [])
            if variant.static and not runs_statically(runner, case.inputs[0]):
                raise NotStatic(f"{case.name}, {variant.name}: the session ran the calls dynamically")
        passes = {name: warm_up(case, runner) for name, runner in runners.items() if repeats > 0}
        names = list(runners)
        for number in range(repeats):
            progress(f"{case.name}: round {number + 1} of {repeats}")
            gc.collect()
            for part in range(case.parts):
                first = (number + part) % len(names)
                for name in names[first:] + names[:first]:
                    results[name].samples.append(_sample(case, runners[name], passes[name]))
    finally:
        for runner in runners.values():
            runner.close()
    return CaseResult(case, results)


def runs_statically(runner: Runner, values: Sequence[Any]) -> bool:
    """Returns whether the runner runs a graph, and its calls statically."""
    return isinstance(runner, GraphRunner) and runner.runs_statically(*values)


def checked_run(case: Case, variant: str, runner: Runner) -> float:
    """Makes and checks the calls to be checked; returns how long the first one took."""
    first_run = 0.0
    for number in range(case.checked_calls or len(case.inputs)):
        values = case.inputs[number % len(case.inputs)]
        start = time.perf_counter()
        got = runner(*values)
        if number == 0:
            first_run = time.perf_counter() - start
        try:
            case.check(number, got)
        except WrongResult as error:
            raise WrongResult(f"{case.name}, {variant}, call {number}: {error}") from None
    return first_run


def warm_up(case: Case, runner: Runner) -> int:
    """Warms up and returns how many passes make a sample long enough to time."""
    seconds = timed_passes(case, runner, case.warm_up_passes) / case.warm_up_passes
    return max(1, min(_MAX_CALLS_PER_SAMPLE, round(case.sample_seconds / case.parts / max(seconds, 1e-9))))


def _sample(case: Case, runner: Runner, passes: int) -> float:
    settled = time.perf_counter() + case.settling_seconds
    while time.perf_counter() < settled:
        timed_passes(case, runner, 1)
    return timed_passes(case, runner, passes) / (passes * len(case.inputs) * case.items_per_call)


def timed_passes(case: Case, runner: Runner, passes: int) -> float:
    """Returns the seconds of so many calls with each input."""
    inputs = case.inputs
    gc.disable()
    try:
        start = time.perf_counter()
        for _ in range(passes):
            for values in inputs:
                runner(*values)
        return time.perf_counter() - start
    finally:
        gc.enable()


def format_seconds(seconds: float) -> str:
    """Formats a time with three digits and a unit, without a space between."""
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * factor:.3g}{unit}" if seconds * factor < 999.5 else f"{seconds * factor:.0f}{unit}"
    return f"{seconds:.3g}s"


# --- The header ---------------------------------------------------------------------------------------------------


def environment(seed: int) -> dict[str, Any]:
    """Describes what a run's figures depend on: commit, versions, device, threads, seed."""
    return {
        "commit": _commit(),
        "versions": {
            "python": platform.python_version(),
            "tensorflow": tf.__version__,
            "numpy": np.__version__,
            "tensorflow_recursion": _package_version(),
        },
        "device": _device(),
        "threads": _threads(),
        "seed": seed,
        "session_call": "callable made from CallableOptions",
    }


def header_line(described: dict[str, Any]) -> str:
    """Returns the line a run's output starts with."""
    versions = " ".join(f"{name}={version}" for name, version in described["versions"].items())
    return (
        f"HEADER commit={described['commit']} {versions} device='{described['device']}' "
        f"threads={described['threads']} seed={described['seed']} session_call='{described['session_call']}'"
    )


def _commit() -> str:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(Path(__file__).parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + ("+changes" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def _package_version() -> str:
    try:
        return importlib.metadata.version("tensorflow_recursion")
    except importlib.metadata.PackageNotFoundError:
        return "source"


def _device() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return "CPU " + line.partition(":")[2].strip()
    except OSError:
        pass
    return "CPU " + (platform.processor() or platform.machine())


def _threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
