"""Declare and Defun: names, definitions, the registry of a graph, configuration and loading."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf
from small_functions import define_factorial, define_parity

import tensorflow_recursion as tfr
from tensorflow_recursion import function

tf1 = tf.compat.v1


# --- Calls and results --------------------------------------------------------------------------------------------


def test_recursion_returns_result_when_called_through_definition(run, fib, control_flow):
    assert run(fib(15)) == 610


def test_recursion_returns_result_when_called_through_declaration(run, control_flow):
    fac, _ = define_factorial()
    assert run(fac(10)) == 3628800


def test_module_alias_holds_same_objects():
    assert function.Declare is tfr.Declare
    assert function.Defun is tfr.Defun


def test_functions_call_each_other_when_mutually_recursive(run, control_flow):
    even, odd = define_parity()
    assert run([even(10), even(7), odd(7), odd(4)]) == [True, False, True, False]


def test_three_functions_form_a_cycle(run):
    names = ["A", "B", "C"]
    declared = [tfr.Declare(n, [("n", tf.int32)], [("ret", tf.int32)]) for n in names]

    def define(i):
        @tfr.Defun(tf.int32, func_name=names[i], out_names=["ret"])
        def Impl(n):
            return tf.cond(n < 1, lambda: i, lambda: declared[(i + 1) % 3](n - 1) + 10)

    for i in range(3):
        define(i)
    assert run([declared[0](0), declared[0](1), declared[0](5), declared[2](4)]) == [0, 11, 52, 40]


def declare_many(count):
    return [tfr.Declare(f"F{i}", [("n", tf.int32)], [("ret", tf.int32)]) for i in range(count)]


def define_cycle(count, captured=None):
    """Functions that count down, each by calling the next one; the last calls the first. The middle one captures."""
    declared = declare_many(count)

    def define(i):
        @tfr.Defun(tf.int32, func_name=f"F{i}", out_names=["ret"])
        def Impl(n):
            own = captured if captured is not None and i == count // 2 else 1
            return tf.cond(n < 1, lambda: 0, lambda: declared[(i + 1) % count](n - 1) + own)

        return Impl

    return declared, [define(i) for i in range(count)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("through", ["declaration", "definition"])
@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.thorough
def test_many_functions_form_a_cycle(run, session_config, through, captured):
    count = 150 if session_config == tfr.session_config() else 5
    declared, defined = define_cycle(count, tf.constant(100, name="hundred") if captured else None)
    y = (declared if through == "declaration" else defined)[0](2 * count)
    assert run(y) == 2 * count + (198 if captured else 0)
    assert all([t.name for t in f.captured_inputs] == ["hundred:0"] * captured for f in defined)


@pytest.mark.thorough
def test_many_functions_form_a_cycle_when_call_comes_first():
    y = declare_many(60)[0](3)
    define_cycle(60)
    with tf1.Session(config=tfr.session_config()) as session:
        assert session.run(y) == 3


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.thorough
def test_many_functions_form_a_chain(run, session_config, captured):
    count = 300 if session_config == tfr.session_config() else 5
    declared = declare_many(count)
    last = tf.constant(7) if captured else None
    traces = []

    def define(i):
        @tfr.Defun(tf.int32, func_name=f"F{i}", out_names=["ret"])
        def Impl(n):
            traces.append(i)
            if i + 1 < count:
                return declared[i + 1](n + 1)
            return n * last if captured else n * 7

    for i in range(count):
        define(i)
    assert run(declared[0](0)) == 7 * (count - 1)
    assert len(traces) <= (2 if captured else 1) * count


def test_result_is_tensor_tuple_or_operation_by_number_of_outputs():
    @tfr.Defun(tf.int32, func_name="One")
    def One(n):
        return n

    @tfr.Defun(tf.int32, func_name="Two")
    def Two(n):
        return n, n + 1

    @tfr.Defun(tf.int32, func_name="None_")
    def NoOutput(n):
        tf1.assert_positive(n)

    assert isinstance(One(1), tf.Tensor)
    assert isinstance(Two(1), tuple) and len(Two(1)) == 2
    assert isinstance(NoOutput(1), tf.Operation)


def test_several_outputs_recur(run):
    divmod_ = tfr.Declare("DivMod", [("a", tf.int32), ("b", tf.int32)], [("q", tf.int32), ("r", tf.int32)])

    @tfr.Defun(tf.int32, tf.int32, func_name="DivMod", out_names=["q", "r"])
    def DivModImpl(a, b):
        def step():
            q, r = divmod_(a - b, b)
            return q + 1, r

        return tf.cond(a < b, lambda: (0, a), step)

    assert run(DivModImpl(47, 5)) == (9, 2)


def test_zero_inputs_work(run):
    @tfr.Defun(func_name="Answer", out_names=["ret"])
    def Answer():
        return tf.constant(42)

    answer = tfr.Declare("Answer", [], [("ret", tf.int32)])
    assert run([Answer(), answer()]) == [42, 42]


def test_zero_outputs_run_for_their_effect(run, control_flow):
    count = tf1.get_variable("count", initializer=0, use_resource=True)
    tick = tfr.Declare("Tick", [("n", tf.int32)], [])

    @tfr.Defun(tf.int32, func_name="Tick")
    def TickImpl(n):
        with tf.control_dependencies([count.assign_add(1)]):
            tf.cond(n > 1, lambda: after(tick(n - 1)), lambda: tf.no_op())

    with tf.control_dependencies([TickImpl(5)]):
        done = tf.constant(True)
    assert run(done)
    assert run(count) == 5


def after(op):
    with tf.control_dependencies([op]):
        return tf.no_op()


def test_zero_outputs_run_when_operation_itself_is_fetched(run):
    count = tf1.get_variable("count", initializer=0, use_resource=True)

    @tfr.Defun(func_name="Bump")
    def Bump():
        count.assign_add(1)

    op = Bump()
    run(op)
    run(op)
    assert run(count) == 2


def test_result_is_right_when_output_is_argument_or_given_twice(run):
    @tfr.Defun(tf.int32, func_name="Same", out_names=["a", "b", "c"])
    def Same(n):
        m = n + 1
        return n, m, m

    assert run(Same(3)) == (3, 4, 4)


def test_python_value_is_returned_in_declared_dtype(run):
    f = tfr.Declare("F", [], [("a", tf.int64), ("b", tf.float64)])

    @tfr.Defun(func_name="F")
    def F():
        return 1, 2

    assert [t.dtype for t in f()] == [tf.int64, tf.float64]
    assert run(f()) == (1, 2.0)


# --- Order of declaration, definition and call --------------------------------------------------------------------


def test_call_is_resolved_when_definition_comes_later(run):
    fac = tfr.Declare("Fac", [("n", tf.int64)], [("ret", tf.int64)])
    y = fac(5)
    define_factorial()
    assert run(y) == 120


def test_call_is_resolved_when_definition_of_callee_comes_later(run):
    even = tfr.Declare("Even", [("n", tf.int32)], [("ret", tf.bool)])
    y = even(9)
    define_parity()
    assert run(y) == False  # noqa: E712


def test_declaration_may_follow_definition(run):
    @tfr.Defun(tf.int32, func_name="Double", out_names=["ret"])
    def Double(n):
        return n * 2

    double = tfr.Declare("Double", [("n", tf.int32)], [("ret", tf.int32)])
    assert run(double(Double(3))) == 12


def test_same_declaration_twice_is_accepted():
    for _ in range(2):
        tfr.Declare("F", [("n", tf.int32)], [("ret", tf.int32)])


def test_body_is_traced_once_when_nothing_is_captured():
    traces = []
    fac = tfr.Declare("Fac", [("n", tf.int32)], [("ret", tf.int32)])

    @tfr.Defun(tf.int32, func_name="Fac", out_names=["ret"])
    def FacImpl(n):
        traces.append(1)
        return tf.cond(n < 2, lambda: 1, lambda: n * fac(n - 1))

    assert not traces
    fac(3), FacImpl(4), FacImpl.definition, FacImpl.add_to_graph(tf1.get_default_graph())
    assert len(traces) == 1


def test_direct_self_call_works_when_function_is_declared(run):
    tfr.Declare("Sum", [("n", tf.int32)], [("ret", tf.int32)])

    @tfr.Defun(tf.int32, func_name="Sum", out_names=["ret"])
    def SumImpl(n):
        return tf.cond(n < 1, lambda: 0, lambda: n + SumImpl(n - 1))

    assert run(SumImpl(4)) == 10


def test_functions_call_other_functions_and_nest(run, fib):
    fac, _ = define_factorial()

    @tfr.Defun(tf.int64, func_name="FibOfFac", out_names=["ret"])
    def FibOfFac(n):
        return fib(tf.cast(fac(n), tf.int32))

    assert run([fac(fac(3)), FibOfFac(3)]) == [720, 8]


def test_functions_may_be_added_when_session_has_run(run, fib):
    assert run(fib(5)) == 5
    fac, FacImpl = define_factorial()
    assert run([fac(4), fib(6)]) == [24, 8]


def test_definition_is_seen_when_it_comes_after_first_run(run):
    x = tf1.placeholder(tf.int32, [])
    f, g = declare_many(2)
    y, z = f(x), g(3)
    other = tf.constant(1)
    assert run(other) == 1
    with pytest.raises(tf.errors.OpError, match="F0"):
        run(y, {x: 3})

    @tfr.Defun(tf.int32, func_name="F0", out_names=["ret"])
    def F(n):
        return tf.cond(n < 1, lambda: 0, lambda: g(n))

    assert run(other) == 1

    @tfr.Defun(tf.int32, func_name="F1", out_names=["ret"])
    def G(n):
        return f(n - 1) + 7

    assert run(y, {x: 3}) == 21
    assert run([y, z], {x: 2}) == [14, 21]


def test_definition_in_another_graph_is_seen_when_it_comes_after_first_run(session_config):
    fac = tfr.Declare("Fac", [("n", tf.int64)], [("ret", tf.int64)])
    with tf.Graph().as_default() as other:
        y = fac(4)
        one = tf.constant(1)
    with tf1.Session(graph=other, config=session_config) as session:
        session.run(one)
        define_factorial()
        assert session.run(y) == 24
