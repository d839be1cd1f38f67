"""Runs the stages of `make check`, `make test` and `make test-all` one by one, and says at the end what ran.

    stages.py NAME COMMAND [NAME COMMAND]..

All stages run, also after one that fails; the exit status is then 1. What a stage prints is passed on as it comes. The
last line counts the tests of pytest and of GoogleTest in all stages: "812 passed, 0 failed".
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
import subprocess
import sys
import time

_COUNTS = {
    "passed": re.compile(r"^\[  PASSED  \] (\d+) tests?|\b(\d+) passed"),
    "failed": re.compile(r"^\[  FAILED  \] (\d+) tests?|\b(\d+) (?:failed|errors?)\b"),
}


def run(command: str) -> tuple[int, dict[str, int]]:
    """Runs a stage; returns its exit status, and how many tests passed and failed."""
    counts = dict.fromkeys(_COUNTS, 0)
    process = subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        if "[  " in line or re.search(r" in [\d.]+s", line):  # the closing line of pytest says how long it took
            for kind, pattern in _COUNTS.items():
                counts[kind] += sum(int(a or b) for a, b in pattern.findall(line))
    return process.wait(), counts


def main(arguments: list[str]) -> int:
    rows, total = [], dict.fromkeys(_COUNTS, 0)
    for name, command in zip(arguments[::2], arguments[1::2], strict=True):
        print(f"\n== {name}: {command}", flush=True)
        start = time.monotonic()
        status, counts = run(command)
        tests = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        rows.append((name, "FAILED" if status else "ok", f"{time.monotonic() - start:.0f} s", tests))
        for kind, count in counts.items():
            total[kind] += count
    print("\n== Summary")
    for row in rows:
        print("{:<34}{:<8}{:>8}  {}".format(*row).rstrip())
    print(", ".join(f"{count} {kind}" for kind, count in total.items()))
    return int(any(row[1] != "ok" for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
