"""Shares of a whole over time as SVG, stacked."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from streamdp.reports.charts.frame import WIDE, DrawnChart, Frame, across_of, axes, colours
from streamdp.reports.charts.scales import Scale
from streamdp.reports.releases.series import Picture, Series

MOST = 8
"""Series that are told apart: those with the largest share in all; the rest is one."""

VISIBLE = 0.02
"""A share that can be seen; series that never have it are in the rest."""


def stacked(picture: Picture, frame: Frame = WIDE) -> DrawnChart | None:
    """Share of each series in the sum over all, at each moment; nothing without any share."""
    layers = _layers(picture)
    if not layers:
        return None
    across, up = across_of(picture, frame), Scale(0.0, 1.0, frame.ground, frame.top)
    parts = [*axes(across, up, frame)]
    ground = [0.0] * len(picture.times)
    for (name, shares), colour in zip(layers, colours([name for name, _ in layers]), strict=True):
        above = [low + share for low, share in zip(ground, shares, strict=True)]
        ends = [
            *((across(at), up(top)) for at, top in zip(picture.times, above, strict=True)),
            *reversed(
                [(across(at), up(low)) for at, low in zip(picture.times, ground, strict=True)]
            ),
        ]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in ends)
        parts.append(f'<g class="series {colour}"><title>{escape(name)}</title>')
        parts.append(f'<path class="layer" d="M{path}Z"/></g>')
        ground = above
    return DrawnChart(tuple(parts), frame.wide, frame.high, across)


def legend(picture: Picture) -> tuple[tuple[str, str], ...]:
    """The colour and the name of each layer, the lowest first."""
    names = [name for name, _ in _layers(picture)]
    return tuple(zip(colours(names), names, strict=True))


def _layers(picture: Picture) -> list[tuple[str, list[float]]]:
    """Names and shares, the largest in all first; what is left of many is the last layer."""
    values = {each.name: _numbers(each) for each in picture.series}
    sums = [sum(column) for column in zip(*values.values(), strict=True)]
    if not any(total > 0 for total in sums):
        return []
    shares = {
        name: [
            number / total if total > 0 else 0.0 for number, total in zip(row, sums, strict=True)
        ]
        for name, row in values.items()
    }
    ordered = sorted(shares, key=lambda name: -sum(shares[name]))
    seen = [name for name in ordered if max(shares[name]) >= VISIBLE]
    told = [(name, shares[name]) for name in seen[: MOST - 1]]
    if len(ordered) > len(told):
        rest = [shares[name] for name in ordered if name not in dict(told)]
        told.append((f"{len(rest)} others", [sum(column) for column in zip(*rest, strict=True)]))
    return told


def _numbers(series: Series) -> Sequence[float]:
    return [max(number or 0.0, 0.0) for number in series.raw.values]
