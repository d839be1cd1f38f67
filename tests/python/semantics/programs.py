"""What a small program is: a function and its oracle in Python, and how their results are compared."""
# SPDX-License-Identifier: Apache-2.0

import collections

import numpy as np

# A name for each test, what builds the function and its oracle, its arguments' dtypes, and lists of arguments.
Program = collections.namedtuple("Program", "build types inputs")


def adding_to(programs):
    """A decorator that adds a function without arguments, which returns a TensorFlow function and its oracle."""

    def program(types, *inputs):
        def add(build):
            programs[build.__name__] = Program(build, types, inputs)
            return build

        return add

    return program


def check(actual, expected):
    if isinstance(expected, tuple):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            check(one, other)
    elif np.asarray(expected).dtype.kind in "fc":
        np.testing.assert_allclose(actual, expected, rtol=1e-5)
    else:
        np.testing.assert_array_equal(actual, expected)
