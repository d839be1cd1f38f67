"""The pictures of the README and of pages for users, which explain rather than show a run."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from svg import Edge, Nodes, Picture, chain, drawing


def pictures() -> dict[str, str]:
    drawn = {
        "recursion": fib_as_one_graph(),
        "traces_repeat": traces(),
    }
    return {name: picture.svg() for name, picture in drawn.items()}


def fib_as_one_graph() -> Picture:
    """The README's picture: fib, without what only helps."""
    nodes: Nodes = {
        "main": [("20", "20"), ("call1", "Call 1", "", "call"), ("return1", "Return 1", "6765", "call")],
        "body": [("n", "n", "", "port"), ("less", "n < 2"), ("switch", "Switch", "", "flow")],
    }
    edges = chain("20", "call1")
    for number, site, side in ((1, 2, "false"), (2, 3, "")):
        nodes["body"] += [
            (f"sub{number}", f"n - {number}"),
            (f"call{site}", f"Call {site}", "", "call"),
            (f"return{site}", f"Return {site}", "", "call"),
        ]
        edges.append(Edge("switch", f"sub{number}", "", side))
        edges += chain(f"sub{number}", f"call{site}")
        edges.append(Edge(f"call{site}", "n", "implicit", ranks=False))
        edges.append(Edge(f"call{site}", f"return{site}", "hidden"))
        edges += chain(f"return{site}", "add")
        edges.append(Edge("result", f"return{site}", "implicit", ranks=False))
    nodes["body"] += [("add", "+"), ("merge", "Merge", "", "flow"), ("result", "result", "", "port")]
    edges.append(Edge("call1", "n", "implicit", weight=8))
    edges += [Edge("n", "less"), Edge("n", "switch"), Edge("less", "switch")]
    edges.append(Edge("switch", "merge", "", "true"))
    edges += chain("add", "merge", "result")
    edges.append(Edge("result", "return1", "implicit"))
    title = "fib(n) as one graph, however deep it recurses"
    groups = {"main": "your graph", "body": "Fib, once"}
    return drawing(title, nodes, edges, groups, direction="LR", spacing=(0.28, 0.3))


def traces() -> Picture:
    """How the example `repeat` of docs/traces.md is built three times."""
    look = ("return x", "(3,)"), ("repeat(x, n - 1)", "not known: gives up this branch")
    first = ("return x", "(3,)"), ("concat([repeat(x, n - 1), x])", "(3,) and (3,) make (6,)")
    second = ("return x", "(3,)"), ("concat([repeat(x, n - 1), x])", "(None,) and (3,) make (None,)")
    nodes: Nodes = {"": [("call", "repeat(x, n)", "x has the shape (3,)", "call")]}
    edges = []
    before = "call"
    for number, paths, after, reason in (
        (1, look, "guess: repeat returns (3,)", "what the other path returns"),
        (2, first, "guess: repeat returns (None,)", "what is true of (3,) and of (6,)"),
        (3, second, "repeat returns (None,)", "as guessed, so this trace stays"),
    ):
        base, calls, taken = f"base{number}", f"calls{number}", f"taken{number}"
        given_up = number == 1
        nodes[f"build{number}"] = [(base, *paths[0]), (calls, *paths[1], "helper" if given_up else "")]
        nodes[""].append((taken, after, reason, "port" if number == 3 else "keep"))
        edges += [Edge(before, base), Edge(before, calls), Edge(base, taken)]
        edges.append(Edge(calls, taken, "hidden" if given_up else ""))
        before = taken
    groups = {"build1": "1. look", "build2": "2. trace", "build3": "3. trace"}
    return drawing("how the results of repeat are found out", nodes, edges, groups, spacing=(0.4, 0.34))
