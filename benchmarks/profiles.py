"""Where the time of a case's static runs goes: kernels by operator, the executor itself, memory, Python around it.

Not measured against anything: `python -m benchmarks profile` runs each case's static variants alone. What the library
counts it counts for these runs only; a first pass without counting says what counting itself adds.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.harness import Case, NotStatic, Progress, Variant, checked_run, runs_statically, timed_passes, warm_up
from tensorflow_recursion import _native

MAIN_GRAPH, BODIES = "main graph", "bodies"
RELEASES = "inputs given back"
EXECUTOR = "executor: frames, edges, numbers, compiled code"
OUTSIDE = "outside of runs: session, Python"


@dataclasses.dataclass(frozen=True)
class Part:
    """One line: `kernels` of operator `op` in the main graph or in bodies, or something else, whose `op` is empty."""

    where: str
    op: str
    count: float | None  # an item
    microseconds: float  # an item


@dataclasses.dataclass(frozen=True)
class Profile:
    """Where the time of one variant of a case goes; microseconds and counts are those of an item."""

    case: str
    variant: str
    item: str
    plain_microseconds: float  # without counting
    microseconds: float
    parts: list[Part]
    frame_bytes: int  # of the run whose frames took the most memory

    def lines(self) -> Iterator[str]:
        """The greppable lines: one of the whole, one a part, the largest first."""
        yield (
            f"PROFILE case={self.case} variant={self.variant} us_a_{self.item}={self.microseconds:.1f} "
            f"uncounted_us={self.plain_microseconds:.1f} frame_bytes={self.frame_bytes}"
        )
        for part in self.parts:
            count = "" if part.count is None else f" count={part.count:.1f}"
            share = part.microseconds / self.microseconds
            op = f" op={part.op}" if part.op else ""
            yield (
                f"PROFILE case={self.case} variant={self.variant} part='{part.where}'{op}{count} "
                f"us={part.microseconds:.2f} share={share:.1%}"
            )

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def run(cases: Iterable[Case], progress: Progress) -> Iterator[Profile]:
    """Profiles the static variants of the cases, after the checks of a measurement.

    Raises:
        WrongResult: a variant's output is not the expected one.
        NotStatic: a variant that is meant to run statically does not.
    """
    for case in cases:
        for variant in case.variants:
            if variant.static:
                progress(f"{case.name}: {variant.name}: profile")
                yield profile_variant(case, variant)


def profile_variant(case: Case, variant: Variant) -> Profile:
    """Builds, checks and warms up the variant; then runs it without counting, and counting."""
    with contextlib.closing(variant.build()) as runner:
        checked_run(case, variant.name, runner)
        if not runs_statically(runner, case.inputs[0]):
            raise NotStatic(f"{case.name}, {variant.name}: the session ran the calls dynamically")
        passes = warm_up(case, runner)
        items = passes * len(case.inputs) * case.items_per_call
        plain = timed_passes(case, runner, passes)
        _native.start_profile()
        try:
            seconds = timed_passes(case, runner, passes)
        finally:
            counted = _native.stop_profile()
    return Profile(
        case.name,
        variant.name,
        case.item,
        plain * 1e6 / items,
        seconds * 1e6 / items,
        parts_of(counted, seconds, items),
        counted["frame_bytes"],
    )


def parts_of(counted: dict[str, Any], seconds: float, items: int) -> list[Part]:
    """What the library has counted in so many seconds, by item, the largest first."""
    parts = []
    in_kernels = 0
    for where, kernels in ((BODIES, counted["bodies"]), (MAIN_GRAPH, counted["main_graph"])):
        for op, (count, nanoseconds) in kernels.items():
            parts.append(Part(where, op, count / items, nanoseconds / 1e3 / items))
            in_kernels += nanoseconds
    busy, releases = counted["busy_nanoseconds"], counted["release_nanoseconds"]
    rest = {RELEASES: releases, EXECUTOR: busy - in_kernels - releases, OUTSIDE: seconds * 1e9 - busy}
    parts += [Part(where, "", None, nanoseconds / 1e3 / items) for where, nanoseconds in rest.items()]
    return sorted(parts, key=lambda part: -part.microseconds)
