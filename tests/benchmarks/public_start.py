"""Public rows at the start: the default learner against staying with what they say.

    python -m tests.benchmarks.public_start [--json] [--quick]

Public rows are those of the first thirty days of a column of the flights; the days after them are
released. `none` draws from the priors that public rows make, for ever; the default begins there and
learns. With `binary` both draw from the binary tree; with `auto` each takes its own mechanism.
Errors are mean rank errors of nine deciles over all days, over the first ten, and over the last
three quarters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.quantiles.study import QuantilesStudy
from streamdp.kinds.study import Stream
from streamdp.learning.learner import Fixed
from streamdp.learning.online_gradient.public_fit import PublicFit, fit_public
from streamdp.mechanisms.quantile_tree.planning.choice import choose_tree
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.priors.joint import JointPrior
from streamdp.priors.public import PublicSample
from streamdp.priors.shapes import Cauchy
from streamdp.simulation.comparison import errors_of, replay
from tests.benchmarks.report import Row, main
from tests.benchmarks.streams.contenders import mixture
from tests.benchmarks.streams.settings import DECILES, Setting, settings

STREAMS = (
    "flights-air_time 0.1",
    "flights-arrival_delay 0.1",
    "flights-departure_delay 0.1",
    "flights-air_time 0.3",
)

PUBLIC_DAYS, SEEDS = 30, 3

ROBUST = 0.05
"""Weight of the prior that holds where public rows mislead, as configured by default."""


def rows(quick: bool) -> Iterable[Row]:
    """One row a stream and way of releasing it."""
    known = {setting.key: setting for setting in settings()}
    for setting in map(known.__getitem__, STREAMS[: 1 if quick else None]):
        whole = setting.make(0, 50 if quick else setting.length)
        fitted, stream = _fitted(setting, whole), _after(whole)
        kinds = (*_kinds(setting, fitted, stream), *_misled(setting, fitted, stream))
        for who, kind in kinds:
            errors = np.array(
                [
                    errors_of(
                        replay(QuantilesStudy(), kind, stream, PublicEntropy(f"start {seed}"))
                    )
                    for seed in range(1 if quick else SEEDS)
                ]
            ).mean(axis=2)
            yield {
                "stream": setting.name,
                "epsilon": float(setting.epsilon),
                "who": who,
                "average_error": round(float(errors.mean()), 4),
                "first_ten": round(float(errors[:, :10].mean()), 4),
                "late": round(float(errors[:, errors.shape[1] // 4 :].mean()), 4),
            }


def _fitted(setting: Setting, stream: Stream) -> PublicFit:
    """What the first days say."""
    counts = stream.counts[:PUBLIC_DAYS]
    cells = np.concatenate([each.cells for each in counts])
    unit = float(setting.grid.resolution)
    values, place = np.unique(cells, return_inverse=True)
    numbers = np.bincount(place, np.concatenate([each.counts for each in counts]))
    public = PublicSample(values * unit, numbers.astype(np.int64), unit)
    targets = np.array([float(each) for each in setting.quantiles])
    return fit_public(public, targets, setting.rows, PublicEntropy("public start"))


def _after(stream: Stream) -> Stream:
    """The days after them."""
    batches, counts = stream.batches[PUBLIC_DAYS:], stream.counts[PUBLIC_DAYS:]
    return replace(stream, batches=batches, counts=counts)


def _misled(setting: Setting, fitted: PublicFit, stream: Stream) -> Iterator[tuple[str, Quantiles]]:
    """The same from public rows that lie five guessed spreads elsewhere."""
    away = 5.0 * setting.guess[1]
    wrong = replace(fitted, locations=tuple(each + away for each in fitted.locations))
    for who, kind in _kinds(setting, wrong, stream):
        if who.endswith("public rows"):
            yield who.replace("public", "wrong public"), kind


def _kinds(setting: Setting, fitted: PublicFit, stream: Stream) -> Iterator[tuple[str, Quantiles]]:
    """The default and `none`, from public rows, and the default without; in both mechanisms."""
    epsilon, grid, robust = setting.epsilon, setting.grid, Cauchy(*setting.guess)
    priors = fitted.priors(robust, ROBUST, float(grid.resolution))
    tree = QuantileTree(DECILES, epsilon, grid)
    form = choose_tree(len(DECILES), epsilon, setting.rows)
    default = mixture(setting, tree, stream)
    auto = form.tree(DECILES, epsilon, grid), form.prior(priors, None)
    drawn = replace(default.without_counts(), first=(tree, JointPrior(priors)), public=priors)
    made = Quantiles("value", DECILES, epsilon, grid, Fixed(priors))
    yield "binary: none, public rows", made
    yield "binary: default, public rows", replace(made, learner=drawn)
    alone = replace(drawn, first=(tree, JointPrior((robust,) * len(DECILES))), public=())
    yield "binary: default", replace(made, learner=alone)
    yield "auto: none, public rows", replace(made, form=form)
    yield (
        "auto: default, public rows",
        replace(made, learner=replace(default, first=auto, public=priors)),
    )
    yield "auto: default", replace(made, learner=default)


if __name__ == "__main__":
    main("Public rows at the start, against staying with what they say", rows)
