"""A chart of values over time as SVG: a line for each scheduler."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from textwrap import wrap

from kubesched.bench.chart import COLORS, WIDTH, document, legend, text

Points = Sequence[tuple[float, float]]

_LEFT = 70
_RIGHT = 20
_PLOT_HEIGHT = 320
_LINE = 16
_LINE_LENGTH = 130
_TICKS = 6
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)


def svg(
    lines: Mapping[str, Points], *, title: str, subtitle: str = "", x_label: str, y_label: str
) -> str:
    """Draw lines from zero, so that a slope is as steep as it is."""
    notes = wrap(subtitle, _LINE_LENGTH)
    top = 66 + _LINE * len(notes)
    bottom = top + _PLOT_HEIGHT
    longest = max((x for points in lines.values() for x, _ in points), default=0.0) or 1.0
    highest = max((y for points in lines.values() for _, y in points), default=0.0) or 1.0
    y_ticks, x_ticks = ticks(highest), ticks(longest)
    y_scale = _PLOT_HEIGHT / y_ticks[-1]
    x_scale = (WIDTH - _LEFT - _RIGHT) / longest

    parts = [text(12, 22, title, size=17, bold=True)]
    parts += [text(12, 42 + _LINE * n, note, size=11) for n, note in enumerate(notes)]
    colors = {name: COLORS[place % len(COLORS)] for place, name in enumerate(lines)}
    parts += legend(list(lines), colors, 36 + _LINE * len(notes))
    for value in y_ticks:
        y = round(bottom - value * y_scale)
        ruler = f'x1="{_LEFT}" y1="{y}" x2="{WIDTH - _RIGHT}" y2="{y}"'
        parts.append(f'<line {ruler} stroke="#d3d7cf"/>')
        parts.append(text(12, y + 4, f"{value:g}", size=11))
    for value in x_ticks:
        if value <= longest:
            parts.append(text(round(_LEFT + value * x_scale), bottom + 18, f"{value:g}", size=11))
    parts.append(text(12, bottom + 38, f"{y_label}, over {x_label}", size=11))
    for name, points in lines.items():
        path = " ".join(f"{_LEFT + x * x_scale:.1f},{bottom - y * y_scale:.1f}" for x, y in points)
        style = f'fill="none" stroke="{colors[name]}" stroke-width="1.5"'
        parts.append(f'<polyline points="{path}" {style}/>')
    return document(parts, height=bottom + 50, title=title, description=_described(lines))


def ticks(largest: float) -> list[float]:
    """Round values from zero to at least the largest, some six of them."""
    power = 10.0 ** math.floor(math.log10(largest / _TICKS))
    step = next(power * nice for nice in _NICE if power * nice * _TICKS >= largest)
    return [round(count * step, 10) for count in range(math.ceil(largest / step) + 1)]


def _described(lines: Mapping[str, Points]) -> str:
    return "; ".join(
        f"{name}: from {points[0][1]:.1f} to {points[-1][1]:.1f}"
        for name, points in lines.items()
        if points
    )
