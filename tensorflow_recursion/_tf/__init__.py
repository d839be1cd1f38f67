"""The private corners of TensorFlow this package stands on, all in one place (TensorFlow 2.16 to 2.21).

No other room imports a private module of TensorFlow or touches a private member of its objects, so that a new
TensorFlow asks for changes here alone.

Graphs and what is in them:

- `graphs`: which graph stands in which, and what kind of graph it is.
- `nodes`: operations that are changed after they were made.
- `attributes`: what we keep with objects of TensorFlow, as long as they live.
- `handles`: what is known of the variable behind a resource handle, and what has a gradient.
- `origins`: where in Python the operations of functions were made; errors of sessions that say so.

Functions of graphs:

- `functions`: the function library of a graph.
- `function_calls`: calls of tf.functions in graphs.
- `tracing`: Python functions become functions of the graph.
- `side_effects`: which operators have side effects, and their order in a body.
- `inlining`: bodies that are built anew from the definitions of functions.
- `copies`: what stands in copies of function graphs for tensors of the originals.
- `branches`: how functions are made of branches and loop bodies.
- `variable_scopes`: variable scopes in bodies, whose variables are made in the graph around.

The Python functions of users, and what they take:

- `autograph`: Python functions called as tf.function calls them.
- `autograph_errors`: where errors came up in the user's lines.
- `changed_files`: files that were edited after Python had loaded them.
- `typed`: decorators of TensorFlow that keep the types of what they decorate.
- `function_types`: how a call binds to the parameters of a Python function.
- `type_texts`: what messages say of kinds of arguments, and of how calls differ.
- `arrays`: how TensorArrays of eager mode get into functions, and out of them.
- `nests`: nests of tensors, as tf.function takes them.
- `dataclass_nests`: plain dataclasses as nests of their fields.
- `function_parts`: what a Python function refers to.
- `function_copies`: copies of Python functions that refer to other things.
- `function_kinds`: Python functions as arguments, as they were when they were passed to a call.
- `keras_scopes`: what Keras keeps for the thread in which a layer is called.

What inference looks at:

- `inferring`: graphs that are built to find out what a function returns.
- `read_shapes`: which parts of static shapes the user's Python reads.

Gradients:

- `tapes`: what gradient tapes learn of a call.
- `recorders`: the tapes and accumulators that are active, and suspending them.
- `tangents`: tangents of a call for accumulators in one another.
- `followed`: calls of tf.functions that a tape and an accumulator follow.
- `assignments`: variables that a function assigns to and that calls in it read.
- `patches`: control flow whose gradient can be cut off what it is a gradient of.
- `vectorized`: how vectorized maps and jacobians run a call for all elements.
- `lists`: gradients of what is gathered from lists.
- `loops`: errors of loops whose variables change their shapes, and gradients of those that change places.
- `pools`: second derivatives of max pooling.

What is around programs: sessions, files, datasets, converters:

- `sessions`: what sessions are made of; preparing a graph without running it.
- `importing`: graphs of sessions that are imported into functions.
- `hints`: what a SavedModel says where it is loaded without this package.
- `saving`: which gradients of users a SavedModel has.
- `saved_attributes`: recursive functions that are attributes and signatures of a SavedModel.
- `loading`: functions of a SavedModel that call each other.
- `freezing`: constants in place of variables, where functions call each other.
- `conversion`: the converters to TensorFlow Lite and XLA, and the quantization of SavedModels.
- `datasets`: functions of datasets that call recursive functions.

And for several of these:

- `replacements`: functions of TensorFlow that are replaced, for a while or for good, with a list of these.
"""
# SPDX-License-Identifier: Apache-2.0
