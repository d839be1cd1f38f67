"""Recursive functions with what they are in Python, and the check that their gradients agree."""
# SPDX-License-Identifier: Apache-2.0

import collections

import numpy as np
import tensorflow as tf
from building import recursive
from gradient_helpers import as_array, differences, fed, is_differentiable, weights_of

F64, I32 = tf.float64, tf.int32

# What builds the function and its oracle, and lists of arguments; those that are floating are differentiated by.
Program = collections.namedtuple("Program", "build inputs")
PROGRAMS = {}

VECTOR = np.array([0.3, -0.8, 1.2])
MATRIX = np.array([[0.5, -0.3, 0.1], [0.2, 0.4, -0.6], [-0.7, 0.1, 0.3]])


def program(*inputs):
    """Adds a function without arguments, which returns a TensorFlow function and its oracle, to the programs."""

    def add(build):
        PROGRAMS[build.__name__] = Program(build, inputs)
        return build

    return add


def check_gradients(run, function, oracle, arguments, shapes=True, rtol=1e-6, atol=1e-7):
    """Compares values and gradients of all outputs, each weighted by some numbers, with numeric differences."""
    xs = fed(arguments, shapes)
    ys = function(*xs)
    ys = ys if isinstance(ys, (tuple, list)) else (ys,)
    weights = weights_of(oracle, arguments)
    pairs = [(y, weight) for y, weight in zip(ys, weights, strict=True) if weight is not None]
    gradients = tf.gradients([y for y, _ in pairs], xs, grad_ys=[tf.constant(w, y.dtype) for y, w in pairs])
    for x, gradient in zip(xs, gradients, strict=True):
        assert (gradient is not None) == (x.dtype.is_floating or x.dtype.is_complex)
    values, got = run([ys, [gradient for gradient in gradients if gradient is not None]])
    expected_values = oracle(*map(as_array, arguments))
    expected_values = expected_values if isinstance(expected_values, tuple) else (expected_values,)
    for value, expected in zip(values, expected_values, strict=True):
        check(value, expected, rtol)
    expected = [gradient for gradient in differences(oracle, arguments, weights) if gradient is not None]
    for one, other in zip(got, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


def check(value, expected, rtol=1e-6):
    expected = np.asarray(expected)
    if is_differentiable(expected):
        np.testing.assert_allclose(value, expected, rtol=rtol, atol=1e-9)
    else:
        np.testing.assert_array_equal(value, expected)


# --- Shapes of recursion ------------------------------------------------------------------------------------------


def define_power(dtype=F64, name="Power", wrap=lambda x: x, **options):
    """x ** n, by n multiplications; the value without recursion is a constant."""
    f, define = recursive(name, [dtype, I32], [dtype], **options)
    define(lambda x, n: tf.cond(n < 1, lambda: tf.ones([], dtype), lambda: wrap(x) * f(x, n - 1)))
    return f


def power_oracle(x, n):
    return x**n if n > 0 else np.ones_like(x)


@program([1.3, 0], [1.3, 1], [-0.9, 7])
def power():
    return define_power(), power_oracle


@program([0.7, 0], [0.7, 5], [-1.1, 12])
def power_by_squaring():
    f, define = recursive("Squaring", [F64, I32], [F64])

    @define
    def Squaring(x, n):
        even = lambda: f(x * x, n // 2)
        deeper = lambda: tf.cond(tf.equal(n % 2, 0), even, lambda: x * f(x, n - 1))
        return tf.cond(n < 1, lambda: tf.ones_like(x), deeper)

    return f, power_oracle


@program([2.0, 1.0, 6], [7.0, 3.0, 3])
def tail_recursion():
    """Newton's square root; the argument is passed on unchanged."""
    f, define = recursive("Newton", [F64, F64, I32], [F64])
    define(lambda a, g, n: tf.cond(n < 1, lambda: g, lambda: f(a, (g + a / g) / 2, n - 1)))

    def oracle(a, g, n):
        return g if n < 1 else oracle(a, (g + a / g) / 2, n - 1)

    return f, oracle


@program([0.4, 0], [0.4, 7])
def mutual_recursion():
    even, define_even = recursive("Even", [F64, I32], [F64])
    odd, define_odd = recursive("Odd", [F64, I32], [F64])
    define_even(lambda x, n: tf.cond(n < 1, lambda: x, lambda: tf.sin(x) + odd(x * x, n - 1)))
    define_odd(lambda x, n: tf.cond(n < 1, lambda: 2.0 * x, lambda: x * even(tf.cos(x), n - 1)))

    def oracle(x, n, odd=False):
        if n < 1:
            return 2 * x if odd else x
        return x * oracle(np.cos(x), n - 1) if odd else np.sin(x) + oracle(x * x, n - 1, True)

    return even, oracle


@program([0.4, -0.3, 6])
def mutual_recursion_of_three():
    a, define_a = recursive("A", [F64, F64, I32], [F64])
    b, define_b = recursive("B", [F64, F64, I32], [F64])
    c, define_c = recursive("C", [F64, F64, I32], [F64])
    define_a(lambda x, y, n: tf.cond(n < 1, lambda: x, lambda: b(y, x, n - 1) + c(x, y, n - 2)))
    define_b(lambda x, y, n: tf.cond(n < 1, lambda: x * y, lambda: tf.tanh(c(x, y, n - 1)) - a(y, x * y, n - 3)))
    define_c(lambda x, y, n: tf.cond(n < 1, lambda: y, lambda: a(x - y, y, n - 1) * b(x, y, n - 2)))

    def oracle(x, y, n, which=0):
        if n < 1:
            return [x, x * y, y][which]
        if which == 0:
            return oracle(y, x, n - 1, 1) + oracle(x, y, n - 2, 2)
        if which == 1:
            return np.tanh(oracle(x, y, n - 1, 2)) - oracle(y, x * y, n - 3, 0)
        return oracle(x - y, y, n - 1, 0) * oracle(x, y, n - 2, 1)

    return a, oracle


@program([0.8, 1], [0.8, 7])
def tree_recursion():
    f, define = recursive("Tree", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 2, lambda: x, lambda: f(tf.sin(x), n - 1) + x * f(x * x, n - 2)))

    def oracle(x, n):
        return x if n < 2 else oracle(np.sin(x), n - 1) + x * oracle(x * x, n - 2)

    return f, oracle


@program([0.7, 2], [-0.4, 3])
def nested_calls_in_body():
    f, define = recursive("Nested", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: tf.tanh(x) * 1.5, lambda: f(f(x, n - 1) + x, n - 1)))

    def oracle(x, n):
        return 1.5 * np.tanh(x) if n < 1 else oracle(oracle(x, n - 1) + x, n - 1)

    return f, oracle


