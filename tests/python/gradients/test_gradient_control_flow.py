"""Gradients through branches and loops, around calls and in bodies."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from gradient_helpers import check_derivatives, differences, fed
from gradient_programs import VECTOR, check_gradients, define_power

import tensorflow_recursion as tfr

tf1 = tf.compat.v1
pytestmark = pytest.mark.fake_gpu

F64, I32 = tf.float64, tf.int32


# --- Calls in control flow of the main graph ----------------------------------------------------------------------


@pytest.mark.parametrize("flag", [True, False])
def test_gradient_through_cond_around_call(run, control_flow, flag):
    f = define_power()
    x, p = tf.constant(1.5, F64), tf1.placeholder(tf.bool, [])
    y = tf.cond(p, lambda: f(x, 3) * 2.0, lambda: tf.sin(x))
    np.testing.assert_allclose(run(tf.gradients(y, x)[0], {p: flag}), 6 * 1.5**2 if flag else np.cos(1.5))


@pytest.mark.parametrize("flag", [True, False])
def test_gradient_inside_cond(run, control_flow, flag):
    f = define_power()
    x, p = tf.constant(1.5, F64), tf1.placeholder(tf.bool, [])

    def inner():
        z = tf.identity(x)
        return tf.gradients(f(z, 3), z)[0]

    assert run(tf.cond(p, inner, lambda: x), {p: flag}) == (3 * 1.5**2 if flag else 1.5)


@pytest.mark.parametrize("flag", [True, False])
def test_gradient_inside_cond_of_call_outside(run, control_flow, flag):
    f = define_power()
    x, p = tf.constant(1.5, F64), tf1.placeholder(tf.bool, [])
    y = f(x, 3)
    dx = tf.cond(p, lambda: tf.gradients(y, x)[0], lambda: tf.constant(0.0, F64))
    assert run([y, dx], {p: flag}) == [1.5**3, 3 * 1.5**2 if flag else 0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("choice", [0, 1, 2])
def test_gradient_through_case_around_calls(run, control_flow, choice):
    f = define_power()
    x, k = tf.constant(1.5, F64), tf1.placeholder(I32, [])
    branches = [(tf.equal(k, 0), lambda: f(x, 3)), (tf.equal(k, 1), lambda: f(f(x, 2), 2))]
    y = tf.case(branches, default=lambda: x)
    np.testing.assert_allclose(run(tf.gradients(y, x)[0], {k: choice}), [3 * 1.5**2, 4 * 1.5**3, 1][choice])


def test_gradient_through_switch_case_around_calls(run):
    f = define_power()
    x, k = tf.constant(1.5, F64), tf1.placeholder(I32, [])
    y = tf.switch_case(k, [lambda: f(x, 3), lambda: f(f(x, 2), 2), lambda: x])
    dx = tf.gradients(y, x)[0]
    np.testing.assert_allclose([run(dx, {k: i}) for i in range(3)], [3 * 1.5**2, 4 * 1.5**3, 1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("times", [0, 1, 4])
def test_gradient_through_while_loop_around_call(run, control_flow, times):
    """Also by what the loop and the function capture."""
    c, w, x = fed([0.8, 1.1, 0.9])
    f, define = recursive("F", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: x, lambda: c * tf.sin(f(x, n - 1))))
    limit = tf1.placeholder_with_default(times, [])
    step = lambda i, v: (i + 1, tf.ensure_shape(f(v * w, i) + v, []))
    y = tf.while_loop(lambda i, _: i < limit, step, [0, x])[1]

    def oracle(c, w, x):
        for i in range(times):
            v = x * w
            for _ in range(i):
                v = c * np.sin(v)
            x = v + x
        return x

    gradients = tf.gradients(y, [c, w, x], unconnected_gradients="zero")
    np.testing.assert_allclose(run(gradients), differences(oracle, [0.8, 1.1, 0.9], [1.0]), rtol=1e-6, atol=1e-8)


def test_gradient_inside_while_loop(run, control_flow):
    """Gradient descent in the graph: f(x) = (x - 1) ** 4."""
    f = define_power()

    def step(i, v):
        z = tf.identity(v)
        return i + 1, v - 0.1 * tf.ensure_shape(tf.gradients(f(z - 1.0, 4), z)[0], [])

    y = tf.while_loop(lambda i, _: i < 5, step, [0, tf.constant(1.9, F64)])[1]
    expected = 1.9
    for _ in range(5):
        expected -= 0.1 * 4 * (expected - 1) ** 3
    np.testing.assert_allclose(run(y), expected)


def test_gradient_through_nested_while_loops(run, control_flow):
    f = define_power()
    x = tf.constant(0.9, F64)

    def step(i, v):
        inner = lambda j, u: (j + 1, tf.ensure_shape(tf.sin(u) + f(v, j), []))
        return i + 1, tf.while_loop(lambda j, _: j < i, inner, [0, v])[1]

    y = tf.while_loop(lambda i, _: i < 4, step, [0, x])[1]

    def oracle(v):
        for i in range(4):
            u = v
            for j in range(i):
                u = np.sin(u) + v**j
            v = u
        return v

    np.testing.assert_allclose(run(tf.gradients(y, x)[0]), differences(oracle, [0.9], [1.0])[0], rtol=1e-6)


def test_gradient_through_while_loop_with_cond_around_call(run, control_flow):
    f = define_power()
    x = tf.constant(0.9, F64)

    def step(i, v):
        grown = tf.cond(tf.equal(i % 2, 0), lambda: f(v, 3), lambda: tf.sin(v) + f(v, 2))
        return i + 1, tf.ensure_shape(grown, [])

    y = tf.while_loop(lambda i, _: i < 5, step, [0, x])[1]

    def oracle(v):
        for i in range(5):
            v = v**3 if i % 2 == 0 else np.sin(v) + v**2
        return v

    np.testing.assert_allclose(run(tf.gradients(y, x)[0]), differences(oracle, [0.9], [1.0])[0], rtol=1e-6)


def test_gradient_through_map_fn(run, control_flow):
    f = define_power()
    v, w = fed([VECTOR, 0.7])
    y = tf.map_fn(lambda x: f(x * w, 3), v)
    gradients = tf.gradients(y, [v, w])
    expected = differences(lambda v, w: (v * w) ** 3, [VECTOR, 0.7], [np.ones(3)])
    for got, wanted in zip(run(gradients), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_gradient_inside_map_fn(run, control_flow):
    f = define_power()
    v = tf.constant(VECTOR)

    def derivative(x):
        x = tf.identity(x)
        return tf.gradients(f(x, 3), x)[0]

    np.testing.assert_allclose(run(tf.map_fn(derivative, v)), 3 * VECTOR**2)


def test_gradient_through_scan(run, control_flow):
    f = define_power()
    v, start = fed([VECTOR, 0.4])
    y = tf.scan(lambda a, x: tf.ensure_shape(tf.sin(a) + f(x, 2) * f(a, 2), []), v, start)

    def oracle(v, a):
        result = []
        for x in v:
            a = np.sin(a) + x**2 * a**2
            result.append(a)
        return np.array(result)

    expected = differences(oracle, [VECTOR, 0.4], [np.ones(3)])
    for got, wanted in zip(run(tf.gradients(y, [v, start])), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_gradient_through_calls_in_parallel_loops(run, control_flow):
    """Two loops whose iterations are in flight at once share one body."""
    f = define_power()
    x = tf.constant(0.95, F64)
    loop = lambda k: tf.while_loop(
        lambda i, _: i < 20, lambda i, v: (i + 1, v + tf.ensure_shape(f(x, i), []) * k), [0, x], parallel_iterations=8
    )[1]
    y = loop(1.0) * loop(2.0)
    oracle = lambda x: (x + sum(x**i for i in range(20))) * (x + 2 * sum(x**i for i in range(20)))
    np.testing.assert_allclose(run(tf.gradients(y, x)[0]), differences(oracle, [0.95], [1.0])[0], rtol=1e-6)


# --- Control flow in bodies ---------------------------------------------------------------------------------------


BODIES = {}


def body(build):
    BODIES[build.__name__] = build
    return build


@body
def case_in_body():
    f, define = recursive("Case", [F64, I32], [F64])

    @define
    def Case(x, n):
        branches = [(n < 1, lambda: x), (tf.equal(n % 3, 0), lambda: f(x * x, n - 1) + x)]
        return tf.case(branches, default=lambda: tf.sin(f(x, n - 1)) * x)

    def oracle(x, n):
        if n < 1:
            return x
        return oracle(x * x, n - 1) + x if n % 3 == 0 else np.sin(oracle(x, n - 1)) * x

    return f, oracle


@body
def loop_in_body():
    """A loop beside the call, which captures an argument of the body."""
    f, define = recursive("Loop", [F64, I32], [F64])

    @define
    def Loop(x, n):
        x = tf.ensure_shape(x, [])
        sines = lambda: tf.while_loop(lambda i, _: i < n, lambda i, v: (i + 1, tf.sin(v) * x), [0, x])[1]
        return tf.cond(n < 1, lambda: x, lambda: sines() + f(x * x, n - 1))

    def oracle(x, n):
        if n < 1:
            return x
        v = x
        for _ in range(n):
            v = np.sin(v) * x
        return v + oracle(x * x, n - 1)

    return f, oracle


@body
def calls_in_loop_in_body():
    f, define = recursive("Calls", [F64, I32], [F64], [[]])

    @define
    def Calls(x, n):
        x = tf.ensure_shape(x, [])
        step = lambda i, v: (i + 1, tf.ensure_shape(tf.sin(v) + f(x * v, i), []))
        loop = lambda: tf.while_loop(lambda i, _: i < n, step, [0, x])[1]
        return tf.cond(n < 1, lambda: x * x, loop)

    def oracle(x, n):
        if n < 1:
            return x * x
        v = x
        for i in range(n):
            v = np.sin(v) + oracle(x * v, i)
        return v

    return f, oracle


@body
def map_fn_in_body():
    f, define = recursive("Map", [F64, I32], [F64])

    @define
    def Map(x, n):
        x = tf.ensure_shape(x, [])
        mapped = lambda: tf.reduce_sum(tf.map_fn(lambda v: f(v * x, n - 1), tf.stack([x, x * x])))
        return tf.cond(n < 1, lambda: tf.sin(x), mapped)

    def oracle(x, n):
        return np.sin(x) if n < 1 else oracle(x * x, n - 1) + oracle(x * x * x, n - 1)

    return f, oracle


@body
def scan_in_body():
    f, define = recursive("Scan", [F64, I32], [F64])

    @define
    def Scan(x, n):
        x = tf.ensure_shape(x, [])
        add = lambda a, v: tf.ensure_shape(tf.sin(a) + f(v, n - 1), [])
        return tf.cond(n < 1, lambda: x * x, lambda: tf.scan(add, tf.stack([x, x * 0.5]), x)[1])

    def oracle(x, n):
        if n < 1:
            return x * x
        a = np.sin(x) + oracle(x, n - 1)
        return np.sin(a) + oracle(x * 0.5, n - 1)

    return f, oracle


@body
def nested_conds_in_body():
    f, define = recursive("Conds", [F64, I32], [F64])

    @define
    def Conds(x, n):
        small = lambda: tf.cond(x < 0.5, lambda: f(x + 0.5, n - 1) * x, lambda: f(tf.sin(x), n - 1))
        big = lambda: tf.cond(x < 1.5, lambda: x * f(x * 0.5, n - 1), lambda: f(x - 1, n - 1) + f(x * 0.3, n - 1))
        return tf.cond(n < 1, lambda: x, lambda: tf.cond(x < 1, small, big))

    def oracle(x, n):
        if n < 1:
            return x
        if x < 1:
            return oracle(x + 0.5, n - 1) * x if x < 0.5 else oracle(np.sin(x), n - 1)
        return x * oracle(x * 0.5, n - 1) if x < 1.5 else oracle(x - 1, n - 1) + oracle(x * 0.3, n - 1)

    return f, oracle


@body
def result_of_cond_is_shared():
    """A value computed before the cond is used on both sides of it and after."""
    f, define = recursive("Shared", [F64, I32], [F64])

    @define
    def Shared(x, n):
        s = tf.sin(x)
        return tf.cond(n < 1, lambda: s * s, lambda: s * f(s + x, n - 1)) + s

    def oracle(x, n):
        s = np.sin(x)
        return (s * s if n < 1 else s * oracle(s + x, n - 1)) + s

    return f, oracle


@pytest.mark.each_value
@pytest.mark.sampled(4)
@pytest.mark.parametrize("build", BODIES.values(), ids=BODIES)
def test_gradient_through_control_flow_in_body(run, control_flow, build):
    function, oracle = build()
    check_gradients(run, function, oracle, [0.7, 3])
    check_gradients(run, function, oracle, [1.8, 2])
    check_gradients(run, function, oracle, [0.7, 0])


@pytest.mark.thorough
def test_loop_keeps_vectors_of_branches_that_are_not_taken(run, control_flow):
    """The loop's lists know the shape of what they keep, and look at that of what a branch did not compute, too."""
    f, define = recursive("Branch", [I32, F64], [F64])

    @define
    def Branch(n, x):
        branch = lambda v: tf.cond(n < 1, lambda: v + x, lambda: tf.sin(tf.ensure_shape(f(n - 1, v), [2]) * v))
        return tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, branch(v)), [0, x])[1]

    def oracle(x, n):
        v = x
        for _ in range(2):
            v = v + x if n < 1 else np.sin(oracle(v, n - 1) * v)
        return v

    x = tf.constant([0.5, 0.75], F64)
    for n in range(3):
        got = run(tf.gradients(tf.reduce_sum(f(n, x)), x)[0])
        slopes = [(np.sum(oracle(x0 + d, n)) - np.sum(oracle(x0 - d, n))) / 2e-6 for x0, d in _moved([0.5, 0.75])]
        np.testing.assert_allclose(got, slopes, rtol=1e-5)


