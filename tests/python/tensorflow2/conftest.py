"""Eager mode, as TensorFlow 2 starts: the other tests of this process have it switched off."""
# SPDX-License-Identifier: Apache-2.0

import pytest
from tensorflow.python.eager import context


@pytest.fixture(autouse=True)
def graph():
    """No graph around the test: calls are eager, or in a tf.function."""
    with context.eager_mode():
        yield None
