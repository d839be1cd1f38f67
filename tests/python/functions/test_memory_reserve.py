"""Recursions whose tensors would take the last memory of the machine."""
# SPDX-License-Identifier: Apache-2.0

import processes
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

# Each level of f holds a megabyte. It may take some 400 of what is available when the process begins.
BEGIN = """
import os

def available():
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")) // 1024

os.environ["TENSORFLOW_RECURSION_MEMORY_RESERVE"] = str(max(available() - 400, 1))

import tensorflow as tf
import tensorflow_recursion as tfr

tf1 = tf.compat.v1
FLOATS = 262_144

def show(call):
    try:
        call()
    except tf.errors.ResourceExhaustedError as error:
        print(error.message)
"""

EAGER = """
@tfr.recursive(output_signature=tf.TensorSpec([FLOATS], tf.float32))
def f(x):
    return f(x + 1.0) * x

@tfr.recursive
def fib(n):
    return tf.cond(n < 2, lambda: n, lambda: fib(n - 1) + fib(n - 2))

x = tf.zeros([FLOATS])
"""

CALL = (
    EAGER
    + """
show(lambda: f(x))
print("fib", int(fib(tf.constant(20))))
"""
)

# The calls are opened by the counter alone, before there is any of the large tensors, of which all would take 4 GB.
AHEAD = (
    EAGER
    + """
@tfr.recursive
def ahead(x, n):
    return tf.cond(n < 1, lambda: x, lambda: ahead(x + 1.0, n - 1) * x)

show(lambda: ahead(tf.zeros([4 * FLOATS]), tf.constant(1_000)))
print("fib", int(fib(tf.constant(20))))
"""
)

# The error comes where the forward phase keeps what the gradient would read.
GRADIENT = (
    EAGER
    + """
def differentiate():
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    tape.gradient(y, x)

show(differentiate)
print("fib", int(fib(tf.constant(20))))
"""
)

SESSION = """
tf1.disable_eager_execution()
f = tfr.Declare("f", [("x", tf.float32)], [("y", tf.float32)])
fib = tfr.Declare("fib", [("n", tf.int32)], [("y", tf.int32)])

@tfr.Defun(tf.float32, func_name="f", out_names=["y"])
def f_body(x):
    return f(x + 1.0) + x

@tfr.Defun(tf.int32, func_name="fib", out_names=["y"])
def fib_body(n):
    return tf.cond(n < 2, lambda: n, lambda: fib(n - 1) + fib(n - 2))

y, z = f_body(tf.zeros([FLOATS])), fib_body(20)
with tf1.Session(config=tfr.session_config()) as session:
    show(lambda: session.run(y))
    print("fib", session.run(z))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("program", [CALL, GRADIENT, SESSION], ids=["eager", "gradient", "session"])
def test_endless_recursion_on_large_tensors_is_an_error(program):
    done = processes.run_python("-c", BEGIN + program)
    assert done.returncode == 0, done.stderr
    for text in (
        "Recursion too deep for the memory: call of 'f",
        "would be at depth ",
        ", but the machine has ",
        "take a smaller batch",
        "TENSORFLOW_RECURSION_MEMORY_RESERVE",
        "fib 6765",
    ):
        assert text in done.stdout, done.stderr


@pytest.mark.thorough
def test_recursion_whose_calls_are_open_before_their_tensors_are_there_is_an_error():
    done = processes.run_python("-c", BEGIN + AHEAD)
    assert done.returncode == 0, done.stderr
    for text in ("all calls of 'ahead' are open, but the machine has ", "take a smaller batch", "_RESERVE", "fib 6765"):
        assert text in done.stdout, done.stderr


@pytest.mark.thorough
def test_recursion_is_not_watched_without_a_reserve(monkeypatch):
    """It has a result, however little is available."""
    monkeypatch.setenv("TENSORFLOW_RECURSION_MEMORY_RESERVE", "0")
    program = """
import tensorflow as tf
import tensorflow_recursion as tfr

@tfr.recursive
def total(n, x):
    return tf.cond(n < 1, lambda: x, lambda: total(n - 1, x + 1.0) + x)

print(float(total(tf.constant(100), tf.zeros([100_000]))[0]))
"""
    done = processes.run_python("-c", program)
    assert done.stdout == "5050.0\n", done.stderr


def test_reserve_that_is_no_number_is_refused(monkeypatch, fib):
    monkeypatch.setenv("TENSORFLOW_RECURSION_MEMORY_RESERVE", "much")
    y = fib(tf.constant(10))
    with tf1.Session(config=tfr.session_config()) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="_RESERVE is 'much', expected a number of MiB, or 0"):
            session.run(y)
