"""The whole graph of a tf.function with calls in it runs as one program, and means what it meant before."""
# SPDX-License-Identifier: Apache-2.0

import threading
import warnings

import numpy as np
import pytest
import tensorflow as tf
from limits import HANG_SECONDS
from tensorflow.python.eager import context
from tensorflow.python.framework import function as legacy

import tensorflow_recursion as tfr

pytestmark = pytest.mark.usefixtures("static_or_error")

BOUNDARY = ("_Arg", "_Retval", "NoOp")


@tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32)])
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@tfr.recursive(input_signature=[tf.TensorSpec([], tf.float64), tf.TensorSpec([], tf.int32)])
def power(x, n):
    if n < 1:
        return tf.constant(1.0, tf.float64)
    return x * power(x, n - 1)


def operators(function, *arguments):
    """What TensorFlow itself runs of a tf.function with calls: the operators of each part, but for its boundary."""
    context.context().enable_run_metadata()
    try:
        context.context().export_run_metadata()  # what is there of other tests
        function(*arguments)
        graphs = context.context().export_run_metadata().function_graphs
    finally:
        context.context().disable_run_metadata()
    parts = [
        [node.op for node in part.node if node.op not in BOUNDARY] for of in graphs for part in of.partition_graphs
    ]
    return [sorted(part) for part in parts if any(op.startswith("Recursion>") for op in part)]


def counted(call):
    """What a call returns, and how many calls of recursive functions ran statically and dynamically in it."""
    before = tfr.config.outermost_calls()
    result = call()
    after = tfr.config.outermost_calls()
    return result, after["static"] - before["static"], after["dynamic"] - before["dynamic"]


# --- One program ----------------------------------------------------------------------------------------------------


def test_whole_graph_is_one_operator():
    @tf.function
    def step(n, x):
        return tf.nn.softmax(tf.cast(fib(n), tf.float32) * x), fib(n + 1)

    assert operators(step, tf.constant(7), tf.constant([0.0, 0.0])) == [["Recursion>Run"]]
    (shares, number), static, dynamic = counted(lambda: step(tf.constant(7), tf.constant([1.0, 1.0])))
    assert (shares.numpy().tolist(), int(number), static, dynamic) == ([0.5, 0.5], 21, 2, 0)


def test_graph_without_calls_is_left_alone():
    assert operators(tf.function(lambda x: tf.nn.softmax(x) + 1.0), tf.constant([1.0, 2.0])) == []


def test_forward_and_backward_are_one_program():
    @tf.function
    def step(x, n):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.stack([power(x, n), power(x, 2)]))
        return tape.gradient(loss, x)

    x, n = tf.constant(1.5, tf.float64), tf.constant(4)
    assert operators(step, x, n) == [["Recursion>Run"]]
    slope, static, dynamic = counted(lambda: step(x, n))
    assert float(slope) == 4 * 1.5**3 + 2 * 1.5
    assert (static, dynamic) == (4, 0)


@pytest.mark.thorough
def test_training_step_is_the_same_as_dynamically():
    def losses():
        weight = tf.Variable(0.5, dtype=tf.float64)
        optimizer = tf.keras.optimizers.Adam(0.1)

        @tf.function
        def step(n):
            with tf.GradientTape() as tape:
                loss = (power(weight.read_value(), n) - 2.0) ** 2
            optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
            return loss

        return [float(step(tf.constant(n))) for n in (1, 2, 3, 4)] + [weight.numpy()]

    with tfr.config.static_execution(False):
        expected = losses()
    assert losses() == expected


# --- What a tf.function means ---------------------------------------------------------------------------------------


def test_side_effects_keep_their_order():
    total = tf.Variable(0)

    @tf.function
    def step(n):
        total.assign(n)
        first = fib(total)
        total.assign_add(first)
        seen = total.read_value()
        total.assign(0)
        return seen, fib(total), total

    assert operators(step, tf.constant(10)) == [["Recursion>Run"]]
    assert [int(x) for x in step(tf.constant(10))] == [65, 0, 0]
    assert int(total) == 0


def test_step_that_returns_nothing_has_its_effects():
    total = tf.Variable(0)

    @tf.function
    def step(n):
        total.assign_add(fib(n))

    for n in (5, 6):
        step(tf.constant(n))
    assert int(total) == 5 + 8


def test_loops_branches_and_lists_of_the_graph():
    @tf.function
    def step(numbers):
        total, list_ = 0, tf.TensorArray(tf.int32, size=0, dynamic_size=True, clear_after_read=False)
        for n in numbers:
            if n % 2 == 0:
                total += fib(n)
            else:
                list_ = list_.write(list_.size(), fib(n) * 10)
            if total > 60:
                break
        return total, list_.stack()

    numbers = tf.range(20)
    assert operators(step, numbers) == [["Recursion>Run"]]
    (total, list_), static, dynamic = counted(lambda: step(numbers))
    assert (int(total), list_.numpy().tolist()) == (88, [10, 20, 50, 130, 340])
    assert (static, dynamic) == (11, 0)


