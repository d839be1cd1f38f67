"""What is differentiated by: captured tensors and variables, handles, weights."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from gradient_helpers import differences, fed
from gradient_programs import captured_oracle, define_captured, define_power

tf1 = tf.compat.v1

F64, I32 = tf.float64, tf.int32


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 6])
def test_gradient_of_captured_tensors(run, control_flow, n):
    w, c = fed([np.array([0.5, 1.5]), 0.7])
    f = define_captured(w, c * c)
    x = tf.constant([0.3, 0.4], F64)
    gradients = tf.gradients(f(x, n), [x, w, c], unconnected_gradients="zero")
    oracle = lambda x, w, c: captured_oracle(x, w, c * c, n)
    expected = differences(oracle, [np.array([0.3, 0.4]), np.array([0.5, 1.5]), 0.7], [np.ones(2)])
    for got, wanted in zip(run(gradients), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n", [0, 5])
def test_gradient_of_captured_variables(run, control_flow, variable_kind, n):
    w = tf1.get_variable("w", initializer=np.array([0.5, 1.5]))
    c = tf1.get_variable("c", initializer=np.float64(0.7))
    f = define_captured(w, c)
    x = tf.constant([0.3, 0.4], F64)
    gradients = tf.gradients(f(x, n), [x, w, c], unconnected_gradients="zero")
    oracle = lambda x, w, c: captured_oracle(x, w, c, n)
    for value in ([0.5, 1.5], [1.1, -0.4]):
        run(tf1.assign(w, value))
        expected = differences(oracle, [np.array([0.3, 0.4]), np.array(value), 0.7], [np.ones(2)])
        for got, wanted in zip(run(gradients), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)


def test_gradient_of_variable_that_is_captured_and_an_argument(run, control_flow, variable_kind):
    w = tf1.get_variable("w", initializer=np.float64(0.5))
    f, define = recursive("F", [F64, I32], [F64])
    define(lambda x, n: tf.cond(n < 1, lambda: x * w, lambda: w * f(x, n - 1)))
    np.testing.assert_allclose(run(tf.gradients(f(w, 3) + w, w)[0]), 5 * 0.5**4 + 1)


def variable_and_function():
    """A variable, and a function that takes its handle as an argument."""
    w = tf1.get_variable("w", initializer=np.float64(0.5), use_resource=True)
    f, define = recursive("F", [tf.resource, F64, I32], [F64])
    read = lambda handle: tf.raw_ops.ReadVariableOp(resource=handle, dtype=F64)
    define(lambda v, x, n: tf.cond(n < 1, lambda: x, lambda: read(v) * f(v, x * x, n - 1)))
    return w, f


def test_gradient_passes_a_resource_argument_by(run, control_flow):
    w, f = variable_and_function()
    x = tf.constant(1.2, F64)
    y = f(w.handle, x, 3)
    np.testing.assert_allclose(run(tf.gradients(y, x)[0]), 0.5**3 * 8 * 1.2**7)


def test_gradient_of_variable_whose_handle_is_an_argument(run, control_flow):
    w, f = variable_and_function()
    [dw] = tf.gradients(f(w.handle, tf.constant(1.2, F64), 3), w)
    np.testing.assert_allclose(run(dw), 3 * 0.5**2 * 1.2**8)


@pytest.mark.thorough
def test_gradient_of_variables_of_different_shapes_whose_handles_change_places(run, control_flow):
    f, define = recursive("F", [tf.resource, tf.resource, I32], [F64], shapes=[[]])
    sines = lambda handle: tf.reduce_sum(tf.sin(tf.raw_ops.ReadVariableOp(resource=handle, dtype=F64)))
    squares = lambda handle: tf.reduce_sum(tf.raw_ops.ReadVariableOp(resource=handle, dtype=F64) ** 2)
    deeper = lambda a, b, n: sines(a) * squares(b) + f(b, a, n - 1)
    define(lambda a, b, n: tf.cond(n < 1, lambda: sines(a), lambda: deeper(a, b, n)))
    v = tf1.get_variable("v", initializer=np.array([0.5, 0.3, 0.2]), use_resource=True)
    w = tf1.get_variable("w", initializer=np.array([[0.5, 0.3], [0.2, 0.7]]), use_resource=True)
    dv, dw = tf.gradients(f(v.handle, w.handle, 3), [v, w])
    [ddv] = tf.gradients(tf.reduce_sum(dw), v)
    (dv, dw, ddv), v, w = run([[dv, dw, ddv], v, w])
    sines, squares = lambda x: np.sum(np.sin(x)), lambda x: np.sum(x * x)
    # It is 2 sines(v) squares(w) + sines(w) squares(v) + sines(w).
    np.testing.assert_allclose(dv, 2 * np.cos(v) * squares(w) + sines(w) * 2 * v)
    np.testing.assert_allclose(dw, 4 * w * sines(v) + np.cos(w) * (squares(v) + 1))
    np.testing.assert_allclose(ddv, 4 * np.sum(w) * np.cos(v) + np.sum(np.cos(w)) * 2 * v)


def test_gradient_of_tensor_that_is_computed_before_the_call(run, control_flow):
    f = define_power()
    x = tf.constant(0.6, F64)
    y = tf.exp(f(tf.sin(x), 4)) * f(x, 2)
    oracle = lambda x: np.exp(np.sin(x) ** 4) * x**2
    np.testing.assert_allclose(run(tf.gradients(y, x)[0]), differences(oracle, [0.6], [1.0])[0], rtol=1e-6)


EMBEDDINGS = np.arange(12.0).reshape(6, 2) / 10


@pytest.mark.parametrize("kind", ["tensor", "variable", "argument", "argument variable"])
def test_gradient_of_embeddings_that_the_body_gathers(run, control_flow, variable_kind, kind):
    """Rows used once, twice, never."""
    if "variable" in kind:
        table = tf1.get_variable("table", initializer=EMBEDDINGS)
    else:
        table = tf1.placeholder_with_default(EMBEDDINGS, EMBEDDINGS.shape)
    rows = lambda call, t, i: tf.gather(t, i) * (call(i // 2) + tf.cast(i, F64))
    if "argument" in kind:
        g, define = recursive("Sum", [F64, I32], [F64])
        define(lambda t, i: tf.cond(i < 1, lambda: tf.gather(t, i), lambda: rows(lambda j: g(t, j), t, i)))
        f = lambda i: g(table, i)
    else:
        f, define = recursive("Sum", [I32], [F64])
        define(lambda i: tf.cond(i < 1, lambda: tf.gather(table, i), lambda: rows(f, table, i)))

    def oracle(table):
        sums = lambda i: table[i] if i < 1 else table[i] * (sums(i // 2) + i)
        return sums(5) + sums(4)

    [gradient] = tf.gradients(f(5) + f(4), table)
    dense = run(tf.convert_to_tensor(gradient))
    np.testing.assert_allclose(dense, differences(oracle, [EMBEDDINGS], [np.ones(2)])[0], rtol=1e-6, atol=1e-8)


def multiply_by_argument():
    """`g(x, w) = x w`, and a weight of two rows."""
    g, define = recursive("G", [F64, F64], [F64])
    define(lambda x, w: tf.matmul(x, w))
    return g, tf1.get_variable("w", initializer=np.array([[0.5, 0.1], [0.2, 0.4]]), use_resource=True)


@pytest.mark.parametrize("hand_on", ["as_it_is", "by_identity", "and_use"])
def test_captured_weight_is_handed_to_a_call(run, hand_on):
    g, w = multiply_by_argument()
    f, define = recursive("F", [F64], [F64])
    functions = {
        "as_it_is": lambda x: g(x, w),
        "by_identity": lambda x: g(x, tf.identity(w)),
        "and_use": lambda x: g(x, w) + tf.matmul(2 * x, w),
    }
    define(functions[hand_on])
    x = tf.constant([[1.0, 3.0]], F64)
    [dw] = tf.gradients(f(x), w)
    expected = np.array([[1.0, 1.0], [3.0, 3.0]]) * (3 if hand_on == "and_use" else 1)
    np.testing.assert_allclose(run(tf.convert_to_tensor(dw)), expected)


def test_function_that_returns_a_variable_handle(run):
    w = tf1.get_variable("w", initializer=np.float64(2.0), use_resource=True)
    f, define = recursive("F", [F64], [F64, tf.resource])
    define(lambda x: (x * w, w.handle))
    x = tf.constant(3.0, F64)
    assert run(tf.gradients(f(x)[0], [x, w])) == [2, 3]


def read_value(handle):
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=F64)


def two_variables():
    return [tf1.get_variable(name, initializer=np.array(x), use_resource=True) for name, x in (("v", 0.7), ("w", 0.4))]


def define_swap():
    """Returns the first of two handles after n swaps."""
    f, define = recursive("Swap", [tf.resource, tf.resource, I32], [tf.resource])
    define(lambda v, w, n: tf.cond(n < 1, lambda: v, lambda: f(w, v, n - 1)))
    return f


@pytest.mark.thorough
def test_gradient_goes_through_a_handle_that_a_function_returns(run, control_flow):
    """Of every order: all of them were zeros."""
    v, w = two_variables()
    f = define_swap()
    y = read_value(f(v.handle, w.handle, 3)) ** 4 * read_value(f(v.handle, w.handle, 2)) ** 3
    handles = [v.handle, w.handle]
    first = tf.gradients(y, handles)
    second = tf.gradients(first[0], handles)
    third = tf.gradients(second[1], handles)
    expected = [(3, 0.7**2 * 0.4**4), (4, 0.7**3 * 0.4**3), (6, 0.7 * 0.4**4), (12, 0.7**2 * 0.4**3)]
    expected += [(24, 0.7 * 0.4**3), (36, 0.7**2 * 0.4**2)]
    np.testing.assert_allclose(run([*first, *second, *third]), [factor * power for factor, power in expected])


def test_gradient_goes_through_a_handle_that_several_calls_hand_on(run, control_flow):
    v, w = two_variables()
    f = define_swap()
    y = read_value(f(f(v.handle, w.handle, 3), f(w.handle, v.handle, 1), 1)) ** 3
    np.testing.assert_allclose(run(tf.gradients(y, [v.handle, w.handle])), [3 * 0.7**2, 0])


def test_gradient_goes_through_handle_that_a_body_reads_where_a_call_returns_it(run, control_flow):
    v, w = two_variables()
    f, define = recursive("Read", [tf.resource, tf.resource, F64, I32], [tf.resource, F64])

    @define
    def Read(v, w, x, n):
        def above():
            handle, y = f(w, v, x * read_value(v), n - 1)
            return handle, tf.sin(y) * read_value(handle)

        return tf.cond(n < 1, lambda: (v, x), above)

    def oracle(v, w, x, n):
        if n < 1:
            return v, x
        read, y = oracle(w, v, x * v, n - 1)
        return read, np.sin(y) * read

    x = tf.constant(0.3, F64)
    handle, y = f(v.handle, w.handle, x, 3)
    got = run(tf.gradients(y * read_value(handle), [v.handle, w.handle, x]))
    expected = differences(lambda v, w, x: np.prod(oracle(v, w, x, 3)), [0.7, 0.4, 0.3], [1.0])
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_gradient_goes_through_handles_of_variables_of_different_shapes(run, control_flow):
    v = tf1.get_variable("v", initializer=np.array([0.5, 0.6]), use_resource=True)
    w = tf1.get_variable("w", initializer=np.array([0.1, 0.2, 0.3]), use_resource=True)
    f, n = define_swap(), tf1.placeholder(I32, [])
    gradients = tf.gradients(tf.reduce_sum(read_value(f(v.handle, w.handle, n)) ** 3), [v.handle, w.handle])
    for swaps, expected in ((2, [[0.75, 1.08], [0, 0, 0]]), (3, [[0, 0], [0.03, 0.12, 0.27]])):
        for got, wanted in zip(run(gradients, {n: swaps}), expected, strict=True):
            np.testing.assert_allclose(got, wanted)


def test_gradient_passes_handles_of_integers_and_tables_by(run, control_flow):
    v, _ = two_variables()
    count = tf1.get_variable("count", initializer=3, use_resource=True)
    of_table = tf.lookup.KeyValueTensorInitializer([0, 1], [0.5, 0.6])
    table = tf.lookup.StaticHashTable(of_table, 0.0)
    run(tf1.tables_initializer())
    f, define = recursive("Mixed", [tf.resource] * 3 + [I32], [tf.resource] * 3)
    define(lambda v, c, t, n: tf.cond(n < 1, lambda: (v, c, t), lambda: f(v, c, t, n - 1)))
    value, number, found = f(v.handle, count.handle, table.resource_handle, 2)
    found = tf.raw_ops.LookupTableFindV2(table_handle=found, keys=1, default_value=0.0)
    number = tf.raw_ops.ReadVariableOp(resource=number, dtype=I32)
    y = read_value(value) * tf.cast(found, F64) * tf.cast(number, F64)
    np.testing.assert_allclose(run(tf.gradients(y, v.handle)[0]), 1.8)


def test_gradient_is_error_when_nothing_tells_of_what_variable_a_returned_handle_is():
    f, define = recursive("Untold", [tf.resource], [tf.resource])
    define(lambda v: tf.identity(v))
    handle = tf1.placeholder(tf.resource, [])
    message = "Function 'Untold' cannot be differentiated: output 0 is a handle, and its body does not tell of what var"
    with pytest.raises(LookupError, match=message):
        tf.gradients(read_value(f(handle)), handle)


@pytest.mark.parametrize("called", ["Several", "Caller"])
def test_gradient_is_error_when_an_argument_holds_several_handles(called):
    """Stock TensorFlow has none either. Its rows were taken for rows of a weight: a ZeroDivisionError."""
    handles = tf.stack([variable.handle for variable in two_variables()])
    f, define = recursive("Several", [tf.resource, I32], [F64])
    define(lambda v, n: tf.cond(n < 1, lambda: tf.ones([], F64), lambda: read_value(v[n % 2]) * f(v, n - 1)))
    g, define_g = recursive("Caller", [tf.resource], [F64])
    define_g(lambda v: f(v, 2))
    y = f(handles, 2) if called == "Several" else g(handles)
    message = f"Function '{called}' cannot be differentiated: argument 0 holds the handles of several variables; pass"
    with pytest.raises(LookupError, match=message):
        tf.gradients(y, handles)
