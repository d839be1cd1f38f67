"""What `tfr.recursive` takes and returns, when it traces, and in which order side effects happen."""
# SPDX-License-Identifier: Apache-2.0

import collections
import gc
import inspect
import typing
import weakref

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

Pair = collections.namedtuple("Pair", ["a", "b"])


@pytest.fixture(params=["eager", "tf.function"])
def called(request):
    """Calls a function eagerly, or in a tf.function."""
    return (lambda func: func()) if request.param == "eager" else (lambda func: tf.function(func)())


# --- Arguments and results ----------------------------------------------------------------------------------------


def test_ragged_and_sparse_tensors_are_taken_and_returned(called):
    @tfr.recursive
    def doubled(ragged, sparse, n):
        if n < 1:
            return ragged, sparse
        return doubled(ragged * 2, tf.sparse.add(sparse, sparse), n - 1)

    ragged, sparse = tf.ragged.constant([[1], [2, 3]]), tf.sparse.from_dense([[0, 1], [2, 0]])
    got = called(lambda: doubled(ragged, sparse, tf.constant(2)))
    assert got[0].to_list() == [[4], [8, 12]]
    assert tf.sparse.to_dense(got[1]).numpy().tolist() == [[0, 4], [8, 0]]


def test_ragged_rows_are_sorted_by_recursion(called):
    @tfr.recursive
    def quicksort(x):
        if tf.size(x) <= 1:
            return x
        pivot, rest = x[0], x[1:]
        return tf.concat([quicksort(rest[rest < pivot]), [pivot], quicksort(rest[rest >= pivot])], 0)

    rows = tf.ragged.constant([[3, 1, 2], [], [2, 2, 1, 5]], dtype=tf.int32)
    got = called(lambda: tf.map_fn(quicksort, rows))
    assert got.to_list() == [[1, 2, 3], [], [1, 2, 2, 5]]


def test_lists_of_tensors_are_taken_and_returned():
    @tfr.recursive
    def squares(n, found):
        if n < 0:
            return found
        return squares(n - 1, found.write(n, n * n))

    @tf.function
    def call(n):
        return squares(n, tf.TensorArray(tf.int32, 4)).stack()

    assert call(tf.constant(3)).numpy().tolist() == [0, 1, 4, 9]


def test_variables_are_taken_by_reference(called):
    @tfr.recursive
    def count(variable, other, n):
        if n > 0:
            variable.assign_add(other)
            count(variable, other, n - 1)

    variable, other = tf.Variable(1.0), tf.Variable(2.0)
    assert called(lambda: count(variable, other, tf.constant(3))) is None
    assert float(variable) == 7.0
    assert called(lambda: count(variable, variable, tf.constant(2))) is None
    assert float(variable) == 28.0


def test_keyword_only_arguments_are_taken_in_any_order(called):
    variable = tf.Variable(1.0)

    @tfr.recursive
    def power(n, *, variable, base, added):
        if n == 0:
            return added + variable
        return base * power(n - 1, added=added, variable=variable, base=base)

    value = called(lambda: power(tf.constant(3), variable=variable, added=tf.constant(1.0), base=tf.constant(2.0)))
    assert float(value) == 16.0


def test_strings_and_bools_pass_through(called):
    @tfr.recursive
    def reverse(text, is_loud):
        if tf.strings.length(text) == 0:
            return text, not is_loud
        rest, was_loud = reverse(tf.strings.substr(text, 1, -1), is_loud)
        return rest + tf.strings.substr(text, 0, 1), was_loud

    text, is_loud = called(lambda: reverse(tf.constant("abc"), tf.constant(True)))
    assert (text.numpy(), bool(is_loud)) == (b"cba", False)


