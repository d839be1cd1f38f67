"""What every test has: a fresh graph, and the ways a session may run functions."""
# SPDX-License-Identifier: Apache-2.0

import gc
import os
import re

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TENSORFLOW_RECURSION_SILENCE_DYNAMIC", "1")  # half of the tests mean dynamic execution

import distribution_helpers as distribution
import matrix
import pytest
import switches
import tensorflow as tf

import tensorflow_recursion as tfr
from benchmarks.cluster import Cluster

tf1 = tf.compat.v1
tf1.disable_eager_execution()
# Building a graph makes so many objects that with Python's own thresholds the collector takes twice the time.
gc.set_threshold(50_000, 20, 20)


def pytest_addoption(parser):
    matrix.add_options(parser)
    parser.addoption(
        "--fake-gpu", action="store_true", help="the second of two devices is a GPU, as tests/cc/fake_gpu has it"
    )


def pytest_configure(config):
    if config.getoption("--fake-gpu"):
        distribution.load_fake_gpu()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `--dist=loadscope`: one process runs all tests that share what takes seconds to start.

    Not by xdist's own groups (`--dist=loadgroup`), which pytest 9.2 does not see.
    """
    from xdist.dsession import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            if "test_processes.py" in nodeid or re.search(r"[\[-]processes[]-]", nodeid):
                return "cluster"
            return "benchmarks" if "test_benchmarks.py" in nodeid else nodeid

    return Scheduling(config, log) if config.getoption("dist") == "loadscope" else None


@pytest.hookimpl(trylast=True)  # what `-k` and `-m` leave out cannot be chosen
def pytest_collection_modifyitems(config, items):
    fake_gpu = config.getoption("--fake-gpu")
    # The fake GPU takes part in the combinations that the processors do not.
    kept = matrix.select(items, config.getoption("--matrix"), config.getoption("--rotation") + fake_gpu)
    kept = [item for item in kept if not fake_gpu or _may_use_fake_gpu(item)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


def pytest_collection_finish():
    """Hides from the collector what stays anyway: TensorFlow's modules and the tests, half a million objects."""
    gc.collect()
    gc.freeze()


def _places(item):
    return [value for name, value in matrix.parameters(item).items() if name in ("mode", "place")]


def _may_use_fake_gpu(item):
    """What is about two devices, not about CPUs and processes."""
    places = _places(item)
    return item.get_closest_marker("fake_gpu") and (not places or "devices" in places)


@pytest.fixture(autouse=True)
def graph():
    """A graph of the test's own, the default one."""
    graph = tf.Graph()
    with graph.as_default():
        yield graph


@pytest.fixture(params=["dynamic", "static"])
def session_config(request):
    """The configuration of a session: without the switch and with it."""
    return tf1.ConfigProto() if request.param == "dynamic" else tfr.session_config()


@pytest.fixture
def run(session_config):
    """Runs fetches in one session of the default graph, after its variables are initialized; see `Runner`."""
    runner = Runner(session_config)
    yield runner
    runner.close()


@pytest.fixture(params=["v1", "v2"])
def control_flow(request):
    """Switch/Merge operators in graphs, or If and While."""
    with switches.control_flow_v2(request.param == "v2"):
        yield request.param


@pytest.fixture(params=["ref", "resource"])
def variable_kind(request):
    """What tf1 variables are."""
    with switches.resource_variables(request.param == "resource"):
        yield request.param


@pytest.fixture(scope="session")
def shared_cluster():
    with Cluster(worker=2) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster):
    """Two processes on loopback, shared by all tests; started anew if one before has brought them down."""
    shared_cluster.restore()
    return shared_cluster


@pytest.fixture
def fib():
    """fib, declared and defined as in the first example."""
    declared = tfr.Declare("Fib", [("n", tf.int32)], [("ret", tf.int32)])

    @tfr.Defun(tf.int32, func_name="Fib", out_names=["ret"])
    def FibImpl(n):
        return tf.cond(n < 2, lambda: n, lambda: declared(n - 1) + declared(n - 2))

    return FibImpl


class Runner:
    """`run(fetches, feeds)` in the session of the default graph at the first call; `run.session` is that session."""

    def __init__(self, config):
        self._config = config
        self._session = None

    @property
    def session(self):
        if self._session is None:
            self._session = tf1.Session(config=self._config)
            self._session.run(tf1.global_variables_initializer())
        return self._session

    def __call__(self, fetches, feeds=None):
        return self.session.run(fetches, feeds)

    def close(self):
        if self._session is not None:
            self._session.close()
