"""Nets with native kernels against the same with stock ones: results, gradients, edges, memory."""
# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
import tensorflow as tf
from building import recursive

import tensorflow_recursion as tfr
from tensorflow_recursion import _native

tf1 = tf.compat.v1

SWITCH = "TENSORFLOW_RECURSION_NATIVE_KERNELS"
DEPTH = 6
DIM = 19  # fills no vector register
LARGE_DIM = 150  # of a weight that outgrows the first-level cache

# What a level of each chain makes of a state [1, DIM] and two weights.
LEVELS = {
    "dense_tanh": lambda h, w, b: tf.tanh(tf.nn.bias_add(tf.matmul(h, w), b)),
    "dense_relu": lambda h, w, b: tf.nn.relu(tf.nn.bias_add(tf.matmul(h, w), b)) + 0.1 * h,
    "dense_sigmoid": lambda h, w, b: tf.sigmoid(tf.matmul(h, w, transpose_b=True) + b) - h,
    "gates": lambda h, w, b: _gates(tf.matmul(tf.concat([h, 2 * h], axis=1), tf.concat([w, w], axis=0)) + b, h),
    "softmax": lambda h, w, b: tf.nn.softmax(tf.matmul(h, w)) * h + b,
    "squares": lambda h, w, b: tf.sqrt(tf.square(h) + 1) - tf.maximum(h, b) * tf.minimum(h, 0.5) / (tf.exp(b) + 1),
    "select": lambda h, w, b: tf.where(h > 0, tf.matmul(h, w), h * b) - tf.abs(h),
    "rows": lambda h, w, b: tf.gather(tf.concat([h, -h, h * h], axis=0), [2]) * 0.5 + tf.reshape(b, [1, -1]),
    "stack": lambda h, w, b: tf.unstack(tf.stack([tf.squeeze(h, 0) * b, tf.reshape(h, [-1])]))[0][tf.newaxis],
    "slices": lambda h, w, b: _slices(tf.matmul(h, w), [4, 9, 3]) * h + b,
    "sums": lambda h, w, b: (h - tf.reduce_mean(h, axis=1, keepdims=True)) / (1 + tf.reduce_max(tf.abs(h))) * b,
    "loss": lambda h, w, b: (
        h - tf.reshape(tf.nn.sparse_softmax_cross_entropy_with_logits([3], tf.matmul(h, w)), [1, 1])
    ),
    "log_softmax": lambda h, w, b: tf.nn.log_softmax(tf.matmul(h, w) + b) * 0.1,
    "matvec": lambda h, w, b: tf.linalg.matvec(w, tf.reshape(h, [-1]) + b)[tf.newaxis],
    "bilinear": lambda h, w, b: tf.einsum("bi,ijk,bj->bk", h, tf.stack([w] * DIM, axis=2) * b / DIM, h) + 0.1 * h,
    "heads": lambda h, w, b: tf.reduce_sum(_attention(h, w), axis=[0, 1]) * 0.1 + b,
    "logs": lambda h, w, b: tf.math.log(tf.abs(h) + 1.5) + tf.cast(tf.shape(h)[1], h.dtype) * 0.01 * b,
}


def _gates(z, h):
    a, b = tf.split(z, [7, DIM - 7], axis=1)
    return tf.concat([tf.sigmoid(b), tf.tanh(a)], axis=1) * h


def _attention(h, w):
    """Three rows attend to two, each by two heads: [batch, heads, rows, DIM]."""
    queries = tf.stack([tf.stack([h, h * h, -h], axis=1), tf.stack([h @ w, h, h], axis=1)], axis=1)
    keys = queries[:, :, 1:]
    scores = tf.nn.softmax(tf.einsum("bhqd,bhkd->bhqk", queries, keys))
    return tf.reduce_mean(tf.matmul(scores, keys), axis=2, keepdims=True)


def _slices(z, sizes):
    """Slices of constant sizes, one behind the other; what is behind them is read as a whole."""
    slices = [tf.slice(z, [0, sum(sizes[:i])], [1, size]) for i, size in enumerate(sizes)]
    return tf.concat([tf.tanh(slices[1]), slices[0], slices[2] * slices[2], z[:, sum(sizes) :]], axis=1)


