"""Largest gap by epsilon and number of quantiles, of the forms of the founding paper's Figure 1.

    python -m tests.benchmarks.figure_one [--quick] [--json]
    python -m tests.benchmarks.figure_one --json | python -m tests.benchmarks.figure_one_picture

The binary and the K-ary tree, with the prior outside a region conditioned away or put on its edges,
with a uniform prior over the bounds, on 1,000 records of a standard normal and on ages. `textbook`
draws with exp(-ε·cost/2) of each draw's share, `ours` with the sharpness of each node.

`bound`, with probability .95: a draw of exponent c is off by ln(1/(βΨ))/c at most, where the mass Ψ
of points without an error is that of one grain at least. Errors of a level move the targets of the
next by no more than the larger of them, so levels add up; β is shared by all draws. `beyond` is the
share of repeats above it. The paper has its figure as a picture alone; the page on what is measured
has what the code of its authors gives beside these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from fractions import Fraction
from unittest.mock import patch

import numpy as np

from streamdp.mechanisms.quantile_tree.grains import GRAINS
from streamdp.mechanisms.quantile_tree.sharpness import Level
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.shapes import Uniform
from streamdp.privacy.draws import OperatingSystemEntropy
from tests.benchmarks.report import Row, main
from tests.benchmarks.static import DATA, EPSILONS, Data, rank_error

COUNTS = (1, 3, 9, 19, 49)
BETA = 0.05


def textbook(level: Level, targets: tuple[Fraction, ...]) -> Fraction:
    """Exponent of a draw that has its share of the level, with the factor of two."""
    return level.budget / (2 * len(targets))


SHARPNESS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "textbook": lambda: patch.object(Level, "sharpness", textbook),
    "ours": nullcontext,
}


def trees(data: Data, count: int, epsilon: float) -> dict[tuple[str, str], QuantileTree]:
    """By form and restriction; of fewer than three quantiles both forms are one."""
    targets = tuple(Fraction(index, count + 1) for index in range(1, count + 1))
    forms, parts = {"binary": 2}, math.ceil(math.exp(math.sqrt(math.log(2) * math.log(count + 1))))
    if parts > 2:
        forms["K-ary"] = parts
    return {
        (name, restriction): QuantileTree(
            targets, Fraction(str(epsilon)), data.grid(), branching, restriction=restriction
        )
        for name, branching in forms.items()
        for restriction in ("conditional", "edge")
    }


def bound(tree: QuantileTree) -> float:
    """Records that the largest gap stays within, but with probability `BETA`."""
    grains = (tree.grid.upper - tree.grid.lower + 1) * GRAINS
    least = math.log(len(tree.quantiles) * grains / BETA)
    return sum(
        least / float(min(level.sharpness(targets) for targets in level.nodes))
        for level in tree.levels()
    )


def gaps(data: Data, tree: QuantileTree, repeats: int) -> list[float]:
    """Largest gap of each repeat, in records."""
    prior = JointPrior((Uniform(*data.bounds),) * len(tree.quantiles))
    targets, found = [float(each) for each in tree.quantiles], []
    for repeat in range(repeats):
        counts = data.counts(data.draw(np.random.default_rng([repeat, len(targets)])))
        cells = tree.draw(counts, prior, OperatingSystemEntropy())
        records = np.repeat(counts.cells, counts.counts).astype(float)
        found.append(rank_error(records, [float(cell) for cell in cells], targets) * len(records))
    return found


def rows(quick: bool) -> Iterator[Row]:
    """One row for data, epsilon, number of quantiles, form, restriction and sharpness."""
    for data in (DATA[0], DATA[2]):
        for epsilon in EPSILONS:
            for count in COUNTS[1:3] if quick else COUNTS:
                for (form, restriction), tree in trees(data, count, epsilon).items():
                    for sharpness, with_it in SHARPNESS.items():
                        with with_it():
                            found = gaps(data, tree, 4 if quick else 25)
                            at_most = bound(tree)
                        yield {
                            "data": data.name,
                            "epsilon": epsilon,
                            "quantiles": count,
                            "form": form,
                            "restriction": restriction,
                            "sharpness": sharpness,
                            "gap": round(float(np.mean(found)), 2),
                            "error": round(float(np.std(found)) / math.sqrt(len(found)), 2),
                            "bound": round(at_most, 1),
                            "beyond": float(np.mean(np.asarray(found) > at_most)),
                        }


if __name__ == "__main__":
    main(
        "Largest gap by epsilon and number of quantiles",
        rows,
        failed=lambda row: float(row["beyond"] or 0) > 2 * BETA,
    )
