"""Runs the stages of `make check`, `make test`, `make test-all` and `.ci/run` one by one, and says at the end what ran.

    stages.py [--limit SECONDS] NAME COMMAND [[--limit SECONDS] NAME COMMAND]..

All stages run, also after one that fails; the exit status is then 1. A stage that takes longer than the limit before it
is ended, and has failed. What a stage prints is passed on as it comes. The last line counts the tests of pytest and of
GoogleTest in all stages: "812 passed, 0 failed".
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


def stages(arguments: list[str]) -> list[tuple[str, str, float | None]]:
    """The name, the command and the limit of each stage."""
    found: list[tuple[str, str, float | None]] = []
    rest = list(arguments)
    while rest:
        limit = None
        if rest[0] == "--limit":
            limit, rest = float(rest[1]), rest[2:]
        name, command, *rest = rest
        found.append((name, command, limit))
    return found


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda number, _: _signals.append(number))
    rows, total = [], dict.fromkeys(_COUNTS, 0)
    for name, command, limit in stages(arguments):
        print(f"\n== {name}: {command}", flush=True)
        start = time.monotonic()
        status, counts = run(command, limit)
        seconds = f"{time.monotonic() - start:.0f} s"
        print(f"== {name}: {status}, {seconds}", flush=True)
        tests = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        rows.append((name, status, seconds, tests))
        for kind, count in counts.items():
            total[kind] += count
    print("\n== Summary")
    for row in rows:
        print("{:<34}{:<10}{:>8}  {}".format(*row).rstrip())
    print(", ".join(f"{count} {kind}" for kind, count in total.items()))
    return int(any(row[1] != "ok" for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
