"""The recursive programs that are measured, each beside its oracle in plain Python."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import concurrent.futures
import dataclasses
import math
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import tensorflow_recursion as tfr

_RECURSION_LIMIT = 1_000_000
_STACK_BYTES = 512 << 20  # under Python 3.10, where every Python frame takes some 500 bytes of C stack


@dataclasses.dataclass(frozen=True)
class Workload:
    """A recursive program: how it is defined in a graph, and what it must return.

    `define` puts the program's functions into the default graph and returns the one to call with `arity` scalars
    of `dtype`; `oracle` is the same program in plain Python. Dynamic execution is left out where it takes too long.
    """

    name: str
    arity: int
    dtype: tf.DType
    define: Callable[[], Callable[..., Any]]
    oracle: Callable[..., float]
    default_size: tuple[int, ...]
    runs_dynamically: bool = True
    calls: Callable[..., int] | None = None  # how many calls a run makes

    def label(self, size: tuple[int, ...]) -> str:
        return f"{self.name}({','.join(str(value) for value in size)})"

    def expected(self, size: tuple[int, ...]) -> float:
        """Returns the oracle's value, an int or a float."""
        return _number(with_deep_stack(lambda: self.oracle(*size)))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, (float, np.floating)) else int(value)


def with_deep_stack(function: Callable[[], Any]) -> Any:
    """Returns `function()`, run where plain Python may recurse deeply."""
    old_limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(old_limit, _RECURSION_LIMIT))
    try:
        return function() if sys.version_info >= (3, 11) else _in_roomy_thread(function)
    finally:
        sys.setrecursionlimit(old_limit)


def _in_roomy_thread(function: Callable[[], Any]) -> Any:
    old_stack = threading.stack_size(_STACK_BYTES)
    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(function).result()
    finally:
        threading.stack_size(old_stack)


# --- fib: two calls a body ---------------------------------------------------------------------------------------


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def fib_calls(n: int) -> int:
    return 1 if n < 2 else 1 + fib_calls(n - 1) + fib_calls(n - 2)


def define_fib() -> Callable[..., Any]:
    call = tfr.Declare("Fib", [("n", tf.int32)], [("ret", tf.int32)])

    @tfr.Defun(tf.int32, func_name="Fib", out_names=["ret"])
    def fib_impl(n: tf.Tensor) -> tf.Tensor:
        return tf.cond(n < 2, lambda: n, lambda: call(n - 1) + call(n - 2))

    return fib_impl


# --- ack: a call as the argument of a call, in one branch of two conditions ----------------------------------------


def ack(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    if n == 0:
        return ack(m - 1, 1)
    return ack(m - 1, ack(m, n - 1))


def define_ack() -> Callable[..., Any]:
    call = tfr.Declare("Ack", [("m", tf.int32), ("n", tf.int32)], [("ret", tf.int32)])

    @tfr.Defun(tf.int32, tf.int32, func_name="Ack", out_names=["ret"])
    def ack_impl(m: tf.Tensor, n: tf.Tensor) -> tf.Tensor:
        def positive() -> tf.Tensor:
            return tf.cond(tf.equal(n, 0), lambda: call(m - 1, 1), lambda: call(m - 1, call(m, n - 1)))

        return tf.cond(tf.equal(m, 0), lambda: n + 1, positive)

    return ack_impl


# --- tak: three calls as the arguments of a fourth ---------------------------------------------------------------


def tak(x: int, y: int, z: int) -> int:
    if y < x:
        return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y))
    return z


def define_tak() -> Callable[..., Any]:
    call = tfr.Declare("Tak", [("x", tf.int32), ("y", tf.int32), ("z", tf.int32)], [("ret", tf.int32)])

    @tfr.Defun(tf.int32, tf.int32, tf.int32, func_name="Tak", out_names=["ret"])
    def tak_impl(x: tf.Tensor, y: tf.Tensor, z: tf.Tensor) -> tf.Tensor:
        def deeper() -> tf.Tensor:
            return call(call(x - 1, y, z), call(y - 1, z, x), call(z - 1, x, y))

        return tf.cond(y < x, deeper, lambda: z)

    return tak_impl


# --- primes: mutual recursion -------------------------------------------------------------------------------------


def _test(n: int, i: int) -> bool:
    divisor = 6 * i - 1
    if divisor * divisor > n:
        return True
    if n % divisor == 0:
        return False
    return _test(n, i + 1)


def _prime_minus(n: int, i: int) -> int:
    candidate = 6 * i - 1
    if _test(candidate, 1):
        return candidate if n == 0 else _prime_plus(n - 1, i)
    return _prime_plus(n, i)


def _prime_plus(n: int, i: int) -> int:
    candidate = 6 * i - 1
    if _test(candidate, 1):
        return candidate if n == 0 else _prime_minus(n - 1, i + 1)
    return _prime_minus(n, i + 1)


def primes(n: int) -> int:
    """The program of the first experiments with tagged graphs: PrimePlus tests 6i-1 too, so primes(7500) = 42209."""
    if n <= 0:
        return 2
    return 3 if n == 1 else _prime_minus(n - 2, 1)


