"""Functions that a body makes: names by which they and their specializations are found again in each build of the body.

For example, a body may define `helper` with `@tfr.recursive` and call it. Each build of the body makes another Python
function and other specializations, but the variables that they make have to be the same ones. The names that are
given here last from build to build: `outer__trace1/helper2` for the function, `outer__trace1/helper2/1` for the first
of its specializations.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Hashable, Sequence

import tensorflow as tf


class AllBuilds:
    """What is known of one function that a body makes, from all builds of that body.

    Attributes:
      number: the number of the function among those of the body.
      found: for each of its specializations, what all builds have in common, and the shapes of tensors in each build.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.found: list[tuple[Hashable, list[Sequence[tf.TensorShape]]]] = []


class MadeFunction:
    """A function that a body makes in one build.

    Attributes:
      lasting_name: what it is called in all builds.
    """

    def __init__(self, lasting_name: str, known: AllBuilds) -> None:
        self.lasting_name = lasting_name
        self._known = known
        self._taken: set[int] = set()  # the specializations that this build has asked for

    def name_for(self, in_common: Hashable, shapes: Sequence[tf.TensorShape]) -> str:
        """What the next specialization is called in all builds.

        Their order does not tell which one it is, because a look leaves out paths of the body, and the calls on them.
        Nor do shapes alone: a build may know less of these than the one before, as results are found to be of other
        shapes.

        Args:
          in_common: what is the same in all builds.
          shapes: those of the tensors in this build.
        """
        number = self._number_of(in_common, shapes)
        self._taken.add(number)
        return f"{self.lasting_name}/{number}"

    def _number_of(self, in_common: Hashable, shapes: Sequence[tf.TensorShape]) -> int:
        found = self._known.found
        left = [i for i, (other, _) in enumerate(found) if other == in_common and i not in self._taken]
        for is_known in (_are_same, _are_more_general):
            for i in left:
                if any(is_known(shapes, known) for known in found[i][1]):
                    found[i][1].append(shapes)
                    return i
        found.append((in_common, [shapes]))
        return len(found) - 1


def _are_same(shapes: Sequence[tf.TensorShape], known: Sequence[tf.TensorShape]) -> bool:
    return [str(shape) for shape in shapes] == [str(shape) for shape in known]


def _are_more_general(shapes: Sequence[tf.TensorShape], known: Sequence[tf.TensorShape]) -> bool:
    return all(one.is_subtype_of(shape) for one, shape in zip(known, shapes, strict=True))
