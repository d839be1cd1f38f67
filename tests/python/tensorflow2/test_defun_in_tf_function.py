"""Declare and Defun in TensorFlow 2: defined in eager mode, called in tf.functions."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf
from switches import control_flow_v2

import tensorflow_recursion as tfr


def scaled_sum(name, factor):
    """x + factor * (n terms), as a Defun that captures an eager tensor."""
    declared = tfr.Declare(name, [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])

    @tfr.Defun(tf.float32, tf.int32, func_name=name, out_names=["y"])
    def Impl(x, n):
        return tf.cond(n < 1, lambda: x, lambda: factor + declared(x, n - 1))

    return Impl


def test_defun_is_called_in_several_tf_functions():
    summed = scaled_sum("Summed", tf.constant(2.0))

    @tf.function
    def once(n):
        return summed(1.0, n)

    @tf.function
    def twice(n):
        return summed(1.0, n) + summed(10.0, n + 1)

    assert float(once(tf.constant(3))) == 7.0
    assert float(twice(tf.constant(3))) == 7.0 + 18.0
    assert float(once(tf.constant(4))) == 9.0


def test_functions_of_one_name_in_two_graphs_do_not_meet():
    """In eager mode all tf.functions share one library of functions."""

    def make(factor):
        @tf.function
        def call(n):
            return scaled_sum("Shared", tf.constant(factor))(1.0, n)

        return call

    first, second = make(2.0), make(3.0)
    assert float(first(tf.constant(2))) == 5.0
    assert float(second(tf.constant(2))) == 7.0
    assert float(first(tf.constant(4))) == 9.0


def test_tf_function_is_called_in_another_one():
    summed = scaled_sum("Nested", tf.constant(2.0))

    @tf.function
    def inner(n):
        return summed(1.0, n)

    @tf.function
    def outer(n):
        return inner(n) + summed(0.0, n)

    assert float(outer(tf.constant(3))) == 13.0
    assert float(inner(tf.constant(3))) == 7.0


def test_body_captures_tensors_of_the_tf_function_around_it():
    @tf.function
    def call(factor, n):
        return scaled_sum("Capturing", factor)(1.0, n)

    assert float(call(tf.constant(2.0), tf.constant(3))) == 7.0
    assert float(call(tf.constant(3.0), tf.constant(3))) == 10.0


def test_calls_in_eager_mode_run():
    summed = scaled_sum("Eager", tf.constant(2.0))
    assert float(summed(1.0, 3)) == 7.0
    assert float(tfr.Declare("Eager", [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])(1.0, 2)) == 5.0
    with pytest.raises(TypeError, match="Call of 'Eager': argument 1 .'n'. is float32, the function takes int32"):
        summed(1.0, tf.constant(3.0))
    with pytest.raises(TypeError, match="Call of 'Eager': got 1 argument. Expected 2"):
        summed(1.0)


def test_eager_call_of_function_without_outputs_runs_for_its_side_effects():
    counter = tf.Variable(0)

    @tfr.Defun(tf.int32, func_name="Count")
    def count(n):
        counter.assign_add(n)

    assert count(3) is None
    assert int(counter) == 3


def test_eager_call_without_input_types_goes_by_the_arguments():
    @tfr.Defun()
    def Twice(x):
        return x + x

    assert float(Twice(1.5)) == 3.0
    assert int(Twice(2)) == 4


def test_variables_and_several_outputs_pass_through_eager_calls():
    variable = tf.Variable([1.0, 2.0])

    @tfr.Defun(tf.resource, tf.TensorSpec([2], tf.float32), func_name="Through")
    def Through(handle, x):
        tf.raw_ops.AssignAddVariableOp(resource=handle, value=x)
        return x * 2.0, x[0]

    doubled, first = Through(variable, [3.0, 4.0])
    assert doubled.numpy().tolist() == [6.0, 8.0]
    assert float(first) == 3.0
    assert variable.numpy().tolist() == [4.0, 6.0]


def test_conditional_in_defun_is_v2_in_tf_function_when_switched_off():
    """It is v2 in a tf.function: what TensorFlow makes of a v1 conditional never ends there."""
    with control_flow_v2(False):
        summed = scaled_sum("SummedV1", tf.constant(2.0))
        assert float(tf.function(lambda n: summed(1.0, n))(tf.constant(3))) == 7
        assert float(summed(1.0, 4)) == 9


def test_call_in_a_branch_before_a_definition_that_captures_a_variable_is_an_error(caplog):
    variable = tf.Variable(2.0)

    @tf.function
    def step(x):
        declared = tfr.Declare("Late", [("x", tf.float32)], [("y", tf.float32)])
        y = tf.cond(x > 0.0, lambda: declared(x), lambda: x)
        tfr.Defun(tf.float32, func_name="Late", out_names=["y"])(lambda x: x * variable)
        return y + declared(x)

    with pytest.raises(ValueError, match="Function 'Late' captures a variable, but node .* in a nested function graph"):
        step(tf.constant(1.0))
    assert "AutoGraph could not transform" not in caplog.text  # code of this package
