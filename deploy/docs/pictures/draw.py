"""Draw the pictures of the explanations: `python deploy/docs/pictures/draw.py` writes them here.

`release.svg` is the walk of one release, `law.svg` the law of a private median on two neighbours.
"""

from __future__ import annotations

import math
from pathlib import Path

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


if __name__ == "__main__":
    (HERE / "release.svg").write_text(release())
    (HERE / "law.svg").write_text(law())
