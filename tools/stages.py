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

_COUNTS = {
    "passed": re.compile(r"^\[  PASSED  \] (\d+) tests?|\b(\d+) passed"),
    "failed": re.compile(r"^\[  FAILED  \] (\d+) tests?|\b(\d+) (?:failed|errors?)\b"),
}


# What a stage that is ended may take to clean up: a nested stages.py ends its own stage in that time.
_SECONDS_TO_END = 20
_SECONDS_BETWEEN_LOOKS = 0.1


def run(command: str, limit: float | None = None) -> tuple[str, dict[str, int]]:
    """Runs a stage; returns "ok", "FAILED" or "TOO LONG", and how many tests passed and failed."""
    counts = dict.fromkeys(_COUNTS, 0)
    # A session of its own, so that its processes can be ended together.
    process = subprocess.Popen(
        command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    ended, late = threading.Event(), threading.Event()
    watcher = threading.Thread(target=_watch, args=(process, limit, ended, late), daemon=True)
    watcher.start()
    assert process.stdout is not None
    try:
        for line in process.stdout:
            print(line, end="", flush=True)
            if "[  " in line or re.search(r" in [\d.]+s", line):  # the closing line of pytest says how long it took
                for kind, pattern in _COUNTS.items():
                    counts[kind] += sum(int(a or b) for a, b in pattern.findall(line))
    except BaseException:
        ended.set()
        watcher.join()
        raise
    watcher.join()
    status = "TOO LONG" if late.is_set() else "FAILED" if process.returncode else "ok"
    return status, counts


def _watch(process: subprocess.Popen[str], limit: float | None, ended: threading.Event, late: threading.Event) -> None:
    """Waits until the stage is done, has reached its limit, or is `ended`; then ends whatever of it still runs.

    A process that it left behind would hold its output open.
    """
    start = time.monotonic()
    while process.poll() is None and not ended.wait(_SECONDS_BETWEEN_LOOKS):
        if limit is not None and time.monotonic() - start > limit:
            late.set()
            break
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
    # Whoever ends this process ends the stage that runs.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
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
