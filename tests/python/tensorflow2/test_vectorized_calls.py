"""What `tf.vectorized_map` and jacobians run: one call for each element, and none where there are no elements."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


@tfr.recursive
def power(x, n):
    if n < 1:
        return tf.ones_like(x)
    return x * power(x, n - 1)


def cubed(x):
    return power(x, tf.constant(3))


def slope(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = cubed(x)
    return tape.gradient(y, x)


MAPPED = {
    "call": cubed,
    "gradient": slope,
    "branch": lambda x: tf.cond(x > 0.0, lambda: cubed(x), lambda: -x),
    "loop": lambda x: tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, cubed(y)), [0, x])[1],
    "tf.function": tf.function(cubed),
    "map": lambda x: tf.reduce_sum(tf.vectorized_map(cubed, tf.stack([x, x]))),
}


def mapped(of_element, *, open_length=False):
    """Maps the function over a vector, in a tf.function. What reads the vector afterwards has an order of its own."""
    signature = [tf.TensorSpec([None if open_length else 0], tf.float32)]
    return tf.function(lambda xs: tf.vectorized_map(of_element, xs), input_signature=signature)


@pytest.mark.parametrize("open_length", [False, True])
@pytest.mark.parametrize("of_element", MAPPED.values(), ids=MAPPED)
def test_map_over_no_element_is_empty(of_element, open_length):
    assert mapped(of_element, open_length=open_length)(tf.zeros([0])).shape == [0]


@pytest.mark.parametrize("of_element", MAPPED.values(), ids=MAPPED)
def test_eager_map_over_no_element_is_empty(of_element):
    assert tf.vectorized_map(of_element, tf.zeros([0])).shape == [0]


def test_map_over_no_element_is_empty_when_a_variable_is_assigned_afterwards():
    w = tf.Variable(2.0)

    @tfr.recursive
    def scaled(x, n):
        if n < 1:
            return x
        return w * scaled(x, n - 1)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def map_and_assign(xs):
        ys = tf.vectorized_map(lambda x: scaled(x, tf.constant(2)), xs)
        w.assign(w + 1.0)
        return ys

    assert map_and_assign(tf.zeros([0])).shape == [0]
    assert map_and_assign(tf.constant([1.0, 3.0])).numpy().tolist() == [9.0, 27.0]
    assert w.numpy() == 4.0


def test_body_runs_once_for_each_element_when_it_has_side_effects():
    counter = tf.Variable(0)

    @tfr.recursive
    def counted(x, n):
        counter.assign_add(1)
        if n < 1:
            return x
        return 2.0 * counted(x, n - 1)

    @tf.function
    def of_all(xs):
        return tf.vectorized_map(lambda x: counted(x, tf.constant(1)), xs)

    assert of_all(tf.constant([1.0, 2.0, 3.0])).numpy().tolist() == [2.0, 4.0, 6.0]
    assert counter.numpy() == 3 * 2


def test_jacobian_makes_one_backward_call_for_each_row():
    steps = []

    @tf.custom_gradient
    def noted(x):
        def grad(dy):
            return tf.numpy_function(lambda dy: steps.append(1) or dy, [dy], tf.float32)

        return tf.identity(x), grad

    @tfr.recursive
    def net(x, n):
        if n < 1:
            return x
        return noted(2.0 * net(x, n - 1))

    @tf.function
    def jacobian(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = net(x, tf.constant(2))
        return tape.jacobian(y, x)

    assert jacobian(tf.constant([1.0, 2.0, 3.0])).numpy().tolist() == [[4, 0, 0], [0, 4, 0], [0, 0, 4]]
    assert len(steps) == 3 * 2
