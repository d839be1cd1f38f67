"""Mistakes with `tfr.recursive` are errors that say the function, what is wrong, and what to write."""
# SPDX-License-Identifier: Apache-2.0

import inspect
import re

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


@tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32)])
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@pytest.fixture(params=["eager", "tf.function"])
def called(request):
    """Calls a function eagerly, or in a tf.function."""
    return (lambda func: func()) if request.param == "eager" else (lambda func: tf.function(func)())


def contains(*texts):
    return "(?s)" + ".*".join(map(re.escape, texts))


def test_wrong_arguments_are_errors_that_name_the_function(called):
    with pytest.raises(TypeError, match=contains("Call of 'fib'", "too many positional arguments", "takes (n)")):
        called(lambda: fib(1, 2))
    with pytest.raises(TypeError, match=contains("Call of 'fib'", "missing a required argument: 'n'")):
        called(lambda: fib())
    with pytest.raises(TypeError, match=contains("Call of 'fib'", "float32", "int32")):
        called(lambda: fib(tf.constant(1.0)))


def test_argument_that_is_no_nest_is_an_error_that_says_what_to_write(called):
    class State:
        __hash__ = None  # as of a class that has __eq__ alone

        def __init__(self, x):
            self.x = x

        def __repr__(self):
            return f"State(x={self.x})"

    @tfr.recursive
    def last(state):
        return state.x if state.x < 1 else last(State(state.x - 1))

    message = contains("Call of 'last'", "State(x=", "__tf_flatten__", "a named tuple", "takes (state)")
    with pytest.raises(TypeError, match=message):
        called(lambda: last(State(tf.constant(3))))
    with pytest.raises(TypeError, match=contains("Call of 'last'", "{1}", "not a hashable one")):
        called(lambda: last({1}))


def test_tensor_of_another_graph_is_an_error():
    with tf.Graph().as_default():
        far = tf.constant(1, name="far")
    with pytest.raises(ValueError, match=contains("Call of 'fib'", "'far:0'", "another graph")):
        tf.function(lambda: fib(far))()


def test_recursion_without_a_base_case_is_an_error_that_says_what_to_write(called):
    @tfr.recursive
    def endless(n):
        return endless(n + 1)

    with pytest.raises(TypeError, match=contains("'endless'", "every path", "output_signature=")):
        called(lambda: endless(tf.constant(1)))


def test_mutual_recursion_without_a_base_case_is_an_error(called):
    @tfr.recursive
    def ping(n):
        return pong(n)

    @tfr.recursive
    def pong(n):
        return ping(n) if n > 1 else ping(n + 1)

    with pytest.raises(TypeError, match=contains("'ping'", "every path", "output_signature=")):
        called(lambda: ping(tf.constant(1)))


def test_return_in_a_loop_says_so_where_it_needs_another_call(called):
    @tfr.recursive
    def search(n):
        for child in tf.range(n):
            found = search(child)
            if found > 0:
                return found
        return tf.constant(0)

    with pytest.raises(TypeError, match=contains("Function 'search'", "`return` in a loop", "`break`")) as error:
        called(lambda: search(tf.constant(3)))
    assert "every path" not in str(error.value)


def test_return_in_a_loop_says_so_where_the_base_case_is_known(called):
    @tfr.recursive
    def search(n):
        if n < 1:
            return tf.constant(1)
        while n > 0:
            if search(n - 1) > 0:
                return n
            n -= 1
        return tf.constant(0)

    message = contains("Function 'search'", "(test_recursive_errors.py, line ", "`return` in a loop", "`break`")
    with pytest.raises(NotImplementedError, match=message):
        called(lambda: search(tf.constant(3)))


def sums(signature):
    @tfr.recursive(input_signature=signature)
    def sum_of(x):
        return sum_of(x[1:]) + x[0] if x.shape[0] > 1 else x[0]

    return sum_of(tf.ones([6]))


def test_number_that_is_none_because_a_signature_leaves_it_open_is_an_error_whose_remedy_works(called):
    message = contains("Function 'sum_of'", "gets None", "without a signature", "'NoneType' and 'int'")
    with pytest.raises(TypeError, match=message):
        called(lambda: sums([tf.TensorSpec([None])]))
    assert called(lambda: sums(None)) == 6