def _moved(point):
    """The point with a small step along each axis."""
    return [(np.array(point), 1e-6 * axis) for axis in np.eye(len(point))]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("build", [loop_in_body, calls_in_loop_in_body, case_in_body], ids=lambda build: build.__name__)
def test_gradient_through_loop_around_call_with_control_flow_in_body(run, control_flow, build):
    function, oracle = build()
    x = tf.constant(0.4, F64)
    step = lambda i, v: (i + 1, tf.ensure_shape(tf.sin(v + function(v, i)), []))
    y = tf.while_loop(lambda i, _: i < 3, step, [0, x])[1]

    def loop(v):
        for i in range(3):
            v = np.sin(v + oracle(v, i))
        return v

    np.testing.assert_allclose(run(tf.gradients(y, x)[0]), differences(loop, [0.4], [1.0])[0], rtol=1e-6)


def test_gradients_inside_body(run, control_flow):
    """Newton's method: the body differentiates another recursive function."""
    power = define_power()
    f, define = recursive("Root", [F64, I32], [F64])

    @define
    def Root(x, n):
        x = tf.identity(x)
        y = power(x, 3) - 2.0
        [slope] = tf.gradients(y, x)
        return tf.cond(n < 1, lambda: x, lambda: f(x - y / slope, n - 1))

    np.testing.assert_allclose(run(f(tf.constant(1.0, F64), 8)), 2 ** (1 / 3))


