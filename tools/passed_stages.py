"""Notes which stages have passed on the files as they are, so that `stages.py --resume` need not run them again."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import stat
import subprocess
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

# Variables of the environment, by how they begin, that choose what a stage runs. MAKEFLAGS has what make was given.
_SETTINGS = ("CXX", "GTEST_", "MAKEFLAGS", "PYTEST_ADDOPTS", "TENSORFLOW_RECURSION_", "TF_ENABLE_ONEDNN_OPTS")


class Passed(NamedTuple):
    """How long a stage took that has passed, and how many of its tests passed and failed."""

    seconds: float
    counts: dict[str, int]


class PassedStages:
    """The stages that have passed, in a file, each with the tree that it has passed on.

    `find` looks for a stage before it runs, `add` notes it once it has passed, `drop` forgets all of them. A stage is
    given by its command and by what it is about: paths, or none for the whole checkout. Its tree is what these were at
    the beginning, when make had built the library of them: once files differ from that, the stage is neither found nor
    noted. The file must be one that git ignores, or each note would change the tree.
    """

    def __init__(self, file: str, abouts: Iterable[tuple[str, ...]]):
        self._file = pathlib.Path(file)
        self._trees = {about: current_tree(about) for about in abouts}

    def find(self, command: str, about: tuple[str, ...]) -> Passed | None:
        """What is noted of a command that has passed on the tree; None if nothing is, or files have changed."""
        note = self._read().get(_with_settings(command))
        is_same = note and note["tree"] == self._trees[about] == current_tree(about)
        return Passed(note["seconds"], note["counts"]) if is_same else None

    def add(self, command: str, about: tuple[str, ...], passed: Passed) -> bool:
        """Notes that a command has passed. Returns False if files have changed."""
        tree = current_tree(about)
        if tree != self._trees[about]:
            return False
        notes = {**self._read(), _with_settings(command): {"tree": tree, **passed._asdict()}}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        # The file is replaced as a whole: an interruption leaves the old one or the new one.
        new = self._file.with_name(self._file.name + ".new")
        new.write_text(json.dumps(notes, indent=1) + "\n")
        new.replace(self._file)
        return True

    def drop(self) -> None:
        """Forgets all notes."""
        self._file.unlink(missing_ok=True)

    def _read(self) -> dict[str, Any]:
        """The notes by command. A file that is damaged, or of another form, has none."""
        try:
            notes = json.loads(self._file.read_text())
        except (OSError, ValueError):
            return {}
        is_ours = isinstance(notes, dict) and all(
            isinstance(note, dict) and {"tree", *Passed._fields} == set(note) for note in notes.values()
        )
        return notes if is_ours else {}


def current_tree(about: Sequence[str] = ()) -> str | None:
    """A hash of the files that git tracks, or would by `git add --all`: names, contents, and which of them are tracked.

    It writes nothing, and sees the files themselves, whatever is in git's index. Which are tracked counts because some
    stages take only those. `about` names the files and directories that count, by default all. None if the working
    directory is not the top of a git checkout: in a copy below one, files may be ignored that matter.
    """
    if _git("rev-parse", "--show-cdup") != b"\n":
        return None
    listed = _git("ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard", "--", *about)
    if listed is None:
        return None
    entries = sorted(set(listed.split(b"\0")) - {b""})  # such as b"H setup.py": H is for tracked files, ? for others
    return hashlib.sha256(repr([(entry, _content(entry[2:])) for entry in entries]).encode()).hexdigest()


def _git(*arguments: str) -> bytes | None:
    """What git prints; None if it fails, or is not installed."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def _content(path: bytes) -> tuple[int, bytes] | None:
    """Kind and permission to execute, and a hash of what is in a file or a link; None if there is no such file."""
    try:
        mode = os.lstat(path).st_mode
        content = os.readlink(path) if stat.S_ISLNK(mode) else pathlib.Path(os.fsdecode(path)).read_bytes()
    except OSError:
        return None
    return stat.S_IFMT(mode) | mode & 0o111, hashlib.sha256(content).digest()


def _with_settings(command: str) -> str:
    """The command, after the variables that choose what it runs."""
    settings = []
    for name, value in sorted(os.environ.items()):
        if name == "MAKEFLAGS":  # How many jobs there are, and the file that counts them, may differ.
            value = " ".join(word for word in value.split() if not word.startswith(("-j", "--jobserver")))
        if name.startswith(_SETTINGS) and value:
            settings.append(f"{name}={value}")
    return " ".join([*settings, command])