def test_return_in_a_loop_of_a_function_that_another_one_calls_names_that_one(called):
    @tfr.recursive
    def outer(n):
        return inner(n)

    @tfr.recursive
    def inner(n):
        for child in tf.range(n):
            return outer(child)
        return 0

    with pytest.raises(TypeError, match=contains("Function 'inner'", "`return` in a loop")):
        called(lambda: outer(tf.constant(3)))


def test_remedy_for_a_return_in_a_loop_works(called):
    @tfr.recursive
    def search(n):
        found = tf.constant(0)
        for child in tf.range(n):
            found = search(child) + 1
            if found > 2:
                break
        return found

    assert int(called(lambda: search(tf.constant(5)))) == 3


def test_variable_without_a_value_before_a_loop_is_named_where_it_needs_another_call(called):
    @tfr.recursive
    def last(n):
        for child in tf.range(n):
            y = last(child)
        return y

    message = contains("Function 'last'", "'y' has no value before a loop", "before the loop", "output_signature=")
    with pytest.raises(TypeError, match=message):
        called(lambda: last(tf.constant(3)))


def test_variable_without_a_value_before_a_loop_is_no_error_where_another_path_tells_its_kind(called):
    """`halved` can be found out by itself, though it calls `last` as well."""

    @tfr.recursive
    def last(n):
        for child in tf.range(n):
            y = halved(child)
        return y

    @tfr.recursive
    def halved(n):
        if n < 2:
            return n
        return last(n // 2) + 1

    assert int(called(lambda: last(tf.constant(7)))) == 2  # halved(6) = last(3) + 1 = halved(2) + 1 = last(1) + 2 = 2


def test_function_without_a_base_case_is_named_where_a_loop_was_looked_at_before(called):
    """What the loop needs is known once that function has been looked at."""

    @tfr.recursive
    def same(n):
        return n

    @tfr.recursive
    def endless(n):
        for child in tf.range(n):
            y = same(child)
        return endless(y)

    with pytest.raises(TypeError, match=contains("Function 'endless'", "every path through its body")):
        called(lambda: endless(tf.constant(3)))


def test_function_without_a_base_case_is_named_where_another_one_calls_it_in_a_loop(called):
    @tfr.recursive
    def endless(n):
        return endless(n - 1)

    @tfr.recursive
    def last(n):
        for child in tf.range(n):
            y = endless(child)
        return y

    with pytest.raises(TypeError, match=contains("Function 'endless'", "every path through its body")):
        called(lambda: last(tf.constant(3)))


def test_other_dtype_than_the_base_case_is_an_error_that_says_both(called):
    @tfr.recursive
    def total(n):
        if n < 1:
            return 0.0
        return n + total(n - 1)

    with pytest.raises(TypeError, match=contains("int32", "Function 'total'", "float32", "output_signature")):
        called(lambda: total(tf.constant(1)))


def test_results_other_than_the_output_signature_are_errors(called):
    def define(spec, value):
        return tfr.recursive(output_signature=spec, name="F")(lambda: value())

    with pytest.raises(
        TypeError, match=contains("Function 'F' returns", "int32", "output_signature states", "float32")
    ):
        called(lambda: define(tf.float32, lambda: tf.constant(1))())
    with pytest.raises(ValueError, match=contains("Function 'F'", "(3,)", "output_signature states (2,)")):
        called(lambda: define(tf.TensorSpec([2], tf.float32), lambda: tf.zeros([3]))())
    with pytest.raises(TypeError, match=contains("Function 'F' returns", "output_signature states")):
        called(lambda: define({"a": tf.float32}, lambda: (tf.zeros([]), tf.zeros([])))())


@pytest.mark.thorough
def test_kinds_of_arguments_without_end_are_an_error_that_says_what_to_write():
    @tfr.recursive
    def deeper(x, depth):
        if x < 1:
            return x
        return deeper(x - 1, f"{int(depth) + 1}")

    message = contains("Call of 'deeper'", "('depth' is '64', and was '63')", "tf.constant(n)", "input_signature=")
    with pytest.raises(TypeError, match=message) as error:
        deeper(tf.constant(1), "0")
    assert "Function 'deeper'" not in str(error.value)  # what it is taken to return has nothing to do with it


@pytest.mark.full_matrix
def test_kinds_of_arguments_without_end_are_told_of_shapes_and_through_other_functions():
    @tfr.recursive(reduce_retracing=False)
    def ping(x, n):
        return x if n < 1 else pong(tf.concat([x, [1.0, 2.0]], 0), n)

    @tfr.recursive(reduce_retracing=False)
    def pong(x, n):
        return ping(x[1:], n - 1)

    message = contains("Call of 'p", "kinds of arguments", "('x' is a tensor float32(", "and was a tensor float32(")
    with pytest.raises(TypeError, match=message):
        ping(tf.ones([3]), tf.constant(1))


@pytest.mark.thorough
def test_error_after_many_kinds_of_arguments_says_that_they_may_be_the_cause():
    """TensorFlow refuses the shape before there are as many kinds as are taken for endless."""

    @tfr.recursive(reduce_retracing=False)
    def doubled(x, n):
        return x if n < 1 else doubled(tf.concat([x, x], 0), n - 1)

    message = contains("overflow", "Function 'doubled'", "('x' is a tensor float32(", "and was", "input_signature=")
    with pytest.raises(ValueError, match=message) as error:
        doubled(tf.ones([3]), tf.constant(1))
    assert str(error.value).count("input_signature=") == 1


def test_error_of_a_body_says_nothing_of_kinds_of_arguments_where_there_are_few():
    @tfr.recursive
    def few(x, depth):
        if depth > 9:
            return tf.matmul(x, x)
        return few(x, depth + 1)

    with pytest.raises(ValueError, match="rank 2") as error:
        few(tf.ones([2]), 0)
    assert "input_signature=" not in str(error.value)


def test_number_too_large_for_a_kind_of_arguments_is_an_error_that_says_what_to_write():
    @tfr.recursive
    def squared(x, number):
        if x < 1:
            return x
        return squared(x - 1, number * number)

    message = contains("Call of 'squared'", "37339184", "a Python number of 489 digits", "tf.constant(n)")
    with pytest.raises(TypeError, match=message):
        squared(tf.constant(1), 3)
    for number, digits in ((3**1024, 489), (-(3**1024), 489), (3**10000, "thousands of")):
        message = contains("Call of 'squared'", f"a Python number of {digits} digits", "tf.constant(n)")
        with pytest.raises(TypeError, match=message):
            squared(tf.constant(1), number)


@pytest.mark.thorough
@pytest.mark.sampled(2)
def test_lists_that_grow_without_end_are_an_error_that_says_what_to_write(called):
    @tfr.recursive
    def doubled(x, n):
        if n < 1:
            return x
        return doubled(x * 2, n - 1)  # twice as long, if `x` is a list

    message = contains("Call of 'doubled'", "arguments hold", "tensors", "tf.stack")
    with pytest.raises(TypeError, match=message) as caught:
        called(lambda: doubled([tf.constant(1.0), tf.constant(2.0)], tf.constant(3)))
    assert len(str(caught.value)) < 5000


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize("value", ["ab", b"ab", [1, 2], {"numbers": (1, 2)}], ids=str)
def test_python_values_that_grow_without_end_are_an_error_that_says_what_to_write(value):
    """They would take all memory long before the recursion has asked for too many kinds of arguments."""

    def twice(some):
        return {"numbers": some["numbers"] * 2} if isinstance(some, dict) else some * 2

    @tfr.recursive
    def doubled(n, some):
        if n < 1:
            return n
        return doubled(n - 1, twice(some))

    with pytest.raises(
        TypeError, match=contains("Call of 'doubled'", "Python strings and lists", "grown to", "tf.constant")
    ):
        doubled(tf.constant(3), value)


def test_long_string_is_no_error():
    @tfr.recursive
    def length(text):
        if len(text) > 99_997:
            return 1 + length(text[1:])
        return tf.strings.length(text)

    assert int(length("a" * 100_000)) == 100_000


@pytest.mark.thorough
def test_list_that_grows_once_is_no_error():
    @tfr.recursive
    def total(values):
        if len(values) == 1:
            return total(values * 1001)
        return tf.add_n(values)

    assert int(total([tf.constant(1)])) == 1001


def test_error_of_a_body_says_the_line_of_the_user(called):
    @tfr.recursive
    def broken(x):
        if tf.size(x) < 1:
            return x
        return tf.matmul(x, broken(x))

    with pytest.raises(ValueError, match=contains("test_recursive_errors.py", "in broken", "rank 2")) as error:
        called(lambda: broken(tf.ones([2])))
    assert "specializations.py" not in str(error.value)


def test_error_of_a_branch_says_lines_of_the_user_alone(called):
    @tfr.recursive
    def squared(n):
        if n < 1:
            return tf.matmul(n, n)
        return squared(n - 1)

    with pytest.raises(ValueError, match=contains("in squared", "tf.matmul(n, n)", "rank 2")) as error:
        called(lambda: squared(tf.constant(1)))
    assert "replacements.py" not in str(error.value) and "inferring.py" not in str(error.value)


def test_explained_mistake_says_the_line_of_the_user(called):
    @tfr.recursive
    def uneven(n):
        return tf.cond(n < 1, lambda: n, lambda: None)

    line = inspect.getsourcelines(uneven.python_function)[1] + 2
    message = contains("Function 'uneven'", f"(test_recursive_errors.py, line {line})", "None is none")
    with pytest.raises(ValueError, match=message):
        called(lambda: uneven(tf.constant(1)))


def test_python_control_flow_by_tensors_without_autograph_is_an_error(called):
    @tfr.recursive(autograph=False)
    def plain(n):
        if n < 1:
            return n
        return plain(n - 1)

    with pytest.raises(TypeError, match=contains("Function 'plain'", "test_recursive_errors.py", "tf.cond")):
        called(lambda: plain(tf.constant(1)))


def test_assert_of_a_tensor_says_what_to_write(called):
    @tfr.recursive
    def checked(n):
        assert n >= 0
        return n if n < 1 else checked(n - 1)

    with pytest.raises(TypeError, match=contains("Function 'checked'", "`assert`", "tf.debugging.assert_")):
        called(lambda: checked(tf.constant(2)))


def test_branches_of_different_dictionaries_show_both(called):
    @tfr.recursive
    def keyed(n):
        if n == 0:
            return {"a": n}
        return {"b": keyed(n - 1)["a"]}

    with pytest.raises(TypeError, match=contains("Function 'keyed'", "different tuples or dictionaries", "{'b': ")):
        called(lambda: keyed(tf.constant(2)))


def test_unknown_name_is_the_error_of_python(called):
    @tfr.recursive
    def lost(n):
        return n if n < 1 else nowhere(n - 1)  # noqa: F821

    with pytest.raises(NameError, match="nowhere"):
        called(lambda: lost(tf.constant(1)))


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("decorate", "error", "message"),
    [
        (lambda: tfr.recursive(3), TypeError, "got 3, expected a function"),
        (lambda: tfr.recursive(max_depth=0), ValueError, "max_depth is 0, expected an integer >= 1"),
        (lambda: tfr.recursive(autograph="no"), TypeError, "autograph is 'no', expected True or False"),
        (lambda: tfr.recursive(name="a b"), ValueError, "'a b' is not a legal function name"),
        (lambda: tfr.recursive(output_signature="x")(fib.python_function), TypeError, "Function 'fib': 'x' is no"),
        (lambda: tfr.recursive(output_signature=1)(fib.python_function), TypeError, "Function 'fib': 1 is no"),
        (lambda: tfr.recursive(input_signature=[3])(fib.python_function), TypeError, "Function 'fib': input_signature"),
        (lambda: tfr.recursive(input_signature=[])(3), TypeError, "decorates a Python function, got 3"),
    ],
)
def test_bad_options_are_errors(decorate, error, message):
    with pytest.raises(error, match=re.escape(message)):
        decorate()