@tf.RegisterGradient("RecursionTestFourfold")
def _fourfold(op, dy):
    return 4.0 * dy


def test_gradient_override_map_around_conditional_and_loop_of_body_is_followed(run, control_flow):
    """The body is differentiated with control flow v2, whose branches forget the map that is around them."""
    f, define = recursive("Overridden", [F64, I32], [F64])

    @define
    def Overridden(x, n):
        x = tf.ensure_shape(x, [])
        with tf1.get_default_graph().gradient_override_map({"Sin": "RecursionTestFourfold"}):
            looped = tf.while_loop(lambda i, _: i < 2, lambda i, v: (i + 1, tf.sin(v)), [0, x])[1]
            return tf.cond(n < 1, lambda: tf.sin(x), lambda: f(looped, n - 1))

    x = tf.constant(0.5, F64)
    y = f(x, 1)
    value, slope = run([y, tf.gradients(y, x)[0]])
    np.testing.assert_allclose(value, np.sin(np.sin(np.sin(0.5))))
    assert slope == 4.0**3


# --- Results that nothing uses ------------------------------------------------------------------------------------


# Operators whose second results are scalars in a run, and vectors of shape [0] by their static shapes.
SPECTRA = {
    "eigenvalues": lambda a: tf.raw_ops.SelfAdjointEigV2(input=a, compute_v=False).e,
    "singular values": lambda a: tf.raw_ops.Svd(input=a, compute_uv=False).s,
}


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize("has_branch", [False, True])
def test_gradient_in_a_loop_does_not_ask_for_results_that_nothing_uses(run, control_flow, spectrum, has_branch):
    def of(x):
        return SPECTRA[spectrum](x[:, None] * x + tf.linalg.diag(tf.constant([1.0, 2.0, 4.0], F64)))

    def step(x):
        return tf.cond(x[0] > -9.0, lambda: of(x), lambda: x) if has_branch else of(x)

    f, define = recursive("F", [I32, F64], [F64], [[3]])

    def deeper(n, x):
        body = lambda i, a: (i + 1, step(f(n - 1, 0.3 * a)))
        return tf.while_loop(lambda i, _: i < 2, body, [0, tf.ensure_shape(x, [3])])[1]

    define(lambda n, x: tf.cond(n < 1, lambda: x, lambda: deeper(n, x)))
    x = tf.constant([0.1, 0.2, 0.4], F64)
    unrolled = x
    for _ in range(2):
        inner = 0.3 * unrolled
        for _ in range(2):
            inner = of(0.3 * inner)
        unrolled = of(inner)
    got, want = run([tf.gradients(y, x)[0] for y in (f(2, x), unrolled)])
    np.testing.assert_allclose(got, want, rtol=1e-6)


