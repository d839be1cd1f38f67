"""What a SavedModel says where it is loaded without this package."""
# SPDX-License-Identifier: Apache-2.0

from typing import Any

from tensorflow.core.framework import function_pb2
from tensorflow.python.saved_model import save

# The loader of a process without this package does not know which operator lets functions call each other. It lists the
# functions that it finds in cycles, by their names, and this one is in a cycle with itself. Nothing calls it.
_HINT = "import_tensorflow_recursion_before_loading"


def install(call: str) -> None:
    """Let TensorFlow write the hint into SavedModels with functions that are called by the operator `call`."""
    fill = save._fill_meta_graph_def

    def fill_with_hint(meta_graph_def: Any, *args: Any, **kwargs: Any) -> Any:
        result = fill(meta_graph_def, *args, **kwargs)
        library = meta_graph_def.graph_def.library
        if any(node.op == call for function in library.function for node in function.node_def):
            library.function.append(_hint())
        return result

    save._fill_meta_graph_def = fill_with_hint


def without_hint(library: Any) -> Any:
    """A function library as it was before the hint was written into it."""
    if all(function.signature.name != _HINT for function in library.function):
        return library
    rest = function_pb2.FunctionDefLibrary()
    rest.CopyFrom(library)
    del rest.function[:]
    rest.function.extend(function for function in library.function if function.signature.name != _HINT)
    return rest


def _hint() -> Any:
    hint = function_pb2.FunctionDef()
    hint.signature.name = _HINT
    node = hint.node_def.add(name="hint", op="NoOp")
    node.attr["_recursion_hint"].func.name = _HINT
    return hint
