"""Where the operators of bodies run, what they draw there, and what their errors say."""
# SPDX-License-Identifier: Apache-2.0

import distribution_helpers as distribution
import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from call_cases import two_calls_apart
from cases import fed
from distribution_helpers import on

import tensorflow_recursion as tfr

tf1 = tf.compat.v1
pytestmark = pytest.mark.fake_gpu
I32, F32 = tf.int32, tf.float32

# --- Random numbers -----------------------------------------------------------------------------------------------


def drawing(a, b):
    """The sums of what a body draws on both devices, and of what the main graph draws."""
    tf1.set_random_seed(7)
    f, define = recursive("Draw", [I32], [I32])

    @define
    def Draw(n):
        def deeper():
            with on(a):
                x = tf.random.uniform([], 0, 1000, I32, seed=1)
            with on(b):
                return f(n - 1) + x * tf.random.uniform([], 0, 1000, I32, seed=2)

        return tf.cond(n < 1, lambda: 0, deeper)

    with on(b):
        return [f(fed(1)), tf.random.uniform([], 0, 1000, I32, seed=3)]


def test_random_numbers_are_those_of_one_device_when_seeded(place, control_flow):
    """One frame draws once of each operator, so that no order among frames decides."""

    def draw(place, devices):
        with tf.Graph().as_default():
            fetches = drawing(*devices)
            with place.session() as session:
                return [session.run(fetches, options=distribution.TIMEOUT) for _ in range(4)]

    one = draw(distribution.one_device(), ("", ""))
    assert len({tuple(values) for values in one}) == 4
    assert draw(place, place.devices) == one


def test_random_numbers_are_the_same_multiset_when_many_frames_draw(place):
    def draw(place, devices):
        with tf.Graph().as_default():
            tf1.set_random_seed(7)
            f, define = recursive("Draw", [I32], [I32])

            @define
            def Draw(n):
                def deeper():
                    with on(devices[1]):
                        number = tf.random.uniform([1], 0, 1000, I32, seed=1)
                    with on(devices[0]):
                        return tf.concat([f(n - 1), number, f(n - 1)], 0)

                return tf.cond(n < 1, lambda: tf.zeros([0], I32), deeper)

            fetch = f(fed(4))
            with place.session() as session:
                return sorted(session.run(fetch, options=distribution.TIMEOUT))

    one = draw(distribution.one_device(), ("", ""))
    assert len(set(one)) > 10
    assert draw(place, place.devices) == one


# --- Placement ----------------------------------------------------------------------------------------------------


def test_node_of_body_runs_where_it_was_asked_to(place):
    f, define = recursive("Placed", [I32], [I32])
    a, b = place.devices

    @define
    def Placed(n):
        with tf.device(a):
            x = tf.add(n, 1, name="here")
        with tf.device(b):
            x = tf.multiply(x, 2, name="there")
        return tf.cond(n < 1, lambda: x, lambda: x + f(n - 1))

    y = f(fed(5))
    with place.session() as session:
        value, metadata = distribution.run_traced(session, y)
    assert value == 2 * sum(range(1, 7))
    # Arithmetic on scalars runs without a kernel: the partition graphs know more than the trace.
    nodes = {node.name: node.device for node in distribution.partition_nodes(metadata)}
    assert [distribution.is_on(nodes["Placed/here"], a), distribution.is_on(nodes["Placed/there"], b)] == [True, True]


def test_transformed_graph_has_the_devices_that_were_asked_for(place):
    a, b = place.devices
    fetches = two_calls_apart(a, b)
    static = tfr.transform_graph(tf1.get_default_graph(), fetches)
    devices = {node.device for node in static.node if node.name.startswith("Fib/")}
    for device in (a, b):
        assert any(distribution.is_on(found, device) for found in devices), devices


def test_variable_is_used_where_it_lies_when_the_body_asks_for_nothing(place):
    a, b = place.devices
    with tf.device(b):
        v = tf1.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
    f, define = recursive("Reads", [I32], [F32])
    define(lambda n: tf.cond(n < 1, lambda: v.read_value(), lambda: f(n - 1) + v))
    with tf.device(a):
        y = f(fed(3))
    with place.session() as session:
        session.run(tf1.global_variables_initializer())
        value, metadata = distribution.run_traced(session, y)
    assert value.tolist() == [4, 8]
    reads = {node.device for node in distribution.partition_nodes(metadata) if node.op == "ReadVariableOp"}
    assert reads
    assert all(distribution.is_on(device, b) for device in reads), reads


def test_body_runs_on_a_device_there_is_when_placement_is_soft(place):
    f, define = recursive("Sum", [I32], [I32])

    @define
    def Sum(n):
        def deeper():
            with tf.device(place.devices[1]), tf.device("/device:GPU:3"):
                return n + f(n - 1)

        return tf.cond(n < 1, lambda: 0, deeper)

    place.config.allow_soft_placement = True
    y = f(fed(10))
    with place.session() as session:
        assert session.run(y, options=distribution.TIMEOUT) == 55


