"""Gradients of SavedModels: of users' own, and of what bodies call. They are as before saving, of each order."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from gradient_helpers import nested_derivative
from saved_models import IMPORTS, LOAD, X, in_fresh_process
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

import tensorflow_recursion as tfr

tf1 = tf.compat.v1


def module_with(activation, place):
    """A module that applies an activation to |x| where n is 0, and adds n; in the body itself, or in a branch of it.

    What it is applied to is no argument of the body: a function that is given one is differentiated with the body.
    """
    number, count = tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)

    @tfr.recursive(input_signature=[number, count])
    def descend(x, n):
        y = activation(tf.abs(x)) if place == "body" else x
        end = (lambda: y) if place == "body" else (lambda: activation(tf.abs(x)))
        return tf.cond(n < 1, end, lambda: descend(x, n - 1) + 1.0)

    module = tf.Module()
    module.call = tf.function(lambda x, n: descend(x, n), input_signature=[number, count])
    return module


# Custom gradients are numbered in each process. Here others have the numbers that those of the file have there.
LOAD_BESIDE_OTHERS = (
    IMPORTS
    + """
import pathlib
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import ops

file = saved_model_pb2.SavedModel.FromString((pathlib.Path(sys.argv[1]) / "saved_model.pb").read_bytes())
functions = file.meta_graphs[0].graph_def.library.function
numbered = {node.attr["_gradient_op_type"].s.decode() for function in functions for node in function.node_def}
for name in numbered:
    if name.startswith("CustomGradient-"):
        ops.RegisterGradient(name)(lambda op, *grads: [-7.0 * grad for grad in grads])
module = tf.saved_model.load(sys.argv[1])
"""
)


def gradient_in_fresh_process(directory, load=LOAD):
    """The value at (X, 3), and the gradient there or the text of the error that comes instead."""
    program = """
n = tf.constant(3)
found = [float(module.call(x, n))]
try:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = module.call(x, n)
    found.append(float(tape.gradient(y, x)))
except LookupError as error:
    found.append(str(error))
