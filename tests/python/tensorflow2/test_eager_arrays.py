"""`tf.TensorArray`s that eager calls pass and return."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr

F32, I32 = tf.float32, tf.int32


@tfr.recursive
def filled(values, n):
    if n < 0:
        return values
    return filled(values.write(n, n * n), n - 1)


@tfr.recursive
def summed(values, n):
    if n < 0:
        return tf.constant(0.0)
    return values.read(n) ** 2 + summed(values, n - 1)


@tfr.recursive(input_signature=[tf.TensorSpec([], I32), tf.TensorArraySpec([], I32)])
def stated(n, values):
    if n < 0:
        return {"squares": values}
    return stated(n - 1, values.write(n, n * n))


def partly_written():
    return tf.TensorArray(I32, 4).write(1, 7)


ARRAYS = {
    "written": lambda: tf.TensorArray(I32, 4).unstack(tf.range(4)),
    "not written": lambda: tf.TensorArray(I32, 4),
    "written in part": partly_written,
    "with a shape": lambda: tf.TensorArray(I32, 4, element_shape=[]),
    "of any shape": lambda: tf.TensorArray(I32, 4, infer_shape=False),
    "empty": lambda: tf.TensorArray(I32, 0, dynamic_size=True),
    "that a call returned": lambda: filled(tf.TensorArray(I32, 4), tf.constant(1)),
}


@pytest.mark.parametrize("array", ARRAYS)
def test_array_of_eager_mode_is_passed_and_returned_as_an_array(array):
    assert filled(ARRAYS[array](), tf.constant(3)).stack().numpy().tolist() == [0, 1, 4, 9]
    within = tf.function(lambda values: filled(values, tf.constant(3)).stack())
    assert within(ARRAYS[array]()).numpy().tolist() == [0, 1, 4, 9]


def test_what_was_written_in_eager_mode_is_in_the_array_that_is_passed():
    taken = tfr.recursive(lambda values: values.read(1))
    assert int(taken(partly_written())) == 7
    with tf.Graph().as_default():
        with tf.init_scope():
            array = partly_written()
        read = taken(array)
        with tf.compat.v1.Session(config=tfr.session_config()) as session:
            assert session.run(read) == 7


@pytest.mark.parametrize("array", ["written", "with a shape", "written in part"])
def test_input_signature_states_arrays(array):
    returned = stated(tf.constant(3), ARRAYS[array]())
    assert returned["squares"].stack().numpy().tolist() == [0, 1, 4, 9]
    assert stated(3, ARRAYS[array]())["squares"].stack().numpy().tolist() == [0, 1, 4, 9]
    with pytest.raises(ValueError, match="Call of 'stated': argument 'values' is .*input_signature states"):
        stated(tf.constant(3), tf.constant(3))


def test_gradient_goes_through_arrays_that_are_passed_and_returned():
    @tfr.recursive
    def doubled(values, n):
        if n < 0:
            return values
        return doubled(values.write(n, 2.0 * values.read(n)), n - 1)

    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        array = tf.TensorArray(F32, 3, clear_after_read=False).unstack(x)
        loss = summed(doubled(array, tf.constant(2)), tf.constant(2))
    assert float(loss) == 4.0 * 14.0
    assert tape.gradient(loss, x).numpy().tolist() == [8.0, 16.0, 24.0]


def test_tensor_that_a_tf_function_returned_for_an_array_is_an_error_that_says_so():
    made = tf.function(lambda: tf.TensorArray(I32, 4).write(0, 0))
    with pytest.raises(AttributeError, match=r"^Function 'filled' \(.*, line \d+\): it takes a tf.TensorArray.*stack"):
        filled(made(), tf.constant(3))


def test_saved_model_lacks_a_function_that_states_arrays_and_says_why(tmp_path):
    module = tf.Module()
    module.stated = stated
    with pytest.warns(RuntimeWarning, match=r"lacks Module\.stated: .*'stated' takes a tf\.TensorArray.*take a tensor"):
        tf.saved_model.save(module, str(tmp_path))
