"""Mistakes in bodies that AutoGraph converts, or cannot convert: errors say function, line, and what to write."""
# SPDX-License-Identifier: Apache-2.0

import dataclasses
import inspect
import json
import math
import re
import textwrap

import keras
import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


def contains(*texts):
    return "(?s)" + ".*".join(map(re.escape, texts))


def without_source(code, file):
    """What `exec` makes of some code, as if it came from a file of that name."""
    made = {"tf": tf, "tfr": tfr}
    exec(compile(textwrap.dedent(code), file, "exec"), made)
    return made


FILES = ["<string>", "<stdin>"]  # AutoGraph does not look for the source of the first one
NO_SOURCE = "because Python finds no source of it"


@pytest.mark.parametrize("file", FILES)
def test_body_without_source_is_an_error_that_says_so(file):
    code = """
        @tfr.recursive
        def fib(n):
            if n < 2:
                return n
            return fib(n - 1) + fib(n - 2)
        """
    fib = without_source(code, file)["fib"]
    message = contains("Function 'fib'", "could not convert 'fib'", NO_SOURCE, "into a file", "`if`", "tf.cond")
    for _ in range(2):  # AutoGraph remembers what it could not convert
        with pytest.raises(TypeError, match=message):
            fib(tf.constant(3))


WITHOUT_SOURCE = {
    "if": ("x = x if x > 1 else x + 1", "tf.cond"),
    "for": ("for part in tf.reshape(x, [1]): x += part", "tf.unstack"),
    "range": ("for i in range(x): x += i", "tf.range"),
    "and": ("x += sum(1 for i in [1, 2] if x > 1 and i > 1)", "tf.logical_and"),
    "len": ("x += len(tf.range(x))", "tf.shape(x)[0]"),
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("name", WITHOUT_SOURCE)
def test_function_without_source_that_a_body_calls_is_named(name, file):
    statement, remedy = WITHOUT_SOURCE[name]
    helper = without_source(f"def helper(x):\n    {statement}\n    return x", file)["helper"]

    @tfr.recursive
    def f(n):
        if n < 1:
            return n
        return f(helper(n) - 2)

    with pytest.raises(TypeError, match=contains("Function 'f'", "could not convert 'helper'", NO_SOURCE, remedy)):
        f(tf.constant(3))


def test_method_without_source_is_named():
    code = """
        class Clipped:
            def __call__(self, x):
                return x if x < 3 else 3
        """
    clipped = without_source(code, "<stdin>")["Clipped"]()
    with pytest.raises(TypeError, match=r"could not convert '(Clipped\.)?__call__'"):
        tfr.recursive(lambda n: clipped(n))(tf.constant(3))


def test_function_without_source_works_where_nothing_has_to_be_converted():
    helper = without_source("def helper(x): return x - 1", "<stdin>")["helper"]

    @tfr.recursive
    def f(n):
        if n < 1:
            return n
        return f(helper(n))

    assert int(f(tf.constant(3))) == 0


def test_lambda_that_autograph_cannot_tell_from_another_is_an_error_that_says_so():
    # fmt: off
    down, up = tfr.recursive(lambda n: n if n < 1 else down(n - 1)), tfr.recursive(lambda n: n if n > 9 else up(n + 1))
    # fmt: on
    for function in (down, up):
        with pytest.raises(TypeError, match=contains("could not convert a lambda", "a line of its own", "tf.cond")):
            function(tf.constant(3))


def walrus(n):
    if (m := n - 1) < 1:
        return n
    return m


def late_options(n):
    while n > 1:
        n = n - 1
        tf.autograph.experimental.set_loop_options(parallel_iterations=1)
    return n


def for_else(n):
    for i in tf.range(n):
        n = n + i
    else:
        n = n - 1
    return n


def makes_a_function(n):
    def inner(m):
        return m if m < 1 else m - 1

    return inner(n) if (unused := 3) else unused


def matching(n):
    kind = ("less", 1)
    match kind:
        case ("less", k):
            return n if n < 1 else n - k
    return n


FAILURES = {  # what AutoGraph says of them
    walrus: "NamedExpr: (m := (n - 1))",
    late_options: '"set_loop_options" must be the first statement in the loop block',
    for_else: "for/else statement not yet supported",
    matching: "Match: match with kind",
    makes_a_function: "NamedExpr: (unused := 3)",
}


@pytest.mark.parametrize("is_called", [False, True], ids=["the body", "called"])
@pytest.mark.parametrize("function", FAILURES, ids=lambda function: function.__name__)
def test_function_that_autograph_fails_to_convert_is_an_error_that_says_why(function, is_called):
    failure = f"AutoGraph could not convert '{function.__name__}' ({FAILURES[function]}); write that in another way"

    @tfr.recursive
    def f(n):
        return n if n < 1 else f(function(n))

    called = f if is_called else tfr.recursive(function)
    says = contains(f"Function '{called.__name__}' (test_mistakes", failure, "Unconverted, Python's")
    with pytest.raises(TypeError, match=says):
        called(tf.constant(3))


@pytest.mark.parametrize("file", [*FILES, "converted"])
def test_body_that_is_not_to_be_converted_says_nothing_of_its_source(file):
    def converted(n):
        return n if n < 1 else n - 1

    function = converted if file == "converted" else without_source("def f(n): return n if n < 1 else n - 1", file)["f"]
    with pytest.raises(TypeError, match="tf.cond") as error:
        tfr.recursive(function, autograph=False)(tf.constant(3))
    assert "source" not in str(error.value)


def choice(n):
    return n if n < 1 else n - 1


def counted(n):
    while n > 1:
        n = n - 1
    return n


def summed(n):
    total = 0
    for part in tf.reshape(n, [1]):
        total += part
    return total


def in_range(n):
    total = 0
    for i in range(n):
        total += i
    return total


def length(n):
    return len(tf.reshape(n, [1]))


def negated(n):
    return n if not (n > 1) else n - 1


def choice_of_a_helper(n):
    return choice(n) + 1


def choice_in_a_branch(n):
    return tf.cond(n < 1, lambda: n, lambda: choice(n))


def choice_in_a_map(n):
    return tf.map_fn(lambda part: choice(part), tf.reshape(n, [1]))


UNCONVERTED = {  # what Python cannot do by itself
    choice: "tf.cond",
    counted: "tf.while_loop",
    summed: "tf.unstack",
    in_range: "tf.range",
    length: "tf.shape(x)[0]",
    negated: "tf.logical_not",
    choice_of_a_helper: "tf.cond",
    choice_in_a_branch: "tf.cond",
    choice_in_a_map: "tf.cond",
}
NOT_BY_AUTOGRAPH = "AutoGraph converts neither the body nor what it calls, because of autograph=False; leave that out. "


@pytest.mark.parametrize("body", UNCONVERTED, ids=lambda body: body.__name__)
def test_body_that_is_not_to_be_converted_says_so(body):
    says = contains(f"Function '{body.__name__}' (test_mistakes", NOT_BY_AUTOGRAPH, "Unconverted, ", UNCONVERTED[body])
    with pytest.raises(TypeError, match="^" + says.replace("(?s)", "")):
        tfr.recursive(body, autograph=False)(tf.constant(3))
    tfr.recursive(body)(tf.constant(3))


def test_body_that_is_not_to_be_converted_says_what_autograph_would_not_convert():
    says = contains("Function 'f' (test_mistakes", NOT_BY_AUTOGRAPH, "tf.cond", "error then: ", "`max`", "tf.maximum")

    def f(n):
        return max(n, n + 1)

    with pytest.raises(TypeError, match=says):
        tfr.recursive(f, autograph=False)(tf.constant(3))


class Choices:
    @tfr.recursive(autograph=False)
    def choice(self, n):
        return n if n < 1 else self.choice(n - 1)


def test_method_that_is_not_to_be_converted_says_so():
    with pytest.raises(TypeError, match=contains("Function 'choice'", NOT_BY_AUTOGRAPH, "Unconverted, ")):
        Choices().choice(tf.constant(3))


HAS_NOT = "AutoGraph has not converted 'choice': it converts the body and what the body calls, but "


@pytest.mark.parametrize("is_called", [False, True], ids=["the body", "called"])
def test_do_not_convert_is_named(is_called):
    function = tf.autograph.experimental.do_not_convert(choice_of_a_helper)

    @tfr.recursive
    def f(n):
        return n if n < 1 else f(function(n))

    called = f if is_called else tfr.recursive(function)
    says = contains(f"Function '{called.__name__}'", HAS_NOT, "experimental.do_not_convert", "Unconverted, ", "tf.cond")
    with pytest.raises(TypeError, match=says):
        called(tf.constant(3))


class Clipped:
    def __init__(self, n, is_checked=False):
        self.n = choice(n) if is_checked else n

    @property
    def clipped(self):
        return choice(self.n)

    def __add__(self, other):
        return choice(self.n) + other

    def __enter__(self):
        return choice(self.n)

    def __exit__(self, *_):
        pass


class Layer(keras.layers.Layer):
    def call(self, n):
        return choice(n)


def entered(n):
    with Clipped(n) as clipped:
        return clipped


@tf.custom_gradient
def own_gradient(n):
    return choice(n), lambda grad: grad


BEYOND_AUTOGRAPH = {
    "constructor": lambda n: Clipped(n, is_checked=True).n,
    "property": lambda n: Clipped(n).clipped,
    "operator": lambda n: Clipped(n) + 1,
    "with": entered,
    "layer": lambda n: Layer()(n),
    "tf.function": tf.function(choice, autograph=False),
    "map": lambda n: sum(map(choice, [n, n])),
    "map_structure": lambda n: tf.nest.map_structure(choice, (n, n))[0],
    "custom_gradient": lambda n: own_gradient(n),
}


@pytest.mark.parametrize("name", BEYOND_AUTOGRAPH)
def test_what_autograph_does_not_come_to_is_an_error_that_says_so(name):
    helper = BEYOND_AUTOGRAPH[name]

    @tfr.recursive
    def f(n):
        return n if n < 1 else f(helper(n))

    with pytest.raises(TypeError, match=contains("Function 'f' (", HAS_NOT, "Unconverted, ", "tf.cond")):
        f(tf.constant(3))


def test_constructor_that_is_made_is_not_what_autograph_failed_at():
    @dataclasses.dataclass(frozen=True)
    class Positive:
        n: tf.Tensor

        def __post_init__(self):
            choice(self.n)

    with pytest.raises(TypeError, match=contains("Function '", HAS_NOT)):
        tfr.recursive(lambda n: Positive(n).n)(tf.constant(3))


def test_tf_function_is_converted_that_an_unconverted_body_calls():
    inner = {mistake: tf.function(mistake) for mistake in (choice, larger)}
    assert int(tfr.recursive(lambda n: inner[choice](n), autograph=False)(tf.constant(3))) == 2
    with pytest.raises(TypeError, match="AutoGraph does not convert `if` in a comprehension.*tf.maximum") as error:
        tfr.recursive(lambda n: inner[larger](n), autograph=False)(tf.constant(3))
    assert "autograph=False" not in str(error.value)


def sine(n):
    return math.sin(n)


def absolute(n):
    return np.abs(n)


def key(n):
    return {0: 1}[n]


def sum_of_dtypes(n):
    return n + tf.constant(1.5)


def none_from_loop(n):
    return tf.while_loop(lambda i: i < n, lambda i: None, [0])


def positive_parts(n):
    return tf.add_n([part for part in [n, n + 1] if part > 0])


def larger(n):
    return max(n, 2)


def taken_apart(n):
    a, b = tf.stack([n, n])
    return a + b


def numbered(n):
    return sum(i * part for i, part in enumerate(tf.stack([n, n])))


# What TensorFlow's own message begins with, before which AutoGraph puts lines of the user.
MISTAKES = {
    sine: "write TensorFlow's operators",
    absolute: "tf.py_function",
    key: "tf.switch_case",
    sum_of_dtypes: "tf.constant(0, tf.int64)",
    none_from_loop: "None stands where a tensor is needed",
    positive_parts: "AutoGraph does not convert `if` in a comprehension",
    larger: "tf.maximum",
    taken_apart: "Python can neither take a tensor apart (`a, b = x`",
    numbered: "`enumerate`, `zip` or in a comprehension",
}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_mistake_in_a_converted_body_says_function_line_and_remedy(mistake):
    @tfr.recursive
    def f(n):
        if n < 1:
            return mistake(n)
        return f(n - 1)

    line = mistake.__code__.co_firstlineno + 1
    message = re.escape(f"Function 'f' ({__name__}.py, line {line}): ") + contains("", MISTAKES[mistake])
    with pytest.raises((TypeError, ValueError, RuntimeError), match="^" + message.replace("(?s)", "")) as error:
        f(tf.constant(3))
    assert "in user code" not in str(error.value)


def test_mistake_in_a_function_that_a_converted_one_makes_says_the_line():
    @tf.function
    def outer(n):
        @tfr.recursive
        def inner(n):
            return n if n < 1 else inner(n - 1) + math.sin(n)  # the line

        return inner(n)

    lines, first = inspect.getsourcelines(outer.python_function)
    line = first + next(i for i, text in enumerate(lines) if "the line" in text)
    with pytest.raises(TypeError, match=contains(f"Function 'inner' ({__name__}.py, line {line})", "TensorFlow's")):
        outer(tf.constant(3))


IN_INNER = {
    "other structures": (lambda n, outer: tf.cond(n < 2, lambda: (n, n), lambda: {"n": outer(n - 1)}), "of a tf.cond"),
    "other dtypes": (lambda n, outer: outer(tf.constant(1.5) * n), "values of one dtype"),
}


@pytest.mark.parametrize("body, says", IN_INNER.values(), ids=IN_INNER)
def test_mistake_in_the_body_of_another_function_names_that_one_alone(body, says):
    @tfr.recursive
    def outer(n):
        return n if n < 1 else inner(n - 1)

    @tfr.recursive
    def inner(n):
        return n if n < 1 else body(n, outer)

    with pytest.raises((TypeError, AssertionError), match=contains("Function 'inner'", says)) as error:
        outer(tf.constant(3))
    assert "Function 'outer'" not in str(error.value)
    assert "in outer" in str(error.value) and "contextlib" not in str(error.value)  # the lines that led there


def test_case_whose_branches_differ_says_so_where_another_branch_recurses():
    @tfr.recursive
    def f(n):
        return tf.switch_case(n, [lambda: n, lambda: (n, n), lambda: f(n - 1)])

    with pytest.raises(AssertionError, match=contains("Function 'f'", "different numbers", "tf.switch_case")):
        f(tf.constant(3))


def test_error_of_a_kind_that_takes_more_than_a_message_is_not_lost():
    @tfr.recursive(autograph=False)
    def f(n):
        return tf.cond(n < 1, lambda: n, lambda: f(n - 1) + len(json.loads("no json")))

    with pytest.raises(ValueError, match=contains("Expecting value", "output_signature")):
        f(tf.constant(3))


@tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32)])
def with_too_many(n):
    if n < 2:
        return n
    return with_too_many(n - 1, 3) + with_too_many(n - 2)


@tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32)])
def with_list(n):
    if n < 2:
        return n
    return with_list([n - 1]) + with_list(n - 2)


@tfr.recursive
def with_fraction(n):
    if n < 2:
        return n
    return with_fraction(n - 1.5)


@tfr.recursive
def with_wrong_shape(n):
    if n > 2:
        return with_wrong_shape(tf.reshape(n, "x"))
    return n


@tf.function
def stock_with_fraction(n):
    if n < 2:
        return n
    return n - 1.5


WRONG_CALLS = {
    with_too_many: "with_too_many(n - 1, 3)",
    with_list: "with_list([n - 1])",
    with_fraction: "with_fraction(n - 1.5)",
    with_wrong_shape: 'tf.reshape(n, "x")',
    stock_with_fraction: "n - 1.5",
}


@pytest.mark.parametrize("function", WRONG_CALLS, ids=lambda function: function.__name__)
def test_line_of_a_branch_that_returns_is_named(function):
    lines, first = inspect.getsourcelines(function.python_function)
    line = first + next(i for i, text in enumerate(lines) if WRONG_CALLS[function] in text)
    with pytest.raises((TypeError, ValueError)) as error:
        function(tf.constant(3))
    assert f"line {line}" in str(error.value)
    assert "__autograph_generated_file" not in str(error.value)


@pytest.mark.parametrize("uses", [True, False], ids=["used", "returned"])
def test_tensor_of_a_loop_that_a_helper_assigns_is_an_error_that_says_what_to_write(uses):
    @tfr.recursive
    def total(x, n):
        def add(i):
            nonlocal x
            x = x + i

        for i in tf.range(n):
            add(i)
        return total(x, n - 1) if uses and n > 0 else x

    with pytest.raises(ValueError, match=contains("Function 'total'", "a tensor of a loop", "`nonlocal` variable")):
        total(tf.constant(1), tf.constant(3))


def test_tensor_of_a_branch_that_a_list_keeps_is_an_error_that_says_what_to_write():
    kept = []

    @tfr.recursive
    def last(x, n):
        if n > 0:
            kept.append(x * 2)
        return last(kept[-1], n - 1) if n > 0 else x

    with pytest.raises(ValueError, match=contains("Function 'last'", "a branch or another function", "return it")):
        last(tf.constant(1), tf.constant(3))