def define_primes() -> Callable[..., Any]:
    n_i = [("n", tf.int32), ("i", tf.int32)]
    test = tfr.Declare("Test", n_i, [("ret", tf.bool)])
    prime_minus = tfr.Declare("PrimeMinus", n_i, [("ret", tf.int32)])
    prime_plus = tfr.Declare("PrimePlus", n_i, [("ret", tf.int32)])

    @tfr.Defun(tf.int32, tf.int32, func_name="Test", out_names=["ret"])
    def test_impl(n: tf.Tensor, i: tf.Tensor) -> tf.Tensor:
        divisor = 6 * i - 1

        def try_divisor() -> tf.Tensor:
            return tf.cond(tf.equal(n % divisor, 0), lambda: tf.constant(False), lambda: test(n, i + 1))

        return tf.cond(divisor * divisor > n, lambda: tf.constant(True), try_divisor)

    @tfr.Defun(tf.int32, tf.int32, func_name="PrimeMinus", out_names=["ret"])
    def prime_minus_impl(n: tf.Tensor, i: tf.Tensor) -> tf.Tensor:
        candidate = 6 * i - 1

        def found() -> tf.Tensor:
            return tf.cond(tf.equal(n, 0), lambda: candidate, lambda: prime_plus(n - 1, i))

        return tf.cond(test(candidate, 1), found, lambda: prime_plus(n, i))

    @tfr.Defun(tf.int32, tf.int32, func_name="PrimePlus", out_names=["ret"])
    def prime_plus_impl(n: tf.Tensor, i: tf.Tensor) -> tf.Tensor:
        candidate = 6 * i - 1

        def found() -> tf.Tensor:
            return tf.cond(tf.equal(n, 0), lambda: candidate, lambda: prime_minus(n - 1, i + 1))

        return tf.cond(test(candidate, 1), found, lambda: prime_minus(n, i + 1))

    @tfr.Defun(tf.int32, func_name="Primes", out_names=["ret"])
    def primes_impl(n: tf.Tensor) -> tf.Tensor:
        def after_two() -> tf.Tensor:
            return tf.cond(tf.equal(n, 1), lambda: tf.constant(3), lambda: prime_minus(n - 2, 1))

        return tf.cond(n <= 0, lambda: tf.constant(2), after_two)

    # These are called through their declarations only, so nothing else brings them into the graph.
    for function in (test_impl, prime_minus_impl, prime_plus_impl):
        function.add_to_graph(tf.compat.v1.get_default_graph())
    return primes_impl


# --- sum: as deep as its argument, every frame alive at the bottom -----------------------------------------------


def sum_to(n: int) -> int:
    return n * (n + 1) // 2 if n > 0 else 0


def define_sum() -> Callable[..., Any]:
    """sum(n) = 0 if n < 1, else n + sum(n - 1): the addition waits in every frame. int64, for sum(1,000,000)."""
    call = tfr.Declare("SumTo", [("n", tf.int64)], [("ret", tf.int64)])

    @tfr.Defun(tf.int64, func_name="SumTo", out_names=["ret"])
    def sum_impl(n: tf.Tensor) -> tf.Tensor:
        return tf.cond(n < 1, lambda: tf.constant(0, tf.int64), lambda: n + call(n - 1))

    return sum_impl


# --- simpson: adaptive quadrature, two calls a body, seven numbers handed down --------------------------------------


def _wave(x: float) -> float:
    return math.sqrt(x) * math.sin(20.0 * x)


def _refine(a: float, b: float, fa: float, fm: float, fb: float, whole: float, bound: float) -> float:
    m = (a + b) / 2.0
    fl, fr = _wave((a + m) / 2.0), _wave((m + b) / 2.0)
    left, right = (m - a) / 6.0 * (fa + 4.0 * fl + fm), (b - m) / 6.0 * (fm + 4.0 * fr + fb)
    difference = left + right - whole
    if abs(difference) <= 15.0 * bound:
        return left + right + difference / 15.0
    return _refine(a, m, fa, fl, fm, left, bound / 2.0) + _refine(m, b, fm, fr, fb, right, bound / 2.0)


def simpson(upper: int, digits: int) -> float:
    """The integral of sqrt(x) sin(20 x) from 0 to `upper`, to so many digits, by Simpson's rule."""
    b = float(upper)
    fa, fm, fb = _wave(0.0), _wave(b / 2.0), _wave(b)
    return _refine(0.0, b, fa, fm, fb, b / 6.0 * (fa + 4.0 * fm + fb), 10.0**-digits)


