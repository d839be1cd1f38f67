"""The examples of the documentation do what they say, as a newcomer pastes them.

All ```python blocks of a page are one script, in their order. A comment behind a `print` says what it prints:

    print(sess.run(fib(20)))  # 6765
    print(sess.run(gradient))  # 12.0, which is 3 * 2 * 2

A block after the line `<!-- example: not run -->` is only compiled. Where a page has `<!-- example: two processes -->`,
its script is run by two processes, with the number of each as its argument (docs/distributed.md).
"""
# SPDX-License-Identifier: Apache-2.0

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import processes
import pytest
from limits import HANG_SECONDS

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "2"}
BLOCK = re.compile(r"^(?:<!-- example: (not run|two processes) -->\n)?```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page):
    """The page's examples: what stands before each, and its text."""
    return BLOCK.findall((ROOT / page).read_text())


def every_page():
    found = [
        ROOT / "README.md",
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("CONTRIBUTING.md"),
        *ROOT.glob("benchmarks/*.md"),
    ]
    return [str(path.relative_to(ROOT)) for path in sorted(found)]


def pages():
    return [page for page in every_page() if blocks(page)]


def is_for_two_processes(page):
    return any(kind == "two processes" for kind, _ in blocks(page))


def script(page):
    return "\n".join(text for kind, text in blocks(page) if kind != "not run")


# --- One process --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [page for page in pages() if not is_for_two_processes(page)])
def test_examples_of_page_print_what_they_say(page, tmp_path):
    text = script(page)
    file = tmp_path / "script.py"  # AutoGraph reads the source
    file.write_text(text)
    done = processes.run_python(file, directory=ROOT, environment=ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-3000:]
    said = re.findall(r"^ *print\(.*\)  # (.*)$", text, re.MULTILINE)
    assert said, "no example says what it prints"
    printed = done.stdout.splitlines()
    assert [is_said(*pair) for pair in zip(printed, said, strict=True)] == [True] * len(said), (printed, said)


def is_said(printed, said):
    return said == printed or said.startswith(printed + ", ")


@pytest.mark.parametrize("page", pages())
def test_examples_of_page_are_python(page):
    for _, text in blocks(page):
        compile(text, page, "exec")


@pytest.mark.parametrize("page", every_page())
def test_python_of_page_is_in_blocks_that_run(page):
    """Indented code is for commands and listings: nothing would run Python there."""
    prose = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"^    (?:@|def |import |from |class |return |print\().*", prose, re.MULTILINE) == []


# --- Two processes ------------------------------------------------------------------------------------------------


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
    path = tmp_path / "two_processes.py"
    others = []

    def run(text):
        for port, own in zip(("2222", "2223"), free_ports(), strict=True):
            text = text.replace(port, str(own))
        path.write_text(text)
        others.append(subprocess.Popen([sys.executable, path, "1"], env=ENVIRONMENT, stderr=subprocess.DEVNULL))
        command = [sys.executable, path, "0"]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=HANG_SECONDS)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    yield run
    for other in others:
        other.kill()
        other.wait()


def test_examples_of_two_processes_run_as_they_are_pasted(two_processes):
    """The first block prints the values, the second the devices of the nodes."""
    page = "docs/distributed.md"
    assert [name for name in pages() if is_for_two_processes(name)] == [page]
    numbers, shape, *nodes = two_processes(script(page)).splitlines()
    np.testing.assert_allclose(np.array(re.findall(r"[\d.]+", numbers), float), oracle(3, np.array([1.0, 2.0])), 1e-5)
    assert shape == "(2, 2)"
    (shown,) = re.findall(r"`(\[\[.*?\]\])`", (ROOT / page).read_text())
    assert shown == numbers
    assert any(re.match(r"/job:worker/task:1 MatMul Tree/", node) for node in nodes)
    assert any("Recursion>Call" in node for node in nodes)
