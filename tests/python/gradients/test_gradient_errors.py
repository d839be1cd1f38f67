"""Mistakes with gradients: each is an error that says what and where, after which the process and the session go on."""
# SPDX-License-Identifier: Apache-2.0

import re

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from tensorflow.python.framework import function as stock

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

F64, I32 = tf.float64, tf.int32


def contains(*parts):
    """A pattern for a message that holds all parts, in any order."""
    return "(?s)" + "".join(f"(?=.*{re.escape(part)})" for part in parts)


def define_power(name="F", wrap=lambda x: x, **options):
    f, define = recursive(name, [F64, I32], [F64], **options)
    define(lambda x, n: tf.cond(n < 1, lambda: tf.ones([], F64), lambda: wrap(x) * f(x, n - 1)))
    return f


def check_that_life_goes_on(run):
    """Another function is differentiated in the same graph and session."""
    g = define_power("Alive")
    x = tf.constant(2.0, F64)
    assert run(tf.gradients(g(x, 3), x)[0]) == 12


# --- Functions without a gradient ---------------------------------------------------------------------------------


def test_gradient_is_error_when_function_forbids_it(run, control_flow):
    f = define_power(create_grad_func=False)
    x = tf.constant(2.0, F64)
    y = f(x, 3)
    for _ in range(2):
        with pytest.raises(LookupError, match=contains("'F'", "create_grad_func=False")):
            tf.gradients(y, x)
    assert run(y) == 8
    check_that_life_goes_on(run)


def test_gradient_is_error_when_callee_forbids_it(run, control_flow):
    g = define_power("Inner", create_grad_func=False)
    f, define = recursive("F", [F64], [F64])
    define(lambda x: g(x, 2) * x)
    x = tf.constant(2.0, F64)
    y = f(x)
    with pytest.raises(LookupError, match=contains("'Inner'", "create_grad_func=False")):
        tf.gradients(y, x)
    assert run(y) == 8
    check_that_life_goes_on(run)


def test_forbidden_gradient_is_no_error_when_the_way_does_not_lead_through(run, control_flow):
    f = define_power(create_grad_func=False)
    x = tf.constant(2.0, F64)
    y = tf.stop_gradient(f(x, 3)) * x
    assert run(tf.gradients(y, x)[0]) == 8


def test_gradient_is_error_when_operator_in_body_has_none(run, control_flow):
    """AdjustHue is an operator of floating numbers that TensorFlow has registered no gradient for."""
    f, define = recursive("F", [tf.float32, I32], [tf.float32])
    adjust = lambda x: tf.raw_ops.AdjustHue(images=x, delta=0.1, name="TurnHue")
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: adjust(f(x, n - 1))))
    x = tf.constant(np.ones([1, 1, 3], np.float32))
    y = f(x, 2)
    with pytest.raises(LookupError, match=contains("'F'", "TurnHue", "AdjustHue")):
        tf.gradients(y, x)
    assert run(y).shape == (1, 1, 3)
    check_that_life_goes_on(run)


def test_gradient_is_error_when_operator_in_callee_has_none(run, control_flow):
    g, define_g = recursive("Inner", [tf.float32], [tf.float32])
    define_g(lambda x: tf.raw_ops.AdjustHue(images=x, delta=0.1, name="TurnHue"))
    f, define = recursive("F", [tf.float32, I32], [tf.float32])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: g(f(x, n - 1))))
    x = tf.constant(np.ones([1, 1, 3], np.float32))
    with pytest.raises(LookupError, match=contains("'Inner'", "TurnHue", "AdjustHue")):
        tf.gradients(f(x, 2), x)
    check_that_life_goes_on(run)


def test_gradient_is_error_when_function_is_never_defined(run):
    missing = tfr.Declare("Missing", [("x", F64)], [("y", F64)])
    x = tf.constant(2.0, F64)
    with pytest.raises((LookupError, ValueError, tf.errors.OpError), match="'Missing'"):
        run(tf.gradients(missing(x), x)[0])
    check_that_life_goes_on(run)


