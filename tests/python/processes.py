"""Programs in processes of their own, without the seconds that each would take to import TensorFlow.

A process that has imported TensorFlow, and nothing else of interest, is started once and forks for each program (the
"forkserver" of Python's `multiprocessing`). What a test says about the start or the end of a process, or about the
command line, it says of one that it starts with `subprocess`.
"""
# SPDX-License-Identifier: Apache-2.0

import multiprocessing
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import types

from limits import HANG_SECONDS

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tensorflow"])


def run_python(*command, directory=None, environment=None, seconds=HANG_SECONDS):
    """Does what `subprocess.run` does for Python with this command, which begins with "-c", "-m" or a file.

    What this process can import, that one can.

    Raises:
      subprocess.TimeoutExpired: it took more than `seconds`.
    """
    command = [str(word) for word in command]
    environment = dict(os.environ if environment is None else environment)
    with tempfile.TemporaryDirectory() as folder:
        out, err = (pathlib.Path(folder, name) for name in ("out", "err"))
        process = _CONTEXT.Process(target=_main, args=(command, directory, environment, out, err))
        process.start()
        process.join(seconds)
        if process.is_alive():
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(command, seconds, out.read_text(), err.read_text())
        return subprocess.CompletedProcess(command, process.exitcode, out.read_text(), err.read_text())


def resident_kib(pid="self", field="VmRSS"):
    """Resident memory of a process, by default of this one: "VmRSS" is now, "VmHWM" the most so far."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{field}:"))


def processor_seconds(pid):
    """How long processors have worked for a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _main(command, directory, environment, out, err):
    """Becomes the program; its output goes to the files `out` and `err`."""
    for descriptor, path in ((1, out), (2, err)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, descriptor)
        os.close(file)
    sys.stdout, sys.stderr = (open(descriptor, "w", closefd=False) for descriptor in (1, 2))
    os.environ.clear()
    os.environ.update(environment)
    if directory is not None:
        os.chdir(directory)
    kind, *words = command
    if kind == "-c":
        sys.argv = [kind, *words[1:]]
        sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(words[0], "<string>", "exec"), vars(sys.modules["__main__"]))
    elif kind == "-m":
        sys.argv = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command
        sys.path.insert(0, str(pathlib.Path(kind).parent))
        runpy.run_path(kind, run_name="__main__")
