"""Finds the TensorFlow to build against, in the environment that the build runs for, and prints it as JSON.

CMake and Bazel run it as a program; setup.py and tools/native.py import it.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD_ROOT = ROOT / "build" / "cmake"


class BuildError(Exception):
    """A failure whose message, one line, is all the user needs."""


@dataclasses.dataclass(frozen=True)
class TensorFlow:
    """What a build needs to know of a TensorFlow; flags as tf.sysconfig gives them, but for the include directory."""

    version: str
    include: str
    library_dir: str
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]

    def pybind_include(self) -> str:
        """pybind11's headers ship in the wheel."""
        for place in ("include", "_virtual_includes/pybind11"):
            path = os.path.join(self.include, "external", "pybind11", place)
            if os.path.exists(os.path.join(path, "pybind11", "pybind11.h")):
                return path
        raise BuildError(f"TensorFlow {self.version} comes without pybind11's headers; use TensorFlow 2.16 or later")

    def python_include(self) -> str:
        """The interpreter's headers; where its -dev package is missing, the copy for the same version in the wheel."""
        include = sysconfig.get_paths()["include"]
        if os.path.exists(os.path.join(include, "Python.h")):
            return include
        version = "python%d.%d" % sys.version_info[:2]
        for copy in pathlib.Path(self.include, "external").glob(f"python_*/include/{version}"):
            if (copy / "Python.h").exists():
                return str(copy)
        raise BuildError(f"Python.h is missing: install the headers of {version} (apt-get install {version}-dev)")


_PROBE = """
import os, json, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
print("\\n" + json.dumps(dict(version=tf.__version__, include=tf.sysconfig.get_include(),
    library_dir=tf.sysconfig.get_lib(), compile_flags=tf.sysconfig.get_compile_flags(),
    link_flags=tf.sysconfig.get_link_flags(), python=sys.version_info[:2])))
"""

_LOCATE = """
import importlib.util, os
spec = importlib.util.find_spec("tensorflow")
if spec is not None and spec.origin:
    print("\\n" + spec.origin + "|" + str(os.stat(spec.origin).st_mtime_ns))
"""


def _environments():
    """Yields (interpreter, environment variables) pairs that may know the user's TensorFlow.

    pip's build isolation hides the user's site-packages by PYTHONPATH and a sitecustomize found there, but runs the
    hooks with the user's own interpreter: started without PYTHONPATH it sees what the user sees. Other front ends
    (`python -m build`) make a virtual environment of their own; the active one is then named by a variable. uv puts its
    own there, so its users need --no-build-isolation, as the error says.
    """
    yield sys.executable, dict(os.environ)
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONNOUSERSITE", "PYTHONHOME")}
    yield sys.executable, clean
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        if variable in os.environ:
            yield os.path.join(os.environ[variable], "bin", "python"), clean
    yield os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2]), clean


def _ask(python: str, environment: dict, code: str) -> str:
    """The last line that `code` prints under `python`; empty when it fails."""
    # -P: the current directory may hold a package of the same name. Python 3.10 does not know the flag.
    flags = ["-P"] if sys.version_info >= (3, 11) else []
    command = [python, *flags, "-c", code]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    lines = done.stdout.strip().splitlines()
    return lines[-1] if done.returncode == 0 and lines else ""


def find_tensorflow() -> TensorFlow:
    """Finds TensorFlow in the environment the build runs for.

    Importing TensorFlow takes seconds, so what it answered is kept in the build directory.

    Raises:
      BuildError: when no environment has an importable TensorFlow for this Python.
    """
    found_broken = ""
    for python, environment in _environments():
        where = _ask(python, environment, _LOCATE)
        if not where:
            continue
        key = hashlib.sha1(f"{python}|{where}|{sys.version}".encode()).hexdigest()[:16]
        cache = BUILD_ROOT / f"tensorflow-{key}.json"
        answer = cache.read_text() if cache.exists() else _ask(python, environment, _PROBE)
        if not answer:
            found_broken = where.split("|")[0]
            continue
        facts = json.loads(answer)
        if tuple(facts.pop("python")) != sys.version_info[:2]:
            continue
        BUILD_ROOT.mkdir(parents=True, exist_ok=True)
        write_if_changed(cache, answer)
        return _tensorflow(facts)
    if found_broken:
        raise BuildError(f"the TensorFlow at {found_broken} cannot be imported; repair it first")
    raise BuildError(
        "no TensorFlow to build tensorflow_recursion against: pip install tensorflow, then try again; if it is there, "
        "the build is isolated from it: pip install setuptools cmake ninja, then repeat the command with "
        "--no-build-isolation (pip, uv) or --no-isolation (python -m build)"
    )


def _tensorflow(facts: dict) -> TensorFlow:
    """Paths are resolved, so that trees that share a virtual environment by a link share a compiler cache too."""
    include, library_dir = (os.path.realpath(facts[name]) for name in ("include", "library_dir"))
    compile_flags = tuple(flag for flag in facts["compile_flags"] if not flag.startswith("-I"))
    link_flags = tuple(f"-L{library_dir}" if flag.startswith("-L") else flag for flag in facts["link_flags"])
    return TensorFlow(facts["version"], include, library_dir, compile_flags, link_flags)


def write_if_changed(path: pathlib.Path, text: str) -> None:
    """Writes `text`, atomically, and leaves an equal file alone (its time stamp decides what is rebuilt)."""
    if path.exists() and path.read_text() == text:
        return
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text)
    os.replace(temporary, path)


def main() -> int:
    try:
        tensorflow = find_tensorflow()
        facts = dataclasses.asdict(tensorflow)
        if "--module" in sys.argv:  # also what the Python module needs
            facts["module_includes"] = [tensorflow.pybind_include(), tensorflow.python_include()]
    except BuildError as error:
        print(f"tensorflow_recursion: {error}", file=sys.stderr)
        return 1
    print(json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
