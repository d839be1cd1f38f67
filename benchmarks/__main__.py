"""The command `python -m benchmarks`: chooses suites and sizes, runs them, prints and stores what came out."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from benchmarks.figures import Figure
    from benchmarks.harness import Case, CaseResult
    from benchmarks.nets.suite import Spec

RECURSION_NAMES = ("fib", "ack", "tak", "primes", "simpson", "tictactoe")
NET_NAMES = ("treernn", "treelstm")
NAMES = (*RECURSION_NAMES, *NET_NAMES, "power", "distributed", "figures", "prepare", "tensorflow2", "mixed", "profile")
SLOW_NAMES = (
    "treelstm",
    "power",
    "distributed",
    "figures",
    "prepare",
    "tensorflow2",
    "mixed",
)  # --quick leaves them out unless they are named
PROFILED_NAMES = (*RECURSION_NAMES, *NET_NAMES)  # what `profile` takes
PROFILED_DIMS = (50, 300)
PROFILED_BATCHES = (1, 25)
DEFAULT_REPEATS = 9
DEFAULT_OUT = Path(__file__).resolve().parent / "results"
QUICK_REPEATS = 5
PREPARE_REPEATS = 3  # a round takes minutes
SEED = 20260101

# What the progress bar counts: the variants of a suite, which are built one by one, and the rounds of its cases. (Of
# the figures' three cases, two run three times as many.)
_VARIANTS = dict.fromkeys(RECURSION_NAMES, 3) | {
    "power": 20,
    "figures": 10,
    "distributed": 11,
    "tensorflow2": 1,
    "mixed": 30,
}
_ROUND_CASES = dict.fromkeys(RECURSION_NAMES, 1) | {
    "power": 7,
    "figures": 7,
    "distributed": 4,
    "tensorflow2": 0,
    "mixed": 6,
}
_PREPARE_STEPS = 72  # of a round: three measurements in two modes, of six workloads, of which two have more rounds


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measures static against dynamic recursion, and both against what one would use without them.",
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"what to run: {', '.join(NAMES)} (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every number to FILE")
    parser.add_argument(
        "--sst",
        type=Path,
        metavar="DIR",
        help="read Stanford Sentiment Treebank files from DIR (default: a generated treebank)",
    )
    parser.add_argument("--infer-only", action="store_true", help="nets: no training")
    parser.add_argument(
        "--quick",
        "--demo",
        dest="quick",
        action="store_true",
        help=f"small sizes, ends within two minutes; without {', '.join(SLOW_NAMES)} unless named",
    )
    parser.add_argument("--repeats", type=int, metavar="N", help=f"rounds of each case (default: {DEFAULT_REPEATS})")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, metavar="DIR", help="where plots go (%(default)s)")
    parser.add_argument("--dims", type=int, nargs="+", metavar="D", help="nets: vector sizes")
    parser.add_argument("--batches", type=int, nargs="+", metavar="B", help="nets: batch sizes")
    parser.add_argument(
        "--sizes",
        nargs="+",
        default=[],
        metavar="NAME=N[,N..]",
        help="arguments of a program, e.g. fib=24 tak=18,12,6; trees=N of the nets; power=N; sum=N of the figures",
    )
    parser.add_argument("--strict", action="store_true", help="exit with status 1 if a figure misses its limit")
    parser.set_defaults(profiles=False)
    options = parser.parse_intermixed_args(arguments)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"unknown name '{unknown[0]}', choose from {', '.join(NAMES)}")
    try:
        options.sizes = parse_sizes(options.sizes)
    except ValueError as error:
        parser.error(str(error))
    if options.repeats is not None and options.repeats < 1:
        parser.error(f"--repeats: expected at least 1, got {options.repeats}")
    for name in ("dims", "batches"):
        if min(getattr(options, name) or [1]) < 1:
            parser.error(f"--{name}: expected at least 1, got {min(getattr(options, name))}")
    if options.sst is not None and not any((options.sst / name).is_file() for name in ("test.txt", "test.txt.gz")):
        parser.error(f"--sst: {options.sst} has neither test.txt nor test.txt.gz")
    if not options.names:
        options.names = [name for name in NAMES if name != "profile" and not (options.quick and name in SLOW_NAMES)]
    if "profile" in options.names:
        _choose_profiled(parser, options)
    if options.strict and not _judging_names(options):
        parser.error(f"--strict: no figure is judged by {', '.join(options.names)}; name figures as well")
    options.prepare_repeats = options.repeats or (1 if options.quick else PREPARE_REPEATS)
    options.repeats = options.repeats or (QUICK_REPEATS if options.quick else DEFAULT_REPEATS)
    return options


def _choose_profiled(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Beside `profile`, names say what is profiled instead of measured: the TreeRNN if there are none."""
    options.names = [name for name in options.names if name != "profile"] or ["treernn"]
    wrong = [name for name in options.names if name not in PROFILED_NAMES]
    if wrong:
        parser.error(f"profile: '{wrong[0]}' has no profile, choose from {', '.join(PROFILED_NAMES)}")
    if options.strict:
        parser.error("--strict: a profile judges no figure")
    options.dims = options.dims or list(PROFILED_DIMS)
    options.batches = options.batches or list(PROFILED_BATCHES)
    options.profiles = True


