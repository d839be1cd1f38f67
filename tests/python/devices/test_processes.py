"""Several processes: servers as users set them up, and what happens when one of them fails."""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import threading
import time

import distribution_helpers as distribution
import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from limits import HANG_SECONDS, wait_for
from processes import processor_seconds, resident_kib

from benchmarks.cluster import Cluster, TaskOptions

tf1 = tf.compat.v1
pytestmark = pytest.mark.thorough
I32, F32 = tf.int32, tf.float32


@pytest.fixture
def place(cluster):
    return distribution.of_cluster(cluster)


@pytest.fixture(scope="module")
def mortal_cluster():
    """A cluster whose tasks the tests kill, and measure: heaps that do not shrink would look like leaks."""
    with Cluster(TaskOptions(gives_back=True), worker=2) as cluster:
        yield cluster


@pytest.fixture
def mortal(mortal_cluster):
    mortal_cluster.restore()
    yield mortal_cluster
    mortal_cluster.restore()


def split_fib(a, b, name="Fib"):
    f, define = recursive(name, [I32], [I32])

    @define
    def Fib(n):
        def calls():
            with tf.device(a):
                left = f(n - 1)
            with tf.device(b):
                right = f(n - 2)
            return left + right

        return tf.cond(n < 2, lambda: n, calls)

    return f


def endless(a, b):
    """A recursion on both tasks that never ends, and stays shallow: the left call of each level ends first."""
    f, define = recursive("Endless", [I32], [I32])

    @define
    def Endless(n):
        def calls():
            with tf.device(a):
                left = f(n - 1)
            with tf.device(b):
                return f(left + n - 1) + f(n - 1)

        return tf.cond(n < 1, lambda: 0, calls)

    return f


class Background:
    """A run in a thread of its own."""

    def __init__(self, run):
        self.value = self.error = None
        self._thread = threading.Thread(target=self._run, args=[run], daemon=True)
        self._thread.start()

    def _run(self, run):
        try:
            self.value = run()
        except Exception as error:
            self.error = error

    def ends(self, seconds=HANG_SECONDS):
        self._thread.join(seconds)
        return not self._thread.is_alive()


def wait_until_idle(*tasks):
    """Waits until nothing of a step keeps the tasks busy."""

    def is_idle():
        before = [processor_seconds(task.pid) for task in tasks]
        time.sleep(0.5)
        return all(processor_seconds(task.pid) - seconds < 0.1 for task, seconds in zip(tasks, before, strict=True))

    wait_for(is_idle)


@contextlib.contextmanager
def abandoned(session):
    """Closes a session that has lost a worker while the tasks live: without them that takes the client's timeout."""
    try:
        yield session
    finally:
        with contextlib.suppress(tf.errors.OpError):
            session.close()


def touching(path, x):
    """`x`, and a file that says that it has been computed."""
    written = tf.io.write_file(str(path), "here")
    with tf.control_dependencies([written]):
        return tf.identity(x)


# --- Servers as users set them up ---------------------------------------------------------------------------------


def test_only_the_entry_turns_static_execution_on(place):
    config = tf1.ConfigProto()
    config.graph_options.rewrite_options.custom_optimizers.add().name = "function_transformation"
    y = split_fib(*place.devices)(tf1.placeholder_with_default(12, []))
    with tf1.Session(place.target, config=config) as session:
        value, metadata = distribution.run_traced(session, y)
    assert value == 144
    ops = {node.op for node in distribution.partition_nodes(metadata)}
    assert "Recursion>Entry" in ops
    assert "Recursion>Invoke" not in ops


@pytest.mark.parametrize("master", [0, 1])
def test_any_task_may_be_the_master(cluster, place, master):
    y = split_fib(*place.devices)(tf1.placeholder_with_default(12, []))
    with place._replace(target=cluster.tasks[master].target).session() as session:
        assert session.run(y, options=distribution.TIMEOUT) == 144


def test_whole_recursion_may_be_on_the_task_that_is_not_the_master(place, control_flow):
    with tf.device(place.devices[1]):
        f, define = recursive("Fib", [I32], [I32])
        define(lambda n: tf.cond(n < 2, lambda: n, lambda: f(n - 1) + f(n - 2)))
        y = f(tf1.placeholder_with_default(15, []))
    with place.session() as session:
        assert session.run(y, options=distribution.TIMEOUT) == 610