def test_too_deep_recursion_names_the_function_and_its_limit():
    @tfr.recursive(max_depth=50)
    def deep(n):
        return 0 if n < 1 else 1 + deep(n - 1)

    assert int(deep(tf.constant(40))) == 40
    with pytest.raises(tf.errors.ResourceExhaustedError, match=contains("'deep'", "limit is 50", "max_depth")):
        deep(tf.constant(1000))
    assert int(deep(tf.constant(40))) == 40


def divided(n):
    return tf.constant(1) // n  # the line


def in_branch(again, n):
    if n < 1:
        return divided(n)
    return again(n - 1) + 1


def in_loop(again, n):
    total = n
    for i in tf.range(3, -1, -1):
        total += divided(i)
    return total


def in_inner_function(again, n):
    return tf.function(divided, autograph=False)(n - n)


def straight(again, n):
    return divided(n - n)


def called_in_a_branch(call):
    return tf.function(lambda n: tf.cond(n > 0, lambda: call(n), lambda: n))


PLACES = {
    "eager": lambda call: call,
    "tf.function": lambda call: tf.function(call),
    "branch of a tf.function": called_in_a_branch,
    "tf.function in another": lambda call: tf.function(lambda n: tf.function(call)(n)),
    "gradient": lambda call: tf.function(lambda n: tf.gradients(tf.cast(call(n), tf.float32), n) or call(n)),
}


