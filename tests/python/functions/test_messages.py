"""Mistakes in a body: the error names the function, the line, and what to write instead; its type is TensorFlow's."""
# SPDX-License-Identifier: Apache-2.0

import inspect
import math
import re

import numpy as np
import pytest
import switches
import tensorflow as tf
from building import recursive
from tensorflow.python.eager import context
from tensorflow.python.ops import data_flow_ops

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

I32, I64, F32 = tf.int32, tf.int64, tf.float32


def eager_tensor():
    with context.eager_mode():
        return tf.constant(3)


def if_on_tensor(n, call):
    if n < 2:
        return n
    return call(n - 1)


def while_on_tensor(n, call):
    while n > 2:
        n = n - 1
    return n


def and_of_tensors(n, call):
    return tf.cond(n > 0 and n < 3, lambda: n, lambda: call(n - 1))


def for_over_tensor(n, call):
    return sum(part for part in tf.reshape(n, [1]))


def index_of_list(n, call):
    return [1, 2][n]


def range_of_tensor(n, call):
    return sum(i for i in range(n))


def condition_inside_branch(n, call):
    return tf.cond(n < 1, lambda: n, lambda: n if n > 3 else call(n - 1))


def waits_for_outer_operation(n, call):
    with tf.control_dependencies([tf1.get_default_graph().outer_graph.get_operation_by_name("outer")]):
        return n + 1


def none_in_branch(n, call):
    return tf.cond(n < 1, lambda: None, lambda: call(n - 1))


def pair_in_branch(n, call):
    return tf.cond(n < 1, lambda: (n, n), lambda: call(n - 1))


def none_in_case(n, call):
    return tf.switch_case(n, [lambda: n, lambda: None, lambda: call(n - 1)])


def none_from_loop(n, call):
    return tf.while_loop(lambda i: i < n, lambda i: None, [0])


def none_for_one_loop_variable(n, call):
    return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + call(1), None), [0, 0])[0]


def loop_body_without_return(n, call):
    def body(i, s):
        call(i + s)

    return tf.while_loop(lambda i, s: i < 3, body, [n, n])[0]


def none_from_condition_of_loop(n, call):
    return tf.while_loop(lambda i: None, lambda i: i + 1, [n])


def number_of_loop_of_another_dtype(n, call):
    return tf.cast(tf.while_loop(lambda i: i < tf.cast(n, I64), lambda i: i + 1, [0])[0], I32)


def pin_to_no_device(n, call):
    def pinned():
        with tf.device("nonsense"):
            return n + 1

    return tf.cond(n < 1, pinned, lambda: call(n - 1))


def length_of_tensor(n, call):
    return n + len(tf.zeros([n]))


def numpy_of_tensor(n, call):
    return tf.constant(np.abs(n))


def sine_of_tensor(n, call):
    return tf.constant(math.sin(n))


def value_by_eval(n, call):
    return n + n.eval()


def outer_session():
    return tf1.Session(graph=tf1.get_default_graph().outer_graph)


def value_by_session(n, call):
    return outer_session().run(n + 1)


def value_by_session_in_branch(n, call):
    session = outer_session()
    return tf.cond(n < 1, lambda: n, lambda: call(tf.constant(n.eval(session=session))))


def value_by_default_session(n, call):
    with outer_session().as_default():
        return n.eval()


def operation_by_session(n, call):
    tf.group(n).run(session=outer_session())
    return n


def key_of_dictionary(n, call):
    return {0: 1, 1: 2}[n]


def part_of_unknown_shape(n, call):
    return tf.reduce_sum(tf.zeros([tf.zeros([n]).shape[0]], I32))


def assignment_to_reference_variable(n, call):
    total = tf1.get_variable("total", [], I32, use_resource=False)
    return tf.cond(n < 1, lambda: tf1.assign_add(total, n), lambda: call(n - 1))


def shape_with_unknown_part(n, call):
    return tf.reshape(call(n - 1), [n.shape[0], 1])