print(json.dumps(found))
"""
    return in_fresh_process(load + program, directory)


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["body", "branch"])
def test_gradient_of_the_users_own_comes_along(tmp_path, place):
    @tf.custom_gradient
    def steep(x):
        return 2.0 * x, lambda dy: 1000.0 * dy

    tf.saved_model.save(module_with(steep, place), str(tmp_path))
    assert gradient_in_fresh_process(tmp_path, LOAD_BESIDE_OTHERS) == [7.0, 1000.0]


@tf.RegisterGradient("TenTimes")
def ten_times(_op, dy):
    return 10.0 * dy


def test_gradient_that_has_a_name_is_found_by_it(tmp_path):
    def steep(x):
        with tf1.get_default_graph().gradient_override_map({"Neg": "TenTimes"}):
            return tf.negative(x)

    tf.saved_model.save(module_with(steep, "body"), str(tmp_path))
    loaded, x = tf.saved_model.load(str(tmp_path)), tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded.call(x, tf.constant(1))
    assert [float(y), float(tape.gradient(y, x))] == [1.0 - X, 10.0]


@tf.custom_gradient
def cube(x):
    """Its gradient reads its argument."""
    return x * x * x, lambda dy: 3.0 * x * x * dy


@tf.custom_gradient
def exponential(x):
    """Its gradient reads its result."""
    y = tf.exp(x)
    return y, lambda dy: y * dy


@tf.custom_gradient
def gate(x):
    """Its gradient reads what is computed on the way."""
    factor = tf.split(tf.sigmoid(tf.stack([x, 2.0 * x])), 2)[1][0]
    return x * factor, lambda dy: dy * factor * (1.0 + 2.0 * x * (1.0 - factor))


READING = {"argument": cube, "result": exponential, "between": gate, "silu": tf.nn.silu}


# An eager tensor and a variable that gradients read.
AROUND = {}


@pytest.fixture
def around():
    AROUND.update(factor=tf.constant(1.5), weight=tf.Variable(2.0))
    yield
    AROUND.clear()


@tf.custom_gradient
def scaled(x):
    """Its gradient reads an eager tensor."""
    return AROUND["factor"] * x * x, lambda dy: 2.0 * AROUND["factor"] * x * dy


@tf.custom_gradient
def weakened(x):
    """Its gradient reads an eager tensor that the function does not."""
    return x * x, lambda dy: AROUND["factor"] * x * dy


READING["eager tensor"] = scaled
READING["eager tensor of its own"] = weakened


def derivatives_of(function, orders=(1, 2)):
    """Derivatives of a function of a module at X."""
    at = lambda x: function(x, tf.constant(3))
    return [float(nested_derivative(at, tf.constant(X), order)) for order in orders]


def check_saved_twice(module, directory):
    """Saves a module, loads it, and does so `again`; checks derivatives against those of before, which it returns."""
    expected = derivatives_of(module.call)
    for name in ("once", "again"):
        tf.saved_model.save(module, str(directory / name))
        module = tf.saved_model.load(str(directory / name))
        assert derivatives_of(module.call) == pytest.approx(expected)
    return expected


@pytest.mark.thorough
@pytest.mark.sampled(4)
@pytest.mark.parametrize("place", ["body", "branch"])
@pytest.mark.parametrize("function", READING.values(), ids=list(READING))
def test_gradient_that_reads_what_the_function_computes_comes_along(tmp_path, around, function, place):
    module = module_with(function, place)
    expected = check_saved_twice(module, tmp_path)
    assert gradient_in_fresh_process(tmp_path / "again")[1] == pytest.approx(expected[0])


@tf.custom_gradient
def calls_one(x):
    """Its gradient calls a custom gradient that reads nothing but arguments."""

    @tf.custom_gradient
    def seven_times(dy):
        return 3.0 * dy, lambda ddy: 7.0 * ddy

    return tf.sin(x), seven_times


@tf.custom_gradient
def calls_two(x):
    """Its gradient calls one whose gradient calls one, and each reads x."""
    return tf.sin(x), lambda dy: dy * cube(exponential(x))


@tf.custom_gradient
def sine(x):
    return tf.sin(x), lambda dy: dy * cosine(x)


@tf.custom_gradient
def cosine(x):
    """The gradients of sine and cosine are the other one, without end."""
    return tf.cos(x), lambda dy: -dy * sine(x)


@tf.custom_gradient
def calls_function(x):
    """Its gradient calls a custom gradient in a `tf.function`."""
    return tf.sin(x), lambda dy: dy * tf.function(lambda v: cube(v) + v)(x)


@tfr.recursive(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([])])
def times_powers(n, x):
    return tf.cond(n < 1, lambda: cube(x), lambda: x * times_powers(n - 1, x))


@tf.custom_gradient
def calls_recursion(x):
    """Its gradient calls a recursive function, in whose body is a custom gradient."""
    return tf.sin(x), lambda dy: times_powers(2, dy)


@pytest.mark.full_matrix
@pytest.mark.parametrize("place", ["body", "branch"])
@pytest.mark.parametrize(
    "function", [calls_one, calls_two, sine, calls_function, calls_recursion], ids=lambda one: one.__name__
)
def test_gradient_that_calls_others_has_derivatives(tmp_path, function, place):
    """The inner ones were not saved, and what was loaded took a gradient of the loading process that had the number."""
    module = module_with(lambda x: function(x) ** 2, place)  # what the inner gradients are given depends on x, too
    expected = derivatives_of(module.call, (1, 2, 3))
    tf.saved_model.save(module, str(tmp_path))
    program = """
def derivative(order, x):
    if order == 0:
        return module.call(x, tf.constant(3))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = derivative(order - 1, x)
    return tape.gradient(y, x)