def define_simpson() -> Callable[..., Any]:
    names = ["a", "b", "fa", "fm", "fb", "whole", "bound"]
    refine = tfr.Declare("Refine", [(name, tf.float64) for name in names], [("ret", tf.float64)])

    def wave(x: tf.Tensor) -> tf.Tensor:
        return tf.sqrt(x) * tf.sin(20.0 * x)

    @tfr.Defun(*[tf.float64] * 7, func_name="Refine", out_names=["ret"])
    def refine_impl(
        a: tf.Tensor, b: tf.Tensor, fa: tf.Tensor, fm: tf.Tensor, fb: tf.Tensor, whole: tf.Tensor, bound: tf.Tensor
    ) -> tf.Tensor:
        m = (a + b) / 2.0
        fl, fr = wave((a + m) / 2.0), wave((m + b) / 2.0)
        left, right = (m - a) / 6.0 * (fa + 4.0 * fl + fm), (b - m) / 6.0 * (fm + 4.0 * fr + fb)
        difference = left + right - whole
        return tf.cond(
            tf.abs(difference) <= 15.0 * bound,
            lambda: left + right + difference / 15.0,
            lambda: refine(a, m, fa, fl, fm, left, bound / 2.0) + refine(m, b, fm, fr, fb, right, bound / 2.0),
        )

    @tfr.Defun(tf.int32, tf.int32, func_name="Simpson", out_names=["ret"])
    def simpson_impl(upper: tf.Tensor, digits: tf.Tensor) -> tf.Tensor:
        a, b = tf.zeros([], tf.float64), tf.cast(upper, tf.float64)
        fa, fm, fb = wave(a), wave(b / 2.0), wave(b)
        bound = tf.pow(tf.constant(10.0, tf.float64), -tf.cast(digits, tf.float64))
        return refine(a, b, fa, fm, fb, b / 6.0 * (fa + 4.0 * fm + fb), bound)

    refine_impl.add_to_graph(tf.compat.v1.get_default_graph())
    return simpson_impl


# --- tictactoe: alpha-beta search on boards of bits, a call in a loop ------------------------------------------------

_LINES = (0o7, 0o70, 0o700, 0o111, 0o222, 0o444, 0o421, 0o124)
_FULL = 0o777


def _solve(mine: int, theirs: int, alpha: int, beta: int) -> int:
    for line in _LINES:
        if theirs & line == line:
            return -1
    if mine | theirs == _FULL:
        return 0
    move = 1
    while move < _FULL and alpha < beta:
        if (mine | theirs) & move == 0:
            alpha = max(alpha, -_solve(theirs, mine | move, -beta, -alpha))
        move *= 2
    return alpha


def tictactoe(mine: int, theirs: int) -> int:
    """Whether who is to move wins (1), loses (-1) or neither; boards are the squares that each has, as bits."""
    return _solve(mine, theirs, -2, 2)


def define_tictactoe() -> Callable[..., Any]:
    names = ["mine", "theirs", "alpha", "beta"]
    solve = tfr.Declare("Solve", [(name, tf.int32) for name in names], [("ret", tf.int32)], output_shapes=[[]])

    @tfr.Defun(*[tf.int32] * 4, func_name="Solve", out_names=["ret"])
    def solve_impl(mine: tf.Tensor, theirs: tf.Tensor, alpha: tf.Tensor, beta: tf.Tensor) -> tf.Tensor:
        mine, theirs, alpha, beta = (tf.ensure_shape(x, []) for x in (mine, theirs, alpha, beta))
        taken = mine | theirs

        def is_lost(lines: tuple[int, ...]) -> tf.Tensor:
            line = tf.equal(theirs & lines[0], lines[0])
            return tf.cond(line, lambda: tf.constant(True), lambda: is_lost(lines[1:])) if lines[1:] else line

        def step(move: tf.Tensor, best: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            deeper = lambda: tf.maximum(best, -solve(theirs, mine | move, -beta, -best))
            return move * 2, tf.cond(tf.equal(taken & move, 0), deeper, lambda: best)

        def search() -> tf.Tensor:
            goes_on = lambda move, best: tf.logical_and(move < _FULL, best < beta)
            return tf.while_loop(goes_on, step, (tf.constant(1), alpha))[1]

        play = lambda: tf.cond(tf.equal(taken, _FULL), lambda: tf.constant(0), search)
        return tf.cond(is_lost(_LINES), lambda: tf.constant(-1), play)

    @tfr.Defun(tf.int32, tf.int32, func_name="TicTacToe", out_names=["ret"])
    def tictactoe_impl(mine: tf.Tensor, theirs: tf.Tensor) -> tf.Tensor:
        return solve(mine, theirs, -2, 2)

    solve_impl.add_to_graph(tf.compat.v1.get_default_graph())
    return tictactoe_impl


FIB = Workload("fib", 1, tf.int32, define_fib, fib, (24,), calls=fib_calls)
ACK = Workload("ack", 2, tf.int32, define_ack, ack, (3, 5))
TAK = Workload("tak", 3, tf.int32, define_tak, tak, (18, 12, 6))
PRIMES = Workload("primes", 1, tf.int32, define_primes, primes, (2000,))
SIMPSON = Workload("simpson", 2, tf.int32, define_simpson, simpson, (8, 8), runs_dynamically=False)
TICTACTOE = Workload("tictactoe", 2, tf.int32, define_tictactoe, tictactoe, (0, 0), runs_dynamically=False)
SUM = Workload("sum", 1, tf.int64, define_sum, sum_to, (1_000_000,))

RECURSION_WORKLOADS = {workload.name: workload for workload in (FIB, ACK, TAK, PRIMES, SIMPSON, TICTACTOE)}