def test_gradient_is_error_when_callee_is_never_defined(run, control_flow):
    missing = tfr.Declare("Missing", [("x", F64)], [("y", F64)])
    f, define = recursive("F", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: missing(x), lambda: f(x, n - 1)))
    x = tf.constant(2.0, F64)
    with pytest.raises((LookupError, ValueError, tf.errors.OpError), match="'Missing'"):
        run(tf.gradients(f(x, 2), x)[0])
    check_that_life_goes_on(run)


def test_gradient_is_there_when_callee_is_defined_after_the_call_and_before_the_gradient(run, control_flow):
    late = tfr.Declare("Late", [("x", F64)], [("y", F64)])
    x = tf.constant(2.0, F64)
    y = late(x) * x

    @tfr.Defun(F64, func_name="Late", out_names=["y"])
    def Late(x):
        return x * x

    assert run(tf.gradients(y, x)[0]) == 12


def test_gradient_is_zeros_or_none_when_body_takes_an_integer_path(run, control_flow):
    f, define = recursive("F", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: tf.cast(tf.cast(x, I32), F64), lambda: f(x, n - 1)))
    x = tf.constant(2.5, F64)
    [dx] = tf.gradients(f(x, 3), x)
    assert dx is None or run(dx) == 0


# --- The user's own gradient --------------------------------------------------------------------------------------


WRONG_COUNTS = {
    "too few": lambda op, dy: dy,
    "too many": lambda op, dy: (dy, None, dy),
    "none": lambda op, dy: (),
}


@pytest.mark.parametrize("gradient", WRONG_COUNTS.values(), ids=WRONG_COUNTS)
def test_python_grad_func_is_error_when_it_returns_a_wrong_number(run, control_flow, gradient):
    f = define_power(python_grad_func=gradient)
    x = tf.constant(2.0, F64)
    with pytest.raises((ValueError, TypeError), match=contains("'F'", "2")):
        tf.gradients(f(x, 3), x)
    check_that_life_goes_on(run)


@pytest.mark.parametrize("wrong", [lambda dy: tf.cast(dy, tf.float32), lambda dy: tf.constant("a")])
def test_python_grad_func_is_error_when_it_returns_a_wrong_dtype(run, control_flow, wrong):
    f = define_power(python_grad_func=lambda op, dy: (wrong(dy), None))
    x = tf.constant(2.0, F64)
    with pytest.raises((ValueError, TypeError), match=contains("'F'", "argument 0", "float64")):
        tf.gradients(f(x, 3), x)
    check_that_life_goes_on(run)


def test_python_grad_func_is_error_when_function_in_body_has_a_wrong_one(run, control_flow):
    g = define_power("Inner", python_grad_func=lambda op, dy: dy)
    f, define = recursive("F", [F64], [F64])
    define(lambda x: g(x, 2) * x)
    x = tf.constant(2.0, F64)
    with pytest.raises((ValueError, TypeError), match="'Inner'"):
        tf.gradients(f(x), x)
    check_that_life_goes_on(run)


def test_exception_of_python_grad_func_reaches_the_user(run):
    class Mine(Exception):
        pass

    def gradient(op, dy):
        raise Mine

    f = define_power(python_grad_func=gradient)
    x = tf.constant(2.0, F64)
    for _ in range(2):
        with pytest.raises(Mine):
            tf.gradients(f(x, 3), x)
    check_that_life_goes_on(run)


def check_that_grad_func_is_refused(grad_func, run):
    f = define_power(grad_func=grad_func)
    x = tf.constant(2.0, F64)
    with pytest.raises((ValueError, TypeError), match=contains("'F'", "grad_func")):
        tf.gradients(f(x, 3), x)
    check_that_life_goes_on(run)


@pytest.mark.parametrize(
    ("types", "results"),
    [([F64], [F64]), ([F64, I32], [F64, I32]), ([F64, I32, tf.float32], [F64, I32])],
    ids=["arguments", "no gradient", "dtype"],
)
def test_grad_func_is_error_when_it_takes_something_else(run, types, results):
    @tfr.Defun(*types, func_name="Grad", out_names=[f"r{i}" for i in range(len(results))])
    def Grad(*args):
        return [tf.zeros([], dtype) for dtype in results]

    check_that_grad_func_is_refused(Grad, run)


