"""A TensorFlow cluster on loopback: one process a task, all of them children that end with their parent.

`Cluster(worker=2)` starts two tasks of the job "worker" and waits until they serve:

    with Cluster(worker=2) as cluster, tf.device(cluster.devices[1]):
        y = f(x)
        with tf.compat.v1.Session(cluster.target, config=tfr.session_config()) as session: ...

As a program, this module is one task (see `_serve`).
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_READY = b"ready\n"
_START_SECONDS = 120
_START_ATTEMPTS = 3  # a port that was free when it was chosen may be taken when the task binds it


class TaskFailed(Exception):
    """A task ended, or did not serve in time; says which one, and the end of what it printed."""


@dataclasses.dataclass(frozen=True)
class TaskOptions:
    """What a task's process is like.

    `imports` says whether it imports tensorflow_recursion; `cores` pins it to these cores, with one thread for each
    of them; `environment` is added to the parent's.
    """

    imports: bool = True
    cores: Sequence[int] | None = None
    environment: dict[str, str] = dataclasses.field(default_factory=dict)


class Task:
    """One process of a cluster. `start` begins its life, `wait` waits until it serves, `kill` ends it; then again."""

    def __init__(self, spec: dict[str, list[str]], job: str, index: int, options: TaskOptions) -> None:
        self.job, self.index, self.options = job, index, options
        self.address = spec[job][index]
        self._spec = spec
        self._process: subprocess.Popen[bytes] | None = None
        self._log = tempfile.TemporaryFile()

    @property
    def device(self) -> str:
        return f"/job:{self.job}/task:{self.index}"

    @property
    def target(self) -> str:
        return f"grpc://{self.address}"

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.device} does not run"
        return self._process.pid

    def start(self) -> None:
        cores = None if self.options.cores is None else list(self.options.cores)
        arguments = json.dumps(
            {"spec": self._spec, "job": self.job, "index": self.index, "imports": self.options.imports, "cores": cores}
        )
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", **self.options.environment}
        environment["PYTHONPATH"] = os.pathsep.join([str(_ROOT), environment.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.cluster", arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
        )

    def wait(self) -> None:
        """Waits until the task serves.

        Raises:
            TaskFailed: it ended, or does not serve in time.
        """
        assert self._process is not None and self._process.stdout is not None
        if _read_line(self._process.stdout, _START_SECONDS) != _READY:
            raise TaskFailed(f"{self.device} at {self.address} does not serve: {self.log()[-2000:]}")

    def log(self) -> str:
        """Returns what the task has printed to standard error, in all of its lives."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def kill(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process = None

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """The process stands still: it neither answers nor hangs up."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            # On a busy machine it runs on for a while; not to be reaped here, should it end.
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def resident_kib(self) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise TaskFailed(f"{self.device} has ended")

    def processor_seconds(self) -> float:
        """Returns the processor time that the process has taken."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self.kill()
        self._log.close()


class Cluster:
    """Tasks on loopback, `job=count` for each job; `options` are those of all tasks, or of some, by device.

    `tasks` and `devices` list them in the order of the jobs; the first one is the master of `target`.

    Raises:
        TaskFailed: a task does not start.
    """

    def __init__(self, options: TaskOptions | dict[str, TaskOptions] | None = None, **jobs: int) -> None:
        for attempt in range(_START_ATTEMPTS):
            self.tasks = _make_tasks(jobs, options)
            try:
                self._start()
                return
            except TaskFailed:
                self.close()
                if attempt == _START_ATTEMPTS - 1:
                    raise
            except BaseException:
                self.close()
                raise

    def _start(self) -> None:
        for task in self.tasks:
            task.start()
        for task in self.tasks:
            task.wait()

    @property
    def devices(self) -> list[str]:
        return [task.device for task in self.tasks]

    @property
    def target(self) -> str:
        return self.tasks[0].target

    def restore(self) -> None:
        """Starts anew what has been killed."""
        dead = [task for task in self.tasks if not task.is_alive()]
        for task in dead:
            task.kill()
            task.start()
        for task in dead:
            task.wait()

    def close(self) -> None:
        for task in self.tasks:
            task.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _make_tasks(jobs: dict[str, int], options: TaskOptions | dict[str, TaskOptions] | None) -> list[Task]:
    ports = iter(_free_ports(sum(jobs.values())))
    spec = {job: [f"localhost:{next(ports)}" for _ in range(count)] for job, count in jobs.items()}
    tasks = []
    for job, addresses in spec.items():
        for index in range(len(addresses)):
            own = options.get(f"/job:{job}/task:{index}") if isinstance(options, dict) else options
            tasks.append(Task(spec, job, index, own or TaskOptions()))
    return tasks


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("localhost", 0))
        return [each.getsockname()[1] for each in sockets]


def _read_line(pipe: Any, seconds: float) -> bytes:
    """Returns the next line, or what there is of it at the end of the pipe or of the time."""
    deadline, line = time.monotonic() + seconds, b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while not line.endswith(b"\n") and selector.select(max(0.0, deadline - time.monotonic())):
            byte = os.read(pipe.fileno(), 1)
            if not byte:
                break
            line += byte
    return line


def _serve(arguments: dict[str, Any]) -> None:
    """Serves one task until standard input ends, which it does when the parent ends."""
    cores = arguments["cores"]
    if cores is not None:
        os.sched_setaffinity(0, cores)
    import tensorflow as tf

    if arguments["imports"]:
        import tensorflow_recursion  # noqa: F401
    tf1 = tf.compat.v1
    config = tf1.ConfigProto()
    if cores is not None:
        config.intra_op_parallelism_threads = config.inter_op_parallelism_threads = len(cores)
    spec = tf.train.ClusterSpec(arguments["spec"])
    server = tf1.train.Server(spec, job_name=arguments["job"], task_index=arguments["index"], config=config)
    os.write(1, _READY)
    sys.stdin.buffer.read()
    del server
    os._exit(0)  # a server has no way to stop


if __name__ == "__main__":
    _serve(json.loads(sys.argv[1]))
