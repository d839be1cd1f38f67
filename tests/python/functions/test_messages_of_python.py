"""Python, and NumPy, where a body needs TensorFlow's operators: the error says function, line, and what to write."""
# SPDX-License-Identifier: Apache-2.0

import inspect
import re

import numpy as np
import pytest
import tensorflow as tf
from building import recursive

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

I32, F32 = tf.int32, tf.float32

CUT = r"lists and texts are cut at numbers.*tf\.strings\.substr"
SHAPE = r"x\.shape stands where .* tf\.shape\(x\).*Defun\(tf\.TensorSpec"
TEXT = r"cannot write a tensor into a text as a number.*tf\.strings\.as_string"

OF_NUMBERS = {
    "text by %": (lambda n: tf.constant("%d" % n), TEXT),
    "text by f": (lambda n: tf.constant(f"{n:d}"), TEXT),
    "shift to the left": (lambda n: n << 1, r"tf\.bitwise\.left_shift"),
    "shift to the right": (lambda n: 8 >> n, r"tf\.bitwise\.left_shift.*right_shift"),
    "part of a list": (lambda n: tf.stack([1, 2, 3][:n]), CUT),
    "part of a text": (lambda n: tf.constant("abc"[n:]), CUT),
    "in a tensor": (lambda n: tf.constant(3 in n), r"tf\.reduce_any\(x == 3\)"),
    "array of a length": (lambda n: tf.constant(np.zeros(n)), "Python takes a number here.* tf.range"),
    "bytes of a length": (lambda n: tf.constant(bytes(n)), "Python takes a number here.* tf.range"),
    "array of tensors": (lambda n: tf.constant(np.stack([n, n])), r"no value before the graph runs.*tf\.py_function"),
    "gradient of an integer": (lambda n: n + tf.gradients(2 * n, n)[0], r"None stands .*unconnected_gradients"),
    "shape of zeros": (lambda n: tf.zeros(n.shape), SHAPE),
    "shape to reshape to": (lambda n: tf.reshape(n, n.shape), SHAPE),
}
OF_TEXTS = {
    "startswith": (lambda s: s.startswith("a"), r"has no 'startswith'.*tf\.strings\.regex_full_match"),
    "lower": (lambda s: s.lower(), r"has no 'lower'.*tf\.strings\.lower"),
    "part": (lambda s: tf.ensure_shape(s, [])[1:], r"no parts.* tf\.strings\.substr\(text, i, 1\)"),
    "in a text": (lambda s: tf.constant("a" in s), r"`in`.*tf\.strings\.regex_full_match"),
}
# The error is of the kind that Python's or TensorFlow's own is: where nothing else is said, a TypeError.
KINDS = {
    "array of tensors": NotImplementedError,
    "gradient of an integer": ValueError,
    "shape of zeros": ValueError,
    "shape to reshape to": ValueError,
    "startswith": AttributeError,
    "lower": AttributeError,
    "part": ValueError,
}


@pytest.mark.parametrize("mistake", [*OF_NUMBERS, *OF_TEXTS])
@pytest.mark.parametrize("in_branch", [False, True], ids=["in the body", "in a branch"])
def test_python_where_operators_are_needed_says_function_line_and_remedy(control_flow, mistake, in_branch):
    dtype = tf.string if mistake in OF_TEXTS else I32
    body, says = (OF_TEXTS if mistake in OF_TEXTS else OF_NUMBERS)[mistake]
    call, define = recursive("F", [dtype], [dtype], [[]])
    define((lambda x: tf.cond(tf.size(x) < 1, lambda: call(x), lambda: body(x))) if in_branch else body)
    with pytest.raises(KINDS.get(mistake, TypeError)) as caught:
        call("abc" if dtype == tf.string else 1)
    line = inspect.getsourcelines(body)[1]
    assert re.match(rf"Function 'F' \(test_messages_of_python.py, line {line}\): .*{says}", str(caught.value))


# --- Comparisons in graphs without eager execution ----------------------------------------------------------------


BY_EQUALITY = {
    "cond": lambda n, call: tf.cond(n == 0, lambda: n, lambda: call(n - 1)),
    "cond of !=": lambda n, call: tf.cond(n != 0, lambda: call(n - 1), lambda: n),
    "case": lambda n, call: tf.case([(n == 0, lambda: n)], default=lambda: call(n - 1)),
}


@pytest.mark.parametrize("what", BY_EQUALITY)
def test_condition_that_compares_objects_says_what_to_write(control_flow, what):
    call, define = recursive("F", [I32], [I32], [[]])
    define(lambda n: BY_EQUALITY[what](n, call))
    with pytest.raises(TypeError, match=r"^Function 'F' \(test_messages_of_python.py, line \d+\): .*tf\.equal\(n, 0\)"):
        call(3)


def by_equality(n, call):
    return n if n == 0 else call(n - 1)


def without_condition(n, call):
    return call(n - 1) + 1


def in_branch(n, call):
    return tf.cond(n < 0, lambda: call(n - 1), lambda: call(n + 1))


def in_loop(n, call):
    return tf.while_loop(lambda i: i < n, lambda i: i + 1 + 0 * call(n), [0])[0]


def define_endless(body):
    """A call of F(3), which goes too deep."""
    call, define = recursive("F", [I32], [I32], [[]])
    define(lambda n: body(n, call))
    return call(3)


def error_of_depth(y):
    """What the error of a call says that goes too deep, without the lines of Python that it shows."""
    with tf1.Session(config=tfr.session_config(max_depth=50)) as session:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="would be at depth 51") as caught:
            session.run(y)
    return caught.value.message.partition("Detected at node")[0]


ENDLESS = r"Function 'F' calls itself under no condition, .* in a branch of a tf\.cond"


def test_recursion_that_was_to_end_where_objects_are_equal_says_what_to_write(control_flow):
    assert re.search(ENDLESS + r".*tf\.equal\(n, 0\)", error_of_depth(define_endless(by_equality)))


@pytest.mark.parametrize("is_eager", [False, True])
def test_recursion_without_condition_says_that_it_has_none(monkeypatch, control_flow, is_eager):
    """In a program with eager execution `==` compares tensors, and is not to blame."""
    y = define_endless(without_condition)
    monkeypatch.setattr(tf1, "executing_eagerly_outside_functions", lambda: is_eager)
    message = error_of_depth(y)
    assert re.search(ENDLESS, message) and ("tf.equal" in message) != is_eager


@pytest.mark.parametrize("body", [in_branch, in_loop])
def test_recursion_with_a_condition_that_is_never_false_says_its_depth_alone(control_flow, body):
    assert "under no condition" not in error_of_depth(define_endless(body))


def test_recursion_that_another_function_ends_says_its_depth_alone(control_flow):
    """The call that is too deep is under no condition, but the one that led to it is."""
    outer, define_outer = recursive("Outer", [I32], [I32], [[]])
    inner, define_inner = recursive("Inner", [I32], [I32], [[]])
    define_outer(lambda n: tf.cond(n < 0, lambda: n, lambda: inner(n + 1)))
    define_inner(lambda n: outer(n) + 1)
    assert "under no condition" not in error_of_depth(outer(3))
