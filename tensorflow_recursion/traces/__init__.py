"""Traces of functions: bodies that are built once as function graphs, and what that tells of the functions.

Take the function

    f(n) = 1 if n < 1 else s * f(n - 1)

where s is a tensor of the graph in which f is called. Its body is built as a function graph of its own. So s is
captured: whoever calls f has to pass s along with n. The call in the body came too early to know that, and passed n
alone. It *relied* on f to capture nothing, which turned out otherwise, so the body is traced again, with s as an
argument from the start. Now nothing changes any more: the traces are *settled*, and f goes into the graph's library.
Shapes of results, side effects and what else a call relies on are found out in the same way.

Whose functions these are, this room does not ask. Each is a `definitions.Definition`, which builds its body when it is
told to: one that a user made by `Defun` or `tfr.recursive` (`argument_kinds`), one that came with a SavedModel, or a
forward or backward function. `calls.Library`, which owns all that is known of one graph, asks the room for four things:

1. Which definition a name stands for in this graph (`definitions.Registry`).
2. To trace a function and all that it reaches, until that is settled (`tracing.Traces`).
3. To put the traced functions into the libraries of the graph and of those nested in it (`installation.Installation`).
4. To pass more to the calls that were made before all was known (`unresolved.UnresolvedCalls`).

Begin with `definitions` and `traced_bodies`, then read `tracing`.

What is traced:

- `signatures`: what a function takes and returns, and the checks of calls and definitions against it.
- `definitions`: what tracing, calling and differentiating need to know of a function; names of functions in a graph.
- `results`: what a Python body returned, as tensors, checked against what was declared or stated of them.
- `contradictions`: finds the path through a body that returns something else than is stated.

How it is traced:

- `traced_bodies`: a body while it is traced and afterwards: captures, callees, and what it relies on.
- `attempts`: traces one body; begins with an example of why that may take several attempts.
- `tracing`: the traces of a graph, and when a body has to be traced again.

What is found out:

- `shapes`: static shapes of what functions take and return, as far as they are known.
- `looks`: builds bodies without some of their calls, to see what the other paths return.
- `result_shapes`: what shapes functions return where nobody states it.
- `ends`: recursions that never end because Python was to end them by a size that is not known.
- `handed_on`: what is known of the lists and handles that bodies and their calls return.

What bodies make, which has to be the same each time they are built:

- `made_functions`: names by which functions that a body makes are found again.
- `made_variables`: the variables that bodies make.

What comes of traces in the graph:

- `installation`: the functions in the function libraries of the graph and of those nested in it.
- `unresolved`: calls that were made before everything they reach was defined.
- `nested_calls`: calls in `tf.function`s that bodies call.
"""
# SPDX-License-Identifier: Apache-2.0
