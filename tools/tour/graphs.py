"""Turns what dump.py has written down into pictures of the tours."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import re
from typing import Any

from svg import Picture

Dump = dict[str, Any]

# How a picture marks an operator.
_KINDS = {
    "Call": "call",
    "Return": "call",
    "Invoke": "call",
    "Entry": "port",
    "Result": "port",
    "Switch": "flow",
    "Merge": "flow",
    "If": "flow",
    "FrameStart": "helper",
    "KeepAlive": "helper",
    "NoOp": "helper",
    "Retain": "keep",
    "Recall": "keep",
}


def functions(dump: Dump, title: str, names: dict[str, str], has_main: bool = True) -> Picture:
    """The functions of `names` (with a title each) as they are in the library, and the main graph if asked for."""
    picture = Picture(title)
    if has_main:
        picture.groups["main"] = "main graph"
        _add_graph(picture, dump["graphs"]["main"], lambda node: "main", "main/")
    for function in dump["functions"]:
        if function["name"] not in names:
            continue
        group = function["name"]
        picture.groups[group] = names[group]
        read = {source.partition(":")[0] for node in function["nodes"] for source in node["inputs"]}
        read |= {source.partition(":")[0] for _, source in function["outputs"]}
        for argument in function["arguments"]:
            if argument not in read:
                continue
            picture.node(f"{group}/{argument}", _shortened(argument), "argument", "port", group)
        _add_graph(picture, function["nodes"], lambda node, group=group: group, f"{group}/")
        for output, source in function["outputs"]:
            picture.node(f"{group}/->{output}", output, "output", "port", group)
            picture.edge(f"{group}/{source.partition(':')[0]}", f"{group}/->{output}")
    for function in dump["functions"]:
        for node in function["nodes"]:
            for attribute in ("then_branch", "else_branch"):
                if node.get(attribute) in names:
                    target = next(key for key in picture.nodes if key.startswith(node[attribute] + "/"))
                    picture.edge(f"{function['name']}/{node['name']}", target, "implicit", attribute.partition("_")[0])
    return picture


def stage(dump: Dump, name: str, title: str, group_titles: dict[str, str]) -> Picture:
    """A whole graph of the pipeline. Dotted edges are those that only attributes tell of."""
    picture = Picture(title)
    nodes = dump["graphs"][name]
    picture.groups["main"] = "main graph"
    bodies = _bodies(nodes)
    for body in bodies:
        picture.groups[body] = group_titles.get(body, f"body of {body}")

    def owner(node: dict[str, Any]) -> str:
        if node["op"] == "Recursion>KeepAlive":
            return "main"
        return next((body for body in bodies if _is_in(node, body, nodes)), "main")

    _add_graph(picture, nodes, owner, "")
    _add_implicit_edges(picture, nodes)
    return picture


def _bodies(nodes: list[dict[str, Any]]) -> list[str]:
    return sorted({node["function"] for node in nodes if node["op"] == "Recursion>Entry"})


def _is_in(node: dict[str, Any], body: str, nodes: list[dict[str, Any]]) -> bool:
    """Whether a node is in a body. Its name begins with the body's then, but so do those of calls in the main graph."""
    if node["op"] in ("Recursion>Entry", "Recursion>Result", "Recursion>FrameStart"):
        return node["function"] == body
    if not node["name"].startswith(body + "/"):
        return False
    main_calls = {
        body,
        f"{body}/n",
        f"{body}/x",
        *(f"{body}/{what}_{i}" for what in ("call", "return") for i in range(4)),
    }
    return node["name"] not in main_calls


def _add_graph(picture: Picture, nodes: list[dict[str, Any]], owner, prefix: str) -> None:
    for node in nodes:
        title, small = _label(node)
        kind = _KINDS.get(node["op"].removeprefix("Recursion>"), "")
        picture.node(prefix + node["name"], title, small, kind, owner(node))
    for node in nodes:
        for source in dict.fromkeys(node["inputs"]):
            kind = "control" if source.startswith("^") else ""
            key = prefix + source.removeprefix("^").partition(":")[0]
            picture.edge(key, prefix + node["name"], kind, _side(picture.nodes[key].title, source))


def _shortened(name: str) -> str:
    """Names that TensorFlow makes of other names may be long; their ends tell them apart."""
    return name if len(name) <= 16 else "…" + name[-14:]


def _side(title: str, source: str) -> str:
    """Which output of a Switch an edge leaves: the one taken if the condition is true, or false."""
    if title != "Switch":
        return ""
    return "true" if source.endswith(":1") else "false"


