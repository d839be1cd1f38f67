"""Bodies on a device whose memory the host can't touch: tests/cc/fake_gpu (`make test-gpu`)."""
# SPDX-License-Identifier: Apache-2.0

import distribution_helpers as distribution
import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from tensorflow.python.eager import context

import tensorflow_recursion as tfr

tf1 = tf.compat.v1
pytestmark = [pytest.mark.fake_gpu, pytest.mark.usefixtures("fake_gpu")]
I32, F32 = tf.int32, tf.float32

CPU, GPU = distribution.CPUS[0], distribution.GPU


def run(fetches, feeds=None, static=True):
    """Returns the values, and what has run: the nodes of all partitions."""
    with distribution.two_devices().session(static=static) as session:
        session.run(tf1.global_variables_initializer(), options=distribution.TIMEOUT)
        values, metadata = distribution.run_traced(session, fetches, feeds)
    return values, list(distribution.partition_nodes(metadata))


def define_power(**options):
    f, define = recursive("Power", [F32, I32], [F32], **options)
    return define(lambda x, n: tf.cond(n < 1, lambda: tf.ones_like(x), lambda: x * f(x, n - 1)))


def devices_of(nodes, function, op):
    """Where the operators of a type in a body are."""
    return {"/" + node.device.rpartition("/")[2] for node in nodes if node.name.startswith(function) and node.op == op}


def transfers_of(nodes, dtype):
    """Transfers within the bodies."""
    return [
        node.name
        for node in nodes
        if node.op in ("_Send", "_HostSend")
        and node.attr["T"].type == dtype.as_datatype_enum
        and "recursion" not in node.name
        and node.name.startswith("Power")
    ]


@pytest.mark.parametrize("pinned, expected", [("", GPU), ("/job:localhost", GPU), (GPU, GPU), (CPU, CPU)])
def test_body_goes_where_tensorflow_prefers_unless_its_call_is_pinned(pinned, expected):
    f = define_power()
    with tf.device(pinned):
        y = f(tf1.placeholder_with_default(1.5, []), tf1.placeholder_with_default(3, []))
    value, nodes = run(y)
    assert value == 1.5**3
    assert devices_of(nodes, "Power", "Mul") == {expected}


@pytest.mark.parametrize("static", [False, True])
def test_integers_stay_on_the_host(static):
    f = define_power(create_grad_func=True)
    x = tf1.placeholder_with_default(1.5, [])
    with tf.device(GPU):
        y = f(x, tf1.placeholder_with_default(4, []))
        dx = tf.gradients(y, x)[0]
    values, nodes = run([y, dx], static=static)
    assert values == [1.5**4, 4 * 1.5**3]
    assert transfers_of(nodes, I32) == []


