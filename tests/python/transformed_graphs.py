"""Transformed graphs, each of which uses another part of the executor, for tests that damage graphs."""
# SPDX-License-Identifier: Apache-2.0

import tensorflow as tf
from building import recursive

import tensorflow_recursion as tfr

tf1, raw = tf.compat.v1, tf.raw_ops
F32, I32, LIST = tf.float32, tf.int32, tf.variant
RESULT = "y"  # the node whose output is fetched


def make_numbers(n):
    """Compiled to bytecode."""
    f, define = recursive("F", [I32, I32], [I32])
    define(lambda n, t: tf.cond(n < 1, lambda: t, lambda: f(n - 1, t) + t * n))
    return f(n, 2)


def make_elements(n):
    """Bytecode that reads elements of a vector."""
    f, define = recursive("F", [I32, I32], [I32])

    @define
    def F(n, vector):
        vector.set_shape([4])
        return tf.cond(n < 1, lambda: 0, lambda: f(n - 1, vector) + vector[n])

    return f(n, tf.constant([1, 2, 3, 4]))


def make_gradient(n):
    f, define = recursive("F", [I32, F32], [F32])
    define(lambda n, x: tf.cond(n < 1, lambda: x, lambda: f(n - 1, x) * x))
    x = tf1.placeholder_with_default(2.0, [])
    y = f(n, x)
    return y + tf.gradients(y, x)[0]


def make_net(n):
    """Kernels of our own, weights, and contributions to their gradients."""
    weights = tf1.get_variable("weights", initializer=tf.fill([4, 4], 0.1), use_resource=True)
    bias = tf1.get_variable("bias", initializer=tf.ones([4]), use_resource=True)
    f, define = recursive("F", [I32, F32], [F32])

    @define
    def F(n, x):
        x.set_shape([1, 4])
        layer = lambda x: tf.tanh(tf.nn.bias_add(tf.matmul(x, weights), bias))
        return tf.cond(n < 1, lambda: x, lambda: layer(f(n - 1, x) + f(n - 1, x + 1.0)))

    x = tf1.placeholder_with_default(tf.ones([1, 4]), [1, 4])
    y = tf.reduce_sum(f(n, x))
    return y + sum(tf.reduce_sum(gradient) for gradient in tf.gradients(y, [x, weights, bias]))


def make_lists(n):
    f, define = recursive("F", [I32, LIST, I32], [LIST])
    added = lambda a, i: raw.TensorListPushBack(input_handle=a, tensor=i)
    define(lambda n, a, i: tf.cond(n < 1, lambda: a, lambda: f(n - 1, added(a, n * i), i + 1)))
    scalar = tf.constant([], I32)
    empty = raw.EmptyTensorList(element_shape=scalar, max_num_elements=-1, element_dtype=I32)
    return tf.reduce_sum(raw.TensorListStack(input_handle=f(n, empty, 1), element_shape=scalar, element_dtype=I32))


GRAPHS = {
    "numbers": make_numbers,
    "elements": make_elements,
    "gradient": make_gradient,
    "net": make_net,
    "lists": make_lists,
}


def transformed(name):
    """The transformed graph, and what initializes its variables."""
    with tf.Graph().as_default() as graph:
        tf.identity(GRAPHS[name](tf1.placeholder_with_default(3, [])), name=RESULT)
        initializers = [op.name for op in graph.get_operations() if op.type == "AssignVariableOp"]
        return tfr.transform_graph(graph, [RESULT, *initializers]), initializers


def run(graph_def, initializers, config, milliseconds):
    """Returns the result of a graph, which runs in a session of its own after its initializers.

    Whatever refuses the graph, the import or a run, raises.
    """
    options = tf1.RunOptions(timeout_in_ms=milliseconds)
    with tf.Graph().as_default() as graph:
        tf1.import_graph_def(graph_def, name="")
        with tf1.Session(config=config, graph=graph) as session:
            session.run(initializers, options=options)
            return session.run(f"{RESULT}:0", options=options)
