"""Small programs about tensors of any shape, lists and loops."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import tensorflow as tf
from building import recursive
from programs import adding_to

PROGRAMS = {}
program = adding_to(PROGRAMS)


@program([tf.int32, tf.float32], [0, [[1, 2], [3, 4]]], [4, [[1, 2], [3, 4]]], [3, [[0.5]]])
def tree_of_matrix_products():
    f, define = recursive("Products", [tf.int32, tf.float32], [tf.float32])
    define(lambda n, x: tf.cond(n < 1, lambda: x / 4, lambda: tf.matmul(f(n - 1, x), f(n - 2, tf.transpose(x))) + x))

    def oracle(n, x):
        x = np.asarray(x, np.float32)
        return x / 4 if n < 1 else oracle(n - 1, x) @ oracle(n - 2, x.T) + x

    return f, oracle


@program([tf.int32], [0], [1], [12])
def lists_of_any_length():
    f, define = recursive("Lists", [tf.int32], [tf.int32])
    define(lambda n: tf.cond(n < 2, lambda: tf.fill([n + 1], n), lambda: tf.concat([f(n // 2), [n], f(n - 3)], 0)))

    def oracle(n):
        return [n] * (n + 1) if n < 2 else [*oracle(n // 2), n, *oracle(n - 3)]

    return f, oracle


@program([tf.int32], [[3, 1, 2]], [[]], [[5, 5, 1, 9, -2, 0, 7, 3, 3]])
def quicksort():
    f, define = recursive("Sort", [tf.int32], [tf.int32])

    @define
    def Sort(xs):
        xs = tf.ensure_shape(xs, [None])

        def parts():
            rest = xs[1:]
            less = tf.gather(rest, tf.where(rest < xs[0])[:, 0])
            more = tf.gather(rest, tf.where(rest >= xs[0])[:, 0])
            return tf.concat([f(less), xs[:1], f(more)], 0)

        return tf.cond(tf.size(xs) < 1, lambda: xs, parts)

    xs = lambda xs: f(tf.reshape(xs, [-1]))
    return xs, lambda values: np.array(sorted(values), np.int32)


@program([tf.int32], [0], [6])
def tensor_lists():
    f, define = recursive("Push", [tf.int32, tf.variant], [tf.variant])

    @define
    def Push(n, items):
        more = lambda: f(n - 1, tf.raw_ops.TensorListPushBack(input_handle=items, tensor=n * n))
        return tf.cond(n < 1, lambda: tf.identity(items), more)

    def squares(n):
        shape = tf.constant([], tf.int32)
        empty = tf.raw_ops.EmptyTensorList(element_dtype=tf.int32, element_shape=shape, max_num_elements=-1)
        # The list that two calls share must be as it was for either.
        items = [f(n, empty), f(n - 1, empty)]
        return tuple(tf.raw_ops.TensorListLength(input_handle=item) for item in items) + (
            tf.raw_ops.TensorListStack(input_handle=items[0], element_shape=shape, element_dtype=tf.int32),
        )

    return squares, lambda n: (n, max(n - 1, 0), [i * i for i in range(n, 0, -1)])


# --- Loops --------------------------------------------------------------------------------------------------------


@program([tf.int32], [0], [1], [9])
def loop_in_body():
    f, define = recursive("Loop", [tf.int32], [tf.int32])

    @define
    def Loop(n):
        n = tf.ensure_shape(n, [])
        step = lambda i, s: (i + 1, s + i * n)
        return tf.cond(n < 1, lambda: 0, lambda: f(n - 2) + tf.while_loop(lambda i, s: i < n, step, [0, 0])[1])

    def oracle(n):
        return 0 if n < 1 else oracle(n - 2) + sum(i * n for i in range(n))

    return f, oracle


@program([tf.int32], [0], [3], [5])
def call_in_loop_in_body():
    f, define = recursive("LoopCalls", [tf.int32], [tf.int32], shapes=[[]])

    @define
    def LoopCalls(n):
        step = lambda i, s: (i + 1, s + f(i))
        return tf.cond(n < 1, lambda: 1, lambda: tf.while_loop(lambda i, s: i < n, step, [0, 1])[1])

    return f, lambda n: 2**n


@program([tf.int32], [0], [4], [6])
def cond_in_loop_in_body():
    f, define = recursive("CondInLoop", [tf.int32], [tf.int32], shapes=[[]])

    @define
    def CondInLoop(n):
        n = tf.ensure_shape(n, [])

        def step(i, s):
            return i + 1, tf.cond(
                tf.equal(i % 3, 1), lambda: s + f(i), lambda: tf.cond(i > 3, lambda: s - i, lambda: s + n)
            )

        return tf.while_loop(lambda i, s: i < n, step, [0, 1])[1]

    def oracle(n):
        s = 1
        for i in range(n):
            s = s + oracle(i) if i % 3 == 1 else s - i if i > 3 else s + n
        return s

    return f, oracle


@program([tf.int32], [0], [3])
def nested_loops_with_calls():
    f, define = recursive("Nested", [tf.int32], [tf.int32], shapes=[[]])

    @define
    def Nested(n):
        def outer(i, s):
            inner = lambda j, t: (j + 1, t + f(n - 1) * j + i)
            return i + 1, s + tf.while_loop(lambda j, t: j <= i, inner, [0, s])[1]

        return tf.cond(n < 1, lambda: 1, lambda: tf.while_loop(lambda i, s: i < n, outer, [0, 0])[1])

    def oracle(n):
        if n < 1:
            return 1
        s = 0
        for i in range(n):
            t = s
            for j in range(i + 1):
                t += oracle(n - 1) * j + i
            s += t
        return s

    return f, oracle


@program([tf.int32], [0], [4])
def loop_whose_length_is_from_a_call():
    f, define = recursive("Bound", [tf.int32], [tf.int32], shapes=[[]])

    @define
    def Bound(n):
        return tf.while_loop(lambda i: tf.cond(n > 0, lambda: i < f(n - 1) + 2, lambda: False), lambda i: i + 1, [0])

    return f, lambda n: 2 * n


@program([tf.int32], [0], [30])
def calls_in_parallel_iterations():
    f, define = recursive("Down", [tf.int32], [tf.int32], shapes=[[]])
    define(lambda n: tf.cond(n < 1, lambda: 0, lambda: 1 + f(n - 1)))
    call = lambda n: tf.map_fn(f, tf.range(n), parallel_iterations=10)
    return call, lambda n: np.arange(n)


@program([tf.int32], [0], [4])
def tensor_array_in_body():
    f, define = recursive("Table", [tf.int32], [tf.int32])

    @define
    def Table(n):
        def rows():
            array = tf.TensorArray(tf.int32, size=n, infer_shape=False, element_shape=[])
            fill = lambda i, a: (i + 1, a.write(i, i * n))
            return tf.concat([f(n - 1), tf.while_loop(lambda i, a: i < n, fill, [0, array])[1].stack()], 0)

        return tf.cond(n < 1, lambda: tf.zeros([0], tf.int32), rows)

    return f, lambda n: np.array([i * k for k in range(1, n + 1) for i in range(k)], np.int32)
