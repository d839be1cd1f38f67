"""Creates the nodes that call functions and keep what their gradients need."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf import function_calls, graphs, handles, nodes, recorders, side_effects, tapes
from tensorflow_recursion._tf.typed import registered_gradient

tf1 = tf.compat.v1

for _reader in (names.SNAPSHOT, names.VARIABLES_OF):
    side_effects.note_reader(_reader)
side_effects.note_without_effect(
    (names.CONTRIBUTE, names.CONTRIBUTE_NONE, names.CONTRIBUTE_VIEW, names.COLLECT, names.TOTAL),
)

# Operators that call functions.
CALLS = (names.INVOKE, *function_calls.OPERATORS)

# What a call returns to Python: one tensor, a tuple of several, or the operation if there is no output.
Result: TypeAlias = tf.Tensor | tuple[tf.Tensor, ...] | tf.Operation


def invoke(
    function: str,
    inputs: Sequence[tf.Tensor],
    output_types: Sequence[tf.DType],
    output_shapes: Sequence[tf.TensorShape] | None,
    name: str,
    *,
    forward: str = "",
    record_of: str = "",
    ignored: Sequence[tf.Tensor] = (),
    snapshot: Sequence[tf.Tensor] = (),
) -> tf.Operation:
    """Add one `Recursion>Invoke` node to the default graph.

    Args:
      function: name of the callee in the graph's function library; it need not be there yet.
      inputs: every argument of the callee, captured ones last.
      output_types: dtypes of the callee's outputs.
      output_shapes: static shapes of the outputs, or None where nothing is known of any of them.
      name: name of the node, within the current name scope.
      forward: name of the function to call instead if the record is read.
      record_of: name of the function that writes the record among the inputs, if there is one.
      ignored: tensors that are not passed on; the node's gradient refers to them.
      snapshot: the snapshot that was taken of the variables, in a list, if there is one. It is not passed on either.

    Returns:
      The new operation. It has one output per entry of `output_types`, and the record.

    Examples:
      >>> op = ops.invoke("Fib", [tf.constant(20)], [tf.int32], None, name="Fib")
      >>> op.type, [output.dtype.name for output in op.outputs]
      ('Recursion>Invoke', ['int32', 'variant'])
    """
    attrs = {
        names.CALLEE: _function(function),
        names.ARGUMENT_TYPES: _type_list([tensor.dtype.base_dtype for tensor in inputs]),
        names.IGNORED_TYPES: _type_list([tensor.dtype.base_dtype for tensor in [*ignored, *snapshot]]),
        names.RESULT_TYPES: _type_list(output_types),
        names.FORWARD: tf1.AttrValue(s=forward.encode()),
    }
    attrs[names.INPUTS_ON_HOST] = _on_host([tensor.dtype for tensor in inputs])
    attrs[names.OUTPUTS_ON_HOST] = _on_host(output_types)
    if output_shapes is not None:
        attrs[names.OUTPUT_SHAPES] = _shape_list(output_shapes)
    if record_of:
        attrs[names.RECORD_OF] = tf1.AttrValue()
        attrs[names.RECORD_OF].list.func.add().name = record_of
    if graphs.is_func_graph(graphs.enclosing_graphs(tf1.get_default_graph())[-1]):  # no session transforms it
        attrs[names.STATIC] = tf1.AttrValue(b=True)
    if snapshot:
        attrs[names.HAS_SNAPSHOT] = tf1.AttrValue(b=True)
    return _add_node(names.INVOKE, [*inputs, *ignored, *snapshot], [*output_types, tf.variant], name, attrs)


def is_gradient(call: tf.Operation) -> bool:
    """Whether a call is one of a backward function."""
    return bool(call.get_attr(names.RECORD_OF))


def record_of(call: tf.Operation) -> str:
    """The forward function whose record a call of a backward function takes."""
    return str(call.get_attr(names.RECORD_OF)[0].name)


def ignored_by(call: tf.Operation) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
    """What a call does not pass on: the arguments of another call, and its snapshot, in a list, if there is one."""
    ignored = list(call.inputs)[num_arguments(call) :]
    count = len(ignored) - (names.HAS_SNAPSHOT in call.node_def.attr)
    return ignored[:count], ignored[count:]


def carries_arguments(call: tf.Operation) -> bool:
    """Whether a call of a backward function carries what differentiating it again takes.

    Those outside of bodies' gradients do. The gradient as a function is differentiated then, with these arguments.
    """
    return is_gradient(call) and len(call.inputs) > num_arguments(call)


def repeat(op: tf.Operation, inputs: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Add a node like `op` to the default graph, with other inputs; returns an output for each output of `op`."""
    attrs = dict(op.node_def.attr)
    types = [output.dtype for output in op.outputs]
    if op.type == names.INVOKE:  # one that calls a forward function has a record of its own, besides what it returns
        types = [*map(tf.as_dtype, op.get_attr(names.RESULT_TYPES)), tf.variant]
    again = _add_node(op.type, inputs, types, op.name.rsplit("/", 1)[-1], attrs)
    handles.set_handle_data(again.outputs[: len(op.outputs)], [handles.handle_data(output) for output in op.outputs])
    return list(again.outputs)