@program([0.9, 3])
def nested_calls():
    f = define_power()
    return lambda x, n: f(f(x, n) * f(f(x, 2), 1), 2), lambda x, n: (x**n * x**2) ** 2


@program([6.0, 0.5])
def tail_calls_that_end_by_value():
    """How deep it goes is known when it runs."""
    f, define = recursive("Shrink", [F64, F64], [F64])
    define(lambda x, r: tf.cond(x < 1, lambda: x, lambda: f(x * r, r)))

    def oracle(x, r):
        return x if x < 1 else oracle(x * r, r)

    return f, oracle


@program([2.0, 3])
def function_without_recursion():
    f, define = recursive("Plain", [F64, I32], [F64])
    define(lambda x, n: x * x * tf.cast(n, F64))
    return f, lambda x, n: x * x * n


@program([0.6, 4])
def function_that_returns_its_argument():
    f, define = recursive("Identity", [F64, I32], [F64, F64])
    define(lambda x, n: tf.cond(n < 1, lambda: (x, x), lambda: f(x, n - 1)))
    return f, lambda x, n: (x, x)


# --- Arguments and outputs ----------------------------------------------------------------------------------------


@program([0.5, 1.5, 5], [0.5, 1.5, 0])
def several_outputs():
    f, define = recursive("Several", [F64, F64, I32], [F64, F64])

    @define
    def Several(x, y, n):
        def deeper():
            a, b = f(x * y, y, n - 1)
            return tf.sin(a) + y, b * x

        return tf.cond(n < 1, lambda: (x, y), deeper)

    def oracle(x, y, n):
        if n < 1:
            return x, y
        a, b = oracle(x * y, y, n - 1)
        return np.sin(a) + y, b * x

    return f, oracle


