"""The build: its list of files, what it finds, and what it says when something is missing."""
# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import re
import subprocess
import sys

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion import _build_info, _loader

ROOT = pathlib.Path(__file__).resolve().parents[3]


def describe(**environment):
    command = [sys.executable, str(ROOT / "tools" / "cxx_build.py"), "describe"]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


def test_package_knows_its_version_and_tensorflows():
    declared = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert tfr.__version__ == declared.group(1) == _build_info.VERSION
    assert _build_info.TENSORFLOW_VERSION == tf.__version__


def test_import_is_error_when_built_for_another_minor_version():
    with pytest.raises(
        ImportError, match=r"built for TensorFlow 2\.16\.2 .* TensorFlow 2\.21\.0; rebuild .*pip install"
    ):
        _loader.check_version("2.16.2", "2.21.0")


def test_import_is_fine_when_only_the_patch_version_differs():
    _loader.check_version("2.21.0", "2.21.1")


def test_build_finds_tensorflow_when_isolation_hides_site_packages(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.path = [p for p in sys.path if 'site-packages' not in p and 'dist-packages' not in p]\n"
    )
    done = describe(PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert f'"version": "{tf.__version__}"' in done.stdout


def test_build_says_in_one_line_when_there_is_no_compiler():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "setup.py", "-q", "build_ext", "--inplace"],
        cwd=ROOT,
        env={**os.environ, "CXX": "no-such-compiler"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    message = "tensorflow_recursion: no C++ compiler: 'no-such-compiler' not found; install g++"
    assert done.stderr.strip().splitlines()[-1].startswith(message)
