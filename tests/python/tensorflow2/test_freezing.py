"""Recursive functions whose variables become constants: equal values, in the process and from a file."""
# SPDX-License-Identifier: Apache-2.0

import gc

import keras
import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import nested_derivative
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

import tensorflow_recursion as tfr
from tensorflow_recursion import names

tf1 = tf.compat.v1
pytestmark = pytest.mark.usefixtures("short_collections")

V, TABLE = 1.5, np.array([1.0, 2.0, 3.0, 4.0], np.float32)
X, N = 2.0, 5
NUMBER, COUNT = tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)
# What variables are after they became constants: those must not follow.
OTHER_V = 7.0


class Weights(tf.Module):
    def __init__(self):
        super().__init__()
        self.v, self.table = tf.Variable(V), tf.Variable(TABLE)


def read_at_the_end(w):
    @tfr.recursive
    def power(x, n):
        if n < 1:
            return w.v.read_value()
        return x * power(x, n - 1)

    return power, lambda x, n: V * x**n


def read_beside_calls(w):
    @tfr.recursive
    def power(x, n):
        factor = w.v.read_value()
        if n < 1:
            return x * 0 + 1
        return x * factor * power(x, n - 1)

    return power, lambda x, n: (V * x) ** n


def given_to_calls(w):
    @tfr.recursive
    def power(x, n, factor):
        if n < 1:
            return factor
        return x * power(x, n - 1, w.v.read_value())

    return lambda x, n: power(x, n, tf.constant(0.0)), lambda x, n: V * x**n


def rows_gathered(w):
    @tfr.recursive
    def total(x, n):
        if n < 1:
            return x
        return tf.gather(w.table, n % 4) + total(x, n - 1)

    return total, lambda x, n: x + sum(TABLE[i % 4] for i in range(1, n + 1))


def rows_gathered_in_branches(w):
    """The frozen graph does not say what shape that has which a branch takes."""

    @tfr.recursive
    def product(x, n):
        if n < 1:
            return x
        return product(x, n - 1) * tf.cond(n > 2, lambda: tf.gather(w.table, n % 4), lambda: tf.gather(w.table, 1))

    return product, lambda x, n: x * np.prod([TABLE[i % 4 if i > 2 else 1] for i in range(1, n + 1)])


def mutual(w):
    @tfr.recursive
    def one(x, n):
        if n < 1:
            return x
        return w.v * other(x, n - 1)

    @tfr.recursive
    def other(x, n):
        if n < 1:
            return x
        return one(x, n - 1) + tf.gather(w.table, 1)

    def expected(x, n):
        for level in range(1, n + 1):  # from the innermost call outwards; the outermost one is of `one`
            x = V * x if (n - level) % 2 == 0 else x + TABLE[1]
        return x

    return one, expected


def conditions_in_conditions(w):
    @tfr.recursive
    def f(x, n):
        if n < 1:
            return x
        factor = w.v.read_value()
        if n > 3:
            y = f(x, n - 1) * factor
        else:
            y = f(x, n - 1) + w.v
        return y

    return f, lambda x, n: (x + V * min(n, 3)) * V ** max(n - 3, 0)


def loop_in_body(w):
    @tfr.recursive
    def f(x, n):
        if n < 1:
            return x
        y = f(x, n - 1)
        for i in tf.range(n):
            y += w.v * tf.cast(i, tf.float32)
        return y

    return f, lambda x, n: x + V * sum(i for level in range(1, n + 1) for i in range(level))


def without_variables(_):
    @tfr.recursive
    def power(x, n):
        if n < 1:
            return tf.constant(1.0)
        return x * power(x, n - 1)

    return power, lambda x, n: x**n


ROWS = [rows_gathered, rows_gathered_in_branches]
PROGRAMS = [
    read_at_the_end,
    read_beside_calls,
    given_to_calls,
    *ROWS,
    mutual,
    conditions_in_conditions,
    loop_in_body,
    without_variables,
]


def concrete(function):
    return tf.function(function, input_signature=[NUMBER, COUNT]).get_concrete_function()


