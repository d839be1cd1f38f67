"""Calls CMake for setup.py and make: one build directory for each TensorFlow, Python and preset, one build at a time.

`python tools/native.py test` builds and runs the C++ tests; it takes GoogleTest's flags. Environment: `CXX` chooses the
compiler, `MAX_JOBS` how many run at once, `V=1` prints commands.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import fcntl
import importlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
from xml.etree import ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from find_tensorflow import BUILD_ROOT, ROOT, BuildError, TensorFlow, find_tensorflow, write_if_changed

LIBRARY = "libtensorflow_recursion.so"
MODULE = "_native.so"
# Where GoogleTest is unpacked if it is not installed.
GOOGLETEST = BUILD_ROOT / "googletest"
PRESETS = ("release", "asan", "ubsan", "tsan")


def _tool(name: str, directory: str) -> str:
    """A program of the wheel `name` in this environment, else the one on PATH."""
    with contextlib.suppress(ImportError):
        path = pathlib.Path(getattr(importlib.import_module(name), directory), name)
        if path.exists():
            return str(path)
    found = shutil.which(name)
    if found is None:
        raise BuildError(f"{name} is missing: pip install {name}")
    return found


def _check_compiler() -> None:
    command = shlex.split(os.environ.get("CXX", "")) or ["g++"]
    if shutil.which(command[0]) is None:
        raise BuildError(f"no C++ compiler: '{command[0]}' not found; install g++ (apt-get install g++) or set CXX")


class Build:
    """The build directory of one TensorFlow, Python and preset."""

    def __init__(self, tensorflow: TensorFlow, preset: str = "release"):
        self.tensorflow = tensorflow
        self.preset = preset
        suffix = "" if preset == "release" else f"-{preset}"
        self.dir = BUILD_ROOT / f"tf{tensorflow.version}-py{sys.version_info[0]}{sys.version_info[1]}{suffix}"
        self.cmake = _tool("cmake", "CMAKE_BIN_DIR")
        self._ninja = _tool("ninja", "BIN_DIR")

    def make(self, *targets: str) -> None:
        """Brings the targets up to date.

        Raises:
          BuildError: no compiler, no headers of Python, or a compile error (already printed).
        """
        self.dir.mkdir(parents=True, exist_ok=True)
        with self._lock():
            self._configure()
            if self.preset == "release":
                write_if_changed(ROOT / "compile_commands.json", self.commands())
            command = [self.cmake, "--build", str(self.dir), "--parallel", self.jobs(), "--target", *targets]
            if os.environ.get("V"):
                command.append("--verbose")
            if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
                raise BuildError("the C++ build failed (above; build with V=1 for whole commands)")

    @contextlib.contextmanager
    def _lock(self):
        with open(self.dir / "lock", "w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("waiting for another build of this tree", file=sys.stderr)
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def configure(self, *, afresh: bool = False) -> None:
        """Sets the build up, if it is not or has to be `afresh`; builds nothing."""
        self.dir.mkdir(parents=True, exist_ok=True)
        with self._lock():
            if afresh:
                (self.dir / "configured").unlink(missing_ok=True)
            self._configure()

    def has_googletest(self) -> bool:
        """Whether CMake has found GoogleTest when it set the build up."""
        return "TFR_GOOGLETEST:INTERNAL=ON" in (self.dir / "CMakeCache.txt").read_text()

    def commands(self) -> str:
        """What compile_commands.json says to editors and to clang-tidy: how each file is compiled, as if by itself.

        CMake's own has the files that unite several of ours, and g++'s flags for precompiled headers, which clang does
        not understand.
        """
        entries = []
        for entry in json.loads((self.dir / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            drop = {i + d for i, word in enumerate(words[:-1]) if word == "-include" for d in (0, 1)}
            drop |= {i for i, word in enumerate(words) if word in ("-fpch-preprocess", "-Winvalid-pch")}
            kept = [word for i, word in enumerate(words) if i not in drop]
            for file in _united(entry["file"]):
                command = [file if word == entry["file"] else word for word in kept]
                entries.append({"directory": entry["directory"], "command": shlex.join(command), "file": file})
        return json.dumps(entries, indent=1)

    def jobs(self) -> str:
        return os.environ.get("MAX_JOBS") or str(len(os.sched_getaffinity(0)))

    def _configure(self) -> None:
        """Runs CMake where there is no build yet, or one for another compiler, interpreter or CMake."""
        _check_compiler()
        self.tensorflow.pybind_include(), self.tensorflow.python_include()
        command = [self.cmake, "--preset", self.preset, "-B", str(self.dir), f"-DTFR_PYTHON={sys.executable}"]
        command.append(f"-DCMAKE_MAKE_PROGRAM={self._ninja}")
        compiler = os.environ.get("CXX", "g++")
        state = f"{shlex.join(command)}\n{compiler}\n"
        stamp = self.dir / "configured"
        before = stamp.read_text() if stamp.exists() else ""
        if before == state and (self.dir / "build.ninja").exists():
            return
        if before and before.splitlines()[-1] != compiler:
            command.append("--fresh")
        stamp.unlink(missing_ok=True)
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "CXX": compiler}, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            print(done.stdout, done.stderr, file=sys.stderr, flush=True)
            raise BuildError("CMake could not set up the C++ build (above)")
        stamp.write_text(state)


def _united(file: str) -> list[str]:
    """The sources that CMake has united in `file`, or the file itself if it is one of ours."""
    if "/Unity/" not in file:
        return [file]
    return [str(ROOT / name) for name in re.findall(r'^#include "(.+)"$', pathlib.Path(file).read_text(), re.MULTILINE)]


def announce(tensorflow: TensorFlow) -> None:
    print(f"building for TensorFlow {tensorflow.version} in {tensorflow.library_dir}", file=sys.stderr, flush=True)


def build_package(destination: pathlib.Path, version: str) -> None:
    """Puts the library, the module and `_build_info.py` into `destination`.

    Raises:
      BuildError: no TensorFlow, no compiler, or a compile error.
    """
    tensorflow = find_tensorflow()
    announce(tensorflow)
    build = Build(tensorflow)
    build.make("package")
    for name in (LIBRARY, MODULE):
        _install(build.dir / name, destination / name)
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


def download_googletest(directory: pathlib.Path) -> None:
    """Unpacks Debian's package of GoogleTest into `directory`, for which nobody need be root.

    Nothing happens where that cannot be: the build of the tests says what to install.
    """
    apt = ["apt-get", "-qq", "-o", "Acquire::http::Timeout=20"]
    directory.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):  # there is no apt-get
        for update in (False, True):  # on a new machine it does not know any package
            if update:
                subprocess.run([*apt, "update"], check=False)
            done = subprocess.run([*apt, "download", "libgtest-dev"], cwd=directory, check=False)
            if done.returncode == 0:
                break
        for package in directory.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package.name, "."], cwd=directory, check=False)


def configure_with_googletest(build: Build) -> None:
    build.configure()
    if not build.has_googletest():
        download_googletest(GOOGLETEST)
        build.configure(afresh=True)


def run_tests(build: Build, arguments: list[str]) -> int:
    """Builds the C++ tests and runs them: by ctest, in parts, or with GoogleTest's flags in one process."""
    configure_with_googletest(build)
    # What the Python tests take for a GPU is built beside them.
    build.make("cc_tests", *(["fake_gpu"] if build.preset == "release" else []))
    if arguments:
        environment = {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}
        command = [str(build.dir / "cc_tests"), "--gtest_brief=1", *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    ctest = str(pathlib.Path(build.cmake).with_name("ctest"))
    report = build.dir / "ctest.xml"
    report.unlink(missing_ok=True)
    command = [ctest, "--test-dir", str(build.dir), "--output-on-failure", "--parallel", build.jobs()]
    command += ["--output-junit", str(report), "--test-output-truncation", "head"]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    print(f"[  PASSED  ] {num_passed(report)} tests.", flush=True)
    return status


def num_passed(report: pathlib.Path) -> int:
    """How many tests of GoogleTest passed in the parts that passed. Ctest shows the output of those that failed."""
    parts = ElementTree.parse(report).iter("testcase") if report.exists() else ()
    output = "".join(part.findtext("system-out", "") for part in parts if part.find("failure") is None)
    return sum(map(int, re.findall(r"^\[  PASSED  \] (\d+) test", output, re.MULTILINE)))


# clang-tidy shows what it finds in a header with every source that includes it; the nearest see the whole of it.
MOST_SOURCES_OF_A_HEADER = 2


def changed_sources() -> list[str]:
    """C++ sources that differ from the main branch, committed or not, and some that include headers which do."""
    base = base_of_changes(ROOT)
    files = ("--", *(f"{directory}/*.{suffix}" for directory in ("cc", "tests/cc") for suffix in ("cc", "h")))
    names = _git("diff", "--name-only", "--diff-filter=d", base, *files)
    names += _git("ls-files", "--others", "--exclude-standard", *files)
    included_by = includers(ROOT)
    sources = {name for name in names if name.endswith(".cc")}
    for header in sorted(set(names) - sources):
        sources.update(sources_of(header, included_by)[:MOST_SOURCES_OF_A_HEADER])
    return sorted(sources)


def base_of_changes(root: pathlib.Path) -> str:
    """The commit with which to compare: where this branch has left the main branch.

    On the main branch itself, where continuous integration runs, it is the commit before the last one; the last one
    where that is all of the history that was fetched.
    """
    base = "main"
    for candidate in ("origin/main", "main"):
        if _git("rev-parse", "--verify", "--quiet", candidate, root=root):
            base = (_git("merge-base", "HEAD", candidate, root=root) or [candidate])[0]
            break
    if [base] == _git("rev-parse", "HEAD", root=root):
        return (_git("rev-parse", "--verify", "--quiet", "HEAD~1", root=root) or [base])[0]
    return base


def includers(root: pathlib.Path) -> dict[str, set[str]]:
    """The C++ files that include each of our headers. Paths are relative to `root`, as in the directives."""
    included_by: dict[str, set[str]] = {}
    for directory in ("cc", "tests/cc"):
        for path in [*(root / directory).rglob("*.cc"), *(root / directory).rglob("*.h")]:
            for header in re.findall(r'^#include "((?:cc|tests/cc)/.+)"$', path.read_text(), re.MULTILINE):
                included_by.setdefault(header, set()).add(str(path.relative_to(root)))
    return included_by


def sources_of(header: str, included_by: dict[str, set[str]]) -> list[str]:
    """The sources that include `header`, directly or by other headers: its own first, then the nearest."""
    own = header.removesuffix(".h")
    found: list[str] = []
    seen = {header}
    level = [header]
    while level:
        level = sorted({name for reached in level for name in included_by.get(reached, ())} - seen)
        seen.update(level)
        found += sorted((name for name in level if name.endswith(".cc")), key=lambda name: (name != own + ".cc", name))
    return found


def _git(*arguments: str, root: pathlib.Path = ROOT) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


def tidy(build: Build, files: list[str]) -> int:
    """Runs clang-tidy on `files`, or on what has changed; .clang-tidy has the rules."""
    files = files or changed_sources()
    if not files:
        print("no C++ file has changed")
        return 0
    configure_with_googletest(build)  # which the sources of tests include
    database = build.dir / "tidy"
    database.mkdir(exist_ok=True)
    write_if_changed(database / "compile_commands.json", build.commands())
    program = pathlib.Path(sys.executable).with_name("clang-tidy")
    command = [str(program), "-p", str(database), "--quiet"]
    with concurrent.futures.ThreadPoolExecutor(int(build.jobs())) as pool:
        codes = list(pool.map(lambda file: subprocess.run([*command, file], cwd=ROOT, check=False).returncode, files))
    return max(codes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "target",
        choices=["test", "fake-gpu", "tidy"],
        help="test: builds and runs the C++ tests; fake-gpu: builds tests/cc/fake_gpu, prints where it is; "
        "tidy: runs clang-tidy on the files named, else on those that have changed",
    )
    parser.add_argument("--preset", choices=PRESETS, default="release", help="of CMakePresets.json")
    options, arguments = parser.parse_known_args()
    try:
        build = Build(find_tensorflow(), options.preset)
        if options.target == "fake-gpu":
            build.make("fake_gpu")
            print(build.dir / "libfake_gpu.so")
            return 0
        if options.target == "tidy":
            return tidy(build, arguments)
        announce(build.tensorflow)
        return run_tests(build, arguments)
    except BuildError as error:
        print(f"tensorflow_recursion: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
