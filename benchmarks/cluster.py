"""A TensorFlow cluster on loopback: one process a task, all of them children that end with their parent.

`Cluster(worker=2)` starts two tasks of the job "worker" and waits until they serve:

    with Cluster(worker=2) as cluster, tf.device(cluster.devices[1]):
        y = f(x)
        with tf.compat.v1.Session(cluster.target, config=tfr.session_config()) as session: ...

A process that has imported TensorFlow is started once and forks for each task (the "forkserver" of `multiprocessing`):
the import takes seconds.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import multiprocessing
import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

_READY = b"ready"
_START_SECONDS = 120
_START_ATTEMPTS = 3  # a port that was free when it was chosen may be taken when the task binds it
_SECONDS_BETWEEN_LOOKS = 0.001

# Options of mallopt, as malloc.h numbers them.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tensorflow"])


class TaskFailed(Exception):
    """A task ended, or did not serve in time; says which one, and the end of what it printed."""


@dataclasses.dataclass(frozen=True)
class TaskOptions:
    """What a task's process is like.

    `imports` says whether it imports tensorflow_recursion; `cores` pins it to these cores, with one thread for each
    of them. With `gives_back`, it has few heaps, and what takes 128 KiB or more is in none: its memory goes back to the
    system when it is freed.
    """

    imports: bool = True
    cores: Sequence[int] | None = None
    gives_back: bool = False


class Task:
    """One process of a cluster. `start` begins its life, `wait` waits until it serves, `kill` ends it; then again."""

    def __init__(self, spec: dict[str, list[str]], job: str, index: int, options: TaskOptions) -> None:
        self.job, self.index, self.options = job, index, options
        self.address = spec[job][index]
        self._spec = spec
        self._process: ForkServerProcess | None = None
        self._connection: Connection | None = None  # whose end tells the task that its parent has ended
        self._log = tempfile.NamedTemporaryFile()

    @property
    def device(self) -> str:
        return f"/job:{self.job}/task:{self.index}"

    @property
    def target(self) -> str:
        return f"grpc://{self.address}"

    @property
    def pid(self) -> int:
        assert self._process is not None and self._process.pid is not None, f"{self.device} does not run"
        return self._process.pid

    def start(self) -> None:
        self._connection, connection = _CONTEXT.Pipe()
        arguments = (self._spec, self.job, self.index, self.options, connection, self._log.name)
        self._process = _CONTEXT.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        connection.close()

    def wait(self) -> None:
        """Waits until the task serves.

        Raises:
            TaskFailed: it ended, or does not serve in time.
        """
        assert self._connection is not None
        with contextlib.suppress(EOFError, ConnectionError):
            if self._connection.poll(_START_SECONDS) and self._connection.recv_bytes() == _READY:
                return
        raise TaskFailed(f"{self.device} at {self.address} does not serve: {self.log()[-2000:]}")

    def log(self) -> str:
        """Returns what the task has printed to standard error, in all of its lives."""
        return Path(self._log.name).read_text(errors="replace")

    def kill(self) -> None:
        if self._process is None or self._connection is None:
            return
        self._process.kill()
        self._process.join()
        self._process.close()
        self._connection.close()
        self._process = self._connection = None

    def is_alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """The process stands still: it neither answers nor hangs up."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            while not self._stands_still():  # on a busy machine it runs on for a while
                time.sleep(_SECONDS_BETWEEN_LOOKS)
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def _stands_still(self) -> bool:
        """Whether all threads are stopped, or have ended."""
        with contextlib.suppress(OSError):  # a thread, or the task, has ended meanwhile
            return all(
                path.joinpath("stat").read_text().rpartition(")")[2].split()[0] in "TZX"
                for path in Path(f"/proc/{self.pid}/task").iterdir()
            )
        return not self.is_alive()

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


def _serve(
    spec: dict[str, list[str]], job: str, index: int, options: TaskOptions, connection: Connection, log: str
) -> None:
    """Serves one task until the other end of the connection is closed, as it is when the parent ends."""
    if options.gives_back:
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, 2)
        libc.mallopt(_M_MMAP_THRESHOLD, 128 * 1024)
    if options.cores is not None:
        os.sched_setaffinity(0, options.cores)
    os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND), 2)
    import tensorflow as tf

    if options.imports:
        import tensorflow_recursion  # noqa: F401
    tf1 = tf.compat.v1
    config = tf1.ConfigProto()
    if options.cores is not None:
        config.intra_op_parallelism_threads = config.inter_op_parallelism_threads = len(options.cores)
    server = tf1.train.Server(tf.train.ClusterSpec(spec), job_name=job, task_index=index, config=config)
    connection.send_bytes(_READY)
    with contextlib.suppress(EOFError, ConnectionError):
        connection.recv_bytes()
    del server
    os._exit(0)  # a server has no way to stop