print(json.dumps([float(derivative(order, x)) for order in (1, 2, 3)]))
"""
    assert in_fresh_process(LOAD_BESIDE_OTHERS + program, tmp_path) == pytest.approx(expected)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_recomputed_gradient_is_saved_without_a_warning_of_its_own_gradient(tmp_path):
    """TensorFlow has no second derivative of `tf.recompute_grad`, loaded or not."""
    module = module_with(tf.recompute_grad(lambda x: tf.sin(x) * x), "branch")
    expected = derivatives_of(module.call, (1,))
    tf.saved_model.save(module, str(tmp_path))
    assert derivatives_of(tf.saved_model.load(str(tmp_path)).call, (1,)) == expected


@pytest.mark.full_matrix
def test_derivatives_beyond_those_that_are_saved_are_an_error(tmp_path):
    tf.saved_model.save(module_with(sine, "body"), str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path)).call
    with pytest.raises(LookupError, match="cannot be differentiated: No gradient defined for operation"):
        derivatives_of(loaded, (4,))


def looped(x):
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.sin(a) * 1.5), [0, x])[1]


CALLED = {
    "plain": tf.sin,
    "tf.function in it": lambda x: 2.0 * tf.function(tf.sin)(x),
    "one behind another": lambda x: tf.function(tf.sin)(tf.function(tf.exp)(x)),
    "loop": looped,
    "conditional": lambda x: tf.cond(x > 1.0, lambda: tf.exp(x), lambda: tf.sin(x)),
    "custom gradient": cube,
    "XLA": tf.function(lambda x: tf.sin(x) * x, jit_compile=True),
}


@pytest.mark.full_matrix
@pytest.mark.parametrize("place", ["body", "branch"])
@pytest.mark.parametrize("called", CALLED.values(), ids=list(CALLED))
def test_function_that_a_loaded_body_calls_has_derivatives(tmp_path, called, place):
    """TensorFlow has no gradient for a call of which nothing but the definition is known (`SymbolicGradient`)."""
    check_saved_twice(module_with(tf.function(called), place), tmp_path)


class Shared(tf.Module):
    """A function of the module that a body calls, and that is called by itself; its gradient reads a variable."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(1.5)
        module = self

        @tfr.recursive(input_signature=[tf.TensorSpec([]), tf.TensorSpec([], tf.int32)])
        def descend(x, n):
            return tf.cond(n < 1, lambda: module.cell(tf.abs(x)), lambda: descend(x, n - 1) + 1.0)

        self.descend = descend

    @tf.function(input_signature=[tf.TensorSpec([])])
    def cell(self, x):
        return tf.recompute_grad(lambda x: tf.tanh(x * self.w))(x)

    @tf.function(input_signature=[tf.TensorSpec([]), tf.TensorSpec([], tf.int32)])
    def call(self, x, n):
        return self.descend(x, n)

    @tf.function(input_signature=[tf.TensorSpec([]), tf.TensorSpec([], tf.int32)])
    def flat(self, x, n):
        return self.cell(x) * tf.cast(n, tf.float32)


@pytest.mark.thorough
def test_function_of_the_module_that_a_body_calls_keeps_its_gradient_elsewhere(tmp_path):
    """Such a module could not be loaded; then TensorFlow's own way to save the gradient was not taken any more."""
    module = Shared()
    expected = [derivatives_of(function, (1,)) for function in (module.flat, module.call)]
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    assert [derivatives_of(function, (1,)) for function in (loaded.flat, loaded.call)] == expected


@tf.custom_gradient
def noisy(x):
    noise = tf.random.uniform([])
    return x * x * x, lambda dy: 3.0 * x * x * dy + 0.0 * noise


@tf.custom_gradient
def shifted(x):
    """Its gradient reads a variable that the function does not use."""
    return x * x, lambda dy: 2.0 * x * dy * AROUND["weight"]


