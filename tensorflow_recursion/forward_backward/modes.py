"""Keeps track of what is being built: a body, or the gradient of one."""
# SPDX-License-Identifier: Apache-2.0

import contextlib
from collections.abc import Iterator


class Modes:
    """What is being built, one inside another; outside of all of them no function is being built."""

    def __init__(self) -> None:
        self._in_gradient = [False]

    @property
    def in_gradient(self) -> bool:
        """Whether the gradient of a body is built, not a body or what stands outside of all of them."""
        return self._in_gradient[-1]

    def body(self) -> contextlib.AbstractContextManager[None]:
        """Inside, a body is built: gradient calls in it carry what differentiating them again takes."""
        return self._mode(False)

    def gradient(self) -> contextlib.AbstractContextManager[None]:
        """Inside, the gradient of a body is built: its gradient calls carry nothing by which to differentiate them."""
        return self._mode(True)

    @contextlib.contextmanager
    def _mode(self, in_gradient: bool) -> Iterator[None]:
        self._in_gradient.append(in_gradient)
        try:
            yield
        finally:
            self._in_gradient.pop()
