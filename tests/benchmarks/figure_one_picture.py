"""Picture of `figure_one`, from its rows: errors by number of quantiles, a line for each form.

python -m tests.benchmarks.figure_one --json | python -m tests.benchmarks.figure_one_picture [FILE]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl

from tests.benchmarks.report import Row

mpl.use("Agg")
from matplotlib import pyplot as plt

PICTURE = Path(__file__).parent / "pictures" / "figure_one.png"


def draw_picture(found: list[Row], picture: Path) -> None:
    """A panel for each data and epsilon, a line for each form."""
    keys = sorted({(str(row["data"]), float(row["epsilon"] or 0)) for row in found})
    figure, panels = plt.subplots(
        1, len(keys), figsize=(4 * len(keys), 4), layout="constrained", squeeze=False
    )
    colors = {("binary", "conditional"): "#013a63", ("binary", "edge"): "#61a5c2"}
    colors |= {("K-ary", "conditional"): "#9b2226", ("K-ary", "edge"): "#e09f3e"}
    for axes, (data, epsilon) in zip(panels[0], keys, strict=True):
        for (form, restriction), color in colors.items():
            for sharpness, style in (("textbook", "--"), ("ours", "-")):
                about = (data, epsilon, form, restriction, sharpness)
                names = ("data", "epsilon", "form", "restriction", "sharpness")
                line = [row for row in found if tuple(row[name] for name in names) == about]
                counts = [float(row["quantiles"] or 0) for row in line]
                each = [float(row["gap"] or 0) for row in line]
                name = f"{form}, {restriction}, {sharpness}"
                axes.plot(counts, each, style, color=color, label=name)
        axes.set(title=f"{data}, ε {epsilon:g}", xlabel="quantiles", xscale="log")
        axes.set_yscale("symlog", linthresh=1.0)
    panels[0][0].set_ylabel("largest gap, records")
    panels[0][-1].legend(fontsize=7)
    picture.parent.mkdir(exist_ok=True)
    figure.savefig(picture, dpi=72)


if __name__ == "__main__":
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    draw_picture([json.loads(line) for line in sys.stdin], file)
    print(f"wrote {file}")
