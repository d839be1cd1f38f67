"""Reverse-mode differentiation of function calls: what `tf.gradients` is answered when it meets one.

The gradient of a call y = f(x) is a call of f's backward function, which takes the record of the call. The call
node itself runs `f__forward` in place of f wherever something reads its record, which is decided when a session knows
what it fetches. `forward_backward` makes these two functions, from a body followed by `tf.gradients`, so that calls in
bodies are met here as well. What the backward function returns for a weight may be terms that are not summed yet: the
outermost gradient call sums them, by `weight_gradients`.

Gradients of gradients: a call of `f__backward` is, as a function, E(x.., dy..) -> dx.. . To differentiate it, E is
defined as a function of its own, which calls f's forward and then its backward function, and called anew. Those two
are differentiated like any function: the gradient for a record is a record of gradients.

Gradients of calls; begin with `requests`:

- `requests`: answers `tf.gradients` when it meets a call, by `forward_calls` or `backward_calls`.
- `call_kinds`: the kinds of call that `tf.gradients` may meet, in a table.
- `requested_pairs`: which pairs gradients have asked for, by the names of their functions.
- `forward_calls`: gradients of calls of functions.
- `gradient_calls`: makes the calls of backward functions.
- `dead_inputs`: lets the inputs of a gradient call be dead where the gradient that was asked for is.
- `records`: what calls keep for their gradients, and the gradients for records.
- `user_functions`: gradients by the function that the user gave to Defun.

Gradients of gradients:

- `backward_calls`: gradients of calls of backward functions, for higher orders.
- `higher_orders`: the gradient of a function as a function.
- `snapshots`: the variables of a call as they were when it was made, for derivatives that run the function again.
- `repeats`: warns of functions that may do something else then.
"""
# SPDX-License-Identifier: Apache-2.0
