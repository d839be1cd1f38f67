"""The shortest whole program for TensorFlow 2: a recursive function, called eagerly and from a tf.function."""
# SPDX-License-Identifier: Apache-2.0

import tensorflow as tf

import tensorflow_recursion as tfr


@tfr.recursive
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@tf.function
def differences(n):
    """fib(i + 1) - fib(i) of each i below n."""
    return tf.map_fn(lambda i: fib(i + 1) - fib(i), tf.range(n))


if __name__ == "__main__":
    print(fib(tf.constant(20)).numpy())  # 6765
    print(differences(tf.constant(10)).numpy())  # [ 1  0  1  1  2  3  5  8 13 21]