@pytest.mark.parametrize("variable_kind", ["resource"], indirect=True)
@pytest.mark.parametrize("partitions", [1, 2])
def test_variables_train_on_parameter_servers_when_replica_device_setter_places_them(variable_kind, partitions):
    """Two parameter servers and a worker; and the same steps in one process."""

    def losses(session_of):
        f, define = recursive("Net", [I32, F32], [F32], shapes=[[1, 4]], create_grad_func=True)
        w = tf1.get_variable("w", initializer=np.linspace(-0.5, 0.5, 16, dtype=np.float32).reshape(4, 4))
        bias = tf1.get_variable("b", initializer=np.full(4, 0.1, np.float32))

        @define
        def Net(n, x):
            x = tf.ensure_shape(x, [1, 4])
            return tf.cond(n < 1, lambda: x * 1.0, lambda: tf.tanh(tf.matmul(f(n - 1, x), w) + bias))

        loss = tf.reduce_sum(f(tf1.placeholder_with_default(4, []), tf.ones([1, 4])) ** 2)
        step = tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
        devices = {w.device, bias.device}
        with session_of() as session:
            session.run(tf1.global_variables_initializer())
            return [session.run([loss, step], options=distribution.TIMEOUT)[0] for _ in range(5)], devices

    one, _ = losses(distribution.one_device().session)
    with Cluster(ps=partitions, worker=1) as cluster, tf.Graph().as_default():
        setter = tf1.train.replica_device_setter(ps_tasks=partitions, worker_device="/job:worker/task:0")
        place = distribution.of_cluster(cluster)._replace(target=cluster.tasks[-1].target)
        with tf1.device(setter):
            apart, devices = losses(place.session)
    assert devices == {f"/job:ps/task:{i}" for i in range(partitions)}
    assert one[-1] < one[0]
    assert apart == one


def test_two_sessions_run_at_once(place):
    """Their frames have the same tags; their values must not mix."""
    n = tf1.placeholder(I32, [])
    y = split_fib(*place.devices)(n)
    expected = {3: 2, 8: 21, 11: 89}

    def runs(session, own):
        return [int(session.run(y, {n: k}, options=distribution.TIMEOUT)) == v for _ in range(5) for k, v in own]

    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(place.session(isolated=i > 0)) for i in range(3)]
        items = list(expected.items())
        threads = [
            Background(lambda session=session, own=items[i:] + items[:i]: runs(session, own))
            for i, session in enumerate(sessions)
        ]
        assert all(thread.ends() for thread in threads)
    assert [thread.error for thread in threads] == [None] * 3
    assert [thread.value for thread in threads] == [[True] * 15] * 3


def test_two_steps_of_one_session_run_at_once(place):
    n = tf1.placeholder(I32, [])
    y = split_fib(*place.devices)(n)
    with place.session() as session:
        run = lambda k: [int(session.run(y, {n: k}, options=distribution.TIMEOUT)) for _ in range(5)]
        threads = [Background(lambda k=k: run(k)) for k in (5, 9, 10)]
        assert all(thread.ends() for thread in threads)
    assert [thread.value for thread in threads] == [[5] * 5, [34] * 5, [55] * 5]


def test_server_that_has_served_other_sessions_serves_another(place):
    for number in range(5):
        with tf.Graph().as_default():
            # One name for functions that differ: nothing of the session before may be left.
            f, define = recursive("F", [I32], [I32])

            @define
            def F(n):
                def deeper():
                    with tf.device(place.devices[number % 2]):
                        return f(n - 1) + number

                with tf.device(place.devices[1]):
                    return tf.cond(n < 1, lambda: 0, deeper)

            with place.session(isolated=number % 2 == 0) as session:
                y = f(tf1.placeholder_with_default(6, []))
                assert session.run(y, options=distribution.TIMEOUT) == 6 * number


def test_variables_are_shared_by_sessions_that_are_not_isolated(place):
    with tf.device(place.devices[1]):
        count = tf1.get_variable("shared_count", [], I32, tf1.zeros_initializer(), use_resource=True)
    f, define = recursive("Counted", [I32], [I32])

    @define
    def Counted(n):
        with tf.control_dependencies([count.assign_add(1)]):
            n = tf.identity(n)
        return tf.cond(n < 1, lambda: 0, lambda: f(n - 1))

    y = f(tf1.placeholder_with_default(4, []))
    with place.session(isolated=False) as session:
        session.run(tf1.global_variables_initializer())
        session.run(y, options=distribution.TIMEOUT)
        with place.session(isolated=False) as other:
            other.run(y, options=distribution.TIMEOUT)
        assert session.run(count) == 10


def test_state_of_operators_is_the_sessions_when_fetches_change(place):
    """A queue is the same one in runs with calls and in runs without."""
    with tf.device(place.devices[1]):
        queue = tf.queue.FIFOQueue(10, I32, [])
        put, take = queue.enqueue(7), queue.dequeue()
    f, define = recursive("Add", [I32, I32], [I32])
    define(lambda n, x: tf.cond(n < 1, lambda: x, lambda: 1 + f(n - 1, x)))
    y = f(tf1.placeholder_with_default(3, []), take)
    with place.session() as session:
        session.run(put)
        assert session.run(y, options=distribution.TIMEOUT) == 10
        assert session.run(queue.size()) == 0


