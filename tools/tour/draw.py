"""Draws every picture of the docs into docs/pictures.

python tools/tour/draw.py build/docs/tour.json docs/pictures
"""
# SPDX-License-Identifier: Apache-2.0

import argparse
import json
import pathlib

import charts
import diagrams
import frames
import graphs
import user_diagrams
from svg import Picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("dump", type=pathlib.Path, help="what dump.py has written")
    parser.add_argument("output", type=pathlib.Path, help="the directory for the SVG files")
    args = parser.parse_args()
    dumps = json.loads(args.dump.read_text())
    args.output.mkdir(parents=True, exist_ok=True)
    drawn = pictures(dumps) | diagrams.pictures() | user_diagrams.pictures()
    drawn |= charts.charts(args.output.parent / "figures.json")
    for name, picture in drawn.items():
        text = picture.svg() if isinstance(picture, Picture) else picture
        (args.output / f"{name}.svg").write_text(text)


def pictures(dumps: dict[str, graphs.Dump]) -> dict[str, Picture | str]:
    """The pictures of the tours by name: graphs that are to be laid out, and texts of SVG files."""
    fib, power = dumps["fib"], dumps["power"]
    return {
        "tour_functions": graphs.functions(fib, "fib as functions of the graph", _titles(fib)),
        "tour_transformed": graphs.stage(fib, "transformed", "fib(2) transformed", {"Fib": "body of Fib"}),
        "tour_optimized": graphs.stage(fib, "optimized", "fib(2) optimized", {"Fib": "body of Fib"}),
        "tour_composite": graphs.composite(fib, "the partition graph as one node"),
        "tour_program": graphs.program(fib, "the program of Fib's body", "function Fib"),
        "tour_frames": frames.frames(fib["frames"], "the frames of fib(2)"),
        "gradient_forward": _function(power, "forward"),
        "gradient_backward": _function(power, "backward"),
        "gradient_frames": frames.frames(power["frames"], "the frames of the gradient of x^3"),
    }


def _titles(dump: graphs.Dump) -> dict[str, str]:
    """The title of each function; that of a branch says which branch it is."""
    titles = {function["name"]: f"function {function['name']}" for function in dump["functions"]}
    for function in dump["functions"]:
        for node in function["nodes"]:
            for attribute, what in (("then_branch", "then"), ("else_branch", "else")):
                if attribute in node:
                    titles[node[attribute]] = f"{what} branch: {node[attribute]}"
    return titles


def _function(dump: graphs.Dump, what: str) -> graphs.Picture:
    """The `what` function of the gradient, and its branches."""
    titles = _titles(dump)
    (function,) = (function for function in dump["functions"] if f"__{what}" in function["name"])
    names = [function["name"]]
    for node in function["nodes"]:
        names += [node[attribute] for attribute in ("then_branch", "else_branch") if attribute in node]
    return graphs.functions(dump, f"the {what} function", {name: titles[name] for name in names}, has_main=False)


if __name__ == "__main__":
    main()
