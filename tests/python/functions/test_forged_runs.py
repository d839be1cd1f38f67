"""`Recursion>Run` nodes that no pass has made: an error of the run, never the end of the process."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf

tf1 = tf.compat.v1


def inner_graph(build):
    """The nodes that `build` makes in a graph of their own; a float that it returns is what the graph returns."""
    with tf.Graph().as_default() as graph:
        result = build()
        result = tf.zeros([]) if result is None else result
        name = result.name
    inner = graph.as_graph_def()
    node = inner.node.add(name="retval", op="_Retval", input=[name.removesuffix(":0")])
    node.attr["T"].type = tf.float32.as_datatype_enum
    node.attr["index"].i = 0
    return inner


def forged(graph_def, name="forged"):
    """A Run of a graph in the default graph, which returns a float."""
    attrs = {"graph": tf1.AttrValue(s=graph_def.SerializeToString()), "Tin": tf1.AttrValue(), "Tout": tf1.AttrValue()}
    attrs["Tin"].list.SetInParent()
    attrs["Tout"].list.type.append(tf.float32.as_datatype_enum)
    return tf1.get_default_graph().create_op("Recursion>Run", [], [tf.float32], name=name, attrs=attrs).outputs[0]


def test_run_of_plain_graph_is_run():
    with tf1.Session() as session:
        assert session.run(forged(inner_graph(lambda: tf.constant(3.0)))) == 3


@pytest.mark.parametrize("name", ["forged", "other"])
@pytest.mark.parametrize("depth", [1, 3])
def test_run_inside_of_run_is_invalid_argument_error(name, depth):
    graph_def = inner_graph(lambda: tf.constant(3.0))
    for _ in range(depth):
        inside = graph_def
        graph_def = inner_graph(lambda inside=inside: forged(inside, name))
    y = forged(graph_def)
    with tf1.Session() as session:
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match=f"'{name}'.*inside of another"):
                session.run(y)


# Stateful nodes of one name, the one of the session and that of the forged graph.
STATES = {
    "another operator": (lambda: tf.queue.FIFOQueue(3, [tf.float32], name="s").queue_ref, lambda: draw([2])),
    "more inputs": (lambda: draw([2]), lambda: tf.raw_ops.RandomGamma(shape=[2], alpha=[1.0], name="s")),
    "fewer inputs": (lambda: tf.raw_ops.RandomGamma(shape=[2], alpha=[1.0], name="s"), lambda: draw([2])),
    "another type of output": (lambda: draw([2], tf.float64), lambda: draw([2])),
    "another type of input": (lambda: draw(tf.constant([2], tf.int64)), lambda: draw([2])),
    "no output": (lambda: tf.raw_ops.Print(input=1.0, data=[1.0], name="s"), lambda: draw([2])),
}


def draw(shape, dtype=tf.float32):
    return tf.raw_ops.RandomUniform(shape=shape, dtype=dtype, name="s")


@pytest.mark.parametrize("first, second", STATES.values(), ids=STATES)
def test_state_of_another_node_in_run_is_invalid_argument_error(first, second):
    x = first()
    y = forged(inner_graph(lambda: tf.reduce_sum(second())))
    with tf1.Session() as session:
        session.run(x)
        with pytest.raises(tf.errors.InvalidArgumentError, match="'s' .*another node of that name"):
            session.run(y)
        session.run(x)


def test_state_of_the_same_node_in_run_is_shared():
    tf1.set_random_seed(5)
    make = lambda: tf.raw_ops.RandomUniform(shape=tf.zeros([0], tf.int32), dtype=tf.float32, seed=3, seed2=4, name="s")
    x = make()
    y = forged(inner_graph(make))
    with tf1.Session() as session:
        numbers = [session.run(x), session.run(y), session.run(x)]
    with tf1.Session() as session:
        assert numbers == [session.run(x) for _ in range(3)]