@pytest.mark.every_case
@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("body", [in_branch, in_loop, in_inner_function, straight], ids=lambda body: body.__name__)
def test_error_of_an_operator_names_the_line_that_made_it(body, place, is_static):
    @tfr.recursive
    def f(n):
        return body(f, n)

    with tfr.config.static_execution(is_static), pytest.raises(tf.errors.InvalidArgumentError) as raised:
        PLACES[place](lambda n: f(n))(tf.constant(2))
    message = raised.value.message
    assert names_the_line(message, divided)
    assert "tensorflow_recursion/" not in message.replace("tests/", "")
    assert "stack traces unavailable" not in message


def deeper(again, n):
    return again(n + 1)  # the line


@pytest.mark.every_case
@pytest.mark.parametrize("place", PLACES)
def test_error_of_a_recursion_too_deep_names_the_line_of_the_call(place):
    @tfr.recursive(max_depth=20, output_signature=tf.TensorSpec([], tf.int32))
    def f(n):
        if n < 0:
            return n
        return deeper(f, n)

    with pytest.raises(tf.errors.ResourceExhaustedError) as raised:
        PLACES[place](lambda n: f(n))(tf.constant(2))
    message = raised.value.message
    assert names_the_line(message, deeper)
    before, _, _ = message.partition("Recursion too deep")
    assert "stack traces unavailable" not in message and "__trace" not in before


