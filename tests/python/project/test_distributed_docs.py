"""The examples of docs/distributed.md, as a newcomer pastes them."""
# SPDX-License-Identifier: Apache-2.0

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from limits import HANG_SECONDS

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "distributed.md").read_text()
EXAMPLE, LOOKING = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def free_ports():
    with socket.socket() as one, socket.socket() as other:
        one.bind(("localhost", 0))
        other.bind(("localhost", 0))
        return one.getsockname()[1], other.getsockname()[1]


def oracle(depth, x):
    w = np.array([[0.5, 0.25], [0.25, 0.5]])
    return x if depth < 1 else (oracle(depth - 1, x) + oracle(depth - 1, x * 0.5)) @ w


@pytest.fixture
def two_processes(tmp_path):
    """Runs a script as task 0 while another process runs it as task 1; returns what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "2"}
    path = tmp_path / "two_processes.py"
    others = []

    def run(script):
        for port, own in zip(("2222", "2223"), free_ports(), strict=True):
            script = script.replace(port, str(own))
        path.write_text(script)
        others.append(subprocess.Popen([sys.executable, path, "1"], env=environment, stderr=subprocess.DEVNULL))
        command = [sys.executable, path, "0"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_SECONDS)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    yield run
    for other in others:
        other.kill()
        other.wait()


def test_example_of_two_processes_runs_as_it_is_pasted(two_processes):
    numbers, shape = two_processes(EXAMPLE).splitlines()[-2:]
    np.testing.assert_allclose(np.array(re.findall(r"[\d.]+", numbers), float), oracle(3, np.array([1.0, 2.0])), 1e-5)
    assert shape == "(2, 2)"
    (shown,) = re.findall(r"`(\[\[.*?\]\])`", PAGE)
    assert shown == numbers


def test_transform_graph_shows_the_devices_of_the_example(two_processes):
    lines = two_processes(EXAMPLE + LOOKING).splitlines()
    assert any(re.match(r"/job:worker/task:1 MatMul Tree/", line) for line in lines)
    assert any("Recursion>Call" in line for line in lines)
