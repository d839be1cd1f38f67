"""Conversions of models to other formats, which know no recursion."""
# SPDX-License-Identifier: Apache-2.0

from tensorflow_recursion import names
from tensorflow_recursion._tf import conversion


def register() -> None:
    """Let converters say that they cannot take recursive functions."""
    conversion.refuse_for_lite(
        names.INVOKE,
        f"The model calls recursive functions (operator {names.INVOKE}), which TensorFlow Lite has no form for: it "
        "inlines all functions. Run the model with TensorFlow, or write the recursion as a tf.while_loop",
    )
    conversion.refuse_for_xla(
        names.INVOKE,
        "Operation '{}' in tf.xla.experimental.compile calls recursive functions, which XLA has no form for, as their "
        "depth depends on values; call them outside of what is compiled",
    )
    conversion.refuse_for_quantization(
        names.INVOKE,
        f"The model calls recursive functions (operator {names.INVOKE}), which TensorFlow's quantization would inline "
        "without end; quantize a part of the model that calls none, or cast its weights by yourself",
    )
