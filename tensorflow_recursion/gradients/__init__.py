"""Reverse-mode differentiation of function calls.

A differentiated function f: x.. -> y.. becomes two functions, made from its body followed by `tf.gradients`. That body
is a copy of the trace which calls run, or one more trace (`bodies`).

- `f__forward`: x.. -> y.., record. What the gradient needs of an invocation is packed into its record by
  `Recursion>Retain`; the records of calls in the body are among it.
- `f__backward`: record, dy.., captures.. -> dx.. begins with `Recursion>Recall`. Captured tensors are passed again,
  not retained, because they are the same at every depth.

A call node runs `f__forward` in place of `f` wherever something reads its record, which is decided when a session
knows what it fetches. Both are plain functions of the graph: whatever runs calls runs gradients.

Gradients of gradients: a call of `f__backward` is, as a function, E(x.., dy..) -> dx.. . To differentiate it, E is
defined as a function of its own, which calls f's forward and then its backward function, and called anew. Those two
are differentiated like any function: the gradient for a record is a record of gradients.

- `tracer`: what this room needs of the functions of a graph.
- `modes`: what is being built: a body, or the gradient of one.
- `knowledge`: what bodies tell of each other while they are traced, and which of them are to be traced again.
- `pairs`: the forward and the backward function of one function.
- `pair_functions`: these two as functions that can be differentiated in turn.
- `tf_functions`: tf.functions that bodies call, which are differentiated along with these.
- `snapshots`: the variables of a call as they were when it was made, for derivatives that run the function again.
- `repeats`: warns of functions that may do something else then.
- `effects`: side effects of gradients.
- `bodies`: a body followed by its gradient.
- `cut`: such a trace becomes a pair.
- `groups`: which functions are differentiated together, for which static shapes.
- `higher_orders`: the gradient of a function as a function.
- `user_functions`: gradients by the function that the user gave to Defun.
- `records`: what calls keep for their gradients, and the gradients for records.
- `requested_pairs`: which pairs gradients have asked for, by the names of their functions.
- `call_kinds`: the kinds of call that `tf.gradients` may meet, in a table.
- `dead_inputs`: lets the inputs of a gradient call be dead where the gradient that was asked for is.
- `gradient_calls`: makes the calls of backward functions.
- `forward_calls`: gradients of calls of functions.
- `backward_calls`: gradients of calls of backward functions, for higher orders.
- `requests`: answers `tf.gradients` when it meets a call, by one of the two.
"""
# SPDX-License-Identifier: Apache-2.0
