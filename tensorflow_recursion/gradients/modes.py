"""What is being built: a body, or the gradient of one; for callers, or to be differentiated again."""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import dataclasses
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True)
class Mode:
    """What is being built.

    Attributes:
      differentiable: whether gradient calls carry what differentiating them again takes.
      in_gradient: whether it is the gradient of a body, not a body or what stands outside of all of them.
    """

    differentiable: bool
    in_gradient: bool


class Modes:
    """The modes one inside another; outside of all of them no function is being built."""

    def __init__(self) -> None:
        self._modes = [Mode(differentiable=True, in_gradient=False)]

    @property
    def current(self) -> Mode:
        """The innermost mode."""
        return self._modes[-1]

    @contextlib.contextmanager
    def body(self) -> Iterator[None]:
        """Inside, a body is built."""
        with self._mode(Mode(differentiable=True, in_gradient=False)):
            yield

    @contextlib.contextmanager
    def gradient(self, *, differentiable: bool) -> Iterator[None]:
        """Inside, the gradient of a body is built, which can be differentiated or is for callers alone."""
        with self._mode(Mode(differentiable, in_gradient=True)):
            yield

    @contextlib.contextmanager
    def _mode(self, mode: Mode) -> Iterator[None]:
        self._modes.append(mode)
        try:
            yield
        finally:
            self._modes.pop()
