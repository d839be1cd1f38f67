"""The pictures of the pages of the design, which explain rather than show a run."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
from xml.sax.saxutils import escape

import svg
from svg import Edge, Nodes, Picture, chain, drawing


def pictures() -> dict[str, str]:
    drawn = {
        "design_path": path(),
        "design_tokens": tokens(),
        "design_deaths": deaths(),
        "design_graph": call_graph("one body, two call sites"),
        "design_python": python(),
        "design_waits": waits(),
        "design_placement": placement(),
        "design_devices": devices(),
        "design_cut": cut(),
        "design_higher_orders": higher_orders(),
        "design_values": values(),
        "design_executor": executor(),
        "design_compiler": compiler(),
        "design_forks": forks(),
        "design_native": native(),
        "design_static_calls": static_calls(),
    }
    rows = {"design_frame": frame(), "design_windows": windows(), "design_threads": threads()}
    return {name: picture.svg() for name, picture in drawn.items()} | rows


def path() -> Picture:
    nodes: Nodes = {
        "": [
            ("python", "Python function", "traced once by Defun"),
            ("invoke", "graph with Invokes", "one operator a call", "call"),
            ("dynamic", "dynamic execution", "switch off: TensorFlow's function runtime", "helper"),
            ("transform", "function_transformation", "cc/expand: every body once", "flow"),
            ("stock", "TensorFlow's optimizers", "fold, prune, partition"),
            ("spread", "SpreadCallsPass", "what several devices need to agree", "flow"),
            ("composite", "CompositePass", "each partition becomes one Run", "flow"),
            ("program", "program", "cc/analysis, cc/program: tables", "port"),
            ("run", "run", "cc/executor: frames", "port"),
        ]
    }
    edges = [Edge("python", "invoke"), Edge("invoke", "dynamic", "control"), Edge("invoke", "transform")]
    edges += chain("transform", "stock", "spread", "composite", "program", "run")
    return drawing("the path of a call", nodes, edges, spacing=(0.25, 0.3))


def call_graph(title: str) -> Picture:
    nodes: Nodes = {"main": [], "body": [("entry", "Entry", "argument 0", "port"), ("work", "operators")]}
    nodes["body"].append(("result", "Result", "output 0", "port"))
    edges = []
    for site in (1, 2):
        nodes["main"] += [
            (f"arg{site}", f"argument {site}"),
            (f"call{site}", f"Call {site}", "pushes its number", "call"),
            (f"return{site}", f"Return {site}", "takes what is its own", "call"),
            (f"out{site}", f"reader {site}"),
        ]
        edges += chain(f"arg{site}", f"call{site}")
        edges.append(Edge(f"call{site}", f"return{site}", "control"))
        edges += chain(f"return{site}", f"out{site}")
    edges += chain("entry", "work", "result")
    for site in (1, 2):
        edges.append(Edge(f"call{site}", "entry", "implicit", weight=6))
        edges.append(Edge("result", f"return{site}", "implicit"))
    groups = {"main": "main graph", "body": "body of F"}
    return drawing(title, nodes, edges, groups, spacing=(0.35, 0.4))


def tokens() -> Picture:
    """The tokens of fib(2), the example of docs/design/tokens.md; those of one frame have one colour."""
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


def python() -> Picture:
    nodes: Nodes = {
        "": [
            ("call", "ramp(n)", "a call in Python"),
            ("kind", "specialization", "for this kind of arguments", "port"),
            ("infer", "inference", "calls give up their branch", "flow"),
            ("guess", "guess", "what the other paths return", "keep"),
            ("trace", "trace", "body as a function graph", "call"),
            ("settle", "has anything changed?", "captures, shapes, effects", "flow"),
            ("library", "function libraries", "of this graph and nested ones", "keep"),
            ("invoke", "Recursion>Invoke", "arguments, captures", "call"),
        ]
    }
    edges = [
        Edge("call", "kind"),
        Edge("kind", "infer", "", "nothing is stated"),
        Edge("kind", "trace", "", "results are stated"),
        *chain("infer", "guess", "trace", "settle"),
        Edge("settle", "trace", "implicit", "yes: again", ranks=False),
        Edge("settle", "library", "", "no"),
        Edge("settle", "invoke", "", "no"),
    ]
    return drawing("from a Python function to a function of the graph", nodes, edges, spacing=(0.9, 0.4))


def waits() -> Picture:
    """The waits of the example of docs/design/waits.md, with the numbers of the steps that see to them."""
    nodes: Nodes = {
        "main": [
            ("begin", "begin", "v = 10", "keep"),
            ("kept", "begin/kept", "Merge of a constant", "flow"),
            ("n", "n"),
            ("call_n", "Call: n", "", "call"),
            ("call_v", "Call: v", "", "call"),
            ("done", "Return: done", "", "call"),
            ("total", "total", "reads v", "keep"),
        ],
        "body": [
            ("entry_n", "Entry: n", "", "port"),
            ("entry_v", "Entry: v", "", "port"),
            ("add", "assign_add", "v = v + 1", "keep"),
            ("less", "n < 1"),
            ("switch", "Switch", "", "flow"),
            ("inner", "Call, Return: done", "only if n >= 1", "call"),
            ("effects", "effects", "ControlTrigger", "flow"),
            ("result", "Result: done", "", "port"),
        ],
    }
    edges = [*chain("n", "call_n"), *chain("entry_n", "less", "switch", "inner"), *chain("entry_v", "add")]
    edges += [*chain("effects", "result"), Edge("begin", "n", "control"), Edge("add", "less", "control")]
    edges += [Edge("call_n", "entry_n", "implicit"), Edge("call_v", "entry_v", "implicit")]
    edges.append(Edge("result", "done", "implicit"))
    steps = [("begin", "kept", "1"), ("kept", "total", "1"), ("n", "call_v", "3"), ("inner", "effects", "6")]
    steps += [("done", "total", "6"), ("add", "effects", "2, 7")]
    edges += [Edge(before, after, "control", step) for before, after, step in steps]
    groups = {"main": "main graph", "body": "body of Count"}
    return drawing("who sees to which wait", nodes, edges, groups, spacing=(0.35, 0.32))


def placement() -> Picture:
    nodes: Nodes = {}
    edges = []
    for device, name, body in ((0, "v", "F"), (1, "w", "F__copy1")):
        nodes[f"cpu{device}"] = [
            (f"variable{device}", f"variable {name}", "", "keep"),
            (f"call{device}", f"call F({name}.handle)", "", "call"),
            (f"body{device}", f"body {body}", f"reads {name} beside it", "port"),
        ]
        edges.append(Edge(f"variable{device}", f"call{device}", "", "handle"))
        edges.append(Edge(f"call{device}", f"body{device}", "implicit"))
    return drawing("copies of a body", nodes, edges, {"cpu0": "device 0", "cpu1": "device 1"}, spacing=(0.35, 0.45))


def devices() -> Picture:
    nodes: Nodes = {
        "a": [
            ("args", "arguments"),
            ("call", "call site", "opens its frame", "call"),
            ("announce", "AnnounceCall", "lives or dies with the call", "flow"),
            ("parta", "the callee's part here", "", "port"),
        ],
        "b": [
            ("join", "JoinCall", "", "flow"),
            ("callb", "the same call site", "opens its frame, same tag", "call"),
            ("partb", "the callee's part here", "", "port"),
        ],
    }
    edges = [*chain("args", "call", "announce"), *chain("call", "parta")]
    edges.append(Edge("announce", "join", "implicit", "one message"))
    edges += chain("join", "callb", "partb")
    edges.append(Edge("parta", "partb", "implicit", "values that cross"))
    groups = {"a": "device that decides", "b": "another device with a part of the callee"}
    return drawing("a call of a function on two devices", nodes, edges, groups, spacing=(0.4, 0.45))


def cut() -> Picture:
    nodes: Nodes = {
        "forward": [
            ("x", "x", "", "port"),
            ("f", "what y needs"),
            ("y", "y", "", "port"),
            ("retain", "Retain", "packs what crosses", "keep"),
        ],
        "backward": [
            ("recall", "Recall", "unpacks it", "keep"),
            ("dy", "dy", "", "port"),
            ("b", "the rest: dx from dy"),
            ("dx", "dx", "", "port"),
        ],
    }
    edges = [*chain("x", "f", "y"), *chain("f", "retain"), Edge("retain", "recall", "implicit", "record")]
    edges += [*chain("recall", "b"), *chain("dy", "b", "dx")]
    groups = {"forward": "F__forward1", "backward": "F__backward1"}
    return drawing("one trace, cut in two", nodes, edges, groups, spacing=(0.4, 0.4))


def higher_orders() -> Picture:
    nodes: Nodes = {
        "e": [
            ("x", "x", "", "port"),
            ("forward", "F__forward1", "", "call"),
            ("y", "y"),
            ("dy", "dy", "", "port"),
            ("backward", "F__backward1", "", "call"),
            ("dx", "dx"),
        ],
        "gradient": [
            ("ddx", "ddx", "", "port"),
            ("bb", "F__backward1__backward2", "", "call"),
            ("ddy", "ddy"),
            ("fb", "F__forward1__backward2", "", "call"),
            ("x2", "gradient for x"),
        ],
    }
    edges = [*chain("x", "forward", "y"), *chain("dy", "backward", "dx"), Edge("forward", "backward", "", "record")]
    edges += [*chain("ddx", "bb", "ddy"), Edge("bb", "fb", "", "gradient for the record"), *chain("fb", "x2")]
    edges += [Edge("backward", "bb", "implicit", "its record"), Edge("forward", "fb", "implicit", "its record")]
    groups = {"e": "E(x, dy) = dx", "gradient": "the gradient of E"}
    return drawing("what a second derivative runs", nodes, edges, groups, spacing=(0.5, 0.42))


def values() -> Picture:
    nodes: Nodes = {
        "": [("value", "value", "16 bytes", "port")],
        "inside": [("number", "number", "in the value itself", "keep")],
        "pointer": [
            ("tensor", "tensor", "one slot owns it", "keep"),
            ("rope", "rope", "parts, joined when read", "keep"),
            ("lent", "lent tensor", "a frame above owns it", "keep"),
            ("record", "record", "counted references", "keep"),
            ("contribution", "contribution", "pairs, not multiplied", "keep"),
        ],
        "memory": [("pool", "pool of blocks", "", "helper"), ("slabs", "slabs", "", "helper")],
    }
    kinds = [node[0] for group in ("inside", "pointer") for node in nodes[group]]
    edges = [Edge("value", kind) for kind in kinds]
    edges += [Edge(kind, "pool", "implicit") for kind in ("tensor", "rope", "contribution")]
    edges.append(Edge("record", "slabs", "implicit"))
    groups = {"inside": "inside", "pointer": "by pointer", "memory": "where its memory comes from"}
    return drawing("what a value is", nodes, edges, groups, spacing=(0.22, 0.5))


def executor() -> Picture:
    nodes: Nodes = {
        "": [
            ("ready", "1. ready operators", "the newest first", "port"),
            ("calls", "2. complete calls", "the newest first", "port"),
            ("partial", "3. calls with some arguments", "only if nothing else is left", "port"),
            ("fire", "fire", "scalar here, else its kernel"),
            ("open", "open a frame"),
            ("pass", "gates, merges, results, exits", "pass a value on at once", "helper"),
            ("slot", "slot of a frame", "until the count is zero", "keep"),
            ("site", "call site", "collects arguments", "call"),
        ]
    }
    edges = [Edge("ready", "fire"), Edge("calls", "open"), Edge("partial", "open")]
    edges += [Edge("open", "pass", "", "arguments"), Edge("fire", "pass", "", "outputs")]
    edges += [Edge("pass", "slot"), Edge("pass", "site")]
    edges.append(Edge("slot", "ready", "implicit", "complete", ranks=False))
    edges.append(Edge("site", "calls", "implicit", "complete", ranks=False))
    edges.append(Edge("site", "partial", "implicit", "some", ranks=False))
    return drawing("what a worker does", nodes, edges, spacing=(0.35, 0.42))


def compiler() -> Picture:
    rows = [
        [
            ("flow", "flow graph", "who waits for whom", "port"),
            ("candidates", "candidates", "which functions", "flow"),
            ("blocks", "blocks", "on which side of which branch", "flow"),
            ("types", "types", "number, tensor or record", "flow"),
        ],
        [
            ("order", "order", "one after the other", "call"),
            ("steps", "steps", "as many registers as values", "call"),
            ("simplify", "simplification", "where values are needed", "call"),
            ("registers", "registers", "shared by what lives apart", "call"),
        ],
        [
            ("encode", "encoding", "8 bytes an instruction", "keep"),
            ("compare", "comparisons", "made for the callee", "keep"),
            ("forks", "forks", "what another worker may call", "keep"),
            ("code", "code", "for the interpreter", "port"),
        ],
    ]
    keys = [[node[0] for node in row] for row in rows]
    edges = [edge for row in keys for edge in chain(*row)]
    edges += [Edge(above[-1], below[0], ranks=False) for above, below in itertools.pairwise(keys)]
    nodes: Nodes = {"": [node for row in rows for node in row]}
    return drawing("from a flow graph to bytecode", nodes, edges, direction="LR", spacing=(0.5, 0.35))


def forks() -> Picture:
    nodes: Nodes = {
        "one": [("call_32", "CompiledCall fib(32)", "made by a frame, so its fork is nullptr", "call")],
        "": [
            ("fork_30", "Fork fib(30)", "taken by worker 2", "keep"),
            ("fork_29", "Fork fib(29)", "taken by nobody yet", "keep"),
            ("fork_28", "Fork fib(28)", "taken by worker 3", "keep"),
        ],
        "two": [("call_30", "CompiledCall fib(30)", "", "call")],
        "three": [("call_28", "CompiledCall fib(28)", "", "call")],
    }
    split = "forks[{}], back: split_from"
    edges = [
        Edge("call_32", "fork_30", "", split.format(0)),
        Edge("call_32", "fork_29", "", split.format(1)),
        Edge("call_30", "fork_28", "", split.format(0)),
        Edge("fork_28", "fork_30", "control", "part_of", ranks=False),
    ]
    for number in (30, 28):
        edges.append(Edge(f"fork_{number}", f"call_{number}", "hidden"))
        edges.append(Edge(f"call_{number}", f"fork_{number}", "implicit", "fork", ranks=False))
    groups = {"one": "worker 1", "two": "worker 2", "three": "worker 3"}
    return drawing("calls of three workers and the forks that they share", nodes, edges, groups, spacing=(0.8, 0.4))


def native() -> Picture:
    nodes: Nodes = {
        "": [
            ("ready", "operator of a body", "its inputs are values", "port"),
            ("wave", "wave", "up to 8 rows for one large weight", "keep"),
            ("native", "native kernel", "of the operator, dtype, attributes", "call"),
            ("stock", "stock kernel", "TensorFlow's", "helper"),
            ("out", "outputs", "values for who reads them", "port"),
        ]
    }
    edges = [
        Edge("ready", "native", "", "few rows, plain numbers"),
        Edge("ready", "wave", "", "a product"),
        Edge("wave", "native", "", "all rows at once"),
        Edge("ready", "stock", "control", "none is bound"),
        Edge("native", "stock", "control", "it serves no such shapes"),
        Edge("native", "out"),
        Edge("stock", "out"),
    ]
    return drawing("which kernel runs an operator", nodes, edges, spacing=(0.9, 0.45))


def static_calls() -> Picture:
    nodes: Nodes = {
        "function": [("arg", "_Arg"), ("run", "Run", "Invokes, variables: all of it", "call"), ("retval", "_Retval")],
        "all": [
            ("arg_all", "_Arg"),
            ("reads", "reads of variables"),
            ("call_all", "Call", "", "call"),
            ("bodies_all", "bodies", "each once", "port"),
            ("return_all", "Return", "", "call"),
            ("loss", "loss and so on"),
            ("retval_all", "_Retval"),
        ],
        "dataset": [("x", "x"), ("invoke", "Invoke", "one call", "call"), ("y", "y")],
        "one": [
            ("arg_one", "_Arg"),
            ("call_one", "Call", "", "call"),
            ("bodies_one", "bodies", "each once", "port"),
            ("return_one", "Return", "", "call"),
            ("retval_one", "_Retval"),
        ],
    }
    edges = [*chain("arg", "run", "retval"), *chain("x", "invoke", "y")]
    edges += chain("arg_all", "reads", "call_all", "bodies_all", "return_all", "loss", "retval_all")
    edges += chain("arg_one", "call_one", "bodies_one", "return_one", "retval_one")
    edges += [Edge("run", "reads", "implicit", "runs"), Edge("invoke", "call_one", "implicit", "runs")]
    groups = {
        "function": "tf.function, SavedModel",
        "all": "the function's program",
        "dataset": "dataset, several devices",
        "one": "the call's program",
    }
    return drawing("what a kernel runs outside of sessions", nodes, edges, groups, spacing=(0.35, 0.3))


# What a frame of Fib consists of (the tour shows its program): bytes and what they are.
_FRAME = [
    (48, "header: parent, region, worker, call site, depth, live count", "port"),
    (16, "slot 0: n, then n-1, then fib(n-1)", "keep"),
    (16, "slot 1: n-2, then fib(n-2)", "keep"),
    (10, "5 pending counts: 2 sites, addition, merge, branch", "flow"),
    (6, "rounded up to a multiple of 16", "helper"),
]


def frame() -> str:
    width, row, left = 560, 34, 90
    body = []
    y, offset = 20.0, 0
    for size, text, kind in _FRAME:
        height = row * (1.5 if size == 48 else 1)
        body.append(
            f'<rect class="node {kind}" x="{left}" y="{y}" width="{width - left - 20}" height="{height}" rx="3"/>'
            f'<text class="small" x="{left - 10}" y="{y + 11}" text-anchor="end">byte {offset}</text>'
            f'<text class="title" x="{left + 12}" y="{y + height / 2 + 4}" font-weight="400">{escape(text)}</text>'
        )
        y += height + 4
        offset += size
    body.append(f'<text class="small" x="{left - 10}" y="{y + 4}" text-anchor="end">{offset} bytes</text>')
    return svg.document("a frame of Fib", width, y + 18, body)


# The words of memory while fib(4) calls fib(3), and that one fib(2): what each holds, and its kind. A call of fib(1)
# would get no words of its own, because it returns at once.
_WINDOWS = [
    ("n = 4", "port"),
    ("to 3, result: r1", "flow"),
    ("n - 1 = 3", "port"),
    ("to 3, result: r1", "flow"),
    ("n - 1 = 2", "port"),
]
# Each call: its title, the word that is its r0, and how many words it reaches so far.
_CALLS = [("registers of fib(4)", 0, 3), ("registers of fib(3)", 2, 3), ("registers of fib(2)", 4, 1)]


def windows() -> str:
    width, row, left, top = 700, 38, 20, 40
    cell = (width - 2 * left) / len(_WINDOWS)
    body = []
    for index, (text, kind) in enumerate(_WINDOWS):
        x = left + index * cell
        body.append(
            f'<text class="small" x="{x + cell / 2}" y="{top - 8}" text-anchor="middle">word {index}</text>'
            f'<rect class="node {kind}" x="{x}" y="{top}" width="{cell - 3}" height="{row}"/>'
            f'<text class="title" x="{x + cell / 2}" y="{top + row / 2 + 4}" text-anchor="middle" font-weight="400">'
            f"{escape(text)}</text>"
        )
    for depth, (title, first, count) in enumerate(_CALLS):
        x, y = left + first * cell, top + row + 14 + depth * (row + 6)
        body.append(f'<text class="small" x="{x}" y="{y + 8}">{escape(title)}</text>')
        for register in range(count):
            body.append(
                f'<rect class="node call" x="{x + register * cell}" y="{y + 13}" width="{cell - 3}" height="18"/>'
                f'<text class="small" x="{x + (register + 0.5) * cell}" y="{y + 26}" text-anchor="middle">'
                f"r{register}</text>"
            )
    return svg.document("calls of fib, one on top of the other", width, top + len(_CALLS) * (row + 6) + 70, body)


# What each thread runs, one behind the other: a text, its kind, where it begins and how long it takes.
_THREADS = [
    [
        ("worker", "flow", 0, 1),
        ("products 1 to 8 of chain A", "call", 1, 4),
        ("worker", "flow", 5.6, 1),
        ("products 1 to 8 of chain C", "call", 6.6, 4),
    ],
    [
        ("products 1 to 8 of chain B", "call", 1, 3.4),
        ("worker", "flow", 4.4, 1),
        ("products 1 to 8 of chain D", "call", 5.4, 4),
    ],
]


def threads() -> str:
    row, left, top, unit = 34, 80, 20, 64
    body = []
    for number, spans in enumerate(_THREADS, start=1):
        y = top + (number - 1) * (row + 10)
        middle = y + row / 2 + 4
        body.append(f'<text class="small" x="{left - 10}" y="{middle}" text-anchor="end">thread {number}</text>')
        for text, kind, begin, length in spans:
            x, width = left + begin * unit, length * unit - 3
            body.append(
                f'<rect class="node {kind}" x="{x}" y="{y}" width="{width}" height="{row}" rx="3"/>'
                f'<text class="title" x="{x + width / 2}" y="{middle}" text-anchor="middle" font-weight="400">'
                f"{escape(text)}</text>"
            )
    return svg.document("whichever thread ends first goes on as the worker", left + 11 * unit, top + 2 * row + 40, body)