def _judging_names(options: argparse.Namespace) -> list[str]:
    """The named suites that judge figures."""
    judging = {"distributed", "figures"} if options.quick else {*NET_NAMES, *SLOW_NAMES}
    return [name for name in options.names if name in judging]


def parse_sizes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Parses `name=1,2` items.

    Raises:
        ValueError: an item has another form, or its name or its count of numbers is unknown.
    """
    counts = {"fib": 1, "ack": 2, "tak": 3, "primes": 1, "simpson": 2, "tictactoe": 2, "trees": 1, "power": 1, "sum": 1}
    sizes = {}
    for text in texts:
        name, _, numbers = text.partition("=")
        if name not in counts:
            raise ValueError(f"--sizes: '{text}': expected NAME=N[,N..] with a name of {', '.join(counts)}")
        try:
            sizes[name] = tuple(int(number) for number in numbers.split(","))
        except ValueError:
            raise ValueError(f"--sizes: '{text}': expected whole numbers after '{name}='") from None
        if len(sizes[name]) != counts[name]:
            raise ValueError(f"--sizes: '{text}': '{name}' takes {counts[name]} numbers")
    return sizes


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the process's exit status.

    That is 1 if a result or a treebank was wrong, and, with `--strict`, if a figure missed its limit.
    """
    options = parse_arguments(sys.argv[1:] if arguments is None else arguments)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before TensorFlow is imported: its notes garble the output
    os.environ.setdefault("TENSORFLOW_RECURSION_SILENCE_DYNAMIC", "1")  # dynamic execution is what is compared with
    from rich.console import Console

    # Where nobody watches: plain text of a fixed width, no control characters whatever the environment says.
    is_watched = sys.stdout.isatty()
    console = Console(highlight=False, width=None if is_watched else 140, force_terminal=None if is_watched else False)
    import tensorflow as tf

    from benchmarks import harness, treebank

    tf.compat.v1.disable_eager_execution()
    try:
        report = run_suites(options, console)
    except (harness.WrongResult, harness.NotStatic) as error:
        console.print(f"WRONG {error}", soft_wrap=True, markup=False)
        return 1
    except treebank.BrokenTree as error:
        console.print(f"BROKEN {error}", soft_wrap=True, markup=False)
        return 1
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    missed = [figure["name"] for figure in report["figures"] if figure["kept"] is False]
    if options.strict and missed:
        console.print(f"MISSED {len(missed)}: {'; '.join(missed)}", soft_wrap=True, markup=False)
        return 1
    return 0