@program([3, 0.5, True, 1.5, "ab"], [0, 0.5, False, 1.5, ""])
def arguments_and_outputs_of_many_types():
    f, define = recursive("Types", [I32, F64, tf.bool, F64, tf.string], [tf.string, F64, tf.bool, I32, F64])

    @define
    def Types(n, x, flag, y, text):
        def deeper():
            s, a, b, k, c = f(n - 1, x * y, tf.logical_not(flag), y, tf.strings.join([text, "."]))
            grown = tf.cond(flag, lambda: a * x, lambda: a + y)
            return s, grown * tf.cast(k, F64), tf.logical_not(b), k + 1, c * tf.sin(x)

        return tf.cond(n < 1, lambda: (text, x, flag, tf.strings.length(text), y), deeper)

    def oracle(n, x, flag, y, text):
        text = text.item() if isinstance(text, np.ndarray) else text
        if n < 1:
            return text.encode(), x, flag, len(text), y
        s, a, b, k, c = oracle(n - 1, x * y, not flag, y, text + ".")
        return s, (a * x if flag else a + y) * k, not b, k + 1, c * np.sin(x)

    return f, oracle


@program([0.5, 1.5, 4])
def unused_outputs():
    f, define = recursive("Unused", [F64, F64, I32], [F64, F64, F64])

    @define
    def Unused(x, y, n):
        def deeper():
            a, _, c = f(x * y, y, n - 1)
            return a * x, c, tf.exp(-c)

        return tf.cond(n < 1, lambda: (x, y, x * y), deeper)

    def oracle(x, y, n):
        if n < 1:
            return x
        return oracle(x * y, y, n - 1) * x

    return lambda x, y, n: f(x, y, n)[0], oracle


@program([0.5, 1.5, 2.5, 4], [0.5, 1.5, 2.5, 0])
def unused_arguments():
    """One argument is passed on and read nowhere, one is dropped at once."""
    f, define = recursive("Drop", [F64, F64, F64, I32], [F64])
    define(lambda x, y, z, n: tf.cond(n < 1, lambda: tf.ones([], F64), lambda: x * f(x, y, tf.zeros([], F64), n - 1)))
    return f, lambda x, y, z, n: x**n


@program([0.5, 3])
def constant_result():
    f, define = recursive("Constant", [F64, I32], [F64, F64])

    @define
    def Constant(x, n):
        return tf.cond(n < 1, lambda: (tf.constant(3.0, F64), x), lambda: (f(x, n - 1)[0], f(x * x, n - 1)[1]))

    def oracle(x, n):
        return np.float64(3.0), x if n < 1 else oracle(x * x, n - 1)[1]

    return f, oracle


@program([0.5, 1.5, 3, 2])
def argument_used_in_one_branch():
    f, define = recursive("Branch", [F64, F64, I32, I32], [F64])

    @define
    def Branch(x, y, n, k):
        deeper = lambda: tf.cond(tf.equal(n, k), lambda: y * f(x, y, n - 1, k), lambda: f(x, y, n - 1, k) + x)
        return tf.cond(n < 1, lambda: x, deeper)

    def oracle(x, y, n, k):
        if n < 1:
            return x
        return y * oracle(x, y, n - 1, k) if n == k else oracle(x, y, n - 1, k) + x

    return f, oracle


@program([0.5, 1.5, -0.7, 4])
def weights_that_change_places():
    f, define = recursive("Swap", [F64, F64, F64, I32], [F64])
    define(lambda x, v, w, n: tf.cond(n < 1, lambda: x * v, lambda: tf.tanh(w * f(x * v, w, v, n - 1)) + v))

    def oracle(x, v, w, n):
        return x * v if n < 1 else np.tanh(w * oracle(x * v, w, v, n - 1)) + v

    return f, oracle


