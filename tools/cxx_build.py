"""Compiles the C++ rooms against the TensorFlow of this environment: incrementally, on all cores.

setup.py uses it for the package, `python tools/cxx_build.py test` for the C++ tests.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD_ROOT = ROOT / "build" / "cxx"
LIBRARY = "libtensorflow_recursion.so"
MODULE = "_native.so"


class BuildError(Exception):
    """A failure whose message, one line, is all the user needs."""


def sources() -> dict:
    """The flags of cc/sources.bzl, which Bazel loads too, and the files of the rooms."""
    names: dict = {}
    path = ROOT / "cc" / "sources.bzl"
    exec(compile(path.read_text(), str(path), "exec"), names)
    find = lambda pattern: sorted(str(p.relative_to(ROOT)) for p in ROOT.glob(pattern))
    names["MODULE_SOURCES"] = find("cc/python/*.cc")
    names["LIBRARY_SOURCES"] = [p for p in find("cc/*/*.cc") if p not in names["MODULE_SOURCES"]]
    names["FAKE_GPU_SOURCES"] = find("tests/cc/fake_gpu/*.cc")
    names["TEST_SOURCES"] = find("tests/cc/*/*_test.cc")
    return names


# ----------------------------------------------------------------------------------------------------
# The TensorFlow to build against
# ----------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class TensorFlow:
    version: str
    include: str
    library_dir: str
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]

    def cxxflags(self) -> list[str]:
        """tf.sysconfig's flags, with TensorFlow's headers as system headers: their warnings are not ours."""
        flags = []
        for flag in self.compile_flags:
            flags += ["-isystem", flag[2:]] if flag.startswith("-I") else [flag]
        return flags

    def ldflags(self) -> list[str]:
        return list(self.link_flags)


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
    (`python -m build`, uv) make a virtual environment of their own; the active one is then named by a variable.
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
    try:
        # -P: the current directory may hold a package of the same name. Python 3.10 does not know the flag.
        flags = ["-P"] if sys.version_info >= (3, 11) else []
        done = _capture([python, *flags, "-c", code], env=environment)
    except OSError:
        return ""
    lines = done.stdout.strip().splitlines()
    return lines[-1] if done.returncode == 0 and lines else ""


def _capture(command: list[str], **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


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
        return TensorFlow(**{k: tuple(v) if isinstance(v, list) else v for k, v in facts.items()})
    if found_broken:
        raise BuildError(f"the TensorFlow at {found_broken} cannot be imported; repair it first")
    raise BuildError("no TensorFlow to build tensorflow_recursion against: pip install tensorflow, then try again")


# ----------------------------------------------------------------------------------------------------
# Compiling
# ----------------------------------------------------------------------------------------------------


def write_if_changed(path: pathlib.Path, text: str) -> None:
    """Writes `text`, atomically, and leaves an equal file alone (its time stamp decides what is rebuilt)."""
    if path.exists() and path.read_text() == text:
        return
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text)
    os.replace(temporary, path)


def compiler() -> list[str]:
    """$CXX or g++, behind ccache where that is installed.

    Raises:
      BuildError: when there is no compiler.
    """
    command = shlex.split(os.environ.get("CXX", "")) or ["g++"]
    if shutil.which(command[0]) is None:
        raise BuildError(f"no C++ compiler: '{command[0]}' not found; install g++ (apt-get install g++) or set CXX")
    if "CXX" not in os.environ and shutil.which("ccache"):
        command.insert(0, "ccache")
    return command


def _prerequisites(depfile: pathlib.Path) -> list[str]:
    text = depfile.read_text().replace("\\\n", " ")
    return [os.path.join(ROOT, path) for path in shlex.split(text.split(": ", 1)[1])]


class Builder:
    """Compiles and links into one directory per TensorFlow version, Python version and mode.

    A product is remade when its command line or, by modification time, one of its inputs changed. One process builds
    at a time (file lock), with one thread per core. `failed` stops the other threads at the first error.
    """

    def __init__(self, tensorflow: TensorFlow, *, sanitize: bool = False, verbose: bool = False):
        self.tensorflow = tensorflow
        self.lists = sources()
        mode = "-sanitize" if sanitize else ""
        self.dir = BUILD_ROOT / f"tf{tensorflow.version}-py{sys.version_info[0]}{sys.version_info[1]}{mode}"
        self.dir.mkdir(parents=True, exist_ok=True)
        self._cxx = compiler()
        self._verbose = verbose
        self._failed = threading.Event()
        self._copts = [*tensorflow.cxxflags(), f"-I{ROOT}", *self.lists["COPTS"]]
        self._linkopts = list(self.lists["LINKOPTS"])
        if sanitize:
            self._copts += self.lists["SANITIZER_COPTS"]
            self._linkopts += self.lists["SANITIZER_LINKOPTS"]

    @contextlib.contextmanager
    def lock(self):
        with open(self.dir / "lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("waiting for another build of this tree", file=sys.stderr)
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def compile(self, files: list[str], extra: list[str] | None = None) -> list[pathlib.Path]:
        """Brings the objects of `files` up to date; returns them in order."""
        jobs = int(os.environ.get("MAX_JOBS", 0)) or len(os.sched_getaffinity(0))
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            made = [pool.submit(self._compile_one, file, extra or []) for file in files]
            return [future.result() for future in made]

    def _compile_one(self, file: str, extra: list[str]) -> pathlib.Path:
        target = self.dir / (file.replace("/", ".") + ".o")
        depfile = target.with_suffix(".d")
        command = [*self._cxx, *self._copts, *extra, "-MMD", "-MF", str(depfile)]
        command += ["-c", str(ROOT / file), "-o", str(target)]
        inputs = [str(ROOT / file)]
        if depfile.exists():
            inputs = _prerequisites(depfile)
        self._make(target, command, inputs, f"compiling {file}")
        return target

    def link(self, name: str, objects: list[pathlib.Path], flags: list[str]) -> pathlib.Path:
        target = self.dir / name
        inputs = [str(o) for o in objects]
        cxx = [c for c in self._cxx if c != "ccache"]
        self._make(target, [*cxx, "-o", str(target), *inputs, *self._linkopts, *flags], inputs, f"linking {name}")
        return target

    def _make(self, target: pathlib.Path, command: list[str], inputs: list[str], what: str) -> None:
        if self._failed.is_set():
            raise BuildError("stopped after an earlier error")
        line = shlex.join(command)
        stamp = target.with_name(target.name + ".cmd")
        if _up_to_date(target, stamp, line, inputs):
            return
        print(line if self._verbose else what, file=sys.stderr, flush=True)
        stamp.unlink(missing_ok=True)
        started = time.time()
        # The cache then gives one answer to every checkout of this tree.
        done = _capture(command, cwd=ROOT, env={**os.environ, "CCACHE_BASEDIR": str(ROOT)})
        if done.stderr:
            print(done.stderr, file=sys.stderr, flush=True)
        if done.returncode != 0:
            self._failed.set()
            raise BuildError(f"error while {what} (above; build with V=1 for the whole command)")
        # An input that changed while the compiler ran is newer than its product: it will be compiled again.
        os.utime(target, (started, started))
        stamp.write_text(line)

    # The products.

    def library(self) -> pathlib.Path:
        objects = self.compile(self.lists["LIBRARY_SOURCES"])
        return self.link(LIBRARY, objects, ["-shared", f"-Wl,-soname,{LIBRARY}", *self.tensorflow.ldflags()])

    def module(self) -> pathlib.Path | None:
        """The pybind11 module, or None while it has no sources; build the library first."""
        if not self.lists["MODULE_SOURCES"]:
            return None
        includes = [_pybind_include(self.tensorflow), _python_include(self.tensorflow)]
        flags = [flag for include in includes for flag in ("-isystem", include)]
        objects = self.compile(self.lists["MODULE_SOURCES"], [*flags, "-fvisibility=hidden"])
        # Python's own symbols come from the interpreter, so this one link may leave symbols undefined.
        link = ["-shared", "-Wl,-z,undefs", "-Wl,-rpath,$ORIGIN", f"-L{self.dir}", f"-l:{LIBRARY}"]
        return self.link(MODULE, objects, [*link, *self.tensorflow.ldflags()])

    def fake_gpu(self) -> pathlib.Path:
        objects = self.compile(self.lists["FAKE_GPU_SOURCES"])
        directory = self.tensorflow.library_dir
        flags = ["-shared", f"-L{directory}", "-l:libtensorflow_cc.so.2", *self.tensorflow.ldflags()]
        return self.link("libfake_gpu.so", objects, flags)

    def tests(self) -> pathlib.Path:
        """One program of all C++ tests; the library's objects are linked in, so no symbol need be exported."""
        objects = self.compile([*self.lists["LIBRARY_SOURCES"], *self.lists["TEST_SOURCES"]])
        directory = self.tensorflow.library_dir
        # Stock operators and kernels live in libtensorflow_cc and register themselves when it is loaded.
        stock = [f"-L{directory}", f"-Wl,-rpath,{directory}", "-Wl,--no-as-needed", "-l:libtensorflow_cc.so.2"]
        gtest = ["-lgtest", "-lgtest_main", "-lpthread"]
        return self.link("cc_tests", objects, [*stock, *self.tensorflow.ldflags(), *gtest])