def assignment_to_argument(n, call):
    return tf.raw_ops.Assign(ref=n, value=3)


def update_of_reference_variable(n, call):
    w = tf1.get_variable("w", [2], use_resource=False)
    with tf.control_dependencies([tf1.train.GradientDescentOptimizer(0.1).minimize(w * w, var_list=[w])]):
        return call(n - 1)


NONE = "None stands where a tensor is needed.* tf.while_loop"

MISTAKES = {
    none_from_loop: NONE,
    none_for_one_loop_variable: NONE,
    loop_body_without_return: r"body of a tf\.while_loop another number than it takes",
    none_from_condition_of_loop: NONE,
    number_of_loop_of_another_dtype: r"of one dtype.* tf\.constant\(0, tf\.int64\)",
    pin_to_no_device: "does not know the device .*nonsense.* '/gpu:1'",
    length_of_tensor: r"no value before the graph runs.*tf\.shape\(x\)\[0\]",
    numpy_of_tensor: r"no value before the graph runs.*tf\.py_function",
    sine_of_tensor: r"no value before the graph runs.*TensorFlow's operators",
    value_by_eval: r"no value before the graph runs.*TensorFlow's operators",
    value_by_session: "session cannot compute a tensor.* pass what it returns as an argument",
    value_by_session_in_branch: "session cannot compute a tensor",
    value_by_default_session: "session cannot compute a tensor",
    operation_by_session: "session cannot compute a tensor",
    key_of_dictionary: r"dictionaries.* tf\.switch_case",
    shape_with_unknown_part: r"\[None, 1\] stands where a tensor is needed.* tf\.shape\(x\)\[i\] for x\.shape",
    assignment_to_argument: r"'\S*Assign' takes a reference variable.*use_resource=True",
    assignment_to_reference_variable: r"'\S*AssignAdd' takes a reference variable.*use_resource=True",
    update_of_reference_variable: r"'\S*ApplyGradientDescent' takes a reference variable.*use_resource=True",
    part_of_unknown_shape: r"tf\.shape\(x\)\[i\]",
    if_on_tensor: "Python's `if`, .* write tf.cond",
    while_on_tensor: "Python's `if`, `while`.* tf.while_loop",
    and_of_tensors: "`and`.*tf.logical_and",
    for_over_tensor: "Python's `for` cannot go over a tensor.* tf.unstack",
    index_of_list: r"as an index.* tf\.gather\(list, index\)",
    range_of_tensor: "`range`.* tf.while_loop",
    condition_inside_branch: "Python's `if`, .* write tf.cond",
    waits_for_outer_operation: "'outer' .*is not an element of this graph; put the tf.control_dependencies around",
    none_in_case: r"branches of a tf\.cond return different numbers of tensors.* tf\.switch_case",
}


def lines_of(func):
    lines, first = inspect.getsourcelines(func)
    return range(first, first + len(lines))


@pytest.mark.parametrize("body", MISTAKES, ids=lambda body: body.__name__)
@pytest.mark.parametrize("through", ["another", "gradient", "call"])
def test_mistake_in_body_says_function_line_and_remedy(control_flow, body, through):
    tf1.no_op(name="outer")
    call, define = recursive("F", [I32], [I32], [[]])
    define(lambda n: body(n, call))
    outer_call, define_outer = recursive("Outer", [I32], [I32], [[]])
    define_outer(lambda n: call(n))
    with pytest.raises((TypeError, ValueError, AttributeError, RuntimeError, AssertionError)) as caught:
        if through == "gradient":
            tf.gradients(tf.cast(call(3), F32), tf.constant(1.0))
        (outer_call if through == "another" else call)(3)
    message = str(caught.value)
    assert re.search(MISTAKES[body], message), message
    name, file, line = re.match(r"Function '(\w+)' \((\S+), line (\d+)\): ", message).groups()
    assert (name, file) == ("F", "test_messages.py")
    assert int(line) in lines_of(body)
    assert message.count("Function '") == 1
    assert caught.value.__cause__ is not None and type(caught.value) is type(caught.value.__cause__)


