"""Nets over trees train under distribution strategies as they do on one device."""
# SPDX-License-Identifier: Apache-2.0

import functools
import json
import pathlib

import numpy as np
import processes
import pytest

PROGRAM = pathlib.Path(__file__).with_name("tree_training.py")


@functools.cache
def trained(way):
    done = processes.run_python(PROGRAM, way)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "on_one_device, way",
    [("one", "mirrored"), ("one", "parameter_server"), ("one", "parameter_servers"), ("fit", "fit_mirrored")],
)
def test_losses_are_those_of_one_device(on_one_device, way):
    expected, found = trained(on_one_device), trained(way)
    assert expected["losses"][-1] < expected["losses"][0]
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-4)
    assert found["calls"]["dynamic"] == 0
    assert found["calls"]["static"] > 0


@pytest.mark.full_matrix
def test_replicas_run_bodies_that_make_variables_and_have_custom_gradients():
    program = pathlib.Path(__file__).with_name("replica_programs.py")
    done = processes.run_python(program, "eager", "inside", "outside")
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 15
    for name, (weight, *calls) in found.items():
        assert 1.0 <= weight <= 2.0, name
        for values, slopes in calls:
            np.testing.assert_allclose([values, slopes], [[3 * weight, 6 * weight], [3, 6]], rtol=1e-6, err_msg=name)