@program([VECTOR[None], MATRIX, 4], [VECTOR[None], MATRIX, 1])
def weights_that_one_call_changes():
    """One call passes the weights on as they are, the other does not."""
    f, define = recursive("Changed", [F64, F64, I32], [F64])

    @define
    def Changed(h, w, n):
        deeper = lambda: f(tf.tanh(tf.matmul(h, w)), w, n - 1) + f(h, w * 0.5, n - 2)
        return tf.cond(n < 1, lambda: tf.matmul(h, w), deeper)

    def oracle(h, w, n):
        return h @ w if n < 1 else oracle(np.tanh(h @ w), w, n - 1) + oracle(h, w * 0.5, n - 2)

    return f, oracle


@program([VECTOR[None], MATRIX, 3])
def weights_that_are_also_a_result():
    f, define = recursive("Result", [F64, F64, I32], [F64, F64])

    @define
    def Result(h, w, n):
        def deeper():
            a, b = f(tf.tanh(tf.matmul(h, w)), w, n - 1)
            return tf.matmul(a, b), w

        return tf.cond(n < 1, lambda: (h, w), deeper)

    def oracle(h, w, n):
        if n < 1:
            return h, w
        a, b = oracle(np.tanh(h @ w), w, n - 1)
        return a @ b, w

    return f, oracle


@program([np.arange(8.0).reshape(4, 2) / 10, np.array([0.3, 0.4]), 5])
def rows_gathered_from_what_changes():
    """A table that is passed on, changed, and gathered from on both sides of the call."""
    f, define = recursive("Rows", [F64, F64, I32], [F64])

    @define
    def Rows(table, h, n):
        row = tf.gather(table, n % 4)
        same = lambda: f(table, h * row, n - 1) + row
        other = lambda: f(tf.sin(table), h + row, n - 1) * row
        return tf.cond(n < 1, lambda: h * row, lambda: tf.cond(tf.equal(n % 3, 1), other, same))

    def oracle(table, h, n):
        row = table[n % 4]
        if n < 1:
            return h * row
        if n % 3 == 1:
            return oracle(np.sin(table), h + row, n - 1) * row
        return oracle(table, h * row, n - 1) + row

    return f, oracle


# --- Dtypes and shapes ----------------------------------------------------------------------------------------------


@program([VECTOR[None], MATRIX, VECTOR, 0], [VECTOR[None], MATRIX, VECTOR, 4])
def recurrent_net():
    f, define = recursive("Net", [F64, F64, F64, I32], [F64])
    define(lambda h, w, b, n: tf.cond(n < 1, lambda: h, lambda: f(tf.tanh(tf.matmul(h, w) + b), w, b, n - 1)))

    def oracle(h, w, b, n):
        return h if n < 1 else oracle(np.tanh(h @ w + b), w, b, n - 1)

    return f, oracle


@program([0.7, 0], [0.7, 4])
def results_that_grow():
    f, define = recursive("Grow", [F64, I32], [F64])
    grown = lambda x, n: tf.concat([[x * x], f(tf.sin(x), n - 1)], 0)
    define(lambda x, n: tf.cond(n < 1, lambda: tf.reshape(x, [1]), lambda: grown(x, n)))

    def oracle(x, n):
        return np.reshape(x, [1]) if n < 1 else np.concatenate([[x * x], oracle(np.sin(x), n - 1)])

    return f, oracle