@pytest.mark.parametrize("results", [[], [tf.float32, I32], [F64, I32, F64]], ids=["few", "dtype", "many"])
def test_grad_func_is_error_when_it_returns_something_else(run, results):
    @tfr.Defun(F64, I32, F64, func_name="Grad", out_names=[f"r{i}" for i in range(len(results))])
    def Grad(x, n, dy):
        return [tf.zeros([], dtype) for dtype in results]

    check_that_grad_func_is_refused(Grad, run)


@pytest.mark.parametrize("option", ["grad_func", "python_grad_func"])
def test_definition_is_error_when_gradient_is_no_function(option):
    with pytest.raises(TypeError, match=contains("'F'", option)):
        define_power(**{option: 3})


# --- tf.gradients' own checks -------------------------------------------------------------------------------------


def test_gradient_is_error_when_grad_ys_do_not_fit(run, control_flow):
    f = define_power()
    x = tf.constant(2.0, F64)
    y = f(x, 3)
    with pytest.raises((ValueError, TypeError)):
        tf.gradients(y, x, grad_ys=tf.constant("one"))
    with pytest.raises(ValueError):
        tf.gradients(y, x, grad_ys=[tf.constant(1.0, F64)] * 2)
    assert run(tf.gradients(y, x)[0]) == 12


def test_gradient_is_error_when_grad_ys_have_another_dtype(run, control_flow):
    f = define_power()
    x = tf.constant(2.0, F64)
    y = f(x, 3)
    with pytest.raises(
        TypeError, match=contains("'F'", "gradient for result 0", "float32, expected float64", "grad_ys")
    ):
        tf.gradients(y, x, grad_ys=tf.constant(1.0))
    check_that_life_goes_on(run)


def test_run_is_error_when_grad_ys_have_another_shape(run, control_flow):
    f, define = recursive("F", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: tf.matmul(x, f(x, n - 1))))
    x, dy = tf.constant(np.eye(2)), tf1.placeholder(F64, None)
    [dx] = tf.gradients(f(x, 2), x, grad_ys=dy)
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(dx, {dy: np.ones([3, 4])})
        np.testing.assert_allclose(run(dx, {dy: np.eye(2)}), 3 * np.eye(2))


# --- Errors when it runs ------------------------------------------------------------------------------------------


def test_error_in_backward_names_the_function(run, control_flow):
    """The gradient's kernel fails three calls deep; the session runs on with other values."""
    f, define = recursive("Fails", [F64, I32, tf.float64], [F64])

    @tf.custom_gradient
    def checked(x, bound):
        def gradient(dy):
            with tf.control_dependencies([tf1.assert_less(x, bound, message="bound crossed")]):
                return tf.identity(dy), None

        return tf.identity(x), gradient

    define(lambda x, n, bound: tf.cond(n < 1, lambda: x, lambda: checked(f(x * 2.0, n - 1, bound), bound)))
    x, bound = tf.constant(1.0, F64), tf1.placeholder(F64, [])
    y = f(x, 3, bound)
    [dx] = tf.gradients(y, x)
    for _ in range(2):
        assert run([y, dx], {bound: 100}) == [8, 8]
        with pytest.raises(tf.errors.InvalidArgumentError, match=contains("bound crossed", "Fails")):
            run([y, dx], {bound: 3})
        assert run(y, {bound: 3}) == 8


def test_error_in_forward_ends_the_gradient_too(run, control_flow):
    f, define = recursive("Fails", [F64, I32], [F64])

    @define
    def Fails(x, n):
        with tf.control_dependencies([tf1.assert_less(x, tf.constant(10.0, F64), message="bound crossed")]):
            x = tf.identity(x)
        return tf.cond(n < 1, lambda: x, lambda: x * f(x * 2.0, n - 1))

    x = tf1.placeholder(F64, [])
    [dx] = tf.gradients(f(x, 3), x)
    for _ in range(2):
        assert run(dx, {x: 1.0}) == 4 * 64
        with pytest.raises(tf.errors.InvalidArgumentError, match=contains("bound crossed", "Fails")):
            run(dx, {x: 3.0})