# --- Datasets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["outside", "inside"])
def test_gradient_runs_in_dataset_function(run, where):
    f = define_power()
    x = tf.constant(2.0, F64)
    y = f(x, 3)
    outside = lambda v: v * tf.gradients(y, x)[0]  # takes the record of a call that the session makes
    inside = lambda v: tf.gradients(f(v, 3), v)[0]
    mapped = {"outside": outside, "inside": inside}[where]
    dataset = tf1.data.Dataset.from_tensor_slices(np.array([1.0, 2.0])).map(mapped)
    iterator = tf1.data.make_initializable_iterator(dataset)
    value = iterator.get_next()
    run(iterator.initializer)
    assert [run(value), run(value)] == ([12, 24] if where == "outside" else [3, 12])


# --- Branches whose results have shapes that only a run knows -----------------------------------------------------


# What makes a matrix of 3 rows, of which the static shape is open, of a vector of 3 numbers.
OF_OPEN_SHAPE = {
    "both dimensions": lambda v: tf.linalg.diag(tf.boolean_mask(v, v > -5.0)),
    "rows": lambda v: tf.boolean_mask(v[:, None] * v[None], v > -5.0),
    "columns": lambda v: tf.transpose(tf.boolean_mask(tf.exp(v[:, None] * v[None]), v > -5.0)),
    "rank": lambda v: tf.reshape(v[:, None] * v[None], tf.where(v > -5.0)[:2, 0] * 0 + 3),
}


