"""Bar charts of case results, as PNG files."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure as PlotFigure

from benchmarks.figures import Figure
from benchmarks.harness import CaseResult, format_seconds

_COLOURS = {
    "static": "#1b6ca8",
    "static-by-depth": "#7fb3d9",
    "dynamic": "#e07b39",
    "cpython": "#9a9a9a",
    "iteration": "#5b8c5a",
    "iteration-in-loop": "#a3c49a",
    "iteration-all-in-loop": "#cfe3c8",
    "levels": "#c9b458",
    "pytorch": "#8e6bb0",
    "pytorch-levels": "#c4aedb",
}
_INK = "#333333"

Grid: TypeAlias = Literal["x", "y"]


def plot_recursion(results: Sequence[CaseResult], path: Path) -> None:
    """Draws the times of every program and variant, on a logarithmic axis, with the static variant's gain."""
    variants = list(dict.fromkeys(variant for result in results for variant in result.variants))
    figure, axes = plt.subplots(figsize=(max(6.0, 1.5 + 2.1 * len(results)), 4.4), layout="constrained")
    width = 0.8 / len(variants)
    for number, variant in enumerate(variants):
        having = [(index, result) for index, result in enumerate(results) if variant in result.variants]
        times = [result.variants[variant].median * 1e3 for _, result in having]
        places = [index + (number - (len(variants) - 1) / 2) * width for index, _ in having]
        bars = axes.bar(places, times, width * 0.94, label=variant, color=_COLOURS[variant])
        labels = [format_seconds(time * 1e-3) for time in times]
        axes.bar_label(bars, labels, padding=2, fontsize=8, color=_INK)
    slower = ["dynamic" if "dynamic" in result.variants else "cpython" for result in results]
    names = [
        f"{result.case.name}\n{result.ratio(other, 'static'):.1f}x as fast as {other}"
        for result, other in zip(results, slower, strict=True)
    ]
    axes.set_xticks(range(len(results)), names)
    axes.set_yscale("log")
    axes.set_ylabel("median time of one call [ms]")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.margins(y=0.08)
    axes.set_title("Recursive functions on numbers: static execution against dynamic and against CPython", fontsize=11)
    _finish(figure, axes, path, columns=len(variants))


def plot_nets(results: Sequence[CaseResult], path: Path) -> None:
    """Draws trees per second of one net: training above inference, a chart a d, a group of bars a batch size."""
    modes = list(dict.fromkeys(result.case.details["mode"] for result in results))
    dims = sorted({result.case.details["dim"] for result in results})
    size = (max(6.4, 4.6 * len(dims)), 0.8 + 3.1 * len(modes))
    figure, grid = plt.subplots(len(modes), len(dims), figsize=size, layout="constrained", squeeze=False)
    for axes_row, mode in zip(grid, modes, strict=True):
        for axes, dim in zip(axes_row, dims, strict=True):
            found = [r for r in results if (r.case.details["mode"], r.case.details["dim"]) == (mode, dim)]
            _draw_batches(axes, found)
            axes.set_title(f"{mode}, d = {dim}", fontsize=10)
        axes_row[0].set_ylabel("trees per second")
    handles = {bars.get_label(): bars for axes in grid.flat for bars in axes.containers}
    figure.suptitle(f"{results[0].case.details['net']} ({results[0].case.details['source']})", fontsize=11)
    figure.legend(
        handles.values(), handles, frameon=False, ncols=min(6, 3 * len(dims)), fontsize=9, loc="outside lower center"
    )
    _save(figure, grid.flat, path)


def _draw_batches(axes: Axes, results: Sequence[CaseResult]) -> None:
    names = list(dict.fromkeys(name for result in results for name in result.variants))
    width = 0.84 / max(len(names), 1)
    for number, name in enumerate(names):
        shift = (number - (len(names) - 1) / 2) * width
        rates = [(place + shift, 1 / r.variants[name].median) for place, r in enumerate(results) if name in r.variants]
        places, heights = ([rate[part] for rate in rates] for part in (0, 1))
        axes.bar(places, heights, width * 0.94, label=name, color=_COLOURS[name])
    axes.set_xticks(range(len(results)), [f"batch {result.case.details['batch']}" for result in results])


def plot_figures(figures: Sequence[Figure], path: Path) -> None:
    """Draws how far every figure keeps its limit, as a share of it: right of 1 is kept."""
    figures = [figure for figure in figures if figure.limit is not None]
    margins = [figure.margin for figure in figures]
    canvas, axes = plt.subplots(figsize=(10.0, 1.2 + 0.42 * len(figures)), layout="constrained")
    colours = ["#5b8c5a" if figure.kept else "#b5403a" for figure in figures]
    bars = axes.barh(range(len(figures)), margins, 0.62, color=colours)
    background = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}  # the line at 1 may pass behind a label
    labels = [f"{figure.value:.3g}{figure.unit} ({figure.wanted()})" for figure in figures]
    axes.bar_label(bars, labels, padding=4, fontsize=8, color=_INK, bbox=background)
    axes.set_yticks(range(len(figures)), [figure.name for figure in figures], fontsize=8)
    axes.invert_yaxis()
    axes.axvline(1.0, color=_INK, linewidth=1)
    axes.set_xlim(0, max(margins) * 1.75)
    axes.set_xlabel("measured over required: kept from 1 on")
    axes.set_title("The promised figures", fontsize=11)
    _finish(canvas, axes, path, grid="x")


def _finish(figure: PlotFigure, axes: Axes, path: Path, columns: int = 0, grid: Grid = "y") -> None:
    if columns:
        figure.legend(frameon=False, ncols=columns, fontsize=9, loc="outside lower center")
    _save(figure, [axes], path, grid)


def _save(figure: PlotFigure, charts: Iterable[Axes], path: Path, grid: Grid = "y") -> None:
    for axes in charts:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis=grid, alpha=0.25)
        axes.set_axisbelow(True)
    figure.savefig(path, dpi=150)
    plt.close(figure)