@tf.custom_gradient
def assigned(x):
    """Its gradient reads a value from before an assignment."""
    before = AROUND["weight"].read_value()
    AROUND["weight"].assign_add(0.0)
    return x * before, lambda dy, variables: (dy * before, [dy * x for _ in variables])


@pytest.mark.thorough
@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", ["body", "branch"])
@pytest.mark.parametrize("function", [noisy, shifted, assigned])
def test_gradient_that_reads_what_cannot_be_computed_again_is_not_saved_and_a_warning_says_so(
    tmp_path, around, function, place
):
    module = module_with(lambda x: function(x) + 0.0 * AROUND["weight"], place)
    module.weight = AROUND["weight"]
    value = float(module.call(tf.constant(X), 3))
    with pytest.warns(RuntimeWarning, match="^Function 'descend': the SavedModel has no gradient for a tf.custom_grad"):
        tf.saved_model.save(module, str(tmp_path))
    found, error = gradient_in_fresh_process(tmp_path)
    assert found == value
    assert "Function 'descend' cannot be differentiated: No gradient defined for operation" in error
    assert "a tf.custom_gradient whose gradient did not come along" in error


def recomputed(v, w):
    return tf.recompute_grad(lambda x: tf.tanh(x * v + w))


def weighted(v, w):
    """The gradients for the variables are given to them in the order of TensorFlow's list."""

    @tf.custom_gradient
    def function(x):
        def gradient(dy, variables):
            return dy * v * w * tf.cos(x * v), [dy * (3.0 if one is v else 5.0) * x * w for one in variables]

        return tf.sin(x * v) + w, gradient

    return function


def reads_before(v, _):
    """Its gradient reads what is computed on the way of a variable."""

    @tf.custom_gradient
    def function(x):
        value = v.read_value()
        square = value * value
        return x * square, lambda dy, variables: (dy * square * x + value, [dy * square * v for _ in variables])

    return function


def is_given_one(v, w):
    """One variable is its argument, and another one is not."""

    @tf.custom_gradient
    def function(x, v):
        return x * v + w, lambda dy, variables: ((dy * v * w, dy * x), [dy * w for _ in variables])

    return lambda x: function(x, v)


def is_given_two_values(v, _):
    """A variable's values before and after an assignment are its arguments; it reads the variable, too."""

    @tf.custom_gradient
    def product(x, a, b):
        return x * a * b + v, lambda dy, variables: (
            (dy * a * b * v, dy * x * b, 2.0 * dy * x * a),
            [dy] * len(variables),
        )

    def function(x):
        before = v.read_value()
        v.assign_add(1.0)
        after = v.read_value()
        v.assign_sub(1.0)
        return product(x, before, after)

    return function


def reads_one_of_two(v, w):
    @tf.custom_gradient
    def function(x):
        return x * v * w, lambda dy, variables: (dy * v * 3.0, [dy * x * v for _ in variables])

    return function


def calls_function_that_reads(v, w):
    inner = tf.function(weighted(v, w))
    return lambda x: inner(x) * v


def multiplies(v, w):
    """Its variables are looked up in, and multiplied with."""
    return tf.recompute_grad(lambda x: tf.reduce_sum(tf.gather([x, 2.0 * x] * v, [1, 0]) * tf.stack([w, v])))


VARIABLES = [
    recomputed,
    weighted,
    reads_before,
    is_given_one,
    is_given_two_values,
    reads_one_of_two,
    calls_function_that_reads,
    multiplies,
]


def slopes_of(module, order):
    """The derivatives of the module's function, or of its derivative, by the variables at X."""
    variables = [module.first, module.second]
    with tf.GradientTape() as tape:
        y = nested_derivative(lambda x: module.call(x, tf.constant(3)), tf.constant(X), order - 1)
    return [float(slope) for slope in tape.gradient(y, variables, unconnected_gradients="zero")]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.thorough
