"""Draws the frames of a run: time goes down, each column is a depth, each box a frame from opening to closing."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

import svg

ROW, PAD, HEAD, GAP = 19, 16, 22, 14

STYLE = """
.frame { fill: #f6f8fa; stroke: #0969da; stroke-width: 1.2; }
.frame-title { font-size: 11px; font-weight: 600; fill: #0969da; }
.event { font-size: 11px; }
.time { font-size: 10px; fill: #57606a; }
@media (prefers-color-scheme: dark) {
  .frame { fill: #1c2230; stroke: #58a6ff; }
  .frame-title { fill: #58a6ff; } .time { fill: #9ea7b3; }
}
"""


@dataclass
class Frame:
    tag: str
    function: str
    depth: int
    opened: int  # the row
    closed: int = 0
    events: list[tuple[int, str]] = field(default_factory=list)

    @property
    def text_width(self) -> float:
        titles = (7.4 * len(text) for text in (self.tag, self.function))
        return max(*titles, *(6.8 * len(text) for _, text in self.events))


def frames(lines: list[str], title: str, main: str = "main graph") -> str:
    """An SVG of what run_log has written."""
    found = _read(lines, main)
    column = max(frame.text_width for frame in found) + 16 + GAP
    # A frame's title takes two rows.
    tops = list(itertools.accumulate((ROW * (2 if line.startswith("open") else 1) for line in lines), initial=0))
    width = (max(frame.depth for frame in found) + 1) * column + 2 * PAD - GAP
    height = HEAD + tops[-1] + 2 * PAD + 8
    body = [f'<text class="time" x="{PAD}" y="{PAD + 8}">time goes down; a column for each depth of calls</text>']
    for frame in found:
        body += _draw(frame, column, [PAD + HEAD + top for top in tops])
    return svg.document(title, width, height, body, STYLE)


def _read(lines: list[str], main: str) -> list[Frame]:
    found: list[Frame] = []
    live: dict[str, Frame] = {}
    for row, line in enumerate(lines):
        match = re.match(r"(open|fire|close) (\[[^]]*\]) ?(.*)", line)
        what, tag, rest = match.groups()
        if what == "open":
            depth = 0 if tag == "[]" else tag.count(",") + 1
            live[tag] = Frame(tag, rest or main, depth, row)
            found.append(live[tag])
        elif what == "close":
            live.pop(tag).closed = row
        else:
            live[tag].events.append((row, _event(rest)))
    return found


def _event(text: str) -> str:
    """`Fib/cond/else/_1/sub_1 = 0` is told as `sub_1 = 0`."""
    name, _, value = text.partition(" = ")
    short = name.rpartition("/")[2]
    return f"{short} = {value}" if value else short


def _draw(frame: Frame, column: float, tops: list[float]) -> list[str]:
    x = round(PAD + frame.depth * column, 1)
    y = tops[frame.opened] - 4
    height = tops[frame.closed + 1] - tops[frame.opened] - 3
    body = [
        f'<rect class="frame" x="{x}" y="{y}" width="{column - GAP:.1f}" height="{height}" rx="5"/>',
        f'<text class="frame-title" x="{x + 8}" y="{y + 15}">{escape(frame.function)}</text>',
        f'<text class="frame-title" x="{x + 8}" y="{y + 30}">{escape(frame.tag)}</text>',
    ]
    if frame.depth > 0:
        # The caller opens it; when it closes, its results have gone back.
        for edge_y, back in ((y + 11, False), (y + height - 8, True)):
            start, end = (x - 1, x - 13) if back else (x - 13, x - 1)
            path = f"M{start:.1f},{edge_y} L{end:.1f},{edge_y}"
            body.append(f'<path class="edge implicit" d="{path}" marker-end="url(#head-implicit)"/>')
    for row, text in frame.events:
        body.append(f'<text class="event" x="{x + 8}" y="{tops[row] + 11}">{escape(text)}</text>')
    return body