def test_operators_without_a_kernel_there_run_on_the_cpu():
    f, define = recursive("Sines", [F32, I32], [F32])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: tf.sin(f(x, n - 1)) * 2.0))
    with tf.device(GPU):
        y = f(tf1.placeholder_with_default(1.5, []), tf1.placeholder_with_default(3, []))
    value, nodes = run(y)
    expected = 1.5
    for _ in range(3):
        expected = np.sin(expected) * 2
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    assert devices_of(nodes, "Sines", "Sin") == {CPU}
    assert devices_of(nodes, "Sines", "Mul") == {GPU}


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("backward", [GPU, CPU, ""])
@pytest.mark.parametrize("forward", [GPU, CPU, ""])
def test_gradients_of_weights_whichever_device_runs_what(forward, backward, static):
    if not static and CPU in (forward, backward) and GPU in (forward, backward):
        pytest.skip("dynamic execution reads variables where the call is")
    f, define = recursive("Net", [F32, I32], [F32], create_grad_func=True, output_shapes=[[2, 2]])
    values = [np.float32([[0.5, -0.25], [0.125, 0.75]]), np.float32(0.5)]
    weights = [tf.constant(value) for value in values]

    @define
    def Net(x, n):
        return tf.cond(n < 1, lambda: x, lambda: tf.tanh(tf.matmul(f(x, n - 1), weights[0]) + weights[1] * x))

    x = tf1.placeholder_with_default(np.float32([[1, 2], [3, 4]]), [2, 2])

    n = tf1.placeholder_with_default(3, [])

    def fetches(forward, backward):
        with tf.device(forward):
            y = f(x, n)
        with tf.device(backward):
            return [y, *tf.gradients(y, [x, *weights])]

    got, _ = run(fetches(forward, backward), static=static)
    one_device = distribution.one_device()
    one_device.config.allow_soft_placement = True
    with one_device.session() as session:
        expected = session.run(fetches("", ""))
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_variables_on_the_gpu_are_captured_and_trained():
    with tf.device(GPU):
        w = tf1.get_variable("w", initializer=[[0.5, 0.25], [0.25, 0.5]], use_resource=True)
    f, define = recursive("Chain", [F32, I32], [F32], create_grad_func=True, output_shapes=[[1, 2]])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: tf.matmul(f(x, n - 1), w)))
    with tf.device(GPU):
        y = f(tf1.placeholder_with_default(np.float32([[1, 2]]), [1, 2]), tf1.placeholder_with_default(2, []))
        gradient = tf.gradients(y, w)[0]
    (value, slope), _ = run([y, gradient])
    matrix, start = np.float32([[0.5, 0.25], [0.25, 0.5]]), np.float32([[1, 2]])
    np.testing.assert_allclose(value, start @ matrix @ matrix, rtol=1e-6)
    ones = np.ones([1, 2], np.float32)
    np.testing.assert_allclose(slope, start.T @ (ones @ matrix.T) + (start @ matrix).T @ ones, rtol=1e-6)


def test_deep_recursion_and_its_gradient():
    f = define_power(create_grad_func=True)
    x = tf1.placeholder_with_default(1.0, [])
    with tf.device(GPU):
        y = f(x, tf1.placeholder_with_default(20_000, []))
        dx = tf.gradients(y, x)[0]
    values, _ = run([y, dx])
    assert values == [1, 20_000]


def test_second_derivatives():
    f = define_power(create_grad_func=True)
    x = tf1.placeholder_with_default(1.5, [])
    with tf.device(GPU):
        dx = tf.gradients(f(x, tf1.placeholder_with_default(4, [])), x)[0]
        ddx = tf.gradients(dx, x)[0]
    values, _ = run([dx, ddx])
    assert values == [4 * 1.5**3, 12 * 1.5**2]


@pytest.mark.parametrize("control_flow", ["v2"], indirect=True)  # v1 has arrays that are resources
def test_lists_of_tensors_are_built_on_the_gpu(control_flow):
    f, define = recursive("Sum", [F32, I32], [F32])

    @define
    def Sum(x, n):
        def loop():
            array = tf.TensorArray(F32, size=3, element_shape=[])
            _, array = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a.write(i, x * f(x, n - 1))), [0, array])
            return tf.reduce_sum(array.stack())

        return tf.cond(n < 1, lambda: x, loop)

    with tf.device(GPU):
        y = f(tf1.placeholder_with_default(2.0, []), tf1.placeholder_with_default(2, []))
    value, _ = run(y)
    assert value == 72


def test_error_in_a_body_on_the_gpu_names_its_node():
    f, define = recursive("Shapes", [F32, I32], [F32])
    define(lambda x, n: tf.cond(n < 1, lambda: tf.matmul(x, tf.ones([3, 3])), lambda: f(x, n - 1)))
    with tf.device(GPU):
        y = f(tf1.placeholder_with_default(np.float32([[1, 2]]), [None, None]), tf1.placeholder_with_default(3, []))
    message = r"node MatMul.*\n.*in call Shapes > Shapes > Shapes > Shapes"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(y)


def test_calls_in_a_tf_function_are_static_where_values_change_memory():
    """The comparison of integers is in the host's memory, from where `tf.cond` squeezes it in the device's."""
    f, define = recursive("Count", [I32], [I32])
    count = define(lambda n: tf.cond(n < 1, lambda: n, lambda: f(n - 1)))
    before = tfr.config.outermost_calls()
    with context.eager_mode():
        assert int(tf.function(count)(tf.constant(3))) == 0
    after = tfr.config.outermost_calls()
    assert (after["static"] - before["static"], after["dynamic"] - before["dynamic"]) == (1, 0)
