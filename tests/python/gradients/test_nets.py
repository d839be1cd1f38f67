"""The nets over trees: their data, their numpy reference, and every method of training and running them."""
# SPDX-License-Identifier: Apache-2.0

import pathlib
import re
import threading
import time

import numpy as np
import processes
import pytest
import tensorflow as tf
from tree_files import write_trees

import tensorflow_recursion as tfr
from benchmarks import harness, treebank
from benchmarks.nets import data, recursion, reference, suite, weights

tf1 = tf.compat.v1

ROOT = pathlib.Path(__file__).resolve().parents[3]
DIM = 3
OPTIMIZERS = [weights.Training("adam", 0.01), weights.Training("adagrad", 0.05), weights.Training("sgd", 0.01)]
TORCH_METHODS = ("pytorch", "pytorch-levels")
TREE_METHODS = ("static", "dynamic", "iteration", "iteration-in-loop", "levels", "unrolled", *TORCH_METHODS)
BATCH_METHODS = ("static", "static-by-depth", "iteration", "iteration-in-loop", "levels", "unrolled", *TORCH_METHODS)
TOPDOWN_METHODS = ("static", "dynamic", *TORCH_METHODS)


@pytest.fixture(scope="module")
def source():
    trees = [data.binarize(tree) for tree in treebank.generate_trees(400) if len(tree) <= 17]
    trees.insert(1, data.binarize(treebank.parse_tree("(4 superb)")))  # a root that is a leaf
    return suite.Input(trees[:6], trees[1:5], treebank.vocabulary(trees[:6]), "generated treebank")


def _available(names):
    return tuple(name for name in names if name not in TORCH_METHODS or suite.HAS_TORCH)


# --- Data ---------------------------------------------------------------------------------------------------------


def test_binarize_takes_neutral_for_negative():
    tree = data.binarize(treebank.parse_tree("(4 (3 (0 a) (1 b)) (2 c))"))
    assert tree.labels == (0, 0, 1, 0, 1)
    assert tree.words == ("a", "b", None, "c", None)


def test_load_sentiment_takes_the_shortest_trees_of_clear_sentiment(tmp_path):
    words = "a b c d e f".split()
    texts = {0: [], 4: []}
    for label, found in texts.items():
        for length in (5, 2, 4, 1, 3, 6):
            text = f"({label} {words[0]})"
            for word in words[1:length]:
                text = f"({label} {text} (2 {word}))"
            found.append(treebank.parse_tree(text))
    for split, trees in zip(treebank.SPLITS, (texts[0], texts[4], [treebank.parse_tree("(3 x)")] * 9), strict=True):
        write_trees(tmp_path / f"{split}.txt", trees)

    splits = data.load_sentiment(tmp_path, train=4, dev=4, test=2)
    described = [sorted((tree.labels[-1], len(tree.leaves())) for tree in split) for split in _parts(splits)]
    assert described == [[(0, 1), (0, 2), (1, 1), (1, 2)], [(0, 3), (0, 4), (1, 3), (1, 4)], [(0, 5), (1, 5)]]
    assert data.load_sentiment(tmp_path, train=4, dev=4, test=2) == splits
    with pytest.raises(ValueError, match="Treebank: 7 trees with root label 0 are needed, it has 6"):
        data.load_sentiment(tmp_path, train=14, dev=0, test=0)


@pytest.mark.thorough
def test_load_sentiment_generates_as_many_trees_as_the_paper_uses():
    splits = data.load_sentiment()
    assert [len(split) for split in _parts(splits)] == [700, 100, 200]
    assert [sum(tree.labels[-1] for tree in split) for split in _parts(splits)] == [350, 50, 100]


def _parts(splits):
    return splits.train, splits.dev, splits.test


def test_levels_come_in_the_order_of_their_ranks():
    trees = [treebank.parse_tree("(3 (2 a) (4 (2 b) (2 a)))"), treebank.parse_tree("(3 (2 a) (2 b))")]
    forest = treebank.to_forest(trees, {})
    assert data.heights(forest).tolist() == [0, 0, 0, 1, 2, 0, 0, 1]
    assert data.depths(forest).tolist() == [1, 2, 2, 1, 0, 1, 1, 0]
    levels = data.levels(data.heights(forest), np.flatnonzero(~forest.is_leaf))
    assert [level.tolist() for level in levels] == [[3, 7], [4]]