def names_the_line(message, function):
    """Whether a message shows the line of a function that is marked."""
    lines, first = inspect.getsourcelines(function)
    marked = first + next(i for i, line in enumerate(lines) if "# the line" in line)
    return f'{__file__}", line {marked}, in {function.__name__}' in message


def divided_elsewhere(n):
    return tf.constant(2) // n  # the line


def test_error_in_a_branch_names_both_lines_when_the_other_branch_has_such_an_operator():
    """In dynamic execution TensorFlow names the conditional and the operator, but not the branch."""

    @tfr.recursive
    def f(n):
        if n > 5:
            return f(n - 1)
        if n > 3:
            return divided_elsewhere(n)
        return divided(n)

    with tfr.config.static_execution(False), pytest.raises(tf.errors.InvalidArgumentError) as raised:
        f(tf.constant(0))
    message = raised.value.message
    assert names_the_line(message, divided) and names_the_line(message, divided_elsewhere)
    assert "2 operators have this name" in message


def test_error_of_an_operator_beside_calls_is_as_in_tensorflow():
    @tfr.recursive
    def f(n):
        return n if n < 1 else f(n - 1)

    @tf.function(autograph=False)
    def function(n):
        return divided(f(n))

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)Graph execution error.*, in divided"):
        function(tf.constant(2))
