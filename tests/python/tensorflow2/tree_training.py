"""Trains a TreeRNN, in a process of its own, under the distribution strategy that its argument names; prints losses.

Each step takes two trees: on one device both at once, elsewhere one on each of two devices.
"""
# SPDX-License-Identifier: Apache-2.0

import json
import socket
import sys

import numpy as np
import tensorflow as tf

import tensorflow_recursion as tfr

UNITS, WORDS, STEPS, RATE = 4, 6, 4, 0.1
# The nodes of two trees, children first: ((a b) c) and (a (b (c d))).
TREES = [
    {"words": [1, 2, 0, 3, 0], "left": [0, 0, 0, 0, 2], "right": [0, 0, 1, 0, 3], "target": 1.0},
    {"words": [4, 5, 1, 3, 0, 0, 0], "left": [0, 0, 0, 0, 2, 1, 0], "right": [0, 0, 0, 0, 3, 4, 5], "target": -1.0},
]


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        numbers = np.random.default_rng(1)
        self.table = tf.Variable(numbers.normal(size=(WORDS, UNITS)).astype(np.float32))
        self.kernel = tf.Variable(numbers.normal(size=(2 * UNITS, UNITS)).astype(np.float32))
        self.readout = tf.Variable(numbers.normal(size=(UNITS, 1)).astype(np.float32))

    @tfr.recursive
    def state(self, i, words, left, right):
        if tf.gather(words, i) > 0:
            return tf.gather(tf.convert_to_tensor(self.table), tf.gather(words, [i]))
        children = [self.state(tf.gather(of, i), words, left, right) for of in (left, right)]
        return tf.tanh(tf.matmul(tf.concat(children, 1), self.kernel))

    def loss(self, tree):
        root = self.state(tf.size(tree["words"]) - 1, tree["words"], tree["left"], tree["right"])
        return tf.reduce_sum((tf.matmul(root, self.readout) - tree["target"]) ** 2)

    def slopes(self, trees):
        """The loss over some trees, and its gradients."""
        variables = self.trainable_variables
        with tf.GradientTape() as tape:
            loss = tf.add_n([self.loss(tree) for tree in trees])
        return loss, [tf.convert_to_tensor(slope) for slope in tape.gradient(loss, variables)]


class PassingNet(Net):
    """The same; calls are given the values of the variables, which may so be on several devices."""

    @tfr.recursive
    def passed(self, i, words, left, right, table, kernel):
        if tf.gather(words, i) > 0:
            return tf.gather(table, tf.gather(words, [i]))
        children = [self.passed(tf.gather(of, i), words, left, right, table, kernel) for of in (left, right)]
        return tf.tanh(tf.matmul(tf.concat(children, 1), kernel))

    def state(self, i, words, left, right):
        return self.passed(i, words, left, right, *map(tf.convert_to_tensor, (self.table, self.kernel)))


def constants():
    return [{name: tf.constant(value) for name, value in tree.items()} for tree in TREES]


def on_one_device():
    net = Net()

    @tf.function
    def step():
        loss, slopes = net.slopes(constants())
        for variable, slope in zip(net.trainable_variables, slopes, strict=True):
            variable.assign_sub(RATE * slope)
        return loss

    return [float(step()) for _ in range(STEPS)]


def mirrored():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        net = Net()

    def of_replica():
        replica = tf.distribute.get_replica_context()
        trees = constants()
        loss, slopes = tf.switch_case(
            replica.replica_id_in_sync_group, [lambda tree=tree: net.slopes([tree]) for tree in trees]
        )
        totals = replica.all_reduce(tf.distribute.ReduceOp.SUM, slopes)
        for variable, slope in zip(net.trainable_variables, totals, strict=True):
            variable.assign_sub(RATE * slope)
        return loss

    @tf.function
    def step():
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(of_replica), axis=None)

    return [float(step()) for _ in range(STEPS)]


class Layer(tf.keras.layers.Layer):
    """The root's state of each tree in a batch of rows."""

    def build(self, _):
        numbers = np.random.default_rng(1)
        tables = {"table": (WORDS, UNITS), "kernel": (2 * UNITS, UNITS)}
        for name, shape in tables.items():
            value = tf.constant_initializer(numbers.normal(size=shape))
            setattr(self, name, self.add_weight(name=name, shape=shape, initializer=value))

    state = Net.state

    def call(self, rows):
        spec = tf.TensorSpec([UNITS], tf.float32)
        return tf.map_fn(self._root, rows, fn_output_signature=spec)

    def _root(self, row):
        words, left, right = tf.unstack(tf.reshape(row, [3, -1]))
        return self.state(tf.size(words) - 1, words, left, right)[0]


def fitted():
    """The losses of Keras, over batches of two trees of equal size."""
    first = [1, 2, 0, 3, 0, 0, 0, 0, 0, 2, 0, 0, 1, 0, 3]
    second = [4, 5, 3, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 3]
    readout = tf.keras.layers.Dense(1, kernel_initializer=tf.keras.initializers.Ones())
    model = tf.keras.Sequential([tf.keras.Input([15], dtype=tf.int32), Layer(), readout])
    model.compile(tf.keras.optimizers.SGD(RATE), "mse", jit_compile=False)
    data = tf.data.Dataset.from_tensors(([first, second], [[1.0], [-1.0]]))
    return model.fit(data, epochs=STEPS, verbose=0).history["loss"]


def fitted_under_a_strategy():
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        return fitted()


def parameter_server():
    return by_parameter_servers(1, Net)


def parameter_servers():
    return by_parameter_servers(2, PassingNet)


def by_parameter_servers(count, make_net):
    """Two workers and some servers of parameters, all of them servers in this process."""
    cluster = tf.train.ClusterSpec({"worker": _addresses(2), "ps": _addresses(count)})
    config = tf.compat.v1.ConfigProto()
    servers = [
        tf.distribute.Server(cluster, job_name=job, task_index=i, config=config, protocol="grpc")
        for job in cluster.jobs
        for i in range(cluster.num_tasks(job))
    ]
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        net = make_net()

    @tf.function
    def slopes_of_first():
        return net.slopes(constants()[:1])

    @tf.function
    def slopes_of_second():
        return net.slopes(constants()[1:])

    losses = []
    for _ in range(STEPS):  # both workers see the same weights; then these change
        parts = [coordinator.schedule(part).fetch() for part in (slopes_of_first, slopes_of_second)]
        losses.append(float(sum(loss for loss, _ in parts)))
        for variable, *slopes in zip(net.trainable_variables, *(slopes for _, slopes in parts), strict=True):
            variable.assign_sub(RATE * sum(slopes))
    assert len(servers) == 2 + count
    assert len({variable.device for variable in net.trainable_variables}) == count
    return losses


def _addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    addresses = [f"localhost:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


WAYS = {
    "one": on_one_device,
    "mirrored": mirrored,
    "parameter_server": parameter_server,
    "parameter_servers": parameter_servers,
    "fit": fitted,
    "fit_mirrored": fitted_under_a_strategy,
}

if __name__ == "__main__":
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    tfr.config.set_options(on_fallback="error")
    print(json.dumps({"losses": WAYS[sys.argv[1]](), "calls": tfr.config.outermost_calls()}))
    sys.stdout.flush()
