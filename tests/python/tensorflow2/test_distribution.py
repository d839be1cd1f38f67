"""Nets over trees train under distribution strategies as they do on one device."""
# SPDX-License-Identifier: Apache-2.0

import functools
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from limits import HANG_SECONDS

PROGRAM = pathlib.Path(__file__).with_name("tree_training.py")


@functools.cache
def trained(way):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), way], env=environment, capture_output=True, text=True, timeout=HANG_SECONDS
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["mirrored", "parameter_server"])
def test_losses_are_those_of_one_device(way):
    expected, found = trained("one"), trained(way)
    assert expected["losses"][-1] < expected["losses"][0]
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-4)
    assert found["calls"]["dynamic"] == 0
    assert found["calls"]["static"] > 0
