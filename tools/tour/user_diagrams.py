"""The pictures of the README and of pages for users, which explain rather than show a run."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from svg import Edge, Nodes, Picture, chain, drawing


def pictures() -> dict[str, str]:
    drawn = {
        "recursion": fib_as_one_graph(),
        "semantics_deaths": deaths(),
        "semantics_tags": tags(),
        "tensorflow2_traces": traces(),
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


def tags() -> Picture:
    """The tokens of fib(2), the example of docs/semantics.md; those of one frame have one colour."""
    nodes: Nodes = {
        "": [
            ("2", "([], 2)", "in the main graph"),
            ("n", "([1], 2)", "n", "port"),
            ("n1", "([1], 1)", "n - 1", "port"),
            ("n2", "([1], 0)", "n - 2", "port"),
            ("n_21", "([2,1], 1)", "n, and the output", "keep"),
            ("n_31", "([3,1], 0)", "n, and the output", "flow"),
            ("fib1", "([1], 1)", "fib(n - 1)", "port"),
            ("fib2", "([1], 0)", "fib(n - 2)", "port"),
            ("sum", "([1], 1)", "the sum, and the output", "port"),
            ("done", "([], 1)", "in the main graph"),
        ]
    }
    edges = [Edge("2", "n", "implicit", "Call 1 pushes 1"), Edge("n", "n1"), Edge("n", "n2")]
    for site, argument, frame, result in ((2, "n1", "n_21", "fib1"), (3, "n2", "n_31", "fib2")):
        edges.append(Edge(argument, frame, "implicit", f"Call {site} pushes {site}"))
        edges.append(Edge(frame, result, "implicit", f"Return {site} pops {site}"))
        edges += chain(result, "sum")
    edges.append(Edge("sum", "done", "implicit", "Return 1 pops 1"))
    return drawing("the tokens of fib(2) and their tags", nodes, edges, spacing=(0.9, 0.36))


def deaths() -> Picture:
    """Frame [2,1] of fib(2), in which the recursion ends; what is dead is dashed."""
    nodes: Nodes = {
        "": [
            ("n", "n = 1", "", "port"),
            ("less", "n < 2", "true"),
            ("switch", "Switch", "", "flow"),
            ("sub1", "n - 1", "never runs", "helper"),
            ("sub2", "n - 2", "never runs", "helper"),
            ("call2", "Call 2", "opens no frame", "helper"),
            ("call3", "Call 3", "opens no frame", "helper"),
            ("return2", "Return 2", "dead", "helper"),
            ("return3", "Return 3", "dead", "helper"),
            ("add", "+", "never runs", "helper"),
            ("merge", "Merge", "takes the input that lives", "flow"),
            ("result", "result = 1", "", "port"),
        ]
    }
    edges = [*chain("n", "less", "switch"), Edge("n", "switch"), Edge("switch", "merge", "", "true side: 1")]
    edges += [Edge("switch", "sub1", "death", "false side"), Edge("switch", "sub2", "death")]
    for site in (2, 3):
        way = chain(f"sub{site - 1}", f"call{site}", f"return{site}", "add")
        edges += [Edge(edge.source, edge.target, "death") for edge in way]
    edges += [Edge("add", "merge", "death"), *chain("merge", "result")]
    return drawing("how dead tokens end a recursion", nodes, edges, spacing=(0.5, 0.3))


def traces() -> Picture:
    """How the example `repeat` of docs/tensorflow2.md is built three times."""
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
