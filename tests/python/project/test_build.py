"""The build: what it finds, what it exports and packs, and what it says when something is missing."""
# SPDX-License-Identifier: Apache-2.0

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion import _build_info, _loader

ROOT = pathlib.Path(__file__).resolve().parents[3]


def describe(**environment):
    command = [sys.executable, str(ROOT / "tools" / "find_tensorflow.py")]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


def test_package_knows_its_version_and_tensorflows():
    declared = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert tfr.__version__ == declared.group(1) == _build_info.VERSION
    assert _build_info.TENSORFLOW_VERSION == tf.__version__


def test_import_is_error_when_built_for_another_minor_version():
    with pytest.raises(
        ImportError,
        match=r"built for TensorFlow 2\.16\.2 .* TensorFlow 2\.21\.0; rebuild .*pip install .*--no-cache-dir",
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


def test_build_says_how_to_go_on_when_it_is_isolated_from_tensorflow(tmp_path):
    # This is what uv makes of an environment: another interpreter's modules are hidden, and none of the variables names
    # the user's.
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import find_tensorflow\n"
        "find_tensorflow._environments = lambda: []\n"
        "sys.argv = ['find_tensorflow']; sys.exit(find_tensorflow.main())"
    )
    command = [sys.executable, "-c", code, str(ROOT / "tools")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("tensorflow_recursion: no TensorFlow to build tensorflow_recursion against")
    assert "--no-build-isolation" in done.stderr


def test_broken_tensorflow_is_named_when_none_can_be_imported(tmp_path):
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("raise ImportError('broken')\n")
    code = (
        "import os, sys; sys.path.insert(0, sys.argv[1]); import find_tensorflow\n"
        "broken = {**os.environ, 'PYTHONPATH': sys.argv[2]}\n"
        "find_tensorflow._environments = lambda: [(sys.executable, broken)]\n"
        "sys.argv = ['find_tensorflow']; sys.exit(find_tensorflow.main())"
    )
    command = [sys.executable, "-c", code, str(ROOT / "tools"), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"the TensorFlow at {tmp_path}/tensorflow/__init__.py cannot be imported" in done.stderr


def readelf(*arguments):
    if shutil.which("readelf") is None:
        pytest.skip("no readelf")
    library = pathlib.Path(tfr.__file__).with_name("libtensorflow_recursion.so")
    command = ["readelf", "--wide", *arguments, str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_library_exports_only_what_the_module_calls():
    symbols = [line.split() for line in readelf("--dyn-syms").splitlines()]
    defined = {s[7] for s in symbols if len(s) >= 8 and s[0].rstrip(":").isdigit() and s[6] != "UND"}
    settings = ("GetStaticSettings", "SetStaticSettings", "CountOutermostCalls")
    called = ("ExpandSerialized", "ListSerialized", "SetNoticeListener", *settings, "StartProfile", "StopProfile")
    assert len(defined) == len(called) and all(any(name in symbol for symbol in defined) for name in called)


def test_library_is_hardened():
    assert "GNU_RELRO" in readelf("--program-headers")
    dynamic = readelf("--dynamic")
    assert "BIND_NOW" in dynamic or "NOW" in dynamic  # with GNU_RELRO: all of the table of addresses is read-only
    assert "__stack_chk_fail" in readelf("--dyn-syms")


def test_build_requirements_are_those_of_the_development_environment():
    pinned = set((ROOT / "requirements-dev.txt").read_text().split())
    requires = re.search(r"^requires = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE).group(1)
    assert set(re.findall(r'"([^"]+)"', requires)) <= pinned


@pytest.mark.thorough
def test_source_distribution_has_every_tracked_file(tmp_path):
    try:
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no git checkout")
    tracked = {path for path in listed.stdout.splitlines() if (ROOT / path).exists()}
    shutil.copytree(
        ROOT, tmp_path / "tree", ignore=shutil.ignore_patterns(".*", "build", "bazel-*", "*.egg-info", "*.so")
    )
    for name in (".bazelrc", ".bazelignore", ".clang-format", ".clang-tidy", "tests/cc/.clang-tidy"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, tmp_path / "tree" / name)
    command = [sys.executable, "-W", "ignore", "setup.py", "-q", "sdist", "--formats=tar", "--dist-dir", str(tmp_path)]
    subprocess.run(command, cwd=tmp_path / "tree", check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar"))) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    left_out = {".gitignore", "MANIFEST.in", *(name for name in tracked if name.startswith(".ci/"))}
    assert tracked - packed - left_out == set()


def native_module():
    """tools/native.py."""
    specification = importlib.util.spec_from_file_location("native", ROOT / "tools" / "native.py")
    native = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(native)
    return native


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="packages of Debian are unpacked where Debian's tools are")
@pytest.mark.parametrize("knows_packages", [True, False])
def test_googletest_is_unpacked_where_it_is_not_installed(tmp_path, monkeypatch, knows_packages):
    (tmp_path / "packed" / "DEBIAN").mkdir(parents=True)
    control = "Package: libgtest-dev\nVersion: 1\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: b\n"
    (tmp_path / "packed" / "DEBIAN" / "control").write_text(control)
    (tmp_path / "packed" / "usr").mkdir()
    (tmp_path / "packed" / "usr" / "header.h").write_text("")
    subprocess.run(["dpkg-deb", "--build", "packed", "new.deb"], cwd=tmp_path, check=True, capture_output=True)
    apt = tmp_path / "programs" / "apt-get"
    apt.parent.mkdir()
    has_lists, wanted = tmp_path / "lists", "download libgtest-dev"
    apt.write_text(
        f'#!/bin/sh\ncase "$*" in *update) touch {has_lists};; '
        f'*"{wanted}") test -e {has_lists} && cp {tmp_path}/new.deb libgtest-dev_1.deb;; *) exit 2;; esac\n'
    )
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", f"{apt.parent}:{os.environ['PATH']}")
    if knows_packages:
        has_lists.touch()
    native_module().download_googletest(tmp_path / "googletest")
    assert (tmp_path / "googletest" / "usr" / "header.h").exists()


def test_missing_googletest_is_no_error_without_debian_tools(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    native_module().download_googletest(tmp_path / "googletest")
    assert list((tmp_path / "googletest").iterdir()) == []


def test_tests_of_parts_that_passed_are_counted(tmp_path):
    part = "<testcase><system-out>[==========] 9 tests ran.\n[  PASSED  ] {} tests.\n</system-out>{}</testcase>"
    report = tmp_path / "ctest.xml"
    report.write_text(f"<testsuite>{part.format(9, '')}{part.format(7, '<failure/>')}{part.format(4, '')}</testsuite>")
    assert native_module().num_passed(report) == 13
    assert native_module().num_passed(tmp_path / "none.xml") == 0


def test_changed_header_is_looked_at_with_its_own_source_then_with_the_nearest(tmp_path):
    native = native_module()
    files = {
        "cc/base/a.h": "",
        "cc/base/a.cc": '#include "cc/base/a.h"\n',
        "cc/base/b.h": '#include <vector>\n\n#include "cc/base/a.h"\n',
        "cc/values/a_reader.cc": '#include "cc/base/a.h"\n',
        "tests/cc/base/b_test.cc": '#include "cc/base/b.h"\n#include "tests/cc/base/help.h"\n',
        "tests/cc/base/help.h": '#include "cc/base/b.h"\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    included_by = native.includers(tmp_path)
    own, reader, test = "cc/base/a.cc", "cc/values/a_reader.cc", "tests/cc/base/b_test.cc"
    assert native.sources_of("cc/base/a.h", included_by) == [own, reader, test]
    assert native.sources_of("cc/base/b.h", included_by) == [test]
    assert native.sources_of("cc/base/unread.h", included_by) == []


@pytest.mark.parametrize("is_link", [False, True])
def test_make_says_that_it_installs_nothing_where_the_environment_is_a_link(tmp_path, is_link):
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / "requirements-dev.txt").touch()
    environment = tmp_path / ("shared" if is_link else ".venv")
    (environment / "bin").mkdir(parents=True)
    (environment / ".requirements").touch()
    python = environment / "bin" / "python"
    python.write_text('#!/bin/sh\necho "$@" >> commands\n')
    python.chmod(0o755)
    if is_link:
        (tmp_path / ".venv").symlink_to(environment)
    command = ["make", "--no-print-directory", "build"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    said = f".venv is a link: the package is not installed in it; run from here, PYTHONPATH={tmp_path}\n"
    assert done.stdout == said * is_link
    assert ("--editable ." in (tmp_path / "commands").read_text()) != is_link


def git(directory, *arguments):
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "init.defaultBranch=main"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True).stdout.strip()


def test_changes_are_those_since_the_main_branch_or_on_it_those_of_the_last_commit(tmp_path):
    base_of_changes = native_module().base_of_changes
    git(tmp_path, "init", "-q")
    commits = []
    for message in ("first", "second"):
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", message)
        commits.append(git(tmp_path, "rev-parse", "HEAD"))
        assert base_of_changes(tmp_path) == commits[0], "the first commit has none before it"
    git(tmp_path, "checkout", "-q", "-b", "branch")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "third")
    assert base_of_changes(tmp_path) == commits[1]
