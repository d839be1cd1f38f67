"""Errors of functions that AutoGraph has converted, or could not convert: where they came up in the user's lines."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import inspect
import itertools
import linecache
import re
import threading
import traceback
import types
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph.impl import api
from tensorflow.python.autograph.operators import control_flow
from tensorflow.python.autograph.pyct import errors, parser
from tensorflow.python.util import tf_stack, traceback_utils

from tensorflow_recursion._tf import changed_files
from tensorflow_recursion._tf.replacements import replace_for_good
from tensorflow_recursion.converted import is_converted

StagingError = api.StagingError  # what AutoGraph raises in the place of errors that it cannot make anew

# How AutoGraph writes a part of a function that it does not know: `(<gast.gast.NamedExpr object at 0x7f>, (m := n))`.
_SYNTAX_NODE = re.compile(r"^\(<gast\.gast\.(\w+) object at 0x[0-9a-f]+>, (.*)\)$")
# What it says of a name in a statement that it does not know, which `match` is alone.
_UNKNOWN_STATEMENT = re.compile(r"^name node, (.*), outside of any statement\?$")

# Parts of a function that Python runs as functions of their own.
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def leave_out_of_errors(folder: str) -> None:
    """From now on, let messages of AutoGraph and tracebacks leave out files in `folder`, as they do TensorFlow's own.

    Between the lines of a body and those of its branches are the calls that wrap `tf.cond`, for example.
    """
    replace_for_good(traceback_utils, "_EXCLUDED_PATHS", (*traceback_utils._EXCLUDED_PATHS, folder))
    replace_for_good(traceback_utils, "_process_traceback_frames", _shown_frames)


def _shown_frames(entries: types.TracebackType | None) -> types.TracebackType | None:
    """What TensorFlow keeps of a traceback: frames that are not its own, or else the innermost one.

    TensorFlow's own function reads which line a frame has come to by now, not the line where the error came up. In a
    branch that returns, the line that follows is one of AutoGraph's own, so AutoGraph would take the error for its own.
    """
    found = []
    while entries is not None:
        found.append(entries)
        entries = entries.tb_next
    kept = [one for one in found if traceback_utils.include_frame(one.tb_frame.f_code.co_filename)] or found[-1:]
    shown = None
    for one in reversed(kept):
        shown = types.TracebackType(shown, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return shown


def message_of(error: BaseException) -> str:
    """What an error says, without the lines of the user that AutoGraph puts before it."""
    metadata = getattr(error, "ag_error_metadata", None)
    return str(error) if metadata is None else str(metadata.cause_message).partition(": ")[2]


def converted_lines(error: BaseException | None) -> list[tuple[str, int]]:
    """Files and lines of what AutoGraph has converted that an error came through, the innermost first.

    AutoGraph keeps them with the error that it catches, and raises another one.
    """
    while error is not None:
        metadata = getattr(error, "ag_error_metadata", None)
        if metadata is not None:
            return [(frame.filename, frame.lineno) for frame in metadata.translated_stack if frame.is_converted]
        error = error.__context__
    return []


def users_line(file: str, line: int) -> tuple[str, int]:
    """The user's line that AutoGraph has converted to the given one; the given line if it is not converted.

    This knows the lines of the converted function that runs now, and of the functions that are made in it.
    """
    lines = tf_stack._source_mapper_stacks[threading.get_ident()][-1].get_effective_source_map()
    found: tuple[str, int] = lines.get((file, line), (file, line))[:2]
    return found


def unconverted(error: BaseException, skip: Callable[[str], bool], *, is_off: bool = False) -> str | None:
    """Which function an error came up in that AutoGraph has not converted, and why; None if there is no such function.

    Args:
      error: the error.
      skip: says which files are not the user's.
      is_off: whether the user of `tfr.recursive` has said that AutoGraph is to convert nothing.
    """
    frames = _users_frames(error, skip)
    unconverted = list(itertools.takewhile(lambda frame: not is_converted(frame.f_code.co_filename), frames))
    if not unconverted:
        return None
    if is_off and len(unconverted) == len(frames):  # a `tf.function` that a body calls is converted all the same
        return "AutoGraph converts neither the body nor what it calls, because of autograph=False; leave that out"
    return _failure(unconverted) or (
        f"AutoGraph has not converted '{_name_of(unconverted[0].f_code)}': it converts the body and what the body "
        "calls, but no constructors, properties and operators of classes, no layers of Keras, nothing that is under "
        "tf.autograph.experimental.do_not_convert or tf.function(autograph=False), and nothing that Python or "
        "TensorFlow calls, such as a function under tf.custom_gradient or one that tf.nest.map_structure is given"
    )


def _failure(unconverted: Sequence[types.FrameType]) -> str | None:
    """Says why AutoGraph failed to convert one of these frames' functions, the innermost first; None if it did not."""
    frame, code = unconverted[0], unconverted[0].f_code
    if (changed := changed_files.cause_of(code, frame.f_globals)) is not None:
        return f"AutoGraph could not convert '{_name_of(code)}', because {changed}"
    if not _has_source(code):
        return (
            f"AutoGraph could not convert '{_name_of(code)}', because Python finds no source of it: code "
            "that is typed in at a prompt, read from stdin or made by `exec` has none; put it into a file"
        )
    if code.co_name == "<lambda>" and not _is_found_in_its_line(code, frame.f_globals):
        return (
            "AutoGraph could not convert a lambda, because several with the same arguments are in one line; give each "
            "a line of its own, or write `def`"
        )
    for frame in unconverted:  # where a function is not converted, those are not that it makes
        if _is_called_by_python(frame.f_code):
            continue
        if (cause := _why_not_converted(frame.f_code, frame.f_globals)) is not None:
            return f"AutoGraph could not convert '{_name_of(frame.f_code)}' ({cause}); write that in another way"
    return None


