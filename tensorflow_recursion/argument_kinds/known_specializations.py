"""Which specialization of a function serves a call."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from tensorflow_recursion._tf import function_types
from tensorflow_recursion._tf.function_types import CallType
from tensorflow_recursion.argument_kinds.sharing import Sharing
from tensorflow_recursion.argument_kinds.specializations import Source, Specialization


class KnownSpecializations:
    """The specializations of one function in one outermost graph."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._sharing = Sharing(source.name, source.reads)
        self.by_type: dict[CallType, Specialization] = {}

    def find(self, call_type: CallType) -> Specialization | None:
        """The function that serves such a call, None if there is none."""
        found = self._sharing.find(call_type)
        if found is None or self.by_type[found].is_given_up:
            for given_up in [kind for kind, function in self.by_type.items() if function.is_given_up]:
                self._sharing.remove(given_up)
                del self.by_type[given_up]
            found = self._sharing.find(call_type)
        return None if found is None else self.by_type[found]

    def add(self, call_type: CallType, *, generalize: bool, is_inner: bool) -> Specialization:
        """Make a function that serves such a call, and others if it is to `generalize`.

        `is_inner` says whether the call is one of its own recursion.
        """
        if generalize:
            traced_for = self._sharing.add(call_type, is_inner=is_inner)
        else:
            traced_for = self._sharing.add_exactly(call_type)
        opens = function_types.opened(call_type, traced_for)
        self.by_type[traced_for] = Specialization(self._source, traced_for, self._sharing, opens)
        return self.by_type[traced_for]
