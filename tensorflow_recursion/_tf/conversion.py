"""The converters to TensorFlow Lite and XLA, which follow functions that call themselves without end."""
# SPDX-License-Identifier: Apache-2.0

from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.lite.python import convert as lite
from tensorflow.python.compiler.xla.xla import XLACompileContext

from tensorflow_recursion._tf import function_calls, functions
from tensorflow_recursion._tf.replacements import replace_for_good


def refuse_for_lite(operator: str, message: str) -> None:
    """Let conversions of models with an operator end with an error instead of the process."""
    convert = lite.convert

    def checked(model_flags: Any, *args: Any, **kwargs: Any) -> Any:
        graph = kwargs.get("input_data_str", args[1] if len(args) > 1 else None)
        if operator.encode() in _bytes(graph) or operator.encode() in _saved_model(model_flags):
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


def _saved_model(model_flags: Any) -> bytes:
    """The SavedModel to be converted, serialized; nothing if it is none."""
    file = Path(model_flags.saved_model_dir) / "saved_model.pb"
    return file.read_bytes() if model_flags.saved_model_dir and file.is_file() else b""


def _bytes(data: Any) -> bytes:
    return data.encode() if isinstance(data, str) else bytes(data or b"")
