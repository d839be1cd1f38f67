"""Cases whose operators lie apart have the values that they have on one device."""
# SPDX-License-Identifier: Apache-2.0

import call_cases
import distribution_helpers as distribution
import loop_cases
import numpy as np
import pytest
import state_cases
import tensorflow as tf
from call_cases import ASKING_CASES
from cases import run_in, same_bits, trace_in
from loop_cases import PARTIAL_CASES, PARTIAL_IN_V1

tf1 = tf.compat.v1
pytestmark = pytest.mark.fake_gpu

CASES = {**call_cases.CASES, **loop_cases.CASES, **state_cases.CASES}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", CASES)
def test_values_are_bit_identical_to_one_device_when_operators_lie_apart(name, place, control_flow):
    """And devices agree on calls only where arguments may die apart."""
    one = run_in(distribution.one_device(), ("", ""), CASES[name].build)
    for value, expected in zip(one, CASES[name].expected, strict=True):
        np.testing.assert_array_equal(value, expected)
    apart, metadata = trace_in(place, place.devices, CASES[name].build)
    assert [same_bits(*pair) for pair in zip(apart, one, strict=True)] == [True] * len(one), (apart, one)
    nodes = list(distribution.partition_nodes(metadata))
    assert any("/lives" in node.name for node in nodes) == (name in ASKING_CASES), nodes
    partial = {node.name for node in nodes if "_recursion_partial_loop" in node.attr}
    expected = name in PARTIAL_CASES or (control_flow == "v1" and name in PARTIAL_IN_V1)
    assert (len(partial) > 0) == expected, partial


# The dynamic call of a function is beside all the variables that it gets.
ONE_AT_A_TIME = [
    "either_variable",
    "calls_beside_either_variable",
    "variables_that_gradients_look_at",
    "variables_in_loops_and_branches",
    "handles_that_functions_return",
    "assignments_to_either",
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ONE_AT_A_TIME)
@pytest.mark.parametrize("soft", [False, True])
def test_values_are_those_of_dynamic_runs_when_one_argument_is_a_variable_of_either_device(
    name, soft, place, control_flow
):
    place.config.allow_soft_placement = soft
    dynamic = run_in(place, place.devices, CASES[name].build, static=False)
    static = run_in(place, place.devices, CASES[name].build)
    assert [same_bits(*pair) for pair in zip(static, dynamic, strict=True)] == [True] * len(dynamic), (static, dynamic)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [*ONE_AT_A_TIME, "variables_that_take_turns"])
def test_run_is_static_when_one_argument_is_a_variable_of_either_device(name, place):
    fetches = CASES[name].build(*place.devices)
    with place.session() as session:
        session.run(tf1.global_variables_initializer())
        _, metadata = distribution.run_traced(session, fetches)
    nodes = list(distribution.partition_nodes(metadata))
    assert "Recursion>Invoke" not in {node.op for node in nodes}
    ops = ("ReadVariableOp", "ResourceGather", "AssignAddVariableOp")
    readers = [node for node in nodes if "/" in node.name and node.op in ops]
    assert any("__copy1/" in node.name for node in nodes)
    for device in place.devices:
        assert any(distribution.is_on(node.device, device) for node in readers), readers


APART = [
    "two_calls_apart",
    "mutual_functions_apart",
    "gradients",
    "gradient_through_mutual_functions_apart",
    "gradients_of_mutual_functions_with_variables",
    "gradients_of_calls_in_loops_apart",
    "outputs_apart",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", APART)
def test_run_is_static_and_on_both_devices_when_operators_lie_apart(name, place):
    fetches = CASES[name].build(*place.devices)
    with place.session() as session:
        session.run(tf1.global_variables_initializer())
        _, metadata = distribution.run_traced(session, fetches)
    assert "Recursion>Invoke" not in {node.op for node in distribution.partition_nodes(metadata)}
    functions = r"(Fib|Even|Odd|Chain|Several|Double|Negate|There|Back|Looped)\w*/"
    assert len(distribution.traced_devices(metadata, functions)) == 2
