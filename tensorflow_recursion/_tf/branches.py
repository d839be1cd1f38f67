"""The names of the functions that TensorFlow makes of branches and loop bodies.

TensorFlow numbers them from 1 in every process. So a graph that comes from another process may bring functions along
that are called as others are here, which is an error.
"""
# SPDX-License-Identifier: Apache-2.0

import contextlib
import threading
from collections.abc import Iterator

from tensorflow.python.ops import control_flow_util_v2


class _Naming(threading.local):
    suffix = ""


_naming = _Naming()


@contextlib.contextmanager
def named(suffix: str) -> Iterator[None]:
    """Inside, in this thread, the names of functions for branches and loop bodies end with `suffix`."""
    before, _naming.suffix = _naming.suffix, suffix
    try:
        yield
    finally:
        _naming.suffix = before


def _follow() -> None:
    name_of = control_flow_util_v2.unique_fn_name
    control_flow_util_v2.unique_fn_name = lambda scope, name: name_of(scope, name) + _naming.suffix


_follow()