def test_python_values_are_static_arguments():
    seen = []

    @tfr.recursive
    def tower(x, kind, depth):
        seen.append((kind, depth))
        if depth == 0:
            return x
        inner = tower(x, kind, depth - 1)
        return inner * 2.0 if kind == "double" else inner + 1.0

    assert float(tower(tf.constant(1.0), "double", 3)) == 8.0
    assert float(tower(tf.constant(1.0), kind="more", depth=2)) == 3.0
    assert set(seen) == {
        ("double", 3),
        ("double", 2),
        ("double", 1),
        ("double", 0),
        ("more", 2),
        ("more", 1),
        ("more", 0),
    }


def test_none_in_a_result_stays(called):
    @tfr.recursive
    def chain(n):
        value = n if n < 1 else chain(n - 1)["value"]
        return {"value": value, "nothing": None}

    assert called(lambda: chain(tf.constant(2)))["nothing"] is None


def test_shapes_of_results_are_static():
    @tfr.recursive
    def grow(x, n):
        if n < 1:
            return x, tf.reduce_sum(x, 1)
        longer, total = grow(x, n - 1)
        return tf.concat([longer, x], 0), total

    shapes = []

    @tf.function
    def call(n):
        longer, total = grow(tf.ones([2, 3]), n)
        shapes.append((longer.shape.as_list(), total.shape.as_list()))
        return tf.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s + grow(tf.ones([2, 3]), i)[1]), [0, total])[1]

    assert call(tf.constant(2)).numpy().tolist() == [9.0, 9.0]
    assert shapes == [([None, 3], [2])]


def test_shapes_stay_beside_a_stated_shape_invariant(called):
    """AutoGraph states one for each variable of the loop then, None for those of which the user has stated none."""

    @tfr.recursive
    def search(node, seen, order, children):
        if seen[node]:
            return seen, order
        seen = tf.tensor_scatter_nd_update(seen, [[node]], [True])
        for child in children[node]:
            tf.autograph.experimental.set_loop_options(shape_invariants=[(order, tf.TensorShape([None]))])
            seen, order = search(child, seen, order, children)
        return seen, tf.concat([order, [node]], 0)

    children = tf.ragged.constant([[1, 2], [3], [3], []], dtype=tf.int32)
    seen, order = called(lambda: search(tf.constant(0), tf.zeros([4], tf.bool), tf.zeros([0], tf.int32), children))
    assert seen.numpy().tolist() == [True] * 4
    assert order.numpy().tolist() == [3, 1, 2, 0]


# --- Traces -------------------------------------------------------------------------------------------------------


def test_recursion_on_shorter_slices_ends_with_two_kinds_of_arguments():
    shapes = []

    @tfr.recursive
    def total(x):
        shapes.append(str(x.shape))  # x.shape[0], where Python reads it, would be known in each trace
        if len(x) == 0:
            return 0.0
        return x[0] + total(x[1:])

    assert float(total(tf.constant([1.0, 2.0, 3.0, 4.0]))) == 10.0
    assert set(shapes) == {"(4,)", "(None,)"}


def test_eager_calls_are_traced_once_for_each_kind_of_arguments():
    @tfr.recursive
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    for n in range(5):
        fib(tf.constant(n))
    assert fib.experimental_get_tracing_count() == 1
    fib(tf.constant(3, tf.int64))
    assert fib.experimental_get_tracing_count() == 2


def test_calls_in_a_tf_function_are_traces_too():
    @tfr.recursive
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    both = tf.function(lambda n: fib(n) + fib(n + 1))
    for n in range(5):
        both(tf.constant(n))
    assert fib.experimental_get_tracing_count() == 1
    both(tf.constant(3, tf.int64))
    assert fib.experimental_get_tracing_count() == 2


def test_function_has_what_a_tf_function_has():
    signature = [tf.TensorSpec([], tf.int32, "n")]

    @tfr.recursive(input_signature=signature)
    def fib(n: tf.Tensor) -> tf.Tensor:
        """Fibonacci's numbers."""
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    assert fib.input_signature == signature
    assert fib.__name__ == "fib"
    assert fib.__doc__ == "Fibonacci's numbers."
    assert typing.get_type_hints(fib) == {"n": tf.Tensor, "return": tf.Tensor}
    concrete = fib.get_concrete_function()
    assert int(concrete(tf.constant(7))) == 13
    assert "n (POSITIONAL_OR_KEYWORD): TensorSpec(shape=(), dtype=tf.int32" in fib.pretty_printed_signature()


