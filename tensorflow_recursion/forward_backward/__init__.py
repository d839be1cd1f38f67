"""What a function becomes to be differentiated: a forward and a backward function, which are a *pair*.

Take f(x) = sin(g(x)). A body of f, which is a copy of the trace that calls run, or one more trace, is followed by
`tf.gradients` in the same graph. Then that graph is cut in two:

- `f__forward`: x.. -> y.., record. What the gradient needs of an invocation is packed into its record by
  `Recursion>Retain`: here g(x), of which the gradient takes the cosine, and the record of the call of g.
- `f__backward`: record, dy.., captures.. -> dx.. begins with `Recursion>Recall`, and gives the record of that call to
  `g__backward`. Captured tensors are passed again, not retained, because they are the same at every depth.

Both are plain functions of the graph: whatever runs calls runs gradients.

The functions that f reaches are differentiated along with it, as a *group*. What one body takes for granted of another
one, for example which arguments of g have a gradient, may turn out to be otherwise. Then it is traced again.

While a body is followed by its gradient, `tf.gradients` meets the calls in it. What it is answered is the matter of the
next room, `gradients`, which asks this one for pairs.

What comes out:

- `pairs`: the forward and the backward function of one function.
- `pair_functions`: these two as functions that can be differentiated in turn.

How it is made:

- `bodies`: a body followed by its gradient.
- `cut`: such a trace becomes a pair.
- `groups`: which functions are differentiated together, for which static shapes.
- `knowledge`: what bodies tell of each other while they are traced, and which of them are to be traced again.

What this takes:

- `tracer`: what those who differentiate need of the functions of a graph.
- `modes`: what is being built: a body, or the gradient of one.
- `tf_functions`: tf.functions that bodies call, which are differentiated along with these.
- `effects`: side effects of gradients.
"""
# SPDX-License-Identifier: Apache-2.0
