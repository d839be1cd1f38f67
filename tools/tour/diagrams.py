"""The pictures that explain rather than show a run: one for each page of the design, and the README's."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from xml.sax.saxutils import escape

import svg
from svg import Picture


def pictures() -> dict[str, str]:
    drawn = {
        "design_path": path(),
        "design_graph": call_graph("one body, two call sites"),
        "design_placement": placement(),
        "design_devices": devices(),
        "design_cut": cut(),
        "design_executor": executor(),
        "recursion": fib_as_one_graph(),
    }
    return {name: picture.svg() for name, picture in drawn.items()} | {"design_frame": frame()}


def path() -> Picture:
    picture = Picture("the path of a call", spacing=(0.25, 0.3))
    picture.node("python", "Python function", "traced once by Defun")
    picture.node("invoke", "graph with Invokes", "one operator a call", "call")
    picture.node("dynamic", "dynamic execution", "switch off: TensorFlow's function runtime", "helper")
    picture.node("transform", "function_transformation", "cc/expand: every body once", "flow")
    picture.node("stock", "TensorFlow's optimizers", "fold, prune, partition")
    picture.node("spread", "SpreadCallsPass", "what several devices need to agree", "flow")
    picture.node("composite", "CompositePass", "each partition becomes one Run", "flow")
    picture.node("program", "program", "cc/analysis, cc/program: tables", "port")
    picture.node("run", "run", "cc/executor: frames", "port")
    picture.edge("python", "invoke")
    picture.edge("invoke", "dynamic", "control")
    picture.edge("invoke", "transform")
    for source, target in zip(
        ["transform", "stock", "spread", "composite", "program"],
        ["stock", "spread", "composite", "program", "run"],
        strict=True,
    ):
        picture.edge(source, target)
    return picture


def call_graph(title: str) -> Picture:
    picture = Picture(title, spacing=(0.35, 0.4))
    picture.groups = {"main": "main graph", "body": "body of F"}
    for site in (1, 2):
        picture.node(f"arg{site}", f"argument {site}", "", "", "main")
        picture.node(f"call{site}", f"Call {site}", "pushes its number", "call", "main")
        picture.node(f"return{site}", f"Return {site}", "takes what is its own", "call", "main")
        picture.node(f"out{site}", f"reader {site}", "", "", "main")
        picture.edge(f"arg{site}", f"call{site}")
        picture.edge(f"call{site}", f"return{site}", "control")
        picture.edge(f"return{site}", f"out{site}")
    picture.node("entry", "Entry", "argument 0", "port", "body")
    picture.node("work", "operators", "", "", "body")
    picture.node("result", "Result", "output 0", "port", "body")
    picture.edge("entry", "work")
    picture.edge("work", "result")
    for site in (1, 2):
        picture.edge(f"call{site}", "entry", "implicit", weight=6)
        picture.edge("result", f"return{site}", "implicit")
    return picture


def fib_as_one_graph() -> Picture:
    """The README's picture: fib, without what only helps."""
    picture = Picture("fib(n) as one graph, however deep it recurses", direction="LR", spacing=(0.28, 0.3))
    picture.groups = {"main": "your graph", "body": "Fib, once"}
    picture.node("20", "20", "", "", "main")
    picture.node("call1", "Call 1", "", "call", "main")
    picture.node("return1", "Return 1", "6765", "call", "main")
    picture.edge("20", "call1")
    picture.node("n", "n", "", "port", "body")
    picture.node("less", "n < 2", "", "", "body")
    picture.node("switch", "Switch", "", "flow", "body")
    for number, site in ((1, 2), (2, 3)):
        picture.node(f"sub{number}", f"n - {number}", "", "", "body")
        picture.node(f"call{site}", f"Call {site}", "", "call", "body")
        picture.node(f"return{site}", f"Return {site}", "", "call", "body")
        picture.edge("switch", f"sub{number}", "", "false" if number == 1 else "")
        picture.edge(f"sub{number}", f"call{site}")
        picture.edge(f"call{site}", "n", "implicit", ranks=False)
        picture.edge(f"call{site}", f"return{site}", "hidden")
        picture.edge(f"return{site}", "add")
        picture.edge("result", f"return{site}", "implicit", ranks=False)
    picture.node("add", "+", "", "", "body")
    picture.node("merge", "Merge", "", "flow", "body")
    picture.node("result", "result", "", "port", "body")
    picture.edge("call1", "n", "implicit", weight=8)
    picture.edge("n", "less")
    picture.edge("n", "switch")
    picture.edge("less", "switch")
    picture.edge("switch", "merge", "", "true")
    picture.edge("add", "merge")
    picture.edge("merge", "result")
    picture.edge("result", "return1", "implicit")
    return picture