def test_mistake_in_call_of_layer_points_at_the_line_of_the_body():
    """Keras raises it, in files that are none of the user's."""
    call, define = recursive("F", [F32], [F32])
    define(lambda x: tf.keras.layers.Dense(2)(x))
    with pytest.raises(ValueError, match=r"^Function 'F' \(test_messages.py, line \d+\): .*shape"):
        call(np.ones((1, 2), np.float32))


HANDLES = {
    "FIFOQueue": (lambda: tf.raw_ops.FIFOQueue(component_types=[I32]), lambda h: tf.raw_ops.QueueSize(handle=h)),
    "RandomShuffleQueue": (
        lambda: tf.raw_ops.RandomShuffleQueue(component_types=[tf.string]),
        lambda h: tf.raw_ops.QueueEnqueue(handle=h, components=["a"]),
    ),
    "Barrier": (lambda: data_flow_ops.Barrier((I32,)), lambda barrier: barrier.ready_size()),
    "HashTable": (
        lambda: tf.raw_ops.HashTable(key_dtype=I32, value_dtype=I32),
        lambda h: tf.raw_ops.LookupTableSize(table_handle=h),
    ),
    "SparseConditionalAccumulator": (
        lambda: tf1.SparseConditionalAccumulator(F32, [2]),
        lambda accumulator: accumulator.num_accumulated(),
    ),
}


@pytest.mark.parametrize("is_passed", [False, True], ids=["captured", "passed"])
@pytest.mark.parametrize("handle", HANDLES)
def test_handle_that_is_a_reference_is_no_variable_to_the_error(handle, is_passed):
    make, use = HANDLES[handle]
    if is_passed and handle in ("Barrier", "SparseConditionalAccumulator"):
        pytest.skip("an object, not a tensor")
    made = make()
    call, define = recursive("F", [I32, tf.string], [I32], [[]])

    def body(n, given):
        with tf.control_dependencies([use(given if is_passed else made)]):
            return tf.cond(n < 1, lambda: n, lambda: call(n - 1, given))

    define(body)
    says = (
        r"^Function 'F' \(test_messages.py, line \d+\): .* by a reference.* string_ref.*tf\.queue\.FIFOQueue.*Barrier"
    )
    with pytest.raises(TypeError, match=says):
        call(3, made if is_passed else "")


def test_reference_variable_of_strings_is_a_variable_to_the_error():
    call, define = recursive("F", [I32], [tf.string], [[]])
    name = tf1.get_variable("name", initializer="a", use_resource=False)
    define(lambda n: tf.cond(n < 1, lambda: tf1.assign(name, "b"), lambda: call(n - 1)))
    with pytest.raises(TypeError, match=r"'\S*Assign' takes a reference variable.*use_resource=True"):
        call(3)


@pytest.mark.parametrize(
    "body, text",
    [
        (none_in_branch, r"returns \(int32\) by its declaration, but .* returns None; return a tensor on every path"),
        (pair_in_branch, r"has 1 out_names, but its body returns 2 outputs"),
    ],
)
@pytest.mark.parametrize("through", ["another", "gradient", "call"])
def test_branch_that_contradicts_the_declaration_says_function_line_and_both(control_flow, body, text, through):
    call, define = recursive("F", [I32], [I32], [[]])
    define(lambda n: body(n, call))
    outer_call, define_outer = recursive("Outer", [I32], [I32], [[]])
    define_outer(lambda n: call(n))
    where = "|".join(map(str, lines_of(body)))
    with pytest.raises((TypeError, ValueError), match=rf"^Function 'F' \(test_messages.py, line (?:{where})\) {text}"):
        if through == "gradient":
            tf.gradients(tf.cast(call(3), F32), tf.constant(1.0))
        (outer_call if through == "another" else call)(3)


