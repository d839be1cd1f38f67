"""The benchmark suite: its treebank, its programs, its measuring and its command."""
# SPDX-License-Identifier: Apache-2.0

import dataclasses
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import processes
import pytest
from limits import HANG_SECONDS
from tree_files import write_trees

from benchmarks import __main__ as command
from benchmarks import harness, mixed, profiles, recursion_suite, treebank, workloads
from benchmarks.figures import Figure, from_cases

ROOT = Path(__file__).resolve().parents[3]
SENTENCE = "(3 (2 It) (4 (4 (2 's) (4 (3 (2 a) (4 (3 lovely) (2 film))) (2 8\N{NO-BREAK SPACE}1\\/2))) (2 .)))"


# --- Treebank -----------------------------------------------------------------------------------------------------


def test_parse_tree_numbers_nodes_in_post_order():
    tree = treebank.parse_tree("(3 (2 It) (4 (1 's) (0 lovely)))")
    assert tree.words == ("It", "'s", "lovely", None, None)
    assert tree.labels == (2, 1, 0, 4, 3)
    assert tree.left == (-1, -1, -1, 1, 0)
    assert tree.right == (-1, -1, -1, 2, 3)
    assert tree.root == 4


def test_format_tree_gives_back_what_was_parsed():
    assert treebank.format_tree(treebank.parse_tree(SENTENCE)) == SENTENCE


def test_parse_tree_takes_a_tree_of_any_depth():
    depth = 20_000
    text = "(2 a)"
    text = "(1 (2 a) " * depth + text + ")" * depth
    tree = treebank.parse_tree(text)
    assert len(tree) == 2 * depth + 1
    assert tree.right[tree.root] == tree.root - 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column 1: expected '(', got the end of the line"),
        ("(3 (2 a)", "column 9: expected ')', got the end of the line"),
        ("(5 a)", "column 2: expected a label 0..4, got '5'"),
        ("word", "column 1: expected '(', got 'word'"),
        ("(3 a b)", "column 7: expected a label with one word or with two subtrees"),
        ("(3 (2 a))", "column 9: expected a label with one word or with two subtrees"),
        ("(3 (2 a) (2 b) (2 c))", "column 21: expected a label with one word or with two subtrees"),
        ("(3 (2 a) b)", "column 11: expected a label with one word or with two subtrees"),
        ("(3)", "column 3: expected a label with one word or with two subtrees"),
        ("(3 a) (2 b)", "column 7: expected the end of the tree, got '('"),
    ],
)
def test_parse_tree_says_what_is_wrong_when_the_text_is_no_tree(text, message):
    with pytest.raises(treebank.BrokenTree) as caught:
        treebank.parse_tree(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["dev.txt", "dev.txt.gz"])
def test_treebank_files_round_trip(tmp_path, name):
    trees = [*treebank.generate_trees(20), treebank.parse_tree(SENTENCE)]
    write_trees(tmp_path / name, trees)
    assert treebank.load_split(tmp_path, "dev") == trees
    data = (tmp_path / name).read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    assert text.splitlines()[-1] == SENTENCE


def test_read_trees_names_file_and_line_when_a_line_is_broken(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("(2 a)\n\n(2 b\n")
    with pytest.raises(treebank.BrokenTree, match=r"train\.txt:3: column 5: expected '\)'"):
        treebank.load_split(tmp_path, "train")


def test_load_split_says_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"neither test\.txt nor test\.txt\.gz"):
        treebank.load_split(tmp_path, "test")


def test_generated_treebank_is_deterministic_and_like_the_real_one():
    trees = treebank.generate_split("train", 500)
    assert trees == treebank.generate_split("train", 500)
    assert trees[:50] != treebank.generate_split("dev", 50)
    words = [len(tree.leaves()) for tree in trees]
    assert 17 < np.mean(words) < 21
    assert min(words) >= 2
    assert max(words) <= 52
    assert {label for tree in trees for label in tree.labels} == {0, 1, 2, 3, 4}


