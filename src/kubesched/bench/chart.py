"""A bar chart as SVG: pods per second, a group of bars for each workload."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from xml.sax.saxutils import escape

from kubesched.bench.results import Row

WIDTH = 1040
_LABELS = 400
_BAR = 16
_GAP = 4
_GROUP_GAP = 18
_TOP = 30
_VALUES = 130
_LINE = 16
_LINE_LENGTH = 130
COLORS = ("#3465a4", "#cc7a00", "#888a85", "#babdb6", "#4e9a06", "#75507b", "#a40000")


def svg(rows: Sequence[Row], *, title: str = "Pods per second", subtitle: str = "") -> str:
    """Draw the rows; the longest bar fills the width."""
    schedulers = list(dict.fromkeys(row.scheduler for row in rows))
    colors = {name: COLORS[place % len(COLORS)] for place, name in enumerate(schedulers)}
    largest = max((row.pods_per_second or 0.0 for row in rows), default=0.0) or 1.0
    notes = wrap(subtitle, _LINE_LENGTH)
    parts = [text(12, 22, title, size=17, bold=True)]
    parts += [text(12, 42 + _LINE * n, note, size=11) for n, note in enumerate(notes)]
    y = _TOP + 20 + _LINE * len(notes)
    parts += legend(schedulers, colors, y)
    y += 30
    last = ""
    for row in rows:
        if row.workload != last:
            y += _GROUP_GAP if last else 0
            parts.append(text(12, y + 12, row.workload, size=12, bold=True))
            last = row.workload
        parts += _bar(row, colors[row.scheduler], y, largest)
        y += _BAR + _GAP
    return document(parts, height=y + 16, title=title, description=_described(rows))


def legend(schedulers: Sequence[str], colors: dict[str, str], y: int) -> list[str]:
    """Say which color is which scheduler's."""
    parts, x = [], 12
    for name in schedulers:
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colors[name]}"/>')
        parts.append(text(x + 18, y + 11, name, size=12))
        x += 40 + 8 * len(name)
    return parts


def _bar(row: Row, color: str, y: int, largest: float) -> list[str]:
    value = row.pods_per_second
    length = (value or 0.0) / largest * (WIDTH - _LABELS - _VALUES)
    label = "failed" if value is None else f"{value:,.0f}"
    if row.ratio is not None:
        label += f" ({row.ratio:.2f}x)"
    return [
        f'<rect x="{_LABELS}" y="{y}" width="{length:.1f}" height="{_BAR}" fill="{color}"/>',
        text(round(_LABELS + length) + 6, y + 12, label, size=11),
    ]


def text(x: int, y: int, words: str, *, size: int, bold: bool = False) -> str:
    """Write words at a point of the chart."""
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x}" y="{y}" font-size="{size}"{weight}>{escape(words)}</text>'


def _described(rows: Sequence[Row]) -> str:
    return "; ".join(
        f"{row.workload}, {row.scheduler}: "
        + ("failed" if row.pods_per_second is None else f"{row.pods_per_second:.0f} pods/s")
        for row in rows
    )


def document(parts: Sequence[str], *, height: int, title: str, description: str) -> str:
    """Put the parts of a chart together."""
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    style = 'role="img" font-family="sans-serif" fill="#2e3436"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(description)}</desc>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"
