"""Names and shapes of functions, and the graphs that have them."""
# SPDX-License-Identifier: Apache-2.0

import functools
import gc
import weakref

import pytest
import tensorflow as tf
from small_functions import define_factorial

import tensorflow_recursion as tfr

tf1 = tf.compat.v1


def library_names(graph):
    return [f.signature.name for f in graph.as_graph_def().library.function]


# --- Names --------------------------------------------------------------------------------------------------------


def test_name_is_users_and_equals_definition():
    _, FacImpl = define_factorial("my.Fac")
    assert FacImpl.name == FacImpl.definition.signature.name == "my.Fac"


@pytest.mark.parametrize("name", ["Sum", "Add", "Identity"])
def test_function_runs_when_name_is_an_operator(run, name):
    fac, FacImpl = define_factorial(name)
    y = tf.reduce_sum(tf.stack([fac(4), FacImpl(5)]))
    assert FacImpl.name == FacImpl.definition.signature.name != name
    assert fac.name == FacImpl.name
    assert run(y) == 144


@pytest.mark.parametrize("name", ["Sum", "Add"])
def test_messages_call_a_function_as_the_user_does_when_that_is_an_operator(run, name):
    call = tfr.Declare(name, [("n", tf.int32)], [("r", tf.int32)], output_shapes=[[2]])
    tfr.Defun(tf.int32, func_name=name, out_names=["r"])(lambda n: tf.cond(n < 1, lambda: n, lambda: call(n - 1)[0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"Function '{name}': output 0 does not have the shape"):
        run(call(0))
    x = tf1.placeholder_with_default([1.0], None)
    square = tfr.Defun(tf.float32, func_name="Square", output_shapes=[[]], create_grad_func=True)(lambda x: x * x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Function 'Square': output 0 does not have the shape"):
        y = square(x)
        run([y, tf.gradients(y, x)[0]])
    lost = tfr.Declare("Max", [("n", tf.int32)], [("r", tf.int32)])
    with pytest.raises(ValueError, match=r"lost in a call of 'Max', .* in the Declare or Defun of 'Max', or give"):
        tf.while_loop(lambda n: n > 0, lost, [tf.constant(3)])


def test_call_node_is_one_invoke_named_as_asked(fib):
    y = fib(3)
    assert (y.op.type, y.op.name) == ("Recursion>Invoke", "Fib")
    assert y.op.get_attr("f").name == "Fib"
    assert fib(3, name="again").op.name == "again"
    with tf.name_scope("scope"):
        assert fib(3).op.name == "scope/Fib"


def test_unnamed_functions_have_distinct_names(run):
    def make(k):
        @tfr.Defun(tf.int32)
        def scale(n):
            return n * k

        return scale

    twice, thrice = make(2), make(3)
    assert twice.name != thrice.name
    assert run([twice(5), thrice(5)]) == [10, 15]


def test_lambda_may_be_a_function(run):
    assert run(tfr.Defun(tf.int32)(lambda _: tf.constant(1))(7)) == 1


class Doubling:
    def __call__(self, n):
        return n * 2

    def method(self, n):
        return n * 2


@pytest.mark.every_case
@pytest.mark.parametrize("types", [[tf.int32], []], ids=["stated", "of_the_call"])
@pytest.mark.parametrize(
    "function",
    [functools.partial(lambda k, n: n * k, 2), Doubling(), functools.partial(Doubling()), Doubling().method],
    ids=["partial", "object", "partial_of_object", "method"],
)
def test_whatever_can_be_called_may_be_a_function(function, types):
    with tf1.Session() as session:
        doubled, again = tfr.Defun(*types)(function), tfr.Defun(*types)(function)
        assert session.run([doubled(2), again(3)]) == [4, 6]
        outer = tfr.Defun(tf.int32)(lambda n: tfr.Defun(*types)(function)(n) + 1)
        assert session.run(outer(2)) == 5


def test_overloads_follow_arguments_when_input_types_are_omitted(run):
    @tfr.Defun(func_name="Twice")
    def Twice(x):
        return x + x

    a, b = Twice(tf.constant(2)), Twice(tf.constant("ab"))
    assert (a.dtype, b.dtype) == (tf.int32, tf.string)
    assert run([a, b, Twice(tf.constant(4))]) == [4, b"abab", 8]


def test_varargs_take_stated_types(run):
    @tfr.Defun(tf.int32, tf.int32, tf.int32)
    def total(*xs):
        return tf.add_n(xs)

    assert run(total(1, 2, 3)) == 6


def test_options_become_attributes_of_function():
    @tfr.Defun(tf.int32, noinline=True, experimental_tag="x")
    def f(n):
        return n

    attributes = f.definition.attr
    assert attributes["_noinline"].b and attributes["experimental_tag"].s == b"x"


def test_gradient_settings_are_kept():
    grad = lambda op, g: g

    @tfr.Defun(tf.float32, python_grad_func=grad, create_grad_func=True)
    def f(x):
        return x

    assert f.python_grad_func is grad and f.create_grad_func is True
    assert f.declared_input_types == [tf.float32]
    assert f.captured_inputs == []


# --- Shapes -------------------------------------------------------------------------------------------------------


def test_output_shape_is_unknown_when_not_stated(fib):
    assert fib(3).shape.rank is None


@pytest.mark.parametrize("by", ["declare", "defun"])
def test_output_shape_is_known_when_stated(by):
    shapes = [[], None]
    f = tfr.Declare(
        "F", [("x", tf.int32)], [("a", tf.int32), ("b", tf.int32)], output_shapes=shapes if by == "declare" else None
    )

    @tfr.Defun(tf.int32, func_name="F", output_shapes=shapes if by == "defun" else None)
    def F(x):
        return tf.reduce_sum(x), x

    for a, b in (f([1, 2]), F([1, 2])):
        assert a.shape == [] and b.shape.rank is None


def test_shape_func_sets_shapes_of_call():
    @tfr.Defun(tf.int32, shape_func=lambda op: [op.inputs[0].shape])
    def f(x):
        return x + 1

    assert f([1, 2, 3]).shape == [3]


# --- Several graphs -----------------------------------------------------------------------------------------------


def test_functions_of_one_name_stay_apart_when_graphs_differ(session_config):
    def fill(step):
        f = tfr.Declare("F", [("n", tf.int32)], [("ret", tf.int32)])

        @tfr.Defun(tf.int32, func_name="F", out_names=["ret"])
        def F(n):
            return tf.cond(n < 1, lambda: 0, lambda: step + f(n - 1))

        return f(3)

    graphs = {1: tf.Graph(), 2: tf.Graph()}
    outputs = {}
    for step, graph in graphs.items():
        with graph.as_default():
            outputs[step] = fill(step)
    for step, graph in reversed(graphs.items()):
        with tf1.Session(graph=graph, config=session_config) as session:
            assert session.run(outputs[step]) == 3 * step


@pytest.mark.parametrize("through", ["declaration", "definition", "add_to_graph"])
def test_function_runs_in_another_graph_with_all_it_calls(session_config, through):
    fac, FacImpl = define_factorial()

    @tfr.Defun(tf.int64, func_name="Twice", out_names=["ret"])
    def TwiceImpl(n):
        return fac(n) * 2

    twice = tfr.Declare("Twice", [("n", tf.int64)], [("ret", tf.int64)])
    other = tf.Graph()
    if through == "add_to_graph":
        TwiceImpl.add_to_graph(other)
        assert {"Twice", "Fac"} <= set(library_names(other))
    with other.as_default():
        y = TwiceImpl(5) if through == "definition" else twice(5)
        with tf1.Session(config=session_config) as session:
            assert session.run(y) == 240


def test_call_in_another_graph_is_resolved_when_definition_comes_later(session_config):
    fac = tfr.Declare("Fac", [("n", tf.int64)], [("ret", tf.int64)])
    other = tf.Graph()
    with other.as_default():
        y = fac(4)
    define_factorial()
    with tf1.Session(graph=other, config=session_config) as session:
        assert session.run(y) == 24


def test_definition_outlives_its_graph(session_config):
    with tf.Graph().as_default():
        fac, _ = define_factorial()
    gc.collect()
    with tf.Graph().as_default(), tf1.Session(config=session_config) as session:
        assert session.run(fac(4)) == 24


def test_graph_is_freed_when_unused():
    def build():
        with tf.Graph().as_default() as graph:
            weight = tf.constant(2)
            F = tfr.Defun(tf.int32, func_name="F")(lambda n: n * weight)
            F(1)
            return weakref.ref(graph)

    dead = build()
    gc.collect()
    assert dead() is None


def test_add_to_graph_adds_every_function_once(fib):
    graph = tf1.get_default_graph()
    fib.add_to_graph(graph)
    names = library_names(graph)
    fib.add_to_graph(graph)
    assert library_names(graph) == names
    assert "Fib" in names


def test_definition_holds_declared_names(fib):
    signature = fib.definition.signature
    assert [a.name for a in signature.input_arg] == ["n"]
    assert [a.name for a in signature.output_arg] == ["ret"]
