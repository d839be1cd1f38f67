"""The names that the package shares with the operator library: operators, attributes, suffixes of functions.

They are written once, in cc/base/names.h; here they are read from the native module.
"""
# SPDX-License-Identifier: Apache-2.0

import itertools
import re

from tensorflow_recursion import _loader

try:
    from tensorflow_recursion._native import NAMES
except ImportError as error:
    raise ImportError(
        "the native module of tensorflow_recursion is missing, or older than its Python files; build both with: "
        f"{_loader.BUILD_COMMAND} (make build, in a checkout)"
    ) from error

OPTIMIZER = NAMES["OPTIMIZER"]

INVOKE = NAMES["INVOKE_OP"]
RETAIN = NAMES["RETAIN_OP"]
RECALL = NAMES["RECALL_OP"]
CONTRIBUTE = NAMES["CONTRIBUTE_OP"]
CONTRIBUTE_NONE = NAMES["CONTRIBUTE_NONE_OP"]
COLLECT = NAMES["COLLECT_OP"]
TOTAL = NAMES["TOTAL_OP"]

CALLEE = NAMES["CALLEE_ATTR"]
ARGUMENT_TYPES = NAMES["ARGUMENT_TYPES_ATTR"]
IGNORED_TYPES = NAMES["IGNORED_TYPES_ATTR"]
RESULT_TYPES = NAMES["RESULT_TYPES_ATTR"]
FORWARD = NAMES["FORWARD_ATTR"]
RECORD_OF = NAMES["RECORD_OF_ATTR"]
OUTPUT_SHAPES = NAMES["OUTPUT_SHAPES_ATTR"]
FUNCTION = NAMES["FUNCTION_ATTR"]
TYPE = NAMES["TYPE_ATTR"]
INPUTS_ON_HOST = NAMES["INPUTS_ON_HOST_ATTR"]
OUTPUTS_ON_HOST = NAMES["OUTPUTS_ON_HOST_ATTR"]

MAX_DEPTH = NAMES["MAX_DEPTH_OPTION"]
WORKERS = NAMES["WORKERS_OPTION"]
COMPILE = NAMES["COMPILE_OPTION"]
ON_FALLBACK = NAMES["ON_FALLBACK_OPTION"]

STATIC = NAMES["STATIC_ATTR"]
OPTION_PREFIX = NAMES["OPTION_ATTR_PREFIX"]

COPY_SUFFIX = NAMES["COPY_SUFFIX"]
MANGLED_SUFFIX = NAMES["MANGLED_SUFFIX"]
TRACE_SUFFIX = NAMES["TRACE_SUFFIX"]
FORWARD_SUFFIX = NAMES["FORWARD_SUFFIX"]
BACKWARD_SUFFIX = NAMES["BACKWARD_SUFFIX"]
GRADIENT_SUFFIX = NAMES["GRADIENT_SUFFIX"]

_TRACE = re.compile(rf"{TRACE_SUFFIX}\d+")
_OF_TRACE = re.compile(rf".*{TRACE_SUFFIX}\d+")
_numbers = itertools.count(1)


def of_trace(name: str) -> str:
    """A name for one trace of the function `name`, which no other function of the process has."""
    return f"{name}{TRACE_SUFFIX}{next(_numbers)}"


def is_of_trace(name: str) -> bool:
    """Whether `name` is one that `of_trace` made."""
    return _OF_TRACE.fullmatch(name) is not None


def shown(name: str) -> str:
    """What messages call a function: its name without the numbers of traces."""
    return _TRACE.sub("", name)


def trace_in(name: str) -> str | None:
    """The name that `of_trace` made, of a function or of one whose forward or backward function is called `name`."""
    ends = [found.end() for found in _TRACE.finditer(name)]
    return name[: ends[-1]] if ends else None  # the last one: what is traced may have a number of its own


def renumbered(name: str, numbers: dict[str, str]) -> str:
    """The name in this process of a function that another one saved as `name`.

    Args:
      name: the name in the file.
      numbers: the texts of traces in that file, and what they are here; learns those of `name`.
    """
    if _TRACE.search(name) is None:
        return of_trace(name)
    return _TRACE.sub(lambda trace: numbers.setdefault(trace.group(), of_trace("")), name)
