"""tools/stages.py: what `make check` and `.ci/run` say of their stages, and how a stage that hangs ends."""
# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import signal
import subprocess
import sys

import pytest
from limits import HANG_SECONDS

STAGES = pathlib.Path(__file__).resolve().parents[3] / "tools" / "stages.py"


def start(*arguments):
    command = [sys.executable, str(STAGES), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run(*arguments):
    process = start(*arguments)
    output, _ = process.communicate(timeout=HANG_SECONDS)
    return process.returncode, output


def test_all_stages_run_and_their_tests_are_counted_when_one_fails():
    status, output = run("first", "echo '3 passed, 1 failed in 0.5s'; false", "second", "echo '2 passed in 0.1s'")
    assert status == 1
    assert "== first: FAILED" in output and "== second: ok" in output
    assert output.endswith("5 passed, 1 failed\n")


def test_exit_status_is_zero_when_all_stages_pass():
    assert run("first", "true", "second", "true")[0] == 0


def test_stage_is_ended_and_the_next_one_runs_when_it_takes_longer_than_its_limit():
    status, output = run("--limit", "0.5", "slow", f"echo started; sleep {10 * HANG_SECONDS}", "next", "echo reached")
    assert status == 1
    assert "== slow: TOO LONG" in output and "reached" in output


def test_stage_ends_when_a_process_that_it_left_behind_holds_its_output():
    status, _ = run("leaves one", f"sleep {10 * HANG_SECONDS} & echo $!")
    assert status == 0


@pytest.mark.parametrize("depth", [1, 2])
def test_processes_of_a_stage_end_when_stages_is_ended(depth):
    command = f"echo child $$; exec sleep {10 * HANG_SECONDS}"
    for _ in range(depth - 1):
        command = f"'{sys.executable}' '{STAGES}' inner '{command}'"
    process = start("outer", command)
    child = next(int(line.split()[1]) for line in process.stdout if line.startswith("child "))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 1
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
