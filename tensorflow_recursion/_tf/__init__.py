"""The private corners of TensorFlow this package stands on, all in one place (TensorFlow 2.16 to 2.21).

No other room imports a private module of TensorFlow or touches a private member of its objects, so that a new
TensorFlow asks for changes here alone:

- `typed`: decorators of TensorFlow that keep the types of what they decorate.
- `graphs`: which graph stands in which, and what kind of graph it is.
- `nodes`: operations that are changed after they were made.
- `functions`: the function library of a graph.
- `handles`: what is known of the variable behind a resource handle, and what has a gradient.
- `origins`: where in Python the operations of functions were made; errors of sessions that say so.
- `sessions`: what sessions are made of; preparing a graph without running it.
- `tapes`: what gradient tapes learn of a call.
- `recorders`: the tapes and accumulators that are active, and suspending them.
- `followed`: calls of tf.functions that a tape and an accumulator follow.
- `datasets`: functions of datasets that call recursive functions.
- `conversion`: the converter to TensorFlow Lite.
- `vectorized`: how vectorized maps and jacobians run a call for all elements.
- `loops`: errors of loops whose variables change their shapes.
- `loading`: functions of a SavedModel that call each other.
- `patches`: control flow whose gradient can be cut off what it is a gradient of.
- `tracing`: Python functions become functions of the graph.
"""
# SPDX-License-Identifier: Apache-2.0
