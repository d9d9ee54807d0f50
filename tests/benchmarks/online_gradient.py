"""Gradient descent on the surrogate against the default learner, stream by stream.

    python -m tests.benchmarks.online_gradient [--json] [--quick] [--final] [--once]

Errors are mean rank errors of nine deciles over the last three quarters of a stream, of the same
seeds for all: `online_gradient`, the default learner, `last-release`, and `none`, which is another
mechanism too. `to_default` is the first over the second, wanted at most 1.3 in the geometric mean;
`default_to_it` the other way round, wanted at most 1.02 everywhere; `below_none` is wanted of four
fifths of the streams. The last rows are the geometric means and the largest of each column.

The development streams chose the steps of the learner, so their ratios are no held-back figures.
`--final` takes the final streams in their place; streams/README.md says when they may be run.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from fractions import Fraction
from functools import partial
from multiprocessing import get_context

from streamdp.simulation.comparison import figures
from tests.benchmarks.report import Row, main
from tests.benchmarks.streams.contenders import NO_LEARNING, OURS
from tests.benchmarks.streams.settings import PAPERS_LENGTH, Setting, final, settings
from tests.benchmarks.streams.trials import PROCESSES, Errors, measured

WHO = {
    "online_gradient": f"online-gradient/{OURS}",
    "default": f"experts/{OURS}",
    "last_release": f"last-release/{OURS}",
    "none": f"{NO_LEARNING}/{OURS}",
}

RATIOS = ("to_default", "default_to_it")

SEEDS, LINEAR_LENGTH, EVERY = 2, 400, 3
"""Replays of each; batches of the paper's sequence at the low price; quickly, one stream of so
many."""


def rows(quick: bool, last: bool, once: bool) -> Iterable[Row]:
    """One row a stream, and what they say together."""
    chosen = (final() if last else _development())[:: EVERY if quick else 1]
    seeds = 1 if quick or once else SEEDS
    shown: list[Row] = []
    for setting, runs in _measured(chosen, quick, seeds):
        row = _row(setting, runs)
        shown.append(row)
        yield row
        if sys.stderr.isatty():
            print(f"{len(shown)} of {len(chosen)}: {setting.key}", file=sys.stderr)
    yield from _summary(shown)


def _development() -> tuple[Setting, ...]:
    """The suite's, and the paper's sequence at a low price."""
    chosen = settings()
    paper = next(each for each in chosen if each.length == PAPERS_LENGTH)
    return (*chosen, replace(paper, epsilon=Fraction(1, 10), length=LINEAR_LENGTH))


def _measured(
    chosen: Sequence[Setting], quick: bool, seeds: int
) -> Iterator[tuple[Setting, Errors]]:
    """Every setting and its errors, in order; two at once, a process each, unless quickly."""
    each = dict.fromkeys(WHO.values(), seeds)
    measure = partial(measured, who=tuple(each), quick=quick, seeds=each)
    if quick:
        yield from zip(chosen, map(measure, chosen), strict=True)
        return
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        yield from zip(chosen, pool.map(measure, chosen), strict=True)


def _row(setting: Setting, runs: Errors) -> Row:
    late = {name: figures(runs[who]).late_average for name, who in WHO.items()}
    return {
        "part": setting.part,
        "stream": setting.name,
        "epsilon": float(setting.epsilon),
        "seeds": len(runs[WHO["default"]]),
        **{name: round(error, 5) for name, error in late.items()},
        "to_default": round(late["online_gradient"] / late["default"], 3),
        "default_to_it": round(late["default"] / late["online_gradient"], 3),
        "below_none": late["online_gradient"] < late["none"],
    }


def _summary(shown: Sequence[Row]) -> Iterator[Row]:
    """Geometric means, how many are below `none`, and the largest of each column."""
    below = sum(bool(row["below_none"]) for row in shown)
    columns = {name: [float(row[name] or 0.0) for row in shown] for name in (*WHO, *RATIOS)}
    base: Row = {"part": shown[0]["part"], "epsilon": None, "seeds": shown[0]["seeds"]}
    yield {
        **base,
        "stream": f"geometric mean of {len(shown)}",
        **{name: round(_geometric(values), 5) for name, values in columns.items()},
        "below_none": f"{below} of {len(shown)}",
    }
    yield {
        **base,
        "stream": f"largest of {len(shown)}",
        **{name: max(values) for name, values in columns.items()},
        "below_none": None,
    }


def _geometric(values: Sequence[float]) -> float:
    """Geometric mean; errors of zero have no logarithm and count as the least that is shown."""
    return math.exp(math.fsum(math.log(max(each, 1e-5)) for each in values) / len(values))


if __name__ == "__main__":
    asked = argparse.ArgumentParser(add_help=False)
    asked.add_argument("--final", action="store_true", help="streams that nothing is tuned on")
    asked.add_argument("--once", action="store_true", help="one seed a stream")
    known, _ = asked.parse_known_args()
    title = "Gradient descent on the surrogate: rank error of the last three quarters"
    main(title, partial(rows, last=known.final, once=known.once), parser=asked)
