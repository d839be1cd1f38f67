"""Functions of one name that a body makes on several of its paths, some of which a look at the body leaves out."""
# SPDX-License-Identifier: Apache-2.0

import functools

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

PROGRAMS = {}


def program(*, last=(3.0,), inner=(2.0,)):
    """Adds a program: the values of variables that the end of the recursion multiplies by, and each level above it."""

    def add(make):
        PROGRAMS[make.__name__] = (make, dict.fromkeys(last, 1) | dict.fromkeys(inner, 2))
        return make

    return add


def variable(name, value):
    return tf1.get_variable(name, [], initializer=tf1.constant_initializer(value), use_resource=True)


def unnamed(name, value):
    return tf.Variable(value)


@program()
def branches_of_an_if(variable):
    @tfr.recursive
    def outer(n, x):
        if n > 0:
            y = outer(n - 1, x)

            @tfr.recursive
            def helper(z):
                return z * variable("inner", 2.0)

            y = helper(y)
        else:

            @tfr.recursive
            def helper(z):
                return z * variable("last", 3.0)

            y = helper(x)
        return y

    return outer


@program()
def functions_that_call_themselves(variable):
    @tfr.recursive
    def outer(n, x):
        def deeper():
            y = outer(n - 1, x)

            @tfr.recursive
            def helper(m, z):
                factor = variable("inner", 2.0)
                return z * factor if m < 1 else helper(m - 1, z)

            return helper(n, y)

        def end():
            @tfr.recursive
            def helper(m, z):
                factor = variable("last", 3.0)
                return z * factor if m < 1 else helper(m - 1, z)

            return helper(n + 2, x)

        return tf.cond(n > 0, deeper, end)

    return outer


@program()
def made_by_one_function(variable):
    def made(name, value):
        @tfr.recursive
        def helper(z):
            return z * variable(name, value)

        return helper

    @tfr.recursive
    def outer(n, x):
        if n > 0:
            y = outer(n - 1, x)
            return made("inner", 2.0)(y)
        return made("last", 3.0)(x)

    return outer


@program()
def lambdas_of_one_line(variable):
    two, three = functools.partial(variable, "inner", 2.0), functools.partial(variable, "last", 3.0)
    made = tfr.recursive(autograph=False)

    @tfr.recursive(autograph=False)
    def outer(n, x):
        return tf.cond(
            n > 0, lambda: made(lambda z: z * two())(outer(n - 1, x)), lambda: made(lambda z: z * three())(x)
        )

    return outer


@program()
def without_a_line_of_their_own(variable):
    def scaled(name, value, z):
        return z * variable(name, value)

    class Scaled:
        def __init__(self, name, value):
            self.name, self.value = name, value

        def __call__(self, z):
            return scaled(self.name, self.value, z)

    @tfr.recursive
    def outer(n, x):
        if n > 0:
            y = outer(n - 1, x)
            return tfr.recursive(functools.partial(scaled, "inner", 2.0), name="one")(y)
        return tfr.recursive(Scaled("last", 3.0), name="one")(x)

    return outer


@program(inner=(5.0, 7.0))
def in_a_loop(variable):
    @tfr.recursive
    def outer(n, x):
        def deeper():
            y = outer(n - 1, x)
            for name, value in (("first", 5.0), ("second", 7.0)):

                @tfr.recursive
                def helper(z, name=name, value=value):
                    return z * variable(name, value)

                y = helper(y)
            return y

        def end():
            y = x
            for name, value in (("last", 3.0),):

                @tfr.recursive
                def helper(z, name=name, value=value):
                    return z * variable(name, value)

                y = helper(y)
            return y

        return tf.cond(n > 0, deeper, end)

    return outer


@program(last=(3.0, 5.0), inner=(2.0, 7.0))
def nested(variable):
    def around(name, value, name_of_inner, value_of_inner):
        @tfr.recursive
        def helper(k, z):
            if k > 0:
                deeper = helper(k - 1, z)
                inner = tfr.recursive(lambda z: z * variable(name_of_inner, value_of_inner), name="inner")
                return inner(deeper)
            inner = tfr.recursive(lambda z: z * variable(name, value), name="inner")
            return inner(z)

        return helper

    @tfr.recursive
    def outer(n, x):
        if n > 0:
            y = outer(n - 1, x)
            return around("last_in_inner", 7.0, "inner_in_inner", 2.0)(tf.constant(1), y)
        return around("last_in_last", 3.0, "inner_in_last", 5.0)(tf.constant(1), x)

    return outer


@program()
def one_function_for_arguments_of_two_kinds(variable):
    @tfr.recursive
    def outer(n, x):
        @tfr.recursive
        def helper(z):
            is_last = z.shape.rank == 1
            return z * variable(*(("last", 3.0) if is_last else ("inner", 2.0)))

        if n > 0:
            y = outer(n - 1, x)
            return helper(y)
        return helper(x[tf.newaxis])[0]

    return outer


@program()
def one_function_for_two_python_values(variable):
    @tfr.recursive
    def outer(n, x):
        @tfr.recursive
        def helper(z, is_last):
            return z * (variable("last", 3.0) if is_last else variable("inner", 2.0))

        if n > 0:
            y = outer(n - 1, x)
            return helper(y, False)
        return helper(x, True)

    return outer


@program(last=())
def argument_whose_shape_turns_out_to_be_open(variable):
    """The first trace takes `outer` to return one number, the second one to return any tensor."""

    @tfr.recursive
    def outer(n, x):
        @tfr.recursive
        def helper(z):
            return z * variable("inner", 2.0)

        if n > 0:
            y = outer(n - 1, x)
            return helper(y)[tf.newaxis]
        return x

    return lambda n, x: tf.reduce_sum(outer(n, x))


@program()
def defuns(variable):
    @tfr.recursive
    def outer(n, x):
        if n > 0:
            y = outer(n - 1, x)
            return tfr.Defun(tf.float32)(lambda z: z * variable("inner", 2.0))(y)
        return tfr.Defun(tf.float32)(lambda z: z * variable("last", 3.0))(x)

    return outer


@program()
def variables_of_one_line(variable):
    """No functions, but what holds for them holds for variables."""

    @tfr.recursive(autograph=False)
    def outer(n, x):
        return tf.cond(n > 0, lambda: outer(n - 1, x) * variable("inner", 2.0), lambda: x * variable("last", 3.0))

    return outer


@pytest.mark.thorough
@pytest.mark.sampled(8)
@pytest.mark.parametrize("variable", [variable, unnamed], ids=["get_variable", "Variable"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_functions_made_on_several_paths_have_variables_of_their_own(name, variable):
    """A look comes to the last path alone, the trace to that of the recursion first."""
    make, uses = PROGRAMS[name]
    expected = np.prod([value**times for value, times in uses.items()])
    with tf.Graph().as_default():
        y = make(variable)(tf.constant(2), tf.constant(1.0))
        variables = tf1.trainable_variables()
        gradients = tf.gradients(y, variables)
        with tf1.Session(config=tfr.session_config(on_fallback="error")) as session:
            session.run(tf1.global_variables_initializer())
            result, values, slopes = session.run([y, variables, gradients])
    assert sorted(values) == sorted(uses)
    assert result == expected
    np.testing.assert_allclose(slopes, [uses[value] * expected / value for value in values])
