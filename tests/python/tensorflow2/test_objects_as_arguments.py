"""A recursion that makes an object for each call: the error says where it is, and what to write in its place."""
# SPDX-License-Identifier: Apache-2.0

import dataclasses

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion.argument_kinds import endless


@dataclasses.dataclass(eq=False)
class ByIdentity:
    value: tf.Tensor


class Plain:
    def __init__(self, value):
        self.value = value


@dataclasses.dataclass
class Around:
    inner: object
    factor: tf.Tensor


@pytest.mark.parametrize("kind", [ByIdentity, Plain])
@pytest.mark.parametrize(
    ("around", "path"),
    [
        (lambda one: one, "state"),
        (lambda one: [tf.constant(1), one], r"state\[1\]"),
        (lambda one: {"a": (one, 2)}, r"state\['a'\]\[0\]"),
        (lambda one: Around(one, tf.constant(1.0)), "state.inner"),
    ],
    ids=["itself", "list", "dictionary", "dataclass"],
)
def test_objects_that_each_call_makes_are_an_error_that_says_where_they_are(kind, around, path, monkeypatch):
    monkeypatch.setattr(endless, "_MAX_UNROLLED", 4)

    @tfr.recursive
    def moved(n, state):
        return tf.constant(1.0) if n < 1 else moved(n - 1, around(kind(n)))

    message = rf"'{path}' is (another|.*, and was) .*make '{kind.__name__}' a nest of tensors"
    with pytest.raises(TypeError, match=message):
        moved(tf.constant(2), around(kind(tf.constant(2))))
