"""Bodies that make variables or have custom gradients, run by two replicas of a strategy in a process of their own.

Prints, by the kind of variable and the place of the tf.function: what each replica returns at the first and at the
second call, and the gradients of the variable.
"""
# SPDX-License-Identifier: Apache-2.0

import json
import sys

import tensorflow as tf

import tensorflow_recursion as tfr


class Plain(tf.Module):
    """Makes a variable of a number."""

    @tfr.recursive
    def product(self, x, n):
        if not hasattr(self, "weight"):
            self.weight = tf.Variable(2.0)
        y = x * self.weight
        return y if n < 1 else self.product(x, n - 1) + y


class Random(tf.Module):
    """Makes two variables of random numbers, which replicas have to share."""

    @tfr.recursive
    def product(self, x, n):
        if not hasattr(self, "weight"):
            self.other = tf.Variable(lambda: tf.random.uniform([], 1.0, 2.0))
            self.weight = tf.Variable(tf.random.uniform([], 1.0, 2.0))
        y = x * self.weight + 0.0 * self.other
        return y if n < 1 else self.product(x, n - 1) + y


class Layer(tf.Module):
    """Calls a Keras layer that makes its weights at the first call."""

    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")

    @property
    def weight(self):
        return self.dense.kernel

    @tfr.recursive
    def product(self, x, n):
        y = tf.reshape(self.dense(tf.reshape(x, [1, 1])), [])
        return y if n < 1 else self.product(x, n - 1) + y


class Custom(tf.Module):
    """Has a custom gradient that reads the variable of the replica."""

    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(1.5)

    @tfr.recursive
    def product(self, x, n):
        @tf.custom_gradient
        def weighted(x):
            return x * self.weight, lambda dy, variables: (dy * self.weight, [dy * x for _ in variables])

        y = weighted(x)
        return y if n < 1 else self.product(x, n - 1) + y


class Recomputed(Custom):
    """Computes the body again for its gradient."""

    @tfr.recursive
    def product(self, x, n):
        y = tf.recompute_grad(lambda x: x * self.weight)(x)
        return y if n < 1 else self.product(x, n - 1) + y


def main() -> None:
    """Run all of them, and print what comes out."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    found = {}
    for module in (Plain, Random, Layer, Custom, Recomputed):
        for place in sys.argv[1:]:
            with strategy.scope():
                made = module()

            def step(made=made):
                replica = tf.distribute.get_replica_context().replica_id_in_sync_group
                x = 1.0 + tf.cast(replica, tf.float32)
                with tf.GradientTape() as tape:
                    y = made.product(x, tf.constant(2))
                return y, tf.reduce_sum(tape.gradient(y, made.weight))

            in_replica = tf.function(step) if place == "inside" else step
            run = tf.function(strategy.run) if place == "outside" else strategy.run
            calls = [[strategy.experimental_local_results(one) for one in run(in_replica)] for _ in range(2)]
            values = [[[float(value) for value in one] for one in call] for call in calls]
            found[f"{module.__name__} {place}"] = [float(tf.reduce_sum(made.weight)), *values]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
