"""What every test of semantics has: a mode, the place where it runs, and a session there."""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import functools

import distribution_helpers as distribution
import pytest
import tensorflow as tf
from modes import MODES

tf1 = tf.compat.v1


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture
def place(mode, request):
    """Where the sessions of the mode run."""
    if mode == "processes":
        return distribution.of_cluster(request.getfixturevalue("cluster"))
    return distribution.two_devices() if mode == "devices" else distribution.one_device()


@pytest.fixture
def run(mode, place):
    """Runs fetches in one session of the mode, after the variables are initialized.

    The operators of the graph and of the bodies are spread over the devices of the mode's place.
    """
    options = MODES[mode].options
    with contextlib.ExitStack() as stack:
        if len(place.devices) > 1:
            stack.enter_context(place.spread())

        @functools.cache
        def session():
            session = stack.enter_context(place.session(static=options is not None, **(options or {})))
            session.run(tf1.global_variables_initializer())
            return session

        def run(fetches, feeds=None):
            return session().run(fetches, feeds, options=distribution.TIMEOUT)

        run.session = session
        yield run