@pytest.mark.parametrize("in_branch", [False, True], ids=["in the body", "in a branch"])
def test_session_of_a_body_itself_says_function_line_and_remedy(in_branch):
    def value(n):
        return tf1.Session().run(n + 1)

    call, define = recursive("F", [I32], [I32], [[]])
    define((lambda n: tf.cond(n < 1, lambda: n, lambda: call(value(n)))) if in_branch else value)
    with pytest.raises(tf.errors.InvalidArgumentError, match="^Function 'F' .* a session cannot compute") as caught:
        call(3)
    assert f"(test_messages.py, line {lines_of(value)[1]})" in str(caught.value)
    assert "stack trace" not in str(caught.value)


def test_session_that_runs_the_graph_around_has_its_own_error():
    """What it computes is no tensor of the body."""
    unfed = tf1.placeholder(I32, [], name="unfed")
    call, define = recursive("F", [I32], [I32], [[]])
    define(lambda n: n + int(outer_session().run(unfed)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="You must feed a value for placeholder tensor 'unfed'"):
        call(3)


def test_session_that_runs_the_graph_around_gives_a_number(run):
    three = tf.constant(3)
    call, define = recursive("F", [I32], [I32], [[]])
    define(lambda n: n + int(outer_session().run(three)))
    assert run(call(1)) == 4


@pytest.mark.parametrize("shapes", [None, [[]]], ids=["shapes found out", "shapes stated"])
@pytest.mark.parametrize("is_first", [False, True])
def test_none_in_a_branch_says_what_to_return(control_flow, shapes, is_first):
    call, define = recursive("F", [I32], [I32], shapes)
    branches = [lambda: None, lambda: call(1)]
    define(lambda n: tf.cond(n < 1, *(branches if is_first else branches[::-1])))
    with pytest.raises((TypeError, ValueError), match=r"Function 'F'.*tf\.cond"):
        call(3)


def test_branches_of_a_case_of_different_dtypes_say_how_a_number_is_written(control_flow):
    call, define = recursive("F", [I64], [I64], [[]])
    define(lambda n: tf.switch_case(tf.cast(n, I32), [lambda: 0, lambda: call(n - 1)]))
    with pytest.raises((TypeError, ValueError), match=r"Function 'F'.*tf\.constant\(0, tf\.int64\)"):
        call(1)


def test_branches_of_different_dtypes_say_how_a_number_of_a_dtype_is_written(control_flow):
    call, define = recursive("F", [I64], [I64])
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: call(n - 1)))
    with pytest.raises((TypeError, ValueError), match=r"Function 'F'.*tf\.constant\(0, tf\.int64\)"):
        call(1)


def test_number_where_another_dtype_is_declared_says_how_it_is_written(control_flow):
    call, define = recursive("F", [I64], [I64])
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: 1))
    with pytest.raises(TypeError, match=r"returns \(int64\).* returns \(int32\);.* tf\.constant\(0, tf\.int64\)"):
        call(1)


def test_loop_that_carries_a_result_of_unknown_shape_points_at_output_shapes(control_flow):
    call, define = recursive("F", [F32], [F32])
    loop = lambda: tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, call(x)), [0, tf.constant(1.0)])[1]
    define(lambda x: tf.cond(x < 1, lambda: x, loop))
    with pytest.raises(ValueError, match=r"Function 'F'.*shape \(\) on as one of shape <unknown>.*`output_shapes`"):
        call(1.0)


CARRIED = {
    "the result": lambda call, x: call(x),
    "what is computed with it": lambda call, x: x + 2.0 * call(x),
    "a branch's": lambda call, x: tf.cond(x > 1, lambda: call(x), lambda: x),
    "an inner loop's": lambda call, x: tf.while_loop(lambda a: a < 9, lambda a: [call(a)], [x])[0],
    "one from outside": lambda call, x: x + outside["result"],
}
outside = {}


