"""Bar charts of measured ratios, for the README and docs/figures.md. The numbers are those of docs/figures.json."""
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json
import pathlib
from xml.sax.saxutils import escape

import svg

ROW, LEFT, RIGHT, TOP, NOTE = 26, 330, 70, 44, 38

STYLE = """
.win { fill: #2da44e; } .loss { fill: #cf222e; }
.line { stroke: #57606a; stroke-dasharray: 3 3; }
.label { font-size: 12px; }
.value { font-size: 12px; font-weight: 600; paint-order: stroke; stroke: #ffffff; stroke-width: 4px; }
@media (prefers-color-scheme: dark) { .win { fill: #3fb950; } .loss { fill: #ff7b72; } .line { stroke: #9ea7b3; }
  .value { stroke: #161b22; } }
"""


def charts(figures: pathlib.Path) -> dict[str, str]:
    """An SVG for each chart in the file."""
    return {f"figures_{name}": _chart(chart) for name, chart in json.loads(figures.read_text())["charts"].items()}


def _chart(chart: dict) -> str:
    bars = chart["bars"]
    bottom = TOP + len(bars) * ROW
    width, height = 760, bottom + (NOTE if "note" in chart else 14)
    scale = (width - LEFT - RIGHT) / max(value for _, value in bars)
    body = [f'<text class="title" x="16" y="24">{escape(chart["title"])}</text>']
    one = LEFT + scale
    body.append(f'<path class="line" d="M{one:.1f},{TOP - 6} L{one:.1f},{bottom + 4}"/>')
    for i, (label, value) in enumerate(bars):
        y = TOP + i * ROW
        kind = "win" if value >= 1 else "loss"
        body.append(
            f'<text class="label" x="{LEFT - 10}" y="{y + 14}" text-anchor="end">{escape(label)}</text>'
            f'<rect class="{kind}" x="{LEFT}" y="{y + 2}" width="{value * scale:.1f}" height="16" rx="2"/>'
            f'<text class="value" x="{LEFT + value * scale + 8:.1f}" y="{y + 14}">{value:g}×</text>'
        )
    if "note" in chart:
        body.append(f'<text class="small" x="16" y="{bottom + 24}">{escape(chart["note"])}</text>')
    return svg.document(chart["title"], width, height, body, STYLE)
