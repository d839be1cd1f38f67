"""Recursive Python functions that run as they are, and as `tfr.recursive` makes them; each is its own oracle.

`PROGRAMS[name]` is (make, calls): `make(recursive)` defines the functions, decorated with `recursive`, and returns one;
each of `calls` is the arguments of a call, as Python and numpy values.
"""
# SPDX-License-Identifier: Apache-2.0

import collections

import numpy as np

Pair = collections.namedtuple("Pair", ["left", "right"])

PROGRAMS = {}


def program(*calls):
    def add(make):
        PROGRAMS[make.__name__] = (make, calls)
        return make

    return add


@program((0,), (1,), (10,))
def fib(recursive):
    @recursive
    def fib(n):
        if n < 2:
            return n
        return fib(n - 1) + fib(n - 2)

    return fib


@program((0, 3), (2, 3))
def ack(recursive):
    @recursive
    def ack(m, n):
        if m == 0:
            return n + 1
        if n == 0:
            return ack(m - 1, 1)
        return ack(m - 1, ack(m, n - 1))

    return ack


@program((6, 4, 2), (1, 2, 3))
def tak(recursive):
    @recursive
    def tak(x, y, z):
        if y >= x:
            return z
        return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y))

    return tak


@program((48, 18), (7, 0))
def gcd(recursive):
    @recursive
    def gcd(a, b):
        return a if b == 0 else gcd(b, a % b)

    return gcd


@program((4,), (0,))
def hanoi(recursive):
    """Several outputs: how many moves, and the sum of the disks moved."""

    @recursive
    def hanoi(n):
        if n == 0:
            return 0, 0
        moves, weight = hanoi(n - 1)
        return 2 * moves + 1, 2 * weight + n

    return hanoi


@program((7,), (6,), (0,))
def parity(recursive):
    """Two functions that call each other; the first one calls one that is defined later."""

    @recursive
    def is_even(n):
        if n == 0:
            return True
        return is_odd(n - 1)

    @recursive
    def is_odd(n):
        return n != 0 and is_even(n - 1)

    return is_even


@program((5,), (12,), (1,))
def collatz_lengths(recursive):
    """`while` with `break` and `continue`, in a body that recurses."""

    @recursive
    def total(n):
        steps = 0
        x = n
        while x > 1:
            steps += 1
            if steps > 50:
                break
            if x % 2 == 0:
                x = x // 2
                continue
            x = 3 * x + 1
        if n > 1:
            steps += total(n - 1)
        return steps

    return total


@program((np.array([3, 1, 2, 5, 4, 1], np.int32),), (np.array([2], np.int32),), (np.array([], np.int32),))
def largest(recursive):
    """Slices that get shorter; early returns; `and` and `or` that go by tensors."""

    @recursive
    def largest(values, low):
        if len(values) == 0:
            return low
        first = values[0]
        if first > low and (first > 2 or low < 1):
            return largest(values[1:], first)
        return largest(values[1:], low)

    @recursive
    def sum_of(values):
        return 0 if len(values) == 0 else values[0] + sum_of(values[1:])

    @recursive
    def start(values):
        return largest(values, 0 * sum_of(values))

    return start


@program((3, 2.0), (0, 5.0))
def nested(recursive):
    """Tuples, dictionaries and named tuples, keyword and default arguments."""

    @recursive
    def grow(tree, options, *, step=1.0):
        if options["depth"] < 1:
            return {"tree": tree, "sum": tree.left + tree.right}
        inner = grow(Pair(tree.right, tree.left + step), {"depth": options["depth"] - 1}, step=step)
        return {"tree": Pair(inner["tree"].right, inner["tree"].left), "sum": inner["sum"] * 2.0}

    @recursive
    def start(depth, x):
        return grow(Pair(x, x + 1.0), {"depth": depth}, step=0.5), grow(Pair(x, x), options={"depth": depth})

    return start


@program((5, 3), (0, 2))
def closure(recursive):
    """A function that closes over another one's argument, and a lambda that calls itself."""

    def power_of(base):
        @recursive
        def power(n):
            return 1 if n == 0 else base * power(n - 1)

        return power

    square = power_of(4)
    cube = power_of(9)
    factorial = recursive(lambda n: 1 if n < 1 else n * factorial(n - 1))

    @recursive
    def start(n, m):
        return square(n) + cube(m) + factorial(n)

    return start


@program((4,), (0,))
def loop_over_range(recursive):
    @recursive
    def trees(n):
        """How many binary trees with n nodes there are."""
        if n == 0:
            return 1
        found = 0
        for i in range(n):
            found += trees(i) * trees(n - 1 - i)
        return found

    return trees


@program((3, 1), (2, 0), (0, 0))
def helper(recursive):
    """A plain Python function that the body calls is converted, too."""

    def clipped(x):
        if x > 100:
            return 100
        return x

    @recursive
    def grow(n, x):
        if n > 0:
            x = clipped(grow(n - 1, x * 3) + grow(n - 1, x + 1))
        return x

    return grow


@program((3,), (0,))
def inner(recursive):
    """A function that the body of another one makes, and that uses what that one has."""

    @recursive
    def outer(n):
        @recursive
        def inner(m):
            return n if m < 1 else inner(m - 1) + 1

        if n < 1:
            return inner(n)
        return inner(n) + outer(n - 1)

    return outer


@program((4,), (1,))
def in_conditions(recursive):
    """Results of calls that conditions go by."""

    @recursive
    def walk(n):
        if n < 2:
            return 1
        if walk(n - 1) > 2 and walk(n - 2) > 0:
            return 2
        return 3

    return walk


@program((3, 11), (2, 0), (5, 1))
def nested_conditions(recursive):
    """A conditional expression in another one, on each side of `else`, and in a condition."""

    @recursive
    def power(x, n):
        return (x if n == 1 else power(x, n - 1) * x) if n % 2 == 1 else (1 if n == 0 else power(x * x, n // 2))

    @recursive
    def either(x, n):
        return power(x, n) if (x > 2 if n > 1 else n > 0) else x

    return either