def _label(node: dict[str, Any]) -> tuple[str, str]:
    op = node["op"].removeprefix("Recursion>")
    short = re.sub(r"^.*?/(?=[^/]+$)", "", node["name"])
    short = re.sub(r"^_(\d+)$", node["name"].split("/")[-2] if "/" in node["name"] else short, short)
    if op == "Const":
        value = node.get("value")
        return ("Const" if value is None else f"Const {value:g}"), ""
    if op in ("Call", "Return"):
        what = "argument" if op == "Call" else "output"
        return f"{op} {node['call_id']}", f"{what} {node['index']} of {node['function']}"
    if op == "Entry":
        return "Entry", f"argument {node['index']}"
    if op == "Result":
        return "Result", f"output {node['index']}"
    if op == "Invoke":
        return "Invoke", f"f = {node['callee']}"
    if op in ("FrameStart", "KeepAlive", "Merge", "NoOp", "Retain", "Recall"):
        return op, ""
    if op in ("Switch", "Identity", "_Retval", "Run", "If"):
        return op, short
    return op, short


def _add_implicit_edges(picture: Picture, nodes: list[dict[str, Any]]) -> None:
    by_port: dict[tuple[str, str, int], list[str]] = {}
    for node in nodes:
        if "function" in node and "index" in node:
            key = (node["op"].removeprefix("Recursion>"), node["function"], node["index"])
            by_port.setdefault(key, []).append(node["name"])
    for (op, function, index), names in by_port.items():
        other = {"Call": "Entry", "Return": "Result"}.get(op)
        if other is None:
            continue
        for name in names:
            for port in by_port.get((other, function, index), []):
                outside = picture.nodes[name].group != picture.nodes[port].group
                source, target = (name, port) if op == "Call" else (port, name)
                picture.edge(source, target, "implicit", ranks=outside, weight=12 if outside and op == "Call" else 1)


def composite(dump: Dump, title: str) -> Picture:
    """What is left of a partition graph for TensorFlow's executor, and what the one node holds."""
    picture = Picture(title, direction="LR")
    picture.groups["partition"] = "what TensorFlow's executor runs"
    for node in dump["graphs"]["composite"]:
        op = node["op"].removeprefix("Recursion>")
        small = f"holds the {len(dump['graphs']['partition'])} nodes above" if op == "Run" else "what is fetched"
        picture.node(node["name"], op, small, "call" if op == "Run" else "", "partition")
    for node in dump["graphs"]["composite"]:
        for source in node["inputs"]:
            picture.edge(source.removeprefix("^"), node["name"])
    return picture


# Operators of a program that wait in a queue until they fire; a value that reaches another goes straight on.
_QUEUED = ("scalar", "kernel", "branch", "pass", "switch", "retain", "recall", "retval", "loop_start", "loop_next")


def program(dump: Dump, title: str, region: str) -> Picture:
    """The tables of one region, as the executor has them."""
    picture = Picture(title, spacing=(0.3, 0.36))
    inside = False
    edges: list[tuple[str, str, str, str]] = []
    current = ""
    for line in dump["program"]:
        if line.startswith("region "):
            inside = f" {region}:" in line
            if inside:
                head, _, rest = line.partition(": ")
                picture.groups["region"] = f"region {region}: {rest}"
        elif inside and (match := re.match(r"  op (\d+) (\w+) (.*) waits for (\d+)", line)):
            current = match[1]
            picture.node(current, *_program_label(match[2], match[3]), _program_kind(match[2]), "region")
        elif inside and (match := re.match(r"    (port|dead) (\d+) -> op (\d+) (\w+) (slot|input) (\d+)", line)):
            label = f"slot {match[6]}" if match[4] in ("data", "argument") else ""
            edges.append((current, match[3], "death" if match[1] == "dead" else "", label))
    for source, target, kind, label in dict.fromkeys(edges):
        picture.edge(source, target, kind, label, ranks=kind != "death")
    return picture


def _program_kind(kind: str) -> str:
    return "call" if kind == "site" else "" if kind in _QUEUED else "helper"


def _program_label(kind: str, text: str) -> tuple[str, str]:
    if kind == "site":
        match = re.search(r"call (\d+) of (\S+)\)", text)
        return f"site {match[1]}", f"calls {match[2]}"
    if kind in ("scalar", "kernel"):
        match = re.match(r"(?:.*/)?(\S+) \((\w+)\)", text)
        return f"{kind} {match[2]}", match[1]
    return kind, ""
