"""Types of the native module; see cc/python/module.cc."""
# SPDX-License-Identifier: Apache-2.0

from collections.abc import Sequence

# The names of cc/base/names.h, each by what it is for.
NAMES: dict[str, str]

def transform_graph(graph_def: bytes, fetches: Sequence[str]) -> bytes: ...
def bytecode(graph_def: bytes, calls: Sequence[str], function: str) -> str: ...