def test_error_names_the_device_when_there_is_none_such(place):
    f, define = recursive("Sum", [I32], [I32])

    @define
    def Sum(n):
        def deeper():
            with tf.device("/device:GPU:3"):
                return n + f(n - 1)

        return tf.cond(n < 1, lambda: 0, deeper)

    y = f(fed(10))
    place.config.allow_soft_placement = False
    with place.session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="GPU:3"):
        session.run(y, options=distribution.TIMEOUT)


@pytest.mark.parametrize("colocates", [False, True])
def test_backward_body_is_split_as_the_forward_one(control_flow, colocates):
    """With or without `colocate_gradients_with_ops`, in branches too."""
    f, define = recursive("Waves", [I32, F32], [F32], create_grad_func=True)
    a, b = distribution.CPUS

    @define
    def Waves(n, x):
        def deeper():
            with tf.device(a):
                x_a = tf.sin(x)
            with tf.device(b):
                return f(n - 1, tf.atan(x_a))

        return tf.cond(n < 1, lambda: x, deeper)

    x = fed(0.5, np.float32)
    gradients = tf1.gradients(f(fed(3), x), x, colocate_gradients_with_ops=colocates)
    graph = tfr.transform_graph(tf1.get_default_graph().as_graph_def(), [gradients[0].name])
    for op, device in (("Cos", a), ("Reciprocal", b)):
        found = [node.device for node in graph.node if "__backward" in node.name and node.op == op]
        assert found and all(distribution.is_on(name, device) for name in found)


def test_no_message_passes_for_edges_that_stay_on_one_device(place, control_flow):
    """A body that lies on one device as a whole costs one message in and one out, however often it calls itself."""
    a, b = place.devices
    f, define = recursive("Fib", [I32], [I32])
    with tf.device(b):
        define(lambda n: tf.cond(n < 2, lambda: n, lambda: f(n - 1) + f(n - 2)))
    with tf.device(a):
        n = fed(10)
        y = tf.identity(f(n))
    with place.session() as session:
        value, metadata = distribution.run_traced(session, y)
    assert value == 55
    sends = [node.name for node in distribution.partition_nodes(metadata) if node.op in ("_Send", "_HostSend")]
    assert 2 <= len(sends) <= 4, sends


# --- Errors -------------------------------------------------------------------------------------------------------


def test_error_names_node_when_it_fails_on_the_other_device(place, control_flow):
    f, define = recursive("Divide", [I32, I32], [I32])
    a, b = place.devices

    @define
    def Divide(n, x):
        def base():
            with tf.device(b):
                return tf.math.floordiv(100, x, name="quotient")

        def deeper():
            with tf.device(a):
                return f(n - 1, x) + 1

        return tf.cond(n < 1, base, deeper)

    n, x = tf1.placeholder(I32, [], "n"), tf1.placeholder(I32, [], "x")
    y = f(n, x)
    with place.session() as session:
        for _ in range(3):
            with pytest.raises(tf.errors.InvalidArgumentError, match="(?s)zero.*quotient|quotient.*zero"):
                session.run(y, {n: 5, x: 0}, options=distribution.TIMEOUT)
            assert session.run(y, {n: 5, x: 7}, options=distribution.TIMEOUT) == 19


def test_error_names_function_and_limit_when_too_deep_on_both(place):
    f, define = recursive("Down", [I32], [I32])
    a, b = place.devices

    @define
    def Down(n):
        def deeper():
            with tf.device(a):
                below = f(n - 1)
            with tf.device(b):
                return 1 + below

        return tf.cond(n < 1, lambda: 0, deeper)

    n = tf1.placeholder(I32, [])
    y = f(n)
    with place.session(max_depth=50) as session:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="(?s)Down.*50.*max_depth"):
            session.run(y, {n: 100}, options=distribution.TIMEOUT)
        assert session.run(y, {n: 40}, options=distribution.TIMEOUT) == 40


def test_error_names_limit_when_only_one_side_is_too_deep(place):
    f, define = recursive("Down", [I32], [I32])
    a, b = place.devices
    with tf.device(b):
        define(lambda n: tf.cond(n < 1, lambda: 0, lambda: 1 + f(n - 1)))
    n = tf1.placeholder(I32, [])
    with tf.device(a):
        y = f(n) * 2
    with place.session(max_depth=50) as session:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="(?s)Down.*50.*max_depth"):
            session.run(y, {n: 100}, options=distribution.TIMEOUT)
        assert session.run(y, {n: 40}, options=distribution.TIMEOUT) == 80