def _up_to_date(target: pathlib.Path, stamp: pathlib.Path, line: str, inputs: list[str]) -> bool:
    if not target.exists() or not stamp.exists() or stamp.read_text() != line:
        return False
    made = target.stat().st_mtime_ns
    try:
        return all(os.stat(path).st_mtime_ns < made for path in inputs)
    except FileNotFoundError:  # a header that was removed or renamed
        return False


def _pybind_include(tensorflow: TensorFlow) -> str:
    """pybind11's headers ship in the wheel."""
    for place in ("include", "_virtual_includes/pybind11"):
        path = os.path.join(tensorflow.include, "external", "pybind11", place)
        if os.path.exists(os.path.join(path, "pybind11", "pybind11.h")):
            return path
    raise BuildError(f"TensorFlow {tensorflow.version} comes without pybind11's headers; use TensorFlow 2.16 or later")


def _python_include(tensorflow: TensorFlow) -> str:
    """The interpreter's headers; where its -dev package is missing, the copy for the same version in the wheel."""
    include = sysconfig.get_paths()["include"]
    if os.path.exists(os.path.join(include, "Python.h")):
        return include
    version = "python%d.%d" % sys.version_info[:2]
    for copy in pathlib.Path(tensorflow.include, "external").glob(f"python_*/include/{version}"):
        if (copy / "Python.h").exists():
            return str(copy)
    raise BuildError(f"Python.h is missing: install the headers of {version} (apt-get install {version}-dev)")