def from_file(frozen, directory):
    """The GraphDef of a function, as it comes back from a file; and the names of what it takes and returns."""
    path = directory / "frozen.pb"
    tf.io.write_graph(frozen.graph, str(directory), path.name, as_text=False)
    graph_def = tf1.GraphDef.FromString(path.read_bytes())
    assert not any(node.op in ("VarHandleOp", "ReadVariableOp", "ResourceGather") for node in nodes(graph_def))
    return graph_def, [tensor.name for tensor in frozen.inputs], frozen.outputs[0].name


def nodes(graph_def):
    return [*graph_def.node, *(node for function in graph_def.library.function for node in function.node_def)]


@pytest.mark.each_value
@pytest.mark.sampled(6)
@pytest.mark.parametrize("lowered", [True, False])
@pytest.mark.parametrize("make", PROGRAMS, ids=lambda make: make.__name__)
def test_values_are_equal(make, lowered, tmp_path, static_or_error):
    weights = Weights()
    function, expected = make(weights)
    original = concrete(function)
    frozen = convert_variables_to_constants_v2(original, lower_control_flow=lowered)
    weights.v.assign(OTHER_V)
    x, n = tf.constant(X), tf.constant(N)
    assert frozen(x, n)[0].numpy() == pytest.approx(expected(X, N))
    graph_def, inputs, output = from_file(frozen, tmp_path)
    del frozen
    gc.collect()
    with tf.Graph().as_default(), tf1.Session(config=tfr.session_config(on_fallback="error")) as session:
        result = tf.import_graph_def(graph_def, return_elements=[output], name="")
        assert session.run(result, dict(zip(inputs, (X, N), strict=True)))[0] == pytest.approx(expected(X, N))
    imported = tf1.wrap_function(lambda: tf.import_graph_def(graph_def, name=""), []).prune(inputs, output)
    assert imported(x, n).numpy() == pytest.approx(expected(X, N))
    before = original(x, n).numpy()  # what was converted, and what it calls, is still there
    weights.v.assign(V)
    assert original(x, n).numpy() == pytest.approx(expected(X, N))
    assert make in ROWS or make is without_variables or before != pytest.approx(expected(X, N))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("make", [read_beside_calls, conditions_in_conditions, loop_in_body, *ROWS])
def test_constants_have_gradients(make):
    function, expected = make(Weights())
    frozen = convert_variables_to_constants_v2(concrete(function))
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = frozen(x, tf.constant(N))[0]
    slope = (expected(X + 1e-3, N) - expected(X - 1e-3, N)) / 2e-3
    assert tape.gradient(y, x).numpy() == pytest.approx(slope, rel=1e-3)


@pytest.mark.parametrize("make", [read_beside_calls, mutual, *ROWS])
def test_gradients_that_were_made_before(make, static_or_error):
    weights = Weights()
    function, expected = make(weights)
    slope = concrete(lambda x, n: nested_derivative(lambda x: function(x, n), x, 1))
    frozen = convert_variables_to_constants_v2(slope)
    weights.v.assign(OTHER_V)
    got = frozen(tf.constant(X), tf.constant(N))[0]
    wanted = expected(np.polynomial.Polynomial([0.0, 1.0]), N).deriv()(X)
    assert got.numpy() == pytest.approx(wanted, rel=1e-5)


@pytest.mark.thorough
def test_gradient_of_a_loop_that_reads_a_variable_is_an_error():
    """It asks for the variable's shape, which TensorFlow's converter does not know."""
    function, _ = loop_in_body(Weights())
    original = concrete(lambda x, n: nested_derivative(lambda x: function(x, n), x, 1))
    with pytest.raises(ValueError, match=r"VariableShape\) takes a variable that is to become a constant"):
        convert_variables_to_constants_v2(original)


def cubed(function):
    """So that no program has derivatives of zero."""
    return lambda x, n: function(x, n) ** 3


@pytest.mark.thorough
@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "make, order", [*((make, 2) for make in PROGRAMS), *((make, 3) for make in (*ROWS, without_variables))]
)
def test_higher_derivatives(make, order):
    function, expected = make(Weights())
    frozen = convert_variables_to_constants_v2(concrete(cubed(function)))
    expected = cubed(expected)(np.polynomial.Polynomial([0.0, 1.0]), N).deriv(order)(X)
    got = nested_derivative(lambda x: frozen(x, tf.constant(N))[0], tf.constant(X), order)
    assert got.numpy() == pytest.approx(expected, rel=1e-4)