@pytest.mark.sampled(8)
@pytest.mark.parametrize("place", ["body", "branch"])
@pytest.mark.parametrize("make", VARIABLES, ids=lambda make: make.__name__)
def test_gradient_may_read_the_variables_that_the_function_reads(tmp_path, make, place):
    """What is loaded has variables of its own, which are assigned to here."""
    first, second = tf.Variable(0.75), tf.Variable(0.5)
    module = module_with(make(first, second), place)
    module.first, module.second = first, second
    orders = (1,) if make in (recomputed, multiplies) else (1, 2)
    for name in ("once", "again"):
        expected = derivatives_of(module.call, (1,))
        tf.saved_model.save(module, str(tmp_path / name))
        loaded = tf.saved_model.load(str(tmp_path / name))
        for one in (module, loaded):
            one.first.assign_add(0.25)
            one.second.assign_add(0.125)
        assert derivatives_of(loaded.call, orders) == pytest.approx(derivatives_of(module.call, orders))
        for order in orders:
            assert slopes_of(loaded, order) == pytest.approx(slopes_of(module, order))
        module = loaded
    assert gradient_in_fresh_process(tmp_path / "again", LOAD_BESIDE_OTHERS)[1] == pytest.approx(expected[0])


@pytest.mark.thorough
def test_net_whose_cells_are_computed_again_is_trained_on_after_loading(tmp_path):
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.cell = tf.keras.layers.Dense(3, "tanh")
            self.cell.build([None, 3])
            self.weights = self.cell.trainable_variables

        @tfr.recursive
        def descend(self, x, n):
            if n < 1:
                return x
            return tf.recompute_grad(lambda y: self.cell(y))(self.descend(x, n - 1) + self.descend(-x, n - 1))

        @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([], tf.int32)])
        def call(self, x, n):
            return self.descend(x, n)

    def train(net):
        for _ in range(3):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(net.call(tf.ones([2, 3]), 2) ** 2)
            for weight, slope in zip(net.weights, tape.gradient(loss, net.weights), strict=True):
                weight.assign_sub(0.1 * slope)
        return [weight.numpy() for weight in net.weights]

    net = Net()
    tf.saved_model.save(net, str(tmp_path))
    for found, expected in zip(train(tf.saved_model.load(str(tmp_path))), train(net), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@tf.custom_gradient
def reads_none(x):
    return AROUND["weight"] * x, lambda dy, variables: (3.0 * dy * x, [dy * x for _ in variables])


@tf.custom_gradient
def reads_one(x):
    return AROUND["weight"] * x, lambda dy, variables: (dy * AROUND["weight"], [dy * x for _ in variables])


@pytest.mark.thorough
def test_frozen_copy_has_the_gradients_that_read_no_variable(tmp_path, around):
    """Nothing tells any more which variable has become a constant."""
    frozen = {}
    for function in (reads_none, reads_one):
        module, directory = module_with(function, "body"), str(tmp_path / function.__name__)
        module.weight = AROUND["weight"]
        tf.saved_model.save(module, directory)
        loaded = tf.saved_model.load(directory)
        concrete = convert_variables_to_constants_v2(loaded.call.get_concrete_function())
        frozen[function] = lambda x, n, concrete=concrete: concrete(x, n)[0]
    assert derivatives_of(frozen[reads_none], (1,)) == [3.0 * X]
    with pytest.raises(LookupError, match="needs the variable behind .* as where a function is frozen"):
        derivatives_of(frozen[reads_one], (1,))


def test_gradient_that_was_taken_before_saving_may_read_what_the_body_computes(tmp_path):
    module = module_with(tf.nn.silu, "branch")

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = module.call(x, 2)
        return tape.gradient(y, x)

    module.slope = slope
    expected = float(module.slope(X))
    tf.saved_model.save(module, str(tmp_path))
    assert float(tf.saved_model.load(str(tmp_path)).slope(X)) == expected
