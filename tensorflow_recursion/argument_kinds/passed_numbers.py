"""Python numbers that change from call to call of a recursion: whether a trace has their values, or takes tensors.

Take a continued fraction, called as `fraction(a, 0)`:

    @tfr.recursive
    def fraction(a, i):
        if i == tf.size(a) - 1:
            return a[i]
        return a[i] + 1.0 / fraction(a, i + 1)

Each Python number makes a trace, as with `tf.function`. That is right where Python ends the recursion, as by
`if depth == 0:`. Here TensorFlow does, so that each trace leads to one for the next number: there would be no end of
them, or an error, as none can be made for an index that `a` does not have. Then the call is made again with `i` as a
tensor in all calls of `fraction`, as if the user had written `tf.constant(0)`. If that fails, too, nothing has changed.
"""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

import tensorflow as tf

from tensorflow_recursion import notices
from tensorflow_recursion._tf import function_types
from tensorflow_recursion._tf.function_types import AsTensors, Dtypes
from tensorflow_recursion.errors import CallError, EndlessError, with_message

# Integers up to this are taken for indices and depths. The product of two of them is an int32.
_MAX_SMALL = 2**15

# What is told of numbers that are passed as tensors.
_AS_TENSORS = (
    "Each would need a trace of its own; so that one serves all, integers are passed as tensors of {integer}, other "
    "numbers of {other}. Pass a tensor in the first call, as tf.constant(0), to say that, or to choose the dtype"
)


class PassedNumbers:
    """Which parameters of a function take Python numbers as tensors.

    Attributes:
      as_tensors: for each of these parameters, by name, the dtypes of integers and of other numbers.
    """

    def __init__(self, function: str) -> None:
        self.as_tensors: AsTensors = {}
        self._function = function

    def note(self, changing: Mapping[str, Sequence[int | float]]) -> None:
        """Note the numbers, by parameter, in which a call differs from the one that led to it."""
        if changing and (outermost := _outermost_calls.now) is not None:
            outermost.changing.setdefault(self, set()).update(changing)
            outermost.numbers.extend(itertools.chain(*changing.values()))

    def take(self, names: Collection[str], dtypes: Dtypes) -> Callable[[], None]:
        """Take the numbers of these parameters as tensors, too; returns what undoes that."""
        before = self.as_tensors
        self.as_tensors = {**before, **dict.fromkeys(names, dtypes)}

        def undo() -> None:
            self.as_tensors = before

        return undo

    def text(self, names: Collection[str]) -> str:
        """What to tell the user of parameters whose numbers change."""
        these = " and ".join(f"'{name}'" for name in sorted(names))
        return f"Function '{self._function}': its calls pass another Python number as {these} each time"


class _OutermostCall:
    """An outermost call while it is made.

    Attributes:
      changing: the parameters of functions in whose numbers calls of a recursion differ.
      numbers: these numbers.
    """

    def __init__(self) -> None:
        self.changing: dict[PassedNumbers, set[str]] = {}
        self.numbers: list[int | float] = []

    def take(self, dtypes: Dtypes) -> Callable[[], None]:
        """Take all numbers that change as tensors; returns what undoes that."""
        changes = [numbers.take(names, dtypes) for numbers, names in self.changing.items()]

        def undo() -> None:
            for undo_one in changes:
                undo_one()

        return undo

    def dtypes(self) -> Iterator[Dtypes]:
        """The dtypes to try, for those numbers that there are.

        They are what TensorFlow makes of numbers, then what has more digits. It is the other way round for integers
        that have grown, as int32 may not hold those that come next.
        """
        integers = [number for number in self.numbers if isinstance(number, int)]
        others = [number for number in self.numbers if not isinstance(number, int)]
        are_small = all(abs(number) <= _MAX_SMALL for number in integers)
        for_integers = (tf.int32, tf.int64) if are_small else (tf.int64, tf.int32)
        yield from itertools.product(_that_hold(integers, for_integers), _that_hold(others, (tf.float32, tf.float64)))

    def text(self) -> str:
        """What to tell the user."""
        return "; ".join(numbers.text(names) for numbers, names in self.changing.items())


class _OutermostCalls(threading.local):
    """The outermost call that this thread makes, if any."""

    now: _OutermostCall | None = None


_outermost_calls = _OutermostCalls()

# What is known of functions that bodies make: a function is another one in each build, of the same code.
_of_code: weakref.WeakKeyDictionary[CodeType, PassedNumbers] = weakref.WeakKeyDictionary()


def of(name: str, func: Callable[..., Any], *, is_local: bool) -> PassedNumbers:
    """What is known of a function that is made of `func`; `is_local` says whether a body makes it."""
    code = getattr(func, "__code__", None) if is_local else None
    return PassedNumbers(name) if code is None else _of_code.setdefault(code, PassedNumbers(name))


def _that_hold(numbers: Collection[int | float], dtypes: Sequence[tf.DType]) -> Sequence[tf.DType]:
    """Those dtypes that hold the numbers; just the first one if there are no numbers."""
    kept = [dtype for dtype in dtypes if all(function_types.holds(dtype, number) for number in numbers)]
    return kept if numbers else kept[:1]


def make_call(call: Callable[[], Any]) -> Any:
    """What an outermost call returns; of a call that is made in another one, that one decides.

    If tracing fails where numbers have changed from call to call of a recursion, these are passed as tensors.
    """
    if _outermost_calls.now is not None:
        return call()
    outermost = _OutermostCall()
    try:
        return _made(outermost, call)
    except tf.errors.OpError:  # of a run, not of a trace
        raise
    except Exception as error:
        is_final = isinstance(error, CallError) and not isinstance(error, EndlessError)
        if is_final or not outermost.changing:
            raise
        return _made_with_tensors(outermost, error, call)


def _made(outermost: _OutermostCall, call: Callable[[], Any]) -> Any:
    _outermost_calls.now = outermost
    try:
        return call()
    finally:
        _outermost_calls.now = None


def _made_with_tensors(outermost: _OutermostCall, error: Exception, call: Callable[[], Any]) -> Any:
    """What an outermost call returns that has failed, if the numbers that changed in it are passed as tensors."""
    errors = []
    for dtypes in outermost.dtypes():
        undo = outermost.take(dtypes)
        try:
            result = make_call(call)
        except tf.errors.OpError:
            _warn(outermost, dtypes)
            raise
        except Exception as further:
            errors.append(further)
            undo()
        except BaseException:  # the user has interrupted it
            undo()
            raise
        else:
            _warn(outermost, dtypes)
            return result
    if not errors or str(errors[0]) == str(error):  # numbers are not why
        raise error from error.__cause__
    note = f"{outermost.text()}. Passed as a tensor, it fails, too: {errors[0]}"
    raise with_message(error, f"{error}\n\n{note}") from error.__cause__


def _warn(outermost: _OutermostCall, dtypes: Dtypes) -> None:
    integer, other = (dtype.name for dtype in dtypes)
    notices.show("number", f"{outermost.text()}. {_AS_TENSORS.format(integer=integer, other=other)}")
