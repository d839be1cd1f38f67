"""Variables that bodies read, before and after updates, and those that they make."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

_DIM = 19


def test_variables_of_tensorflow_2_are_read_as_they_are():
    """Bodies read them by the handles that they hold: numbers, rows, and whole weights, before and after updates."""
    start = np.arange(5 * _DIM, dtype=np.float32).reshape(5, _DIM)
    table, weight, scale = tf.Variable(start), tf.Variable(np.eye(_DIM, dtype=np.float32)), tf.Variable(2.0)

    @tfr.recursive
    def rows(n):
        if n < 1:
            return tf.gather(table, [n])
        return tf.matmul(rows(n - 1), weight) * scale + tf.gather(table, [n])

    @tf.function
    def step():
        before = rows(3)
        table.scatter_add(tf.IndexedSlices(tf.ones([1, _DIM]), [1]))
        weight.assign_add(tf.eye(_DIM))
        scale.assign(scale * 0.5)
        return before, rows(3), tf.reduce_sum(table)

    numbers, matrix, factor = start.copy(), 1.0, 2.0
    for _ in range(3):
        before, after, total = step()
        np.testing.assert_allclose(before, _expected_rows(numbers, matrix * factor))
        numbers[1] += 1
        matrix, factor = matrix + 1, factor / 2
        np.testing.assert_allclose(after, _expected_rows(numbers, matrix * factor))
        np.testing.assert_allclose(total, numbers.sum())


def _expected_rows(table, factor):
    row = table[:1]
    for n in range(1, 4):
        row = row * factor + table[n : n + 1]
    return row


class Keeping(tf.Module):
    """Makes its variables when they are first needed: those of the other function in the trace of the first one."""

    def __init__(self):
        super().__init__()
        self.two = self.five = None

    @tfr.recursive
    def by_two(self, x, n):
        if self.two is None:
            self.two = tf.Variable(2.0)
        if n < 1:
            return x * self.two
        return self.by_five(x, n - 1) * self.two

    @tfr.recursive
    def by_five(self, x, n):
        if self.five is None:
            self.five = tf.Variable(5.0)
        if n < 1:
            return x * self.five
        return self.by_two(x, n - 1) * self.five


def test_functions_that_call_each_other_make_variables_of_their_own():
    net = Keeping()
    assert float(net.by_two(tf.constant(1.0), tf.constant(2))) == 20
    with tf.GradientTape() as tape:
        y = net.by_two(tf.constant(1.0), tf.constant(2))
    assert [float(g) for g in tape.gradient(y, [net.two, net.five])] == [20, 4]


def test_functions_make_variables_of_their_own_in_a_graph():
    with tf.Graph().as_default():
        net = Keeping()
        y = net.by_two(tf.constant(1.0), tf.constant(2))
        gradients = tf.gradients(y, [net.two, net.five])
        with tf1.Session(config=tfr.session_config()) as session:
            session.run(tf1.global_variables_initializer())
            assert session.run([y, *gradients]) == [20, 20, 4]


class Lazy(tf.keras.layers.Layer):
    """Its layers make their weights in the body: the last one's on a path that is traced after the first one's."""

    def __init__(self):
        super().__init__()
        factors = map(tf.keras.initializers.Constant, [0.5, 1.5, 2.5])
        self.products = [tf.keras.layers.Dense(4, use_bias=False, kernel_initializer=factor) for factor in factors]

    def build(self, shape):
        """Keras would look for what makes weights in `call`, and let it make them before."""

    @tfr.recursive
    def tower(self, x, n):
        if n < 1:
            return self.products[0](x)
        return self.products[2](self.tower(x, n - 1))

    @tfr.recursive
    def loop(self, x, n):
        if n > 0:
            for product in self.products:
                x = self.loop(product(x), n - 1)
        return x

    def call(self, x):
        return self.loop(self.tower(x, tf.constant(1)), tf.constant(1))


@pytest.mark.parametrize("place", ["eager", "tf.function"])
def test_layers_make_weights_in_bodies(place):
    layer = Lazy()
    net = tf.function(layer) if place == "tf.function" else layer
    expected = 4**5 * (0.5 * 2.5) * (0.5 * 1.5 * 2.5)
    np.testing.assert_allclose(net(tf.ones([1, 4])), np.full([1, 4], expected))
    assert [float(weight[0, 0]) for product in layer.products for weight in product.weights] == [0.5, 1.5, 2.5]
    with tf.GradientTape() as tape:
        y = net(tf.ones([1, 4]))
    for product, gradient in zip(layer.products, tape.gradient(y, [p.kernel for p in layer.products]), strict=True):
        times = 1 if product is layer.products[1] else 2
        np.testing.assert_allclose(tf.reduce_sum(gradient * product.kernel), times * 4 * expected, rtol=1e-5)


def test_lines_make_variables_once_for_each_function_in_a_graph():
    """In sessions a body may make a variable whenever it is traced; here one line does it twice."""

    @tfr.recursive
    def power(x, n):
        factors = [tf.Variable(2.0), *(tf.Variable(value) for value in (3.0, 5.0))]
        if n < 1:
            return x
        return power(x, n - 1) * factors[0] * factors[1] * factors[2]

    with tf.Graph().as_default():
        y = power(tf.constant(1.0), tf.constant(2))
        gradients = tf.gradients(y, tf1.global_variables())
        with tf1.Session(config=tfr.session_config()) as session:
            session.run(tf1.global_variables_initializer())
            assert session.run([y, *gradients]) == [900, 900, 600, 360]


def test_variable_of_each_trace_is_an_error_that_says_what_to_do():
    @tfr.recursive
    def power(x, n):
        factor = tf.Variable(2.0)
        if n < 1:
            return x
        return power(x, n - 1) * factor

    with pytest.raises(ValueError, match=r"'power'.*variable.*outside of the body, or keep the variable"):
        power(tf.constant(1.0), tf.constant(2))


def test_loop_of_a_body_swaps_variables():
    one, ten = tf.Variable(1.0), tf.Variable(10.0)

    @tfr.recursive
    def swapping(n, x):
        if n < 1:
            return x
        p, q = one.handle, ten.handle
        for _ in tf.range(3):
            x = x * 0.5 + tf.raw_ops.ReadVariableOp(resource=p, dtype=tf.float32)
            p, q = q, p
        return swapping(n - 1, x)

    expected = ((1.0 * 0.5 + 1.0) * 0.5 + 10.0) * 0.5 + 1.0
    assert float(tf.function(swapping)(tf.constant(1), tf.constant(1.0))) == expected
    expected = ((expected * 0.5 + 1.0) * 0.5 + 10.0) * 0.5 + 1.0
    assert float(swapping(tf.constant(2), tf.constant(1.0))) == expected


@pytest.mark.parametrize("place", ["eager", "tf.function", "branch"])
@pytest.mark.parametrize("initial", ["tensor", "function", "tensor_of_an_outer_function", "variable"])
def test_initial_value_from_an_argument_or_a_variable_is_an_error(place, initial):
    """A tf.function runs such an initializer in its first trace; which of a recursion's calls should give the value?"""

    around = tf.Variable(1.0)

    class Scaled(tf.Module):
        mean = None

        @tfr.recursive
        def scaled(self, x, n):
            if self.mean is None:
                mean = around * 2.0 if initial == "variable" else tf.reduce_mean(x)
                self.mean = tf.Variable((lambda: mean) if initial == "function" else mean)
            if n < 1:
                return x
            return self.scaled(x * self.mean, n - 1)

        @tfr.recursive
        def outer(self, x, n):
            if n > 0:
                return self.scaled(x, n) + self.outer(x, n - 1)
            return x

    module = Scaled()
    function = module.outer if initial == "tensor_of_an_outer_function" else module.scaled
    if place == "tf.function":
        function = tf.function(function)
    elif place == "branch":
        called = function
        function = tf.function(lambda x, n: tf.cond(n > 0, lambda: called(x, n), lambda: x))
    with pytest.raises(ValueError, match="tf.Variable that the body makes has an initial value.*the arguments of the"):
        function(tf.constant([1.0, 2.0]), tf.constant(2))


def test_initial_values_from_constants_and_variables():
    around, constant = tf.Variable(3.0), tf.constant(2.0)

    class Scaled(tf.Module):
        w = v = u = None

        @tfr.recursive
        def scaled(self, x, n):
            if self.w is None:
                self.w = tf.Variable(constant * tf.ones([2]))
                self.v, self.u = tf.Variable(around), tf.Variable(lambda: around)
            if n < 1:
                return x
            return self.scaled(x * self.w, n - 1) + self.v - self.u

    module = Scaled()
    assert module.scaled(tf.constant([1.0, 2.0]), tf.constant(2)).numpy().tolist() == [4.0, 8.0]
    assert (float(module.v), float(module.u)) == (3.0, 3.0)
