"""Cases about variables and gradients whose parts lie apart."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import tensorflow as tf
from building import recursive
from cases import adding_to, fed
from distribution_helpers import on

tf1 = tf.compat.v1

I32, F32 = tf.int32, tf.float32

CASES = {}
case = adding_to(CASES)


# --- Variables ----------------------------------------------------------------------------------------------------


def variables(a, b, of_a, of_b):
    """One variable on each device, with these values at first."""
    with on(a):
        v = tf1.get_variable("v", initializer=of_a, use_resource=True)
    with on(b):
        w = tf1.get_variable("w", initializer=of_b, use_resource=True)
    return v, w


@case(np.float32(32.0), np.float32(6.0))
def captured_variables_on_both(a, b):
    v, w = variables(a, b, np.float32(2), np.float32(3))
    f, define = recursive("Affine", [I32], [F32])

    @define
    def Affine(n):
        def deeper():
            with on(b):
                return v * f(n - 1) + w

        return tf.cond(n < 1, lambda: v * 1.0, deeper)

    return [f(fed(3)) - 5.0, v * w]


@case(15)
def variable_assigned_in_bodies(a, b):
    with on(b):
        count = tf1.get_variable("count", [], I32, tf1.zeros_initializer(), use_resource=True)
    f, define = recursive("Counted", [I32], [I32])

    @define
    def Counted(n):
        with tf.control_dependencies([count.assign_add(1)]):
            n = tf.identity(n)
        return tf.cond(n < 1, lambda: 0, lambda: f(n - 1) + f(n - 1))

    with tf.control_dependencies([count.assign(0)]):
        n = tf.identity(fed(3))
    with on(a), tf.control_dependencies([f(n)]):
        return [count.read_value()]


@case(b"1213121")
def side_effects_in_order(a, b):
    with on(b):
        text = tf1.get_variable("text", initializer="", use_resource=True)
    f, define = recursive("Hanoi", [I32], [I32])

    @define
    def Hanoi(n):
        def move():
            with on(a), tf.control_dependencies([f(n - 1)]):
                grown = text.assign(tf.strings.join([text.read_value(), tf.as_string(n)]))
            with on(b), tf.control_dependencies([grown]):
                right = f(n - 1)
            with on(a), tf.control_dependencies([right]):
                return tf.identity(n)

        return tf.cond(n < 1, lambda: 0, move)

    with tf.control_dependencies([text.assign("")]):
        n = tf.identity(fed(3))
    with tf.control_dependencies([f(n)]):
        return [text.read_value()]


# --- One argument, variables of both devices ---------------------------------------------------------------------


def variables_on_both(a, b, shape=()):
    v, w = variables(a, b, np.full(shape, 2, np.float32), np.full(shape, 3, np.float32))
    return v, w


def read(handle):
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=F32)


@case(np.float32(8), np.float32(27), np.float32(12), np.float32(27))
def either_variable(a, b):
    f, define = recursive("Power", [I32, tf.resource], [F32], shapes=[[]], create_grad_func=True)

    @define
    def Power(n, handle):
        return tf.cond(n < 1, lambda: 1.0, lambda: f(n - 1, handle) * read(handle))

    v, w = variables_on_both(a, b)
    ys = [f(fed(3), v.handle), f(fed(3), w.handle)]
    return [*ys, *tf.gradients(ys, [v, w])]


@case(np.float32(10), np.float32(15), np.float32(5), np.float32(5))
def calls_beside_either_variable(a, b):
    """The records of the calls are on different devices too, those of calls in a loop among them."""
    f, define = recursive("Looped", [I32, tf.resource], [F32], shapes=[[]], create_grad_func=True)

    @define
    def Looped(n, handle):
        n = tf.ensure_shape(n, [])
        looped = lambda: tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + f(i, handle)), [0, 0.0])[1]
        return tf.cond(tf.equal(n % 2, 0), lambda: read(handle), lambda: read(handle) + looped())

    v, w = variables_on_both(a, b)
    with on(a):
        y = f(fed(3), v.handle)
    with on(b):
        z = f(fed(3), w.handle)
    return [y, z, *tf.gradients([y, z], [v, w])]


@case(np.float32(16), np.float32(2), np.float32(16))
def records_of_calls_on_either_device(a, b):
    """One function is called in the main graph, and elsewhere in another function's body."""
    f, define_f = recursive("Outer", [I32, F32], [F32], shapes=[[]], create_grad_func=True)
    g, define_g = recursive("Inner", [I32, F32], [F32], shapes=[[]], create_grad_func=True)
    define_g(lambda n, x: tf.cond(n < 1, lambda: x * 1.0, lambda: g(n - 1, x) * 2.0))
    define_f(lambda n, x: tf.cond(n < 1, lambda: x * 1.0, lambda: g(n, f(n - 1, x))))
    x = fed(2.0, np.float32)
    with on(b):
        inner = g(fed(1), x)
    with on(a):
        outer = f(fed(2), x)
    return [outer, tf.gradients(inner, x)[0], tf.gradients(outer * 2.0, x)[0]]