def in_a_branch(power):
    return lambda x, n: tf.cond(n > 3, lambda: power(x, n) * x, lambda: power(x, n - 1))


def in_a_loop(power):
    return lambda x, n: tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * power(x, n)), [0, x])[1]


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize("in_function", [False, True])
@pytest.mark.parametrize("main, exponent", [(in_a_branch, N + 1), (in_a_loop, 2 * N + 1)])
def test_higher_derivatives_of_calls_in_control_flow_of_the_main_graph(main, exponent, in_function):
    """The frozen graph has only functions for control flow, which TensorFlow builds anew for each gradient."""
    power, _ = without_variables(Weights())
    frozen = convert_variables_to_constants_v2(concrete(main(power)), lower_control_flow=False)

    def second(x):
        return nested_derivative(lambda x: frozen(x, tf.constant(N))[0], x, 2)

    got = (tf.function(second) if in_function else second)(tf.constant(X))
    assert got.numpy() == pytest.approx(exponent * (exponent - 1) * X ** (exponent - 2), rel=1e-5)


@pytest.mark.full_matrix
@pytest.mark.parametrize("n", [N, 3])
@pytest.mark.parametrize("order", [2, 3])
def test_higher_derivatives_of_calls_in_branches_that_were_taken_apart(order, n):
    """What a branch that is not taken leaves for the next function is empty."""
    power, _ = read_at_the_end(Weights())
    frozen = convert_variables_to_constants_v2(concrete(in_a_branch(power)))
    exponent = n + 1 if n > 3 else n - 1
    expected = V * np.polynomial.Polynomial.basis(exponent).deriv(order)(X)
    got = nested_derivative(lambda x: frozen(x, tf.constant(n))[0], tf.constant(X), order)
    assert got.numpy() == pytest.approx(expected, rel=1e-5)


@pytest.mark.thorough
def test_gradients_of_calls_in_branches_of_branches():
    """Eagerly, where the branches were taken apart, stock TensorFlow has no gradient either."""
    power, _ = read_at_the_end(Weights())

    def call(x, n):
        inner = lambda: tf.cond(n > 4, lambda: power(x, n), lambda: power(x, n - 1) * 2.0)
        return tf.cond(n > 3, inner, lambda: tf.cond(n > 1, lambda: power(x, n - 1), lambda: x))

    original = concrete(call)
    lowered = convert_variables_to_constants_v2(original)
    kept = convert_variables_to_constants_v2(original, lower_control_flow=False)
    slope_of = lambda f: nested_derivative(lambda x: f(x, tf.constant(N))[0], tf.constant(X), 1)
    expected = pytest.approx(V * N * X ** (N - 1), rel=1e-5)
    assert slope_of(kept).numpy() == expected
    assert tf.function(slope_of)(lowered).numpy() == expected
    with pytest.raises(tf.errors.InvalidArgumentError, match="branch leaves it .*in a tf.function .*lower_contr"):
        slope_of(lowered)


def test_body_that_names_a_node_it_does_not_have():
    """Such a body was cut out of a larger graph: what it was to be placed with is not there."""
    power, expected = read_beside_calls(Weights())
    graph_def = convert_variables_to_constants_v2(concrete(power)).graph.as_graph_def()
    bodies = [function for function in graph_def.library.function if function.signature.name.startswith("power")]
    for node in bodies[0].node_def:
        node.attr["_class"].list.s.append(b"loc:@gone")

    @tf.function
    def slope(x):
        result = tf.import_graph_def(graph_def, {"x:0": x, "n:0": tf.constant(N)}, ["Identity:0"])[0]
        return tf.gradients(result, x)[0]

    slope_of = np.polynomial.Polynomial([0.0, 1.0])
    assert slope(tf.constant(X)).numpy() == pytest.approx(expected(slope_of, N).deriv()(X), rel=1e-5)


