"""Handle data: what is known of the variable behind a resource handle, or of the elements of a list of tensors.

It tells which handles and lists have a gradient.
"""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Hashable, Sequence
from typing import TypeAlias

import tensorflow as tf
from tensorflow.core.framework import full_type_pb2, types_pb2
from tensorflow.python.eager import backprop_util
from tensorflow.python.framework import cpp_shape_inference_pb2
from tensorflow.python.ops import gen_resource_variable_ops, handle_data_util

# Dtype and shape of the variable that a handle is one of, or of the elements that a list of tensors holds.
HandleData: TypeAlias = cpp_shape_inference_pb2.CppShapeInferenceResult.HandleData
_WITH_DATA = (tf.resource, tf.variant)
# Handle data for the record of a call, as long as no gradient is asked for through it: that of a list of integers,
# which have no gradient, so that TensorFlow makes no zeros like the record.
WITHOUT_GRADIENT = handle_data_util.create_handle_data(tf.TensorShape([]), tf.int64)
# Handle data for a record that has a gradient: that of a list of lists, whose elements may have gradients. A list of
# records has another one, in which the shape is known: each record is a scalar.
OF_RECORD = handle_data_util.create_handle_data(tf.TensorShape(None), tf.variant)
# Handle data for a `tf.experimental.Optional`, such as one that a conditional in a `tf.function` returns for its
# gradient. It may hold another dtype in each branch, so its gradient, an optional as well, is of none that is known.
OF_OPTIONAL = HandleData.FromString(OF_RECORD.SerializeToString() + OF_RECORD.SerializeToString())


def is_trainable(tensor: tf.Tensor) -> bool:
    """Whether `tensor` is known to have a gradient, as `tf.gradients` sees it."""
    if tensor.dtype.base_dtype in _WITH_DATA:
        return holds_trainable(handle_data(tensor))
    return bool(backprop_util.IsTrainable(tensor))


def holds_trainable(data: HandleData | None) -> bool:
    """Whether what is known of a variable or a list says that its values have a gradient; lists in a list may.

    TensorFlow gives no dtype (DT_INVALID) to what is one of several lists whose elements differ in it.
    """
    known = data.shape_and_type if data is not None else []
    if not known or known[0].dtype == types_pb2.DT_INVALID:
        return False
    return known[0].dtype == tf.variant or is_trainable_type(tf.as_dtype(known[0].dtype))


def is_of_unknown_kind(tensor: tf.Tensor) -> bool:
    """Whether `tensor` is a variant of which nothing is known: a list of tensors, a dataset, or anything else."""
    return tensor.dtype.base_dtype == tf.variant and handle_data(tensor) is None


def is_of_no_variable(tensor: tf.Tensor) -> bool:
    """Whether `tensor` is a handle that is not known to be one of a variable: of a lookup table, for example."""
    return tensor.dtype.base_dtype == tf.resource and handle_data(tensor) is None


def has_data(dtype: tf.DType) -> bool:
    """Whether handle data, not the dtype alone, tells if tensors of a dtype have a gradient: handles and lists."""
    return dtype.base_dtype in _WITH_DATA


def is_trainable_type(dtype: tf.DType) -> bool:
    """Whether tensors of a dtype have a gradient, as far as the dtype alone tells."""
    return dtype not in (tf.variant, tf.resource) and bool(backprop_util.IsTrainable(dtype))


def handle_data(tensor: tf.Tensor) -> HandleData | None:
    """What is known of the variable whose handle `tensor` is, or of the list; None if nothing is, or it is neither."""
    if tensor.dtype.base_dtype not in _WITH_DATA:
        return None
    if tf.is_symbolic_tensor(tensor):
        data = handle_data_util.get_resource_handle_data(tensor)
    else:
        data = getattr(tensor, "_handle_data", None)  # where eager tensors have it
    return _comparable(data) if data is not None and data.is_set else None


def _comparable(data: HandleData) -> HandleData:
    """The same data in one form, so that equal data compare equal.

    TensorFlow's C++ adds an empty `type` where Python adds none.
    """
    if any(known.type.type_id == full_type_pb2.TFT_OPTIONAL for known in data.shape_and_type):
        return OF_OPTIONAL
    if not any(known.HasField("type") and not known.type.ByteSize() for known in data.shape_and_type):
        return data
    result = HandleData.FromString(data.SerializeToString())
    for known in result.shape_and_type:
        if not known.type.ByteSize():
            known.ClearField("type")
    return result