def test_to_forest_numbers_known_words_and_gives_unknown_ones_zero():
    tree = treebank.parse_tree("(3 (2 a) (4 (2 b) (2 a)))")
    words = treebank.vocabulary([tree])
    assert words == {"a": 1, "b": 2}
    forest = treebank.to_forest([treebank.parse_tree("(3 (2 b) (2 new))")], words)
    assert forest.words.tolist() == [2, 0, 0]
    assert forest.is_leaf.tolist() == [True, True, False]
    assert (forest.left.tolist(), forest.right.tolist()) == ([0, 0, 0], [0, 0, 1])
    assert forest.labels.tolist() == [2, 2, 3]
    assert forest.roots.tolist() == [2]
    assert forest.words.dtype == forest.left.dtype == forest.labels.dtype == np.int32


def test_to_forest_puts_tree_after_tree():
    trees = [treebank.parse_tree(text) for text in ("(3 (2 a) (2 b))", "(1 c)", "(3 (2 a) (4 (2 b) (2 a)))")]
    forest = treebank.to_forest(trees, treebank.vocabulary(trees))
    assert forest.roots.tolist() == [2, 3, 8]
    assert forest.left.tolist() == [0, 0, 0, 0, 0, 0, 0, 5, 4]
    assert forest.right.tolist() == [0, 0, 1, 0, 0, 0, 0, 6, 7]


# --- Programs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("workload", "size", "value"),
    [
        (workloads.FIB, (10,), 55),
        (workloads.ACK, (2, 3), 9),
        (workloads.TAK, (6, 4, 2), 3),
        (workloads.PRIMES, (7500,), 42209),
        (workloads.SUM, (1_000_000,), 500_000_500_000),
    ],
)
def test_oracles_give_the_known_values(workload, size, value):
    assert workload.expected(size) == value


@pytest.mark.parametrize(
    ("workload", "size"),
    [
        (workloads.FIB, (9,)),
        (workloads.ACK, (2, 2)),
        (workloads.TAK, (6, 4, 2)),
        *((workloads.PRIMES, (n,)) for n in (0, 1, 2, 9)),
    ],
)
def test_every_variant_of_a_program_equals_its_oracle(workload, size):
    result = harness.run_case(recursion_suite.make_case(workload, size), repeats=0)
    assert list(result.variants) == ["static", "dynamic", "cpython"]


def test_two_workers_on_a_program_of_numbers_are_judged_against_one():
    result = harness.run_case(recursion_suite.make_workers_case(workloads.FIB, (9,)), repeats=1)
    assert list(result.variants) == ["static-one-worker", "static-two-workers"]
    (figure,) = from_cases([result])
    assert (figure.name, figure.limit) == ("fib(9) of two workers over one", 1.6)
    assert figure.value == result.ratio("static-one-worker", "static-two-workers")


def test_make_case_names_the_program_when_its_size_has_the_wrong_arity():
    with pytest.raises(ValueError, match="Size of 'tak': expected 3 numbers, got 1"):
        recursion_suite.make_case(workloads.TAK, (5,))
    with pytest.raises(ValueError, match="Size of 'tak': expected 3 numbers, got 1"):
        recursion_suite.make_workers_case(workloads.TAK, (5,))


# --- Measuring ----------------------------------------------------------------------------------------------------


def _fake_case(order, wrong=()):
    def variant(name):
        def run(value):
            order.append(name)
            return value + (name in wrong)

        return harness.Variant(name, lambda: harness.PlainRunner(run))

    def check(number, got):
        if got != number:
            raise harness.WrongResult(f"expected {number}, got {got}")

    variants = [variant("a"), variant("b")]
    return harness.Case("fake", "fake(2)", variants, [(0,), (1,)], check, [("b", "a")], sample_seconds=0.0)


def test_run_case_interleaves_the_variants():
    order = []
    result = harness.run_case(_fake_case(order), repeats=3)
    checked_and_warm = ["a", "a", "b", "b"] * 2
    assert order == checked_and_warm + ["a", "a", "b", "b"] + ["b", "b", "a", "a"] + ["a", "a", "b", "b"]
    assert {len(variant.samples) for variant in result.variants.values()} == {3}


def test_run_case_warms_up_for_longer_and_parts_a_round_where_the_case_says_so():
    order = []
    case = dataclasses.replace(_fake_case(order), warm_up_passes=3, parts=2)
    result = harness.run_case(case, repeats=2)
    checked_and_warm = ["a", "a", "b", "b"] + ["a"] * 6 + ["b"] * 6
    a_first, b_first = ["a", "a", "b", "b"], ["b", "b", "a", "a"]
    assert order == checked_and_warm + a_first + b_first + b_first + a_first
    assert {len(variant.samples) for variant in result.variants.values()} == {4}


