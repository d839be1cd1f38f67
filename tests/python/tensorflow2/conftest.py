"""Eager mode, as TensorFlow 2 starts: the other tests of this process have it switched off."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

import tensorflow_recursion as tfr


@pytest.fixture(autouse=True)
def graph():
    """No graph around the test: calls are eager, or in a tf.function."""
    with context.eager_mode():
        yield None


@pytest.fixture
def static_or_error():
    """Options as they are from the start, and errors where calls are not static."""
    before = tfr.config.get_options()
    tfr.config.set_options(on_fallback="error")
    yield
    tfr.config.set_options(**before)


@pytest.fixture
def functions_run_eagerly():
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
