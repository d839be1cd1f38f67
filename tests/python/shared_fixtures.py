"""What every test has: a fresh graph, and the ways a session may run functions."""
# SPDX-License-Identifier: Apache-2.0

import gc

import pytest
import switches
import tensorflow as tf
from tensorflow.python.framework import ops
from tensorflow.python.ops import variable_scope

import tensorflow_recursion as tfr
from benchmarks.cluster import Cluster

tf1 = tf.compat.v1
tf1.disable_eager_execution()


@pytest.fixture(autouse=True)
def graph():
    """A graph of the test's own, the default one."""
    graph = tf.Graph()
    with graph.as_default():
        yield graph


@pytest.fixture(autouse=True)
def forgotten_gradients():
    """Forget each `tf.custom_gradient` of a test after it.

    TensorFlow keeps them for good, and with each the graph in which it was called: a few tests would take gigabytes.
    """
    registered = ops.gradient_registry._registry
    before = set(registered)
    yield
    for name in registered.keys() - before:
        if name.startswith("CustomGradient-"):
            del registered[name]


@pytest.fixture(autouse=True)
def forgotten_variable_scope():
    """Forget what a test left in the variable scope that all eager tests share.

    `tf.map_fn` in a tf.function leaves a caching device there where the function that it maps raises, also if Keras
    catches the error. Later `tf.recompute_grad` is an error then.
    """
    yield
    tf1.get_default_graph().clear_collection(variable_scope._VARSCOPESTORE_KEY)


@pytest.fixture(scope="module")
def short_collections():
    """For modules that collect garbage often: what other tests have left takes a second or two each time."""
    gc.collect()
    gc.freeze()


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