def test_run_case_refuses_to_time_a_wrong_result():
    order = []
    with pytest.raises(harness.WrongResult, match=r"fake\(2\), b, call 0: expected 0, got 1"):
        harness.run_case(_fake_case(order, wrong=("b",)), repeats=3)
    assert order == ["a", "a", "b"]


def test_run_case_refuses_a_static_variant_that_ran_dynamically():
    case = recursion_suite.make_case(workloads.FIB, (4,))
    dynamic = dataclasses.replace(case.variants[1], static=True)
    with pytest.raises(harness.NotStatic, match=r"fib\(4\), dynamic: the session ran the calls dynamically"):
        harness.run_case(dataclasses.replace(case, variants=[dynamic]), repeats=0)


def test_result_line_has_medians_and_ratios():
    case = _fake_case([])
    variants = {
        "a": harness.VariantResult("a", 0.1, 0.2, [0.001, 0.002, 0.003]),
        "b": harness.VariantResult("b", 0.1, 0.2, [0.004, 0.008, 0.012]),
    }
    result = harness.CaseResult(case, variants)
    assert result.line() == "RESULT suite=fake case=fake(2) a=2ms b=8ms b/a=4.00x"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5e-6, "1.5us"), (9.996e-4, "1000us"), (0.0123, "12.3ms"), (0.9999, "1000ms"), (1.0, "1s"), (12.34, "12.3s")],
)
def test_format_seconds_has_three_digits_and_a_unit(seconds, text):
    assert harness.format_seconds(seconds) == text


def test_figure_says_whether_its_limit_is_kept():
    assert Figure("speed", 13.0, 12.0, " times", at_least=True).line() == (
        "FIGURE pass speed: 13 times, wanted at least 12 times"
    )
    assert Figure("time", 1.5, 1.0, " s").line() == "FIGURE FAIL time: 1.5 s, wanted at most 1 s"
    assert Figure("speed", 2.0, None, " times").line() == "FIGURE report speed: 2 times"


def _net_figures(suite, mode, dim, batch, names, label=""):
    details = {"mode": mode, "dim": dim, "batch": batch, "label": label}
    case = dataclasses.replace(_fake_case([]), suite=suite, name="net", details=details)
    variants = {name: harness.VariantResult(name, 0.1, 0.1, [2.0]) for name in names}
    judged = from_cases([harness.CaseResult(case, variants)])
    return {figure.name.split()[-1]: figure.limit for figure in judged}


def test_treernn_figures_are_judged_where_a_limit_is_promised():
    def figures(mode, dim, batch, label=""):
        names = ("static", "iteration", "iteration-in-loop", "iteration-all-in-loop")
        return _net_figures("treernn", mode, dim, batch, names, label)

    assert figures("training", 50, 1) == {"iteration": None, "iteration-in-loop": 4.0}
    assert figures("training", 300, 1) == {"iteration": None, "iteration-in-loop": 2.5}
    assert figures("training", 50, 25) == {"iteration": 3.0, "iteration-in-loop": None}
    assert figures("training", 35, 5) == {"iteration": None, "iteration-in-loop": None}
    assert figures("inference", 50, 1) == {"iteration": None, "iteration-in-loop": None, "iteration-all-in-loop": 3.0}
    assert figures("inference", 300, 1) == {"iteration": None, "iteration-in-loop": None}
    assert figures("training", 50, 1, "-unrolled") == {}


def test_nets_are_judged_against_pytorch_and_levels_in_the_cases_of_the_table():
    def figures(suite, mode, dim, batch):
        return _net_figures(suite, mode, dim, batch, ("static", "levels", "pytorch", "pytorch-levels"))

    reported = {"levels": None, "pytorch": None, "pytorch-levels": None}
    assert figures("treernn", "training", 50, 1) == reported | {"levels": 3.0, "pytorch": 4.0}
    assert figures("treernn", "training", 300, 25) == reported | {"levels": 0.9, "pytorch": 3.5}
    assert figures("treernn", "inference", 50, 25) == reported | {"levels": 1.3, "pytorch": 3.0}
    assert figures("treernn", "training", 150, 100) == figures("treernn5", "inference", 50, 1) == reported
    for net in ("treelstm", "topdown"):
        assert figures(net, "training", 50, 10) == {"pytorch": 3.0, "pytorch-levels": None}
        assert figures(net, "inference", 50, 10) == {"pytorch": None, "pytorch-levels": None}