@pytest.mark.parametrize("what", CARRIED)
def test_loop_of_the_main_graph_points_at_output_shapes_when_it_carries_a_result(what, control_flow):
    call, define = recursive("F", [F32], [F32])
    define(lambda x: tf.reshape(x, tf.cast(tf.reshape(x, [-1])[:1], I32)))
    outside["result"] = call(1.0)
    start = [0, tf.constant(1.0)]
    with pytest.raises(ValueError, match=r"after one iteration.* a call of 'F',.* `output_shapes`") as caught:
        tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, CARRIED[what](call, x)), start)
    assert str(caught.value).count("output_shapes") == 1


def test_loop_of_the_main_graph_has_stock_error_when_no_call_is_to_blame(control_flow):
    call, define = recursive("F", [F32], [F32], [[]])
    define(lambda x: x)
    grow = lambda i, x: (i + 1, tf.concat([x, x], 0) * call(1.0))
    with pytest.raises(ValueError, match="less-specific shape") as caught:
        tf.while_loop(lambda i, _: i < 3, grow, [0, tf.constant([1.0])])
    assert "'F'" not in str(caught.value)


def loop_with_a_limit(x):
    return tf.while_loop(lambda _: True, lambda a: [a + 1.0], [0.0], maximum_iterations=tf.cast(x, I32))


@pytest.mark.parametrize(
    "use",
    [
        lambda x: tf.boolean_mask(x, x > 1),
        lambda x: tf.unstack(x)[0],
        lambda x: tf.image.resize(x, [2, 2]),
        loop_with_a_limit,
        lambda x: tf.strings.unicode_decode(tf.as_string(x), "UTF-8"),
        lambda x: tf.strings.unicode_encode(tf.cast(x, I32), "UTF-8"),
        lambda x: tf.strings.ngrams(tf.as_string(x), 2),
        lambda x: tf.ragged.stack_dynamic_partitions(x, tf.cast(x, I32), 2),
    ],
    ids=[
        *("boolean_mask", "unstack", "resize", "maximum_iterations"),
        *("unicode_decode", "unicode_encode", "ngrams", "dynamic_partitions"),
    ],
)
def test_argument_of_unknown_rank_points_at_set_shape(use):
    _, define = recursive("F", [F32], [F32])
    F = define(use)
    with switches.control_flow_v2(False), pytest.raises(ValueError, match=r"Function 'F'.*call x\.set_shape"):
        F([1.0, 2.0])


def test_errors_of_the_users_own_stay_as_they_are():
    _, define = recursive("F", [I32], [I32])

    @define
    def F(n):
        raise ValueError("the user's own")

    with pytest.raises(ValueError, match="^the user's own$"):
        F(1)


def test_eager_argument_is_error_that_names_it():
    _, define = recursive("F", [I32, I32], [I32])
    F = define(lambda n, m: n + m)
    with pytest.raises(TypeError, match=r"Call of 'F': argument 1 \('m'\) is an eager tensor.*x\.numpy\(\)"):
        F(1, eager_tensor())


def test_eager_tensor_in_body_is_error_of_the_call():
    _, define = recursive("F", [I32], [I32])
    F = define(lambda n: n + eager_tensor())
    with pytest.raises(TypeError, match=r"Call of 'F': its body captures an eager tensor.*x\.numpy\(\)"):
        F(1)


@pytest.mark.thorough
def test_eager_tensors_are_taken_by_tf_functions():
    with context.eager_mode():
        outside = tf.constant(3)

        @tf.function
        def program():
            _, define = recursive("F", [I32], [I32])
            return define(lambda n: n + outside)(outside)

        assert program().numpy() == 6


def test_nested_results_are_error_that_says_which(run):
    @tfr.Defun(F32, func_name="F")
    def F(x):
        return x, (x, x + 1)

    with pytest.raises(TypeError, match=r"Function 'F': output 1 is a tuple that holds tensors.*tf\.stack"):
        F(1.0)

    @tfr.Defun(F32, func_name="G")
    def G(x):
        return x, [1.0, 2.0], np.array([3.0])

    assert [np.asarray(value).tolist() for value in run(list(G(1.0)))] == [1.0, [1.0, 2.0], [3.0]]


