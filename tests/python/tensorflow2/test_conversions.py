"""Converters to formats without recursion say so."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf
from gradient_helpers import nested_derivative

import tensorflow_recursion as tfr
from tensorflow_recursion import error_lines


def model():
    @tfr.recursive(input_signature=[tf.TensorSpec([], tf.float32)])
    def halved(x):
        if x < 1.0:
            return x
        return halved(x / 2)

    module = tf.Module()
    module.call = tf.function(lambda x: halved(x), input_signature=[tf.TensorSpec([], tf.float32)])
    return module


@pytest.fixture
def saved(tmp_path):
    """A directory with a SavedModel."""
    module = model()
    tf.saved_model.save(module, str(tmp_path), signatures=module.call.get_concrete_function())
    return str(tmp_path)


def test_lite_refuses_recursive_functions():
    module = model()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.call.get_concrete_function()], module)
    with pytest.raises(Exception, match="recursive functions .*TensorFlow Lite"):
        converter.convert()


def test_lite_refuses_saved_models_with_recursive_functions(saved):
    with pytest.raises(Exception, match="recursive functions .*TensorFlow Lite"):
        tf.lite.TFLiteConverter.from_saved_model(saved).convert()


def test_lite_converts_other_models():
    module = tf.Module()
    module.call = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec([], tf.float32)])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.call.get_concrete_function()], module)
    assert converter.convert()


def test_quantization_refuses_recursive_functions(saved):
    quantization = tf.quantization.experimental
    for method in ("STATIC_RANGE_INT8", "DYNAMIC_RANGE_INT8", "STATIC_RANGE_WEIGHT_ONLY_INT8"):
        preset = quantization.QuantizationMethod.PresetMethod.Value(f"METHOD_{method}")
        options = quantization.QuantizationOptions(
            quantization_method=quantization.QuantizationMethod(preset_method=preset),
            signature_keys=["serving_default"],
        )
        with pytest.raises(NotImplementedError, match="recursive functions .*quantization would inline"):
            quantization.quantize_saved_model(saved, quantization_options=options)


@pytest.mark.thorough
def test_xla_refuses_recursive_functions_and_says_which_function_it_was_to_compile():
    uncompiled = tf.function(model().call)

    @tf.function(jit_compile=True)
    def halves(x):
        if x < 2.0:
            x += uncompiled(x)
        return uncompiled(x) + 1.0

    no_form = "XLA has no form for .*Recursion>Invoke.*; leave out jit_compile=True of the tf.function 'halves'\n"
    for function in (halves, tf.function(lambda x: halves(x) + 1.0), lambda x: nested_derivative(halves, x, 1)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=no_form):
            function(tf.constant(5.0))


def test_error_of_xla_that_does_not_say_what_was_compiled_names_all_that_may_be():
    message = "Detected unsupported operations in a graph: Recursion>Invoke (No registered 'Recursion>Invoke' OpKernel)"
    text, _ = error_lines.described(message, tf.Graph())
    assert "leave out jit_compile=True of the tf.function, or write jit_compile=False in Model.compile" in text


@pytest.fixture
def compiled_where_it_can_be():
    tf.config.optimizer.set_jit(True)
    yield
    tf.config.optimizer.set_jit(False)


@pytest.mark.thorough
def test_xla_leaves_calls_out_where_it_may(compiled_where_it_can_be):
    """It compiles what is around them."""
    call = model().call

    @tf.function
    def around(x):
        with tf.xla.experimental.jit_scope():
            return call(x * 2.0 - 5.0) * 2.0 + 1.0

    x = tf.constant(5.0)
    assert around(x) == 2.25
    assert nested_derivative(around, x, 1) == nested_derivative(call, x, 1) * 4.0


def test_calls_in_what_xla_compiles_are_errors_instead_of_the_end_of_the_process():
    call = model().call
    assert call(tf.constant(5.0)) == 0.625  # it is traced, and not anew for XLA
    for function in (call, lambda x: tf.cond(x < 1.0, lambda: x, lambda: call(x))):
        with pytest.raises(NotImplementedError, match="tf.xla.experimental.compile calls recursive functions"):
            tf.xla.experimental.compile(function, [tf.constant(5.0)])
    assert tf.xla.experimental.compile(lambda x: x + 1.0, [call(tf.constant(5.0))])[0] == 1.625