def test_to_heap_puts_children_at_twice_their_parents_place():
    tree = treebank.parse_tree("(3 (2 a) (4 (1 b) (0 c)))")
    heap = data.to_heap(treebank.to_forest([tree], {"a": 1, "b": 2, "c": 3}))
    assert heap.words.tolist() == [0, 0, 1, 0, 0, 0, 2, 3]
    assert heap.labels.tolist() == [0, 3, 2, 4, 0, 0, 1, 0]
    assert heap.is_leaf.tolist() == [False, False, True, False, False, False, True, True]


def test_to_heap_refuses_trees_that_would_take_too_much_room():
    deep = treebank.parse_tree("(1 (2 a) " * 21 + "(2 b)" + ")" * 21)
    with pytest.raises(ValueError, match=r"a tree of depth 21 takes 2\^22 places, at most 2\^21"):
        data.to_heap(treebank.to_forest([deep], {}))
    with pytest.raises(ValueError, match="expected one tree, got 2"):
        data.to_heap(treebank.to_forest([deep, deep], {}))


# --- The reference ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("net", weights.NETS)
def test_reference_gradients_equal_finite_differences(net, source):
    forest = treebank.to_forest(source.train, source.words)
    start = weights.make_weights(net, len(source.words) + 1, DIM, seed=1)
    values = {name: value.astype(np.float64) for name, value in start.items()}
    _, gradients = reference.loss_and_gradients(net, values, forest, l2=0.02)
    generator = np.random.default_rng(2)
    for name, value in values.items():
        direction = generator.normal(size=value.shape)
        step = 1e-6 * direction
        up, down = (
            reference.loss_and_gradients(net, {**values, name: value + change}, forest, l2=0.02)[0]
            for change in (step, -step)
        )
        assert (up - down) / 2e-6 == pytest.approx((gradients[name] * direction).sum(), rel=1e-5, abs=1e-7)


# --- Every method -------------------------------------------------------------------------------------------------


def _check(net, batch, training, methods, source):
    spec = suite.Spec(net, DIM, batch, training, _available(methods), trees=6)
    result = harness.run_case(suite.make_case(spec, source, seed=1), repeats=0)
    assert list(result.variants) == list(spec.methods)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("net", "batch", "methods"),
    [
        ("treernn", 1, TREE_METHODS),
        ("treernn", 3, BATCH_METHODS),
        ("treelstm", 1, TREE_METHODS),
        ("treelstm", 4, BATCH_METHODS),
        ("topdown", 1, TOPDOWN_METHODS),
        ("topdown", 2, TOPDOWN_METHODS),
    ],
)
@pytest.mark.parametrize("mode", [suite.INFERENCE, suite.TRAINING])
@pytest.mark.thorough
def test_every_method_equals_the_reference(net, batch, methods, mode, source):
    training = weights.BENCHMARK_TRAINING if mode == suite.TRAINING else None
    _check(net, batch, training, methods, source)


@pytest.mark.sampled(3)
@pytest.mark.thorough
@pytest.mark.parametrize("training", OPTIMIZERS, ids=lambda training: training.optimizer)
def test_losses_are_equal_whatever_the_optimizer(training, source):
    _check("treernn", 2, training, ("static", "iteration", *TORCH_METHODS), source)


@pytest.mark.thorough
def test_five_classes_are_told_at_every_node_by_every_method(source):
    _check(
        "treernn5", 1, None, ("static", "dynamic", "iteration-all-in-loop", "iteration-in-loop", *TORCH_METHODS), source
    )


@pytest.mark.parametrize(("net", "batch"), [("treernn", 3), ("treelstm", 1), ("topdown", 2)])
def test_nets_of_long_vectors_classify_each_node(net, batch, source, monkeypatch):
    monkeypatch.setattr(recursion, "LONG_VECTOR", DIM)
    _check(net, batch, weights.BENCHMARK_TRAINING, ("static", "dynamic"), source)


