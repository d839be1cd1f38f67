"""What the tests of gradients share: numeric derivatives, counted kernel runs, collected gradients, resident memory."""
# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import numpy as np
import tensorflow as tf
from processes import resident_kib

import tensorflow_recursion as tfr
from tensorflow_recursion import names

tf1 = tf.compat.v1

NUMPY_TYPES = {int: np.int32, float: np.float64, complex: np.complex128, bool: np.bool_, str: object}


def as_array(value):
    """A Python value as the array that stands for it: int32, float64, complex128."""
    return np.asarray(value, NUMPY_TYPES.get(type(value)))


def widened(array):
    """Floating and complex numbers in double precision, for differences."""
    return array.astype({"f": np.float64, "c": np.complex128}[array.dtype.kind]) if is_differentiable(array) else array


def is_differentiable(array):
    return array.dtype.kind in "fc"


def as_tuple(values):
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def fed(values, shapes=True):
    """Placeholders that hold the values; their static shapes are known or not."""
    arrays = [as_array(value) for value in values]
    return [tf1.placeholder_with_default(array, array.shape if shapes else None) for array in arrays]


def weights_of(oracle, arguments):
    """What each output's elements count in a sum of all; None for an output that is no floating or complex number."""
    generator = np.random.default_rng(7)
    weights = []
    for result in as_tuple(oracle(*map(as_array, arguments))):
        result = as_array(result)
        weight = None
        if is_differentiable(result):
            weight = generator.normal(size=result.shape)
            if result.dtype.kind == "c":
                weight = weight + 1j * generator.normal(size=result.shape)
        weights.append(weight)
    return weights


def differences(oracle, arguments, weights, step=1e-6):
    """Central differences of the weighted sum of all outputs; None for arguments that are not floating or complex.

    The gradient of a complex argument is TensorFlow's: by the real part, plus i times by the imaginary part.
    """
    arguments = [widened(as_array(argument)) for argument in arguments]

    def loss(number, moved):
        results = as_tuple(oracle(*arguments[:number], moved, *arguments[number + 1 :]))
        pairs = zip(weights, results, strict=True)
        return sum(np.sum(np.real(np.conj(weight) * result)) for weight, result in pairs if weight is not None)

    def partial(number, index, delta):
        above, below = arguments[number].copy(), arguments[number].copy()
        above[index] += delta
        below[index] -= delta
        return (loss(number, above) - loss(number, below)) / (2 * step)

    gradients = []
    for number, argument in enumerate(arguments):
        if not is_differentiable(argument):
            gradients.append(None)
            continue
        gradient = np.zeros(argument.shape, argument.dtype)
        for index in np.ndindex(argument.shape):
            gradient[index] = partial(number, index, step)
            if argument.dtype.kind == "c":
                gradient[index] += 1j * partial(number, index, 1j * step)
        gradients.append(gradient)
    return gradients


class Counted:
    """An identity in bodies that counts how often its kernel runs, and that of its gradient."""

    def __init__(self):
        self.forward = 0
        self.backward = 0

    def __call__(self, x):
        @tf.custom_gradient
        def counted(x):
            def gradient(dy):
                return _identity_by(self._count_backward, dy)

            return _identity_by(self._count_forward, x), gradient

        return counted(x)

    def reset(self):
        self.forward = self.backward = 0

    def _count_forward(self, x):
        self.forward += 1
        return x

    def _count_backward(self, x):
        self.backward += 1
        return x


def _identity_by(function, x):
    """A node that runs a Python function, which returns what it is given."""
    y = tf1.py_func(function, [x], x.dtype, stateful=True)
    y.set_shape(x.shape)
    return y


class CountedInAllOrders:
    """An identity in bodies that counts how often its kernel runs, and those of its derivatives of all orders."""

    def __init__(self):
        self.runs = 0

    def __call__(self, x):
        @tf.custom_gradient
        def counted(x):
            return _identity_by(self._count, x), self

        return counted(x)

    def reset(self):
        self.runs = 0

    def _count(self, x):
        self.runs += 1
        return x


