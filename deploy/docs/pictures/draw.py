"""Draw the pictures of the explanations: `python deploy/docs/pictures/draw.py` writes them here.

`release.svg` is the walk of one release, `law.svg` the law of a private median on two neighbours,
`mixture.svg` a batch that is counted and read by the default learner.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np

from streamdp.learning.mixture.belief import BROAD, Belief, Update
from streamdp.learning.mixture.curves import (
    MOVES,
    SIZES,
    Curves,
    broad_curves,
    broad_weights,
    first_weights,
)
from streamdp.learning.mixture.distribution import Distribution
from streamdp.learning.mixture.evidence import Evidence
from streamdp.learning.mixture.records import RecordsPrior
from streamdp.learning.mixture.release_plan import EVEN, cuts
from streamdp.mechanisms.histograms import Histogram
from streamdp.types import FloatArray, Grid

HERE = Path(__file__).parent
STEPS = (
    ("sources", "a window ended,|a file came"),
    ("plan", "prior, question, cost:|public facts"),
    ("reserve", "charge in the ledger,|durable"),
    ("count", "one GROUP BY|in the engine"),
    ("draw", "exact, from the|system's entropy"),
    ("learn", "from the release"),
    ("commit", "charge, release, state,|outbox: all or nothing"),
    ("deliver", "at least once"),
)
PRIVATE = ("count", "draw")
WIDTH, HEIGHT, GAP = 150, 84, 34
INK, PAPER, SECRET = "#1f3a5f", "#eef3f9", "#fbe9e2"


def text(x: float, y: float, content: str, *, size: int = 12, anchor: str = "middle") -> str:
    """One line of text."""
    about = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
    return f'<text {about} font-family="sans-serif" fill="{INK}">{content}</text>'


def svg(width: int, height: int, label: str, parts: list[str]) -> str:
    """A picture with a white ground, so that it can be read on any page."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        f' aria-label="{label}"><rect width="100%" height="100%" fill="#ffffff"/>'
    )
    return "\n".join((head, *parts, "</svg>")) + "\n"


def release() -> str:
    """Eight boxes in two rows; those that see records are of another colour."""
    parts = []
    for at, (name, lines) in enumerate(STEPS):
        column = at if at < 4 else 7 - at
        x, y = 12 + column * (WIDTH + GAP), 20 if at < 4 else 160
        fill = SECRET if name in PRIVATE else PAPER
        box = f'x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="8"'
        parts.append(f'<rect {box} fill="{fill}" stroke="{INK}"/>')
        parts.append(text(x + WIDTH / 2, y + 26, name, size=15))
        for row, line in enumerate(lines.split("|")):
            parts.append(text(x + WIDTH / 2, y + 50 + 17 * row, line))
        if at in (3, 7):
            continue
        step = 1 if at < 4 else -1
        start = x + WIDTH if at < 4 else x
        parts.append(arrow(start, y + HEIGHT / 2, start + step * GAP, y + HEIGHT / 2))
    right = 12 + 3 * (WIDTH + GAP) + WIDTH / 2
    parts.append(arrow(right, 20 + HEIGHT, right, 160))
    learn = 12 + 2 * (WIDTH + GAP) + WIDTH / 2
    plan = 12 + (WIDTH + GAP) + WIDTH / 2
    parts.append(arrow(learn, 160, plan, 20 + HEIGHT, dashed=True))
    parts.append(text((learn + plan) / 2 + 62, 122, "prior of the next", anchor="start"))
    parts.append(
        text(
            12,
            274,
            "coloured: sees records; all else sees releases and public facts",
            anchor="start",
        )
    )
    return svg(740, 288, "The walk of one release", parts)


def arrow(x: float, y: float, to_x: float, to_y: float, *, dashed: bool = False) -> str:
    """A line with a head."""
    angle = math.atan2(to_y - y, to_x - x)
    ends = " ".join(
        f"{to_x - 8 * math.cos(angle + turn):.1f},{to_y - 8 * math.sin(angle + turn):.1f}"
        for turn in (0.45, -0.45)
    )
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    line = f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{INK}"{dash}/>'
    return line + f'<polygon points="{to_x:.1f},{to_y:.1f} {ends}" fill="{INK}"/>'


def median(records: list[int], cells: int, epsilon: float) -> list[float]:
    """P(o) in proportion to exp(-epsilon |n/2 - rank(o)|): the range of the cost is one."""
    n = len(records)
    costs = [
        min(abs(n / 2 - sum(r < o for r in records)), abs(n / 2 - sum(r <= o for r in records)))
        for o in range(cells)
    ]
    weights = [math.exp(-epsilon * cost) for cost in costs]
    return [weight / sum(weights) for weight in weights]


def law() -> str:
    """The law of a median of eleven records, and of the same without the last."""
    epsilon, cells = 0.5, 24
    records = [3, 5, 6, 8, 9, 10, 11, 12, 14, 15, 21]
    both = (median(records, cells, epsilon), median(records[:-1], cells, epsilon))
    worst = max(abs(math.log(p / q)) for p, q in zip(*both, strict=True))
    assert worst <= epsilon, worst
    parts, scale, floor = [], 170 / max(max(each) for each in both), 210
    for cell in range(cells):
        for side, shares in enumerate(both):
            height = shares[cell] * scale
            x = 20 + cell * 29 + 12 * side
            box = f'x="{x}" y="{floor - height:.1f}" width="11" height="{height:.1f}"'
            parts.append(f'<rect {box} fill="{("#1f3a5f", "#d9764a")[side]}"/>')
    parts += [text(31 + record * 29, floor + 18, "•", size=16) for record in records]
    parts.append(text(20, 24, "probability of each released median, ε = 0.5", anchor="start"))
    parts.append('<rect x="430" y="12" width="12" height="12" fill="#1f3a5f"/>')
    parts.append(text(448, 23, "eleven records", anchor="start"))
    parts.append('<rect x="560" y="12" width="12" height="12" fill="#d9764a"/>')
    parts.append(text(578, 23, "without the last", anchor="start"))
    said = f"largest quotient of two bars: {math.exp(worst):.2f}; admitted: {math.exp(epsilon):.2f}"
    parts.append(text(20, 252, f"dots: the records. {said}", anchor="start"))
    return svg(740, 264, "The law of a private median on two neighbours", parts)