@pytest.mark.parametrize("session_config", ["static"], indirect=True)
def test_unbounded_recursion_is_error_when_its_gradient_is_fetched(run, control_flow):
    f, define = recursive("Endless", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: x * f(x, n + 1)))
    x, n = tf.constant(1.0, F64), tf1.placeholder(I32, [])
    [dx] = tf.gradients(f(x, n), x)
    with pytest.raises(tf.errors.ResourceExhaustedError, match=contains("Endless", "max_depth")):
        run(dx, {n: 1})
    assert run(dx, {n: 0}) == 1
    check_that_life_goes_on(run)


def test_gradient_in_other_session_has_records_of_its_own(run, session_config, graph):
    """Steps of two sessions of one graph alternate."""
    f = define_power()
    x, n = tf1.placeholder(F64, []), tf1.placeholder(I32, [])
    y = f(x, n)
    [dx] = tf.gradients(y, x)
    with tf1.Session(graph=graph, config=session_config) as other:
        for i in range(1, 5):
            assert run([y, dx], {x: 2.0, n: i}) == [2.0**i, i * 2.0 ** (i - 1)]
            assert other.run([dx, y], {x: 3.0, n: i + 1}) == [(i + 1) * 3.0**i, 3.0 ** (i + 1)]


# --- Records: what a call keeps for its gradient ------------------------------------------------------------------


def forged(graph, record):
    """The graph, in which the gradient call of F takes another record."""
    graph_def = graph.as_graph_def()
    [backward] = [node for node in graph_def.node if "F__backward" in node.attr["f"].func.name]
    backward.input[0] = record
    changed = tf.Graph()
    with changed.as_default():
        tf.import_graph_def(graph_def, name="")
    return changed


def gradient_graph(graph):
    """Calls of F and of G, each with its gradient; and a list of tensors."""
    for name in "FG":
        x = tf.constant(2.0, F64, name=f"x{name}")
        f, define = recursive(name, [F64, I32], [F64])
        deeper = (lambda x, n: x * f(x, n - 1)) if name == "F" else (lambda x, n: x + tf.exp(-f(x, n - 1)))
        define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: deeper(x, n)))
        tf.identity(tf.gradients(f(x, 3, name=f"call{name}"), x)[0], name=f"d{name}")
    tf.raw_ops.EmptyTensorList(element_shape=tf.zeros([0], I32), max_num_elements=3, element_dtype=F64, name="list")


FORGED = {"of another function": "callG:1", "that is a list": "list:0"}


@pytest.mark.parametrize("record", FORGED.values(), ids=FORGED)
def test_run_is_error_when_record_is_forged(graph, session_config, record):
    gradient_graph(graph)
    changed = forged(graph, record)
    with tf1.Session(graph=changed, config=session_config) as session:
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match=contains("F", "record")):
                session.run("dF:0")
        assert np.isfinite(session.run("dG:0"))


def test_fetch_of_a_record_is_error(graph, session_config):
    gradient_graph(graph)
    with tf1.Session(graph=graph, config=session_config) as session:
        with pytest.raises((tf.errors.OpError, TypeError)):
            session.run("callF:1")
        assert session.run("dF:0") == 4 * 2.0**3


# --- Values that are no numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_pass_as_values(run, control_flow, value):
    f = define_power()
    x = tf1.placeholder(F64, [])
    y = f(x, 3)
    fetches = [y, tf.gradients(y, x)[0]]
    np.testing.assert_array_equal(run(fetches, {x: value}), [value**3, 3 * value**2])
    np.testing.assert_array_equal(run(fetches, {x: 2.0}), [8, 12])


def test_nan_and_infinity_come_from_gradients(run, control_flow):
    f, define = recursive("F", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: tf.sqrt(x), lambda: 2.0 * f(x, n - 1)))
    x = tf1.placeholder(F64, [])
    [dx] = tf.gradients(f(x, 2), x)
    assert run(dx, {x: 0.0}) == np.inf
    assert np.isnan(run(dx, {x: -1.0}))
    assert run(dx, {x: 4.0}) == 1


