"""Variable scopes in bodies, whose variables are made in the graph around.

A body starts with the variable scope of the call that it is traced for: with its name, its initializer, and so on. It
has a store of variables of its own, which has them made by that of the graph around, with all that the code of the body
says of them. So their regularizers are computed there, once for each variable.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.python.framework import function as stock
from tensorflow.python.ops import resource_variable_ops, variable_scope

tf1 = tf.compat.v1

# Makes, or finds, a variable: called with its name and what else `get_variable` of a store takes.
Getter: TypeAlias = Callable[..., Any]

_OTHER_GRAPH = "must be from the same graph"  # in TensorFlow's message where tensors of two graphs meet


class Surroundings:
    """The variable scope that is current around a body, as it is now."""

    def __init__(self, graph: tf.Graph, body: tf.Graph | None = None) -> None:
        """Looks at `body`, whose code calls the function, and which is built in `graph`, or at `graph` itself.

        Variables are made in `graph`.
        """
        self.graph = graph
        scopes = _scopes(graph if body is None else body)
        self._scope = copy.copy(scopes.current_scope)
        self._counts = dict(scopes.variable_scopes_count)

    @contextlib.contextmanager
    def around(self, body: tf.Graph, get: Getter) -> Iterator[None]:
        """Let the code inside, which builds `body`, start with this scope, and get its variables from `get`.

        A scope that it opens by a `default_name` has the same name each time, and keeps others from having it later.
        """
        scopes = variable_scope._VariableScopeStore()
        scopes.current_scope, scopes.variable_scopes_count = copy.copy(self._scope), dict(self._counts)
        try:
            with (
                _replaced(body, variable_scope._VARSCOPESTORE_KEY, scopes),
                _replaced(body, variable_scope._VARSTORE_KEY, _Store(get)),
            ):
                yield
        finally:
            self._note_names(scopes.variable_scopes_count)

    def _note_names(self, counts: dict[str, int]) -> None:
        known = _scopes(self.graph).variable_scopes_count
        for name, count in counts.items():
            known[name] = max(count, known.get(name, 0))

    def get(self, body: tf.Graph, name: str, *args: Any, **kwargs: Any) -> Any:
        """Make, or find, a variable for `body` in the graph around it; what the body takes for it.

        Raises:
          ValueError: if it is to be made of tensors of another graph, such as the body.
        """
        parts = tf.nest.flatten(kwargs.get("initializer"))
        if any(tf.is_symbolic_tensor(part) and part.graph is not self.graph for part in parts):
            raise ValueError(f"the initializer of variable '{name}' is a tensor of the body")
        with self.graph.as_default(), self.graph.name_scope(None):
            try:
                variable = variable_scope._get_default_variable_store().get_variable(name, *args, **kwargs)
            except ValueError as error:
                if _OTHER_GRAPH not in str(error):
                    raise
                raise ValueError(
                    f"the initializer or regularizer of variable '{name}' uses a tensor of the body"
                ) from error
            return _for_body(variable, body)


def _scopes(graph: tf.Graph) -> Any:
    """The store of variable scopes of `graph`."""
    with graph.as_default():
        return variable_scope.get_variable_scope_store()


def _for_body(variable: Any, body: tf.Graph) -> Any:
    """What a stock Defun, which may capture variables by their values, takes for a variable."""
    if isinstance(body, stock._FuncGraph):
        body.extra_vars.append(variable)
        is_resource = isinstance(variable, resource_variable_ops.BaseResourceVariable)
        if is_resource and body._capture_resource_var_by_value:
            return variable.value()
    return variable


class _Store(variable_scope._VariableStore):  # type: ignore[misc]  # mypy does not know its type
    """What `tf1.get_variable` asks in a body."""

    def __init__(self, get: Getter) -> None:
        super().__init__()
        self._get = get

    def get_variable(self, name: str, *args: Any, custom_getter: Getter | None = None, **kwargs: Any) -> Any:
        """The variable `name`; the custom getters of the user's scopes run in the body."""

        def get(getter: Getter, *args: Any, **kwargs: Any) -> Any:
            return self._get(*args, **kwargs)

        getter = get if custom_getter is None else variable_scope._maybe_wrap_custom_getter(custom_getter, get)
        return super().get_variable(name, *args, custom_getter=getter, **kwargs)

    def _get_partitioned_variable(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._get(name, *args, **kwargs)


@contextlib.contextmanager
def _replaced(graph: tf.Graph, key: Any, value: Any) -> Iterator[None]:
    """Inside, `value` is the one element of a collection of `graph`, also in graphs that are made in it."""
    collections, values = graph._collections, [value]
    before, collections[key] = collections.get(key), values
    try:
        yield
    finally:
        values[:] = before or []  # graphs that stay share the list
        if before is None:
            del collections[key]
        else:
            collections[key] = before


@contextlib.contextmanager
def as_in_branch() -> Iterator[None]:
    """Inside, the default graph makes resource variables by default, as in a branch of control flow v2."""
    scope = variable_scope.get_variable_scope()
    before = scope.use_resource
    scope.set_use_resource(True)
    try:
        yield
    finally:
        scope.set_use_resource(before)
