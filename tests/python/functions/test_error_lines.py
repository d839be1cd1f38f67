"""An error of an operator in a body names the lines of Python that made it, as one in the main graph does."""
# SPDX-License-Identifier: Apache-2.0

import inspect
import re

import pytest
import tensorflow as tf
from building import recursive

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

I32, F32 = tf.int32, tf.float32

captured = {}


def failing(x):
    """Fails if `x` is 7, in a node whose name the main graph has, too."""
    return tf.gather(x * [1.0, 2.0], tf.where(tf.equal(x, 7.0), 5, 0), name="Gather")  # the line


def plain(n, x, call):
    return failing(x)


def in_nested_branches(n, x, call):
    inner = lambda: tf.cond(x > 0.0, lambda: failing(x), lambda: x)
    return tf.cond(n < 1, inner, lambda: call(n - 1, x))


def in_loop(n, x, call):
    return tf.while_loop(lambda i, _: i < n, lambda i, a: (i + 1, failing(a)), (0, x))[1]


def in_condition_of_loop(n, x, call):
    return tf.while_loop(lambda i, a: failing(x) > a, lambda i, a: (i + 1, a + 1.0), (0, x))[1]


def in_scope(n, x, call):
    with tf1.name_scope("scope/inner"):
        return failing(x)


def in_map(n, x, call):
    return tf.reduce_sum(tf.map_fn(failing, tf.fill([2], x)))


def in_tf_function(n, x, call):
    return tf.function(failing, autograph=False)(x)


def named_like_an_output(n, x, call):
    return tf.gather([x], tf.where(tf.equal(x, 7.0), 5, 0), name="r0")  # the line


def returned_by_a_branch(n, x, call):
    """An operator that is an output of a function has another name in it."""
    return tf.cond(n < 100, lambda: failing(x), lambda: x)


def with_a_capture(n, x, call):
    """Bodies that capture are traced more than once."""
    one = captured["one"]
    return tf.cond(n < 1, lambda: failing(x * one), lambda: call(n - 1, x))


BODIES = (
    plain,
    in_nested_branches,
    in_loop,
    in_condition_of_loop,
    in_scope,
    in_map,
    in_tf_function,
    named_like_an_output,
    returned_by_a_branch,
    with_a_capture,
)


def define(body):
    """A function of that body, called in the main graph, where a harmless node has the failing one's name."""
    x = tf1.placeholder(F32, [], name="x")
    captured["one"] = tf.constant(1.0)
    tf.constant(1.0, name="Gather")
    f, defun = recursive("F", [I32, F32], [F32], shapes=[[]])
    f_body = defun(lambda n, x: body(n, x, f))
    return x, f_body(2, x)


def error_of(fetch, feeds, session_config):
    with tf1.Session(config=session_config) as session:
        with pytest.raises(tf.errors.OpError) as raised:
            session.run(fetch, feeds)
    return raised.value.message