@pytest.mark.thorough
@pytest.mark.sampled(16)
@pytest.mark.parametrize("first", [0.5, -0.5])
@pytest.mark.parametrize("depth", [0, 2])
@pytest.mark.parametrize("name", OF_OPEN_SHAPE)
def test_second_derivative_where_a_branch_that_is_not_taken_has_an_open_shape(run, control_flow, name, depth, first):
    """What stands for its values had a shape of zeros in dynamic runs, which no other can be broadcast with."""
    known = lambda v: tf.tanh(v[:, None] * v[None])

    def recursive_net(v):
        @tfr.recursive(autograph=False)
        def net(n, v):
            above = lambda: tf.cond(v[0] > 0.0, lambda: known(v), lambda: OF_OPEN_SHAPE[name](v))
            return tf.cond(n < 1, lambda: tf.eye(3, dtype=F64), above)

        @tfr.recursive(autograph=False)
        def around(n, v):
            return tf.sin(net(n, tf.sin(v)))

        return around(tf.constant(depth), v)

    def unrolled_net(v):
        u = tf.sin(v)
        value = tf.eye(3, dtype=F64) if depth < 1 else known(u) if first > 0 else OF_OPEN_SHAPE[name](u)
        return tf.sin(value) + 0.0 * tf.reduce_sum(v)

    given = lambda: [tf.constant([first, 0.4, 0.2], F64)]
    check_derivatives(run, given, recursive_net, unrolled_net, 2)
