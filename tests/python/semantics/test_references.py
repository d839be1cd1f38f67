"""tf1 variables that are references: what reads them sees what they hold, or that they hold nothing yet."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from modes import SESSIONS

tf1 = tf.compat.v1


def reference(shape=(), dtype=tf.float32, value=2):
    return tf1.get_variable("v", shape, dtype, tf1.constant_initializer(value), use_resource=False)


def handed_down(dtype):
    """Returns its second argument from some calls below."""
    f, define = recursive("Down", [tf.int32, dtype], [dtype])
    define(lambda n, x: tf.cond(n < 1, lambda: x, lambda: f(n - 1, x)))
    return f


def captured(v):
    f, define = recursive("Captured", [tf.int32], [v.dtype.base_dtype])
    define(lambda n: tf.cond(n < 1, lambda: tf.identity(v), lambda: f(n - 1)))
    return f(2)


def repeated(start, step):
    return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, step(x)), [0, start])[1]


# What reads a variable: given it, the reference itself, and a predicate that holds.
READERS = {
    "fetch": lambda v, ref, yes: v,
    "fetch of the reference": lambda v, ref, yes: ref,
    "identity": lambda v, ref, yes: tf.identity(v),
    "identities": lambda v, ref, yes: tf.identity_n([ref, ref])[1],
    "read_value": lambda v, ref, yes: v.read_value(),
    "arithmetic": lambda v, ref, yes: v + 1.0,
    "arithmetic of the reference": lambda v, ref, yes: ref + 1.0,
    "gather": lambda v, ref, yes: tf.gather(tf.reshape(ref, [-1]), 0),
    "argument": lambda v, ref, yes: handed_down(tf.float32)(2, v),
    "reference as argument": lambda v, ref, yes: handed_down(tf.float32)(2, ref),
    "capture": lambda v, ref, yes: captured(v),
    "branch": lambda v, ref, yes: tf.cond(yes, lambda: tf.identity(v), lambda: 0.0 * v),
    "switch": lambda v, ref, yes: tf.raw_ops.Switch(data=ref, pred=yes)[1],
    "read in loop": lambda v, ref, yes: repeated(tf.zeros(v.shape), lambda x: x + v),
    "variable of a loop": lambda v, ref, yes: repeated(ref, lambda x: x),
    "stack": lambda v, ref, yes: tf.stack([v, v]),
}


def beside_call(readers):
    """What reads a variable, and a call, which makes the run static where that is wanted."""
    f, define = recursive("Count", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: f(n - 1) + 1))
    call = f(3)
    return [reader(tf.equal(call, 3)) for reader in readers], call


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(), (2,)])
@pytest.mark.parametrize("name", READERS)
def test_reading_a_variable_is_error_when_it_has_no_value(session_config, control_flow, name, shape):
    v = reference(shape)
    [x], call = beside_call([lambda yes: READERS[name](v, v._ref(), yes)])
    with tf1.Session(config=session_config) as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value"):
            session.run([x, call])
        session.run(v.initializer)
        assert np.all(np.isfinite(session.run([x, call])[0]))


@pytest.mark.parametrize("dtype", [tf.int32, tf.bool, tf.string, tf.complex64])
def test_reading_a_variable_is_error_when_it_has_no_value_of_any_dtype(session_config, dtype):
    v = tf1.get_variable("v", [], dtype, initializer=tf1.zeros_initializer(), use_resource=False)
    y = handed_down(dtype)(2, v._ref())
    with tf1.Session(config=session_config) as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value"):
            session.run(y)
        session.run(v.initializer)
        session.run(y)


@pytest.mark.parametrize("pass_on", [lambda v: v._ref(), lambda v: v.read_value()])
def test_variable_is_read_after_its_first_assignment_when_that_is_waited_for(session_config, control_flow, pass_on):
    v = reference()
    f = handed_down(tf.float32)
    with tf.control_dependencies([v.initializer]):
        y = f(2, pass_on(v))
    initialized = tf1.is_variable_initialized(v)
    with tf1.Session(config=session_config) as session:
        assert not session.run([initialized, f(0, 1.0)])[0]
        assert session.run(y) == 2


def after_initializer(v):
    """The reference, for whoever waits for the first assignment."""
    with tf.control_dependencies([v.initializer]):
        return tf.raw_ops.RefIdentity(input=v._ref())


# What assigns a variable its first value on the way to what is returned.
INITIALIZING = {
    "group": lambda v: tf.group(v.initializer, tf.constant(1).op),
    "reference": after_initializer,
    "tuple": lambda v: tf.tuple([after_initializer(v) + 1.0, tf.constant(2.0)])[1],
    "slices": lambda v: tf.IndexedSlices(after_initializer(v), tf.constant([0, 1])),
    "slices of a tuple": lambda v: tf.tuple(
        [tf.IndexedSlices(after_initializer(v), tf.constant([0, 1])), tf.constant(2.0)]
    )[1],
    "argument": lambda v: handed_down(tf.float32)(2, after_initializer(v)),
}


@pytest.mark.parametrize("name", INITIALIZING)
def test_variable_has_a_value_when_what_initializes_it_was_fetched(session_config, control_flow, name):
    v = reference([2])
    result = INITIALIZING[name](v)
    _, call = beside_call([])
    with tf1.Session(config=session_config) as session:
        for _ in range(2):
            with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value"):
                session.run([call, v])
        session.run([result, call])
        assert session.run([v, call])[0].tolist() == [2, 2]


# --- What is read shares the variable's memory on its device, as in stock TensorFlow --------------------------------


ON_ONE_DEVICE = pytest.mark.parametrize("mode", ["dynamic", "static1", "static4"], indirect=True)


@ON_ONE_DEVICE
@pytest.mark.parametrize("shape", [(), (1,)])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.int32, tf.int64])
def test_what_was_read_is_the_new_value_when_the_variable_is_assigned(run, control_flow, dtype, shape):
    v = reference(shape, dtype)
    one = tf.ones([], dtype)
    with tf.control_dependencies([tf1.assign(v, v * v)]):
        readers = [v + one, tf.reshape(v, [-1])[0] + one, tf.identity(v) + one, tf.identity(v._ref()) + one]
        readers.append(handed_down(dtype)(2, v) + one)
    _, call = beside_call([])
    values = run([*readers, call])[:-1]
    assert [np.ravel(value).tolist() for value in values] == [[5]] * len(readers)


@ON_ONE_DEVICE
@pytest.mark.parametrize("shape", [(), (2,)])
def test_what_was_copied_is_the_old_value_when_the_variable_is_assigned(run, control_flow, shape):
    """TensorFlow's optimizers make a Snapshot of each of these."""
    v = reference(shape)
    f, define = recursive("Down", [tf.int32, tf.float32], [tf.float32])
    define(lambda n, x: tf.cond(n < 1, lambda: x * 1.0, lambda: f(n - 1, x)))
    copies = [v + 0.0, v * 1.0, v / 1.0, tf.reshape(v, [-1, 1]) - 0.0, f(2, v)]
    _, call = beside_call([])
    with tf.control_dependencies([*copies, call]):
        assigned = tf1.assign(v, v + 5.0)
    *before, after = run([*copies, assigned])
    assert [set(np.ravel(value).tolist()) for value in before] == [{2}] * len(copies)
    assert set(np.ravel(after).tolist()) == {7}