def _is_called_by_python(code: types.CodeType) -> bool:
    """Whether Python calls a method where no call is written, so that AutoGraph does not try to convert it."""
    return code.co_name.startswith("__") and code.co_name != "__call__"


def is_in_converted(error: BaseException, skip: Callable[[str], bool]) -> bool:
    """Whether an error came up in a function that AutoGraph has converted; `skip` is as of `unconverted`."""
    frames = _users_frames(error, skip)
    return bool(frames) and is_converted(frames[0].f_code.co_filename)


def is_raised_in_branch(error: BaseException, skip: Callable[[str], bool]) -> bool:
    """Whether a `raise` that AutoGraph has converted made an error, in an `if` or a loop that goes by a tensor.

    That has to be a statement of the same function. `skip` is as of `unconverted`.
    """
    around = None  # the file of what has come last to a statement that goes by a tensor
    file, line = "", 0
    for frame, number in traceback.walk_tb(_before_autograph(error).__traceback__):
        code = frame.f_code
        if code.co_filename == control_flow.__file__ and code.co_name.startswith("_tf_"):
            around = file
        elif not skip(code.co_filename):
            file, line = code.co_filename, number
            around = around if around == file else None
    return around is not None and is_converted(file) and linecache.getline(file, line).lstrip().startswith("raise ")


def _users_frames(error: BaseException, skip: Callable[[str], bool]) -> list[types.FrameType]:
    """The frames of functions that an error came through, the innermost first, but for files to `skip`."""
    walked = traceback.walk_tb(_before_autograph(error).__traceback__)
    frames = [frame for frame, _ in walked if not skip(frame.f_code.co_filename)]
    return [frame for frame in frames if frame.f_code.co_name not in _COMPREHENSIONS][::-1]


def _before_autograph(error: BaseException) -> BaseException:
    """The error that a body raised: AutoGraph raises another one, which need not have the same traceback."""
    before: BaseException | None = error
    while before is not None and hasattr(before, "ag_error_metadata") and message_of(before) == message_of(error):
        error, before = before, before.__context__
    return error


def _has_source(code: types.CodeType) -> bool:
    """Whether AutoGraph has the source of some code; it does not look for that of `exec`."""
    try:
        return code.co_filename != "<string>" and bool(inspect.findsource(code))
    except OSError:
        return False


def _name_of(code: types.CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name).split("<locals>.")[-1].strip("<>")  # Python 3.10 has no A.f


def _why_not_converted(code: types.CodeType, namespace: dict[str, Any]) -> str | None:
    """What AutoGraph says where it fails to convert some code; None if it can convert that."""
    try:
        tf.autograph.to_graph(_function_of(code, namespace))
    except Exception as error:  # of any kind: AutoGraph goes on with the function as it is, whatever it met
        cause = error.__context__ if isinstance(error, api.ConversionError) and error.__context__ else error
        said = _SYNTAX_NODE.sub(r"\1: \2", " ".join(str(cause).split()))
        return _UNKNOWN_STATEMENT.sub(r"Match: match with \1", said)
    return None


def _function_of(code: types.CodeType, namespace: dict[str, Any]) -> types.FunctionType:
    """A function that only AutoGraph reads."""
    return types.FunctionType(code, namespace, closure=tuple(types.CellType() for _ in code.co_freevars))


def _is_found_in_its_line(code: types.CodeType, namespace: dict[str, Any]) -> bool:
    """Whether AutoGraph finds a lambda in its line, in which there may be others."""
    try:
        parser.parse_entity(_function_of(code, namespace), ())
    except errors.UnsupportedLanguageElementError:
        return False
    except (AttributeError, SyntaxError):  # which have other causes
        return True
    return True
