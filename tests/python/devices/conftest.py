"""What the tests of devices have: two devices of one process, or two processes."""
# SPDX-License-Identifier: Apache-2.0

import distribution_helpers as distribution
import pytest


@pytest.fixture(params=["devices", "processes"])
def place(request):
    if request.param == "devices":
        return distribution.two_devices()
    return distribution.of_cluster(request.getfixturevalue("cluster"))


@pytest.fixture
def fake_gpu(request):
    """A test with this fixture runs only where the process has the fake GPU."""
    if not request.config.getoption("--fake-gpu"):
        pytest.skip("needs --fake-gpu")


# What needs kernels that the fake GPU has not: of gathers from variables, of integer variables.
FOR_CPUS = ["calls_beside_either_variable", "variables_that_gradients_look_at", "assignments_to_either"]


@pytest.fixture(autouse=True)
def has_kernels(request):
    name = getattr(request.node, "callspec", None) and request.node.callspec.params.get("name")
    if name in FOR_CPUS and request.config.getoption("--fake-gpu"):
        pytest.skip("the fake GPU has no such kernels")
