"""Lists of tensors (variants) that are arguments and outputs of functions: gradients go through them."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive
from gradient_helpers import check_derivatives, differences

import tensorflow_recursion as tfr

raw = tf.raw_ops
F64, I32, LIST = tf.float64, tf.int32, tf.variant


def empty(shape=(), dtype=F64):
    return raw.EmptyTensorList(element_shape=shape_of(shape), max_num_elements=-1, element_dtype=dtype)


def shape_of(shape):
    return tf.constant(shape, tf.int32, [len(shape)])


def pushed(tensors, x):
    return raw.TensorListPushBack(input_handle=tensors, tensor=x)


def item(tensors, i, shape=(), dtype=F64):
    return raw.TensorListGetItem(input_handle=tensors, index=i, element_shape=shape_of(shape), element_dtype=dtype)


def with_item(tensors, i, x):
    return raw.TensorListSetItem(input_handle=tensors, index=i, item=x)


def stacked(tensors, shape=(), dtype=F64):
    return raw.TensorListStack(input_handle=tensors, element_shape=shape_of(shape), element_dtype=dtype)


def list_of(x):
    return raw.TensorListFromTensor(tensor=x, element_shape=shape_of(x.shape[1:].as_list()))


def weighted(x):
    """A sum in which every element counts differently."""
    return tf.reduce_sum(x * tf.reshape(tf.range(1, tf.size(x) + 1, dtype=F64), tf.shape(x)))


def np_weighted(x):
    x = np.asarray(x)
    return np.sum(x * np.arange(1, x.size + 1).reshape(x.shape))


# --- Functions, and what they are in Python -----------------------------------------------------------------------


def returned():
    f, define = recursive("Doubling", [I32, F64], [LIST])
    define(lambda n, x: tf.cond(n < 1, empty, lambda: pushed(f(n - 1, 2.0 * x), x * x)))

    def oracle(x, n=4):
        return [] if n < 1 else [*oracle(2 * x, n - 1), x * x]

    return lambda x: weighted(stacked(f(4, x))), lambda x: np_weighted(oracle(x)), [0.7]


def argument():
    f, define = recursive("Polynomial", [I32, LIST, F64], [F64])
    define(lambda n, a, x: tf.cond(n < 1, lambda: x, lambda: item(a, n - 1) * f(n - 1, a, x * x)))

    def oracle(a, x, n=3):
        return x if n < 1 else a[n - 1] * oracle(a, x * x, n - 1)

    return lambda a, x: f(3, list_of(a), x), oracle, [np.array([0.5, -1.5, 2.0]), 0.9]


def argument_and_result():
    """An accumulator of vectors, handed down and back."""
    f, define = recursive("Collect", [I32, F64, LIST], [LIST])
    define(lambda n, x, a: tf.cond(n < 1, lambda: a, lambda: f(n - 1, tf.sin(x), pushed(a, x * x))))

    def oracle(x, z):
        found = [*z]
        for _ in range(3):
            found.append(x * x)
            x = np.sin(x)
        return np_weighted(found)

    build = lambda x, z: weighted(stacked(f(3, x, list_of(z)), [2]))
    return build, oracle, [np.array([0.3, 1.1]), np.array([[5.0, 7.0]])]


def changed_in_place():
    f, define = recursive("Squares", [I32, LIST], [LIST])
    define(lambda n, a: tf.cond(n < 1, lambda: a, lambda: f(n - 1, with_item(a, n - 1, item(a, n - 1) * item(a, 0)))))

    def oracle(x):
        x = x.copy()
        for i in (2, 1, 0):
            x[i] *= x[0]
        return np_weighted(x)

    return lambda x: weighted(stacked(f(3, list_of(x)))), oracle, [np.array([0.5, -1.5, 2.0])]


def several_results():
    """Two lists and a number, of which each list is also an argument of mutual recursion."""
    f, define_f = recursive("F", [I32, F64, LIST], [LIST, F64, LIST])
    g, define_g = recursive("G", [I32, F64, LIST], [LIST, F64, LIST])

    def body(callee, factor):
        def deeper(n, x, a):
            b, y, c = callee(n - 1, x * factor, pushed(a, x))
            return pushed(b, y), y * x, pushed(c, y * y)

        return lambda n, x, a: tf.cond(n < 1, lambda: (a, x, empty()), lambda: deeper(n, x, a))

    define_f(body(g, 0.5))
    define_g(body(f, 1.5))

    def oracle(x, a, n=3, factor=0.5):
        if n < 1:
            return a, x, []
        b, y, c = oracle(x * factor, [*a, x], n - 1, 2.0 - factor)
        return [*b, y], y * x, [*c, y * y]

    def build(x):
        a, y, b = f(3, x, empty())
        return weighted(stacked(a)) + 0.3 * y + 0.7 * weighted(stacked(b))

    def total(x):
        a, y, b = oracle(x, [])
        return np_weighted(a) + 0.3 * y + 0.7 * np_weighted(b)

    return build, total, [0.8]


def passed_on_and_read_once():
    f, define = recursive("Deep", [I32, LIST], [F64])
    define(lambda n, a: tf.cond(n < 1, lambda: weighted(stacked(a)), lambda: 2.0 * f(n - 1, a)))
    return lambda x: f(2, list_of(x)), lambda x: 4 * np_weighted(x), [np.array([0.5, -1.5])]


def of_lists():
    """A list of lists: one for each level."""
    f, define = recursive("Nested", [I32, F64], [LIST])
    base = lambda: empty(dtype=tf.variant)
    define(lambda n, x: tf.cond(n < 1, base, lambda: pushed(f(n - 1, x * x), pushed(empty(), x))))

    def build(x):
        lists = f(3, x)
        return sum((i + 1.0) * item(item(lists, i, dtype=tf.variant), 0) for i in range(3))

    return build, lambda x: x**4 + 2 * x**2 + 3 * x, [0.6]


def captured():
    x = tf.Variable([0.5, -1.5], dtype=F64, use_resource=True)
    tensors = list_of(x * x)
    f, define = recursive("Captured", [I32, F64], [F64])
    define(lambda n, y: tf.cond(n < 1, lambda: y, lambda: f(n - 1, y * item(tensors, n - 1))))
    return lambda y: f(2, y), lambda y: y * 0.25 * 2.25, [0.7]


def in_loops():
    f, define = recursive("Looped", [I32, F64, LIST], [LIST], shapes=[[]])

    @define
    def Looped(n, x, a):
        step = lambda i, a: (i + 1, f(n - 1, x * tf.cast(i + 1, F64), pushed(a, x)))
        return tf.cond(n < 1, lambda: pushed(a, x * x), lambda: tf.while_loop(lambda i, _: i < 2, step, [0, a])[1])

    def oracle(x, a, n=2):
        if n < 1:
            return [*a, x * x]
        for i in range(2):
            a = oracle(x * (i + 1), [*a, x], n - 1)
        return a

    return lambda x: weighted(stacked(f(2, x, empty()))), lambda x: np_weighted(oracle(x, [])), [0.6]


def through_calls_in_a_row():
    """What the first call returns is known by what it was given, and so on."""
    f, define = recursive("Collect", [I32, F64, LIST], [LIST])
    define(lambda n, x, a: tf.cond(n < 1, lambda: a, lambda: f(n - 1, tf.sin(x), pushed(a, x * x))))
    g, define_g = recursive("Through", [I32, LIST], [LIST])
    h, define_h = recursive("Back", [I32, LIST], [LIST])
    define_g(lambda n, a: tf.cond(n < 1, lambda: f(1, 0.5, a), lambda: h(n - 1, a)))
    define_h(lambda n, a: tf.cond(n < 1, lambda: tf.identity(a), lambda: g(n - 1, a)))

    def build(x):
        tensors = tf.identity(g(2, f(2, x, empty())))
        tensors = tf.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, f(i, x, g(3, a))), [0, tensors])[1]
        return weighted(stacked(h(1, tensors)))

    def oracle(x):
        return np_weighted([x * x, np.sin(x) ** 2, 0.25, x * x, 0.25])

    return build, oracle, [0.6]


def through_more_calls_than_can_be_looked_at():
    """Each function calls the one before it twice, so that a list goes through thousands of calls."""
    f, define = recursive("Level0", [LIST], [LIST])
    define(lambda tensors: tf.identity(tensors))
    for level in range(1, 12):
        before = f
        f, define = recursive(f"Level{level}", [LIST], [LIST])
        define(_twice(before))
    return lambda x: item(f(pushed(empty(), x * x)), 0), lambda x: x * x, [0.6]


def _twice(f):
    return lambda tensors: f(f(tensors))


PROGRAMS = [returned, argument, argument_and_result, changed_in_place, several_results, passed_on_and_read_once]
PROGRAMS += [of_lists, captured, in_loops, through_calls_in_a_row, through_more_calls_than_can_be_looked_at]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradient_goes_through_lists(run, control_flow, program):
    build, oracle, arguments = program()
    xs = [tf.constant(argument, F64) for argument in arguments]
    y = build(*xs)
    gradients = tf.gradients(y, xs)
    assert all(gradient is not None for gradient in gradients)
    value, *got = run([y, *gradients])
    arrays = [np.asarray(argument) for argument in arguments]
    np.testing.assert_allclose(value, oracle(*arrays), rtol=1e-9)
    for one, other in zip(got, differences(oracle, arrays, [1.0]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


def test_gradient_goes_through_list_in_control_flow_of_main_graph(run, control_flow):
    f, define = recursive("Doubling", [I32, F64], [LIST])
    define(lambda n, x: tf.cond(n < 1, empty, lambda: pushed(f(n - 1, 2.0 * x), x * x)))
    x = tf.constant(0.7, F64)
    y = tf.cond(x > 0, lambda: weighted(stacked(f(3, x))), lambda: x)
    np.testing.assert_allclose(run(tf.gradients(y, x)[0]), 2 * 0.7 * (1 * 16 + 2 * 4 + 3))


def test_gradient_of_gradient_goes_through_lists(run):
    build, _, _ = returned()
    x = tf.constant(0.7, F64)
    first = tf.gradients(build(x), x)[0]
    np.testing.assert_allclose(run(tf.gradients(first, x)[0]), 2 * (1 * 64 + 2 * 16 + 3 * 4 + 4))


def test_gradient_of_gradient_goes_through_list_that_branches_pass_on(run):
    f, define = recursive("PushedLast", [I32, F64, LIST], [LIST])
    define(lambda n, x, a: tf.cond(n < 1, lambda: pushed(a, x), lambda: f(n - 1, x * x, a)))
    x = tf.constant(0.7, F64)
    y = tf.reduce_sum(stacked(f(1, x, pushed(empty(), x))) ** 3)
    second = tf.gradients(tf.gradients(y, x)[0], x)[0]
    np.testing.assert_allclose(run(second), 6 * 0.7 + 30 * 0.7**4)


def test_gradient_of_captured_list_goes_to_what_it_was_made_of(run, control_flow):
    x = tf.constant([0.5, -1.5], F64)
    tensors = list_of(x * x)
    f, define = recursive("Captured", [I32, F64], [F64])
    define(lambda n, y: tf.cond(n < 1, lambda: y, lambda: f(n - 1, y * item(tensors, n - 1))))
    np.testing.assert_allclose(run(tf.gradients(f(2, 1.0), x)[0]), [2 * 0.5 * 2.25, 2 * -1.5 * 0.25])


def test_list_has_gradient_when_its_function_is_defined_after_the_call(run, control_flow):
    f, define = recursive("Later", [I32, F64], [LIST])
    g, define_g = recursive("Reader", [I32, LIST], [F64])
    x = tf.constant(0.7, F64)
    y = g(2, f(3, x))
    define(lambda n, x: tf.cond(n < 1, empty, lambda: pushed(f(n - 1, 2.0 * x), x * x)))
    define_g(lambda n, a: tf.cond(n < 1, lambda: item(a, 0), lambda: item(a, n) * g(n - 1, a)))
    np.testing.assert_allclose(run(tf.gradients(y, x)[0]), 6 * 0.7**5 * 16 * 4)


def test_list_has_gradient_when_functions_that_calls_in_a_row_run_are_defined_after_them(run, control_flow):
    f, define = recursive("Later", [I32, LIST], [LIST])
    g, define_g = recursive("LaterStill", [I32, F64, LIST], [LIST])
    x = tf.constant(0.7, F64)
    y = item(f(2, g(1, x, f(1, pushed(empty(), x)))), 1)
    define(lambda n, a: tf.cond(n < 1, lambda: a, lambda: f(n - 1, a)))
    define_g(lambda n, x, a: tf.cond(n < 1, lambda: f(1, pushed(a, x * x)), lambda: g(n - 1, x * x, f(1, a))))
    np.testing.assert_allclose(run([y, tf.gradients(y, x)[0]]), [0.7**4, 4 * 0.7**3])


def test_integers_in_list_have_no_gradient(run, control_flow):
    f, define = recursive("Count", [I32, F64, LIST], [LIST, F64])
    deeper = lambda n, x, a: f(n - 1, x * tf.cast(item(a, n, dtype=I32), F64), pushed(a, n))
    define(lambda n, x, a: tf.cond(n < 1, lambda: (a, x), lambda: deeper(n, x, a)))
    x = tf.constant(0.7, F64)
    numbers = raw.TensorListFromTensor(tensor=[1, 2, 3], element_shape=shape_of(()))
    a, y = f(2, x, numbers)
    values = run([stacked(a, dtype=I32), tf.gradients(y, x)[0]])
    assert [value.tolist() for value in values] == [[1, 2, 3, 2, 1], 6]
    assert tf.gradients(y, numbers) == [None]


@pytest.mark.parametrize("where", ["main graph", "body"])
def test_gradient_is_error_when_nothing_tells_what_a_result_holds(where):
    """TensorFlow says nothing of a ragged tensor that is a variant."""
    f, define = recursive("Opaque", [F64], [F64, LIST])
    define(lambda x: (x, raw.RaggedTensorToVariant(rt_nested_splits=[], rt_dense_values=[x], batched_input=False)))
    g, define_g = recursive("Outer", [F64], [F64])
    define_g(lambda x: value(f(x)[1]))

    def value(ragged):
        options = {"input_ragged_rank": 0, "output_ragged_rank": 0, "Tvalues": F64, "Tsplits": tf.int64}
        return tf.reduce_sum(raw.RaggedTensorFromVariant(encoded_ragged=ragged, **options).output_dense_values)

    x = tf.constant(0.7, F64)
    y = g(x) if where == "body" else value(f(x)[1])
    with pytest.raises(LookupError, match="Function 'Opaque' cannot be differentiated: output 1 is a variant"):
        tf.gradients(y, x)


def test_gradient_is_error_when_a_result_holds_lists_or_numbers(control_flow):
    """At its leaves it is a list of numbers, elsewhere one of lists, and TensorFlow can tell neither."""
    f, define = recursive("Tree", [I32, F64], [LIST])
    g, define_g = recursive("Size", [I32, LIST], [LIST])
    define(lambda n, x: tf.cond(n < 1, lambda: pushed(empty(), x), lambda: pushed(empty(dtype=LIST), f(n - 1, x * x))))
    define_g(lambda n, a: tf.cond(n < 1, lambda: a, lambda: g(n - 1, a)))
    x = tf.constant(0.7, F64)
    with pytest.raises(LookupError, match="Function 'Tree' cannot be differentiated: output 0 is a variant"):
        tf.gradients(f(1, x), x, grad_ys=[empty()])


def test_gradient_goes_through_one_function_for_lists_of_different_dtypes(run, control_flow):
    f, define = recursive("Same", [I32, LIST], [LIST])
    define(lambda n, a: tf.cond(n < 1, lambda: a, lambda: f(n - 1, a)))
    x = tf.constant(0.75, F64)
    doubles = f(2, pushed(empty(), x))
    floats = f(2, pushed(empty(dtype=tf.float32), tf.cast(x, tf.float32)))
    y = 2.0 * item(doubles, 0) + 3.0 * tf.cast(item(floats, 0, dtype=tf.float32), F64)
    assert run([y, tf.gradients(y, x)[0]]) == [3.75, 5]


def test_gradient_of_gradient_goes_through_lists_of_different_dtypes_and_calls_in_a_row(run, control_flow):
    f, define = recursive("Swap", [I32, LIST, LIST], [LIST, LIST])
    define(lambda n, a, b: tf.cond(n < 1, lambda: (a, b), lambda: f(n - 2, a, b)))
    x = tf.constant(0.75, F64)
    floats = pushed(empty(dtype=tf.float32), tf.cast(x, tf.float32))
    b, a = f(2, *f(2, floats, pushed(empty(), x)))
    y = item(a, 0) ** 3 + tf.cast(item(b, 0, dtype=tf.float32), F64) ** 2
    first = tf.gradients(y, x)[0]
    np.testing.assert_allclose(run([first, tf.gradients(first, x)[0]]), [3 * 0.75**2 + 1.5, 6 * 0.75 + 2])


def test_gradient_goes_through_optionals(run, control_flow):
    f, define = recursive("Maybe", [I32, F64], [LIST])
    value = lambda optional: raw.OptionalGetValue(optional=optional, output_types=[F64], output_shapes=[[]])[0]
    some = lambda x: raw.OptionalFromValue(components=[x])
    define(lambda n, x: tf.cond(n < 1, lambda: some(x), lambda: some(x * value(f(n - 1, x)))))
    x = tf.constant(0.7, F64)
    np.testing.assert_allclose(run(tf.gradients(value(f(2, x)), x)[0]), 3 * 0.7**2)


def test_gradient_ignores_variants_that_hold_no_tensors(run):
    f, define = recursive("Reduce", [I32, F64, tf.variant], [F64, tf.variant])
    base = lambda x, d: (x + tf.cast(tf.data.experimental.cardinality(tf.data.Dataset.range(3)), F64), d)
    define(lambda n, x, d: tf.cond(n < 1, lambda: base(x, d), lambda: f(n - 1, x * x, d)))
    x = tf.constant(0.5, F64)
    y, _ = f(2, x, tf.data.Dataset.range(3)._variant_tensor)
    assert run(tf.gradients(y, x)[0]) == 4 * 0.5**3


# Places in a list of three items, of which one may be asked for several times.
GATHERED = {
    "one twice": lambda n: [1, 0, 1],
    "one always": lambda n: [2, 2, 2],
    "each once": lambda n: [2, 0, 1],
    "chosen at run time": lambda n: [n % 2, 1, n % 3],
}


@pytest.mark.each_value
@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("size", [(), (2,)])
@pytest.mark.parametrize("places", GATHERED)
def test_items_that_are_gathered_several_times_count_so_often(run, places, size, order):
    def body(net, n, x):
        items = tf.TensorArray(F64, 3, element_shape=size).unstack(tf.sin(x) + net(n - 1, x))
        return x + tf.reduce_sum(tf.exp(items.gather(GATHERED[places](n))))

    def recursive_net(x):
        shape = tf.TensorSpec([3, *size], F64)

        @tfr.recursive(input_signature=[tf.TensorSpec([], I32), shape], output_signature=shape, autograph=False)
        def net(n, x):
            return tf.cond(n < 1, lambda: x * x, lambda: body(net, n, x))

        return net(tf.constant(3), x)

    def unrolled_net(n, x):
        return x * x if n < 1 else body(unrolled_net, n, x)

    start = lambda: [tf.random.stateless_uniform([3, *size], [1, 2], -0.5, 0.5, F64)]
    check_derivatives(run, start, recursive_net, lambda x: unrolled_net(tf.constant(3), x), order)


def test_items_that_are_gathered_several_times_count_so_often_in_a_tf_function():
    @tf.function
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.TensorArray(F64, 3, element_shape=[]).unstack(x).gather([1, 0, 1])
        return tape.gradient(y, x)

    with tf.__internal__.eager_context.eager_mode():
        np.testing.assert_array_equal(slope(tf.constant([1.0, 2.0, 3.0], F64)), [1.0, 2.0, 0.0])
