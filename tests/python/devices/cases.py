"""What a case is: a program over two devices and its values; and what runs it."""
# SPDX-License-Identifier: Apache-2.0

import collections

import distribution_helpers as distribution
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1

# What adds a program to the graph with operators on devices a and b (none, if these are empty), and returns its
# fetches; and their values.
Case = collections.namedtuple("Case", "build expected")


def adding_to(cases):
    """A decorator that adds what builds a program with these values."""

    def case(*expected):
        def add(build):
            cases[build.__name__] = Case(build, expected)
            return build

        return add

    return case


def fed(value, dtype=None):
    """A value that no optimizer knows."""
    value = np.asarray(value, dtype)
    return tf1.placeholder_with_default(value.astype(np.int32) if value.dtype == np.int64 else value, value.shape)


def run_in(place, devices, build, **options):
    """Builds a graph over the devices and runs it twice in a session of the place; returns the second run's values."""
    return trace_in(place, devices, build, **options)[0]


def trace_in(place, devices, build, **options):
    """Do what `run_in` does; returns the first run's RunMetadata too."""
    with tf.Graph().as_default():
        fetches = build(*devices)
        with place.session(**options) as session:
            session.run(tf1.global_variables_initializer(), options=distribution.TIMEOUT)
            _, metadata = distribution.run_traced(session, fetches)
            return session.run(fetches, options=distribution.TIMEOUT), metadata


def same_bits(one, other):
    one, other = np.asarray(one), np.asarray(other)
    if one.dtype == object:
        return one.shape == other.shape and (one == other).all()
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def switched(x, p):
    """x where p is false and where it is true; the other is dead."""
    return tf.raw_ops.Switch(data=x, pred=p)


def live_or(x, otherwise, p):
    """x, which is dead if p, or the other value then."""
    return tf.raw_ops.Merge(inputs=[x, switched(otherwise, p)[1]])[0]
