"""Converters to formats without recursion say so."""
# SPDX-License-Identifier: Apache-2.0

import pytest
import tensorflow as tf

import tensorflow_recursion as tfr


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
def test_xla_refuses_recursive_functions():
    compiled = tf.function(model().call, jit_compile=True)
    for function in (compiled, tf.function(lambda x: compiled(x) + 1.0)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="XLA has no form for .*Recursion>Invoke.*jit_compile"):
            function(tf.constant(5.0))


def test_calls_in_what_xla_compiles_are_errors_instead_of_the_end_of_the_process():
    call = model().call
    assert call(tf.constant(5.0)) == 0.625  # it is traced, and not anew for XLA
    for function in (call, lambda x: tf.cond(x < 1.0, lambda: x, lambda: call(x))):
        with pytest.raises(NotImplementedError, match="tf.xla.experimental.compile calls recursive functions"):
            tf.xla.experimental.compile(function, [tf.constant(5.0)])
    assert tf.xla.experimental.compile(lambda x: x + 1.0, [call(tf.constant(5.0))])[0] == 1.625