def line_in(function):
    """The number of the line of a function that is marked."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if "# the line" in line)


def assert_names(message, function):
    """A message shows the marked line of a function, and no line of the package."""
    shown = [line for line in message.split("\n") if line.lstrip().startswith("File ")]
    assert any(f'{__file__}", line {line_in(function)}, in {function.__name__}' in line for line in shown), message
    assert "tensorflow_recursion/" not in message.replace("tests/", ""), message


@pytest.mark.every_case
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_message_names_the_line_when_an_operator_of_a_body_fails(body, session_config):
    x, y = define(body)
    made_by = named_like_an_output if body is named_like_an_output else failing
    assert_names(error_of(y, {x: 7.0}, session_config), made_by)


@pytest.mark.parametrize("body", [plain, in_nested_branches, in_loop], ids=lambda body: body.__name__)
def test_message_names_the_line_when_the_forward_part_of_a_gradient_fails(body, session_config):
    x, y = define(body)
    assert_names(error_of(tf.gradients(y, x)[0], {x: 7.0}, session_config), failing)


def deeper(n, x, call):
    return call(n + 1, x) * 2.0  # the line


def deeper_in_nested_branches(n, x, call):
    """The branches that are not taken have nodes of the same name."""
    inner = lambda: tf.cond(x < 0.0, lambda: call(n, x), lambda: deeper(n, x, call))
    return tf.cond(n < -9, lambda: call(n - 1, x), inner)


def deeper_in_case(n, x, call):
    shallow = lambda: call(n - 1, x)
    return tf.switch_case(tf.minimum(n, 1), [shallow, lambda: deeper(n, x, call), shallow])


def deeper_in_loop(n, x, call):
    return tf.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, deeper(n, a, call)), (0, x))[1]


def deeper_in_tf_function(n, x, call):
    return tf.function(lambda n, x: deeper(n, x, call), autograph=False)(n, x)


DEEPER = (deeper, deeper_in_nested_branches, deeper_in_case, deeper_in_loop, deeper_in_tf_function)


@pytest.mark.every_case
@pytest.mark.parametrize("is_gradient", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("body", DEEPER, ids=lambda body: body.__name__)
def test_message_names_the_line_of_the_call_when_recursion_is_too_deep(body, is_gradient):
    x, y = define(body)
    config = tfr.session_config(max_depth=20)
    message = error_of(tf.gradients(y, x)[0] if is_gradient else y, {x: 2.0}, config)
    assert_names(message, deeper)
    shown, _, rest = message.partition("Recursion too deep: call of 'F'")
    assert "the limit is 20" in rest
    assert "Detected at node" in shown and not re.search(r"/_\d", shown)


def filled(x, value):
    """A scalar, or two numbers if `x` is 7; nothing is known of its rank while the graph is built."""
    return tf.fill(tf.fill([tf.cast(tf.equal(x, 7.0), I32)], 2), value)


def choosing(x):
    return tf.cond(filled(x, True), lambda: x * 2.0, lambda: x)  # the line


def choosing_one_of_three(x):
    return tf.switch_case(filled(x, 1), [lambda: x * 2.0, lambda: x * 3.0, lambda: x])  # the line


def looping(x):
    return tf.while_loop(lambda a: filled(x, True) & (a < 9.0), lambda a: a * 2.0, [x])[0]  # the line


@pytest.mark.every_case
@pytest.mark.parametrize("where", [plain, in_nested_branches, in_loop], ids=lambda where: where.__name__)
@pytest.mark.parametrize("decides", [choosing, choosing_one_of_three, looping], ids=lambda decides: decides.__name__)
@pytest.mark.parametrize("is_gradient", [False, True], ids=["value", "gradient"])
def test_message_names_the_line_when_a_condition_is_no_scalar(is_gradient, decides, where, monkeypatch):
    """Dynamic execution has errors of its own there, or takes a vector for True."""
    monkeypatch.setitem(globals(), "failing", decides)
    x, y = define(where)
    fetch = tf.gradients(y, x)[0] if is_gradient else y
    with tf1.Session(config=tfr.session_config()) as session:
        session.run(fetch, {x: 2.0})
    message = error_of(fetch, {x: 7.0}, tfr.session_config())
    assert_names(message, decides)
    expected = "int32 of shape [2]" if decides is choosing_one_of_three else "bool of shape [2]"
    assert expected in message and re.search(r"in call (gradient of )?F", message)
    assert not re.search(r"(Detected at node|Node:) '[^']*/_\d", message)  # the runtime's names


@tf.custom_gradient
def fails_backward(x):
    def gradient(dy):
        return tf.gather([dy], 5, name="Gather")

    return tf.identity(x), gradient


def calls_fails_backward(x):
    return fails_backward(x)  # the line


def backward_plain(n, x, call):
    return calls_fails_backward(x)


def backward_in_branch(n, x, call):
    return tf.cond(n < 1, lambda: calls_fails_backward(x), lambda: call(n - 1, x) * x)


def backward_in_loop(n, x, call):
    return tf.while_loop(lambda i, _: i < n, lambda i, a: (i + 1, calls_fails_backward(a)), (0, x))[1]


@pytest.mark.parametrize("body", [backward_plain, backward_in_branch, backward_in_loop], ids=lambda body: body.__name__)
def test_message_names_the_line_of_the_forward_operator_when_its_gradient_fails(body, session_config):
    x, y = define(body)
    message = error_of(tf.gradients(y, x)[0], {x: 2.0}, session_config)
    assert_names(message, calls_fails_backward)
    assert "It computes a gradient of" in message


def test_message_names_lines_of_both_when_operators_of_bodies_of_one_name_fail(session_config):
    """Two functions have a node of one name; the line is that of the one that fails."""
    x, _ = define(plain)
    g, defun = recursive("G", [F32], [F32])
    z = defun(lambda x: calls_gather(x))(x)
    assert_names(error_of(z, {x: 1.0}, session_config), calls_gather)


def calls_gather(x):
    return tf.gather([x], 3, name="Gather")  # the line


def test_message_is_that_of_the_main_graph_when_its_operator_fails(session_config):
    """A node of the main graph may be called as a body's node is in the static graph."""
    x, y = define(plain)
    with tf1.name_scope("F/"):
        z = calls_gather(x)
    assert z.op.name == "F/Gather"
    assert_names(error_of([y, z], {x: 1.0}, session_config), calls_gather)


def test_message_has_no_line_when_the_function_was_imported(session_config, graph):
    define(plain)
    with tf.Graph().as_default():
        x, y = tf1.import_graph_def(graph.as_graph_def(), return_elements=["x:0", "F:0"], name="")
        message = error_of(y, {x: 7.0}, session_config)
    assert "is not in [0, 2)" in message and "File" not in message


def test_message_says_what_to_write_when_python_in_a_body_has_lost_its_gradient(session_config):
    x, y = define(
        lambda n, x, call: tf.cond(
            n < 1, lambda: x, lambda: call(n - 1, tf.ensure_shape(tf.py_function(tf.sin, [x], F32), []))
        )
    )
    message = error_of(tf.gradients(y, x)[0], {x: 2.0}, session_config)
    assert re.search(r"last run alone.*tf\.custom_gradient around tf\.numpy_function", message), message