def owner_of(op: tf.Operation) -> str:
    """The owner of the record that an operation retains or recalls."""
    return str(op.get_attr(names.FUNCTION).decode())


def set_max_depth(op: tf.Operation, max_depth: int) -> None:
    """Let calls nest at most `max_depth` deep where an Invoke node is the outermost one."""
    nodes.set_attribute(op, f"{names.OPTION_PREFIX}{names.MAX_DEPTH}", tf1.AttrValue(i=max_depth))


def num_arguments(op: tf.Operation) -> int:
    """How many inputs of a call are passed to its callee: of an Invoke node, or of one that calls a `tf.function`."""
    return len(op.inputs) if op.type in function_calls.OPERATORS else len(op.get_attr(names.ARGUMENT_TYPES))


def callee_of(op: tf.Operation) -> str:
    """Name of the function that an Invoke node calls, or one that calls a `tf.function`."""
    return str(op.get_attr(names.CALLEE).name)  # the attribute is called the same


def result_of(op: tf.Operation) -> Result:
    """The results of an Invoke node, without the record, as a call returns them."""
    *results, _ = op.outputs
    if not results:
        return op
    return results[0] if len(results) == 1 else tuple(results)


def run_forward(op: tf.Operation, forward: str, results: int) -> tf.Tensor:
    """Let a call in a function graph that is being built call `forward`; returns the record.

    Nothing is changed if it calls a forward function already: one was set here before, or the node is a copy of such a
    call.

    Args:
      op: an Invoke node, or one that calls a `tf.function`.
      forward: the forward function. It returns what the function that is called now returns, and a record.
      results: how many results there are without the record.
    """
    if op.type in function_calls.OPERATORS:
        if len(op.outputs) == results:
            graphs.note_change(op.graph)
            function_calls.run_instead(op, forward, [tf.variant])
        return op.outputs[results]
    types = [tf.as_dtype(dtype) for dtype in op.get_attr(names.RESULT_TYPES)]
    if len(types) == results:
        shapes = op.get_attr(names.OUTPUT_SHAPES)
        graphs.note_change(op.graph)
        nodes.set_attribute(op, names.CALLEE, _function(forward))
        nodes.set_attribute(op, names.RESULT_TYPES, _type_list([*types, tf.variant]))
        if shapes:
            nodes.set_attribute(
                op, names.OUTPUT_SHAPES, _shape_list([*map(tf.TensorShape, shapes), tf.TensorShape([])])
            )
    return op.outputs[results]


def run_other_forward(op: tf.Operation, forward: str) -> None:
    """Let a call that runs a forward function in a function graph run `forward`, that of another group.

    What the graph was made into before, a concrete function for example, still runs the one from then.
    """
    if op.type == names.INVOKE and op.graph.building_function and callee_of(op) != forward:
        graphs.note_change(op.graph)
        nodes.set_attribute(op, names.CALLEE, _function(forward))


def forward_of(op: tf.Operation) -> str:
    """What a call runs where its record is read; in a function graph that is what it calls."""
    is_called = op.type != names.INVOKE or op.graph.building_function
    return callee_of(op) if is_called else str(op.get_attr(names.FORWARD).decode())


