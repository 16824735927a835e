"""A chart of values over time as SVG: a line for each scheduler."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from kubesched.bench.chart import COLORS, WIDTH, document, legend, text

Points = Sequence[tuple[float, float]]

_LEFT = 70
_RIGHT = 20
_HEIGHT = 320
_BELOW = 50
_LINE = 16
_LINE_LENGTH = 130
_TICKS = 6
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Panel:
    """Lines that share an axis."""

    y_label: str
    #: scheduler → its values
    lines: Mapping[str, Points]


def svg(panels: Sequence[Panel], *, title: str, subtitle: str = "", x_label: str) -> str:
    """Draw panels below each other, over the same time."""
    notes = wrap(subtitle, _LINE_LENGTH)
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    colors = {name: COLORS[place % len(COLORS)] for place, name in enumerate(names)}
    every = [points for panel in panels for points in panel.lines.values()]
    longest = max((x for points in every for x, _ in points), default=0.0) or 1.0
    height = _HEIGHT if len(panels) == 1 else _HEIGHT // 2

    parts = [text(12, 22, title, size=17, bold=True)]
    parts += [text(12, 42 + _LINE * n, note, size=11) for n, note in enumerate(notes)]
    parts += legend(names, colors, 36 + _LINE * len(notes))
    top = 66 + _LINE * len(notes)
    for panel in panels:
        parts += _panel(panel, colors, x_label, longest=longest, top=top, height=height)
        top += height + _BELOW
    return document(parts, height=top, title=title, description=_described(panels))


def _panel(
    panel: Panel, colors: Mapping[str, str], x_label: str, *, longest: float, top: int, height: int
) -> list[str]:
    """Draw lines from zero, so that a slope is as steep as it is."""
    bottom = top + height
    highest = max((y for points in panel.lines.values() for _, y in points), default=0.0) or 1.0
    y_ticks = ticks(highest)
    y_scale = height / y_ticks[-1]
    x_scale = (WIDTH - _LEFT - _RIGHT) / longest
    parts = []
    for value in y_ticks:
        y = round(bottom - value * y_scale)
        ruler = f'x1="{_LEFT}" y1="{y}" x2="{WIDTH - _RIGHT}" y2="{y}"'
        parts.append(f'<line {ruler} stroke="#d3d7cf"/>')
        parts.append(text(12, y + 4, f"{value:g}", size=11))
    parts += [
        text(round(_LEFT + value * x_scale), bottom + 18, f"{value:g}", size=11)
        for value in ticks(longest)
        if value <= longest
    ]
    parts.append(text(12, bottom + 38, f"{panel.y_label}, over {x_label}", size=11))
    for name, points in panel.lines.items():
        path = " ".join(f"{_LEFT + x * x_scale:.1f},{bottom - y * y_scale:.1f}" for x, y in points)
        style = f'fill="none" stroke="{colors[name]}" stroke-width="1.5"'
        parts.append(f'<polyline points="{path}" {style}/>')
    return parts


def ticks(largest: float) -> list[float]:
    """Round values from zero to at least the largest, some six of them."""
    power = 10.0 ** math.floor(math.log10(largest / _TICKS))
    step = next(power * nice for nice in _NICE if power * nice * _TICKS >= largest)
    return [round(count * step, 10) for count in range(math.ceil(largest / step) + 1)]


def _described(panels: Sequence[Panel]) -> str:
    return "; ".join(
        f"{name}: from {points[0][1]:.1f} to {points[-1][1]:.1f} {panel.y_label}"
        for panel in panels
        for name, points in panel.lines.items()
        if points
    )
