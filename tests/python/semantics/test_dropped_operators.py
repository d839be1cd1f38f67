"""Each of our operators is taken out of transformed graphs: the run is an error, or nothing has changed."""
# SPDX-License-Identifier: Apache-2.0

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import processes
import pytest
import tensorflow as tf
from building import recursive

import tensorflow_recursion as tfr

tf1, raw = tf.compat.v1, tf.raw_ops
F32, I32, LIST = tf.float32, tf.int32, tf.variant
RESULT = "y"
MILLISECONDS = 60_000  # ends what hangs

# --- Graphs, each of which uses another part of the executor ------------------------------------------------------


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


# --- Running them -------------------------------------------------------------------------------------------------


def run(graph_def, initializers):
    """The result, or the error that refuses the graph."""
    options = tf1.RunOptions(timeout_in_ms=MILLISECONDS)
    with tf.Graph().as_default() as graph:
        try:
            tf1.import_graph_def(graph_def, name="")
        except ValueError as error:
            return error
        with tf1.Session(config=tfr.session_config(workers=2), graph=graph) as session:
            try:
                session.run(initializers, options=options)
                return session.run(f"{RESULT}:0", options=options)
            except tf.errors.InvalidArgumentError as error:
                return error


def without(graph_def, name):
    """The graph without the node `name`; nodes that read it have an input less."""
    result = tf1.GraphDef(versions=graph_def.versions, library=graph_def.library)
    for node in graph_def.node:
        if node.name != name:
            kept = result.node.add()
            kept.CopyFrom(node)
            del kept.input[:]
            kept.input.extend(one for one in node.input if one.lstrip("^").split(":")[0] != name)
    return result


def main(name):
    tf1.disable_eager_execution()
    tf1.enable_control_flow_v2()
    graph_def, initializers = transformed(name)
    want = run(graph_def, initializers)
    for node in graph_def.node:
        if node.op.startswith("Recursion>"):
            print(node.op, node.name, end=" ", flush=True)
            got = run(without(graph_def, node.name), initializers)
            if isinstance(got, Exception):
                print("error", flush=True)
            else:
                print("same" if np.array_equal(got, want) else f"{got} instead of {want}", flush=True)


@pytest.mark.parametrize("name", GRAPHS)
def test_graph_without_one_of_our_operators_is_refused_or_the_same(name):
    result = processes.run_python(__file__, name, seconds=600)
    outcomes = [line.split(maxsplit=2) for line in result.stdout.splitlines() if line.startswith("Recursion>")]
    assert result.returncode == 0, (result.returncode, outcomes[-1:], result.stderr[-2000:])
    wrong = [" ".join(outcome) for outcome in outcomes if outcome[-1] not in ("error", "same")]
    assert not wrong
    # A body's operators find their frame without its start; each other operator is needed.
    assert {op for op, _, end in outcomes if end == "same"} <= {"Recursion>FrameStart"}
    assert len(outcomes) > 8


if __name__ == "__main__":
    main(sys.argv[1])
