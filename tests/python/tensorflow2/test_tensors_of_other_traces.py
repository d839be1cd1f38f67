"""A body that keeps tensors in Python from one trace to the next: the error names what holds them."""
# SPDX-License-Identifier: Apache-2.0

import types

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


class Best:
    def __init__(self):
        self.best = tf.constant(0.0)
        self.kept = {"last": [tf.constant(0.0)]}
        self.part = types.SimpleNamespace(sum=tf.constant(0.0))

    @tfr.recursive
    def branch(self, n):
        if n < 1:
            return tf.constant(1.0)
        self.best = self.branch(n - 1) + self.best
        return self.best

    @tfr.recursive
    def before(self, n):
        self.best = self.best + 1.0
        return self.best if n < 1 else self.before(n - 1) + self.best

    @tfr.recursive
    def dictionary(self, n):
        self.kept["last"][0] = self.kept["last"][0] + 1.0
        return self.kept["last"][0] if n < 1 else self.dictionary(n - 1)

    @tfr.recursive
    def part_of_it(self, n):
        self.part.sum = self.part.sum + 1.0
        return self.part.sum if n < 1 else self.part_of_it(n - 1)


class BestModule(tf.Module):
    def __init__(self):
        super().__init__()
        self.best = tf.constant(0.0)

    @tfr.recursive
    def __call__(self, n):
        self.best = self.best + 1.0
        return self.best if n < 1 else self(n - 1)


latest = tf.constant(0.0)


@tfr.recursive
def of_module(n):
    global latest
    latest = latest + 1.0
    return latest if n < 1 else of_module(n - 1)


def around():
    latest = tf.constant(0.0)

    @tfr.recursive
    def inner(n):
        nonlocal latest
        latest = latest + 1.0
        return latest if n < 1 else inner(n - 1)

    return inner


@pytest.mark.parametrize(
    ("make", "name", "holder"),
    [
        (lambda: Best().branch, "branch", "self.best"),
        (lambda: Best().before, "before", "self.best"),
        (lambda: Best().dictionary, "dictionary", r"self.kept\['last'\]\[0\]"),
        (lambda: Best().part_of_it, "part_of_it", "self.part.sum"),
        (BestModule, "call", "self.best"),
        (lambda: of_module, "of_module", "latest"),
        (around, "inner", "latest"),
    ],
    ids=["branch", "before", "dictionary", "part of it", "module", "global", "around"],
)
def test_error_names_what_holds_the_tensor(make, name, holder):
    function = make()
    with pytest.raises(ValueError, match=f"'{name}'.* captures a new tensor .* assigns to '{holder}', and reads it"):
        function(tf.constant(2))


def test_error_of_a_defun_names_what_holds_the_tensor():
    def body(n):
        kept[0] = n + kept[0]
        return tf.cond(n < 1, lambda: n, lambda: kept_sum(n - 1) + kept[0])

    with tf.Graph().as_default():
        kept = [tf.constant(1)]
        kept_sum = tfr.Declare("KeptSum", [("n", tf.int32)], [("ret", tf.int32)])
        defined = tfr.Defun(tf.int32, func_name="KeptSum", out_names=["ret"])(body)
        with pytest.raises(ValueError, match=r"'KeptSum'.* assigns to 'kept\[0\]', and reads it"):
            defined(2)
