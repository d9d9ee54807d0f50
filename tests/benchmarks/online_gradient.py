"""Gradient descent on the surrogate against the default learner, stream by stream.

    python -m tests.benchmarks.online_gradient [--json] [--quick] [--seeds 5] [--part NAME]
    python -m tests.benchmarks.online_gradient --final

Errors are mean rank errors of all quantiles over the last three quarters of a stream, of the same
seeds for all: `online_gradient`, the default learner, `last-release`, and `none`, which is another
mechanism too. `to_default` is the first over the second, wanted at most 1.3 in the geometric mean;
`default_to_it` the other way round, wanted at most 1.02 everywhere, and `give_or_take` its standard
error over seeds; `below_none` is wanted of four fifths of the streams. The last rows of a part are
its geometric means, and the largest of each column.

The first part is the development streams, with the paper's sequence (`linear`) at three prices.
They chose the steps of the learner, so their ratios are no held-back figures. The second part is
streams whose features inform, mislead or are noise, and the third the paper's sequence with other
numbers of quantiles; none of them chose anything. `--final` takes the final streams in their place;
streams/README.md says when they may be run.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from streamdp.simulation.comparison import figures
from tests.benchmarks.report import Row, main
from tests.benchmarks.streams.contenders import NO_LEARNING, OURS
from tests.benchmarks.streams.featured import counted_settings, featured_settings
from tests.benchmarks.streams.settings import PAPERS_LENGTH, Setting, final, settings
from tests.benchmarks.streams.trials import Errors, measured

WHO = {
    "online_gradient": f"online-gradient/{OURS}",
    "default": f"mixture/{OURS}",
    "last_release": f"last-release/{OURS}",
    "none": f"{NO_LEARNING}/{OURS}",
}

PARTS = ("development", "features", "quantiles")

RATIOS = ("to_default", "default_to_it")

SEEDS, LINEAR_LENGTH, EVERY = 5, 400, 3
"""Replays of each, unless told otherwise; batches of the paper's sequence; quickly, one stream of
so many."""


def rows(quick: bool, last: bool, seeds: int, only: str | None) -> Iterable[Row]:
    """One row a stream, and what those of a part say together."""
    for name, part in _parts(last).items():
        if only and name != only:
            continue
        shown: list[Row] = []
        for setting in part[:: EVERY if quick else 1]:
            row = _row(setting, _measured(setting, quick, 1 if quick else seeds))
            shown.append(row)
            yield row
            if sys.stderr.isatty():
                print(f"{len(shown)} of {len(part)}: {setting.key}", file=sys.stderr)
        yield from _summary(name, shown)


def _parts(last: bool) -> dict[str, tuple[Setting, ...]]:
    """Settings by the name of their part."""
    if last:
        return {"final": final()}
    parts = _development(), featured_settings(), counted_settings(LINEAR_LENGTH)
    return dict(zip(PARTS, parts, strict=True))


def _development() -> tuple[Setting, ...]:
    """The suite's, with the paper's sequence at a low price too, and as long at each."""
    chosen = tuple(
        replace(each, name="linear", length=LINEAR_LENGTH) if each.length == PAPERS_LENGTH else each
        for each in settings()
    )
    paper = next(each for each in chosen if each.name == "linear")
    return (replace(paper, epsilon=Fraction(1, 10)), *chosen)


def _measured(setting: Setting, quick: bool, seeds: int) -> Errors:
    """Errors of everybody."""
    each = dict.fromkeys(WHO.values(), max(seeds, 1))
    return measured(setting, tuple(each), quick, each)


def _row(setting: Setting, runs: Errors) -> Row:
    late = {name: figures(runs[who]).late_average for name, who in WHO.items()}
    pairs = zip(runs[WHO["default"]], runs[WHO["online_gradient"]], strict=True)
    each = [figures([one]).late_average / figures([other]).late_average for one, other in pairs]
    spread = statistics.stdev(each) / math.sqrt(len(each)) if len(each) > 1 else None
    return {
        "part": setting.part,
        "stream": setting.name,
        "epsilon": float(setting.epsilon),
        "seeds": len(runs[WHO["default"]]),
        **{name: round(error, 5) for name, error in late.items()},
        "to_default": round(late["online_gradient"] / late["default"], 3),
        "default_to_it": round(late["default"] / late["online_gradient"], 3),
        "give_or_take": None if spread is None else round(spread, 3),
        "below_none": late["online_gradient"] < late["none"],
    }


def _summary(name: str, shown: Sequence[Row]) -> Iterator[Row]:
    """Geometric means, how many are below `none`, and the largest of each column."""
    below = sum(bool(row["below_none"]) for row in shown)
    columns = {name: [float(row[name] or 0.0) for row in shown] for name in (*WHO, *RATIOS)}
    same = {"epsilon": None, "seeds": shown[0]["seeds"], "give_or_take": None}
    base: Row = {"part": name, **same}
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
    asked.add_argument("--seeds", type=int, default=SEEDS, help="replays of each stream")
    asked.add_argument("--part", choices=PARTS, help="one part alone")
    known, _ = asked.parse_known_args()
    title = "Gradient descent on the surrogate: rank error of the last three quarters"
    main(title, partial(rows, last=known.final, seeds=known.seeds, only=known.part), parser=asked)