def set_handle_data(tensors: Sequence[tf.Tensor], known: Sequence[HandleData | None]) -> None:
    """Tell each handle and list what is `known` of its variable or its elements, unless it has been told before."""
    for tensor, data in zip(tensors, known, strict=True):
        if data is not None and handle_data(tensor) is None:
            handle_data_util.set_handle_data(tensor, data)


def with_gradient(data: HandleData | None) -> HandleData | None:
    """The handle data of a tensor once its gradient is asked for: a record without a gradient becomes one with it."""
    return OF_RECORD if data == WITHOUT_GRADIENT else data


def join_handle_data(a: HandleData | None, b: HandleData | None) -> HandleData | None:
    """The most that is true of both variables or lists. Their dtype is the same, because either may be passed.

    None, of which nothing is known yet, leaves the other one as it is.
    """
    if a is None or b is None or a == b:
        return b if a is None else a
    joined = HandleData.FromString(a.SerializeToString())
    for one, other in zip(joined.shape_and_type, b.shape_and_type, strict=False):
        shape = tf.TensorShape(one.shape).most_specific_common_supertype([tf.TensorShape(other.shape)])
        one.shape.CopyFrom((shape or tf.TensorShape(None)).as_proto())
    return joined


def are_of_one_dtype(a: HandleData, b: HandleData) -> bool:
    """Whether the values of two variables, or the elements of two lists, have one dtype."""
    return [known.dtype for known in a.shape_and_type] == [known.dtype for known in b.shape_and_type]


def with_open_shape(data: HandleData) -> HandleData:
    """The same, but for the shape, which is not known."""
    result = HandleData.FromString(data.SerializeToString())
    for known in result.shape_and_type:
        known.shape.CopyFrom(tf.TensorShape(None).as_proto())
    return result


def is_of_other_replica(tensor: tf.Tensor) -> bool:
    """Whether `tensor` is the handle that another replica than the one being built has of a distributed variable."""
    reference = getattr(tensor, "_distributed_container", None)
    variable = None if reference is None else reference()
    return variable is not None and variable.handle is not tensor


def gradient_type(tensor: tf.Tensor) -> tuple[tf.DType, tf.TensorShape]:
    """Dtype and static shape of the gradient for a trainable tensor.

    For the handle of a variable they are those of the variable. The gradient for a list is a list.
    """
    if tensor.dtype.base_dtype == tf.resource:
        return _variable_of(tensor)
    return tensor.dtype.base_dtype, tensor.shape


def dtype_of_gradient(dtype: tf.DType, data: HandleData | None) -> tf.DType:
    """The dtype of the gradient for a tensor of a `dtype`, which has the handle data `data` if it is a handle."""
    return tf.as_dtype(data.shape_and_type[0].dtype) if dtype == tf.resource and data is not None else dtype


def gradient_elements(tensor: tf.Tensor) -> HandleData | None:
    """What is known of the gradient for a list of tensors or an optional, which is a list or an optional as well."""
    data = handle_data(tensor) if tensor.dtype.base_dtype == tf.variant else None
    if data == OF_OPTIONAL:
        return data
    if data is None or not holds_trainable(data) or data.shape_and_type[0].dtype == tf.variant:
        return None
    return data


def variable_key(tensor: tf.Tensor) -> Hashable:
    """A key, the same for handles and lists whose dtypes and shapes are known alike; None for other tensors."""
    if tensor.dtype.base_dtype not in _WITH_DATA or not is_trainable(tensor):
        return None
    dtype, shape = _variable_of(tensor)
    return dtype.name, str(shape)


def zeros_for(tensor: tf.Tensor) -> tf.Tensor:
    """A gradient of zeros for a trainable tensor."""
    if tensor.dtype.base_dtype != tf.resource:
        return tf.zeros_like(tensor)
    dtype, shape = _variable_of(tensor)
    if not shape.is_fully_defined():
        shape = gen_resource_variable_ops.variable_shape(tensor)
    return tf.zeros(shape, dtype)


def _variable_of(handle: tf.Tensor) -> tuple[tf.DType, tf.TensorShape]:
    data = handle_data(handle)
    if data is None:
        raise LookupError(
            f"the gradient for the variable behind {handle.name!r} cannot be built: nothing came along that tells the "
            "variable's dtype and shape; build the graph by its Python code again and restore the variables, or pass "
            "the variable's value as an argument"
        )
    data = data.shape_and_type[0]
    return tf.as_dtype(data.dtype), tf.TensorShape(data.shape)
