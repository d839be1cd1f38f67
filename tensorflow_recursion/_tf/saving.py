"""What a SavedModel says where it is loaded without this package, and the gradients of users' own that go into it."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import function_pb2
from tensorflow.python.framework import ops
from tensorflow.python.saved_model import save

from tensorflow_recursion._tf import functions

# The loader of a process without this package does not know which operator lets functions call each other. It lists the
# functions that it finds in cycles, by their names, and this one is in a cycle with itself. Nothing calls it.
_HINT = "import_tensorflow_recursion_before_loading"
_GRADIENT_TYPE = "_gradient_op_type"
# What TensorFlow calls a `tf.custom_gradient`. It numbers them, so they have other names in other processes.
_NUMBERED = "CustomGradient-"


def install(
    call: str,
    is_name_of_ours: Callable[[str], bool],
    function_around: Callable[[tf.Graph], str | None],
    warn_of_unsaved: Callable[[str, str], None],
) -> None:
    """Let TensorFlow save functions that are called by the operator `call`.

    It writes the hint into what it saves. Of gradients of users' own in bodies it saves those that can be.

    Args:
      call: the operator.
      is_name_of_ours: whether a function has a name that this package gives to functions. Others that TensorFlow takes
        out of a graph may have gradients that go by numbers of another process.
      function_around: the function whose body a graph is part of, as a branch or a loop of it; None outside of bodies.
      warn_of_unsaved: is called with a function, and why the gradient of an operator in it is not saved.
    """
    fill, own_gradients = save._fill_meta_graph_def, save._iterate_op_types

    def fill_with_hint(meta_graph_def: Any, *args: Any, **kwargs: Any) -> Any:
        result = fill(meta_graph_def, *args, **kwargs)
        library = meta_graph_def.graph_def.library
        if any(node.op == call for function in library.function for node in function.node_def):
            library.function.append(_hint())
        return result

    def iterate_op_types(function: Any) -> Iterator[tuple[Any, Any]]:
        is_traced = functions.is_traced(function)
        if is_traced:
            has_call = any(node.op == call for node in function.definition.node_def)
            user_name = function.name if has_call or is_name_of_ours(function.name) else None
        else:
            user_name = function_around(function.graph)
        if user_name is None:
            yield from own_gradients(function)
            return
        for op in _with_gradients(function.definition) if is_traced else function.graph.get_operations():
            name = gradient_of(op.node_def)
            if name is not None and (reason := _why_not_saved(name, op)):
                warn_of_unsaved(user_name, reason)
            elif name is not None:
                yield name.encode(), op

    save._fill_meta_graph_def, save._iterate_op_types = fill_with_hint, iterate_op_types


def gradient_of(node: Any) -> str | None:
    """The name of the `tf.custom_gradient` that a node has; None if it has none.

    Gradients with other names, which a `gradient_override_map` knows, are found by these where a node is loaded.
    """
    name = str(node.attr[_GRADIENT_TYPE].s.decode()) if _GRADIENT_TYPE in node.attr else ""
    return name if name.startswith(_NUMBERED) else None


def set_gradient_of(node: Any, name: str) -> None:
    """Give a node another `tf.custom_gradient`."""
    node.attr[_GRADIENT_TYPE].s = name.encode()


def _with_gradients(definition: Any) -> list[tf.Operation]:
    """Operators like those of a definition that have a `tf.custom_gradient`."""
    made = []
    with tf.Graph().as_default() as graph:
        for node in definition.node_def:
            if gradient_of(node) is not None:  # they are all IdentityN
                inputs = [tf.compat.v1.placeholder(dtype) for dtype in node.attr["T"].list.type]
                attrs = {name: node.attr[name] for name in ("T", _GRADIENT_TYPE)}
                made.append(graph.create_op(node.op, inputs, attrs=attrs, name=node.name))
    return made


def _why_not_saved(name: str, op: tf.Operation) -> str | None:
    """What keeps the gradient that is registered by a name, that of `op`, out of a SavedModel; None if nothing does."""
    try:
        gradient = ops.gradient_registry.lookup(name)
    except LookupError:
        return None  # TensorFlow saves none, and says nothing
    try:
        function = tf.function(gradient).get_concrete_function(None, *op.inputs)
    except Exception as error:  # whatever it raises of arguments that are not the body's own
        return f"it cannot be traced by itself ({type(error).__name__}: {error})"
    read = [tensor.name for tensor in function.captured_inputs if tf.is_symbolic_tensor(tensor)]
    return f"it reads what the body computes ({', '.join(read)})" if read else None


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
