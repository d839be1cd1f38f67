"""Finds out what functions return before their bodies are traced: from the paths through them that do not recurse."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tensorflow_recursion._tf import inferring, tapes
from tensorflow_recursion._tf.inferring import Reads, Unknown
from tensorflow_recursion.argument_kinds.sharing import deciding, give_up_one
from tensorflow_recursion.argument_kinds.specializations import Specialization


class Inference:
    """What the functions of one outermost graph return.

    A body is built in a graph that is thrown away. A call of a function whose results are not known gives up the branch
    in which it stands, and the conditional around it returns what its other branches return. For example, of
    `tf.cond(n < 2, lambda: n, lambda: fib(n - 1) + fib(n - 2))` the second branch is given up, and the body returns
    what `n` is. A branch that was given up may return other shapes, which the trace of the body finds out. Where no
    branch is left, the function that was called is looked at first.
    """

    def __init__(
        self,
        graph: tf.Graph,
        building: Callable[[Specialization], contextlib.AbstractContextManager[None]],
        reads: Callable[[str], Reads | None],
    ) -> None:
        """Looks at functions of `graph`; each body is built inside a `building(specialization)`.

        `reads` says what a function reads by its name; it returns None as long as that is not traced.
        """
        self._graph = graph
        self._building = building
        self._reads_when_traced = reads
        # What the bodies that were built have read.
        self._reads: weakref.WeakKeyDictionary[Specialization, Reads] = weakref.WeakKeyDictionary()
        # The functions whose bodies are being built. All but the first are made in the body of the one before.
        self._open: list[Specialization] = []
        # For functions that need the results of others in a loop: which variable of the loop does (`Unknown.loop`).
        self._loops: dict[Specialization, str] = {}

    def result_of(self, function: Specialization, tensors: Sequence[tf.Tensor]) -> Any:
        """What a call of a function of known results returns in a graph that is built for inference, in a nest."""
        reads = self._reads_when_traced(function.user_name) or self._reads.get(function, Reads())
        tapes.note_reads(reads.variables)
        return inferring.any_of(function.returns, [*tensors, *reads.captures], is_partial=not reads.are_all)

    def require_and_check(self, function: Specialization) -> None:
        """Find out what `function` returns, and whether other traces have to be made in place of it.

        If so, it `is_given_up`, and the caller looks for the function that serves the call anew. If there is an error,
        nothing is decided of which shapes share a trace.
        """
        with deciding():
            self.require(function)
            self.check(function)

    def require(self, function: Specialization) -> None:
        """Find out what `function` returns unless it is known.

        If it turns out that other traces have to be made in place of it, it `is_given_up`, and the caller looks for the
        function that serves the call anew.

        Raises:
          Unknown: if it is not known, and a body is being built to find out about another function.
          TypeError: if every path through the body needs the results of the function itself.
        """
        if function.is_known:
            return
        if self._open and (function in self._open or not function.source.is_local):
            raise Unknown(function)
        waiting = [function]  # each for the next one
        hopeless: list[Specialization] = []  # as long as nothing more is known than now
        circle: list[Specialization] = []  # in which the first of these is: each needs the results of the next one
        while waiting:
            needed = self._look_at_last(waiting)
            if needed is None:
                waiting = [known for known in waiting if not known.is_given_up]
                hopeless.clear()
            elif not needed:
                waiting.pop()
                hopeless.clear()
            elif self._open:
                raise Unknown(*needed)
            elif following := [known for known in needed if known not in waiting and known not in hopeless]:
                waiting.append(following[0])
            elif waiting[-1].source.has_signature:  # it is looked at for what it reads alone
                waiting.pop().is_known = True
            else:
                if not hopeless:
                    circle = waiting[waiting.index(needed[0]) :]
                hopeless.append(waiting.pop())
        if hopeless:
            error = self._error(circle)
            if not give_up_one(hopeless, error):
                raise error
            if not function.is_given_up:
                self.require(function)

    def check(self, function: Specialization) -> None:
        """Look at the whole of a function whose results are known, and of those that it calls, if they are in doubt.

        Before, branches with calls were given up. Now they are built, too. That shows which shapes they read, and
        whether they can be built for shapes that are kept. If traces have to be made otherwise, `function`
        `is_given_up`.
        """
        unchecked = [] if self._open else [function]
        while unchecked and not function.is_given_up:
            last = unchecked[-1]
            if last.is_checked or last.is_given_up:
                unchecked.pop()
                continue
            try:
                unknown = [callee for callee in last.callees if not (callee.is_known or callee.is_given_up)]
                for callee in unknown or self._look_at_whole(last):
                    self.require(callee)
            except Exception as error:
                if not give_up_one(last.in_doubt, error):
                    raise
            else:
                if not give_up_one(last.in_doubt, None) and last.is_checked:
                    unchecked += last.callees

    def _look_at_last(self, waiting: Sequence[Specialization]) -> list[Specialization] | None:
        """Look at the last of these functions, which wait for the results of the next one.

        Returns the functions whose results it needs; None if it, or one that waits for it, is given up now.
        """
        try:
            needed = self._look_at(waiting[-1])
        except Exception as error:
            if give_up_one(waiting, error):
                return None
            raise
        return None if give_up_one(waiting, None) else needed

    def _look_at(self, function: Specialization) -> list[Specialization]:
        """Build the body of a function, to learn what it returns.

        Returns the functions whose results it needs for that. One of them has to be known first; if there is none, what
        `function` returns is known now.
        """
        self._loops.pop(function, None)
        try:
            with self._looking_at(function) as reads:
                function.learn(function.call(inferring.placeholders(function.specs)))
            self._reads[function] = reads
        except Unknown as unknown:
            needed = _specializations(unknown)
            if not needed:  # what is needed is a Defun, which is looked at elsewhere
                raise
            if unknown.loop:
                self._loops[function] = unknown.loop
            if function.source.has_signature:  # its own results are known, and not in the graph of the look
                if function.opens and needed == [function]:
                    raise _endless(function) from None
                needed = [known for known in needed if known is not function]
                function.is_known = not needed
            return needed
        return []

    def _look_at_whole(self, function: Specialization) -> list[Specialization]:
        """Build a body and give no branch up; returns functions of which more has to be known first, if any."""
        try:
            with self._looking_at(function, is_whole=True):
                function.call(inferring.placeholders(function.specs))
        except Unknown as unknown:
            if needed := _specializations(unknown):
                return needed
        function.is_checked = True
        return []

    @contextlib.contextmanager
    def _looking_at(self, function: Specialization, *, is_whole: bool = False) -> Iterator[Reads]:
        """Inside, the body is built in a graph that is thrown away."""
        self._open.append(function)
        try:
            with (
                inferring.inferring(self._graph, function.user_name, is_whole=is_whole) as reads,
                self._building(function),
            ):
                yield reads
        finally:
            self._open.pop()

    def _error(self, circle: Sequence[Specialization]) -> TypeError:
        """What to say of functions each of which needs the results of the next one, and the last of the first one."""
        in_loop = [function for function in circle if function in self._loops]
        return _unknown_in_loop(in_loop[0], self._loops[in_loop[0]]) if in_loop else _endless(*circle)


def _specializations(unknown: Unknown) -> list[Specialization]:
    return [known for known in unknown.of if isinstance(known, Specialization)]


def _unknown_in_loop(function: Specialization, variable: str) -> TypeError:
    name = function.source.name
    if variable == "return":
        return TypeError(
            f"Function '{name}': its body has a `return` in a loop over tensors, and what it returns there needs the "
            "result of a call that is not known yet; assign it to a variable that is defined before the loop, leave "
            "the loop by `break`, and return the variable behind it"
        )
    return TypeError(
        f"Function '{name}': '{variable}' has no value before a loop over tensors, and what the loop assigns to it "
        "needs the result of a call that is not known yet; give it a value before the loop, or state what the function "
        "returns: @tfr.recursive(output_signature=tf.TensorSpec(shape, dtype))"
    )


def _endless(function: Specialization, *others: Specialization) -> TypeError:
    """What to say of a function that needs its own results, through those of `others` if there are any."""
    name = function.source.name
    text = (
        f"Function '{name}': what it returns cannot be found out, as every path through its body needs the result of "
        f"another call of '{name}'; "
    )
    reader = next((one for one in (function, *others) if one.unknown_read), None)
    if reader is not None:
        text += f"the body of '{reader.source.name}' {reader.unknown_read}. Else "
    return TypeError(
        f"{text}let a path return without one, or state what it returns: "
        "@tfr.recursive(output_signature=tf.TensorSpec(shape, dtype))"
    )