# ----------------------------------------------------------------------------------------------------
# The package's files and the command line
# ----------------------------------------------------------------------------------------------------


def build_package(destination: pathlib.Path, version: str, *, verbose: bool = False) -> None:
    """Puts the library, the module and `_build_info.py` into `destination`.

    Raises:
      BuildError: no TensorFlow, no compiler, or a compile error.
    """
    tensorflow = find_tensorflow()
    builder = Builder(tensorflow, verbose=verbose)
    with builder.lock():
        products = {LIBRARY: builder.library(), MODULE: builder.module()}
        for name, path in products.items():
            if path is not None:
                _install(path, destination / name)
    info = f'"""Written by the build: what this package is and was compiled for."""\n\nVERSION = "{version}"\n'
    info += f'TENSORFLOW_VERSION = "{tensorflow.version}"\n'
    write_if_changed(destination / "_build_info.py", info)


def _install(source: pathlib.Path, target: pathlib.Path) -> None:
    """Replaces `target` by a copy; running processes keep the old file."""
    if target.exists() and target.stat().st_mtime_ns == source.stat().st_mtime_ns:
        return
    temporary = target.with_name(target.name + ".tmp")
    shutil.copy2(source, temporary)
    os.replace(temporary, target)


def _gtest_missing() -> bool:
    probe = [*compiler(), "-std=c++17", "-x", "c++", "-fsyntax-only", "-"]
    return _capture(probe, input="#include <gtest/gtest.h>\n").returncode != 0


def run_tests(*, sanitize: bool, verbose: bool, arguments: list[str]) -> int:
    """Builds and runs the C++ tests; without GoogleTest says so and succeeds."""
    count = len(sources()["TEST_SOURCES"])
    if count == 0 or _gtest_missing():
        why = "GoogleTest is missing; apt-get install libgtest-dev" if count else "none are listed"
        print(f"C++ tests left out ({count} files): {why}")
        return 0
    builder = Builder(find_tensorflow(), sanitize=sanitize, verbose=verbose)
    with builder.lock():
        program = builder.tests()
    environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL=os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))
    if sanitize:
        suppressions = ROOT / "tools" / "leaks.supp"
        environment.setdefault("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1")
        environment.setdefault("LSAN_OPTIONS", f"suppressions={suppressions}:print_suppressions=0")
    command = [str(program), "--gtest_brief=1", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "target",
        choices=["test", "fake-gpu", "describe"],
        help="test: builds and runs the C++ tests; fake-gpu: builds the device of tests/cc/fake_gpu and prints where "
        "it is; describe: the TensorFlow found, as JSON",
    )
    parser.add_argument("--sanitize", action="store_true", help="address and leak sanitizer")
    options, arguments = parser.parse_known_args()
    try:
        if options.target == "describe":
            print(json.dumps(dataclasses.asdict(find_tensorflow())))
            return 0
        if options.target == "fake-gpu":
            builder = Builder(find_tensorflow(), verbose=bool(os.environ.get("V")))
            with builder.lock():
                print(builder.fake_gpu())
            return 0
        return run_tests(sanitize=options.sanitize, verbose=bool(os.environ.get("V")), arguments=arguments)
    except BuildError as error:
        print(f"tensorflow_recursion: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
