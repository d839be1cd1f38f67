"""Graphs that are built to find out what a function returns, and thrown away.

In such a graph it may turn up that something is not known yet: a call of the function whose results are looked for.
Then `Unknown` is raised, and what is being built is given up, up to the innermost conditional. That one goes by its
other branches: what they return is what the conditional returns. Loops return what they begin with.

A *whole* look is taken at what is known already, to see whether it can be built: nothing is given up, and an iteration
of each loop is built.

Gradients are taken in such graphs, too. But it is not known, or only in part, what is read by a loop, by a branch that
was given up, or by a function that is not traced yet. Their results are *partial*: they may depend on more than the
graph shows. Where TensorFlow finds no way from a partial result to a source, and would return None, the gradient is
taken for a tensor all the same. An example is a variable that a loop reads:

    with tf.GradientTape() as tape:
        for _ in tf.range(3):
            y = y * variable
    step = 0.1 * tape.gradient(y, variable)
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import dataclasses
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.python.autograph.operators import control_flow, variables
from tensorflow.python.eager import record
from tensorflow.python.framework.func_graph import FuncGraph
from tensorflow.python.ops import cond_v2, gradients_util, resource_variable_ops, while_v2
from tensorflow.python.ops.parallel_for import control_flow_ops as parallel_loops
from tensorflow.python.util import nest

from tensorflow_recursion import names
from tensorflow_recursion._tf import handles, nests, nodes, tapes, variable_scopes
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion._tf.replacements import Replacements

tf1 = tf.compat.v1

_COND = cond_v2.cond_v2
_CASE = cond_v2.indexed_case
_LOOP = while_v2.while_loop
_FOR_LOOP = parallel_loops.for_loop
_FIRST_ITERATION = control_flow._try_handling_undefineds
_GRADIENTS = gradients_util._GradientsHelper
_GRADIENT = tf.GradientTape.gradient

# A function that builds a branch of a conditional.
_Branch: TypeAlias = Callable[[], Any]

_IS_FOR_INFERENCE: Attribute[bool] = Attribute(names.IS_FOR_INFERENCE)
_IS_WHOLE: Attribute[bool] = Attribute(names.IS_WHOLE_LOOK)
_IS_PARTIAL: Attribute[bool] = Attribute(names.IS_PARTIAL)  # of operations, and of graphs in which there are such


@dataclasses.dataclass
class Reads:
    """What a body reads besides its arguments.

    Attributes:
      captures: tensors from around the body, among them handles of variables.
      variables: the trainable variables that it reads.
      are_all: whether it reads nothing else.
    """

    captures: Sequence[tf.Tensor] = ()
    variables: tapes.Variables = dataclasses.field(default_factory=list)
    are_all: bool = False


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
    return _IS_FOR_INFERENCE.is_set(graph)


def _is_whole() -> bool:
    """Whether a whole look is being taken."""
    return _IS_WHOLE.is_set(tf1.get_default_graph())


@contextlib.contextmanager
def inferring(outer: tf.Graph, name: str, *, is_whole: bool = False) -> Iterator[Reads]:
    """Inside, the default graph is one for inference, of a function in `outer`. What that reads is known at the end."""
    reads = Reads()
    with outer.as_default(), outer.control_dependencies(None):
        graph = FuncGraph(name)
        _IS_FOR_INFERENCE.set(graph, True)
        if is_whole:
            _IS_WHOLE.set(graph, True)
        with graph.as_default(), _replacements.active(), tapes.watching(reads.variables):
            yield reads
    reads.captures = graph.external_captures
    reads.are_all = not _IS_PARTIAL.is_set(graph)


def placeholders(specs: Sequence[tf.TensorSpec]) -> list[tf.Tensor]:
    """Tensors of which just the specs are known."""
    return [tf1.placeholder(_dtype(spec), spec.shape) for spec in specs]


def _dtype(spec: tf.TensorSpec) -> tf.DType:
    """The dtype of a spec without what it may know of variables and lists."""
    return tf.as_dtype(spec.dtype.as_datatype_enum)


def any_of(spec: Any, sources: Sequence[tf.Tensor], *, is_partial: bool) -> Any:
    """A nest of tensors as `spec` says, which depend on `sources`, and on more if it `is_partial`."""
    return nests.pack(spec, _computed(nests.tensor_specs(spec), sources, is_partial=is_partial))


def _computed(specs: Sequence[tf.TensorSpec], sources: Sequence[tf.Tensor], *, is_partial: bool) -> list[tf.Tensor]:
    """The results of an operation that nobody runs, whose gradients are the results of others."""
    if not specs:
        return []
    inputs = [tf1.get_default_graph().capture(source) for source in sources]
    with record.stop_recording():
        outputs: list[tf.Tensor] = tf.raw_ops.PyFunc(input=inputs, token="", Tout=list(map(_dtype, specs)))
    for tensor, spec in zip(outputs, specs, strict=True):
        tensor.set_shape(spec.shape)
    op = outputs[0].op
    nodes.set_gradient_function(op, _unknown_gradients)
    tapes.record(op, outputs, function=None)
    if is_partial:
        _mark_partial(outputs)
    return outputs


def _unknown_gradients(op: tf.Operation, *grads: Any) -> list[tf.Tensor | None]:
    inputs = list(op.inputs)
    specs = list(map(_gradient_spec, inputs))
    given = [tensor for tensor in nest.flatten(grads, expand_composites=True) if tensor is not None]
    found = _computed(
        [spec for spec in specs if spec is not None], [*inputs, *given], is_partial=_IS_PARTIAL.is_set(op)
    )
    rest = iter(found)
    return [None if spec is None else next(rest) for spec in specs]


def _gradient_spec(source: Any) -> tf.TensorSpec | None:
    """Dtype and shape of a gradient with respect to a tensor, a variable or its handle; None if it has none."""
    if resource_variable_ops.is_resource_variable(source):
        return tf.TensorSpec(source.shape, source.dtype)
    if not isinstance(source, tf.Tensor):
        return None
    if source.dtype != tf.resource:
        return tf.TensorSpec(source.shape, source.dtype) if handles.is_trainable_type(source.dtype) else None
    data = handles.handle_data(source)
    if data is None or not handles.holds_trainable(data):
        return None
    known = data.shape_and_type[0]
    return tf.TensorSpec(tf.TensorShape(known.shape), tf.as_dtype(known.dtype))


def _mark_partial(tensors: Sequence[tf.Tensor]) -> None:
    """Note that these tensors may depend on more than what they are computed from here."""
    for tensor in tensors:
        _IS_PARTIAL.set(tensor.op, True)
        _IS_PARTIAL.set(tensor.graph, True)


def _as_partial(value: Any) -> Any:
    """The same nest of tensors, as a partial result."""
    tensors = list(map(tf.identity, nests.tensors_of(value)))
    _mark_partial(tensors)
    return nests.pack(nests.spec_of(value), tensors)


def _completed(gradients: Any, targets: Any, sources: Any) -> Any:
    """The gradients of `targets` in a graph for inference, with a tensor for None where something unknown stands."""
    flat = nest.flatten(gradients)
    if all(gradient is not None for gradient in flat):
        return gradients
    tensors = [tensor for tensor in nest.flatten(targets, expand_composites=True) if tf.is_symbolic_tensor(tensor)]
    if not any(_IS_PARTIAL.is_set(op) for tensor in tensors for op in nodes.sources_of(tensor)):
        return gradients
    for i, source in enumerate(nest.flatten(sources)):
        if flat[i] is None and (spec := _gradient_spec(source)) is not None:
            flat[i] = _computed([spec], tensors, is_partial=True)[0]
    return nest.pack_sequence_as(gradients, flat)


def _gradient(tape: tf.GradientTape, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
    found = _GRADIENT(tape, target, sources, *args, **kwargs)
    return _completed(found, target, sources) if is_inferring() else found


def _gradients(ys: Any, xs: Any, *args: Any, **kwargs: Any) -> Any:
    found = _GRADIENTS(ys, xs, *args, **kwargs)
    return _completed(found, ys, xs) if is_inferring() else found


def _one_of(branches: Sequence[_Branch], build: Callable[[Sequence[_Branch]], Any], chosen_by: Any) -> Any:
    """What a conditional returns: what its branches do, as far as that is known.

    Args:
      branches: the functions that build the branches.
      build: builds a conditional of branches by TensorFlow's own function.
      chosen_by: the tensor that says which branch is taken. TensorFlow returns it where a branch returns an operation,
        such as that of `tf.no_op()`.
    """
    known: list[Any] = []
    known_branches: list[_Branch] = []
    needed: list[object] = []
    loop = ""
    for branch in branches:
        try:
            with variable_scopes.as_in_branch():
                returned = branch()
            result = nest.map_structure(lambda one: chosen_by if isinstance(one, tf.Operation) else one, returned)
            known.append(nests.to_tensors(result))
            known_branches.append(branch)
        except Unknown as unknown:
            if _is_whole():
                raise
            needed += unknown.of
            loop = loop or unknown.loop
    if not known:
        raise Unknown(*needed, loop=loop)
    if len(known) == 1:
        return _as_partial(known[0]) if needed else known[0]
    try:
        spec = nests.spec_of(known[0])
        for value in known[1:]:
            spec = nests.join(spec, nests.spec_of(value))
    except ValueError:
        return build(known_branches)  # raises TensorFlow's own error
    return any_of(spec, nests.tensors_of(known), is_partial=bool(needed))


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
    result = any_of(spec, nests.tensors_of(start), is_partial=True)
    if _is_whole():
        cond(*result)
        body(*result)
    flat = nest.flatten(result, expand_composites=True)
    return flat[0] if len(flat) == 1 and not options.get("return_same_structure", True) else result


def _for_loop(function: Any, dtypes: Any, iterations: Any, *args: Any, **options: Any) -> Any:
    """What `function` returns in each iteration, stacked, as a Jacobian without `experimental_use_pfor` needs it.

    TensorFlow learns in the first iteration which results are None, and takes one that is not built for an empty loop.
    """
    if not is_inferring() or _is_whole():
        return _FOR_LOOP(function, dtypes, iterations, *args, **options)
    wanted = nest.flatten(dtypes)
    specs: list[tf.TensorSpec | None] = [tf.TensorSpec(None, dtype) for dtype in wanted]
    sources: list[tf.Tensor] = []
    try:
        results = nest.flatten(function(*placeholders([tf.TensorSpec([], tf.int32)])))
        stacked = tf.TensorShape([tf.get_static_value(iterations)])
        for i, result in enumerate(results):
            shape = None if result is None else stacked.concatenate(result.shape)
            specs[i] = None if result is None else tf.TensorSpec(shape, wanted[i])
        sources = [tf.convert_to_tensor(result) for result in results if result is not None]
    except Unknown:
        pass  # the shapes are unknown, and None is not told from a tensor
    found = iter(any_of([spec for spec in specs if spec is not None], sources, is_partial=True))
    return nest.pack_sequence_as(dtypes, [None if spec is None else next(found) for spec in specs])


def _with_shape(spec: Any, invariant: Any) -> Any:
    if invariant is None:  # as AutoGraph gives it for variables of which nobody has stated one
        return spec
    if isinstance(invariant, tf.TypeSpec):
        return invariant
    return tf.TensorSpec(invariant, spec.dtype) if isinstance(spec, tf.TensorSpec) else spec


def _first_iteration(
    body: Any, get_state: Any, set_state: Any, init_vars: Any, nulls: Any, shape_invariants: Any, names: Any
) -> Any:
    """Build an iteration of a loop, as AutoGraph does to learn of what kind variables are that have no value before."""
    try:
        return _FIRST_ITERATION(body, get_state, set_state, init_vars, nulls, shape_invariants, names)
    except Unknown as unknown:
        without_value = [(name, value) for name, value, is_null in zip(names, init_vars, nulls, strict=True) if is_null]
        returns = any(isinstance(value, variables.UndefinedReturnValue) for _, value in without_value)
        loop = "return" if returns else without_value[0][0]
        raise Unknown(*unknown.of, loop=unknown.loop or loop) from None


class _Tried(FuncGraph):  # type: ignore[misc]  # it has no types
    """A graph in which AutoGraph tries out what a loop does, once; for inference if the one around it is.

    For example, it builds the condition of each `while` there, to tell whether that is a tensor.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        if is_inferring():
            _IS_FOR_INFERENCE.set(self, True)
        if _is_whole():
            _IS_WHOLE.set(self, True)


class _ForInference(Replacements):
    """Builds graphs of which a part is not known yet.

    A conditional returns what its known branches return, and a loop what it begins with. Where a gradient would be None
    only because something is not known, a tensor takes its place.
    """

    def _install(self) -> None:
        self.replace(cond_v2, "cond_v2", _cond)
        self.replace(cond_v2, "indexed_case", _case)
        self.replace(while_v2, "while_loop", _loop)
        self.replace(parallel_loops, "for_loop", _for_loop)
        self.put(control_flow, "func_graph", types.SimpleNamespace(FuncGraph=_Tried))
        self.replace(control_flow, "_try_handling_undefineds", _first_iteration)
        self.replace(tf.GradientTape, "gradient", _gradient)
        self.replace(gradients_util, "_GradientsHelper", _gradients)


_replacements = _ForInference()
