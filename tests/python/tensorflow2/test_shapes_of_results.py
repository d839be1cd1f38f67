"""What calls return has the static shape that traces tell, without `output_shapes`."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import switches
import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.ops import cond_v2

import tensorflow_recursion as tfr

tf1 = tf.compat.v1


def declare(name="F"):
    return tfr.Declare(name, [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])


def define(body, name="F"):
    types = [tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.int32)]
    return tfr.Defun(*types, func_name=name, out_names=["y"])(body)


@pytest.fixture(autouse=True)
def graph():
    """A TF1 graph: Declare and Defun belong to one."""
    with tf.Graph().as_default() as graph:
        yield graph


def run(fetches):
    with tf1.Session(config=tfr.session_config()) as session:
        return session.run(fetches)


def test_shapes_of_arguments_are_known_in_the_body():
    seen = []

    def body(x, n):
        seen.append((x.shape.as_list(), n.shape.as_list()))
        return x * 2.0

    y = define(body)([1.0, 2.0, 3.0], 1)
    assert seen == [([3], [])]
    assert y.shape.as_list() == [3]


def test_result_of_recursive_function_has_the_shape_of_its_base_case():
    f = declare()
    F = define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: f(x * 2.0, n - 1)))
    y = F([1.0, 2.0, 3.0], 2)
    assert y.shape.as_list() == [3]
    assert f([1.0, 2.0, 3.0], 2).shape.as_list() == [3]
    assert run(y).tolist() == [4.0, 8.0, 12.0]


def test_call_in_while_loop_needs_no_output_shapes():
    f = declare()
    F = define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: f(x + 1.0, n - 1)))
    body = lambda i, x: (i + 1, F(x, i))
    y = tf.while_loop(lambda i, x: i < 3, body, [tf.constant(0), tf.constant([0.0, 1.0, 2.0])])[1]
    assert run(y).tolist() == [3.0, 4.0, 5.0]


def test_call_in_while_loop_of_its_own_body_needs_no_output_shapes():
    f = declare()

    def body(x, n):
        def loop():
            return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + f(x, i)), [tf.constant(0), x])[1]

        return tf.cond(n < 1, lambda: x, loop)

    y = define(body)([1.0, 2.0, 3.0], 3)
    assert y.shape.as_list() == [3]
    assert run(y).tolist() == [8.0, 16.0, 24.0]


def test_shape_becomes_more_general_where_the_recursive_path_returns_another_one():
    """The base case returns 3 elements, the other path more: dimensions that differ are open."""
    f = declare()
    F = define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: tf.concat([f(x, n - 1), x], 0)))
    y = F([1.0, 2.0, 3.0], 2)
    assert y.shape.as_list() == [None]
    assert run(y).shape == (9,)


def test_mutual_recursion_has_shapes():
    f, g = declare("F"), declare("G")
    F = define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: g(x, n - 1)), "F")
    define(lambda x, n: f(x, n) * 2.0, "G")
    y = F([1.0, 2.0, 3.0], 3)
    assert y.shape.as_list() == [3]
    assert run(y).tolist() == [8.0, 16.0, 24.0]


def test_conditional_of_many_results_is_looked_into_once(monkeypatch):
    """TensorFlow binds all inputs of the branches each time: asked for each result, that takes quadratic time."""
    asked = []
    original = cond_v2.get_func_graphs
    monkeypatch.setattr(cond_v2, "get_func_graphs", lambda op: asked.append(op) or original(op))

    @tfr.recursive
    def increase(n, values):
        if n < 1:
            return values
        return increase(n - 1, [value + 1.0 for value in values])

    with context.eager_mode():
        results = increase(tf.constant(3), [tf.constant(float(i)) for i in range(50)])
    assert [result.numpy() for result in results] == [i + 3.0 for i in range(50)]
    assert 0 < len(asked) < 20


def in_loop(f, x, n):
    add = lambda i, a: (i + 1, a + f(x, n - 1))
    return tf.cond(n < 1, lambda: x, lambda: tf.while_loop(lambda i, a: i < 2, add, [0, x])[1])


SHAPED = {  # bodies, and what they return for [1, 2, 3] and 2
    "cond": (lambda f, x, n: tf.cond(n < 1, lambda: x, lambda: x * f(x, n - 1)), [1.0, 8.0, 27.0]),
    "result of the call": (lambda f, x, n: tf.cond(n < 1, lambda: x, lambda: f(x + 1.0, n - 1)), [3.0, 4.0, 5.0]),
    "nested conds": (
        lambda f, x, n: tf.cond(
            n > 1, lambda: tf.cond(x[0] > 0.0, lambda: f(x, n - 1), lambda: -f(x, n - 2)), lambda: x * 2.0
        ),
        [2.0, 4.0, 6.0],
    ),
    "case": (
        lambda f, x, n: tf.case([(n > 5, lambda: f(x, n - 1)), (n > 0, lambda: f(x, n - 1) * 2.0)], lambda: x),
        [4.0, 8.0, 12.0],
    ),
    "switch_case": (
        lambda f, x, n: tf.switch_case(n, [lambda: x, lambda: f(x, n - 1), lambda: 2.0 * f(x, n - 2)]),
        [2.0, 4.0, 6.0],
    ),
    "loop": (in_loop, [7.0, 14.0, 21.0]),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_defun", [True, False], ids=["Defun", "recursive"])
@pytest.mark.parametrize("is_v2", [True, False], ids=["v2", "v1"])
@pytest.mark.parametrize("name", SHAPED)
def test_shapes_are_found_whichever_control_flow(name, is_v2, is_defun):
    body, expected = SHAPED[name]
    with switches.control_flow_v2(is_v2):
        if is_defun:
            f = declare()
            F = define(lambda x, n: body(f, x, n))
        else:
            F = tfr.recursive(lambda x, n: body(F, x, n))
        y = F(tf.constant([1.0, 2.0, 3.0]), tf.constant(2))
        repeat = lambda i, x: (i + 1, F(x, tf.constant(2)))
        carried = tf.while_loop(lambda i, x: i < 1, repeat, [tf.constant(0), tf.constant([1.0, 2.0, 3.0])])[1]
        scanned = tf.scan(lambda a, x: F(a, tf.constant(2)) + x, tf.constant([0.0]), tf.constant([1.0, 2.0, 3.0]))
    assert y.shape.as_list() == [3]
    for got in run([y, carried, scanned[0]]):
        assert got.tolist() == expected


def test_error_of_a_loop_says_what_to_write_where_one_trace_serves_several_shapes():
    def in_loop(retracing):
        @tfr.recursive(reduce_retracing=retracing)
        def halve(x):
            return tf.cond(tf.reduce_max(x) < 1.0, lambda: x, lambda: halve(x / 2.0))

        halve(tf.zeros([4]))
        return tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, halve(x)), [0, tf.zeros([2])])[1]

    with pytest.raises(ValueError, match=r"call of 'halve', one trace of which .*reduce_retracing=False\) for 'halve'"):
        in_loop(True)
    assert in_loop(False).shape.as_list() == [2]