@program([np.array([0.5])], [np.linspace(0.5, 1.5, 7)])
def arguments_that_shrink():
    """Products over halves of a vector, whose length only the run knows."""
    f, define = recursive("Halves", [F64], [F64])

    @define
    def Halves(v):
        n = tf.size(v)
        return tf.cond(n < 2, lambda: tf.sin(v[0]), lambda: f(v[: n // 2]) * f(v[n // 2 :]) + v[0])

    def oracle(v):
        n = len(v)
        return np.sin(v[0]) if n < 2 else oracle(v[: n // 2]) * oracle(v[n // 2 :]) + v[0]

    return f, oracle


@program([np.array([0.5, -0.2, 0.9, -1.5, 0.1])])
def arguments_that_are_filtered():
    f, define = recursive("Filter", [F64], [F64])

    @define
    def Filter(v):
        v = tf.ensure_shape(v, [None])
        top = tf.reduce_max(v)
        rest = tf.boolean_mask(v, v < top)
        return tf.cond(tf.size(v) < 2, lambda: tf.reduce_sum(v), lambda: top * f(rest * 0.5) + tf.reduce_sum(v))

    def oracle(v):
        return np.sum(v) if len(v) < 2 else np.max(v) * oracle(v[v < np.max(v)] * 0.5) + np.sum(v)

    return f, oracle


@program([np.zeros([0, 3]), 2], [np.ones([2, 3, 1, 2]) * 0.3, 2], [np.float64(0.3), 2])
def arguments_of_any_rank():
    f, define = recursive("Rank", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: x * tf.sin(f(x + 0.5, n - 1))))

    def oracle(x, n):
        return x if n < 1 else x * np.sin(oracle(x + 0.5, n - 1))

    return f, oracle


@program([np.array([0.2, 0.4]), MATRIX, 2])
def broadcast_arguments():
    f, define = recursive("Broadcast", [F64, F64, I32], [F64])
    deeper = lambda a, b, n: f(a * 1.5, b, n - 1) * a[0] + tf.reduce_sum(a) * b[:, 0]
    define(lambda a, b, n: tf.cond(n < 1, lambda: a[0] * b[0], lambda: deeper(a, b, n)))

    def oracle(a, b, n):
        return a[0] * b[0] if n < 1 else oracle(a * 1.5, b, n - 1) * a[0] + np.sum(a) * b[:, 0]

    return f, oracle


@program([0.6 + 0.3j, 0], [0.6 + 0.3j, 5], [np.array([[0.5 - 1j, 1j]]), 3])
def complex_numbers():
    f, define = recursive("Complex", [tf.complex128, I32], [tf.complex128])
    define(lambda z, n: tf.cond(n < 1, lambda: tf.ones_like(z), lambda: z * f(z * (1 + 0.5j), n - 1) + tf.sin(z)))

    def oracle(z, n):
        return np.ones_like(z) if n < 1 else z * oracle(z * (1 + 0.5j), n - 1) + np.sin(z)

    return f, oracle


@program([0.6 + 0.3j, 0.5, 4])
def complex_and_real_numbers():
    """Conjugates and absolute values are not holomorphic."""
    f, define = recursive("Modulus", [tf.complex128, F64, I32], [F64, tf.complex128])

    @define
    def Modulus(z, x, n):
        def deeper():
            r, w = f(tf.math.conj(z) * tf.complex(x, r0 * x), x * r0, n - 1)
            return r * tf.math.real(w) + tf.math.imag(z), w * z

        r0 = tf.abs(z)
        return tf.cond(n < 1, lambda: (r0 * x, z), deeper)

    def oracle(z, x, n):
        r0 = np.abs(z)
        if n < 1:
            return r0 * x, z
        r, w = oracle(np.conj(z) * (x + 1j * r0 * x), x * r0, n - 1)
        return r * np.real(w) + np.imag(z), w * z

    return f, oracle


# --- Captured tensors ---------------------------------------------------------------------------------------------


def define_captured(w, c):
    """Mutual recursion that uses both: w * (c + w * (c + ... x))."""
    f, define = recursive("F", [F64, I32], [F64])
    g, define_g = recursive("G", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: w * g(x, n - 1)))
    define_g(lambda x, n: tf.cond(n < 1, lambda: x * c, lambda: c + f(x, n - 1)))
    return f


def captured_oracle(x, w, c, n, in_g=False):
    if n < 1:
        return x * c if in_g else x
    return c + captured_oracle(x, w, c, n - 1) if in_g else w * captured_oracle(x, w, c, n - 1, True)
