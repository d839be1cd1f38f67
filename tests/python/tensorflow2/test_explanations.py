"""What newcomers write that AutoGraph or TensorFlow refuse in a body: errors say what to write, and that works."""
# SPDX-License-Identifier: Apache-2.0

import functools
import re

import keras
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr
from tensorflow_recursion import errors

MISTAKES = {}


def mistake(*texts):
    """Enters a function that makes a recursive function and its arguments, and what its error has to say."""

    def add(make):
        MISTAKES[make.__name__] = (make, texts)
        return make

    return add


@mistake("'visit'", "leave out `return`", "under an `if` for the opposite")
def return_of_nothing():
    variable = tf.Variable(0)

    @tfr.recursive
    def visit(n):
        if n < 1:
            return
        variable.assign_add(1)
        visit(n - 1)

    return visit, [tf.constant(3)]


@mistake("'visit'", "leave out `return`", "under an `if` for the opposite")
def return_of_calls_that_return_nothing():
    @tfr.recursive
    def visit(n):
        if n < 1:
            return None
        return visit(n - 1)

    return visit, [tf.constant(3)]


@mistake("'scaled'", "If each path does return", "write `if` for an `elif` behind a `return`")
def return_behind_elif():
    @tfr.recursive
    def scaled(n):
        if n < 1:
            return 0
        elif n < 5:
            return scaled(n - 1)
        return scaled(n - 2)

    return scaled, [tf.constant(3)]


@mistake("'scaled'", "If each path does return", "put what follows under `else`")
def return_in_an_if_in_an_if():
    @tfr.recursive
    def scaled(n):
        if n > 1:
            if n < 5:
                return scaled(n - 1)
        return n

    return scaled, [tf.constant(3)]


@mistake("'scaled'", "A part of a tuple or dictionary", "may not be None either: leave it out")
def pair_with_none():
    @tfr.recursive
    def scaled(n):
        if n < 1:
            return n, None
        return scaled(n - 1)

    return scaled, [tf.constant(3)]


@mistake("'length'", "gets None", "let each `return` of that function return a value")
def computing_with_nothing():
    @tfr.recursive
    def length(n):
        if n < 1:
            return None
        return length(n - 1) + 1

    return length, [tf.constant(3)]


@mistake("'below'", "(test_explanations.py, line ", "'Sub' takes values of one dtype", "given 1.5")
def fraction_less_than_an_integer():
    @tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32)])
    def below(n):
        if n < 1:
            return n
        return below(n - 1.5)

    return below, [tf.constant(3)]


@mistake("'trees'", "cannot append to a Python list", "tf.TensorArray")
def list_of_a_loop():
    @tfr.recursive
    def trees(n):
        if n < 1:
            return 1.0
        values = []
        for i in tf.range(n):
            values.append(trees(i))
        return tf.reduce_sum(tf.stack(values))

    return trees, [tf.constant(3)]


@mistake("'trees'", "Nor can a branch", "append it behind the `if`")
def list_of_branches():
    @tfr.recursive
    def trees(n):
        values = []
        for i in range(2):
            if n > i:
                values.append(trees(n - i - 1))
            else:
                values.append(n)
        return tf.add_n(values)

    return trees, [tf.constant(3)]


@mistake("'trees'", "int32", "float32", "tf.TensorArray")
def list_of_a_loop_over_integers():
    @tfr.recursive
    def trees(n):
        if n < 1:
            return 1
        values = []
        for i in tf.range(n):
            values.append(trees(i))
        return tf.reduce_sum(tf.stack(values))

    return trees, [tf.constant(3)]


@mistake("'fib'", "cannot look up a tensor", "tf.lookup.experimental.MutableHashTable")
def dictionary_of_results():
    known = {}

    @tfr.recursive
    def fib(n):
        if n in known:
            return known[n]
        known[n] = n if n < 2 else fib(n - 1) + fib(n - 2)
        return known[n]

    return fib, [tf.constant(3)]