def set_forward(op: tf.Operation, forward: str) -> None:
    """Let an Invoke node call `forward` where its record is read, unless it says so already."""
    if op.get_attr(names.FORWARD).decode() != forward:
        nodes.set_attribute(op, names.FORWARD, tf1.AttrValue(s=forward.encode()))


def retain(values: Sequence[tf.Tensor], owner: str) -> tf.Operation:
    """Add a node that packs `values` into a record.

    `owner` is the name that all records share which hold the same values: that of the forward function which makes
    them, `F__forward1` for example. A record is unpacked under the same name.
    """
    attrs = {
        names.TYPE: _type_list([tensor.dtype.base_dtype for tensor in values]),
        names.FUNCTION: tf1.AttrValue(s=owner.encode()),
        names.INPUTS_ON_HOST: _on_host([tensor.dtype for tensor in values]),
    }
    return _add_node(names.RETAIN, list(values), [tf.variant], "retain", attrs)


def recall(record: tf.Tensor, values: Sequence[tf.Tensor | tf.TensorSpec], owner: str) -> list[tf.Tensor]:
    """Add a node that unpacks a record of `owner`; returns tensors with the dtypes and static shapes of `values`."""
    types = [tensor.dtype.base_dtype for tensor in values]
    attrs = {
        names.TYPE: _type_list(types),
        "shapes": _shape_list([tensor.shape for tensor in values]),
        names.FUNCTION: tf1.AttrValue(s=owner.encode()),
        names.OUTPUTS_ON_HOST: _on_host(types),
    }
    return list(_add_node(names.RECALL, [record], types, "recall", attrs).outputs)