@case(np.float32(72), np.float32(108), np.float32(216), np.float32(156))
def variables_that_take_turns(a, b):
    """Two functions that call each other, with the variables changing places every other time."""
    f, define_f = recursive("Turn", [I32, tf.resource, tf.resource], [F32], shapes=[[]], create_grad_func=True)
    g, define_g = recursive("Pass", [I32, tf.resource, tf.resource], [F32], shapes=[[]], create_grad_func=True)
    define_f(lambda n, x, y: tf.cond(n < 1, lambda: 1.0, lambda: g(n - 1, x, y) * read(x)))
    define_g(lambda n, x, y: tf.cond(n < 1, lambda: 1.0, lambda: f(n - 1, y, x) * read(y)))
    v, w = variables_on_both(a, b)
    ys = [f(fed(5), v.handle, w.handle), f(fed(5), w.handle, v.handle)]
    return [*ys, *tf.gradients(ys, [v, w])]


@case(np.full(2, 8, np.float32), np.full(2, 27, np.float32), np.full(2, 12, np.float32), np.full(2, 27, np.float32))
def variables_that_gradients_look_at(a, b):
    """The gradient asks the variable for its shape, so that its handle goes through the record."""
    f, define = recursive("Rows", [I32, tf.resource], [F32], shapes=[[2]], create_grad_func=True)

    @define
    def Rows(n, handle):
        row = tf.raw_ops.ResourceGather(resource=handle, indices=[0, 1], dtype=F32)
        return tf.cond(n < 1, lambda: tf.ones([2]), lambda: f(n - 1, handle) * row)

    with on(a):
        v = tf1.get_variable("v", initializer=fed([2, 2], np.float32), use_resource=True, validate_shape=False)
    with on(b):
        w = tf1.get_variable("w", initializer=fed([3, 3], np.float32), use_resource=True, validate_shape=False)
    ys = [f(fed(3), v.handle), f(fed(3), w.handle)]
    return [*ys, *map(tf.convert_to_tensor, tf.gradients(ys, [v, w]))]


@case(np.float32(2), np.float32(3), np.float32(8), np.float32(18))
def handles_that_functions_return(a, b):
    pick, define_pick = recursive("Pick", [I32, tf.resource], [tf.resource])
    power, define_power = recursive("Power", [I32, tf.resource], [F32])
    define_pick(lambda n, handle: tf.cond(n < 1, lambda: tf.identity(handle), lambda: pick(n - 1, handle)))

    @define_power
    def Power(n, handle):
        deeper = lambda: power(n - 1, pick(n, handle)) * read(pick(0, handle))
        return tf.cond(n < 1, lambda: tf.constant(2.0), deeper)

    v, w = variables_on_both(a, b)
    reads = [read(pick(fed(4), variable.handle)) for variable in (v, w)]
    return [*reads, *(power(fed(2), pick(fed(1), variable.handle)) for variable in (v, w))]


@case(np.float32(10), np.float32(15))
def variables_in_loops_and_branches(a, b):
    f, define = recursive("Loops", [I32, tf.resource], [F32], shapes=[[]])

    @define
    def Loops(n, handle):
        n = tf.ensure_shape(n, [])

        def looped():
            return tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + f(i, handle)), [0, 0.0])[1]

        return tf.cond(tf.equal(n % 2, 0), lambda: read(handle), lambda: read(handle) + looped())

    v, w = variables_on_both(a, b)
    n = fed(3)
    return [tf.cond(n < 5, lambda: f(n, variable.handle), lambda: 0.0) for variable in (v, w)]


@case(7, 14)
def assignments_to_either(a, b):
    f, define = recursive("Count", [I32, tf.resource], [I32])

    @define
    def Count(n, handle):
        add = tf.raw_ops.AssignAddVariableOp(resource=handle, value=1)
        with tf.control_dependencies([add]):
            n = tf.identity(n)
        return tf.cond(n < 1, lambda: 0, lambda: f(n - 1, handle) + f(n - 1, handle))

    counts = []
    for device, times in ((a, 1), (b, 2)):
        with on(device):
            count = tf1.get_variable(f"count{times}", [], I32, tf1.zeros_initializer(), use_resource=True)
        done = [count.assign(0)]
        for _ in range(times):
            with tf.control_dependencies(done):
                done = [f(fed(2), count.handle)]
        with on(device), tf.control_dependencies(done):
            counts.append(count.read_value())
    return counts


# --- Gradients ----------------------------------------------------------------------------------------------------


