"""What every test of semantics has: a mode, the place where it runs, and a way to run there."""
# SPDX-License-Identifier: Apache-2.0

import contextlib

import distribution_helpers as distribution
import pytest
import runners
import tensorflow as tf
from modes import GRAPHS, MODES, SESSIONS
from switches import tensor_equality
from tensorflow.python.eager import context

import tensorflow_recursion as tfr


@pytest.fixture(params=GRAPHS)
def mode(request):
    return request.param


@pytest.fixture(autouse=True)
def graph(request):
    """The graph of the test, the default one: a session's, a function's, or none in eager mode."""
    mode = request.getfixturevalue("mode") if "mode" in request.fixturenames else None
    with contextlib.ExitStack() as stack:
        if mode in (None, *SESSIONS):
            graph = tf.Graph()
        else:
            stack.enter_context(context.eager_mode())
            stack.enter_context(tensor_equality(mode == "eager"))  # tests feed by dictionaries with tensors as keys
            graph = runners.graph_of_functions() if mode == "tf.function" else None
        if graph:
            stack.enter_context(graph.as_default())
        yield graph


@pytest.fixture
def place(mode, request):
    """Where the sessions of the mode run."""
    if mode == "processes":
        return distribution.of_cluster(request.getfixturevalue("cluster"))
    return distribution.two_devices() if mode == "devices" else distribution.one_device()


@pytest.fixture
def run(mode, request):
    """Runs fetches in the mode, `run(fetches, feeds)`, or a function of values, `run.function(call, types)(*values)`.

    A session has its variables initialized, and the operators of the graph and of the bodies are spread over the
    devices of the mode's place. Without a session calls are static, or an error.
    """
    with contextlib.ExitStack() as stack:
        if mode in SESSIONS:
            place = request.getfixturevalue("place")
            if len(place.devices) > 1:
                stack.enter_context(place.spread())
            yield stack.enter_context(contextlib.closing(runners.InSession(place, MODES[mode].options)))
            return
        before = tfr.config.get_options()
        stack.callback(lambda: tfr.config.set_options(**before))
        tfr.config.set_options(on_fallback="error")
        yield runners.Eagerly() if mode == "eager" else runners.InFunction(request.getfixturevalue("graph"))
