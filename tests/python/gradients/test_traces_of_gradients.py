"""A body is traced for its gradient as often as it takes until the functions of a group know each other, no more."""
# SPDX-License-Identifier: Apache-2.0

import collections

import pytest
import tensorflow as tf
from building import recursive
from gradient_helpers import fed
from gradient_programs import PROGRAMS, Program, define_power

from tensorflow_recursion.forward_backward.groups import Group
from tensorflow_recursion.forward_backward.knowledge import Knowledge, Told
from tensorflow_recursion.traces.shapes import shown

F64, I32 = tf.float64, tf.int32
_OF_NODES = ("T", "dtype", "shape", "Tout", "_recursion_result_types", "_recursion_result_shapes")


def content(pair):
    """What the two functions of a pair consist of, in any order."""
    nodes = collections.Counter()
    for function in pair.functions:
        for node in function.cached_definition.node_def:
            attributes = [str(node.attr[name]) for name in _OF_NODES if name in node.attr]
            nodes[(function.name, node.op, len(node.input), *attributes)] += 1
    return nodes


def derivatives(function, arguments, order):
    """Builds derivatives by what is floating, to this order."""
    is_differentiable = lambda tensor: tensor.dtype.is_floating or tensor.dtype.is_complex
    inputs = fed(arguments)
    xs = list(filter(is_differentiable, inputs))
    ys = tf.nest.flatten(function(*inputs))
    for _ in range(order):
        ys = list(filter(is_differentiable, ys))
        ys = [dx for dx in tf.gradients(ys, xs, grad_ys=list(map(tf.ones_like, ys))) if dx is not None]


def branches_of_unequal_shapes():
    f, define_f = recursive("F", [F64, I32], [F64])
    define_f(lambda x, n: tf.cond(n < 1, lambda: tf.sin(x[:2]), lambda: tf.concat([f(x, n - 1)[:2] * x[:2]] * 2, 0)))
    return f, None


def no_recursion_but_branches_of_unequal_shapes():
    f, define_f = recursive("F", [F64, I32], [F64])
    define_f(lambda x, n: tf.cond(n < 1, lambda: tf.sin(x[:2]), lambda: tf.cos(x)))
    return f, None


OF_UNEQUAL_SHAPES = {
    build.__name__: Program(build, [([0.3, 0.5, 0.7], 2)])
    for build in (branches_of_unequal_shapes, no_recursion_but_branches_of_unequal_shapes)
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("name", "order"),
    [
        *((name, 1) for name in [*PROGRAMS, *OF_UNEQUAL_SHAPES]),
        *((name, 2) for name in ["tree_recursion", "recurrent_net", *OF_UNEQUAL_SHAPES]),
        ("mutual_recursion", 3),
    ],
)
def test_functions_are_those_of_one_more_trace(name, order, monkeypatch):
    build, inputs = {**PROGRAMS, **OF_UNEQUAL_SHAPES}[name]
    settle, checked = Group.settle, []

    def checking(group):
        settle(group)
        for pair in group.pairs():
            before, shapes = content(pair), shown(pair.result_shapes)
            group._make(pair)
            assert content(pair) == before, pair.forward
            assert shown(pair.result_shapes) == shapes, pair.forward
            checked.append(pair)
        assert not any(pair.is_stale() for pair in group.pairs())
        return settle(group)

    monkeypatch.setattr(Group, "settle", checking)
    function, _ = build()
    derivatives(function, inputs[0], order)
    assert checked


@pytest.mark.parametrize("states_shapes", [True, False])
def test_body_is_traced_once_for_a_gradient_that_nothing_contradicts(states_shapes):
    runs = []
    f, define_f = recursive("F", [F64, I32], [F64], shapes=[[]] if states_shapes else None)
    define_f(lambda x, n: runs.append(1) or tf.cond(n < 1, lambda: tf.sin(x), lambda: f(x, n - 1) * x))
    derivatives(f, [0.7, 3], 0)
    before = len(runs)
    derivatives(f, [0.7, 3], 1)
    again = 0 if states_shapes else 1  # the second trace knows that F returns a number
    assert len(runs) == before + 1 + again


@pytest.mark.thorough
def test_number_of_traces_of_third_derivatives(monkeypatch):
    traces = collections.Counter()
    make = Group._make

    def counted(group, pair):
        traces[pair] += 1
        make(group, pair)

    monkeypatch.setattr(Group, "_make", counted)
    derivatives(define_power(), [0.7, 3], 3)
    assert max(traces.values()) == 2
    assert len(traces) > 10


def test_body_is_traced_again_where_more_is_known_of_a_callee():
    runs = []
    g, define_g = recursive("G", [F64, I32], [F64])
    f, define_f = recursive("F", [F64, I32], [F64])
    define_f(lambda x, n: runs.append(1) or tf.cond(n < 1, lambda: tf.sin(x), lambda: g(x, n - 1) * x))
    define_g(lambda x, n: tf.cond(n < 1, lambda: tf.cos(x), lambda: f(x, n - 1) * x))
    derivatives(f, [0.7, 3], 0)
    before = len(runs)
    derivatives(f, [0.7, 3], 1)
    assert len(runs) == before + 2  # the second one knows that G returns a number


def test_trace_is_stale_if_an_answer_has_changed():
    answers = [1, 1, 2]
    told = Told()
    told.add(lambda: "same", "same")
    told.add(lambda: answers.pop(0), 1)
    assert [told.is_stale() for _ in range(3)] == [False, False, True]


def test_knowledge_notes_what_is_asked_during_a_trace():
    knowledge = Knowledge(None, all_dense=False)
    assert knowledge.record_positions("F") == ()
    with knowledge.tracing() as outer:
        assert not knowledge.has_zero_records()
        with knowledge.tracing() as inner:
            assert knowledge.note_record_gradient("F", [3, 1]) == (1, 3)
        knowledge.note_zero_records()
    assert outer.is_stale()
    assert not inner.is_stale()
    assert knowledge.note_record_gradient("F", [2]) == (1, 2, 3)
    assert inner.is_stale()