@mistake("'total'", "reads part 3", "tf.constant(n)", "slice index 3")
def python_index():
    @tfr.recursive
    def total(x, i):
        if tf.size(x) <= i:
            return 0.0
        return x[i] + total(x[1:], i)

    return total, [tf.constant([1.0, 2.0]), 3]


@mistake("'repeat'", "'result' has a value on one path", "before the `if`")
def variable_of_one_path():
    @tfr.recursive
    def repeat(x, n):
        if n > 0:
            result = repeat(x, n - 1)
        return result * x

    return repeat, [tf.constant(2.0), tf.constant(3)]


@mistake("'repeat'", "in a `with`, a `try` or a loop", "under `else`")
def return_in_a_scope():
    @tfr.recursive
    def repeat(x, n):
        with tf.name_scope("scope"):
            if n < 1:
                return x
            result = repeat(x, n - 1)
        return result * x

    return repeat, [tf.constant(2.0), tf.constant(3)]


@mistake("'marked'", "cannot be changed in place", "tf.tensor_scatter_nd_update")
def assignment_to_a_part():
    @tfr.recursive
    def marked(x, n):
        if n < 1:
            return x
        x[n] = 1.0
        return marked(x, n - 1)

    return marked, [tf.zeros([4]), tf.constant(3)]


@mistake("'rounded'", "has no 'astype', which is NumPy's", "tf.round(x)")
def method_of_numpy():
    @tfr.recursive
    def rounded(x, n):
        return round(x) if n < 1 else rounded(x * 2.0, n - 1)

    return rounded, [tf.constant(0.3), tf.constant(3)]


@mistake("'largest'", "has no 'max', which is NumPy's", "tf.reduce_max(x)")
def method_of_numpy_alone():
    @tfr.recursive
    def largest(x, n):
        return x.max() if n < 1 else largest(x * 2.0, n - 1)

    return largest, [tf.constant([0.3]), tf.constant(3)]


@mistake("'depth'", "(test_explanations.py, line ", "leave tf.constant out")
def constant_of_a_tensor():
    @tfr.recursive
    def depth(n):
        return n if n < 1 else depth(tf.constant(n - 1)) + 1

    return depth, [tf.constant(3)]


@mistake("'depth'", "take tensors of bool, and here is one of int32", "n == 0 for `not n`")
def not_of_a_number():
    @tfr.recursive
    def depth(n):
        return 0 if not n else depth(n - 1) + 1

    return depth, [tf.constant(3)]


@mistake("'depth'", "the branches of a conditional are functions", "lambda: x")
def branch_that_is_no_function():
    @tfr.recursive
    def depth(n):
        return tf.cond(n < 1, n, lambda: depth(n - 1) + 1)

    return depth, [tf.constant(3)]


@mistake("'depth'", "object object at", "stands where a tensor is needed", "in tuples, lists or dictionaries")
def object_of_a_branch():
    @tfr.recursive
    def depth(n):
        if n < 1:
            return object()
        return depth(n - 1)

    return depth, [tf.constant(3)]


@mistake("n is negative", "'factorial'", "this `raise`", "whatever the tensor will be", "tf.debugging.assert_positive")
def raise_in_a_branch():
    @tfr.recursive
    def factorial(n):
        if n < 0:
            raise ValueError("n is negative")
        return 1 if n < 1 else n * factorial(n - 1)

    return factorial, [tf.constant(3)]


@mistake("'bits'", "a // b and a % b")
def quotient_and_remainder():
    @tfr.recursive
    def bits(n):
        rest, bit = divmod(n, 2)
        return bit if rest == 0 else bits(rest) + bit

    return bits, [tf.constant(5)]


@mistake("'product'", "one dtype", "int32", "taken to return", "float32", "output_signature")
def product_of_two_dtypes():
    @tfr.recursive
    def product(n):
        if n < 1:
            return 1.0
        return n * product(n - 1)

    return product, [tf.constant(3)]


@mistake("Call of 'power'", "KerasTensor", "keras.layers.Layer")
def functional_model():
    @tfr.recursive
    def power(x, n):
        return x if n < 1 else x * power(x, n - 1)

    return power, [keras.Input([3]), tf.constant(3)]