def _weights(dtype, dim=DIM):
    generator = np.random.default_rng(3)
    w = generator.normal(size=[dim, dim]) / np.sqrt(dim)
    return w.astype(dtype), generator.normal(size=[dim]).astype(dtype), generator.normal(size=[1, dim]).astype(dtype)


def _chain(level, dtype, w, b):
    f, define = recursive("Chain", [tf.int32, dtype], [dtype], output_shapes=[[1, DIM]], create_grad_func=True)

    def body(n, h):
        h.set_shape([1, DIM])
        return tf.cond(n < 1, lambda: tf.identity(h), lambda: f(n - 1, level(h, w, b)))

    define(body)
    return f


def _values(level, dtype, start=None, config=None):
    """The result of a chain and its gradients by everything."""
    weight, bias, h = _weights(dtype)
    with tf.Graph().as_default():
        w, b, x = tf1.placeholder(dtype, [DIM, DIM]), tf1.placeholder(dtype, [DIM]), tf1.placeholder(dtype, [1, DIM])
        y = _chain(level, dtype, w, b)(DEPTH, x)
        gradients = [g for g in tf.gradients(tf.reduce_sum(y * y), [w, b, x]) if g is not None]
        with tf1.Session(config=config or tfr.session_config()) as session:
            feeds = {w: weight, b: bias, x: h if start is None else start}
            return session.run([y, *gradients], feeds)


