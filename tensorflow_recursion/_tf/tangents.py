"""The tangents of a call for accumulators in one another, all made by one chain of gradients.

Take two accumulators, the outer one a and the inner one b, around y = f(x). They know the tangents x_a and x_b of x,
and a may know the tangent x_ab of x_b. Wanted are the tangents of y, y_a and y_b, and for a the tangent of y_b, y_ab.

TensorFlow makes y_b as the gradient of a gradient, and then a follows both of these, each by gradients of gradients
again. So n accumulators take derivatives of the order 2 n, of which each has twice the functions of the one before. But
a product <u, y>, with some u of the shape of y, is a number. So is its derivative along a direction, which takes one
gradient, and is a sum of products in turn:

    s = <u, y>
    s_b = <gradient of s for x, x_b> + <gradient of s for u, u_b>
    s_ab = the same of s_b, for all that it is made of: x and x_b along x_a and x_ab, u and u_b along u_a and u_ab

By the rule of Leibniz s_ab is <u, y_ab> + <u_a, y_b> + <u_b, y_a> + <u_ab, y>. Its gradients for u, u_a and u_b are
what is wanted, whatever the values of these: n accumulators take n + 1 gradients. No product is ever computed, because
a gradient of <g, d> is a gradient of g, given d, and one of d, given g.
"""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.python.eager import backprop_util

from tensorflow_recursion._tf import recorders

# Some of the accumulators, from outside in, by their positions. () stands for the tensor itself, (0, 2) for the tangent
# that the outermost one knows of the tangent that the third one knows of it.
_Path: TypeAlias = tuple[int, ...]
# A tensor and its tangents.
_Tangents: TypeAlias = dict[_Path, tf.Tensor]
# The number <a, b> + .. as its pairs a, b. Each b is an input of the call or u, or a tangent of one.
_Number: TypeAlias = list[tuple[tf.Tensor, tf.Tensor]]


def with_tangents(
    accumulators: Sequence[tf.autodiff.ForwardAccumulator],
    inputs: Iterable[tf.Tensor],
    make_call: Callable[[], Any],
    results_of: Callable[[Any], Sequence[Any]],
) -> Any:
    """What `make_call` returns, of which the accumulators are told the tangents.

    Args:
      accumulators: those that record, from outside in, of which each knows a tangent (`that_follow`).
      inputs: what the call takes.
      make_call: makes the call.
      results_of: the tensors, and others, among what it returns.
    """
    # A tensor that is passed more than once has one gradient, which is that by all the places it is passed in.
    sources = {tensor.ref(): tensor for tensor in inputs if backprop_util.IsTrainable(tensor)}.values()
    known = [_known_by(accumulators, source) for source in sources]
    with recorders.suspended_from(accumulators[0]):
        followed = [_distinct(tangents) for tangents in known if len(tangents) > 1]
        result, found = _computed(len(accumulators), followed, make_call, results_of)
    for tangents in found:
        for path in sorted(tangents, key=len)[1:]:
            if path[1:] in tangents:
                accumulators[path[0]]._watch(tangents[path[1:]], tangents[path])
    return result


def that_follow(
    accumulators: Sequence[tf.autodiff.ForwardAccumulator], inputs: Iterable[tf.Tensor]
) -> list[tf.autodiff.ForwardAccumulator]:
    """Those accumulators that know a tangent of an input, or a tangent of such a tangent; given from outside in."""
    follow: set[int] = set()
    for tensor in inputs:
        follow.update(i for path in _known_by(accumulators, tensor) for i in path)
    return [accumulators[i] for i in sorted(follow)]


def _known_by(accumulators: Sequence[Any], tensor: tf.Tensor) -> _Tangents:
    known: _Tangents = {(): tensor}
    for i, accumulator in reversed(list(enumerate(accumulators))):
        found = {(i, *path): accumulator.jvp(one) for path, one in known.items()}
        known.update((path, tangent) for path, tangent in found.items() if tangent is not None)
    return known


def _distinct(tangents: _Tangents) -> _Tangents:
    """The same tensor, with tangents that are not passed to the call, nor tangents of anything else."""
    return {path: tf.identity(tensor) if path else tensor for path, tensor in tangents.items()}


def _computed(
    count: int,
    followed: Sequence[_Tangents],
    make_call: Callable[[], Any],
    results_of: Callable[[Any], Sequence[Any]],
) -> tuple[Any, list[_Tangents]]:
    """What the call returns, and its results with their tangents for `count` accumulators."""
    with _tapes(count + 1) as tapes:
        sources = list(followed)
        _watch(tapes, sources)
        result = make_call()
        results = [result for result in results_of(result) if _may_have_tangent(result)]
        given = [{path: tf.identity(tf.zeros_like(result)) for path in _paths(count)} for result in results]
        _watch(tapes, given)
        sources += given
        number: _Number = [(result, factor[()]) for result, factor in zip(results, given, strict=True)]
        for i in reversed(range(count)):
            number = _derivative(tapes[i + 1], number, sources, i)
        found = _gradients(tapes[0], number, given)
    return result, [{**tangents, (): one} for one, tangents in zip(results, found, strict=True)]


@contextlib.contextmanager
def _tapes(count: int) -> Iterator[list[tf.GradientTape]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(tf.GradientTape()) for _ in range(count)]


def _watch(tapes: Sequence[tf.GradientTape], sources: Sequence[_Tangents]) -> None:
    for tape in tapes:
        tape.watch([tensor for tangents in sources for tensor in tangents.values()])


def _paths(count: int) -> list[_Path]:
    """All paths through `count` accumulators."""
    return [path for length in range(count + 1) for path in itertools.combinations(range(count), length)]


def _derivative(tape: tf.GradientTape, number: _Number, sources: Sequence[_Tangents], i: int) -> _Number:
    """The derivative of a number along the tangents that accumulator `i` knows of all that the number is made of.

    The accumulators that began later had their turn, so the number is made of what they know, too.
    """
    along = [
        (tensor, tangents[longer])
        for tangents in sources
        for path, tensor in tangents.items()
        if (longer := (i, *path)) in tangents
    ]
    grads = _gradient(tape, number, [tensor for tensor, _ in along])
    return [
        (tf.convert_to_tensor(grad), tangent)
        for grad, (_, tangent) in zip(grads, along, strict=True)
        if grad is not None
    ]


def _gradients(tape: tf.GradientTape, number: _Number, given: Sequence[_Tangents]) -> list[_Tangents]:
    """The tangents of each result: the gradients for the factors that stand beside them in a number, by Leibniz."""
    factors = [(factor, path) for of_result in given for path, factor in of_result.items()]
    grads = _gradient(tape, number, [factor for factor, _ in factors])
    # TensorFlow, too, gives zeros for results of a call that do not depend on what is followed.
    of_factors = [tf.zeros_like(one) if grad is None else grad for grad, (one, _) in zip(grads, factors, strict=True)]
    found: list[_Tangents] = []
    for of_result in given:
        everyone = max(of_result, key=len)
        found.append({tuple(i for i in everyone if i not in path): of_factors.pop(0) for path in of_result})
    return found


def _gradient(tape: tf.GradientTape, number: _Number, sources: Sequence[tf.Tensor]) -> list[Any]:
    firsts, seconds = [first for first, _ in number], [second for _, second in number]
    return list(tape.gradient([*firsts, *seconds], sources, [*seconds, *firsts]))


def _may_have_tangent(value: Any) -> bool:
    return bool(
        tf.is_tensor(value) and value.dtype not in (tf.variant, tf.resource) and backprop_util.IsTrainable(value)
    )
