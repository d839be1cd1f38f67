"""Runs sum(n) statically in this process and reports, as one JSON line, its time and the memory of its frames.

Run as `python -m benchmarks.sum_probe N REPEATS`, in a fresh process: resident memory that another graph has used
and freed would hide what the frames take.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np

_STATUS = Path("/proc/self/status")


def resident_bytes(field: str) -> int:
    """Returns "VmRSS" (now) or "VmHWM" (the most so far) of this process.

    Not from getrusage: its peak may be the parent's, from before exec.
    """
    for line in _STATUS.read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"{_STATUS} has no line '{field}'")


def forget_peak() -> None:
    """Sets VmHWM back to VmRSS where the system lets us; a peak of start-up could hide the frames else."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


def probe(n: int, repeats: int) -> dict[str, float | int]:
    """Runs sum(n) `repeats` times; the peak of the first run gives the bytes of a frame."""
    import tensorflow as tf

    import tensorflow_recursion as tfr
    from benchmarks.recursion_suite import session_runner
    from benchmarks.workloads import SUM

    tf.compat.v1.disable_eager_execution()
    runner = session_runner(SUM, tfr.session_config())
    start = time.perf_counter()
    runner(np.int64(10))
    first_run = time.perf_counter() - start
    forget_peak()
    before = resident_bytes("VmRSS")
    samples, value, peak = [], 0, 0
    for number in range(repeats):
        start = time.perf_counter()
        value = int(runner(np.int64(n))[0])
        samples.append(time.perf_counter() - start)
        if number == 0:
            peak = resident_bytes("VmHWM")
    return {
        "n": n,
        "static": runner.runs_statically(np.int64(10)),
        "value": value,
        "first_run_seconds": first_run,
        "median_seconds": statistics.median(samples),
        "max_seconds": max(samples),
        "bytes_per_frame": (peak - before) / n,
        "resident_before": before,
        "resident_peak": peak,
        "resident_after": resident_bytes("VmRSS"),
    }


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ.setdefault("TENSORFLOW_RECURSION_SILENCE_DYNAMIC", "1")  # dynamic execution is what is compared with
    print(json.dumps(probe(int(sys.argv[1]), int(sys.argv[2]))))
