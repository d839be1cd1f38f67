"""Where a path returns something else than is stated of a function, the error says so, not that two branches differ."""
# SPDX-License-Identifier: Apache-2.0

import inspect
import re

import numpy as np
import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

NUMBER = tf.TensorSpec([], tf.int32)
# What is stated, what the base case returns, and what the error says of that.
STATED = {
    "dtype": (tf.TensorSpec([], tf.float32), lambda n: n, "int32"),
    "dtype of a part": (
        (NUMBER, tf.TensorSpec([], tf.int64)),
        lambda n: (n, n),
        "(TensorSpec(shape=(), dtype=tf.int32",
    ),
    "number": ((NUMBER, NUMBER), lambda n: n, "returns TensorSpec("),
    "greater number": ((NUMBER,), lambda n: (n, n), "returns (TensorSpec("),
    "list": ((NUMBER, NUMBER), lambda n: [n, n], "returns [TensorSpec("),
    "dictionary": ({"a": NUMBER}, lambda n: {"b": n}, "returns {'b': TensorSpec("),
    "nest": ({"a": (NUMBER, NUMBER)}, lambda n: {"a": (n, (n,))}, "returns {'a': (TensorSpec("),
    "ragged tensor": (NUMBER, lambda n: tf.RaggedTensor.from_row_lengths([1], [1]), "RaggedTensorSpec"),
    "rank": (tf.TensorSpec([1], tf.int32), lambda n: n, "returns ()"),
    "size": (tf.TensorSpec([2], tf.int32), lambda n: tf.stack([n, n, n]), "returns (3,)"),
}
SHAPES = ("rank", "size")


def early_return(spec, base):
    @tfr.recursive(output_signature=spec)
    def f(n):
        if n < 1:
            return base(n)
        return f(n - 1)

    return f


def converted_if(spec, base):
    @tfr.recursive(output_signature=spec)
    def f(n):
        if n < 1:
            result = base(n)
        else:
            result = f(n - 1)
        return result

    return f


def conditional(spec, base):
    @tfr.recursive(output_signature=spec)
    def f(n):
        return tf.cond(n < 1, lambda: base(n), lambda: f(n - 1))

    return f


def choice(spec, base):
    @tfr.recursive(output_signature=spec)
    def f(n):
        return tf.switch_case(n, [lambda: base(n), lambda: f(n - 1)])

    return f


def converted_loop(spec, base):
    @tfr.recursive(output_signature=spec)
    def f(n):
        result = base(n)
        for i in tf.range(n):
            result = f(i)
        return result

    return f


def loop(spec, base):
    @tfr.recursive(output_signature=spec)
    def f(n):
        return tf.while_loop(lambda i, _: i < n, lambda i, _: (i + 1, f(i)), (0, base(n)))[1]

    return f


def mutual(spec, base):
    @tfr.recursive(output_signature=spec)
    def f(n):
        if n < 1:
            return base(n)
        return g(n - 1)

    @tfr.recursive
    def g(n):
        return f(n - 1)

    return f


KINDS = (early_return, converted_if, conditional, choice, converted_loop, loop, mutual)


@pytest.mark.each_value
@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("name", STATED)
def test_path_that_contradicts_the_output_signature_is_named(make, name):
    spec, base, got = STATED[name]
    is_of_run = name in SHAPES and make is mutual  # the other function's paths may return another shape
    kind = tf.errors.InvalidArgumentError if is_of_run else (TypeError, ValueError)
    with pytest.raises(kind, match=r"(?s)Function 'f'.*output_signature states") as error:
        make(spec, base)(tf.constant(1))
    assert is_of_run or got in str(error.value)
    assert "one path returns" not in str(error.value) and "retval_" not in str(error.value)


def test_line_of_the_branch_is_named():
    f = early_return(tf.float32, lambda n: n)
    lines, first = inspect.getsourcelines(early_return)
    line = first + next(i for i, text in enumerate(lines) if "if n < 1" in text)
    with pytest.raises(
        TypeError, match=rf"Function 'f' \(test_stated_results.py, line {line}\): output_signature states"
    ):
        f(tf.constant(1))


def test_number_of_python_is_told_from_a_mistake():
    with pytest.raises(TypeError, match=r"output_signature states.*int64.*write tf.constant\(0, tf.int64\)"):
        early_return(tf.int64, lambda n: 0)(tf.constant(1))


@pytest.mark.parametrize(
    "value, dtype",
    [
        (2**40, tf.int32),
        (-1, tf.uint8),
        (np.float64(2.5), tf.int32),
        (np.int64(2**40), tf.int32),
        (np.array("1"), tf.int32),
        ([1, 2**40], tf.int32),
    ],
)
@pytest.mark.parametrize("in_nest", [False, True])
def test_number_that_the_stated_dtype_would_change_is_an_error(value, dtype, in_nest):
    signature = tf.TensorSpec(None, dtype)
    given = np.array(value) if isinstance(value, list) else value
    returned = {"a": given, "b": given} if in_nest else given
    f = tfr.recursive(output_signature={"a": signature, "b": signature} if in_nest else signature, autograph=False)
    with pytest.raises(TypeError, match=rf"(?s)Function '.*' returns .*output_signature states .*{dtype.name}"):
        f(lambda n: returned)(tf.constant(1))


