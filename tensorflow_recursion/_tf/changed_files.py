"""Files of Python that have been edited since Python loaded them: AutoGraph is kept from converting what they say now.

AutoGraph looks for the source of a function in the lines of its file where the function was when Python loaded it. If
the file was edited since, other lines may be there: part of another function, or the same one as it is now. TensorFlow
converts that, so that a call may compute what the function has never said.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import os
import time
import types
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from typing import Any

from tensorflow.python.autograph.pyct import errors, parser

from tensorflow_recursion._tf.replacements import replace_for_good

# Files that are older are as Python loaded them: functions are made recursive after this package is imported.
_BEGIN = time.time()

# How many versions of files are kept.
_MAX_VERSIONS = 64


def refuse() -> None:
    """Let AutoGraph take a function for one without source whose lines of the file are other ones now.

    Then the function runs as it was loaded, and unless it has control flow that goes by tensors, all is well.
    """
    parse = parser.parse_entity

    def parse_unchanged(entity: Any, future_features: Sequence[str]) -> Any:
        code = getattr(entity, "__code__", None)
        if code is not None and (cause := cause_of(code, getattr(entity, "__globals__", {}))) is not None:
            raise errors.InaccessibleSourceCodeError(cause)
        return parse(entity, future_features)

    replace_for_good(parser, "parse_entity", parse_unchanged)


def cause_of(code: types.CodeType, namespace: Mapping[str, Any]) -> str | None:
    """What to say if a file says something else now in the lines that some code was loaded from; None if it does not.

    Lines that are as they were, and have not moved, say the same; so do other comments.

    Args:
      code: that of a function.
      namespace: the names of its module.
    """
    file = code.co_filename
    if not _is_loaded_by_python(file, namespace):
        return None
    try:
        modified = os.stat(file)
    except OSError:  # a module in an archive, or of which only the byte code is left
        return None
    if modified.st_mtime < _BEGIN or (code.co_firstlineno, _meaning(code)) in _loaded(file, modified.st_mtime_ns):
        return None
    return (
        f"{file} was changed after Python had loaded it, and has something else now in the lines of "
        f"'{code.co_name}', from line {code.co_firstlineno} on; start Python anew, or load the file anew "
        "(importlib.reload) and take the function from the module again"
    )


def _is_loaded_by_python(file: str, namespace: Mapping[str, Any]) -> bool:
    """Whether a module is what Python itself makes of the whole of a file, so that the two can be compared.

    It is not where the code comes from a cell of a notebook, a block in a page of a documentation, or `exec`. Nor is
    it where an import hook loads modules otherwise, as pytest does with the tests in which it rewrites `assert`.
    """
    loader = getattr(namespace.get("__spec__"), "loader", None)  # None of a script
    return namespace.get("__file__") == file and (loader is None or type(loader) is SourceFileLoader)


@functools.lru_cache(_MAX_VERSIONS)
def _loaded(file: str, _: int) -> frozenset[tuple[int, types.CodeType]]:
    """What Python would load from a file as it is now: the first line and the meaning of the code of each function.

    The second argument tells versions of the file apart. A file that Python cannot load has nothing.
    """
    try:
        with open(file, "rb") as source, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python has warned when it loaded the file, and a filter can make errors
            module = compile(source.read(), file, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    return frozenset((code.co_firstlineno, _meaning(code)) for code in _inner(module))


def _inner(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _inner(constant)


def _meaning(code: types.CodeType) -> types.CodeType:
    """Some code without what says on which lines it stands."""
    constants = (_meaning(one) if isinstance(one, types.CodeType) else one for one in code.co_consts)
    return code.replace(co_firstlineno=1, co_linetable=b"", co_consts=tuple(constants), co_filename="")
