"""`py.typed` is a promise: a program that uses the package is type-checked, and so is the package."""
# SPDX-License-Identifier: Apache-2.0

import pathlib
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.thorough  # `make typecheck` is the first of them

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path("tests/python/project/typed_program.py")

pytest.importorskip("mypy")


def run_mypy(*arguments):
    done = subprocess.run([sys.executable, "-m", "mypy", *arguments], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_package_and_benchmarks_are_typed():
    assert run_mypy().startswith("Success")


def test_user_program_has_the_inferred_types_and_errors_that_it_states():
    output = run_mypy("--no-error-summary", "--show-error-codes", str(PROGRAM))
    found = set()
    for path, line, kind, text in re.findall(r"^(\S+?):(\d+): (note|error): (.*)$", output, re.MULTILINE):
        assert path == str(PROGRAM), output
        if revealed := re.fullmatch(r'Revealed type is "(.*)"', text):
            found.add((int(line), f"type: {revealed[1]}"))
        elif kind == "error":
            code = re.search(r"\[([a-z-]+)]$", text)
            found.add((int(line), f"error: {code[1]}"))
    stated = set()
    for number, line in enumerate((ROOT / PROGRAM).read_text().splitlines(), start=1):
        if comment := re.search(r"  # ((?:type|error): \S+)$", line):
            stated.add((number, comment[1]))
    assert found == stated