@pytest.mark.each_value
@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("level", LEVELS)
def test_results_and_gradients_are_those_of_stock_kernels(level, dtype, monkeypatch):
    native = _values(LEVELS[level], dtype)
    monkeypatch.setenv(SWITCH, "0")
    stock = _values(LEVELS[level], dtype)
    assert len(native) == len(stock)
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    for a, b in zip(native, stock, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("level", ["dense_tanh", "dense_relu", "dense_sigmoid", "select"])
def test_nan_and_infinity_are_kept(level, monkeypatch):
    start = _weights("float32")[2]
    start[0, 3], start[0, 7] = np.nan, np.inf
    native = _values(LEVELS[level], "float32", start)[0]
    monkeypatch.setenv(SWITCH, "0")
    stock = _values(LEVELS[level], "float32", start)[0]
    np.testing.assert_array_equal(np.isnan(native), np.isnan(stock))
    np.testing.assert_array_equal(np.isinf(native), np.isinf(stock))


def _tree(w, b, dim):
    f, define = recursive("Tree", [tf.int32, tf.float32], [tf.float32], output_shapes=[[1, dim]], create_grad_func=True)

    def body(n, h):
        h.set_shape([1, dim])

        def inner():
            left = f(n - 1, tf.tanh(tf.matmul(h, w) + b))
            right = f(n - 1, tf.tanh(tf.matmul(h, w, transpose_b=True) - b))
            return tf.nn.softmax(left) * right

        return tf.cond(n < 1, lambda: tf.identity(h), inner)

    define(body)
    return f


# Products of several frames with a large weight run together.
@pytest.mark.parametrize("dim", [DIM, LARGE_DIM])
def test_results_do_not_depend_on_workers(dim):
    """A tree whose calls go to several workers, bit by bit."""
    weight, bias, start = _weights("float32", dim)
    results = []
    for workers in (1, 4):
        with tf.Graph().as_default():
            x = tf.constant(start)
            y = _tree(tf.constant(weight), tf.constant(bias), dim)(9, x)
            (gradient,) = tf.gradients(y, x)
            config = tfr.session_config(tf1.ConfigProto(inter_op_parallelism_threads=4), workers=workers)
            with tf1.Session(config=config) as session:
                results.append(session.run([y, gradient]))
    for one, four in zip(*results, strict=True):
        np.testing.assert_array_equal(one, four)


def test_results_do_not_depend_on_what_runs_beside_them(graph, session_config):
    weight, bias, start = _weights("float32", LARGE_DIM)
    tree = _tree(tf.constant(weight), tf.constant(bias), LARGE_DIM)
    trees = []
    for scale in (1.0, 0.5, -0.7):
        x = tf.constant(start * scale)
        y = tree(4, x)
        trees.append((y, *tf.gradients(y, x)))
    with tf1.Session(config=session_config) as session:
        together = session.run(trees)
        for of_tree, values in zip(trees, together, strict=True):
            for alone, beside in zip(session.run(of_tree), values, strict=True):
                np.testing.assert_array_equal(alone, beside)


def test_one_weight_under_two_shapes(run):
    """Calls of one product whose weights begin at the same address, and are not the same matrix."""
    f, define = recursive("Products", [tf.int32, tf.float32, tf.float32], [tf.float32], output_shapes=[[]])
    define(lambda n, x, w: tf.cond(n < 1, lambda: tf.reduce_sum(tf.matmul(x, w)), lambda: f(n - 1, x, w)))
    sides, define_sides = recursive("Sides", [tf.int32, tf.float32], [tf.float32], output_shapes=[[]])

    def body(n, w):
        values = [
            f(n, tf.ones([1, LARGE_DIM * factor]), part)
            for factor, part in [(4, w), (1, tf.reshape(w, [LARGE_DIM, -1])), (2, w[: 2 * LARGE_DIM])]
        ]
        return tf.cond(n < 1, lambda: 0.0, lambda: values[0] + 7 * values[1] - 3 * values[2] + sides(n - 1, w))

    define_sides(body)
    weight = np.arange(4 * LARGE_DIM * LARGE_DIM, dtype=np.float32).reshape(4 * LARGE_DIM, LARGE_DIM) % 5
    expected = 2 * (8 * weight.sum() - 3 * weight[: 2 * LARGE_DIM].sum())
    assert run(sides(2, tf.constant(weight))) == expected


def test_products_that_run_together_are_those_of_stock_kernels(monkeypatch):
    weight, bias, start = _weights("float32", LARGE_DIM)
    results = []
    for switch in ("1", "0"):
        monkeypatch.setenv(SWITCH, switch)
        with tf.Graph().as_default():
            w, b, x = tf.constant(weight), tf.constant(bias), tf.constant(start)
            y = _tree(w, b, LARGE_DIM)(5, x)
            fetches = [y, *tf.gradients(tf.math.log(y), [w, b, x])]
            with tf1.Session(config=tfr.session_config()) as session:
                results.append(session.run(fetches))
    for native, stock in zip(*results, strict=True):
        np.testing.assert_allclose(native, stock, rtol=1e-3, atol=1e-3 * np.abs(stock).max())


def test_a_weight_that_is_assigned_is_read_anew(graph, session_config):
    with tf1.Session(config=session_config) as session:
        variable = tf1.get_variable("w", [DIM, DIM], initializer=tf1.ones_initializer(), use_resource=True)
        f = _chain(lambda h, w, b: tf.matmul(h, w) / DIM, "float32", variable.read_value(), None)
        y = f(3, tf.ones([1, DIM]))
        double = variable.assign(variable * 2, read_value=False)
        session.run(variable.initializer)
        for step in range(3):
            np.testing.assert_allclose(session.run(y), np.full([1, DIM], 8.0**step), rtol=1e-5)
            session.run(double)


def test_rows_of_a_variable_are_read_as_they_are(graph, session_config):
    """Gathered through the handle, before and after updates of single rows."""
    with tf1.Session(config=session_config) as session:
        table = tf1.get_variable("table", [5, DIM], initializer=tf1.zeros_initializer(), use_resource=True)
        f, define = recursive("Rows", [tf.int32], [tf.float32], output_shapes=[[1, DIM]])
        define(lambda n: tf.cond(n < 1, lambda: tf.gather(table, [n]), lambda: f(n - 1) + tf.gather(table, [n])))
        y = f(4)
        update = table.scatter_add(tf.IndexedSlices(tf.ones([1, DIM]), [2]))
        session.run(table.initializer)
        for step in range(4):
            np.testing.assert_array_equal(session.run(y), np.full([1, DIM], float(step)))
            session.run(update)


def test_a_fed_tensor_is_not_written(graph, run):
    x = tf1.placeholder(tf.float32, [1, DIM])
    f = _chain(lambda h, w, b: tf.tanh(h) + 1, "float32", None, None)
    fed = np.ones([1, DIM], np.float32)
    y, same = f(3, x), tf.identity(x)
    _, unchanged = run([y, same], {x: fed})
    np.testing.assert_array_equal(unchanged, np.ones([1, DIM], np.float32))
    np.testing.assert_array_equal(fed, np.ones([1, DIM], np.float32))


def test_errors_are_those_of_stock_kernels(graph, run):
    """What a native kernel does not serve, its stock kernel refuses in its own words."""
    f, define = recursive("Bad", [tf.int32, tf.float32], [tf.float32])
    rows = tf.constant(np.ones([2, 3], np.float32))
    define(lambda n, x: tf.cond(n < 1, lambda: tf.reduce_sum(tf.gather(rows, [n + 5])), lambda: f(n - 1, x)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
        run(f(3, 1.0))


# The sizes of these parts are known at run time alone: what each level of a chain puts side by side, from x [k, DIM].
CONCATENATIONS = {
    "rows": lambda x: tf.concat([x, 2 * x, x[:1]], axis=0)[: tf.shape(x)[0]],
    "columns": lambda x: tf.concat([x, x * x], axis=-1)[:, 3 : DIM + 3],
    "boxes": lambda x: tf.concat([x[:, tf.newaxis], 3 * x[:, tf.newaxis]], axis=1)[:, 1],
    "shape_read": lambda x: tf.concat([x, -x], axis=0)[: tf.shape(x)[0]] + tf.cast(tf.shape(x)[0], x.dtype) * 1e-3,
    "constant_part": lambda x: tf.concat([x, tf.ones([1, DIM], x.dtype), x], axis=0)[: tf.shape(x)[0]],
    "one_part": lambda x: tf.concat([x, x], axis=0)[-tf.shape(x)[0] :],
}


def _concatenated(name, dtype, rows, workers=1):
    """The gradients of a binary recursion of concatenations, and how many ConcatGradients have run."""
    with tf.Graph().as_default():
        f, define = recursive("Concatenated", [tf.int32, dtype], [dtype], create_grad_func=True)

        def both(n, x):
            x = CONCATENATIONS[name](tf.ensure_shape(x, [None, DIM]))
            return tf.concat([f(n - 1, x), f(n - 1, tf.tanh(x))], axis=0)

        define(lambda n, x: tf.cond(n < 1, lambda: tf.identity(x), lambda: both(n, x)))
        x = tf1.placeholder(dtype, [None, DIM])
        y = f(4, x)
        values = np.random.default_rng(5).normal(size=[rows, DIM])
        with tf1.Session(config=tfr.session_config(workers=workers)) as session:
            _native.start_profile()
            results = session.run([y, *tf.gradients(y * y, x)], {x: values})
            counted = _native.stop_profile()
    return results, counted["bodies"].get("Recursion>ConcatGradient", (0, 0))[0]


# With 4,000 rows the gradients are too large for native kernels.
@pytest.mark.each_value
@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [1, 3, 4000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("name", CONCATENATIONS)
def test_gradients_of_concatenations_are_those_of_stock_kernels(monkeypatch, name, dtype, rows):
    monkeypatch.setenv(SWITCH, "0")
    stock, none = _concatenated(name, dtype, rows)
    monkeypatch.setenv(SWITCH, "1")
    native, merged = _concatenated(name, dtype, rows)
    assert none == 0 and merged > 0
    tolerance = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 0.05}[dtype]
    for one, other in zip(native, stock, strict=True):
        one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())


def test_gradients_of_concatenations_on_several_workers():
    one, _ = _concatenated("rows", "float32", 3, workers=1)
    four, _ = _concatenated("rows", "float32", 3, workers=4)
    for a, b in zip(one, four, strict=True):
        np.testing.assert_array_equal(a, b)


# These do what gradients do, with mistakes that gradients do not make: in the parts' shapes and in what is cut.
BAD_CONCATENATIONS = {
    "ranks": ([2, 3], [2], [4, 3], 0),
    "other dimension": ([2, 3], [2, 4], [4, 3], 0),
    "axis": ([2, 3], [2, 3], [4, 3], 2),
    "rank of the gradient": ([2, 3], [2, 3], [12], 0),
    "too few rows": ([2, 3], [2, 3], [3, 3], 0),
    "no row left": ([4, 3], [2, 3], [3, 3], 0),
    "too few columns": ([2, 3], [2, 3], [4, 2], 0),
}


@pytest.mark.parametrize("mistake", BAD_CONCATENATIONS)
def test_errors_of_bad_concatenations_are_those_of_stock_kernels(monkeypatch, mistake):
    *shapes, axis = BAD_CONCATENATIONS[mistake]
    messages = []
    for switch in ("0", "1"):
        monkeypatch.setenv(SWITCH, switch)
        with tf.Graph().as_default():
            x, y, g = (tf1.placeholder(tf.float32, name=name) for name in "xyg")
            f, define = recursive("Cut", [tf.int32, *[tf.float32] * 3], [tf.float32])

            def cut(x, y, g):
                sizes = tf.shape_n([x, y])
                offsets = tf.raw_ops.ConcatOffset(concat_dim=axis, shape=sizes)
                first, last = (tf.slice(g, begin, size) for begin, size in zip(offsets, sizes, strict=True))
                return tf.reduce_sum(first) + tf.reduce_sum(last)

            define(lambda n, x, y, g: tf.cond(n < 1, lambda: cut(x, y, g), lambda: f(n - 1, x, y, g)))
            z = f(2, x, y, g)
            fed = {p: np.ones(shape, np.float32) for p, shape in zip((x, y, g), shapes, strict=True)}
            with (
                tf1.Session(config=tfr.session_config()) as session,
                pytest.raises(tf.errors.InvalidArgumentError) as error,
            ):
                session.run(z, fed)
            messages.append(error.value.message.split("\n")[0])
    assert messages[0] == messages[1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_gradient_of_a_root_at_zero_is_zero(graph, run, dtype):
    """Stock kernels do the same: 0 where no gradient arrives, also where the root is 0. So a masked norm has no NaN."""
    x = tf1.placeholder(dtype, [1, 2])
    f = _chain(lambda h, w, b: tf.where(h > 0, tf.sqrt(h), tf.zeros_like(h)), dtype, None, None)
    (gradient,) = tf.gradients(f(1, tf.pad(x, [[0, 0], [0, DIM - 2]])), x)
    np.testing.assert_allclose(run(gradient, {x: [[0.0, 4.0]]}), [[0.0, 0.25]])


# What makes each an error: a sum of sizes that is too large for an int64. Stock kernels raise the same ones, and try to
# allocate the first part of SplitV's.
OUT_OF_RANGE = {
    "Slice": (lambda x: tf.slice(x, [2**62], [2**62 + 1]), tf.errors.InvalidArgumentError),
    "SplitV": (
        lambda x: tf.raw_ops.SplitV(value=x, size_splits=[2**63 - 1, 2**63 - 1, 8], axis=0, num_split=3)[2],
        tf.errors.ResourceExhaustedError,
    ),
}


@pytest.mark.parametrize("operator", OUT_OF_RANGE)
def test_sizes_out_of_range_are_errors(operator, graph, run):
    f, define = recursive("Range", [tf.int32, tf.float32], [tf.float32])
    cut, error = OUT_OF_RANGE[operator]
    define(lambda n, x: tf.cond(n < 1, lambda: tf.identity(x), lambda: f(n - 1, cut(x))))
    with pytest.raises(error, match=operator):
        run(f(1, tf.constant(np.ones(6, np.float32))))


def test_cast_that_truncates_does_not_round(graph, run):
    f, define = recursive("Cut", [tf.int32, tf.float64], [tf.float32])
    define(
        lambda n, x: tf.cond(n < 1, lambda: tf.raw_ops.Cast(x=x, DstT=tf.float32, Truncate=True), lambda: f(n - 1, x))
    )
    x = np.nextafter(np.float64(np.nextafter(np.float32(1), np.float32(2))), 0) * np.ones([1, 3])
    np.testing.assert_array_equal(run(f(2, tf.constant(x))), np.ones([1, 3], np.float32))