def test_two_workers_are_judged_against_one():
    workers = ("static-one-worker", "static-two-workers")
    assert _net_figures("treernn", "training", 50, 25, workers, "-workers") == {"one": 1.5}


@pytest.mark.sampled(3)
@pytest.mark.thorough
@pytest.mark.parametrize("name", list(mixed.MAIN_GRAPHS))
def test_main_graphs_compute_the_same_beside_a_call(name):
    (case,) = mixed.make_cases([name], threads=[2])
    result = harness.run_case(case, repeats=0)
    assert list(result.variants) == ["stock", "stock-again", "with-call", "switch-on", "dynamic-call"]


def test_a_call_beside_a_large_main_graph_is_judged():
    def limit(main_graph):
        names = ("stock", "stock-again", "with-call")
        case = dataclasses.replace(_fake_case([]), suite="mixed", details={"main_graph": main_graph})
        variants = {name: harness.VariantResult(name, 0.1, 0.1, [2.0]) for name in names}
        (figure,) = mixed.figures([harness.CaseResult(case, variants)])
        assert figure.value == 1.0
        return figure.limit

    assert limit("convolutional") == limit("chains") == 1.03
    assert limit("small") is None
    assert mixed.figures([harness.CaseResult(_fake_case([]), {})]) == []


# --- What newcomers run -------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_ten_line_example_prints_its_result():
    code = (ROOT / "examples" / "fib.py").read_text()
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=HANG_SECONDS)
    assert done.stdout == "6765\n", done.stderr


@pytest.mark.parametrize(
    ("source", "constant", "pages"),
    [
        ("cc/base/options.h", "kDefaultMaxDepth", ["README.md", "docs/errors.md"]),
        ("cc/kernels/invoke_op.h", "kDefaultDynamicMaxDepth", ["docs/errors.md"]),
    ],
)
def test_documented_limits_are_the_ones_in_the_code(source, constant, pages):
    value = re.search(rf"{constant} = ([0-9']+);", (ROOT / source).read_text()).group(1)
    for page in pages:
        assert value.replace("'", ",") in (ROOT / page).read_text()


# --- The command --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fob"], f"unknown name 'fob', choose from {', '.join(command.NAMES)}"),
        (["--sizes", "fib"], "--sizes: 'fib': expected whole numbers after 'fib='"),
        (["--sizes", "fob=1"], "--sizes: 'fob=1': expected NAME=N[,N..] with a name of fib, ack, tak"),
        (["--sizes", "tak=1,2"], "--sizes: 'tak=1,2': 'tak' takes 3 numbers"),
        (["--repeats", "0"], "--repeats: expected at least 1, got 0"),
        (["--dims", "50", "0"], "--dims: expected at least 1, got 0"),
        (["fib", "--strict"], "--strict: no figure is judged by fib; name figures as well"),
        (["power", "--quick", "--strict"], "--strict: no figure is judged by power"),
        (["--sst", "nowhere"], "--sst: nowhere has neither test.txt nor test.txt.gz"),
    ],
)
def test_command_says_what_is_wrong_with_its_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        command.parse_arguments(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["profile", "power"], "profile: 'power' has no profile, choose from fib,"),
        (["profile", "--strict"], "--strict: a profile judges no figure"),
    ],
)
def test_profile_says_what_it_cannot_do(arguments, message, capsys):
    with pytest.raises(SystemExit):
        command.parse_arguments(arguments)
    assert message in capsys.readouterr().err


def test_profile_runs_by_itself_and_only_when_it_is_named():
    options = command.parse_arguments(["profile"])
    assert (options.profiles, options.names, options.dims, options.batches) == (True, ["treernn"], [50, 300], [1, 25])
    assert command.parse_arguments(["profile", "fib"]).names == ["fib"]
    assert not command.parse_arguments([]).profiles
    assert "profile" not in command.parse_arguments([]).names