ROWS, VARIANCE = 400, 120.0
NOISE = (9.0, -14.0, 4.0, 12.0, -7.0, -3.0, 15.0, -10.0, 6.0, -8.0)
"""Noise of the ten counts of the picture."""


def logistic(centre: float, scale: float) -> Distribution:
    """A logistic cdf in cells."""
    levels = np.concatenate(([0.001, 0.005], np.arange(1, 40) / 40.0, [0.995, 0.999]))
    return Distribution.about(centre + scale * np.log(levels / (1.0 - levels)), levels)


def counted() -> tuple[Belief, Evidence, Update]:
    """A prior, the noisy counts of a batch that lies to its right, and what follows."""
    grid = Grid(Fraction(1), 0, 400)
    groups = {"usual": Curves(logistic(170.0, 16.0), MOVES), BROAD: broad_curves(grid, (170, 30))}
    weights = np.concatenate((0.97 * first_weights(), 0.03 * broad_weights(groups[BROAD])))
    sizes = np.full(len(SIZES), 1.0 / len(SIZES))
    belief = Belief(grid, groups, weights, sizes, RecordsPrior.expected(ROWS), 10)
    edges = cuts(belief.marginal, EVEN)
    levels = logistic(184.0, 13.0).cdf(np.array(edges, dtype=float))
    true = ROWS * np.diff(np.concatenate(([0.0], levels, [1.0])))
    noisy = tuple(int(each) for each in np.rint(true + np.array(NOISE)))
    stage = Histogram(tuple(edges), noisy)
    evidence = Evidence.counted([stage], [VARIANCE], belief.records, belief.marginal)
    return belief, evidence, belief.after(evidence)


def mixture() -> str:
    """Curves, cuts, noisy shares, posterior mean, and the interval of one quantile."""
    belief, evidence, after = counted()
    low, high, floor, tall, wide = 90.0, 290.0, 270.0, 240.0, 700.0

    def x(cell: float) -> float:
        return 30.0 + (cell - low) / (high - low) * wide

    def y(level: float) -> float:
        return floor - level * tall

    cells = np.arange(low, high + 1.0, 2.0)

    def line(levels: FloatArray, look: str) -> str:
        pairs = zip(cells.tolist(), levels.tolist(), strict=True)
        points = " L".join(f"{x(cell):.0f},{y(level):.0f}" for cell, level in pairs)
        return f'<path d="M{points}" fill="none" {look}/>'

    heaviest = np.argsort(-belief.weights, kind="stable")[:14]
    parts = [line(each, 'stroke="#c9d3df"') for each in belief.cdf(cells)[heaviest]]
    for cut in evidence.cells.tolist():
        ends = f'x1="{x(cut):.0f}" x2="{x(cut):.0f}" y1="{y(0.0):.0f}" y2="{y(1.0):.0f}"'
        parts.append(f'<line {ends} stroke="#d9764a" stroke-dasharray="2 4"/>')
    parts.append(line(belief.marginal.cdf(cells), f'stroke="{INK}" stroke-dasharray="6 4"'))
    found = after.posterior_mean.distribution()
    parts.append(line(found.cdf(cells), f'stroke="{INK}" stroke-width="3"'))
    for cut, level in zip(evidence.cells.tolist(), evidence.y.tolist(), strict=True):
        parts.append(f'<circle cx="{x(cut):.0f}" cy="{y(level):.0f}" r="4.5" fill="#d9764a"/>')
    wanted = np.array([0.7])
    (first,), (last,) = after.posterior.interval(wanted, 0.95)
    (value,) = found.quantile_cells(wanted)
    ends = f'x1="{x(first):.0f}" x2="{x(last):.0f}" y1="{y(0.7):.0f}" y2="{y(0.7):.0f}"'
    parts.append(f'<line {ends} stroke="#2f8f4e" stroke-width="3"/>')
    parts.append(f'<circle cx="{x(value):.0f}" cy="{y(0.7):.0f}" r="5" fill="#2f8f4e"/>')
    for row, (colour, said) in enumerate(
        (
            ("#9fb0c4", "curves F_i, the heaviest"),
            (INK, "dashed: mean of the prior; solid: posterior mean"),
            ("#d9764a", "cuts at the prior's deciles, and the noisy shares y there"),
            ("#2f8f4e", "released .7 quantile with its interval"),
        )
    ):
        parts.append(f'<rect x="386" y="{162 + 22 * row}" width="12" height="12" fill="{colour}"/>')
        parts.append(text(404, 172 + 22 * row, said, anchor="start"))
    parts.append(f'<line x1="30" x2="730" y1="{floor:.0f}" y2="{floor:.0f}" stroke="{INK}"/>')
    parts.append(text(380, 288, "cells"))
    return svg(740, 296, "A batch that is counted and read by the default learner", parts)


if __name__ == "__main__":
    (HERE / "release.svg").write_text(release())
    (HERE / "law.svg").write_text(law())
    (HERE / "mixture.svg").write_text(mixture())
