"""The functions of a graph in the function libraries of that graph and of those nested in it."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Iterable

import tensorflow as tf

from tensorflow_recursion._tf import functions, graphs
from tensorflow_recursion.errors import DefinitionError
from tensorflow_recursion.traces.traced_bodies import Body
from tensorflow_recursion.traces.tracing import Traces


class Installation:
    """Puts the traced functions of an outermost graph into its function library, and into those of nested graphs."""

    def __init__(self, graph: tf.Graph, traces: Traces) -> None:
        self._graph = graph
        self._traces = traces
        self._installed: dict[str, Body] = {}

    def bring_up_to_date(self) -> None:
        """Put every settled function into the graph's library.

        Raises:
          ValueError: if the library has another function of that name.
        """
        for body in self._traces.bodies():
            self._install(body)

    def share(self, name: str, nested: Iterable[tf.Graph]) -> None:
        """Put `name` and all it reaches into nested function graphs, whose own libraries TensorFlow looks into."""
        reached = [self._installed[known] for known in self._traces.reachable(name) if known in self._installed]
        for body in reached:
            functions.add_to_eager_context(body.traced)
        for graph in nested:
            if graphs.is_func_graph(graph):
                for body in reached:
                    functions.add_function(graph, body.traced)

    def _install(self, body: Body) -> None:
        """Put a function into the graph's library, in place of an earlier trace of it.

        One that computes the same stays: a session that has run holds it, and takes no other of its name.
        """
        definition = body.definition
        previous = self._installed.get(definition.user_name)
        if previous is not None and previous.computes_the_same_as(body):
            return
        if previous is not None:
            functions.remove_function(self._graph, previous.traced)
        elif functions.has_function(self._graph, self._traces.graph_name(definition.user_name)):
            raise DefinitionError(
                f"Function '{definition.user_name}' is defined twice in one graph: its library has one already "
                "(from an imported graph?); give this one another func_name"
            )
        functions.add_function(self._graph, body.traced)
        self._installed[definition.user_name] = body
