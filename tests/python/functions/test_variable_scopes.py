"""Variables that bodies make by `tf.compat.v1.get_variable` are those that the same code makes outside of bodies."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import switches
import tensorflow as tf

import tensorflow_recursion as tfr

tf1 = tf.compat.v1

_SHAPE = tf.TensorSpec([2, 2])
_ONES = tf1.ones_initializer()


def inline(body):
    """The operations of a recursion with one call, without a function."""
    return body(tf.ones([2, 2]))


def by_defun(body):
    f = tfr.Declare("F", [("n", tf.int32), ("x", tf.float32)], [("y", tf.float32)])

    @tfr.Defun(tf.int32, _SHAPE, func_name="F", out_names=["y"])
    def F(n, x):
        return tf1.cond(n < 1, lambda: body(x), lambda: f(n - 1, x))

    return F(2, tf.ones([2, 2]))


def by_recursive(body, **options):
    @tfr.recursive(autograph=False, **options)
    def F(n, x):
        return tf1.cond(n < 1, lambda: body(x), lambda: F(n - 1, x))

    return F(tf.constant(2), tf.ones([2, 2]))


def by_recursive_with_signature(body):
    return by_recursive(body, input_signature=[tf.TensorSpec([], tf.int32), _SHAPE])


WAYS = [by_defun, by_recursive, by_recursive_with_signature]


def by_defun_in_a_body(body):
    """The inner function is another one in each trace of the outer one."""

    def call_inner(x):
        @tfr.Defun(_SHAPE)
        def inner(x):
            return body(x)

        return inner(x)

    return by_defun(call_inner)


def by_recursive_in_a_body(body):
    def call_inner(x):
        @tfr.recursive(autograph=False)
        def inner(n, x):
            return tf1.cond(n < 1, lambda: body(x), lambda: inner(n - 1, x))

        return inner(tf.constant(1), x)

    return by_recursive(call_inner)


def product(x, name="w", shape=(2, 2), initializer=_ONES, **options):
    weight = tf1.get_variable(name, shape, initializer=initializer, **options)
    return tf.matmul(x, tf.cast(weight, x.dtype))


def scoped(x):
    with tf1.variable_scope("inner", regularizer=tf.reduce_sum):
        return product(product(x, constraint=tf.nn.relu), "v", trainable=False)


def layers(x):
    for _ in range(3):
        with tf1.variable_scope(None, default_name="dense"):
            x = product(x)
    return x


def shared(x):
    for _ in range(2):
        with tf1.variable_scope("shared", reuse=tf1.AUTO_REUSE):
            x = product(x, regularizer=tf.reduce_sum)
    return x


def template(x):
    made = tf1.make_template("template", product)
    return made(made(x))


def doubled(x):
    with tf1.variable_scope("doubled", custom_getter=lambda getter, *args, **kwargs: 2.0 * getter(*args, **kwargs)):
        return product(x)


def parts(x):
    return product(x, partitioner=tf1.fixed_size_partitioner(2), regularizer=tf.reduce_sum)


def local(x):
    return tf.matmul(x, tf1.get_local_variable("w", [2, 2], initializer=_ONES))


def by_scope(x):
    """Take what the scope around says, as layers do."""
    scope = tf1.get_variable_scope()
    assert scope.initializer is not None
    return product(x, initializer=None) * len(scope.name)


def outcome(way, body, **options):
    """What calls in a variable scope with `options` return and make."""
    with tf.Graph().as_default():
        with tf1.variable_scope("a"), tf1.variable_scope("out", **options):
            layers(tf.ones([2, 2]))
            y = way(body)
            layers(tf.ones([2, 2]))
        variables = tf1.global_variables() + tf1.local_variables()
        losses = tf1.losses.get_regularization_losses()
        gradients = tf1.gradients(tf.add_n([tf.reduce_sum(y), *losses]), variables)
        with tf1.Session(config=tfr.session_config()) as session:
            session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
            values = session.run([y, losses, [g for g in gradients if g is not None]])
        made = [(v.name, v.dtype, v.trainable, v.constraint) for v in variables]
        return made, [loss.name for loss in losses], tf.nest.map_structure(np.sum, values)


BODIES = [scoped, layers, shared, template, doubled, parts, local, by_scope]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("body", BODIES)
def test_bodies_make_the_variables_that_code_makes_outside(way, body, control_flow):
    with switches.control_flow_v2(control_flow == "v2"):
        options = {"initializer": tf1.constant_initializer(0.5)}
        assert outcome(way, body, **options) == outcome(inline, body, **options)


@pytest.mark.sampled(2)
@pytest.mark.each_value
@pytest.mark.parametrize("way", [by_defun_in_a_body, by_recursive_in_a_body])
@pytest.mark.parametrize("body", BODIES)
def test_functions_made_in_bodies_make_their_variables_once(way, body):
    """Outer bodies are traced again for gradients."""
    options = {"initializer": tf1.constant_initializer(0.5)}
    assert outcome(way, body, **options) == outcome(inline, body, **options)


def variable_of_body(x):
    return tf.matmul(x, tf.Variable([[1.0, 2.0], [3.0, 4.0]], use_resource=True))


@pytest.mark.parametrize("way", [by_defun_in_a_body, by_recursive_in_a_body])
def test_functions_made_in_bodies_make_other_variables_once(way):
    (made, *found), (expected_made, *expected) = outcome(way, variable_of_body), outcome(inline, variable_of_body)
    assert len(made) == len(expected_made)
    assert found == expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "options",
    [
        {"dtype": tf.float64},
        {"reuse": tf1.AUTO_REUSE},
        {"regularizer": tf.nn.l2_loss},
        {"partitioner": tf1.fixed_size_partitioner(2)},
        {"caching_device": "/cpu:0"},
        {"custom_getter": lambda getter, *args, **kwargs: 2.0 * getter(*args, **kwargs)},
    ],
    ids=lambda options: next(iter(options)),
)
def test_variables_of_bodies_have_the_properties_of_the_scope_of_the_call(way, options):
    assert outcome(way, product, **options) == outcome(inline, product, **options)


@pytest.mark.parametrize("way", WAYS)
def test_body_finds_variables_that_are_there(way):
    with tf.Graph().as_default(), tf1.variable_scope("out", reuse=tf1.AUTO_REUSE):
        product(tf.ones([2, 2]))
        way(product)
        product(tf.ones([2, 2]))
        assert [v.name for v in tf1.global_variables()] == ["out/w:0"]


@pytest.mark.parametrize("way", WAYS)
def test_variable_that_a_body_makes_twice_is_an_error_as_outside(way):
    with tf.Graph().as_default(), pytest.raises(ValueError, match="w already exists"):
        way(lambda x: product(product(x)))


def test_scope_of_the_call_says_whether_variables_are_resources():
    with switches.control_flow_v2(False):  # branches of control flow v2 make resources in any case
        assert outcome(by_defun, product, use_resource=False) == outcome(inline, product, use_resource=False)


@pytest.mark.parametrize("way", WAYS)
def test_branches_of_control_flow_v2_make_resources(way):
    with tf.Graph().as_default(), switches.control_flow_v2(True), tf1.variable_scope("", use_resource=False):
        way(lambda x: tf.cond(x[0, 0] > 0.0, lambda: product(x), lambda: x))
        assert [v.dtype for v in tf1.global_variables()] == [tf.float32]


def test_variables_of_functions_that_call_each_other_are_in_the_scopes_of_the_first_calls():
    @tfr.recursive
    def odd(n, x):
        with tf1.variable_scope("odd"):
            if n < 1:
                return x
            return even(n - 1, product(x))

    @tfr.recursive
    def even(n, x):
        if n < 1:
            return x
        return odd(n - 1, product(x, "v"))

    with tf.Graph().as_default():
        with tf1.variable_scope("out"):
            odd(tf.constant(3), tf.ones([2, 2]))
        assert sorted(v.name for v in tf1.global_variables()) == ["out/odd/v:0", "out/odd/w:0"]


def parts_in_scopes(decorate):
    """A function that calls two others, each in a scope of its own, which make variables of one name."""

    def part():
        @decorate
        def in_part(x):
            with tf1.variable_scope(None, default_name="dense"):
                x = product(x)
            return product(x, "v")

        return in_part

    left, right = part(), part()

    @decorate
    def whole(x):
        with tf1.variable_scope("left"):
            y = left(x)
        with tf1.variable_scope("right"):
            y += tf.cond(x[0, 0] > 0.0, lambda: right(x), lambda: x)
        with tf1.variable_scope(None, default_name="dense"):
            return product(y)

    with tf1.variable_scope("out"):
        return whole(tf.ones([2, 2]))


@pytest.mark.parametrize(
    "decorate",
    [
        tfr.Defun(_SHAPE),
        tfr.recursive(autograph=False),
        tfr.recursive(autograph=False, input_signature=[_SHAPE]),
        tfr.recursive(autograph=False, input_signature=[_SHAPE], output_signature=_SHAPE),
    ],
    ids=["Defun", "recursive", "input", "output"],
)
def test_scopes_in_a_body_hold_the_variables_of_functions_that_are_called_there(decorate):
    def outcome_of(decorate):
        with tf.Graph().as_default():
            y = parts_in_scopes(decorate)
            variables = sorted(tf1.global_variables(), key=lambda variable: variable.name)
            gradients = tf1.gradients(y, variables)
            with tf1.Session(config=tfr.session_config()) as session:
                session.run(tf1.global_variables_initializer())
                return session.run([y, gradients]), [variable.name for variable in variables]

    (y, gradients), names = outcome_of(decorate)
    (expected, expected_gradients), expected_names = outcome_of(lambda body: body)
    assert names == expected_names
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(gradients, expected_gradients)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [lambda: 2.0, lambda: [2.0, 3.0], lambda: np.float64([2.0]), lambda: 2])
def test_initial_value_may_be_a_number_a_list_or_an_array(way, make):
    def scaled(x):
        return x * tf.cast(tf1.get_variable("w", initializer=make()), tf.float32)

    assert outcome(way, scaled) == outcome(inline, scaled)


@pytest.mark.parametrize("way", WAYS)
def test_initial_value_may_be_a_tensor_of_the_graph_around(way):
    def around(way):
        value = tf.constant([2.0, 3.0])
        return way(lambda x: x * tf1.get_variable("w", initializer=value))

    assert outcome(lambda body: around(way), None)[2] == outcome(lambda body: around(inline), None)[2]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "make, says",
    [
        (lambda x: tf1.get_variable("w", initializer=tf.ones([2])), "'out/w' begins with a tensor that the body makes"),
        (lambda x: tf1.get_variable("w", initializer=[x[0, 0], 1.0]), "'out/w' begins with a tensor that the body"),
        (lambda x: tf1.Variable(tf.reduce_sum(x), name="w"), "'w' begins with a tensor that the body makes"),
        (lambda x: tf1.get_variable("w", [2, 2], initializer=lambda *_, **__: x * 2.0), "let the functions that are"),
        (lambda x: tf1.get_variable("w", [2, 2], regularizer=lambda w: tf.reduce_sum(w * x)), "let the functions that"),
    ],
)
def test_variable_made_of_tensors_of_the_body_is_an_error_that_says_what_to_do(way, make, says):
    with tf.Graph().as_default(), tf1.variable_scope("out"), switches.control_flow_v2(True):
        with pytest.raises(ValueError, match=f"^Function 'F' \\(test_variable_scopes.py, line [0-9]+\\):.*{says}"):
            way(lambda x: x * make(x))


def test_numbered_scopes_behind_a_path_that_is_left_out_are_an_error_that_says_what_to_do():
    def body(n, x):
        return layers(tf1.cond(n < 1, lambda: x * 1.0, lambda: layers(f(n - 1, x))))

    f = tfr.recursive(body, autograph=False)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="Function 'body'.*`default_name`.*'dense/w'.*name"):
        f(tf.constant(2), tf.ones([2, 2]))