@pytest.mark.parametrize("bare", [0, 1])
def test_worker_without_the_import_answers_with_an_error_that_says_so(bare):
    with Cluster({f"/job:worker/task:{bare}": TaskOptions(imports=False)}, worker=2) as cluster:
        place = distribution.of_cluster(cluster)
        y = split_fib(*place.devices)(tf1.placeholder_with_default(5, []))
        with pytest.raises(tf.errors.OpError, match="tensorflow_recursion|Op type not registered 'Recursion>"):
            with place.session() as session:
                session.run(y, options=distribution.TIMEOUT)
        with tf.Graph().as_default(), tf.device(place.devices[bare]):
            five = tf.constant(2) + 3
            with place.session() as session:
                assert session.run(five, options=distribution.TIMEOUT) == 5


# --- When things go wrong -----------------------------------------------------------------------------------------


def signalling(place, tmp_path, number):
    """`number` as a tensor of the second task, and a file that is there once it has been computed."""
    started = tmp_path / "started"
    with tf.device(place.devices[1]):
        return touching(started, tf1.placeholder_with_default(number, [])), started


@pytest.mark.parametrize("victim", [0, 1], ids=["master", "other"])
def test_run_ends_and_the_next_session_works_when_a_worker_dies_in_a_recursion(mortal, tmp_path, victim):
    place = distribution.of_cluster(mortal)
    n, started = signalling(place, tmp_path, 1000)
    y = endless(*place.devices)(n)
    fib = split_fib(*place.devices)(tf1.placeholder_with_default(10, []))
    with abandoned(place.session(isolated=False)) as session:
        long_run = Background(lambda: session.run(y))
        wait_for(started.exists)
        time.sleep(0.3)  # more or less, what follows must hold
        assert not long_run.ends(0)
        mortal.tasks[victim].kill()
        if victim == 1:  # (TensorFlow's client calls a dead master again for a while, with or without recursion.)
            assert long_run.ends()
        mortal.restore()
        assert long_run.ends()
    assert isinstance(long_run.error, (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError))
    assert runs_again(place, fib) == 55


def runs_again(place, fetch):
    """The value in a new session, as soon as the servers have found each other again: stock steps wait for that too."""
    deadline = time.monotonic() + HANG_SECONDS
    while True:
        try:
            with place.session() as session:
                return session.run(fetch, options=distribution.TIMEOUT)
        except (tf.errors.UnavailableError, tf.errors.AbortedError):
            assert time.monotonic() < deadline
            time.sleep(0.2)


@pytest.mark.parametrize("victim", [0, 1], ids=["master", "other"])
def test_survivor_is_free_again_when_the_other_worker_has_died(mortal, tmp_path, victim):
    """Nothing of the dead step stays busy: the survivor's processor time stands still."""
    place = distribution.of_cluster(mortal)
    n, started = signalling(place, tmp_path, 1000)
    y = endless(*place.devices)(n)
    with abandoned(place.session(isolated=False)) as session:  # here: a thread has a default graph of its own
        long_run = Background(lambda: session.run(y))
        wait_for(started.exists)
        assert not long_run.ends(0), long_run.error
        mortal.tasks[victim].kill()
        wait_until_idle(mortal.tasks[1 - victim])
        mortal.restore()
        assert long_run.ends()


def test_run_goes_on_when_a_worker_was_slow(mortal, tmp_path):
    place = distribution.of_cluster(mortal)
    n, started = signalling(place, tmp_path, 14)
    y = split_fib(*place.devices)(n)
    with place.session() as session:
        slow_run = Background(lambda: session.run(y))
        wait_for(started.exists)
        with mortal.tasks[1].suspended():
            time.sleep(2)
        assert slow_run.ends()
    assert slow_run.error is None
    assert slow_run.value == 377


def test_timeout_ends_run_when_a_worker_stands_still(mortal):
    place = distribution.of_cluster(mortal)
    n = tf1.placeholder(I32, [])
    y = split_fib(*place.devices)(n)
    stuck_y = endless(*place.devices)(n)  # does not end before the timeout, however late that comes
    with place.session() as session:
        assert session.run(y, {n: 8}, options=distribution.TIMEOUT) == 21
        options = tf1.RunOptions(timeout_in_ms=1000)
        with mortal.tasks[1].suspended():
            stuck = Background(lambda: session.run(stuck_y, {n: 1000}, options=options))
            time.sleep(3)
        assert stuck.ends()
        assert isinstance(stuck.error, (tf.errors.DeadlineExceededError, tf.errors.CancelledError))
        assert session.run(y, {n: 9}, options=distribution.TIMEOUT) == 34


