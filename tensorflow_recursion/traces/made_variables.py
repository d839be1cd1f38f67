"""The variables that bodies make, which are the same ones in all traces of a body, and where they make functions."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import collections
import contextlib
import functools
import inspect
import itertools
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from types import FrameType, FunctionType
from typing import Any, TypeAlias

import tensorflow as tf

from tensorflow_recursion._tf import graphs, variable_scopes
from tensorflow_recursion.explanations import is_ours
from tensorflow_recursion.traces.made_functions import AllBuilds, MadeFunction

tf1 = tf.compat.v1

# The places in the user's files that Python is in, the innermost first.
Places: TypeAlias = tuple[Hashable, ...]


class VariableLog:
    """The variables a body made, so that tracing it again finds the same ones instead of making more.

    A body may also keep a variable, and make it only where it has none yet, as a Keras layer does at its first call.
    Such a body makes other variables in each trace, so their order tells nothing. Therefore a logged variable stands in
    for one that is made at the same place in the code again, in the innermost of the bodies that are being built.
    The functions that the body makes are found again by their places, too, because a look leaves out paths of the body.

    Attributes:
      graph: the outermost graph, in which the variables are.
      name: the lasting name of the function.
    """

    def __init__(self, graph: tf.Graph, name: str, *, is_kept: bool) -> None:
        """Starts empty, for the body of the function `name` that is traced in `graph`.

        `is_kept` says that the body keeps each `tf.Variable` that it makes, as that of a tf.function has to; these are
        not logged then. All traces start with the variable scope that is current now, in the body in progress if there
        is one.
        """
        self.graph = graph
        self.name = name
        self._is_kept = is_kept
        outer = _replaying.log
        is_in_body = outer is not None and outer.graph is graph
        self._scope = variable_scopes.Surroundings(graph, _replaying.body if is_in_body else None)
        self._by_name: dict[str, tuple[Any, Places]] = {}  # with where it was made
        self._created: dict[Places, list[Any]] = {}
        self._functions: dict[Hashable, AllBuilds] = {}  # those that the body makes, by name, places and count

    @contextlib.contextmanager
    def replay(self) -> Iterator[None]:
        """Give logged variables to the code inside, which asks for them again, and log those that it makes besides."""
        made: collections.Counter[Places] = collections.Counter()
        initial_values: list[Any] = []  # of the first component of the variable that is being made
        around, body = _frames(), tf1.get_default_graph()
        variable_scope = self._variable_scope(body, around)

        def create_variable(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
            if self._is_kept:
                initial_values.clear()
                kwargs["initial_value"] = _with(kwargs.get("initial_value"), _checked)
            if self._is_kept or _replaying.log is not self:
                return next_creator(**kwargs)
            places = _users_places(around)
            created, number = self._created.setdefault(places, []), made[places]
            made[places] += 1
            if number == len(created):
                created.append(next_creator(**kwargs))
            return created[number]

        def create_component(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
            """Create a variable of one device.

            A distribution strategy makes one for each device, and lets the others begin with what the first one holds.
            TensorFlow cannot compute that outside of the body, so they begin with the value that the first begins with.
            """

            def noted(initial_value: Any) -> Any:
                initial_values.append(initial_value)
                return initial_value

            if initial_values:
                kwargs["initial_value"] = initial_values[0]
            elif self._is_kept:
                kwargs["initial_value"] = _with(kwargs.get("initial_value"), noted)
            return next_creator(**kwargs)

        outer = vars(_replaying).copy()
        _replaying.log, _replaying.body, _replaying.around = self, body, around
        _replaying.counts = collections.Counter()
        try:
            with (
                variable_scope,
                tf.variable_creator_scope(create_variable),
                graphs.inner_variable_creator_scope(create_component),
            ):
                yield
        finally:
            vars(_replaying).update(outer)
            around.clear()  # frames refer to this one

    def _variable_scope(self, body: tf.Graph, around: list[FrameType]) -> contextlib.AbstractContextManager[None]:
        """The variable scope of one trace, whose function graph is `body`, and which starts in the frames `around`."""
        scope, logged = self._scope, dict(self._by_name)
        found: set[str] = set()

        def get_variable(name: str, *args: Any, **kwargs: Any) -> Any:
            places, is_new = _users_places(around), kwargs.get("reuse") is False
            is_again = name in found
            found.add(name)
            if name not in logged or (is_new and is_again):  # the latter is TensorFlow's error
                variable = scope.get(body, name, *args, **kwargs)
                return self._by_name.setdefault(name, (variable, places))[0]
            variable, first_places = logged[name]
            if is_new and places != first_places:
                raise ValueError(f"variable '{name}' was made by other lines in an earlier trace")
            return variable

        return scope.around(body, get_variable)

    def made(self, name: str, places: Places, count: int) -> MadeFunction:
        """A function that the body makes: the `count`-th of this name that is made at these places in one build."""
        known = self._functions.setdefault((name, places, count), AllBuilds(len(self._functions) + 1))
        return MadeFunction(f"{self.name}/{name}{known.number}", known)


class _Replaying(threading.local):
    """The log of the innermost body that is being built in this thread, its graph, and what functions it has made.

    Attributes:
      around: the frames of Python that the body is built in.
      counts: how many functions of a name were made at a place.
    """

    def __init__(self) -> None:
        self.log: VariableLog | None = None
        self.body: tf.Graph | None = None
        self.around: list[FrameType] = []
        self.counts: collections.Counter[Hashable] = collections.Counter()


_replaying = _Replaying()


def made_function(name: str) -> MadeFunction | None:
    """A function that is made now, as far as it is the same whenever its body is built; None outside of bodies."""
    if _replaying.log is None or _replaying.body not in graphs.enclosing_graphs(tf1.get_default_graph()):
        return None
    places = _users_places(_replaying.around)
    _replaying.counts[name, places] += 1
    return _replaying.log.made(name, places, _replaying.counts[name, places])


def _with(initial_value: Any, change: Callable[[Any], Any]) -> Any:
    """What `change` makes of `initial_value`; a function of that if it is a function that returns the value."""
    if not isinstance(initial_value, FunctionType):  # TensorFlow knows other callables by their class
        return change(initial_value)

    @functools.wraps(initial_value)
    def compute(*args: Any, **kwargs: Any) -> Any:
        return _with(initial_value(*args, **kwargs), change)

    return compute


def _checked(initial_value: Any) -> Any:
    """`initial_value`; raises ValueError where only a call could compute it.

    The body makes the variable in its first trace alone, which is not the one that runs. So TensorFlow has to compute
    the value outside of it.
    """
    if isinstance(initial_value, tf.Variable):
        with tf.init_scope():
            return tf.convert_to_tensor(initial_value)
    if tf.is_symbolic_tensor(initial_value) and not graphs.can_be_lifted(initial_value):
        raise ValueError(
            f"a tf.Variable that the body makes has an initial value, {initial_value!r}, which is computed from the "
            "arguments of the call or from variables; give it one of constants or random numbers, and let the body "
            "assign to it, or make it where the function is called"
        )
    return initial_value


def _frames() -> list[FrameType]:
    """The frames on Python's stack, the innermost first."""
    found, frame = [], inspect.currentframe()
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def _users_places(around: list[FrameType]) -> Places:
    """Where Python is in the user's files, from here out to the frames `around`.

    TensorFlow's files are left out: they differ from trace to trace where a branch is built in another way.
    """
    known = set(map(id, around))
    inside = itertools.takewhile(lambda frame: id(frame) not in known, _frames())
    return tuple(_place(frame) for frame in inside if not is_ours(frame.f_code.co_filename))


def _place(frame: FrameType) -> Hashable:
    """Which call a frame is in. A line may have several, as in `tf.cond(b, lambda: f(x), lambda: g(x))`.

    File, line and columns say that, not the instruction alone: the code of a `finally:` has several copies, one
    for each way to leave the `try`. What AutoGraph makes of a function is made once, so its files are the same in all
    builds.
    """
    code, number = frame.f_code, frame.f_lasti // 2
    if sys.version_info < (3, 11):
        return code.co_filename, frame.f_lineno, number
    return code.co_filename, next(itertools.islice(code.co_positions(), number, None))
