"""Which functions of the graph `tfr.recursive` makes of one Python function: one for each kind of arguments.

Take the function

    @tfr.recursive
    def power(x, n):
        return tf.ones_like(x) if n < 1 else x * power(x, n - 1)

A call `power(x, tf.constant(3))` passes two tensors, and the call inside passes two of the same dtypes and shapes. So
both are of one kind, and one *specialization* serves them, `power__trace1` for example. In `power(x, 3)` the number is
a Python value, on which Python's `if` depends: 3, 2, 1 and 0 are four kinds, and power has four specializations.

Where the kinds change from call to call, there are questions that a `tf.function` does not have, as one kind may lead
to the next without end: in `power(x[1:], n - 1)` the sizes of x, in `power(x, n - 1)` the numbers n. Does one trace
serve all sizes? Should numbers become tensors? What Python reads of its arguments, and what fails, gives the answers.

A specialization is a definition for `traces`, which stands before this room. `recursive_functions`, where a call
arrives, asks for three things:

1. The specialization that serves a call, or a new one (`known_specializations.KnownSpecializations`).
2. What it returns, if nobody states that. This is found out before the body is traced, from the paths through it that
   do not recurse (`inference.Inference`). `calls.Library` has the inference of a graph.
3. To make an outermost call again, if it has failed and Python numbers can be tensors (`passed_numbers.make_call`), or
   to refuse a recursion that does not end (`endless.check_end`).

Begin with `specializations`, then read the example in `sharing`.

One kind:

- `specializations`: a Python function for arguments of one kind: what is traced, and what is learnt from that.
- `output_signatures`: what a function returned, checked against its `output_signature` or what else is known of it.
- `inference`: finds out what functions return before their bodies are traced.

Many kinds:

- `known_specializations`: which specialization of a function serves a call.
- `sharing`: whether one trace serves calls that pass tensors of several shapes.
- `passed_numbers`: Python numbers that change from call to call: whether a trace has their values, or takes tensors.
- `endless`: refuses recursions that seem to go on without end, as the kind changes each time.
"""
# SPDX-License-Identifier: Apache-2.0
