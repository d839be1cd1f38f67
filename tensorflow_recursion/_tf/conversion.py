"""Converters that follow functions which call themselves without end: to TensorFlow Lite, to XLA, to fewer bits."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.compiler.mlir.quantization.tensorflow.python import quantize_model
from tensorflow.lite.python import convert as lite
from tensorflow.python.compiler.xla.xla import XLACompileContext

from tensorflow_recursion._tf import function_calls, functions
from tensorflow_recursion._tf.replacements import replace_for_good


def refuse_for_lite(operator: str, message: str) -> None:
    """Let conversions of models with an operator end with an error instead of the process."""
    convert = lite.convert

    def checked(model_flags: Any, *args: Any, **kwargs: Any) -> Any:
        graph = kwargs.get("input_data_str", args[1] if len(args) > 1 else None)
        if operator.encode() in _bytes(graph) or operator.encode() in _saved_model(model_flags.saved_model_dir):
            raise lite.ConverterError(message)
        return convert(model_flags, *args, **kwargs)

    replace_for_good(lite, "convert", checked)


def refuse_for_xla(operator: str, message: str) -> None:
    """Let a call, in what `tf.xla.experimental.compile` compiles, be an error instead of the end of the process.

    `message` has a place for the name of the operation, which is an `operator` or runs functions that have one.
    """
    add = XLACompileContext.AddOp

    def checked(compiled: XLACompileContext, op: tf.Operation) -> None:
        called = functions.referred_to(op.node_def)
        reached = functions.nodes_reached(called, lambda name: function_calls.function_in_reach(op.graph, name))
        if op.type == operator or any(node.op == operator for node in reached):
            raise NotImplementedError(message.format(op.name))
        add(compiled, op)

    replace_for_good(XLACompileContext, "AddOp", checked)


def refuse_for_quantization(operator: str, message: str) -> None:
    """Let the quantization of a SavedModel with an operator be an error instead of the end of the process."""

    def checked(quantize: Callable[..., Any]) -> Callable[..., Any]:
        def quantized(path: str, *args: Any, **kwargs: Any) -> Any:
            if operator.encode() in _saved_model(path):
                raise NotImplementedError(message)
            return quantize(path, *args, **kwargs)

        return quantized

    replace_for_good(quantize_model, "_static_range_quantize", checked(quantize_model._static_range_quantize))
    replace_for_good(quantize_model, "_dynamic_range_quantize", checked(quantize_model._dynamic_range_quantize))
    replace_for_good(quantize_model, "_weight_only_quantize", checked(quantize_model._weight_only_quantize))


def _saved_model(directory: str) -> bytes:
    """The SavedModel in a directory, serialized; nothing if there is none."""
    file = Path(directory) / "saved_model.pb"
    return file.read_bytes() if directory and file.is_file() else b""


def _bytes(data: Any) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data or b"")