def test_method_says_what_its_function_says():
    class Net(tf.Module):
        @tfr.recursive
        def depth(self, n: tf.Tensor) -> tf.Tensor:
            """How deep it goes."""
            return 0 if n < 1 else self.depth(n - 1) + 1

    method = Net().depth
    assert (method.__name__, method.__doc__) == ("depth", "How deep it goes.")
    assert str(inspect.signature(method)).startswith("(n: ")
    assert typing.get_type_hints(method) == {"n": tf.Tensor, "return": tf.Tensor}


def test_function_is_defined_anew_when_its_definition_runs_again():
    def cell(factor):
        @tfr.recursive
        def power(n):
            return 1 if n < 1 else factor * power(n - 1)

        return power

    first, again = cell(2), cell(3)
    calls = tf.function(lambda n: (first(n), again(n)))
    assert [int(y) for y in calls(tf.constant(3))] == [8, 27]
    assert int(first(tf.constant(4))) == 16


def test_function_works_in_several_graphs_and_modes():
    @tfr.recursive
    def fac(n):
        return 1 if n < 1 else n * fac(n - 1)

    assert int(fac(tf.constant(3))) == 6
    for config in (tfr.session_config(on_fallback="error"), None):
        with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
            assert session.run(fac(tf.constant(4))) == 24
    assert int(tf.function(fac)(tf.constant(5))) == 120
    numbers = tf.data.Dataset.from_tensor_slices([0, 1, 2, 3])
    assert list(numbers.map(fac).as_numpy_iterator()) == [1, 1, 2, 6]


# --- Methods ------------------------------------------------------------------------------------------------------