def test_gradient_of_a_map_is_one_program(capfd):
    """TensorFlow keeps loop variables of the gradient whose results nothing reads, and the arguments that they need."""
    weight = tf.Variable([[0.5, 0.2], [0.1, 0.4]])

    @tfr.recursive
    def encode(x, n):
        return x if n < 1 else tf.tanh(tf.linalg.matvec(weight, encode(x, n - 1)))

    @tf.function
    def encoded(x):
        return tf.map_fn(lambda row: encode(row, tf.constant(3)), x)

    def unrolled(x):
        for _ in range(3):
            x = tf.tanh(tf.linalg.matvec(weight, x))
        return x

    def gradient(function):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(function(tf.ones([3, 2])))
        return tape.gradient(y, weight)

    np.testing.assert_allclose(gradient(encoded), gradient(unrolled), rtol=1e-5)
    assert "does not contain terminal node" not in capfd.readouterr().err


def test_datasets_are_read_inside_of_the_graph():
    dataset = tf.data.Dataset.range(5).map(lambda i: tf.cast(i, tf.int32))

    @tf.function
    def all_of(iterator):
        total = 0
        for _ in tf.range(5):
            total += fib(next(iterator) + 5)
        return total

    @tf.function
    def one_of(iterator):
        return fib(next(iterator))

    assert int(all_of(iter(dataset))) == 5 + 8 + 13 + 21 + 34
    iterator = iter(dataset)
    assert [int(one_of(iterator)) for _ in range(5)] == [0, 1, 1, 2, 3]
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        one_of(iterator)


def test_random_numbers_go_on_and_are_those_of_a_dynamic_run():
    def numbers():
        tf.random.set_seed(7)
        step = tf.function(lambda n: (tf.random.uniform([], seed=3), fib(n)))
        return [float(step(tf.constant(3))[0]) for _ in range(3)]

    with tfr.config.static_execution(False):
        expected = numbers()
    assert numbers() == expected
    assert len(set(expected)) == 3


def test_python_runs_inside_of_the_graph(capfd):
    seen = []

    @tf.function
    def step(n):
        number = tf.py_function(lambda x: seen.append(int(x)) or x + 1, [fib(n)], tf.int32)
        tf.print("number:", number)
        return tf.numpy_function(lambda x: x * np.int32(2), [number], tf.int32)

    assert int(step(tf.constant(6))) == 18
    assert seen == [8]
    assert "number: 9" in capfd.readouterr().err


def test_functions_that_the_graph_keeps_find_what_they_call():
    @tf.function(experimental_attributes={"_noinline": True})
    def twice(n):
        return 2 * fib(n)

    @tf.function
    def step(numbers):
        return tf.map_fn(lambda n: twice(n) + fib(n), numbers), twice(numbers[0])

    mapped, first = step(tf.range(5, 8))
    assert (mapped.numpy().tolist(), int(first)) == ([15, 24, 39], 10)


def test_function_with_effects_that_the_graph_keeps_is_beside_calls_in_one_program():
    total = tf.Variable(0)

    @tf.function(experimental_attributes={"_noinline": True})
    def add(n):
        return total.assign_add(n)

    @tf.function
    def step(n):
        return fib(add(n)), fib(add(n))

    assert operators(step, tf.constant(4)) == [["Recursion>Run"]]
    assert [int(x) for x in step(tf.constant(1))] == [34, 55]


@pytest.mark.parametrize("noise", [False, True])
def test_functions_that_are_operators_stay_in_the_program(noise):
    @legacy.Defun(tf.float64, func_name=f"kept_{noise}", noinline=True)
    def kept(x):
        return x * 2.0 + (0.0 * tf.random.uniform([], dtype=tf.float64) if noise else 0.0)

    @tfr.recursive
    def repeated(x, n):
        if n < 1:
            return x
        return kept(repeated(x, n - 1))

    @tf.function
    def step(x):
        return kept(power(x, 2)), repeated(x, 3)

    x = tf.constant(3.0, tf.float64)
    assert operators(step, x) == [["Recursion>Run"]]
    assert [float(y) for y in step(x)] == [18.0, 24.0]


def test_requests_for_batches_are_beside_calls_in_one_program():
    double = tf.nondifferentiable_batch_function(num_batch_threads=1, max_batch_size=4, batch_timeout_micros=1)(
        lambda numbers: numbers * 2
    )

    @tf.function
    def step(n):
        return fib(double(tf.reshape(fib(n), [1]))[0])

    assert operators(step, tf.constant(4)) == [["Recursion>Run"]]
    assert int(step(tf.constant(5))) == 55


# --- XLA ------------------------------------------------------------------------------------------------------------


def beside_a_call(compiled):
    return tf.function(lambda x: compiled(x) + tf.cast(fib(5), tf.float32))


def in_a_body(compiled):
    @tfr.recursive
    def repeated(x, n):
        if n < 1:
            return x
        return compiled(repeated(x, n - 1))

    return tf.function(lambda x: repeated(x, 3))