def test_nan_of_untaken_branch_does_not_reach_the_gradient(run, control_flow):
    f, define = recursive("F", [F64, I32], [F64])
    define(lambda x, n: tf.cond(x > 0, lambda: tf.math.log(x) * tf.cast(n, F64), lambda: f(x + 1, n + 1) * x))
    x = tf1.placeholder(F64, [])
    [dx] = tf.gradients(f(x, 1), x)
    np.testing.assert_allclose(run(dx, {x: 2.0}), 0.5)
    np.testing.assert_allclose(run(dx, {x: 0.0}), 0.0)
    np.testing.assert_allclose(run(dx, {x: -0.5}), 2 * np.log(0.5) + 2 * -0.5 / 0.5)


def identity_whose_gradient_reads(kind):
    """What is read, 3, and the function."""
    used = tf1.get_variable("used", initializer=3.0, use_resource=True) if kind == "variable" else tf.constant(3.0)

    @tf.custom_gradient
    def scaled(x):
        return x * 1.0, lambda dy: dy * used

    return used, scaled


@pytest.mark.parametrize("where", ["in a branch", "in a branch of a branch", "outside of branches"])
@pytest.mark.parametrize("kind", ["variable", "tensor"])
def test_gradient_that_uses_what_the_body_does_not_is_error(where, kind):
    used, scaled = identity_whose_gradient_reads(kind)
    f, define = recursive("Scaled", [tf.float32, tf.int32], [tf.float32], shapes=[[]])
    either = lambda n, result: tf.cond(n > 100, lambda: tf.constant(0.0), result)
    bodies = {
        "in a branch": lambda x, n: tf.cond(n < 1, lambda: x, lambda: scaled(f(x, n - 1))),
        "in a branch of a branch": lambda x, n: tf.cond(
            n < 1, lambda: x, lambda: either(n, lambda: scaled(f(x, n - 1)))
        ),
        "outside of branches": lambda x, n: scaled(tf.cond(n < 1, lambda: x, lambda: f(x, n - 1))),
    }
    define(bodies[where])
    x = tf.constant(2.0)
    name = "used" if kind == "variable" else "Const"
    with pytest.raises(ValueError, match=f"Function 'Scaled': its gradient uses '{name}.*', which its body does not"):
        tf.gradients(f(x, 2), x)


@pytest.mark.parametrize("kind", ["variable", "tensor"])
def test_gradient_in_a_branch_may_use_what_the_body_uses(run, kind):
    used, scaled = identity_whose_gradient_reads(kind)
    f, define = recursive("Scaled", [tf.float32, tf.int32], [tf.float32], shapes=[[]])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: scaled(f(x, n - 1)) + 0.0 * used))
    x = tf.constant(2.0)
    [dx] = tf.gradients(f(x, 2), x)
    assert run([dx, *tf.gradients(dx, used)]) == [9, 6]


def test_gradient_of_a_stock_defun_that_calls_says_what_to_do(run):
    f = define_power()

    @stock.Defun(F64, func_name="Stock")
    def Stock(x):
        return f(x, 3) * x

    x = tf.constant(2.0, F64)
    gradient = tf.gradients(Stock(x), x)[0]
    assert run(Stock(x)) == 16
    with pytest.raises(tf.errors.NotFoundError, match="define what calls them with tensorflow_recursion's Defun"):
        run(gradient)
    check_that_life_goes_on(run)


@pytest.mark.parametrize("is_in_branch", [False, True])
def test_gradient_of_an_old_list_of_tensors_is_error_that_says_what_to_write(is_in_branch):
    def written_and_read(x):
        handle, flow = tf.raw_ops.TensorArrayV3(size=1, dtype=tf.float32)
        flow = tf.raw_ops.TensorArrayWriteV3(handle=handle, index=0, value=x, flow_in=flow)
        return tf.raw_ops.TensorArrayReadV3(handle=handle, index=0, flow_in=flow, dtype=tf.float32)

    @tfr.Defun(tf.float32, func_name="Listed", out_names=["y"])
    def listed(x):
        return tf.cond(x > 0.0, lambda: written_and_read(x), lambda: x) if is_in_branch else written_and_read(x)

    x = tf.constant(1.0)
    with pytest.raises(LookupError, match="'Listed' cannot be differentiated: .*TensorArrayV3.* use tf.TensorArray"):
        tf.gradients(listed(x), x)