class Scale(tf.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = tf.Variable(factor)

    @tfr.recursive
    def power(self, x, n):
        """x * factor^n"""
        if n < 1:
            return x
        return self.power(x, n - 1) * self.factor


def test_method_is_of_its_object(called):
    two, three = Scale(2.0), Scale(3.0)
    x, n = tf.constant(1.0), tf.constant(3)
    assert float(called(lambda: two.power(x, n))) == 8.0
    assert float(called(lambda: three.power(x, n))) == 27.0
    assert float(Scale(5.0).power(x, n)) == 125.0
    two.factor.assign(4.0)
    assert float(two.power(x, n)) == 64.0


class Polynomials(tf.Module):
    """Methods that call one another, and read variables."""

    def __init__(self):
        super().__init__()
        self.factor, self.offset = tf.Variable(2.0), tf.Variable(1.0)

    @tfr.recursive
    def chain(self, x, n):
        """f(f(.. x)), f(x) = factor * x + offset; and how often f is called"""
        if n < 1:
            return x, 0
        y, count = self.chain(x, n - 1)
        return self.factor * y + self.offset, count + 1

    @tfr.recursive
    def all_up_to(self, x, n):
        """chain(x, 1) + chain(x, 2) + .. + chain(x, n); neither path is known before `chain` is"""
        if n < 2:
            return self.chain(x, n)[0]
        return self.all_up_to(x, n - 1) + self.chain(x, n)[0]


def test_methods_call_one_another_and_read_variables(called):
    module = Polynomials()
    # 3 * 2 + 1 = 7, 15, 31, of which it is the sum
    assert float(called(lambda: module.all_up_to(tf.constant(3.0), tf.constant(3)))) == 53.0
    module.offset.assign(0.0)
    assert float(called(lambda: module.all_up_to(tf.constant(3.0), tf.constant(3)))) == 42.0


def test_gradient_goes_through_methods_that_call_one_another(called):
    module = Polynomials()

    def gradient():
        with tf.GradientTape() as tape:
            y = module.all_up_to(tf.constant(3.0), tf.constant(2))
        return tape.gradient(y, [module.factor, module.offset])

    # f(3) + f(f(3)) = 3 a + b + 3 a^2 + a b + b at a = 2, b = 1
    assert [float(value) for value in called(gradient)] == [3 + 6 * 2 + 1, 1 + 2 + 1]


def test_function_that_nothing_is_known_of_is_named():
    @tfr.recursive
    def endless(n):
        return endless(n - 1)

    @tfr.recursive
    def caller(n):
        if n < 1:
            return endless(n)
        return caller(n - 1)

    with pytest.raises(TypeError, match="Function 'endless': what it returns cannot be found out"):
        caller(tf.constant(3))


def test_method_does_not_keep_its_object():
    scale = Scale(2.0)
    gone = weakref.ref(scale)
    assert float(scale.power(tf.constant(1.0), tf.constant(2))) == 4.0
    del scale
    gc.collect()
    assert gone() is None


def test_method_of_keras_layer_is_trained():
    class Chain(tf.keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.dense = tf.keras.layers.Dense(3)

        def build(self, shape):
            self.dense.build(shape)

        @tfr.recursive
        def chain(self, x, n):
            if n < 1:
                return x
            return self.dense(self.chain(x, n - 1))

        def call(self, x):
            return self.chain(x, tf.constant(2))

    layer = Chain()
    x = tf.ones([2, 3])
    kernel = layer(x) is not None and layer.dense.kernel
    assert layer(x).numpy() == pytest.approx(x.numpy() @ kernel.numpy() @ kernel.numpy(), rel=1e-5)


# --- Side effects -------------------------------------------------------------------------------------------------


def test_side_effects_of_a_body_are_in_order(called):
    variable = tf.Variable(0)

    @tfr.recursive
    def visit(n):
        variable.assign_add(1)
        read = variable.read_value()
        variable.assign_add(10)
        if n > 0:
            visit(n - 1)
            return read + variable.read_value()
        return read

    assert int(called(lambda: visit(tf.constant(0)))) == 1
    assert int(variable) == 11
    variable.assign(0)
    assert int(called(lambda: visit(tf.constant(2)))) == 1 + 33
    assert int(variable) == 33


@pytest.mark.thorough
def test_calls_with_side_effects_are_in_order_though_callee_is_traced_later(called):
    variable = tf.Variable(1)

    @tfr.recursive
    def both(n):
        double(n)
        more(n)
        double(n)
        return variable.read_value()

    @tfr.recursive
    def double(n):
        if n > 0:
            variable.assign(variable * 2)
            double(n - 1)

    @tfr.recursive
    def more(n):
        if n > 0:
            variable.assign_add(1)
            more(n - 1)

    for _ in range(3):
        variable.assign(1)
        assert int(called(lambda: both(tf.constant(2)))) == (1 * 4 + 2) * 4


def test_side_effects_of_all_kinds_are_in_one_order(called):
    """What assigns a variable, what runs Python, what checks; in a body, in its branches and in what it calls."""
    variable, seen = tf.Variable(0), []

    def see(what, n):
        tf.py_function(lambda n: seen.append((what, int(n), int(variable))), [n], [])

    @tfr.recursive
    def visit(n):
        variable.assign_add(1)
        see("before", n)
        tf.debugging.assert_less(n, 4)
        if n > 0:
            visit(n - 1)
            see("between", n)
            visit(n - 1)
        see("after", n)
        variable.assign_add(10)
        return n

    def expected(n, value):
        value += 1
        events = [("before", n, value)]
        if n > 0:
            events += expected(n - 1, value)
            value = events[-1][-1] + 10
            events += [("between", n, value), *expected(n - 1, value)]
            value = events[-1][-1] + 10
        return [*events, ("after", n, value)]

    called(lambda: visit(tf.constant(2)))
    assert seen == expected(2, 0)
    variable.assign(0)
    with pytest.raises(tf.errors.InvalidArgumentError):
        called(lambda: visit(tf.constant(4)))
    assert int(variable) == 1


def test_bodies_without_side_effects_have_no_order():
    """Their calls run at once: nothing in the graph waits for another call."""
    weight = tf.Variable(2.0)

    @tfr.recursive
    def tree(x, n):
        if n < 1:
            return x * weight
        return tree(x, n - 1) + tree(x * 0.5, n - 1)

    graph = tree.get_concrete_function(tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)).graph
    definitions = [function.definition for function in graph._functions.values() if hasattr(function, "definition")]
    nodes = [node for definition in definitions for node in definition.node_def]
    calls = [node for node in nodes if node.op == "Recursion>Invoke"]
    assert len(calls) == 2
    assert not [name for node in calls for name in node.input if name.startswith("^")]


def test_variable_is_made_once():
    made = []

    class Net(tf.Module):
        weight = None

        @tfr.recursive
        def apply(self, x, n):
            if self.weight is None:
                self.weight = tf.Variable(3.0)
                made.append(self.weight)
            if n < 1:
                return x
            return self.apply(x, n - 1) * self.weight

    net = Net()
    assert float(net.apply(tf.constant(1.0), tf.constant(2))) == 9.0
    assert float(net.apply(tf.constant(2.0), tf.constant(2))) == 18.0
    assert len(made) == 1
    np.testing.assert_allclose(net.trainable_variables[0].numpy(), 3.0)


def branches_of_operations(x, v):
    """What returns operations in its branches, as checks of what is no int32 do."""
    yield "assertion", lambda: tf.debugging.assert_greater(x, -1.0)
    yield "no_op", lambda: tf.cond(x > 0.0, lambda: tf.group(v.assign_add(1.0)), tf.no_op)
    yield "switch", lambda: tf.switch_case(tf.cast(x, tf.int32) % 2, [tf.no_op, lambda: tf.group(v.assign_add(1.0))])


@pytest.mark.parametrize("branch", ["assertion", "no_op", "switch"])
def test_branches_may_return_operations(branch):
    v = tf.Variable(0.0)

    @tfr.recursive
    def total(x):
        dict(branches_of_operations(x, v))[branch]()
        if x < 1.0:
            return x
        return total(x - 1.0) + x

    assert float(total(tf.constant(3.0))) == 6.0
    assert float(tf.function(lambda x: total(x))(tf.constant(3.0))) == 6.0
    assert float(v) == 2 * {"assertion": 0.0, "no_op": 3.0, "switch": 2.0}[branch]


# --- Trees --------------------------------------------------------------------------------------------------------

CHILDREN = [[1, 2], [], [3, 4, 5], [], [], []]
VALUES = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_trees_with_any_number_of_children_are_summed_by_a_loop(called):
    @tfr.recursive
    def total(node, children, values):
        found = values[node]
        for child in children[node]:
            found += total(child, children, values)
        return found

    children = tf.ragged.constant(CHILDREN, dtype=tf.int32)
    assert float(called(lambda: total(tf.constant(0), children, tf.constant(VALUES)))) == sum(VALUES)


def test_trees_with_any_number_of_children_are_summed_by_map_fn(called):
    @tfr.recursive
    def total(node, children, values):
        kids = children[node]
        if tf.size(kids) == 0:
            return values[node]
        sums = tf.map_fn(lambda kid: total(kid, children, values), kids, fn_output_signature=tf.float32)
        return values[node] + tf.reduce_sum(sums)

    children = tf.ragged.constant(CHILDREN, dtype=tf.int32)
    assert float(called(lambda: total(tf.constant(0), children, tf.constant(VALUES)))) == sum(VALUES)


def test_function_and_signature_may_be_arguments_of_one_call():
    """tf.function takes both, too."""

    def plain(n):
        return n if n < 1 else double(n - 1) + 2

    double = tfr.recursive(plain, input_signature=[tf.TensorSpec([], tf.int32)])
    assert double(3).numpy() == 6
    assert double.input_signature is not None
    with pytest.raises(TypeError, match="recursive decorates a Python function, got 7"):
        tfr.recursive(7, input_signature=[tf.TensorSpec([], tf.int32)])