def chain(a, b):
    """f(3, x) where f(n, x) = v * f(n - 1, x) * x + w, the product on one device, the sum on the other."""
    v, w = variables(a, b, np.float32(2), np.float32(3))
    f, define = recursive("Chain", [I32, F32], [F32], shapes=[[]], create_grad_func=True)

    @define
    def Chain(n, x):
        def deeper():
            with on(a):
                product = v * f(n - 1, x) * x
            with on(b):
                return product + w

        return tf.cond(n < 1, lambda: x * 1.0, deeper)

    x = fed(0.5, np.float32)
    return f(fed(3), x), [x, v, w]


@case(np.float32(9.5), np.float32(22), np.float32(5.25), np.float32(3))
def gradients(a, b):
    y, xs = chain(a, b)
    return [y, *tf.gradients(y, xs)]


@case(np.float32(9.5), np.float32(22), np.float32(5.25), np.float32(3))
def gradients_colocated_with_operators(a, b):
    y, xs = chain(a, b)
    return [y, *tf1.gradients(y, xs, colocate_gradients_with_ops=True)]


@case(np.float32(9.5), np.float32(22), np.float32(5.25), np.float32(3))
def gradients_on_the_other_device(a, b):
    y, xs = chain(a, b)
    with on(b):
        return [y, *tf.gradients(y, xs)]


@case(np.full([2, 2], 4, np.float32), np.full([2, 2], 24, np.float32))
def gradients_of_matrix_weights(a, b):
    """The weight is multiplied with in every frame; its gradient is summed once."""
    with on(b):
        w = tf1.get_variable("w", initializer=np.full([2, 2], 0.5, np.float32), use_resource=True)
    f, define = recursive("Multiply", [I32, F32], [F32], shapes=[[2, 2]], create_grad_func=True)

    @define
    def Multiply(n, x):
        x = tf.ensure_shape(x, [2, 2])

        def deeper():
            with on(a):
                below = f(n - 1, x)
            with on(b):
                return tf.matmul(below, w)

        return tf.cond(n < 1, lambda: tf.identity(x), deeper)

    y = f(fed(3), fed(np.full([2, 2], 4, np.float32)))
    return [y, *tf.gradients(y, w)]


@case(np.float32(1.0), np.float32(-4.0))
def gradient_through_mutual_functions_apart(a, b):
    f, define_f = recursive("Double", [I32, F32], [F32], shapes=[[]], create_grad_func=True)
    g, define_g = recursive("Negate", [I32, F32], [F32], shapes=[[]], create_grad_func=True)
    with on(a):
        define_f(lambda n, x: tf.cond(n < 1, lambda: x * 1.0, lambda: g(n - 1, x * 2.0)))
    with on(b):
        define_g(lambda n, x: tf.cond(n < 1, lambda: x * 1.0, lambda: f(n - 1, -x)))
    x = fed(-0.25, np.float32)
    y = f(fed(3), x)
    return [y, tf.gradients(y, x)[0]]


@case(np.float32(1.5), np.float32(1.5), np.float32(1.5), np.float32(0.375))
def gradients_of_mutual_functions_with_variables(a, b):
    """The pins are on what hands records on, too."""
    v, w = variables(a, b, np.float32(0.5), np.float32(2))
    f, define_f = recursive("There", [I32, F32], [F32], shapes=[[]])
    g, define_g = recursive("Back", [I32, F32], [F32], shapes=[[]])

    def there(n, x):
        def deeper():
            with on(a):
                doubled = x * 2.0
            with on(b):
                return g(n - 1, doubled) + x

        return tf.cond(n < 1, lambda: x * v, deeper)

    with on(a):
        define_f(there)
    with on(b):
        define_g(lambda n, x: tf.cond(n < 1, lambda: x * w, lambda: f(n - 1, x * 0.5) * w))
    x = fed(1.0, np.float32)
    with on(b):
        y = f(fed(2), x) * 0.75
    return [y, *tf.gradients(y, [x, v, w])]


@case(np.float32(4), np.float32(4), np.float32(32), np.float32(12))
def gradients_of_calls_in_loops_apart(a, b):
    """The loop, which keeps records in lists, is pinned to the other device than the call."""
    v, w = variables(a, b, np.float32(0.5), np.float32(2))
    f, define = recursive("Looped", [I32, F32], [F32], shapes=[[]])

    def looped(n, x):
        with on(b):
            return tf.while_loop(lambda i, _: i < 2, lambda i, x: [i + 1, f(n - 1, x) * w], [0, x])[1]

    define(lambda n, x: tf.cond(n < 1, lambda: x * v, lambda: looped(n, x)))
    x = fed(1, np.float32)
    with on(a):
        y = f(fed(2), x)
    return [y, *tf.gradients(y, [x, v, w])]