def test_profile_counts_the_kernels_of_static_runs():
    case = recursion_suite.make_case(workloads.FIB, (5,))
    (profile,) = profiles.run([case], lambda text: None)
    assert (profile.case, profile.variant, profile.item) == ("fib(5)", "static", "call")
    assert {part.where for part in profile.parts} >= {profiles.EXECUTOR, profiles.RELEASES, profiles.OUTSIDE}
    assert sum(part.microseconds for part in profile.parts) == pytest.approx(profile.microseconds)
    assert profile.frame_bytes > 0
    counted = {
        "bodies": {"MatMul": (40, 8_000)},
        "main_graph": {"Sum": (10, 1_000)},
        "busy_nanoseconds": 12_000,
        "release_nanoseconds": 500,
    }
    parts = {(part.where, part.op): (part.count, part.microseconds) for part in profiles.parts_of(counted, 2e-5, 10)}
    assert parts[profiles.BODIES, "MatMul"] == (4.0, pytest.approx(0.8))
    assert parts[profiles.MAIN_GRAPH, "Sum"] == (1.0, pytest.approx(0.1))
    assert parts[profiles.EXECUTOR, ""] == (None, pytest.approx(0.25))
    assert parts[profiles.OUTSIDE, ""] == (None, pytest.approx(0.8))


def test_command_takes_names_between_options():
    options = command.parse_arguments(["fib", "--repeats", "2", "treernn", "--infer-only", "--sizes", "fib=3"])
    assert options.names == ["fib", "treernn"]
    assert options.sizes == {"fib": (3,)}


@pytest.mark.parametrize("name", ["treernn", "treelstm"])
def test_strict_judges_nets_by_themselves_unless_the_run_is_a_quick_one(name, capsys):
    assert command.parse_arguments([name, "--strict"]).strict
    with pytest.raises(SystemExit):
        command.parse_arguments([name, "--strict", "--quick"])
    assert f"no figure is judged by {name}" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--quick", "--demo"])
def test_demo_runs_the_programs_and_the_treernn(flag):
    assert command.parse_arguments([flag]).names == ["fib", "ack", "tak", "primes", "simpson", "tictactoe", "treernn"]


@pytest.mark.parametrize(
    ("strict", "values", "status"),
    [(True, [13.0, 14.0], 0), (True, [13.0, 11.9], 1), (False, [13.0, 11.9], 0), (True, [None, 13.0], 0)],
)
def test_strict_turns_a_missed_figure_into_the_status(monkeypatch, capsys, strict, values, status):
    figures = [
        Figure(f"speed {i}", value or 1.0, 12.0 if value else None, " times", at_least=True)
        for i, value in enumerate(values)
    ]
    report = {"figures": [figure.as_json() for figure in figures]}
    monkeypatch.setattr(command, "run_suites", lambda *_: report)
    assert command.main(["figures", *["--strict"] * strict]) == status
    assert ("MISSED 1: speed 1" in capsys.readouterr().out) == (status == 1)


# The command. The Python that it starts in processes of their own is forked, too: each would import TensorFlow first.
_COMMAND = """
import subprocess, sys
import processes
from benchmarks import __main__ as command

def run(arguments, *, cwd=None, timeout=None, **options):
    if arguments[0] == sys.executable:
        return processes.run_python(*arguments[1:], directory=cwd)
    return start(arguments, cwd=cwd, timeout=timeout, **options)

start, subprocess.run = subprocess.run, run
sys.exit(command.main())
"""