@ON_ONE_DEVICE
@pytest.mark.parametrize("control_flow", ["v1"], indirect=True)  # a While takes no references
def test_loop_reads_what_it_assigned_when_the_variable_was_read_before_it(run, control_flow):
    """The value is read once, before the loop, and squared in it: 2, 4, 16, 256, 65536."""
    v = reference()

    def step(i):
        with tf.control_dependencies([tf1.assign(v, tf.square(v))]):
            return i + 1

    with tf.control_dependencies([tf1.while_loop(lambda i: i < 4, step, [tf.constant(0)], parallel_iterations=1)]):
        after = tf.identity(v)
    _, call = beside_call([])
    assert run([after, call])[0] == 65536


def counted(start, step):
    return tf.while_loop(lambda i, x: i < 4, lambda i, x: [i + 1, step(x)], [0, start], parallel_iterations=1)[1]


# Loops with a variable that is a reference where the loop starts, goes on, or both. v is 2 before them.
OF_REFERENCES = {
    "goes on with an assignment": (lambda v: counted(tf.identity(v), lambda x: tf1.assign(v, x + 1.0)), 6),
    "goes on with what a branch assigned": (
        lambda v: counted(tf.identity(v), lambda x: tf.cond(x < 4.0, lambda: tf1.assign(v, x * 2.0), lambda: x + 1.0)),
        7,
    ),
    "goes on with a sum": (lambda v: counted(0.0, lambda x: tf1.assign_add(v, x + 1.0)), 31),
    "starts and goes on with an assignment": (
        lambda v: counted(tf1.assign(v, 3.0), lambda x: tf1.assign(v, x + 1.0)),
        7,
    ),
    "starts with the variable": (lambda v: counted(v._ref(), lambda x: tf1.assign(v, x * 2.0)), 32),
}


@ON_ONE_DEVICE  # elsewhere TensorFlow places what takes the reference apart from what makes it, an error without calls
@pytest.mark.parametrize("control_flow", ["v1"], indirect=True)
@pytest.mark.parametrize("loop", OF_REFERENCES)
def test_loop_goes_on_with_references(run, control_flow, loop):
    make, expected = OF_REFERENCES[loop]
    result = make(reference())
    _, call = beside_call([])
    assert run([result, call])[0] == expected


@pytest.mark.parametrize("mode", SESSIONS, indirect=True)  # functions have no references
def test_predicate_is_read_when_it_is_a_variable(run, control_flow):
    v = tf1.get_variable("v", [], tf.bool, tf1.ones_initializer(), use_resource=False)
    f, define = recursive("Chosen", [tf.int32, tf.bool], [tf.int32])
    define(lambda n, p: tf.cond(p, lambda: tf.cond(n < 1, lambda: 1, lambda: 1 + f(n - 1, p)), lambda: -1))
    assert run([f(3, v._ref()), tf.cond(v, lambda: 7, lambda: 8)]) == [4, 7]
