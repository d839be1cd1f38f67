"""A fault of stock TensorFlow that random programs meet: an optimizer loses a value, in graphs without recursion, too.

Where control flow is v1, this conditional has no value if `p` is true:

    tf.cond(p, lambda: x + x, lambda: x)

The arithmetic optimizer writes `x + x` as `2 * x`. The constant 2 has to wait for `x` on the side where `p` is true,
which is output 1 of a Switch. But the optimizer forgets which output it is, and lets the constant wait for output 0,
which has a value only if `p` is false. Where control flow is v2, the same befalls `(x + 0) + x`: a `tf.function` that
returns it from a conditional returns an empty array, without an error.
"""
# SPDX-License-Identifier: Apache-2.0

import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2

tf1 = tf.compat.v1

# How a session says that a function's result, or the graph's, has no value.
MESSAGES = (" got no value", "does not have value")


def is_lost(error):
    return any(message in str(error) for message in MESSAGES)


def without_optimizer(config):
    """The same configuration without the optimizer that loses values."""
    result = tf1.ConfigProto()
    result.CopyFrom(config)
    result.graph_options.rewrite_options.arithmetic_optimization = rewriter_config_pb2.RewriterConfig.OFF
    return result


def run_in_session(graph, config, run):
    """What `run` returns for a session; where a value is lost, what it returns without the optimizer that loses values.

    A value that this project loses is lost without that optimizer as well, and is an error.
    """
    try:
        with tf1.Session(graph=graph, config=config) as session:
            return run(session)
    except tf.errors.InvalidArgumentError as error:
        if not is_lost(error):
            raise
    with tf1.Session(graph=graph, config=without_optimizer(config)) as session:
        return run(session)
