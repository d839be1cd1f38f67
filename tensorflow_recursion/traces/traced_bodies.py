"""A body while it is traced and afterwards: what it captures, whom it calls, and what it took for known of those."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Hashable, Iterator
from typing import Any

import tensorflow as tf

from tensorflow_recursion import names
from tensorflow_recursion._tf import assignments, copies, functions, graphs, handles, recorders, tapes
from tensorflow_recursion._tf.attributes import Attribute
from tensorflow_recursion.traces import shapes as static_shapes
from tensorflow_recursion.traces.definitions import Definition, Tensors
from tensorflow_recursion.traces.made_variables import VariableLog

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True, eq=False)
class Reliance:
    """What a call in a body took for known of the function that it calls.

    Attributes:
      captures: what the call passed, because the function captures it.
      orders_effects: whether the body orders side effects.
      promise: what else the function promised.
      shapes: the static shapes of its results; None if nothing was known of them.
      num_variables: how many variables it was known to read, if a watcher of variables is active in the body.
    """

    captures: Tensors
    orders_effects: bool
    promise: Hashable
    shapes: static_shapes.Shapes | None
    num_variables: int | None


@dataclasses.dataclass(eq=False)
class Body:
    """One trace of a function, which may be in progress.

    Before it is built, `Traces` says what is known. While it is built, the calls and functions in it are noted, and
    what it reads. When an attempt has built it, the attempt says what was found: `guess`, `has_effects`, `assigned`,
    `output_types`, `output_handles`. In the end `Traces` sets `traced` and `captures`. If more is known later, the
    function gets another body.

    Attributes:
      definition: what was traced.
      known: captures that were known before the trace; they come first among its own.
      missing: captures that were not known, of which a gradient in the body has need.
      variables: the variables of this function in this graph, shared by all its traces.
      captures: the tensors that calls append to the declared arguments; None while the trace is in progress.
      callees: name of each function the body calls -> what the first such call took for known.
      guess: the static shapes of the outputs, if its calls return what its other paths do.
      may_differ: whether a branch returns an output of another shape than is stated.
      has_effects: whether the body, or a function it calls, has side effects; as far as it is known.
      is_ordered: whether the side effects are in their order.
      assigned: the kinds of variables that the body itself may assign to.
      output_types: dtypes of the traced outputs.
      output_handles: what is known of the lists among the traced outputs.
      made_here: names of functions that were defined inside the body.
      variables_read: the trainable variables that the body reads itself.
      read_before: those that the trace before has read.
      watching: how many tapes and other watchers of variables were active when the body began.
      traced: the function graph; None while the trace is in progress.
      like: an earlier trace that this one was made after only because more is known of shapes; None if there is none.
    """

    definition: Definition
    known: Tensors
    variables: VariableLog
    missing: Tensors = ()
    captures: Tensors | None = None
    callees: dict[str, Reliance] = dataclasses.field(default_factory=dict)
    guess: static_shapes.Shapes = ()
    may_differ: bool = False
    has_effects: bool = False
    is_ordered: bool = False
    assigned: assignments.Kinds = frozenset()
    output_types: list[tf.DType] = dataclasses.field(default_factory=list)
    output_handles: list[handles.HandleData | None] = dataclasses.field(default_factory=list)
    made_here: list[str] = dataclasses.field(default_factory=list)
    variables_read: tapes.Variables = dataclasses.field(default_factory=list)
    read_before: tapes.Variables = dataclasses.field(default_factory=list)
    watching: int = 0
    traced: functions.TracedFunction | None = None
    like: Body | None = None

    def computes_the_same_as(self, other: Body) -> bool:
        """Whether two traces of a function differ at most in the shapes that are known of their tensors."""
        return (self.like or self) is (other.like or other)

    @property
    def graph(self) -> Any:
        """The function graph that this was traced in; None while the trace is in progress, or if there was none."""
        source = None if self.traced is None else copies.source_of(self.traced)
        return None if source is None else source.graph

    @contextlib.contextmanager
    def building(self, seed: int | None) -> Iterator[None]:
        """Prepare the function graph that is the default graph now; the body is built inside."""
        graph = tf1.get_default_graph()
        _BODY.set(graph, self)
        graph.seed = seed
        for tensor in self.known:
            handles.set_handle_data([graph.capture(tensor)], [handles.handle_data(tensor)])
        with self.variables.replay(), tapes.watching(self.variables_read):
            self.watching = recorders.num_watching()
            yield


_BODY: Attribute[Body] = Attribute(names.TRACED_BODY)


def body_around(graph: tf.Graph) -> Body | None:
    """The body that `graph` is part of; None outside of all bodies."""
    for enclosing in graphs.enclosing_graphs(graph):
        if (body := body_of(enclosing)) is not None:
            return body
    return None


def body_of(graph: tf.Graph) -> Body | None:
    """The body that the whole of `graph` is; None if it is none."""
    return _BODY.of(graph)