@pytest.mark.parametrize(("around", "value", "slope"), [(beside_a_call, 11.0, 3.0), (in_a_body, 54.0, 27.0)])
def test_functions_for_xla_have_their_values_and_derivatives(around, value, slope):
    factor = tf.Variable(3.0)
    step = around(tf.function(lambda x: x * factor, jit_compile=True))
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = step(x)
    assert (float(y), float(tape.gradient(y, x))) == (value, slope)


@pytest.mark.parametrize("around", [beside_a_call, in_a_body])
def test_xla_compiles_the_functions_that_it_is_to_compile(around):
    text = tf.function(lambda x: tf.strings.to_number(tf.strings.as_string(x)), jit_compile=True)
    with pytest.raises(tf.errors.InvalidArgumentError, match="unsupported operations"):
        around(text)(tf.constant(2.0))


def test_strings_tables_and_handles_pass_through():
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [5, 6]), -1)

    @tf.function
    def step(word, words):
        return tf.strings.join([word, tf.strings.as_string(fib(table.lookup(word)))]), words, word

    joined, words, word = step(tf.constant("b"), tf.ragged.constant([["x"], ["y", "z"]]))
    assert (joined.numpy(), words.to_list(), word.numpy()) == (b"b8", [[b"x"], [b"y", b"z"]], b"b")


# --- Errors ---------------------------------------------------------------------------------------------------------


def test_error_of_the_graph_names_its_operator():
    @tf.function
    def step(n):
        with tf.control_dependencies([tf.debugging.assert_less(fib(n), 10, message="too much")]):
            return tf.math.floordiv(n, fib(n), name="culprit")

    assert int(step(tf.constant(6))) == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="too much"):
        step(tf.constant(10))
    with pytest.raises(tf.errors.InvalidArgumentError, match="(?s)culprit.*[Dd]ivision by zero|[Dd]ivision by zero"):
        step(tf.constant(0))
    assert int(step(tf.constant(6))) == 0


def test_step_goes_on_after_an_error():
    total = tf.Variable(0)

    @tf.function
    def step(n):
        with tf.control_dependencies([total.assign_add(1)]):
            tf.debugging.assert_positive(n)
        return fib(n)

    for n, expected in ((3, 2), (0, None), (4, 3)):
        if expected is None:
            with pytest.raises(tf.errors.InvalidArgumentError):
                step(tf.constant(n))
        else:
            assert int(step(tf.constant(n))) == expected
    assert int(total) == 3


# --- What is not one program ----------------------------------------------------------------------------------------


def test_switch_holds_for_functions_that_were_traced_before():
    step = tf.function(lambda n: fib(n) + fib(n + 1))
    assert counted(lambda: int(step(tf.constant(8)))) == (55, 2, 0)
    with tfr.config.static_execution(False):
        assert counted(lambda: int(step(tf.constant(8)))) == (55, 0, 2)
    assert counted(lambda: int(step(tf.constant(8)))) == (55, 2, 0)


def test_limits_of_their_own_make_programs_of_their_own():
    def sum_to(max_depth):
        @tfr.recursive(input_signature=[tf.TensorSpec([], tf.int64)], max_depth=max_depth)
        def total(n):
            if n < 1:
                return n
            return n + total(n - 1)

        return total

    low, high = sum_to(100), sum_to(1_000)
    step = tf.function(lambda n, m: low(n) + high(m))

    def run(n, m):
        return int(step(tf.constant(n, tf.int64), tf.constant(m, tf.int64)))

    assert [part.count("Recursion>Invoke") for part in operators(run, 2, 3)] == [2]
    assert counted(lambda: run(50, 500)) == (50 * 51 // 2 + 500 * 501 // 2, 2, 0)
    for n, m in ((500, 50), (50, 5_000)):
        with pytest.raises(tf.errors.ResourceExhaustedError, match="max_depth"):
            run(n, m)


def test_called_in_a_body_that_runs_dynamically():
    @tf.function(experimental_attributes={"_noinline": True})
    def inner(n):
        return fib(n) * 2

    @tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32)], output_signature=tf.TensorSpec([], tf.int32))
    def outer(n):
        if n < 1:
            return inner(n + 6)
        return outer(n - 1) + 1

    step = tf.function(lambda n: outer(n))
    assert int(step(tf.constant(3))) == 19
    with tfr.config.static_execution(False):
        assert counted(lambda: int(step(tf.constant(3))))[:2] == (19, 0)


def test_threads_share_the_program():
    step = tf.function(lambda n: (fib(n), fib(n) + n))
    step.get_concrete_function(tf.TensorSpec([], tf.int32))
    results = {}

    def run(n):
        with context.eager_mode():
            results[n] = [tuple(int(x) for x in step(tf.constant(n))) for _ in range(20)]

    threads = [threading.Thread(target=run, args=(n,)) for n in (3, 5, 7, 9, 11, 13)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    numbers = {3: 2, 5: 5, 7: 13, 9: 34, 11: 89, 13: 233}
    assert results == {n: [(number, number + n)] * 20 for n, number in numbers.items()}


def test_no_warning_is_given():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert int(tf.function(lambda n: fib(n))(tf.constant(9))) == 34