def test_timeout_ends_endless_recursion_on_both_tasks(cluster, place):
    y = endless(*place.devices)(tf1.placeholder_with_default(1000, []))
    fib = split_fib(*place.devices)(tf1.placeholder_with_default(10, []))
    with place.session() as session:
        for _ in range(2):
            with pytest.raises((tf.errors.DeadlineExceededError, tf.errors.CancelledError)):
                session.run(y, options=tf1.RunOptions(timeout_in_ms=500))
            assert session.run(fib, options=distribution.TIMEOUT) == 55
            wait_until_idle(*cluster.tasks)


def test_close_from_another_thread_ends_endless_recursion_on_both_tasks(cluster, place, tmp_path):
    n, started = signalling(place, tmp_path, 1000)
    y = endless(*place.devices)(n)
    fib = split_fib(*place.devices)(tf1.placeholder_with_default(10, []))
    session = place.session()
    long_run = Background(lambda: session.run(y))
    wait_for(started.exists)
    time.sleep(0.2)  # more or less, what follows must hold
    session.close()
    assert long_run.ends()
    assert isinstance(long_run.error, (tf.errors.CancelledError, tf.errors.AbortedError, RuntimeError))
    wait_until_idle(*cluster.tasks)
    with place.session() as session:
        assert session.run(fib, options=distribution.TIMEOUT) == 55


def test_first_error_is_told_when_frames_fail_on_both_tasks(place):
    """The other task's answer to the first error is that it was cancelled: not what the client wants to know."""
    f, define = recursive("Fails", [I32], [I32])

    @define
    def Fails(n):
        def base():
            with tf.device(place.devices[1]):
                return tf.math.floordiv(1, n, name="quotient")

        def calls():
            with tf.device(place.devices[0]):
                return f(n - 1) + f(n - 1)

        return tf.cond(n < 1, base, calls)

    n = tf1.placeholder(I32, [])
    y = f(n)
    with place.session() as session:
        for k in (0, 6, 3):
            with pytest.raises(tf.errors.InvalidArgumentError, match="quotient"):
                session.run(y, {n: k}, options=distribution.TIMEOUT)


def wait_until_memory_is_as_before(tasks, kib, step, warm_up, steps):
    """Runs so many steps; then waits until no task has grown by so much: steps are cleaned up after they have ended."""
    for number in range(warm_up):
        step(number)
    wait_until_idle(*tasks)
    before = [resident_kib(task.pid) for task in tasks]
    for number in range(steps):
        step(number)
    grown = lambda: [resident_kib(task.pid) - kib for task, kib in zip(tasks, before, strict=True)]
    wait_for(lambda: max(grown()) < kib)


def test_memory_of_workers_stays_when_many_steps_fail(mortal):
    """Frames and tensors of failed steps are freed on both tasks: each step would leave 1 MiB."""
    place = distribution.of_cluster(mortal)
    a, b = place.devices
    f, define = recursive("Leak", [I32, F32], [F32])

    @define
    def Leak(n, x):
        def base():
            with tf.device(b):
                return tf.matmul(x, x)

        def deeper():
            with tf.device(a):
                left = f(n - 1, x + 1.0)
            with tf.device(b):
                return left + f(n - 1, x * 2.0)

        return tf.cond(n < 1, base, deeper)

    n, x = tf1.placeholder(I32, []), tf1.placeholder(F32)
    y = tf.reduce_sum(f(n, x))
    good, bad = np.ones([128, 128]), np.ones([128, 129])
    with place.session() as session:

        def step(number):
            if number % 4 == 3:
                session.run(y, {n: 3, x: good}, options=distribution.TIMEOUT)
                return
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(y, {n: 3, x: bad}, options=distribution.TIMEOUT)

        wait_until_memory_is_as_before(mortal.tasks, 24 * 1024, step, warm_up=40, steps=120)


@pytest.mark.full_matrix
def test_memory_of_workers_stays_when_many_steps_time_out(mortal):
    """Every frame holds 256 KiB: what one step would leave is many times what heaps and stacks of threads vary by."""
    place = distribution.of_cluster(mortal)
    a, b = place.devices
    f, define = recursive("Hold", [I32, F32], [F32])

    @define
    def Hold(n, x):
        with tf.device(a):
            more = x + 1.0
        with tf.device(b):
            next_n = n + 1
        with tf.device(a):
            return f(next_n, more) + more

    y = f(tf1.placeholder_with_default(0, []), tf.zeros([65_536]))
    with place.session() as session:

        def step(_):
            with pytest.raises((tf.errors.DeadlineExceededError, tf.errors.CancelledError)):
                session.run(y, options=tf1.RunOptions(timeout_in_ms=100))

        wait_until_memory_is_as_before(mortal.tasks, 64 * 1024, step, warm_up=15, steps=30)
