"""Small programs about numbers, bools and strings."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import tensorflow as tf
from building import recursive
from programs import adding_to

PROGRAMS = {}
program = adding_to(PROGRAMS)


@program([tf.int32], [-1], [0], [1], [10], [17])
def fib():
    f, define = recursive("Fib", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 2, lambda: n, lambda: f(n - 1) + f(n - 2)))

    def oracle(n):
        return n if n < 2 else oracle(n - 1) + oracle(n - 2)

    return f, oracle


@program([tf.int32, tf.int32], [0, 3], [2, 3], [3, 2])
def ack():
    f, define = recursive("Ack", [tf.int32, tf.int32], [tf.int32])

    @define
    def Ack(m, n):
        inner = lambda: tf.cond(tf.equal(n, 0), lambda: f(m - 1, 1), lambda: f(m - 1, f(m, n - 1)))
        return tf.cond(tf.equal(m, 0), lambda: n + 1, inner)

    def oracle(m, n):
        if m == 0:
            return n + 1
        return oracle(m - 1, 1) if n == 0 else oracle(m - 1, oracle(m, n - 1))

    return f, oracle


@program([tf.int32] * 3, [6, 4, 2], [8, 4, 0], [1, 2, 3])
def tak():
    f, define = recursive("Tak", [tf.int32] * 3, [tf.int32])

    @define
    def Tak(x, y, z):
        return tf.cond(y < x, lambda: f(f(x - 1, y, z), f(y - 1, z, x), f(z - 1, x, y)), lambda: z)

    def oracle(x, y, z):
        return oracle(oracle(x - 1, y, z), oracle(y - 1, z, x), oracle(z - 1, x, y)) if y < x else z

    return f, oracle


@program([tf.int32], [0], [1], [2], [40])
def primes():
    i32 = tf.int32
    test, define_test = recursive("IsPrime", [i32, i32], [tf.bool])
    minus, define_minus = recursive("PrimeMinus", [i32, i32], [i32])
    plus, define_plus = recursive("PrimePlus", [i32, i32], [i32])
    f, define = recursive("Primes", [i32], [i32])

    @define_test
    def IsPrime(n, i):
        k = 6 * i - 1
        deeper = lambda: tf.cond(tf.equal(n % k, 0), lambda: False, lambda: test(n, i + 1))
        return tf.cond(k * k > n, lambda: True, deeper)

    @define_minus
    def PrimeMinus(n, i):
        k = 6 * i - 1
        found = lambda: tf.cond(tf.equal(n, 0), lambda: k, lambda: plus(n - 1, i))
        return tf.cond(test(k, 1), found, lambda: plus(n, i))

    @define_plus
    def PrimePlus(n, i):
        k = 6 * i + 1
        found = lambda: tf.cond(tf.equal(n, 0), lambda: k, lambda: minus(n - 1, i + 1))
        return tf.cond(test2(k, 1), found, lambda: minus(n, i + 1))

    test2, define_test2 = recursive("IsPrimeToo", [i32, i32], [tf.bool])

    @define_test2
    def IsPrimeToo(n, i):
        p, q = 6 * i - 1, 6 * i + 1
        divides = tf.logical_or(tf.equal(n % p, 0), tf.logical_and(q < n, tf.equal(n % q, 0)))
        return tf.cond(p * p > n, lambda: True, lambda: tf.logical_and(tf.logical_not(divides), test2(n, i + 1)))

    @define
    def Primes(n):
        return tf.case([(n <= 0, lambda: 2), (tf.equal(n, 1), lambda: 3)], default=lambda: minus(n - 2, 1))

    def oracle_test(n, i):
        k = 6 * i - 1
        return k * k > n or (n % k != 0 and oracle_test(n, i + 1))

    def oracle_test2(n, i):
        p, q = 6 * i - 1, 6 * i + 1
        return p * p > n or (n % p != 0 and not (q < n and n % q == 0) and oracle_test2(n, i + 1))

    def oracle(n):
        if n < 2:
            return 2 if n <= 0 else 3
        n, i, is_minus = n - 2, 1, True
        while True:
            k = 6 * i - 1 if is_minus else 6 * i + 1
            if oracle_test(k, 1) if is_minus else oracle_test2(k, 1):
                if n == 0:
                    return k
                n -= 1
            i += 0 if is_minus else 1
            is_minus = not is_minus

    return f, oracle


@program([tf.int64, tf.int64], [48, 36], [2**40, 3 * 2**38], [7, 0])
def gcd_of_int64():
    f, define = recursive("Gcd", [tf.int64] * 2, [tf.int64])
    define(lambda a, b: tf.cond(tf.equal(b, 0), lambda: a, lambda: f(b, a % b)))

    def oracle(a, b):
        return np.int64(a if b == 0 else oracle(b, a % b))

    return f, oracle


@program([tf.int32, tf.int32], [-17, 5], [17, -5], [17, 5], [-17, -5])
def arithmetic_of_int32():
    """Python's rules for signs, and wrapping."""
    f, define = recursive("Arithmetic", [tf.int32] * 2, [tf.int32] * 4)

    @define
    def Arithmetic(a, b):
        done = lambda: [a // b, a % b, tf.maximum(a, -b), tf.abs(a) * tf.negative(b) - tf.minimum(a, b)]
        shifted = lambda: [2 * r for r in f(a, b - 100)]
        return tf.cond(b < 50, done, shifted)

    return f, lambda a, b: (a // b, a % b, max(a, -b), abs(a) * -b - min(a, b))


@program([tf.int32], [3], [40])
def overflow_of_int32():
    f, define = recursive("Power", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 1, lambda: 3 * f(n - 1)))
    return f, lambda n: np.int64(3**n & 0xFFFFFFFF).astype(np.int32)


@program([tf.float64, tf.float64], [2.0, 1e-9], [1e10, 1e-3])
def square_root_of_float64():
    f, define = recursive("Newton", [tf.float64] * 3, [tf.float64])
    root, define_root = recursive("Root", [tf.float64] * 2, [tf.float64])

    @define
    def Newton(x, guess, tolerance):
        better = (guess + x / guess) / 2
        return tf.cond(tf.abs(better - guess) < tolerance, lambda: better, lambda: f(x, better, tolerance))

    define_root(lambda x, tolerance: f(x, x, tolerance))
    return root, lambda x, tolerance: np.sqrt(x)


@program([tf.int32, tf.float32], [0, 1.5], [10, 0.5], [3, -2.0])
def power_of_float32():
    f, define = recursive("PowerOf", [tf.int32, tf.float32], [tf.float32])

    @define
    def PowerOf(n, x):
        even = lambda: f(n // 2, x * x)
        return tf.cond(n < 1, lambda: 1.0, lambda: tf.cond(tf.equal(n % 2, 0), even, lambda: x * f(n - 1, x)))

    return f, lambda n, x: np.float32(x) ** n


@program([tf.int32, tf.complex64], [0, 1j], [5, 1 + 2j])
def complex_powers():
    f, define = recursive("ComplexPower", [tf.int32, tf.complex64], [tf.complex64])
    define(lambda n, z: tf.cond(n < 1, lambda: tf.ones_like(z), lambda: z * f(n - 1, z)))
    return f, lambda n, z: np.complex64(z) ** n


@program([tf.int32, tf.bool], [0, True], [3, True], [4, False])
def bools():
    f, define = recursive("Flip", [tf.int32, tf.bool], [tf.bool, tf.bool])

    @define
    def Flip(n, b):
        def deeper():
            x, y = f(n - 1, tf.logical_not(b))
            return tf.logical_or(x, y), tf.logical_and(x, tf.not_equal(y, b))

        return tf.cond(n < 1, lambda: (b, tf.logical_not(b)), deeper)

    def oracle(n, b):
        if n < 1:
            return b, not b
        x, y = oracle(n - 1, not b)
        return x or y, x and (y != b)

    return f, oracle


@program([tf.int32], [0], [5])
def strings():
    f, define = recursive("Word", [tf.int32], [tf.string])
    define(lambda n: tf.cond(n < 1, lambda: ".", lambda: tf.strings.join([f(n - 1), tf.as_string(n), f(n - 2)])))

    def oracle(n):
        return b"." if n < 1 else oracle(n - 1) + str(n).encode() + oracle(n - 2)

    return f, oracle
