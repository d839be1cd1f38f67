"""What a body computes of invariants alone is computed once for a recursion, unless somebody can tell."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion import _native

F32, I32 = tf.float32, tf.int32


def kernels_of(function, *args):
    """How often operators of bodies ran by kernels in a call, by the operator's name."""
    function(*args)
    _native.start_profile()
    function(*args)
    return {op: count for op, (count, _) in _native.stop_profile()["bodies"].items()}


@pytest.fixture
def one_worker():
    """Several workers may compute the same at once."""
    before = tfr.config.get_options()
    tfr.config.set_options(workers=1)
    yield
    tfr.config.set_options(**before)


@pytest.mark.usefixtures("one_worker")
def test_each_call_that_enters_computes_a_view_once():
    w = tf.Variable(np.random.RandomState(0).normal(size=[4, 4]).astype(np.float32))

    @tfr.recursive(input_signature=[tf.TensorSpec([], I32)], output_signature=tf.TensorSpec([1, 4], F32))
    def net(n):
        if n < 1:
            return tf.ones([1, 4])
        return net(n - 1) @ tf.cumsum(w) + tf.reduce_sum(tf.reverse(w, [0]), 0)

    @tf.function
    def twice():
        return net(tf.constant(5)), net(tf.constant(3))

    counts = kernels_of(twice)
    assert (counts["Cumsum"], counts["ReverseV2"]) == (2, 2)
    values = w.numpy()
    x = np.ones([1, 4])
    for _ in range(3):
        x = x @ np.cumsum(values, 0) + values.sum(0)
    np.testing.assert_allclose(twice()[1], x, rtol=1e-4)
    w.assign(tf.eye(4))
    np.testing.assert_allclose(net(tf.constant(1)), [[5.0, 4.0, 3.0, 2.0]])


@pytest.fixture(params=[True, False], ids=["static", "dynamic"])
def execution(request):
    with tfr.config.static_execution(request.param):
        yield


@pytest.mark.usefixtures("execution")
def test_files_are_read_in_each_call(tmp_path):
    @tfr.recursive(output_signature=tf.TensorSpec([], tf.string))
    def log(n, path):
        if n < 1:
            return tf.constant("")
        earlier = log(n - 1, path)
        with tf.control_dependencies([tf.io.write_file(path, tf.strings.as_string(n))]):
            return tf.strings.join([earlier, tf.io.read_file(path)], ",")

    assert log(tf.constant(4), tf.constant(str(tmp_path / "number"))).numpy() == b",1,2,3,4"


@pytest.mark.usefixtures("execution")
def test_random_numbers_differ_where_tensorflow_calls_an_operator_stateless():
    @tfr.recursive(output_signature=tf.TensorSpec([None, 4], F32))
    def looks(n, image):
        if n < 1:
            return tf.zeros([0, 4])
        seen = tf.image.extract_glimpse(image, [2, 2], [[-30.0, -30.0]], normalized=False, noise="gaussian")
        return tf.concat([tf.reshape(seen, [1, 4]), looks(n - 1, image)], 0)

    assert len(np.unique(looks(tf.constant(8), tf.reshape(tf.range(144.0), [1, 12, 12, 1])).numpy(), axis=0)) > 1


@pytest.mark.usefixtures("execution")
@pytest.mark.parametrize("is_inlined", [True, False])
def test_what_is_changed_in_place_is_made_in_each_call(is_inlined):
    @tf.function(experimental_attributes={"_noinline": not is_inlined})
    def add(t, n):
        return tf.raw_ops.InplaceAdd(x=t, i=[0], v=tf.cast(n, F32) * tf.ones([1, 2]))

    @tfr.recursive(output_signature=tf.TensorSpec([2, 2], F32))
    def total(n, w):
        if n < 1:
            return tf.zeros([2, 2])
        return total(n - 1, w) + add(w * 2.0, n)

    np.testing.assert_allclose(total(tf.constant(3), tf.ones([2, 2])), [[12, 12], [6, 6]])