def test_call_in_a_branch_of_the_main_graph():
    weights = Weights()
    power, expected = read_beside_calls(weights)

    def call(x, n):
        return tf.cond(n > 3, lambda: power(x, n) + weights.v, lambda: power(x, n - 1))

    original = concrete(call)
    for lowered in (True, False):
        frozen = convert_variables_to_constants_v2(original, lower_control_flow=lowered)
        assert frozen(tf.constant(X), tf.constant(N))[0].numpy() == pytest.approx(expected(X, N) + V)
        assert frozen(tf.constant(X), tf.constant(3))[0].numpy() == pytest.approx(expected(X, 2))


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_static", [True, False])
@pytest.mark.parametrize("lowered", [True, False])
def test_gradients_of_calls_in_branches_of_the_main_graph(lowered, is_static):
    """The function returns, for its gradient, what was computed on the way; in the branch not taken that is dead."""
    weights = Weights()
    (one, power), (other, product) = read_beside_calls(weights), rows_gathered_in_branches(weights)

    def call(x, n):
        return tf.cond(n > 3, lambda: one(x, n) + weights.v, lambda: other(x, n - 1) * tf.cast(n, tf.float32))

    frozen = convert_variables_to_constants_v2(concrete(call), lower_control_flow=lowered)
    for n, expected in ((N, lambda x: power(x, N) + V), (3, lambda x: 3 * product(x, 2))):
        x = tf.constant(X)
        with tfr.config.static_execution(is_static), tf.GradientTape() as tape:
            tape.watch(x)
            y = frozen(x, tf.constant(n))[0]
        assert y.numpy() == pytest.approx(expected(X))
        slope = expected(np.polynomial.Polynomial([0.0, 1.0])).deriv()(X)
        with tfr.config.static_execution(is_static):
            assert tape.gradient(y, x).numpy() == pytest.approx(slope, rel=1e-5)


def test_two_functions_keep_their_own_values():
    """Both are functions `power` with branches, of two modules."""
    one, other = Weights(), Weights()
    other.v.assign(OTHER_V)
    (first, _), (second, _) = read_at_the_end(one), read_at_the_end(other)
    original = concrete(lambda x, n: first(x, n) - second(x, n))
    frozen = convert_variables_to_constants_v2(original)
    assert frozen(tf.constant(X), tf.constant(N))[0].numpy() == (V - OTHER_V) * X**N


def test_variable_that_a_body_assigns_is_an_error():
    counter = tf.Variable(0)

    @tfr.recursive
    def visits(n):
        counter.assign_add(1)
        if n > 0:
            visits(n - 1)
        return counter.read_value()

    original = tf.function(visits, input_signature=[COUNT]).get_concrete_function()
    with pytest.raises(
        ValueError, match=r"'visits'.* \(AssignAddVariableOp\) takes a variable that is to become a con"
    ):
        convert_variables_to_constants_v2(original)