def placement() -> Picture:
    picture = Picture("copies of a body", spacing=(0.35, 0.45))
    picture.groups = {"cpu0": "device 0", "cpu1": "device 1"}
    for device, name, body in ((0, "v", "F"), (1, "w", "F__copy1")):
        group = f"cpu{device}"
        picture.node(f"variable{device}", f"variable {name}", "", "keep", group)
        picture.node(f"call{device}", f"call F({name}.handle)", "", "call", group)
        picture.node(f"body{device}", f"body {body}", f"reads {name} beside it", "port", group)
        picture.edge(f"variable{device}", f"call{device}", "", "handle")
        picture.edge(f"call{device}", f"body{device}", "implicit")
    return picture


def devices() -> Picture:
    picture = Picture("a call of a function on two devices", spacing=(0.4, 0.45))
    picture.groups = {"a": "device that decides", "b": "another device with a part of the callee"}
    picture.node("args", "arguments", "", "", "a")
    picture.node("call", "call site", "opens its frame", "call", "a")
    picture.node("announce", "AnnounceCall", "lives or dies with the call", "flow", "a")
    picture.node("parta", "the callee's part here", "", "port", "a")
    picture.node("join", "JoinCall", "", "flow", "b")
    picture.node("callb", "the same call site", "opens its frame, same tag", "call", "b")
    picture.node("partb", "the callee's part here", "", "port", "b")
    picture.edge("args", "call")
    picture.edge("call", "announce")
    picture.edge("call", "parta")
    picture.edge("announce", "join", "implicit", "one message")
    picture.edge("join", "callb")
    picture.edge("callb", "partb")
    picture.edge("parta", "partb", "implicit", "values that cross")
    return picture


def cut() -> Picture:
    picture = Picture("one trace, cut in two", spacing=(0.4, 0.4))
    picture.groups = {"forward": "F__forward1", "backward": "F__backward1"}
    picture.node("x", "x", "", "port", "forward")
    picture.node("f", "what y needs", "", "", "forward")
    picture.node("y", "y", "", "port", "forward")
    picture.node("retain", "Retain", "packs what crosses", "keep", "forward")
    picture.node("recall", "Recall", "unpacks it", "keep", "backward")
    picture.node("dy", "dy", "", "port", "backward")
    picture.node("b", "the rest: dx from dy", "", "", "backward")
    picture.node("dx", "dx", "", "port", "backward")
    picture.edge("x", "f")
    picture.edge("f", "y")
    picture.edge("f", "retain")
    picture.edge("retain", "recall", "implicit", "record")
    picture.edge("recall", "b")
    picture.edge("dy", "b")
    picture.edge("b", "dx")
    return picture


def executor() -> Picture:
    picture = Picture("what a worker does", spacing=(0.35, 0.42))
    picture.node("ready", "1. ready operators", "the newest first", "port")
    picture.node("calls", "2. complete calls", "the newest first", "port")
    picture.node("partial", "3. calls with some arguments", "only if nothing else is left", "port")
    picture.node("fire", "fire", "scalar here, else its kernel")
    picture.node("open", "open a frame", "")
    picture.node("pass", "gates, merges, results, exits", "pass a value on at once", "helper")
    picture.node("slot", "slot of a frame", "until the count is zero", "keep")
    picture.node("site", "call site", "collects arguments", "call")
    picture.edge("ready", "fire")
    picture.edge("calls", "open")
    picture.edge("partial", "open")
    picture.edge("open", "pass", "", "arguments")
    picture.edge("fire", "pass", "", "outputs")
    picture.edge("pass", "slot")
    picture.edge("pass", "site")
    picture.edge("slot", "ready", "implicit", "complete", ranks=False)
    picture.edge("site", "calls", "implicit", "complete", ranks=False)
    picture.edge("site", "partial", "implicit", "some", ranks=False)
    return picture


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