@pytest.mark.every_case
@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_an_error_that_says_what_to_write(name):
    make, texts = MISTAKES[name]
    function, args = make()
    with pytest.raises(
        (TypeError, ValueError, AttributeError), match="(?s)" + ".*".join(map(re.escape, texts))
    ) as error:
        function(*args)
    is_of_results = "taken to return" in texts
    assert ("taken to return" in str(error.value)) == is_of_results


def test_raise_that_does_not_go_by_a_tensor_stays_as_it_is():
    def checked(x, mode):
        if mode not in ("sum", "mean"):
            raise ValueError(f"there is no mode {mode}")
        return x

    @tfr.recursive
    def reduced(x, n, mode):
        if n < 1:
            return checked(x, mode)
        return reduced(x, n - 1, mode)

    with pytest.raises(ValueError, match="there is no mode max") as error:
        reduced(tf.constant(1.0), tf.constant(3), "max")
    assert "this `raise`" not in str(error.value)


@pytest.mark.thorough
@pytest.mark.parametrize("autograph", [True, False])
def test_function_of_python_that_calls_itself_is_an_error_that_says_what_to_write(autograph):
    def sum_to(n):
        return tf.cond(n < 1, lambda: n, lambda: n + sum_to(n - 1))

    total = tfr.recursive(lambda n: sum_to(n), name="total", autograph=autograph)
    with pytest.raises(Exception, match=r"'total'.*calls itself.*without end: put @tfr.recursive above its `def`"):
        total(tf.constant(3))
    sum_to = tfr.recursive(sum_to, autograph=autograph)
    assert int(total(tf.constant(3))) == 6


def test_function_without_a_result_works_as_the_error_says():
    variable = tf.Variable(0)

    @tfr.recursive
    def visit(n):
        if n >= 1:
            variable.assign_add(1)
            visit(n - 1)

    visit(tf.constant(3))
    assert int(variable) == 3


def test_list_works_as_the_error_says():
    @tfr.recursive
    def trees(n):
        if n < 1:
            return 1
        values = tf.TensorArray(tf.int32, n)
        for i in tf.range(n):
            values = values.write(i, trees(i))
        return tf.reduce_sum(values.stack())

    assert int(trees(tf.constant(4))) == 8


@pytest.mark.parametrize("is_stated", [False, True])
def test_tf_function_is_taken_for_the_function_in_it(is_stated):
    """Otherwise all of the body, and the condition in it, would be in a function of its own."""

    @tfr.recursive
    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)] if is_stated else None)
    def fib(n):
        if n < 2:
            return n
        return fib(n - 1) + fib(n - 2)

    class Net(tf.Module):
        @tfr.recursive
        @tf.function
        def fib(self, n):
            return n if n < 2 else self.fib(n - 1) + self.fib(n - 2)

    assert int(fib(10 if is_stated else tf.constant(10, tf.int64))) == 55
    assert int(Net().fib(tf.constant(10))) == 55


def test_class_is_refused():
    with pytest.raises(TypeError, match="recursive decorates a Python function, got <class"):

        @tfr.recursive
        class Fib:
            pass


def values(n):
    yield n


async def later(n):
    return n


async def values_later(n):
    yield n


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("func", "message"),
    [
        (values, "'values' has a `yield`. Return the values"),
        (functools.partial(values), "has a `yield`. Return the values"),
        (later, "'later' has `async`. Write a plain `def`"),
        (values_later, "'values_later' has `async`. Write a plain `def`"),
    ],
)
def test_function_that_returns_no_values_is_refused(func, message):
    with pytest.raises(TypeError, match="recursive decorates.*" + re.escape(message)):
        tfr.recursive(func)
    with tf.Graph().as_default(), pytest.raises(TypeError, match="'F': Defun decorates.*" + re.escape(message)):
        tfr.Defun(tf.int32, func_name="F")(func)


def test_errors_that_are_causes_of_each_other_are_walked_once():
    """Looking for an error of a body among the causes of another one went round for ever."""
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__context__ = other, one
    assert list(errors.with_causes(one)) == [one, other]
