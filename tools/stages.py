"""Runs the stages of `make check`, `make test`, `make test-all` and `.ci/run` one by one, and says at the end what ran.

    stages.py [--resume FILE] STAGE..      where each STAGE is [--limit SECONDS] [--of PATHS] NAME COMMAND

All stages run, also after one that fails; the exit status is then 1. A stage that takes longer than the limit before it
is ended, and has failed. What a stage prints is passed on as it comes. The last line counts the tests of pytest and of
GoogleTest in all stages: "812 passed, 0 failed".

With --resume, stages that pass are noted in the file. Started again, it skips those that have passed on just the files
that there are now, and counts them as noted. When all stages have passed on these files, the notes are dropped. A stage
is about all files of the checkout, or about those in PATHS, which are separated by blanks: --of "cc tests/cc".
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from typing import NamedTuple

from passed_stages import Passed, PassedStages, current_tree

_COUNTS = {
    "passed": re.compile(r"^\[  PASSED  \] (\d+) tests?|\b(\d+) passed"),
    "failed": re.compile(r"^\[  FAILED  \] (\d+) tests?|\b(\d+) (?:failed|errors?)\b"),
}


# What a stage that is ended may take to clean up: a nested stages.py ends its own stage in that time.
_SECONDS_TO_END = 20
_SECONDS_BETWEEN_LOOKS = 0.1

# Signals that have asked this process to end, which ends the stage that runs. An exception could come anywhere, also
# where it leaves a lock behind.
_signals: list[int] = []


def run(command: str, limit: float | None = None) -> tuple[str, dict[str, int]]:
    """Runs a stage; returns "ok", "FAILED" or "TOO LONG", and how many tests passed and failed."""
    counts = dict.fromkeys(_COUNTS, 0)
    # A session of its own, so that its processes can be ended together.
    process = subprocess.Popen(
        command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    assert process.stdout is not None
    reader = threading.Thread(target=_pass_on, args=(process.stdout, counts), daemon=True)
    try:
        reader.start()
        is_in_time = _ends_within(process, limit)
    finally:
        _end(process)
        reader.join()
    status = "TOO LONG" if not is_in_time else "FAILED" if process.returncode else "ok"
    return status, counts


def _pass_on(output: Iterable[str], counts: dict[str, int]) -> None:
    """Prints what a stage prints, and counts its tests."""
    for line in output:
        print(line, end="", flush=True)
        if "[  " in line or re.search(r" in [\d.]+s", line):  # the closing line of pytest says how long it took
            for kind, pattern in _COUNTS.items():
                counts[kind] += sum(int(a or b) for a, b in pattern.findall(line))


def _ends_within(process: subprocess.Popen[str], limit: float | None) -> bool:
    """Waits until the stage is done, or has reached its limit.

    It looks again and again: a signal that comes right before a thread blocks, in a wait or a read, would only be
    handled after that.
    """
    start = time.monotonic()
    while process.poll() is None:
        if _signals:
            sys.exit(1)
        if limit is not None and time.monotonic() - start > limit:
            return False
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return True


def _end(process: subprocess.Popen[str]) -> None:
    """Ends whatever of a stage still runs. A process that it left behind would hold its output open."""
    if process.returncode is None:
        _signal(process, signal.SIGTERM)
        start = time.monotonic()
        while _signal(process, 0) and time.monotonic() - start < _SECONDS_TO_END:
            process.poll()
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: subprocess.Popen[str], number: int) -> bool:
    """Sends the signal to all processes of the stage; returns whether there is one."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    return True


class Stage(NamedTuple):
    """What is to run, how many seconds it may take, and which paths it is about, if not all."""

    name: str
    command: str
    limit: float | None
    about: tuple[str, ...]


class Result(NamedTuple):
    """What a stage came to, now or, if it is skipped, before."""

    name: str
    status: str
    seconds: float
    counts: dict[str, int]
    is_skipped: bool = False


def stages(arguments: list[str]) -> list[Stage]:
    """The stages that arguments of the command line name."""
    found = []
    rest = list(arguments)
    while rest:
        options = {"--limit": "", "--of": ""}
        while rest[0] in options:
            option, options[option], *rest = rest
        name, command, *rest = rest
        limit = float(options["--limit"]) if options["--limit"] else None
        found.append(Stage(name, command, limit, tuple(options["--of"].split())))
    return found


def perform(stage: Stage, notes: PassedStages | None) -> Result:
    """Runs a stage and notes it if it passes; skips it if it is noted for the files as they are."""
    print(f"\n== {stage.name}: {stage.command}", flush=True)
    before = notes.find(stage.command, stage.about) if notes else None
    if before:
        files = f"the same {' '.join(stage.about)}" if stage.about else "this tree"
        print(f"== {stage.name}: passed before on {files}, {before.seconds:.0f} s", flush=True)
        return Result(stage.name, "ok", *before, is_skipped=True)
    start = time.monotonic()
    status, counts = run(stage.command, stage.limit)
    seconds = time.monotonic() - start
    print(f"== {stage.name}: {status}, {seconds:.0f} s", flush=True)
    if notes and status == "ok" and not notes.add(stage.command, stage.about, Passed(seconds, counts)):
        print(f"== {stage.name}: not noted as passed, because files have changed since the first stage", flush=True)
    return Result(stage.name, status, seconds, counts)


def summarize(results: list[Result]) -> None:
    """Prints a table of what ran, and how many tests there were."""
    total = dict.fromkeys(_COUNTS, 0)
    print("\n== Summary")
    for result in results:
        tests = ", ".join(f"{count} {kind}" for kind, count in result.counts.items() if count)
        remark = f"{tests} (before)".lstrip() if result.is_skipped else tests
        print(f"{result.name:<34}{result.status:<10}{result.seconds:>6.0f} s  {remark}".rstrip())
        for kind, count in result.counts.items():
            total[kind] += count
    print(", ".join(f"{count} {kind}" for kind, count in total.items()))


def _notes(file: str, to_run: list[Stage]) -> PassedStages | None:
    """The notes in the file on the files as they are; None, and a line that says so, where git does not see these."""
    if current_tree() is None:
        print("This is not the top of a git checkout: all stages run, and none is noted.", flush=True)
        return None
    return PassedStages(file, {stage.about for stage in to_run})


def main(arguments: list[str]) -> int:
    """Does what the command line asks for; returns the exit status."""
    signal.signal(signal.SIGTERM, lambda number, _: _signals.append(number))
    is_resumed = arguments[:1] == ["--resume"]
    to_run = stages(arguments[2:] if is_resumed else arguments)
    notes = _notes(arguments[1], to_run) if is_resumed else None
    results = [perform(stage, notes) for stage in to_run]
    summarize(results)
    if notes and all(notes.find(stage.command, stage.about) for stage in to_run):
        notes.drop()
    return int(any(result.status != "ok" for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