@pytest.mark.thorough
def test_paper_form_trains_as_the_natural_one(source):
    _check("treernn", 1, weights.PAPER_TRAINING, ("static", "paper-form"), source)


# --- The suite ----------------------------------------------------------------------------------------------------


def test_plan_has_every_net_mode_size_and_batch():
    specs = suite.plan("treernn", (35, 50), (1, 5))
    names = [spec.name for spec in specs]
    assert len(set(names)) == len(names)
    grid = {f"treernn-{mode}-d{dim}-b{batch}" for mode in ("train", "infer") for dim in (35, 50) for batch in (1, 5)}
    unrolled = {f"treernn-{mode}-d{dim}-b1-unrolled" for mode in ("train", "infer") for dim in (35, 50)}
    five_classes = {f"treernn5-infer-d{dim}-b1" for dim in (35, 50)}
    assert set(names) == grid | unrolled | five_classes | {"treernn-train-d35-b1-paper"}
    assert [spec.methods for spec in suite.plan("treernn", (50,), (25,)) if spec.label == suite.WORKERS_LABEL] == [
        ("static-one-worker", "static-two-workers")
    ]
    assert {spec.net for spec in suite.plan("treelstm", (50,), (1,))} == {"treelstm", "topdown"}
    assert all(spec.training is None for spec in suite.plan("treernn", (50,), (1,), infer_only=True))


@pytest.mark.parametrize(("batch", "is_calling"), [(1, True), (2, False)])
@pytest.mark.parametrize("is_static", [True, False])
def test_a_step_over_one_tree_runs_on_the_calling_thread(batch, is_calling, is_static, source):
    case = suite.make_case(suite.Spec("treernn", DIM, batch, None, ("static",), trees=batch), source, seed=1)
    (setting,) = case.variants[0].build.args
    threads = set()

    def note(i):
        threads.add(threading.get_ident())
        time.sleep(0.01)  # longer than a worker keeps a thread of a pool
        return i

    with tf.Graph().as_default():
        node = tfr.Declare("Node", [("i", tf.int32)], [("y", tf.int32)])

        @tfr.Defun(tf.int32, func_name="Node", out_names=["y"])
        def node_impl(i):
            i = tf.ensure_shape(tf.numpy_function(note, [i], tf.int32), [])
            return tf.cond(i < 1, lambda: i, lambda: node(i - 1))

        y = node_impl(3)
        config = setting.session_config
        with tf1.Session(config=tfr.session_config(config) if is_static else config) as session:
            assert session.run(y) == 0
    assert (threads == {threading.get_ident()}) == is_calling


def test_input_comes_from_the_given_directory(tmp_path):
    for split in ("train", "test"):
        write_trees(tmp_path / f"{split}.txt", [treebank.parse_tree(f"(4 (2 {split}) (2 it))")] * 3)
    loaded = suite.load_input(tmp_path)
    assert (len(loaded.train), len(loaded.test)) == (3, 3)
    assert loaded.train[0].labels == (0, 0, 1)
    assert loaded.words == {"it": 1, "train": 2}


def test_make_case_names_the_case_when_there_are_too_few_trees(source):
    spec = suite.Spec("treernn", DIM, 7, None, ("static",), trees=7)
    with pytest.raises(ValueError, match="Case 'treernn-infer-d3-b7': a batch takes 7 trees, there are 4"):
        suite.make_case(spec, source, seed=1)


# --- The example --------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_sentiment_example_learns_and_shows_a_tree(tmp_path):
    done = processes.run_python("examples/treernn_sentiment.py", "--quick", "--out", tmp_path, directory=ROOT)
    assert done.returncode == 0, done.stderr
    accuracy = re.search(r"^test: sentences ([0-9.]+)%, phrases ([0-9.]+)%$", done.stdout, re.MULTILINE)
    assert float(accuracy[1]) > 80  # half of them are positive
    assert float(accuracy[2]) > 80
    assert re.search(r"^[01]\.\d\d .*\n├── [01]\.\d\d ", done.stdout, re.MULTILINE)
    assert {"curves.png", "treernn.index"} <= {path.name for path in tmp_path.iterdir()}
