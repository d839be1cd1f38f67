"""Tensors and variables of the graph around a body that the body uses."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import switches
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1


def declare(name, dtype=tf.int32):
    return tfr.Declare(name, [("n", tf.int32)], [("ret", dtype)])


def define(name, body):
    return tfr.Defun(tf.int32, func_name=name, out_names=["ret"])(body)


def captures(impl):
    return [t.name for t in impl.captured_inputs]


# --- Tensors ------------------------------------------------------------------------------------------------------


def test_captured_tensor_reaches_every_depth(run, control_flow):
    step = tf1.placeholder(tf.int32, [])
    f = declare("F")
    define("F", lambda n: tf.cond(n < 1, lambda: 0, lambda: step + f(n - 1)))
    y = f(5)
    assert run(y, {step: 3}) == 15
    assert run(y, {step: -1}) == -5


def test_captured_arguments_follow_declared_ones_in_order():
    a, b = tf.constant(1, name="a"), tf.constant(2.0, name="b")
    f = tfr.Declare("F", [("n", tf.int32)], [("x", tf.int32), ("y", tf.float32)])

    @tfr.Defun(tf.int32, func_name="F", out_names=["x", "y"])
    def F(n):
        return tf.cond(n < 1, lambda: (a, b), lambda: f(n - 1))

    assert captures(F) == ["a:0", "b:0"]
    assert [arg.type for arg in F.definition.signature.input_arg] == [tf.int32, tf.int32, tf.float32]
    assert [t.name for t in f(3)[0].op.inputs][1:] == ["a:0", "b:0"]


def test_captures_spread_over_cycle_when_functions_are_mutually_recursive(run, control_flow):
    a, b, c = tf.constant(1, name="a"), tf.constant(10, name="b"), tf.constant(100, name="c")
    f, g, h = declare("F"), declare("G"), declare("H")
    traces = []

    def traced(name, body):
        return define(name, lambda n: (traces.append(name), body(n))[1])

    F = traced("F", lambda n: tf.cond(n < 1, lambda: 0, lambda: a + g(n - 1)))
    G = traced("G", lambda n: tf.cond(n < 1, lambda: 0, lambda: h(n - 1) + b))
    H = traced("H", lambda n: tf.cond(n < 1, lambda: 0, lambda: c + f(n - 1)))
    y = [f(4), g(4), h(4), F(1), G(2), H(3)]
    assert set(captures(F)) == set(captures(G)) == set(captures(H)) == {"a:0", "b:0", "c:0"}
    assert len(traces) <= 9
    assert run(y) == [112, 121, 211, 1, 110, 111]


def test_function_without_captures_is_not_given_any_when_others_capture(run):
    a = tf.constant(5, name="a")
    f, plain = declare("F"), define("Plain", lambda n: n * 2)
    F = define("F", lambda n: tf.cond(n < 1, lambda: a, lambda: plain(n) + f(n - 1)))
    assert captures(F) == ["a:0"] and captures(plain) == []
    assert run(F(3)) == 17


def test_caller_is_given_what_its_callee_captures(run):
    a = tf.constant(7, name="a")
    inner = define("Inner", lambda n: n + a)
    outer = define("Outer", lambda n: inner(n) * inner(n + 1))
    assert captures(outer) == ["a:0"]
    assert run(outer(1)) == 72


def test_loop_in_body_uses_captured_tensor(run, control_flow):
    a = tf.constant(3)
    f = tfr.Declare("F", [("n", tf.int32)], [("ret", tf.int32)], output_shapes=[[]])

    @tfr.Defun(tf.int32, func_name="F", out_names=["ret"])
    def F(n):
        def loop():
            return tf.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s + a * f(n - 1)), [0, 0])[1]

        return tf.reshape(tf.cond(n < 1, lambda: 1, loop), [])

    assert run(F(3)) == 216


def returned_as_it_is(x, y, n):
    return tf.cond(n < -9, lambda: y + 1, lambda: x)


def first_value_of_a_loop(x, y, n):
    return tf.while_loop(lambda i, _: i < -n, lambda i, z: (i + 1, z + y), [0, x])[1]


@pytest.mark.parametrize("use", [returned_as_it_is, first_value_of_a_loop])
def test_captured_tensor_has_its_value_when_one_of_the_body_has_its_name(run, control_flow, use):
    """In a trace that begins with `y` captured, that is called `Placeholder:0` there, as `x` is in the main graph."""
    x, y = (tf1.placeholder(tf.int32, []) for _ in range(2))
    f, g = declare("F"), declare("G")
    assert x.name == "Placeholder:0"
    define("F", lambda n: tf.cond(n < 1, lambda: 0, lambda: y + g(n - 1) + use(x, y, n)))
    define("G", lambda n: tf.cond(n < 1, lambda: 0, lambda: f(n - 1)))
    assert run(f(3), {x: 5, y: 70}) == 2 * (70 + 5)


def test_captured_tensor_has_its_value_when_an_argument_has_its_name(run, control_flow):
    x = tf1.placeholder(tf.int32, [], name="n")
    f = declare("F")
    define("F", lambda n: tf.cond(n < 1, lambda: 0, lambda: f(n - 1) + tf.cond(n > 9, lambda: 1, lambda: x)))
    assert run(f(2), {x: 5}) == 10


def test_output_may_be_captured_tensor(run):
    a = tf.constant([1.0, 2.0])

    @tfr.Defun(func_name="Constant")
    def Constant():
        return a

    np.testing.assert_array_equal(run(Constant()), [1, 2])


def test_capture_by_value_copies_into_body(run):
    a = tf.constant(4)

    @tfr.Defun(tf.int32, capture_by_value=True)
    def f(n):
        return n + a

    assert f.captured_inputs == []
    assert run(f(1)) == 5


def test_function_defined_in_body_captures_arguments_of_body(run):
    scale = tf.constant(10, name="scale")
    outer = tfr.Declare("Outer", [("n", tf.int32)], [("ret", tf.int32)])

    @tfr.Defun(tf.int32, func_name="Outer", out_names=["ret"])
    def Outer(n):
        inner = tfr.Declare("Inner", [("m", tf.int32)], [("ret", tf.int32)])

        @tfr.Defun(tf.int32, func_name="Inner", out_names=["ret"])
        def Inner(m):
            return tf.cond(m < 1, lambda: n * scale, lambda: inner(m - 1) + 1)

        return tf.cond(n < 1, lambda: 0, lambda: Inner(2) + outer(n - 1))

    assert run(Outer(2)) == 34


def test_capture_of_branch_tensor_works_when_function_is_defined_in_branch(run, control_flow):
    x = tf1.placeholder(tf.int32, [])

    def branch():
        doubled = x * 2
        f = declare("F")
        define("F", lambda n: tf.cond(n < 1, lambda: doubled, lambda: f(n - 1) + 1))
        return f(3)

    assert run(tf.cond(x > 0, branch, lambda: 0), {x: 5}) == 13


# --- Calls before the definition ----------------------------------------------------------------------------------


def test_early_call_passes_captures_when_definition_comes_later(run, control_flow):
    f = declare("F")
    y = f(4) + 1
    a = tf.constant(2)
    define("F", lambda n: tf.cond(n < 1, lambda: 0, lambda: a + f(n - 1)))
    assert run(y) == 9


def test_early_call_passes_captures_when_callee_is_defined_later(run):
    even, odd = declare("Even", tf.bool), declare("Odd", tf.bool)
    y = even(6)
    define("Even", lambda n: tf.cond(tf.equal(n, 0), lambda: True, lambda: odd(n - 1)))
    z = even(3)
    false = tf.constant(False)
    Odd = define("Odd", lambda n: tf.cond(tf.equal(n, 0), lambda: false, lambda: even(n - 1)))
    assert run([y, z, even(8), Odd(8)]) == [True, False, True, False]


def test_early_call_in_loop_or_branch_passes_captures_when_control_flow_is_v1(run):
    with switches.control_flow_v2(False):
        f = tfr.Declare("F", [("n", tf.int32)], [("ret", tf.int32)], output_shapes=[[]])
        y = tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s + f(i)), [0, 0])[1]
        p = tf1.placeholder(tf.bool, [])
        z = tf.cond(p, lambda: f(3), lambda: -1)
        a = tf.constant(2)
        define("F", lambda n: tf.reshape(tf.cond(n < 1, lambda: 0, lambda: a + f(n - 1)), []))
        assert run([y, z], {p: True}) == [12, 6]
        assert run(z, {p: False}) == -1


def test_early_call_without_outputs_passes_captures(run):
    count = tf1.get_variable("count", initializer=0, use_resource=True)
    tick = tfr.Declare("Tick", [("n", tf.int32)], [])
    op = tick(3)
    with tf.control_dependencies([op]):
        done = tf.identity(1)

    @tfr.Defun(tf.int32, func_name="Tick")
    def Tick(n):
        count.assign_add(n)

    run(op)
    run(done)
    assert run(count) == 6


def test_early_call_keeps_its_scopes_and_control_dependencies(run):
    count = tf1.get_variable("count", initializer=0, use_resource=True)
    f = declare("F")
    with tf.device("/cpu:0"), tf.name_scope("here"), tf.control_dependencies([count.assign_add(1)]):
        y = f(1)
    define("F", lambda n: n + count)
    call = y.op.inputs[0].op
    assert call.name.startswith("here/F") and call.device.lower().endswith("cpu:0")
    assert run(y) == 2


def test_early_call_in_nested_function_graph_is_error_when_definition_captures():
    f = declare("F")

    @tf.function
    def outer(x):
        return f(x)

    outer(tf.constant(1))
    a = tf.constant(2, name="a")
    with pytest.raises(ValueError, match=r"'F' captures 'a:0'.*before 'F'.*define them before") as error:
        define("F", lambda n: n + a)
    assert "arguments" in str(error.value)


def test_early_call_in_nested_function_graph_runs_when_definition_captures_nothing(run):
    f = declare("F")
    x = tf1.placeholder(tf.int32, [])
    y = tf.cond(x > 0, lambda: f(x), lambda: -1)
    define("F", lambda n: tf.cond(n < 1, lambda: 0, lambda: f(n - 1) + 2))
    assert run(y, {x: 3}) == 6


# --- Variables ----------------------------------------------------------------------------------------------------


def test_captured_variable_is_read_when_body_runs(run, variable_kind, control_flow):
    w = tf1.get_variable("w", initializer=2.0)
    assign = w.assign(5.0)
    f = declare("F", tf.float32)
    define("F", lambda n: tf.cond(n < 1, lambda: 1.0, lambda: w * f(n - 1)))
    y = f(3)
    assert run(y) == 8
    run(assign)
    assert run(y) == 125


@pytest.mark.parametrize("by_value", [False, True])
def test_get_variable_in_body_makes_one_variable(run, variable_kind, by_value):
    f = declare("F", tf.float32)

    @tfr.Defun(tf.int32, func_name="F", out_names=["ret"], capture_resource_var_by_value=by_value)
    def F(n):
        with tf1.variable_scope("layer"):
            w = tf1.get_variable("w", [], initializer=tf1.constant_initializer(3.0))
            return tf.cond(n < 1, lambda: 1.0, lambda: w * f(n - 1))

    y = [F(2), f(3)]
    assert [v.name for v in tf1.trainable_variables()] == ["layer/w:0"]
    assert run(y) == [9, 27]
    run(tf1.assign(tf1.trainable_variables()[0], 2.0))
    assert run(y) == [4, 8]


def test_variable_created_in_body_is_made_once(run):
    f = declare("F", tf.float32)

    @tfr.Defun(tf.int32, func_name="F", out_names=["ret"])
    def F(n):
        w = tf.Variable(2.0)
        return tf.cond(n < 1, lambda: 0.0, lambda: w + f(n - 1))

    assert run(F(3)) == 6
    assert len(tf1.global_variables()) == 1


def test_variable_scope_of_first_call_holds_variables():
    f = tfr.Defun(tf.float32)(lambda x: x * tf1.get_variable("w", []))
    with tf1.variable_scope("outer"):
        f(1.0)
    f(2.0)
    assert [v.op.name for v in tf1.global_variables()] == ["outer/w"]


def test_body_sees_its_own_assignment(run, control_flow):
    total = tf1.get_variable("total", initializer=0, use_resource=True)
    f = declare("F")

    @tfr.Defun(tf.int32, func_name="F", out_names=["ret"])
    def F(n):
        with tf.control_dependencies([total.assign_add(n)]):
            return tf.cond(n < 1, lambda: total.read_value(), lambda: f(n - 1))

    y = F(4)
    assert run(y) == 10
    assert run(y) == 20


def test_variable_is_shared_when_several_functions_get_it(run):
    f, g = declare("F", tf.float32), declare("G", tf.float32)

    def weight():
        with tf1.variable_scope("shared", reuse=tf1.AUTO_REUSE):
            return tf1.get_variable("w", [], initializer=tf1.constant_initializer(2.0))

    define("F", lambda n: tf.cond(n < 1, lambda: 0.0, lambda: weight() + g(n - 1)))
    define("G", lambda n: tf.cond(n < 1, lambda: 1.0, lambda: weight() * f(n - 1)))
    y = f(4)
    assert len(tf1.global_variables()) == 1
    assert run(y) == 2 + 2 * (2 + 2 * 0.0)


# --- Misuse -------------------------------------------------------------------------------------------------------


def test_call_is_error_when_captured_tensor_is_of_another_graph():
    a = tf.constant(1, name="a")
    f = tfr.Defun(tf.int32, func_name="F")(lambda n: n + a)
    f(1)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="'F'.*'a:0'.*another graph"):
        f(1)


def test_call_is_error_when_captured_tensor_is_local_to_another_body():
    made = []

    @tfr.Defun(tf.int32, func_name="Outer")
    def Outer(n):
        made.append(tfr.Defun(tf.int32, func_name="Inner")(lambda m: m + n))
        return made[0](n)

    Outer(1)
    with pytest.raises(ValueError, match=r"'Inner'.*captures.*of the body of 'Outer', which is out of reach"):
        made[0](1)


def test_call_is_error_when_body_captures_what_another_body_computes():
    kept = []

    @tfr.Defun(tf.int32, func_name="Keeps")
    def Keeps(n):
        kept.append(n * 2)
        return n

    @tfr.Defun(tf.int32, func_name="Uses")
    def Uses(n):
        return Keeps(n) + kept[0]

    with pytest.raises(ValueError, match=r"of the body of 'Keeps', .* here; let 'Keeps' return it, or call 'Uses'"):
        Uses(1)


def test_trace_is_error_when_each_trace_captures_a_new_tensor():
    f = declare("F")

    @tfr.Defun(tf.int32, func_name="F", out_names=["ret"])
    def F(n):
        with tf.init_scope():
            fresh = tf.constant(1)
        return tf.cond(n < 1, lambda: 0, lambda: fresh + f(n - 1))

    with pytest.raises(ValueError, match=r"'F'.*new tensor.*outside of the body"):
        f(1)


def test_error_in_body_leaves_no_half_made_function(run):
    f, g, fail = declare("F"), declare("G"), [True]
    define("G", lambda n: f(n))

    @tfr.Defun(tf.int32, func_name="F", out_names=["ret"])
    def F(n):
        y = tf.cond(n < 1, lambda: 0, lambda: g(n - 1) + 1)
        if fail:
            raise RuntimeError("not yet")
        return y

    with pytest.raises(RuntimeError, match="not yet"):
        F(1)
    fail.clear()
    assert run(g(3)) == 3