def resident_megabytes(field="VmRSS"):
    """Resident memory of this process: "VmRSS" is now, "VmHWM" the most since `forget_peak`."""
    return resident_kib(field=field) / 1024


def forget_peak():
    Path("/proc/self/clear_refs").write_text("5")


def derivatives(y, x, orders, unconnected="none"):
    """`y` and its derivatives of all orders up to `orders`, as nodes of a graph."""
    found = [y]
    for _ in range(orders):
        [gradient] = tf.gradients(found[-1], x, unconnected_gradients=unconnected)
        found.append(gradient)
    return found


def nested_derivative(f, x, order):
    """The derivative of `f` at `x` by tapes in tapes."""
    if order == 0:
        return f(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = nested_derivative(f, x, order - 1)
    return tape.gradient(y, x)


def collected(fetches):
    """How many gradients for weights the static graph of some fetches makes of all terms at once."""
    nodes = tfr.transform_graph(tf1.get_default_graph(), fetches).node
    return sum(node.op == names.COLLECT for node in nodes)


def check_derivatives(run, inputs, recursive, unrolled, order, count=None):
    """Checks gradients, and for order 2 what is one more derivative of them, against those of the function unrolled.

    Args:
      run: see shared_fixtures.py.
      inputs: makes what is differentiated for: tensors or variables.
      recursive: makes a tensor of them, in the default graph.
      unrolled: does so without recursion. It is called in eager mode, where nothing is built or optimized.
      order: 1 or 2.
      count: how many of the gradients static graphs make of all terms at once; None if that is not to be checked.
    """
    with tf.__internal__.eager_context.eager_mode(), tf.device("/CPU:0"):  # the fake GPU has few kernels
        expected = _orders_by_tapes(unrolled, inputs(), order)
    xs = inputs()
    fetches = _orders_in_graph(recursive, xs, order)
    for dxs, expected_dxs in zip(run(fetches), expected, strict=True):
        for dx, expected_dx in zip(dxs, expected_dxs, strict=True):
            np.testing.assert_allclose(dx, expected_dx, rtol=1e-9, atol=1e-14)
    assert count is None or collected(fetches[1]) == count


def check_net(run, inputs, program, depth, order, count=None):
    """Checks derivatives of a net of two calls a call, that is sin(program(n, net(n - 1) + net(n - 2), *weights)).

    `inputs` makes the start, which the net has the shape of, and the weights. See `check_derivatives` for the rest.
    """

    def recursive(start, *weights):
        @tfr.recursive(
            input_signature=[tf.TensorSpec([], tf.int32)],
            output_signature=tf.TensorSpec(start.shape, start.dtype),
            autograph=False,
        )
        def net(n):
            step = lambda: tf.sin(program(n, net(n - 1) + net(n - 2), *weights))
            return tf.cond(n < 1, lambda: tf.identity(start), step)

        return net(tf.constant(depth))

    def unrolled(start, *weights):
        def net(n):
            return start if n < 1 else tf.sin(program(tf.constant(n), net(n - 1) + net(n - 2), *weights))

        return net(depth)

    check_derivatives(run, inputs, recursive, unrolled, order, count)


def _orders_in_graph(f, xs, order):
    """`[f(*xs)]`, the gradients of it, and one more derivative of these if `order` is 2."""
    orders = [[f(*xs)]]
    for _ in range(order):
        dxs = tf.gradients(_total(orders[-1]), xs, unconnected_gradients="zero")
        orders.append([tf.convert_to_tensor(dx) for dx in dxs])
    return orders


def _orders_by_tapes(f, xs, order):
    """The same as numbers, in eager mode."""
    if order == 0:
        return [[f(*xs)]]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        lower = _orders_by_tapes(f, xs, order - 1)
        total = _total(lower[-1])
    return [*lower, [tf.convert_to_tensor(dx) for dx in tape.gradient(total, xs, unconnected_gradients="zero")]]


def _total(ys):
    """The sum of what has been squared and cubed: no derivative of it is the same for all elements."""
    return sum(tf.reduce_sum(tf.math.real(y * tf.math.conj(y) * (y + 1.0))) for y in ys)