def list_or_zeros(value: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
    """Add a node that returns the list `value`, or zeros like the list `like` where `value` is an empty record."""
    return _add_node(names.LIST_OR_ZEROS, [value, like], [tf.variant], "list_or_zeros", {}).outputs[0]


@registered_gradient(names.LIST_OR_ZEROS)
def _list_or_zeros_gradient(_: tf.Operation, grad: tf.Tensor) -> list[tf.Tensor | None]:
    return [grad, None]


def snapshot(variables: Mapping[int, tf.Tensor], assigned: Collection[int]) -> tf.Operation:
    """Add a node that keeps the values that variables have now; a call takes them as inputs at the given positions.

    It may assign to those at the positions `assigned`.
    """
    attrs = {**_of_variables(variables), names.ASSIGNED: tf1.AttrValue()}
    attrs[names.ASSIGNED].list.i.extend(assigned)
    return _add_node(names.SNAPSHOT, list(variables.values()), [tf.variant], "snapshot", attrs)


@registered_gradient(names.SNAPSHOT)
def _snapshot_gradient(op: tf.Operation, _: tf.Tensor) -> list[None]:
    return [None] * len(op.inputs)


def variables_of(snapshot: tf.Tensor, variables: Mapping[int, tf.Tensor]) -> dict[int, tf.Tensor]:
    """Add a node that makes new variables, with the values that `variables` had in the snapshot."""
    inputs = [snapshot, *variables.values()]
    types = [tf.resource] * len(variables)
    copies = list(_add_node(names.VARIABLES_OF, inputs, types, "variables_of", _of_variables(variables)).outputs)
    handles.set_handle_data(copies, list(map(handles.handle_data, variables.values())))
    return dict(zip(variables, copies, strict=True))


def _of_variables(variables: Mapping[int, tf.Tensor]) -> dict[str, tf.compat.v1.AttrValue]:
    positions = tf1.AttrValue()
    positions.list.i.extend(variables)
    return {names.TYPE: _type_list([tf.resource] * len(variables)), names.POSITIONS: positions}


@registered_gradient(names.VARIABLES_OF)
def _variables_of_gradient(_: tf.Operation, *grads: tf.Tensor) -> list[tf.Tensor | None]:
    return [None, *grads]


def contribute(first: tf.Tensor, second: tf.Tensor, part: int) -> tf.Tensor:
    """Add a node that makes a contribution of two tensors: a term of a weight's gradient, which is not computed yet.

    It belongs to the part of the gradient that has the number `part`.
    """
    attrs = {names.TYPE: _type(first.dtype), "U": _type(second.dtype), names.PART: tf1.AttrValue(i=part)}
    return _add_node(names.CONTRIBUTE, [first, second], [tf.variant], "contribute", attrs).outputs[0]


def contribute_none() -> tf.Tensor:
    """Add a node that makes a contribution without a term, as what does not use a weight hands up."""
    return _add_node(names.CONTRIBUTE_NONE, [], [tf.variant], "contribute_none", {}).outputs[0]


def contribute_view(terms: tf.Tensor) -> tf.Tensor:
    """Add a node that hands on the terms for a view of a weight as terms for the weight, which has another shape."""
    return _add_node(names.CONTRIBUTE_VIEW, [terms], [tf.variant], "contribute_view", {}).outputs[0]


def collect(
    contributions: tf.Tensor,
    types: tuple[tf.DType, tf.DType],
    row_shapes: tuple[tf.TensorShape, tf.TensorShape],
    part: int,
) -> list[tf.Tensor]:
    """Add a node that returns the first tensors of all terms, concatenated along axis 0, and the second ones likewise.

    `row_shapes` are the static shapes of one row of the first and of the second tensors. The terms are those of one
    part of the gradient.
    """
    attrs = {
        names.TYPE: _type(types[0]),
        "U": _type(types[1]),
        "first_shape": tf1.AttrValue(shape=row_shapes[0].as_proto()),
        "second_shape": tf1.AttrValue(shape=row_shapes[1].as_proto()),
        names.PART: tf1.AttrValue(i=part),
    }
    return list(_add_node(names.COLLECT, [contributions], list(types), "collect", attrs).outputs)


def total(value: tf.Tensor, contributions: tf.Tensor) -> tf.Tensor:
    """Add a node that passes on `value`, computed from `contributions`, and its gradient to those."""
    attrs = {names.TYPE: _type(value.dtype)}
    return _add_node(names.TOTAL, [value, contributions], [value.dtype], "total", attrs).outputs[0]


def _add_node(
    op_type: str,
    inputs: Sequence[tf.Tensor],
    output_types: Sequence[tf.DType],
    name: str,
    attrs: dict[str, tf.compat.v1.AttrValue],
) -> tf.Operation:
    """Add a node to the default graph, and let gradient tapes and accumulators know of it."""
    is_call = op_type == names.INVOKE
    count = len(output_types) - is_call  # not a call's record

    def add() -> tf.Operation:
        op = tf1.get_default_graph().create_op(op_type, list(inputs), output_types, name=name, attrs=attrs)
        for inner, given in zip(op.inputs, inputs, strict=True):  # a variable's handle, in a function, is captured
            recorders.record_same(inner, given)
        tapes.record(op, list(op.outputs)[:count], names.of_user(callee_of(op)) if is_call else None)
        return op

    return tapes.make_followed(inputs, add, count) if is_call else add()


def _type(dtype: tf.DType) -> tf.compat.v1.AttrValue:
    return tf1.AttrValue(type=dtype.base_dtype.as_datatype_enum)


def _function(name: str) -> tf.compat.v1.AttrValue:
    return tf1.AttrValue(func=tf1.NameAttrList(name=name))


def _on_host(dtypes: Sequence[tf.DType]) -> tf.compat.v1.AttrValue:
    """The positions of int32 inputs or outputs, which are in the host's memory on every device.

    What has no plain bytes, a string for example, is there too, and need not be listed.
    """
    result = tf1.AttrValue()
    result.list.SetInParent()
    result.list.i.extend(i for i, dtype in enumerate(dtypes) if dtype.base_dtype == tf.int32)
    return result


def _type_list(dtypes: Sequence[tf.DType]) -> tf.compat.v1.AttrValue:
    result = tf1.AttrValue()
    result.list.SetInParent()
    result.list.type.extend([dtype.as_datatype_enum for dtype in dtypes])
    return result


def _shape_list(shapes: Sequence[tf.TensorShape]) -> tf.compat.v1.AttrValue:
    result = tf1.AttrValue()
    result.list.SetInParent()
    result.list.shape.extend([shape.as_proto() for shape in shapes])
    return result