def test_functions_that_state_the_same_of_each_other_are_both_wrong():
    @tfr.recursive(output_signature=tf.float32)
    def f(n):
        return tf.cond(n < 1, lambda: n, lambda: g(n - 1))

    @tfr.recursive(output_signature=tf.float32)
    def g(n):
        return tf.cond(n < 1, lambda: n, lambda: f(n - 1))

    with pytest.raises(TypeError, match="Function '[fg]'.*output_signature states.*float32.*returns .*int32"):
        f(tf.constant(1))


def test_base_case_that_is_the_result_of_another_function_is_named():
    @tfr.recursive
    def double(n):
        return 2 * n

    with pytest.raises(TypeError, match="Function 'f'.*output_signature states.*float32.*returns .*int32"):
        early_return(tf.float32, double)(tf.constant(1))


def test_path_of_another_shape_that_no_call_takes_is_no_error():
    @tfr.recursive(output_signature=tf.TensorSpec([2], tf.float32))
    def two(x):
        if tf.shape(x)[0] < 3:
            return x
        return two(x[:2])

    assert two(tf.constant([1.0, 2.0, 3.0])).numpy().tolist() == [1.0, 2.0]
    assert two(tf.constant([1.0, 2.0])).numpy().tolist() == [1.0, 2.0]


def test_error_of_the_run_names_the_output_signature():
    f = early_return(tf.TensorSpec([2], tf.int32), tf.range)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Function 'f': output 0 .* shape that output_signature"):
        f(tf.constant(3))
    with tfr.config.static_execution(False):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Function 'f': output 0 .* that output_signature"):
            f(tf.constant(3))


def test_error_of_the_user_is_not_asked_for_twice():
    seen = []

    @tfr.recursive(output_signature=tf.int32)
    def f(n):
        seen.append(n)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        f(tf.constant(1))
    assert len(seen) == 1


def declared(name, outputs, base, *, is_mutual=False, **stated):
    """A function by Declare and Defun, and what it calls by Declare alone."""
    pairs = [(f"r{i}", dtype) for i, dtype in enumerate(outputs)]
    f, g = (tfr.Declare(one, [("n", tf.int32)], pairs, **stated) for one in (name, name + "Other"))

    @tfr.Defun(tf.TensorSpec([], tf.int32), func_name=name + "Other")
    def other(n):
        return f(n - 1)

    @tfr.Defun(tf.TensorSpec([], tf.int32), func_name=name)
    def body(n):
        return tf.cond(n < 1, lambda: base(n), lambda: (g if is_mutual else f)(n - 1))

    return body


@pytest.mark.parametrize("is_mutual", [False, True])
@pytest.mark.parametrize("graph", ["eager", "session"])
def test_path_that_contradicts_a_declaration_is_named(is_mutual, graph):
    what = r"Function 'F\w*' .*returns \({}\) by its declaration, but .*returns {}"
    cases = [([tf.float32], lambda n: n, what.format("float32", re.escape("(int32)"))),
             ([tf.int32] * 2, lambda n: n, what.format("int32, int32", "1 outputs"))]  # fmt: skip
    for outputs, base, message in cases:
        name = f"F{len(outputs)}{'Mutual' if is_mutual else ''}"  # what is declared in eager mode stays declared
        with tf.Graph().as_default() if graph == "session" else tf.init_scope():
            with pytest.raises(TypeError, match=message):
                tf.function(lambda: declared(name, outputs, base, is_mutual=is_mutual)(1))()


def test_path_that_contradicts_output_shapes_is_named():
    @tf.function
    def call(size):
        return declared("F", [tf.int32], lambda n: tf.stack([n] * size), output_shapes=[[2]])(1)

    assert call(2).numpy().tolist() == [0, 0]
    with pytest.raises(ValueError, match="Function 'F'.*output 0 has shape .3,., output_shapes states .2,."):
        call(3)


@pytest.mark.parametrize("signature, error", [
    (tf.float32, TypeError),
    ((tf.int32, tf.int32), TypeError),
    ({"n": tf.int32}, TypeError),
    (tf.TensorSpec([2], tf.int32), ValueError),
])  # fmt: skip
def test_result_is_checked_as_in_graphs_where_functions_run_eagerly(functions_run_eagerly, signature, error):
    with pytest.raises(error, match=r"(?s)Function 'f'.*output_signature states"):
        early_return(signature, lambda n: n)(tf.constant(3))


def test_result_is_converted_as_in_graphs_where_functions_run_eagerly(functions_run_eagerly):
    variable = tf.Variable([1.0, 2.0])
    number, pair = early_return(tf.int64, lambda n: 7), early_return((tf.float32, tf.float64), lambda n: (variable, 1))
    assert number(tf.constant(2)).dtype == tf.int64
    first, second = pair(tf.constant(2))
    assert tf.is_tensor(first) and first.numpy().tolist() == [1.0, 2.0]
    assert second.dtype == tf.float64
    with pytest.raises(TypeError, match=r"Function 'f' returns .*, expected tensors"):
        early_return(tf.int32, lambda n: object())(tf.constant(2))
