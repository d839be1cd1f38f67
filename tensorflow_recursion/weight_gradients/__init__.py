"""Gradients of weights, for which each frame hands up its share as it is, so that they are summed once.

A weight is a captured tensor or variable, or an argument that calls hand on, so that many frames use it. Take

    f(n, x, w) = x if n < 1 else f(n - 1, x @ w, w)

with a matrix w. The gradient for w is a sum over all frames, of the products of x, transposed, and dy, the gradient for
`x @ w`. Were each frame to compute its product and to add it, every call would make matrices as large as w. So a frame
hands up (x, dy) as they are, together with what it got from the call inside. These two are a *term*, and many that are
not summed yet are *contributions*. Whoever asked for the gradient stacks all x and all dy, and multiplies once.

Those who differentiate functions, `forward_backward` and `gradients`, ask this room for three things:

1. When a body is traced: what it does with each of its weights, and whether each use makes terms
   (`uses_in_body.UsesInBody`). Then the gradient functions of the operators that use the weight are replaced by ones
   that hand out terms (`usages.Usage.collect`).
2. For all bodies of a group: which weights are one, because calls hand them to each other, and of which of them the
   gradient is collected (`weights.Weights`). One other use in one body is enough to make it dense.
3. Where the gradient was asked for: the sum of the terms (`contributions.total`).

Begin with `contributions`, and with the example in `uses_in_body`.

What contributions are:

- `contributions`: terms of the gradient of a weight, which are added up outside of all frames.
- `gradients_of_sums`: gradients for such sums, as gradients for terms that are not summed yet.
- `weight_views`: what a body makes of a weight alone, transposed for example.
- `sizes`: sizes of axes, of which some may be open.

Which terms an operator makes:

- `terms`: which terms an operator makes of the gradient for a weight, and how.
- `products`: those of products, of a batch of products, of an einsum.
- `rows`: those of what gathers or slices.
- `contributing`: which operators contribute to gradients of weights.

What bodies do with their weights:

- `usages`: what a body does with one weight.
- `fixed_values`: what is the same in all calls that agree in certain arguments.
- `uses_in_body`: finds out how a body uses weights; begins with an example.
- `weights`: of which weights of a group the gradients can be collected.
- `obstacles`: warns of weights whose gradients each call computes, where a user can change that.
"""
# SPDX-License-Identifier: Apache-2.0
