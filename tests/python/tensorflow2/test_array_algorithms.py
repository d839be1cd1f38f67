"""Recursive algorithms on arrays as they are written in NumPy, with Python numbers for sizes."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

_rng = np.random.default_rng(1)


@tfr.recursive
def fft(x):
    n = x.shape[0]
    if n == 1:
        return x
    even, odd = fft(x[::2]), fft(x[1::2])
    turned = tf.exp(tf.complex(0.0, -2 * np.pi / n * tf.range(n // 2, dtype=tf.float32))) * odd
    return tf.concat([even + turned, even - turned], axis=0)


@tfr.recursive
def product(a, b):
    """Strassen's."""
    n = a.shape[0]
    if n <= 2:
        return a @ b
    m = n // 2
    a11, a12, a21, a22 = a[:m, :m], a[:m, m:], a[m:, :m], a[m:, m:]
    b11, b12, b21, b22 = b[:m, :m], b[:m, m:], b[m:, :m], b[m:, m:]
    p1, p2, p3 = product(a11 + a22, b11 + b22), product(a21 + a22, b11), product(a11, b12 - b22)
    p4, p5, p6 = product(a22, b21 - b11), product(a11 + a12, b22), product(a21 - a11, b11 + b12)
    p7 = product(a12 - a22, b21 + b22)
    left = tf.concat([p1 + p4 - p5 + p7, p2 + p4], axis=0)
    return tf.concat([left, tf.concat([p3 + p5, p1 - p2 + p3 + p6], axis=0)], axis=1)


@tfr.recursive
def determinant(matrix):
    """Laplace's expansion."""
    n = matrix.shape[0]
    if n == 1:
        return matrix[0, 0]
    total = 0.0
    for column in range(n):
        minor = tf.concat([matrix[1:, :column], matrix[1:, column + 1 :]], axis=1)
        total += (-1.0) ** column * matrix[0, column] * determinant(minor)
    return total


@tfr.recursive
def cholesky(matrix):
    n = matrix.shape[0]
    if n == 1:
        return tf.sqrt(matrix)
    corner = tf.sqrt(matrix[:1, :1])
    column = matrix[1:, :1] / corner
    rest = cholesky(matrix[1:, 1:] - column @ tf.transpose(column))
    return tf.concat([tf.concat([corner, tf.zeros([1, n - 1])], 1), tf.concat([column, rest], 1)], 0)


@tfr.recursive
def polynomial(coefficients, x):
    """Horner's scheme."""
    first = coefficients[0]
    return first if len(coefficients) == 1 else first + x * polynomial(coefficients[1:], x)


@tfr.recursive
def walsh_hadamard(x):
    if x.shape[-1] == 1:
        return x
    a, b = tf.split(x, 2, axis=-1)
    return tf.concat([walsh_hadamard(a + b), walsh_hadamard(a - b)], axis=-1)


def random(*shape):
    return _rng.normal(size=shape).astype(np.float32)


def positive(n):
    factor = random(n, n)
    return factor @ factor.T + n * np.eye(n, dtype=np.float32)


def hadamard_matrix(n):
    return np.ones([1, 1]) if n == 1 else np.kron([[1, 1], [1, -1]], hadamard_matrix(n // 2))


ALGORITHMS = {
    "fft": (fft, np.fft.fft, [[random(n).astype(np.complex64)] for n in (8, 16, 4)]),
    "product": (product, np.matmul, [[random(n, n), random(n, n)] for n in (4, 8)]),
    "determinant": (determinant, np.linalg.det, [[random(n, n)] for n in (3, 4, 2)]),
    "cholesky": (cholesky, np.linalg.cholesky, [[positive(n)] for n in (3, 5)]),
    "polynomial": (polynomial, lambda c, x: np.polyval(c[::-1], x), [[random(n), np.float32(0.3)] for n in (4, 7)]),
    "walsh_hadamard": (walsh_hadamard, lambda x: x @ hadamard_matrix(x.shape[-1]), [[random(3, n)] for n in (4, 8)]),
}


@pytest.mark.sampled(2)
@pytest.mark.thorough
@pytest.mark.each_value
@pytest.mark.parametrize("name", list(ALGORITHMS))
@pytest.mark.parametrize("in_function", [False, True], ids=["eager", "tf.function"])
def test_values_are_numpys_for_arrays_of_several_sizes(name, in_function):
    function, of_numpy, arguments = ALGORITHMS[name]
    called = tf.function(lambda *args: function(*args)) if in_function else function
    for args in arguments:
        np.testing.assert_allclose(called(*map(tf.constant, args)), of_numpy(*args), rtol=1e-3, atol=1e-4)


@pytest.mark.thorough
def test_recursion_that_python_ends_has_as_many_traces_as_it_needs():
    x = random(512)
    expected = x @ hadamard_matrix(512)
    np.testing.assert_allclose(walsh_hadamard(tf.constant(x)), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.thorough
def test_gradient_of_a_determinant_is_its_cofactors():
    matrix = tf.constant(positive(4))
    with tf.GradientTape() as tape:
        tape.watch(matrix)
        value = determinant(matrix)
    expected = np.linalg.det(matrix) * np.linalg.inv(matrix).T
    np.testing.assert_allclose(tape.gradient(value, matrix), expected, rtol=1e-3)