def _run_command(*arguments):
    done = processes.run_python("-c", _COMMAND, *arguments, directory=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmarks")
    arguments = ["fib", "treernn", "figures", "--repeats", "1", "--dims", "4", "--batches", "1", "2", "--infer-only"]
    arguments += ["--json", str(folder / "out.json"), "--out", str(folder / "plots")]
    arguments += ["--sizes", "fib=8", "trees=3", "sum=1000"]
    stdout = _run_command(*arguments)
    return dataclasses.make_dataclass("Smoke", ["stdout", "report", "plots"])(
        stdout, json.loads((folder / "out.json").read_text()), folder / "plots"
    )


@pytest.mark.thorough
def test_command_prints_a_header_then_one_line_a_case(smoke):
    lines = smoke.stdout.splitlines()
    assert lines[0].startswith("HEADER commit=")
    for word in ("tensorflow=", "device=", "threads=", "seed=", "session_call="):
        assert word in lines[0]
    cases = [line.split()[2] for line in lines if line.startswith("RESULT ")]
    assert cases == [
        "case=fib(8)",
        "case=fib(32)",  # by one and by two workers
        "case=treernn-infer-d4-b1",
        "case=treernn-infer-d4-b2",
        "case=treernn-infer-d4-b1-unrolled",
        "case=treernn5-infer-d4-b1",
        "case=latency",
        "case=no-call-mlp",
        "case=no-call-while-loop",
    ]
    assert sum(line.startswith("FIGURE ") for line in lines) == 16
    assert sum(line.startswith("NOTE unrolled: 3 graphs") for line in lines) == 1


@pytest.mark.thorough
def test_command_writes_no_control_characters_when_stdout_is_no_terminal(smoke):
    assert [c for c in smoke.stdout if ord(c) < 32 and c != "\n"] == []


@pytest.mark.thorough
def test_command_writes_json_of_the_documented_form(smoke):
    report = smoke.report
    assert report["schema"] == harness.SCHEMA_VERSION
    assert report["repeats"] == 1
    assert set(report["environment"]) == {"commit", "versions", "device", "threads", "seed", "session_call"}
    for case in report["cases"]:
        assert {"suite", "case", "item", "items", "checked", "variants", "ratios"} <= set(case)
        assert case["checked"] is True
        for variant in case["variants"].values():
            assert set(variant) == {
                "build_seconds",
                "first_run_seconds",
                "median_seconds",
                "per_second",
                "spread",
                "samples_seconds",
            }
            # One a round: three rounds of short runs, five parts of the round of nets that run in batches.
            in_batches = case.get("batch", 1) > 1
            expected = 3 if case["case"].startswith("no-call") else 5 if in_batches else 1
            assert len(variant["samples_seconds"]) == expected, case["case"]
    for figure in report["figures"]:
        assert set(figure) == {"name", "value", "limit", "unit", "at_least", "kept"}
    assert report["sum"]["value"] == 500500


@pytest.mark.thorough
def test_command_draws_a_chart_a_suite(smoke):
    charts = sorted(path.name for path in smoke.plots.iterdir())
    assert charts == ["figures.png", "recursion.png", "treernn.png", "treernn5.png"]
    for path in smoke.plots.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_distributed_starts_a_cluster_and_judges_its_four_cases(tmp_path):
    arguments = ["distributed", "--quick", "--repeats", "1"]
    arguments += ["--json", str(tmp_path / "out.json"), "--out", str(tmp_path)]
    _run_command(*arguments)
    report = json.loads((tmp_path / "out.json").read_text())
    cases = [case["case"] for case in report["cases"]]
    assert cases == ["fib(12)-devices", "fib(8)-processes", "treernn-table", "16-leaves"]
    assert report["distributed"]["devices"]["pairs_per_call"] > report["distributed"]["devices"]["crossing_edges"] > 0
    assert report["distributed"]["processes"]["messages_per_call"] > 1
    limits = [figure["limit"] for figure in report["figures"] if figure["limit"] is not None]
    assert limits == [2.0, 1.3, 1.7]


@pytest.mark.slow
def test_tensorflow2_runs_in_a_process_of_its_own(tmp_path):
    arguments = [
        "tensorflow2",
        "--quick",
        "--repeats",
        "1",
        "--json",
        str(tmp_path / "out.json"),
        "--out",
        str(tmp_path),
    ]
    _run_command(*arguments)
    report = json.loads((tmp_path / "out.json").read_text())
    cases = {case["case"]: set(case["variants"]) for case in report["tensorflow2"]}
    both = {"static", "tf.function"}
    assert cases["tf2-fib(20)"] == cases["tf2-treernn-train-d50-all-trees"] == both
    for case in ("infer-d50", "train-d50", "train-d50-b25"):
        assert cases[f"tf2-treernn-{case}"] == {*both, "concrete"}
    limits = [figure["limit"] for figure in report["figures"]]
    assert limits == [1.15, 1.15, 1.25, None, None, 1.25, 1.25, 2.0, 12.0, None, 1.3]
