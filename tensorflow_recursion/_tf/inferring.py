"""Graphs that are built to find out what a function returns, and thrown away.

In such a graph it may turn up that something is not known yet: a call of the function whose results are looked for.
Then `Unknown` is raised, and what is being built is given up, up to the innermost conditional. That one goes by its
other branches: what they return is what the conditional returns. Loops return what they begin with.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.python.autograph.operators import control_flow, variables
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.ops import cond_v2, while_v2
from tensorflow.python.util import nest

from tensorflow_recursion._tf import nests, tapes
from tensorflow_recursion._tf.replacements import Replacements

tf1 = tf.compat.v1

_COND = cond_v2.cond_v2
_CASE = cond_v2.indexed_case
_LOOP = while_v2.while_loop
_FIRST_ITERATION = control_flow._try_handling_undefineds

# A function that builds a branch of a conditional.
_Branch: TypeAlias = Callable[[], Any]

_ATTRIBUTE = "_recursion_is_for_inference"


class Unknown(BaseException):  # not an Exception: what is built may catch those
    """Raised where the results of a function are needed that are not known yet.

    Attributes:
      of: what tells that function from others; of several ones where each branch of a conditional needs another.
      loop: set if they are needed in a loop that AutoGraph converts, to tell of what kind a variable is that has no
        value before the loop: the name of that variable, or "return" for what a `return` in the loop returns.
    """

    def __init__(self, *of: object, loop: str = "") -> None:
        super().__init__()
        self.of = of
        self.loop = loop


def is_inferring() -> bool:
    """Whether the default graph is built for inference. (The graph of a function that is made in it is not.)"""
    return is_for_inference(tf1.get_default_graph())


def is_for_inference(graph: tf.Graph) -> bool:
    """Whether `graph` is built to find out what a function returns."""
    return hasattr(graph, _ATTRIBUTE)


@contextlib.contextmanager
def inferring(outer: tf.Graph, name: str) -> Iterator[None]:
    """Inside, the default graph is one for inference, of a function in `outer`."""
    with outer.as_default(), outer.control_dependencies(None):
        graph = FuncGraph(name)
        setattr(graph, _ATTRIBUTE, True)
        with graph.as_default(), _replacements.active():
            yield


def placeholders(specs: Sequence[tf.TensorSpec]) -> list[tf.Tensor]:
    """Tensors of which just the specs are known."""
    return [tf1.placeholder(tf.as_dtype(spec.dtype.as_datatype_enum), spec.shape) for spec in specs]


def any_of(spec: Any, sources: Sequence[tf.Tensor]) -> Any:
    """A nest of placeholders for `spec`, which tapes take for computed from `sources`."""
    tensors = placeholders(nests.tensor_specs(spec))
    tapes.record_unknown(tensors, sources)
    return nests.pack(spec, tensors)


def _one_of(branches: Sequence[_Branch], build: Callable[[Sequence[_Branch]], Any], chosen_by: Any) -> Any:
    """What a conditional returns: what its branches do, as far as that is known.

    Args:
      branches: the functions that build the branches.
      build: builds a conditional of branches by TensorFlow's own function.
      chosen_by: says which branch is taken; TensorFlow returns it in place of an operation, as `tf.no_op()` makes one.
    """
    known: list[Any] = []
    known_branches: list[_Branch] = []
    needed: list[object] = []
    loop = ""
    for branch in branches:
        try:
            result = nest.map_structure(lambda one: chosen_by if isinstance(one, tf.Operation) else one, branch())
            known.append(nests.to_tensors(result))
            known_branches.append(branch)
        except Unknown as unknown:
            needed += unknown.of
            loop = loop or unknown.loop
    if not known:
        raise Unknown(*needed, loop=loop)
    if len(known) == 1:
        return known[0]
    try:
        spec = nests.spec_of(known[0])
        for value in known[1:]:
            spec = nests.join(spec, nests.spec_of(value))
    except ValueError:
        return build(known_branches)  # raises TensorFlow's own error
    return any_of(spec, nests.tensors_of(known))


def _cond(pred: Any, true_fn: Any, false_fn: Any, name: str = "cond") -> Any:
    def build(branches: Sequence[_Branch]) -> Any:
        return _COND(pred, *branches, name)

    branches = [true_fn, false_fn]
    return _one_of(branches, build, pred) if is_inferring() else build(branches)


def _case(index: Any, branches: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
    def build(branches: Sequence[_Branch]) -> Any:
        return _CASE(index, branches, *args, **kwargs)

    return _one_of(branches, build, index) if is_inferring() else build(branches)


def _loop(cond: Any, body: Any, loop_vars: Any, shape_invariants: Any = None, **options: Any) -> Any:
    if not is_inferring():
        return _LOOP(cond, body, loop_vars, shape_invariants, **options)
    start = nests.to_tensors(loop_vars)
    spec = nests.spec_of(start)
    if shape_invariants is not None:
        spec = nest.map_structure_up_to(spec, _with_shape, spec, shape_invariants)
    result = any_of(spec, nests.tensors_of(start))
    flat = nest.flatten(result, expand_composites=True)
    return flat[0] if len(flat) == 1 and not options.get("return_same_structure", True) else result


def _with_shape(spec: Any, invariant: Any) -> Any:
    if invariant is None:  # as AutoGraph gives it for variables of which nobody has stated one
        return spec
    if isinstance(invariant, tf.TypeSpec):
        return invariant
    return tf.TensorSpec(invariant, spec.dtype) if isinstance(spec, tf.TensorSpec) else spec


def _first_iteration(
    body: Any, get_state: Any, set_state: Any, init_vars: Any, nulls: Any, shape_invariants: Any, names: Any
) -> Any:
    """Build an iteration of a loop, as AutoGraph does to learn of what kind variables are that have no value before.

    AutoGraph builds it in a graph of its own, which is for inference if the one around it is.
    """
    is_for_inference_too = is_inferring()

    def marked_body() -> None:
        if is_for_inference_too:
            setattr(tf1.get_default_graph(), _ATTRIBUTE, True)
        body()

    try:
        return _FIRST_ITERATION(marked_body, get_state, set_state, init_vars, nulls, shape_invariants, names)
    except Unknown as unknown:
        without_value = [(name, value) for name, value, is_null in zip(names, init_vars, nulls, strict=True) if is_null]
        returns = any(isinstance(value, variables.UndefinedReturnValue) for _, value in without_value)
        loop = "return" if returns else without_value[0][0]
        raise Unknown(*unknown.of, loop=unknown.loop or loop) from None


class _ForInference(Replacements):
    """Conditionals go by the branches that are known, loops by what they begin with."""

    def _install(self) -> None:
        self.replace(cond_v2, "cond_v2", _cond)
        self.replace(cond_v2, "indexed_case", _case)
        self.replace(while_v2, "while_loop", _loop)
        self.replace(control_flow, "_try_handling_undefineds", _first_iteration)


_replacements = _ForInference()
