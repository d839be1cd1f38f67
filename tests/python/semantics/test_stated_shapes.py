"""What `output_shapes` states is checked: when a body is traced as far as that tells, else when it runs."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from modes import everywhere

tf1 = tf.compat.v1


def handed_down(dtype, shape, define_with_shapes=False):
    """Returns its second argument from some calls below; the declaration states `shape`, or the definition does."""
    options = {"output_shapes": [shape]} if define_with_shapes else {}
    f, define = recursive("Down", [tf.int32, dtype], [dtype], shapes=None if define_with_shapes else [shape], **options)
    return define(lambda n, x: tf.cond(n < 1, lambda: x, lambda: f(n - 1, x)))


# What is stated, and shapes of values: which are as stated, and which are not.
STATED = [
    ([3], [(3,)], [(1,), (), (4,), (3, 1)]),
    ([], [()], [(1,), (0,), (1, 1)]),
    ([None], [(1,), (0,)], [(), (1, 1)]),
    ([None, 2], [(1, 2), (0, 2)], [(2,), (2, 1), ()]),
    (None, [(), (3,), (1, 2)], []),
]


@pytest.mark.each_value
@everywhere
@pytest.mark.parametrize("dtype", [tf.float32, tf.int32, tf.bool, tf.string, tf.complex64])
@pytest.mark.parametrize("shape, right, wrong", STATED)
def test_result_of_another_shape_than_stated_is_error(run, dtype, shape, right, wrong):
    down = handed_down(dtype, shape)
    y = run.function(lambda x: down(2, x), [dtype])
    array = lambda shape: np.full(shape, b"a" if dtype == tf.string else 1, dtype.as_numpy_dtype)
    for fed in right:
        assert np.shape(y(array(fed))) == fed
    for fed in wrong:
        with pytest.raises(tf.errors.InvalidArgumentError, match="Down/output_shapes_0|'Down'|in call.* Down"):
            y(array(fed))
    for fed in right:
        assert np.shape(y(array(fed))) == fed


def test_result_of_another_shape_than_the_definition_states_is_error(run, control_flow):
    x = tf1.placeholder(tf.float32, None)
    y = handed_down(tf.float32, [3], define_with_shapes=True)(2, x)
    assert y.shape == [3]
    assert run(y, {x: [1, 2, 3]}).tolist() == [1, 2, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Down"):
        run(y, {x: [1]})


@everywhere
def test_only_the_output_that_is_not_as_stated_is_named(run, control_flow):
    f, define = recursive("Pair", [tf.int32, tf.float32], [tf.float32, tf.float32], shapes=[None, [2]])
    define(lambda n, x: tf.cond(n < 1, lambda: (x, x), lambda: f(n - 1, x)))
    y = run.function(lambda x: f(1, x), [tf.float32])
    assert [value.tolist() for value in y([1, 2])] == [[1, 2], [1, 2]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Pair/output_shapes_1|output_shapes_1"):
        y(1)


@pytest.mark.sampled(2)
def test_gradient_is_right_when_shapes_are_checked(run, control_flow):
    f, define = recursive("Power", [tf.float64, tf.int32], [tf.float64], shapes=[[]])
    define(lambda x, n: tf.cond(n < 1, lambda: tf.ones_like(x), lambda: x * f(x, n - 1)))
    x = tf1.placeholder(tf.float64, None)
    y = f(x, 3)
    first = tf.gradients(y, x)[0]
    second = tf.gradients(first, x)[0]
    assert run([y, first, second], {x: 2.0}) == [8, 12, 12]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Power"):
        run(first, {x: [2.0]})


def test_nothing_is_checked_when_the_trace_tells_the_shape():
    function = recursive("Ones", [tf.int32], [tf.float32], shapes=[[None]])[1](lambda n: tf.ones([3]))
    assert not any("output_shapes" in node.name for node in function.definition.node_def)


@everywhere
def test_number_is_checked_on_its_way_when_branches_are_numbers(run, control_flow):
    f, define = recursive("Fib", [tf.int32], [tf.int32], shapes=[[]])
    define(lambda n: tf.cond(n < 2, lambda: n, lambda: f(n - 1) + f(n - 2)))
    fib = run.function(f, [tf.int32])
    assert fib(9) == 34
    with pytest.raises(tf.errors.InvalidArgumentError):
        fib([0])


def test_gradient_alone_is_error_where_the_result_is_not_as_stated(run, control_flow):
    """The gradient is made for the stated shape, of which the gradient's own values need not tell."""
    f, define = recursive("Down", [tf.int32, tf.float32], [tf.float32], shapes=[[3]])
    define(lambda n, x: tf.cond(n < 1, lambda: x * 2.0, lambda: f(n - 1, x)))
    dx = run.function(lambda x: tf.gradients(tf.reduce_sum(f(2, x)), x)[0], [tf.float32])
    assert dx([1, 1, 1]).tolist() == [2, 2, 2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Down/output_shapes_0|'Down'|in call.* Down"):
        dx([1])