def run_suites(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Runs what `options` ask for, printing as it goes; returns the JSON report."""
    from benchmarks import figures, harness, mixed, power, prepare, tensorflow2

    environment = harness.environment(SEED)
    console.print(harness.header_line(environment), soft_wrap=True, markup=False)
    results: list[CaseResult] = []
    judged: list[Figure] = []
    report: dict[str, Any] = {"schema": harness.SCHEMA_VERSION, "environment": environment, "repeats": options.repeats}
    if options.profiles:
        return report | _run_profiles(options, console)

    with _progress(options, console) as step:
        for case in _cases(options):
            results.append(harness.run_case(case, options.repeats, step))
            details = results[-1].case.details
            for line in (results[-1].line(), *details.get("left_out", ()), *details.get("notes", ())):
                console.print(line, soft_wrap=True, markup=False)
        if "figures" in options.names:
            sum_size = options.sizes.get("sum", (1_000_000,))[0]
            own, own_figures, report["sum"] = figures.run_own(sum_size, options.repeats, step)
            for result in own:
                console.print(result.line(), soft_wrap=True, markup=False)
            judged = figures.from_cases(results) + own_figures
            results += own
        elif not options.quick:
            judged = figures.from_cases([result for result in results if "net" in result.case.details])
        if "distributed" in options.names:
            apart, apart_figures, report["distributed"] = _run_distributed(options, step)
            for result in apart:
                console.print(result.line(), soft_wrap=True, markup=False)
            judged += apart_figures
            results += apart
        if "power" in _judging_names(options):
            power_figures, report["power"] = power.figures(results, options.repeats, step)
            judged += power_figures
        if "prepare" in options.names:
            growths, prepare_figures = prepare.run(options.prepare_repeats, options.quick, step)
            for growth in growths:
                console.print(growth.line(), soft_wrap=True, markup=False)
            report["prepare"] = [{**dataclasses.asdict(growth), "exponent": growth.exponent} for growth in growths]
            judged += prepare_figures
        if "tensorflow2" in options.names:
            lines, report["tensorflow2"], tensorflow2_figures = tensorflow2.run(options.repeats, options.quick, step)
            for line in lines:
                console.print(line, soft_wrap=True, markup=False)
            judged += tensorflow2_figures
        if "mixed" in options.names:
            judged += mixed.figures(results)
        for figure in judged:
            console.print(figure.line(), soft_wrap=True, markup=False)

    report["cases"] = [result.as_json() for result in results]
    report["figures"] = [figure.as_json() for figure in judged]
    _print_tables(console, results, judged)
    for path in _write_plots(options.out, results, judged):
        console.print(f"PLOT {path.name}", soft_wrap=True, markup=False)
    console.print(f"Plots are in {options.out}", soft_wrap=True, markup=False)
    return report


def _run_profiles(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Profiles the cases, printing as it goes; returns what it adds to the JSON report."""
    from benchmarks import profiles

    found = []
    with _progress(options, console) as step:
        for profile in profiles.run(_cases(options), step):
            found.append(profile.as_json())
            for line in profile.lines():
                console.print(line, soft_wrap=True, markup=False)
    return {"cases": [], "figures": [], "profiles": found}


def _run_distributed(
    options: argparse.Namespace, step: Callable[[str], None]
) -> tuple[list[CaseResult], list[Figure], dict[str, Any]]:
    from benchmarks import distributed

    return distributed.run(distributed.DEMO_SIZES if options.quick else distributed.Sizes(), options.repeats, step)


def _case_names(options: argparse.Namespace) -> set[str]:
    """The named suites; "figures" alone brings those that it judges."""
    names = set(options.names)
    return {*RECURSION_NAMES, "treernn", "figures"} if names == {"figures"} else names


def _worker_names(options: argparse.Namespace) -> set[str]:
    """The programs that are run by one and by two workers, too."""
    from benchmarks import recursion_suite

    if options.quick or options.profiles:
        return set()
    return _case_names(options) & set(recursion_suite.WORKERS_SIZES)


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    from benchmarks import mixed, power, recursion_suite, workloads
    from benchmarks.nets import suite

    names = _case_names(options)
    for name in RECURSION_NAMES:
        if name in names:
            workload = workloads.RECURSION_WORKLOADS[name]
            yield recursion_suite.make_case(workload, options.sizes.get(name, workload.default_size))
            if name in _worker_names(options):
                yield recursion_suite.make_workers_case(workload, recursion_suite.WORKERS_SIZES[name])
    yield from suite.make_cases(_net_specs(options), options.sst, SEED)
    if "power" in names:
        yield from power.make_cases(options.sizes.get("power", power.DEMO_SIZES if options.quick else power.SIZES))
    if "mixed" in names:
        yield from mixed.make_cases()


def _net_specs(options: argparse.Namespace) -> list[Spec]:
    from benchmarks.nets import suite

    (trees,) = options.sizes.get("trees", (suite.QUICK_TREES if options.quick else None,))
    specs = []
    for name in NET_NAMES:
        if name in _case_names(options):
            default_dims = suite.FIGURE_DIMS if name not in options.names else suite.DIMS[name]
            dims = options.dims or (suite.QUICK_DIMS if options.quick else default_dims)
            batches = options.batches or (suite.QUICK_BATCHES if options.quick else suite.BATCHES[name])
            specs += suite.plan(name, dims, batches, trees, options.infer_only)
    # Other labels are the same runs on fewer trees, or by other numbers of workers.
    return [spec for spec in specs if not options.profiles or not spec.label]


@contextlib.contextmanager
def _progress(options: argparse.Namespace, console: Console) -> Iterator[Callable[[str], None]]:
    """Shows a bar on a terminal, nothing elsewhere; yields what announces the next step."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), BarColumn(24), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        names = _case_names(options) - set(NET_NAMES) - {"prepare"}
        steps = _PREPARE_STEPS * options.prepare_repeats if "prepare" in options.names else 0
        steps += sum(_VARIANTS[name] + options.repeats * _ROUND_CASES[name] for name in names)
        steps += (2 + options.repeats) * len(_worker_names(options))
        steps += sum(len(spec.methods) + options.repeats for spec in _net_specs(options))
        task = progress.add_task("starting", total=steps)

        def step(text: str) -> None:
            progress.update(task, description=text, advance=1)

        yield step


def _print_tables(console: Console, results: Sequence[CaseResult], judged: Sequence[Figure]) -> None:
    from rich.table import Table

    from benchmarks.harness import format_seconds

    table = Table(title="medians per item, graph preparation apart")
    for name in ("case", "item", "variant"):
        table.add_column(name)
    for name in ("build", "first run", "median", "per second", "spread", "against static"):
        table.add_column(name, justify="right")
    for result in results:
        base = "static" if "static" in result.variants else None
        for number, (name, variant) in enumerate(result.variants.items()):
            table.add_row(
                result.case.name if number == 0 else "",
                result.case.item if number == 0 else "",
                name,
                format_seconds(variant.build),
                format_seconds(variant.first_run),
                format_seconds(variant.median),
                f"{1 / variant.median:,.0f}",
                f"{variant.spread:.1%}",
                f"{result.ratio(name, base):.2f}x" if base else "",
                end_section=number == len(result.variants) - 1,
            )
    console.print(table)
    _print_net_table(console, [result for result in results if "net" in result.case.details])
    if not judged:
        return
    table = Table(title="figures")
    for name in ("figure", "wanted", "measured", ""):
        table.add_column(name)
    for figure in judged:
        verdict = {True: "[green]pass[/]", False: "[red]FAIL[/]", None: ""}[figure.kept]
        table.add_row(figure.name, figure.wanted(), f"{figure.value:.4g}{figure.unit}", verdict)
    console.print(table)


def _print_net_table(console: Console, results: Sequence[CaseResult]) -> None:
    """Prints trees per second: a row a case, a column a method."""
    from rich.table import Table

    if not results:
        return
    names = list(dict.fromkeys(name for result in results for name in result.variants))
    table = Table(title="trees per second")
    table.add_column("case")
    for name in names:
        table.add_column(name, justify="right")
    for result in results:
        medians = {name: variant.median for name, variant in result.variants.items()}
        cells = [f"{1 / medians[name]:,.0f}" if name in medians else "" for name in names]
        table.add_row(result.case.name, *cells)
    console.print(table)


def _write_plots(folder: Path, results: Sequence[CaseResult], judged: Sequence[Figure]) -> list[Path]:
    from benchmarks import plots, power, recursion_suite

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    recursion = [result for result in results if result.case.suite == recursion_suite.SUITE]
    if recursion:
        written.append(folder / "recursion.png")
        plots.plot_recursion(recursion, written[-1])
    for net in dict.fromkeys(result.case.details.get("net") for result in results):
        of_net = [r for r in results if net and r.case.details.get("net") == net and not r.case.details["label"]]
        if of_net:
            written.append(folder / f"{net}.png")
            plots.plot_nets(of_net, written[-1])
    steps = [result for result in results if result.case.suite == "power"]
    if steps:
        written.append(folder / "power.png")
        power.plot(steps, written[-1])
    if any(figure.limit is not None for figure in judged):
        written.append(folder / "figures.png")
        plots.plot_figures(judged, written[-1])
    return written


if __name__ == "__main__":
    sys.exit(main())