def test_keras_model():
    class Scaled(keras.layers.Layer):
        def build(self, _shape):
            self.weight = self.add_weight(shape=(3, 3), name="weight")

        @tfr.recursive
        def repeat(self, x, n):
            if n < 1:
                return x
            return self.repeat(tf.tanh(tf.matmul(x, self.weight)), n - 1)

        def call(self, x):
            return self.repeat(x, tf.constant(3))

    model = keras.Sequential([keras.Input((3,)), Scaled(), keras.layers.Dense(2)])
    call = tf.function(lambda x: model(x), input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    frozen = convert_variables_to_constants_v2(call.get_concrete_function())
    x = tf.constant([[0.5, -1.0, 2.0], [1.0, 0.0, 3.0]])
    np.testing.assert_allclose(frozen(x)[0], model(x), rtol=1e-6)


@pytest.mark.parametrize("config", [None, tfr.session_config(on_fallback="error")], ids=["dynamic", "static"])
def test_graph_of_a_session(config):
    with tf.Graph().as_default(), tf1.Session(config=config) as session:
        v = tf1.get_variable("v", initializer=V, use_resource=True)
        power = tfr.Declare("Power", [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])

        @tfr.Defun(tf.float32, tf.int32, func_name="Power", out_names=["y"])
        def power_impl(x, n):
            return tf.cond(n < 1, lambda: v.read_value(), lambda: x * power(x, n - 1))

        tf.identity(power_impl(X, N), name="result")
        session.run(tf1.global_variables_initializer())
        graph_def = tf1.graph_util.convert_variables_to_constants(session, session.graph_def, ["result"])
    with tf.Graph().as_default(), tf1.Session(config=config) as session:
        tf.import_graph_def(graph_def, name="")
        assert session.run("result:0") == V * X**N


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_resource", [True, False])
@pytest.mark.parametrize("config", [None, tfr.session_config(on_fallback="error")], ids=["dynamic", "static"])
def test_graph_of_a_session_with_derivatives(config, is_resource):
    """Of any order, of arguments and of variables, in bodies and in the main graph."""
    derivatives = np.polynomial.Polynomial.basis(N) * V
    with tf.Graph().as_default(), tf1.Session(config=config) as session:
        v = tf1.get_variable("v", initializer=V, use_resource=is_resource)
        power = tfr.Declare("Power", [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])

        @tfr.Defun(tf.float32, tf.int32, func_name="Power", out_names=["y"])
        def power_impl(x, n):
            return tf.cond(n < 1, lambda: tf.identity(v), lambda: x * power(x, n - 1))

        @tfr.Defun(tf.float32, func_name="Slope", out_names=["y"])
        def slope(x):
            return tf.gradients(power_impl(x, N), x)[0]

        x = tf.constant(X)
        y = power_impl(x, N)
        first = tf.gradients(y, x)[0]
        fetches = {
            "value": (y, derivatives(X)),
            "first": (first, derivatives.deriv(1)(X)),
            "second": (tf.gradients(first, x)[0], derivatives.deriv(2)(X)),
            "by_variable": (tf.gradients(y, v)[0], X**N),
            "in_body": (slope(x), derivatives.deriv(1)(X)),
        }
        for name, (tensor, _) in fetches.items():
            tf.identity(tensor, name=name)
        session.run(tf1.global_variables_initializer())
        graph_def = tf1.graph_util.convert_variables_to_constants(session, session.graph_def, list(fetches))
        tf.import_graph_def(graph_def, name="frozen")  # beside the functions that it was made of
        assert session.run("frozen/second:0") == pytest.approx(fetches["second"][1], rel=1e-5)
    with tf.Graph().as_default(), tf1.Session(config=config) as session:
        tf.import_graph_def(graph_def, name="")
        got = session.run({name: f"{name}:0" for name in fetches})
        assert got == pytest.approx({name: wanted for name, (_, wanted) in fetches.items()}, rel=1e-5)


def test_call_whose_record_nobody_reads_names_no_function_that_takes_the_variable():
    """Its gradient is in the graph, and not among what is frozen."""
    with tf.Graph().as_default(), tf1.Session() as session:
        v = tf1.get_variable("v", initializer=V, use_resource=True)
        scaled = tfr.Defun(tf.float32, func_name="Scaled")(lambda x: v * x)
        x = tf.constant(X)
        y = scaled(x)
        tf.gradients(y, x)
        session.run(tf1.global_variables_initializer())
        before = session.graph_def
        frozen = tf1.graph_util.convert_variables_to_constants(session, before, [y.op.name])
    forward_before, forward = (
        next(node.attr[names.FORWARD].s for node in graph_def.node if node.op == names.INVOKE)
        for graph_def in (before, frozen)
    )
    assert forward_before and not forward


def test_gradient_of_the_users_own_that_reads_tensors_of_the_original_is_an_error_that_says_so():
    @tf.custom_gradient
    def tripled(x):
        sine = tf.sin(x)
        return x * 3.0, lambda dy: dy * sine

    @tfr.recursive
    def power(x, n):
        if n < 1:
            return x
        return tripled(power(x, n - 1))

    original = tf.function(lambda x, n: power(x, n))
    original = original.get_concrete_function(tf.TensorSpec([]), tf.TensorSpec([], tf.int32))
    frozen = convert_variables_to_constants_v2(original)
    x = tf.constant(1.5)
    assert float(frozen(x, tf.constant(2))[0]) == 13.5
    with (
        tf.GradientTape() as tape,
        pytest.raises(LookupError, match="'power' cannot be differentiated.*'cond/Sin:0'.*when a function is frozen"),
    ):
        tape.watch(x)
        frozen(x, tf.constant(2))
