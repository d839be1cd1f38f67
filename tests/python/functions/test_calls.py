"""Where a function may be called: scopes, control flow, dtypes, nested function graphs."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import switches
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1


def identity_function(dtype, depth_name="Pass"):
    """A function that passes its argument through n calls of itself."""
    f = tfr.Declare(depth_name, [("n", tf.int32), ("x", dtype)], [("ret", dtype)])

    @tfr.Defun(tf.int32, dtype, func_name=depth_name, out_names=["ret"])
    def Pass(n, x):
        return tf.cond(n < 1, lambda: tf.identity(x), lambda: f(n - 1, x))

    return Pass


# --- Scopes -------------------------------------------------------------------------------------------------------


def test_call_is_in_scope_and_on_device_of_caller(run, fib):
    with tf.name_scope("outer"), tf.device("/device:CPU:0"):
        y = fib(5)
    assert y.op.name == "outer/Fib"
    assert y.op.device == "/device:CPU:0"
    assert run(y) == 5


def test_scopes_of_first_call_stay_out_of_body(fib):
    with tf.name_scope("outer"), tf.device("/device:CPU:0"):
        fib(5)
    nodes = fib.definition.node_def
    assert not [n.name for n in nodes if n.name.startswith("outer") or n.device]


def test_device_of_definition_and_of_body_is_in_body():
    with tf.device("/device:CPU:0"):

        @tfr.Defun(tf.int32, func_name="F")
        def F(n):
            with tf.device("/device:CPU:1"):
                m = tf.negative(n)
            return tf.abs(m)

    devices = {n.op: n.device for n in F.definition.node_def}
    assert devices["Neg"] == "/device:CPU:1"
    assert devices["Abs"] == "/device:CPU:0"


def test_call_waits_for_control_dependencies(run, fib):
    count = tf1.get_variable("count", initializer=0, use_resource=True)
    with tf.control_dependencies([count.assign_add(1)]):
        y = fib(tf.constant(3))
    with tf.control_dependencies([y]):
        z = tf.constant(0)
    run(z)
    assert run(count) == 1


def test_first_call_under_control_dependencies_leaves_body_free_of_them(run):
    x = tf1.placeholder(tf.int32, [])
    with tf.control_dependencies([tf1.assert_positive(x)]):

        @tfr.Defun(tf.int32)
        def f(n):
            return n + 1

        y = f(1)
    assert f.captured_inputs == []
    assert run(y, {x: 1}) == 2
    assert run(f(1)) == 2


# --- Control flow of the main graph -------------------------------------------------------------------------------


def test_call_runs_in_branch(run, fib, control_flow):
    x = tf1.placeholder(tf.int32, [])
    y = tf.cond(x > 5, lambda: fib(x), lambda: -fib(x + 5))
    assert run(y, {x: 10}) == 55
    assert run(y, {x: 1}) == -8


def test_call_in_switch_case_runs(run, fib, control_flow):
    x = tf1.placeholder(tf.int32, [])
    y = tf.switch_case(x, [lambda: fib(5), lambda: fib(6), lambda: 0])
    assert [run(y, {x: i}) for i in range(3)] == [5, 8, 0]


def test_call_runs_in_loop_when_output_shape_is_stated(run, control_flow):
    f = tfr.Declare("F", [("n", tf.int32)], [("ret", tf.int32)], output_shapes=[[]])

    @tfr.Defun(tf.int32, func_name="F", out_names=["ret"])
    def F(n):
        return tf.cond(n < 2, lambda: n, lambda: f(n - 1) + f(n - 2))

    y = tf.while_loop(lambda i, s: i < 10, lambda i, s: (i + 1, s + F(i)), [0, 0])
    assert tuple(run(y)) == (10, 88)


def test_call_runs_in_loop_when_shape_invariant_is_loose(run, fib, control_flow):
    y = tf.while_loop(
        lambda i, s: i < 10,
        lambda i, s: (i + 1, s + fib(i)),
        [0, 0],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)],
    )[1]
    assert run(y) == 88


def test_loop_refuses_result_when_its_shape_is_unknown(fib, control_flow):
    with pytest.raises(ValueError, match="shape"):
        tf.while_loop(lambda i, s: i < 10, lambda i, s: (i + 1, s + fib(i)), [0, 0])


def row_function(name, size):
    """A function that returns a row of `size` numbers, which only its base case tells."""
    f = tfr.Declare(name, [("n", tf.int32)], [("ret", tf.float32)])

    @tfr.Defun(tf.int32, func_name=name, out_names=["ret"])
    def row(n):
        return tf.cond(n < 1, lambda: tf.zeros([size]), lambda: f(n - 1) + 1.0)

    return row


def test_session_that_has_run_goes_on_when_loops_call_what_it_ran_and_what_is_new(run, control_flow):
    ran, new = row_function("Ran", 3), row_function("New", 2)
    before = ran(4)
    np.testing.assert_array_equal(run(before), [4, 4, 4])
    for row, size in [(new, 2), (ran, 3)]:
        y = tf.while_loop(lambda i, _: i < 4, lambda i, sums, f=row: (i + 1, sums + f(i)), [0, tf.zeros([size])])[1]
        assert y.shape == [size]
        np.testing.assert_array_equal(run(y), [6] * size)
    np.testing.assert_array_equal(run(before), [4, 4, 4])


def test_session_that_has_run_a_gradient_goes_on_when_loop_calls_the_function(run):
    x = tf.constant([1.0, 2.0])
    f = tfr.Declare("F", [("n", tf.int32), ("x", tf.float32)], [("ret", tf.float32)])

    @tfr.Defun(tf.int32, tf.float32, func_name="F", out_names=["ret"])
    def F(n, x):
        return tf.cond(n < 1, lambda: tf.ones([2]), lambda: f(n - 1, x) * tf.reduce_sum(x))

    (before,) = tf.gradients(F(2, x), x)
    np.testing.assert_array_equal(run(before), [12, 12])  # of 2 * (x[0] + x[1]) ** 2
    y = tf.while_loop(lambda i, _: i < 3, lambda i, sums: (i + 1, sums + F(i, x)), [0, tf.zeros([2])])[1]
    np.testing.assert_array_equal(run([y, *tf.gradients(y, x), before]), [[13, 13], [14, 14], [12, 12]])


def test_call_runs_in_condition_of_loop(run, fib, control_flow):
    assert run(tf.while_loop(lambda i: fib(i) < 100, lambda i: i + 1, [0])) in (12, [12])


def test_call_runs_under_map_fn(run, fib, control_flow):
    y = tf.map_fn(fib, tf.range(10))
    np.testing.assert_array_equal(run(y), [0, 1, 1, 2, 3, 5, 8, 13, 21, 34])


def test_call_runs_under_scan(run, control_flow):
    gcd = tfr.Declare("Gcd", [("a", tf.int32), ("b", tf.int32)], [("ret", tf.int32)], output_shapes=[[]])

    @tfr.Defun(tf.int32, tf.int32, func_name="Gcd", out_names=["ret"])
    def Gcd(a, b):
        return tf.cond(tf.equal(b, 0), lambda: a, lambda: gcd(b, a % b))

    y = tf.scan(gcd, tf.constant([24, 36, 90, 10]))
    np.testing.assert_array_equal(run(y), [24, 12, 6, 2])


def test_call_runs_under_foldl_inside_function(run, control_flow):
    add = tfr.Declare("AddUp", [("a", tf.int32), ("n", tf.int32)], [("ret", tf.int32)], output_shapes=[[]])

    @tfr.Defun(tf.int32, tf.int32, func_name="AddUp", out_names=["ret"])
    def AddUp(a, n):
        return tf.cond(n < 1, lambda: a, lambda: add(a + 1, n - 1))

    @tfr.Defun(tf.int32, func_name="Total", out_names=["ret"])
    def Total(xs):
        return tf.foldl(add, xs, initializer=0)

    assert run(Total([1, 2, 3, 4])) == 10


# --- Control flow of bodies ---------------------------------------------------------------------------------------


def test_loop_and_branches_nest_in_body(run, control_flow):
    paths = tfr.Declare("Paths", [("n", tf.int32), ("k", tf.int32)], [("ret", tf.int32)], output_shapes=[[]])

    @tfr.Defun(tf.int32, tf.int32, func_name="Paths", out_names=["ret"])
    def Paths(n, k):
        """Number of sequences of n steps with values below k, without a zero after an odd one; by brute force."""

        def step(i, total):
            return i + 1, total + tf.cond(tf.equal(i % 2, 0), lambda: paths(n - 1, k), lambda: paths(n - 1, k - 1))

        return tf.cond(n < 1, lambda: 1, lambda: tf.while_loop(lambda i, _: i < k, step, [0, 0])[1])

    def expected(n, k):
        return 1 if n < 1 else sum(expected(n - 1, k if i % 2 == 0 else k - 1) for i in range(k))

    assert run(Paths(3, 4)) == expected(3, 4)


def test_body_without_control_flow_is_called_from_several_sites(run):
    @tfr.Defun(tf.float32, tf.float32, func_name="Hypotenuse")
    def Hypotenuse(a, b):
        return tf.sqrt(a * a + b * b)

    y = Hypotenuse(Hypotenuse(3.0, 4.0), Hypotenuse(12.0, 0.0))
    assert run(y) == 13


# --- Nested function graphs ---------------------------------------------------------------------------------------


def test_call_runs_in_dataset_function(run, fib, control_flow):
    dataset = tf1.data.Dataset.range(8).map(lambda i: fib(tf.cast(i, tf.int32)))
    iterator = tf1.data.make_initializable_iterator(dataset.filter(lambda y: fib(y % 3) < 2).batch(2))
    item = iterator.get_next()
    run(iterator.initializer)
    values = [run(item).tolist() for _ in range(4)]
    assert values == [[0, 1], [1, 2], [3, 5], [8, 13]]


def test_call_runs_in_nested_dataset_function(run, fib):
    def inner(i):
        return tf1.data.Dataset.range(i).map(lambda j: fib(tf.cast(i + j, tf.int32)))

    iterator = tf1.data.make_initializable_iterator(tf1.data.Dataset.range(3).flat_map(inner))
    item = iterator.get_next()
    run(iterator.initializer)
    assert [run(item) for _ in range(3)] == [1, 1, 2]


def test_call_runs_in_dataset_function_when_definition_captures(run):
    a = tf.constant(3)
    f = tfr.Declare("F", [("n", tf.int32)], [("ret", tf.int32)])

    @tfr.Defun(tf.int32, func_name="F", out_names=["ret"])
    def F(n):
        return tf.cond(n < 1, lambda: 0, lambda: a + f(n - 1))

    iterator = tf1.data.make_initializable_iterator(tf1.data.Dataset.range(3).map(lambda i: F(tf.cast(i, tf.int32))))
    item = iterator.get_next()
    run(iterator.initializer)
    assert [run(item) for _ in range(3)] == [0, 3, 6]


def test_call_runs_in_tf_function(run, fib, control_flow):
    @tf.function
    def outer(x):
        return fib(x) + 1

    assert run(outer(tf.constant(10)) + outer(tf.constant(3))) == 59


def test_tf_function_is_called_in_body(run):
    f = tfr.Declare("F", [("n", tf.int32)], [("ret", tf.int32)])

    @tf.function
    def step(n):
        return f(n - 1) * 2

    @tfr.Defun(tf.int32, func_name="F", out_names=["ret"])
    def F(n):
        return tf.cond(n < 1, lambda: 1, lambda: step(n))

    assert run(F(5)) == 32


def test_first_call_in_branch_of_another_body_traces_apart(run, control_flow):
    @tfr.Defun(tf.int32, func_name="Inner")
    def Inner(n):
        return n * tf1.get_variable("w", initializer=3, trainable=False)

    @tfr.Defun(tf.int32, func_name="Outer")
    def Outer(n):
        return tf.cond(n > 0, lambda: Inner(n), lambda: Inner(-n))

    y = Outer(-4)
    assert [v.graph for v in tf1.global_variables()] == [tf1.get_default_graph()]
    assert run(y) == 12


# --- Arguments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype, value",
    [
        (tf.bool, True),
        (tf.int8, -3),
        (tf.uint64, 2**60),
        (tf.int64, 2**40),
        (tf.float16, 0.5),
        (tf.float64, 0.1),
        (tf.complex64, 1 + 2j),
        (tf.string, b"abc"),
    ],
)
def test_every_kind_of_value_passes_through(run, dtype, value):
    assert run(identity_function(dtype)(3, value)) == value


def test_bfloat16_passes_through(run):
    assert run(tf.cast(identity_function(tf.bfloat16)(3, tf.constant(1.5, tf.bfloat16)), tf.float32)) == 1.5


def test_tensors_of_any_shape_pass_through(run):
    value = np.arange(24).reshape(2, 3, 4)
    f = identity_function(tf.int64)
    np.testing.assert_array_equal(run(f(2, value)), value)
    assert run(f(2, np.zeros([0, 3], np.int64))).shape == (0, 3)
    assert run(f(1, [[5]])).tolist() == [[5]]


def test_variable_handle_passes_through(run, control_flow):
    w = tf1.get_variable("w", initializer=1.0, use_resource=True)
    f = tfr.Declare("Grow", [("n", tf.int32), ("v", tf.resource)], [("ret", tf.float32)])

    @tfr.Defun(tf.int32, tf.resource, func_name="Grow", out_names=["ret"])
    def Grow(n, v):
        add = tf.raw_ops.AssignAddVariableOp(resource=v, value=1.0)
        with tf.control_dependencies([add]):
            return tf.cond(n < 1, lambda: tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32), lambda: f(n - 1, v))

    assert run(Grow(3, w.handle)) == 5
    assert run(f(0, w)) == 6


def test_tensor_list_passes_through(run, control_flow):
    f = tfr.Declare("Push", [("n", tf.int32), ("l", tf.variant)], [("ret", tf.variant)])

    @tfr.Defun(tf.int32, tf.variant, func_name="Push", out_names=["ret"])
    def Push(n, l):  # noqa: E741
        push = lambda: f(n - 1, tf.raw_ops.TensorListPushBack(input_handle=l, tensor=n))
        return tf.cond(n < 1, lambda: tf.identity(l), push)

    scalar = tf.constant([], tf.int32)
    empty = tf.raw_ops.EmptyTensorList(element_dtype=tf.int32, element_shape=scalar, max_num_elements=-1)
    stacked = tf.raw_ops.TensorListStack(input_handle=Push(4, empty), element_shape=scalar, element_dtype=tf.int32)
    np.testing.assert_array_equal(run(stacked), [4, 3, 2, 1])


def test_variables_are_arguments_by_value(run, variable_kind):
    w = tf1.get_variable("w", initializer=3)
    assert run(identity_function(tf.int32)(1, w)) == 3


def test_numpy_values_become_declared_dtype(run):
    f = identity_function(tf.float32)
    assert run([f(1, np.float64(0.5)), f(1, np.int64(2)), f(np.int64(1), 3)]) == [0.5, 2, 3]


def test_list_of_tensors_becomes_one_argument(run):
    x = tf1.placeholder(tf.float32, [])
    np.testing.assert_array_equal(run(identity_function(tf.float32)(1, [x, 2.0, x]), {x: 1}), [1, 2, 1])


def test_call_can_be_fed_and_fetched_by_name(run, fib):
    y = fib(6)
    z = y + 1
    assert run(["Fib:0", z]) == [8, 9]
    assert run(z, {"Fib:0": 100}) == 101


def test_random_ops_in_body_follow_graph_seed(session_config):
    values = []
    for _ in range(2):
        with tf.Graph().as_default(), tf1.Session(config=session_config) as session:
            tf1.set_random_seed(7)
            f = tfr.Defun(tf.float32)(lambda x: x + tf.random.uniform([3]))
            values.append(session.run(f(0.0)))
    np.testing.assert_array_equal(*values)


# Without the switch stock TensorFlow returns 7 for each of them.
def test_constant_of_function_in_branch_that_is_not_taken_stays_there():
    seven = tf.function(lambda x: tf.constant(7))
    f = tfr.Declare("F", [("n", tf.int32), ("x", tf.int32)], [("ret", tf.int32)])

    @tfr.Defun(tf.int32, tf.int32, func_name="F", out_names=["ret"])
    def F(n, x):
        y = tf.cond(x < 0, lambda: seven(x), lambda: x)
        return tf.cond(n < 1, lambda: y, lambda: f(n - 1, y))

    with switches.control_flow_v2(False), tf1.Session(config=tfr.session_config()) as session:
        assert session.run([F(2, 5), F(2, -5)]) == [5, 7]


def test_dtypes_may_be_those_of_numpy(run):
    f = tfr.Declare("F", [("n", np.int32), ("x", "float64")], [("r", np.float64)])

    @tfr.Defun(np.int32, np.float64, func_name="F", out_names=["r"])
    def F(n, x):
        return tf.cond(n < 1, lambda: x, lambda: f(n - 1, x * 2.0))

    assert run(F(3, 1.5)) == 12