NESTS_OF_NUMBERS = {
    "tuple": (1.0, 2.0),
    "tuple in a tuple": ((1.0, 2.0), 3.0),
    "tuple in a list": [(1.0, 2.0)],
    "empty": (),
}


@pytest.mark.parametrize("name", NESTS_OF_NUMBERS)
def test_nested_numbers_are_error_that_says_which(name):
    nested = NESTS_OF_NUMBERS[name]

    @tfr.Defun(F32, func_name="F")
    def F(x):
        return x, nested

    kind = type(nested).__name__
    with pytest.raises(TypeError, match=rf"Function 'F': output 1 is a {kind} that holds values.*flat list"):
        F(1.0)


# --- Named gradients ----------------------------------------------------------------------------------------------


def define_fac(name="Fac", gradient="GradFac", **options):
    call, define = recursive(name, [F32], [F32], [[]], grad_func=gradient, create_grad_func=True, **options)
    define(lambda n: tf.cond(n <= 1, lambda: tf.constant(1.0), lambda: n * call(n - 1)))
    return call


def function_names():
    return {function.signature.name for function in tf1.get_default_graph().as_graph_def().library.function}


def test_string_as_grad_func_names_the_gradient(run, control_flow):
    n = tf1.placeholder_with_default(5.0, [])
    y = define_fac()(n)
    [dy] = tf.gradients(y, n)
    assert "GradFac" in function_names()
    assert run([y, dy]) == [120, 154]  # by the product rule: the sum of 120 / k for k from 2 to 5


def test_string_as_grad_func_names_the_first_gradient_when_there_are_several(run):
    call, define = recursive("F", [F32], [F32], grad_func="GradF", create_grad_func=True)
    define(lambda x: x * x)
    xs = [tf.constant(3.0), tf.constant([1.0, 2.0])]
    gradients = [tf.gradients(call(x), x)[0] for x in xs]
    assert [np.asarray(value).tolist() for value in run(gradients)] == [6.0, [2.0, 4.0]]
    assert len({name for name in function_names() if name.startswith("GradF")}) == 2


@pytest.mark.parametrize("order", ["names", "function"])
def test_gradient_named_like_another_function_is_error(order):
    fac = define_fac()
    if order == "names":
        other = define_fac("Other")
        tf.gradients(fac(1.0), tf.constant(1.0))
        x = tf.constant(1.0)
        tf.gradients(fac(x), x)
    else:
        recursive("GradFac", [F32], [F32])[1](lambda x: x)(1.0)
        other = fac
    x = tf.constant(1.0)
    with pytest.raises(ValueError, match="grad_func is 'GradFac', which is"):
        tf.gradients(other(x), x)


def test_named_gradient_is_error_when_it_is_forbidden_or_not_a_name():
    with pytest.raises(ValueError, match="'F': grad_func names a gradient, 'G', that create_grad_func=False forbids"):
        tfr.Defun(F32, func_name="F", grad_func="G", create_grad_func=False)
    with pytest.raises(ValueError, match="'no name' is not a legal function name"):
        tfr.Defun(F32, func_name="F", grad_func="no name")


def test_part_of_a_shape_that_a_defun_does_not_know_has_a_remedy_that_works(graph):
    def first(x):
        return x[0] if x.shape[0] > 1 else x[0] + 1.0

    value = tf1.placeholder(F32, [None])
    message = re.escape("Function 'F' (test_messages.py, line") + r".*Defun\(tf\.TensorSpec\(shape, dtype\)\)"
    with pytest.raises(TypeError, match=message):
        tfr.Defun(F32, func_name="F")(first)(value)
    assert tfr.Defun(tf.TensorSpec([3], F32), func_name="G")(first)(value).dtype == F32
