"""Answers about periods from kept measurements, against the records: errors, cover, comparisons.

`python -m tests.benchmarks.questions` replays the streams of development through the product, keeps
their measurements, and asks. `--final` does so on streams on which nothing was tuned, `--quick` on
a few. Rank errors are in per cent of the records of a period:

- `days`: the mean of published daily quantiles, which is what most people do;
- `mixture`: the daily distributions, linear between the cuts of each day, put together;
- `ask`: what `streamdp ask` answers.

`cover` is how many 95 % intervals hold the quantile of the records, `between` the same at
quantiles between the targets, `outer` the error in % of shares at the .05 and .95 quantile,
`naive` that by averages of daily deciles, and `cover` behind them how many intervals of these
shares hold; `spare` is the width of intervals of shares up to the true quantiles over that which
holds 95 % of their errors: intervals of quantiles end at whole cells, and so hold more. `total` is
the cover of numbers of records, and `next` how many forecasts hold the median of the batch that
came.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import math
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import numpy as np

from streamdp.answers import LEVEL
from streamdp.answers.base import daily
from streamdp.answers.changes import changed_lately, quantile_change, shift
from streamdp.answers.counted import Counted, Stage
from streamdp.answers.job import ColumnDistribution, Measured, United
from streamdp.answers.regression import BatchHistory
from streamdp.database import Database
from streamdp.errors import ConfigurationError
from streamdp.kinds.quantiles.study import QuantilesStudy
from streamdp.library.ask import asking
from streamdp.mechanisms.noise import AdditiveNoise
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.mechanisms.sparse_vector.above_threshold import AboveThreshold
from streamdp.mechanisms.sparse_vector.drift import Tolerance, excess
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.simulation.comparison import replay
from streamdp.store.measurements import add_measurements
from streamdp.store.migrations import open_to_read
from streamdp.types import (
    CellCounts,
    FloatArray,
    IntArray,
    MeasuredRelease,
    Measurement,
    MeasurementTerms,
    NoiseLaw,
    Row,
)
from tests.benchmarks.large_store import START, furnish
from tests.benchmarks.streams.contenders import OURS, Contenders
from tests.benchmarks.streams.settings import Setting, by_origin, final, settings, stream_of

DECILES = np.arange(1, 10) / 10
OUTER = (0.05, 0.95)
BETWEEN = np.array([0.15, 0.25, 0.45, 0.65, 0.85])
PERIODS = (1, 7, 28)
STEP = {1: 7, 7: 7, 28: 14}
"""Batches from one period to the next."""

LENGTH, QUICK = 200, 60
FORECASTS = 20
SHUFFLES = 4


@dataclass(frozen=True)
class World:
    """A stream that was released, and its records.

    Args:
        measured: The releases.
        rows: Published, of each.
        cells: Of each batch.
        counts: Records of each cell.
        width: Of a cell.
    """

    measured: Measured
    rows: tuple[tuple[Row, ...], ...]
    cells: tuple[IntArray, ...]
    counts: tuple[IntArray, ...]
    width: float

    @functools.cached_property
    def of(self) -> ColumnDistribution:
        return self.measured.distribution()

    def truth(self, places: Iterable[int]) -> tuple[IntArray, FloatArray]:
        """Cells of some batches together, and the share at or below each."""
        places = list(places)
        cells, inverse = np.unique(
            np.concatenate([self.cells[place] for place in places]), return_inverse=True
        )
        counts = np.bincount(inverse, np.concatenate([self.counts[place] for place in places]))
        return cells, np.cumsum(counts) / counts.sum()


@dataclass
class Figures:
    """What was found of one stream and one length of periods."""

    days: list[float] = field(default_factory=list)
    mixture: list[float] = field(default_factory=list)
    ask: list[float] = field(default_factory=list)
    cover: list[bool] = field(default_factory=list)
    between: list[bool] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    off: list[float] = field(default_factory=list)
    total: list[bool] = field(default_factory=list)
    outer: list[float] = field(default_factory=list)
    naive: list[float] = field(default_factory=list)
    outside: list[bool] = field(default_factory=list)
    refused: int = 0


def world(setting: Setting, seed: int, length: int) -> World:
    """Release a stream, and keep what a store keeps."""
    stream = stream_of(setting, min(length, setting.length), seed)
    kind = Contenders(setting).kind(f"mixture/{OURS}", setting.epsilon, stream)
    releases, rows = [], []
    noise = PublicEntropy(f"{setting.key}:{seed}")  # streams that share it err alike
    for step, batch in zip(
        replay(QuantilesStudy(), kind, stream, noise), stream.batches, strict=True
    ):
        found = kind.measured(step.plan, step.outcome)
        releases.append(MeasuredRelease(batch.key, "quantiles", batch, 0, found))
        rows.append(step.outcome.rows)
    cells = tuple(each.cells for each in stream.counts)
    counts = tuple(each.counts for each in stream.counts)
    width = float(setting.grid.resolution)
    return World(Measured(setting.key, tuple(releases)), tuple(rows), cells, counts, width)


def rank_error(truth: tuple[IntArray, FloatArray], cell: float, quantile: float) -> float:
    """Share of records by which a cell is off."""
    cells, shares = truth
    ends = np.concatenate(([0.0], shares))
    below = ends[np.searchsorted(cells, cell, side="left")]
    upto = ends[np.searchsorted(cells, cell, side="right")]
    return float(max(below - quantile, quantile - upto, 0.0))


def periods(made: World, length: int) -> Iterable[tuple[int, ...]]:
    """Stretches of batches that were counted and hold records."""
    good = [
        place in made.of.places and len(made.cells[place]) > 0 for place in range(len(made.rows))
    ]
    for first in range(0, len(good) - length + 1, STEP[length]):
        if all(good[first : first + length]):
            yield tuple(range(first, first + length))


def asked(made: World, length: int) -> Figures:
    """All answers about periods of one length."""
    found = Figures()
    for places in periods(made, length):
        truth, own = made.truth(places), made.of.of(places)
        cells = np.array(
            [[round(float(row["value"] or 0) / made.width) for row in made.rows[p]] for p in places]
        )
        mixed = daily([made.of.history.shares[place] for place in own], made.of.history.sizes[own])
        for number, quantile in enumerate(DECILES):
            try:
                answer = made.of.quantile(float(quantile), own)
            except ConfigurationError:  # beyond what was counted, after a shift
                found.refused += 1
                continue
            at = np.searchsorted(truth[1], quantile - 1e-12)
            true = truth[0][at] * made.width
            share = made.of.shares(own, truth[0][[at]].astype(float))
            found.off.append(float(share.mean[0] - truth[1][at]) / math.sqrt(share.variance[0]))
            found.days.append(rank_error(truth, round(cells[:, number].mean()), quantile))
            place = np.ceil(mixed.places(np.array([quantile]))[0] - 1e-6)
            found.mixture.append(rank_error(truth, place, quantile))
            found.ask.append(rank_error(truth, round(answer.value / made.width), quantile))
            found.cover.append(_holds(answer.lower, true, answer.upper))
            ends = [
                np.searchsorted(truth[0], round(e / made.width))
                for e in (answer.lower, answer.upper)
            ]
            shares = np.concatenate((truth[1], [1.0]))
            found.width.append(float(shares[ends[1]] - shares[ends[0]]))
        for quantile in BETWEEN:
            try:
                answer = made.of.quantile(float(quantile), own)
            except ConfigurationError:
                found.refused += 1
                continue
            true = truth[0][np.searchsorted(truth[1], quantile - 1e-12)] * made.width
            found.between.append(_holds(answer.lower, true, answer.upper))
        _outer(made, places, own, truth, found)
        records = made.measured.records(places)
        size = sum(made.counts[place].sum() for place in places)
        found.total.append(_holds(records.lower, float(size), records.upper))
    return found


def _outer(
    made: World,
    places: tuple[int, ...],
    own: IntArray,
    truth: tuple[IntArray, FloatArray],
    found: Figures,
) -> None:
    """Shares up to what the records say is the .05 and .95 quantile, beside daily ones.

    `naive` is read off the line through the averages of published deciles of days, which goes on
    beyond the outermost.
    """
    for quantile in OUTER:
        cell = truth[0][np.searchsorted(truth[1], quantile - 1e-12)]
        share = truth[1][np.searchsorted(truth[0], cell)]
        days = [
            np.interp(
                cell * made.width, [float(row["value"] or 0) for row in made.rows[p]], DECILES
            )
            for p in places
        ]
        found.naive.append(abs(float(np.mean(days)) - share))
        try:
            answer = made.of.share(None, float(cell) * made.width, own)
        except ConfigurationError:  # beyond the outermost cuts
            continue
        found.outer.append(abs(answer.value - share))
        found.outside.append(_holds(answer.lower, share, answer.upper))


def _holds(lower: float, value: float, upper: float) -> bool:
    return bool(lower - 1e-9 <= value <= upper + 1e-9)


def forecasts(made: World) -> float:
    """Share of medians of next batches that their forecast holds."""
    found = []
    history = made.of.history
    known = {own: place for place, own in made.of.places.items()}
    first = max(len(history.at) - FORECASTS, 20)
    scales = BatchHistory(history.batches[:first]).fitted() if first < len(history.at) else None
    for own in range(first, len(history.at)):
        if not len(made.cells[known[own]]):
            continue
        part = ColumnDistribution(
            "job", BatchHistory(history.batches[:own]), {}, made.of.resolution, made.of.bounds
        )
        part.__dict__["scales"] = scales  # fitted once: it takes longer than all forecasts
        answer = part.next(0.5, float(history.at[own]))
        truth = made.truth([known[own]])
        true = truth[0][np.searchsorted(truth[1], 0.5 - 1e-12)] * made.width
        found.append(_holds(answer.lower, float(true), answer.upper))
    return float(np.mean(found))


def report(
    chosen: Sequence[Setting], seeds: int, length: int, lengths: Sequence[int] = PERIODS
) -> None:
    """Print a line a stream and a period, and the means; forecasts go with periods of a day."""
    print("rank errors in %, cover of 95 % intervals; width in % of the records")
    print(
        f"{'stream':34s} period  days mixture   ask  ratio  cover between width total  next refused"
        "  outer  naive  cover  spare"
    )
    ratios: dict[int, list[float]] = {each: [] for each in lengths}
    smoothed: dict[int, list[float]] = {each: [] for each in lengths}
    outers: dict[int, list[tuple[float, float]]] = {each: [] for each in lengths}
    covers: dict[int, list[bool]] = {each: [] for each in lengths}
    held: dict[int, list[float]] = {each: [] for each in lengths}
    sures: dict[int, list[float]] = {each: [] for each in lengths}
    spares: dict[int, list[float]] = {each: [] for each in lengths}
    for setting in chosen:
        worlds = []
        for seed in range(seeds):
            made = world(setting, seed, length)
            if any(
                each.terms.form == "counts"
                for r in made.measured.releases[-1:]
                for each in r.measurements
            ):
                worlds.append(made)
        if not worlds:
            print(f"{setting.key:34s} no counts: values are drawn")
            continue
        coming = np.mean([forecasts(each) for each in worlds]) if 1 in lengths else np.nan
        for period in lengths:
            parts = [asked(each, period) for each in worlds]
            joined = {
                name: [x for part in parts for x in getattr(part, name)]
                for name in Figures.__dataclass_fields__
                if name != "refused"
            }
            if not joined["ask"]:
                continue
            days, mixture, ask, width = (
                100 * float(np.mean(joined[name])) for name in ("days", "mixture", "ask", "width")
            )
            cover, between, total = (
                float(np.mean(joined[name])) for name in ("cover", "between", "total")
            )
            outer, naive, outside = (
                float(np.mean(joined[name])) if joined[name] else float("nan")
                for name in ("outer", "naive", "outside")
            )
            spare = LEVEL / float(np.quantile(np.abs(joined["off"]), 0.95))
            spares[period].append(spare)
            smoothed[period].append((ask + 1e-3) / (days + 1e-3))
            outers[period].append((100 * outer, 100 * naive))
            ratios[period].append((ask + 1e-3) / (mixture + 1e-3))
            covers[period] += joined["cover"]
            held[period].append(cover)
            sures[period].append(float(np.mean(np.abs(joined["off"]) <= LEVEL)))
            print(
                f"{setting.key:34s} {period:6d} {days:5.2f} {mixture:7.2f} {ask:5.2f} "
                f"{ratios[period][-1]:6.2f} {cover:6.3f} {between:7.3f} {width:5.1f} {total:5.2f} "
                f"{coming:5.2f} {sum(part.refused for part in parts):4d} "
                f"{100 * outer:6.2f} {100 * naive:6.2f} {outside:6.3f} {spare:6.2f}",
                flush=True,
            )
    for period in lengths:
        if ratios[period]:
            mean, worst = np.exp(np.mean(np.log(ratios[period]))), max(ratios[period])
            print(
                f"{period} days: ask over mixture {mean:.2f} in the geometric mean, worst"
                f" {worst:.2f}, cover {np.mean(covers[period]):.3f}, intervals of shares"
                f" {np.exp(np.mean(np.log(spares[period]))):.2f} times as wide as needed"
            )
            sure = np.array(sures[period])
            print(
                f"{period} days: intervals of shares up to true quantiles hold {sure.mean():.3f}"
                f" in the mean of streams, least {sure.min():.3f}, {(sure < 0.93).sum()} below .93,"
                f" {(sure > 0.99).sum()} above .99; of quantiles"
                f" {sum(each < 0.93 for each in held[period])} and"
                f" {sum(each > 0.99 for each in held[period])}"
            )
            mean, worst = np.exp(np.mean(np.log(smoothed[period]))), max(smoothed[period])
            print(
                f"{period} days: ask over published deciles (averaged) {mean:.2f} in the geometric"
                f" mean, worst {worst:.2f}, better on {np.mean(np.array(smoothed[period]) < 1):.2f}"
            )
            outer, naive = np.array(outers[period]).T
            known = np.isfinite(outer)
            print(
                f"{period} days: shares at .05 and .95 err by {outer[known].mean():.2f} % in the"
                f" mean of {known.sum()} streams, worst {outer[known].max():.2f},"
                f" {(outer[known] <= 1).sum()} within 1 %; by averages of daily deciles"
                f" {naive.mean():.2f} %"
            )


def unions(length: int) -> None:
    """Cover of quantiles of three groups and of all of them together, with widths."""
    print(
        "\nflights by origin, epsilon .3: cover of 95 % intervals of a group / of all; widths in %;"
        "\nthese over twice what 95 % of errors are below"
    )
    for column in ("air_time", "departure_delay"):
        worlds = [world(each, 0, length) for each in by_origin(column, "0.3")]
        united = United(tuple(each.of for each in worlds))
        for period in PERIODS:
            held: tuple[list[bool], list[bool]] = ([], [])
            widths: tuple[list[float], list[float]] = ([], [])
            off: tuple[list[float], list[float]] = ([], [])
            common = set.intersection(*({*periods(each, period)} for each in worlds))
            for places in sorted(common):
                truths = [each.truth(places) for each in worlds]
                whole = _together(worlds, places)
                for quantile in (*DECILES, *BETWEEN):
                    asks = [United((each.of,)) for each in worlds]
                    for kind, (truth, ask) in [
                        *((0, each) for each in zip(truths, asks, strict=True)),
                        (1, (whole, united)),
                    ]:
                        try:
                            found = ask.quantile(float(quantile), places)
                        except ConfigurationError:  # beyond what was counted
                            continue
                        true = truth[0][np.searchsorted(truth[1], quantile - 1e-12)]
                        held[kind].append(_holds(found.lower, float(true), found.upper))
                        ends = np.array([found.lower - 1.0, found.upper])
                        shares = np.interp(ends, truth[0], truth[1])
                        widths[kind].append(100 * float(shares[1] - shares[0]))
                        off[kind].append(100 * rank_error(truth, found.value, float(quantile)))
            print(
                f"{column:16s} {period:3d} days: {np.mean(held[0]):.3f} / {np.mean(held[1]):.3f};"
                f" {np.mean(widths[0]):.1f} / {np.mean(widths[1]):.1f};"
                f" {_spare(widths[0], off[0]):.2f} / {_spare(widths[1], off[1]):.2f}",
                flush=True,
            )


def _spare(widths: Sequence[float], off: Sequence[float]) -> float:
    """Mean width over that which holds 95 % of the errors."""
    return float(np.mean(widths) / (2.0 * np.quantile(off, 0.95)))


def _together(worlds: Sequence[World], places: Sequence[int]) -> tuple[IntArray, FloatArray]:
    """Cells of some batches of all groups, and the share at or below each."""
    cells, inverse = np.unique(
        np.concatenate([each.cells[place] for each in worlds for place in places]),
        return_inverse=True,
    )
    counts = np.concatenate([each.counts[place] for each in worlds for place in places])
    found = np.bincount(inverse, counts)
    return cells, np.cumsum(found) / found.sum()


def counted(centres: FloatArray, seed: int, size: int = 500, price: str = "1/5") -> BatchHistory:
    """Batches of a normal distribution, cut at the deciles believed, with the noise of a price."""
    draw = np.random.default_rng(seed)
    variance = AdditiveNoise(Fraction(price), 1).variance
    ratio = float(np.exp(-float(Fraction(price))))
    batches = []
    normal = np.quantile(np.random.default_rng(0).normal(0.0, 1000.0, 200_000), DECILES)
    for day, centre in enumerate(centres):
        records = np.round(draw.normal(centre, 1000.0, size))
        believed = centres[max(day - 7, 0) : day + 1].mean()
        cuts = np.round(normal + believed + draw.normal(0.0, 40.0))
        ends = np.concatenate(([-np.inf], cuts, [np.inf]))
        counts = np.histogram(records, ends)[0].astype(float)
        geometric = draw.geometric(1.0 - ratio, (2, len(counts)))
        noisy = counts + geometric[0] - geometric[1]
        batches.append(Counted(float(day), (Stage(cuts, noisy, variance),)))
    return BatchHistory(tuple(batches))


def comparisons(repeats: int) -> None:
    """False alarms and power at 5 %: stable processes, and ones that shift."""
    print("\ncomparisons at 5 %: normal, epsilon .2, 500 records a day; share of alarms")
    print("days of a period, day to day, shift: process (median) / all deciles / records (median)")
    for wander, by in itertools.product((0.0, 50.0), (0.0, 50.0, 100.0)):
        found: dict[int, list[list[float]]] = {7: [], 28: []}
        for seed in range(repeats):
            own = np.random.default_rng(900 + seed).normal(0.0, wander, 56)
            made = counted(own + by * (np.arange(56) >= 28), seed)
            scales = made.fitted()
            for length, each in found.items():
                one, other = np.arange(28 - length, 28), np.arange(28, 28 + length)
                median = quantile_change(made, scales, one, other, 0.5)
                whole = shift(made, scales, one, other)
                each.append([median.changed, whole.changed, median.differ])
        for length, each in found.items():
            said = " / ".join(f"{share:.2f}" for share in (np.array(each) > 0.95).mean(axis=0))
            print(f"{length:4d} {wander / 1000:6.2f} {by / 1000:6.2f}: {said}", flush=True)


def calibration(chosen: Sequence[Setting], length: int) -> None:
    """How often the median of the records of real weeks rose, by the probability that was stated.

    What is stated of the process is more careful: days that are alike differ, too.
    """
    stated: list[tuple[float, float]] = []
    rose, held = [], []
    for setting in chosen:
        made = world(setting, 0, length)
        for one, other in itertools.pairwise(periods(made, 7)):
            found = made.of.change(made.of.of(one), made.of.of(other), 0.5)
            before, after = (made.truth(each) for each in (one, other))
            both = made.truth([*one, *other])
            middle = both[0][np.searchsorted(both[1], 0.5)]
            shares = [
                np.concatenate(([0.0], each[1]))[np.searchsorted(each[0], middle, side="right")]
                for each in (before, after)
            ]
            sign = 1.0 if found.rose > 0.5 else -1.0
            stated.append(((1.0 + sign * found.differ) / 2.0, found.rose))
            rose.append(shares[1] < shares[0])
            medians = [each[0][np.searchsorted(each[1], 0.5 - 1e-12)] for each in (before, after)]
            by = float(medians[1] - medians[0]) * made.width
            held.append(_holds(found.lower, by, found.upper))
    print(
        f"\nreal weeks: intervals of changes hold {np.mean(held):.3f}; the median rose, by what was"
    )
    print("stated: weeks, mean of what was stated, share that rose")
    for who, said in zip(("records", "process"), np.array(stated).T, strict=True):
        for low, high in ((0, 0.05), (0.05, 0.25), (0.25, 0.75), (0.75, 0.95), (0.95, 1.01)):
            within = (said >= low) & (said < high)
            print(
                f"{who} {low:.2f} to {min(high, 1):.2f}: {within.sum():4d} "
                f"{said[within].mean():.3f} {np.array(rose)[within].mean():.3f}"
            )


def shuffled(chosen: Sequence[Setting], length: int) -> None:
    """False alarms at 5 % between weeks, and between four weeks, of days in a random order."""
    print(
        "\nshuffled days of real streams, alarms at 5 %: process (median) / all deciles / records"
    )
    found: dict[int, list[list[float]]] = {each: [] for each in PERIODS[1:]}
    for number, setting in enumerate(chosen):
        history = world(setting, 0, length).of.history
        for seed in range(SHUFFLES):
            order = np.random.default_rng([number, seed]).permutation(len(history.batches))
            days = [
                replace(history.batches[place], at=float(day))
                for day, place in enumerate(order.tolist())
            ]
            mixed = BatchHistory(tuple(days))
            scales = mixed.fitted()
            for period in PERIODS[1:]:
                for first in range(0, len(days) - 2 * period + 1, 2 * period):
                    one = np.arange(first, first + period)
                    median = quantile_change(mixed, scales, one, one + period, 0.5)
                    whole = shift(mixed, scales, one, one + period)
                    found[period].append([median.changed, whole.changed, median.differ])
    for period, each in found.items():
        said = " / ".join(f"{x:.3f}" for x in (np.array(each) > 0.95).mean(axis=0))
        print(f"{period:4d} days, {len(each)} pairs: {said}", flush=True)


def alarms(repeats: int) -> None:
    """The alert `changed` beside gates: false alarms a year, and delay of planted shifts.

    The median rises by `by` spreads at day 60; its least change is that of a tenth of the value,
    which lies two spreads above zero. `changed` looks at releases of epsilon .2 a day that are made
    anyway; a gate looks at the records each day, at its price for all days up to its next yes, and
    nothing need be released.
    """
    print("\nnormal at 2 spreads, 500 records a day; a tenth of the median is asked about")
    print("who, day to day, shift: alarms a year before, share found within 28 days, median delay")
    for wander in (0.0, 0.1):
        for by in (0.25, 0.5, 1.0):
            for price in GATES:
                gates = [_gated(wander, by, price, seed) for seed in range(repeats)]
                _said(f"gate at {float(price):g}", wander, by, gates)
            free = [_told(wander, by, seed) for seed in range(repeats)]
            _said("changed, for nothing", wander, by, free)


SYSTEM = OperatingSystemEntropy()
GATES = tuple(map(Fraction, ("0.05", "0.2", "1")))
"""Prices of a gate."""

ARMED, SHIFTED, DAYS = 35, 60, 88
"""Days on which a watch begins, on which the median moves, and which end it."""


def _centres(wander: float, by: float, seed: int) -> FloatArray:
    own = np.random.default_rng(700 + seed).normal(0.0, 1000 * wander, DAYS)
    return np.asarray(2000.0 + own + 1000 * by * (np.arange(DAYS) >= SHIFTED))


def _told(wander: float, by: float, seed: int) -> tuple[int, int]:
    """How often `changed` was told before the shift, and days until it was told then, else -1."""
    whole, told, began = counted(_centres(wander, by, seed), seed), 0, 0
    for day in range(ARMED, DAYS):
        part = BatchHistory(whole.batches[: day + 1])
        if not (day - ARMED) % 7 or day == SHIFTED:
            scales = part.fitted()
        now = changed_lately(part, scales, 0.5, 0.1, 0.99)
        if day < SHIFTED:
            began += int(now != 0 and told == 0)
        elif now > 0:
            return began, day - SHIFTED + 1
        told = now
    return began, -1


def _gated(wander: float, by: float, price: Fraction, seed: int) -> tuple[int, int]:
    """The same of a gate on drift, armed again after each yes before the shift."""
    draw = np.random.default_rng(seed)
    gate = AboveThreshold(price, Fraction(1, 10), Fraction(4, 5), DAYS - ARMED)
    state, standing, began = gate.start(SYSTEM), 2000.0, 0
    for day, centre in enumerate(_centres(wander, by, seed)):
        records = np.round(draw.normal(centre, 1000.0, 500)).astype(np.int64)
        if day < ARMED:
            standing = float(np.median(records))
            continue
        batch = CellCounts(*np.unique(records, return_counts=True))
        ends = math.ceil(0.9 * standing), math.floor(1.1 * standing)
        score = excess(batch, (Tolerance(Fraction(1, 2), *ends),)) - Fraction(gate.margin(1))
        if not gate.accept(state, score, SYSTEM):
            continue
        if day >= SHIFTED:
            return began, day - SHIFTED + 1
        began, state, standing = began + 1, gate.start(SYSTEM), float(np.median(records))
    return began, -1


def _said(who: str, wander: float, by: float, found: list[tuple[int, int]]) -> None:
    late = [delay for _, delay in found if delay >= 0]
    delay = f"{np.median(late):.0f}" if late else "-"
    yearly = 365 * sum(began for began, _ in found) / (len(found) * (SHIFTED - ARMED))
    share = len(late) / len(found)
    print(f"{who:20s} {wander:.2f} {by:.2f}: {yearly:.2f} {share:.2f} {delay}", flush=True)


def speed(releases: int) -> None:
    """Processor time of an answer, and bytes of measurements, in a store of hourly releases."""
    with tempfile.TemporaryDirectory() as folder:
        path = furnish(Path(folder), releases).parent / "store.db"
        before = path.stat().st_size
        database = Database(str(path))
        terms = MeasurementTerms(
            "counts",
            {"column": "air_time", "grid": ["1", 0, 1000]},
            noise=NoiseLaw("epsilon", Fraction(1, 10)),
        )
        draw = np.random.default_rng(3)
        database.execute("BEGIN")
        for number in range(releases):
            cuts = tuple(range(40, 220, 20))
            found = Measurement(terms, cuts, tuple(draw.poisson(90, 10).tolist()))
            add_measurements(database, 2 + 2 * number, (found,))
        database.execute("COMMIT")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        bytes_each = (path.stat().st_size - before) / releases
        last = START + releases * 3600
        named = datetime.fromtimestamp(last - 40 * 86_400, UTC)
        print(f"\nstore of {releases} hourly releases: {bytes_each:.0f} bytes of measurements each")
        for over in (f"{named:%Y-%m-%d}", f"{named:%G-W%V}", f"{named:%Y-%m}"):
            began = time.process_time()
            with contextlib.closing(open_to_read(path)) as reading:
                asking(reading, "air_time", "UTC", (over,)).quantile(0.5, over)
            print(f"median over {over}: {time.process_time() - began:.2f} s of processor time")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--final", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--periods", type=int, nargs="+", default=PERIODS, choices=PERIODS)
    parser.add_argument("--stream", default="", help="Only streams whose name holds this.")
    parser.add_argument(
        "--only", choices=("answers", "unions", "changes", "alarms", "shuffled", "weeks", "speed")
    )
    options = parser.parse_args()
    began = time.process_time()
    chosen = final() if options.final else settings()
    chosen = tuple(each for each in chosen if options.stream in each.key)
    if options.quick:
        chosen = chosen[:1]
    length = QUICK if options.quick else LENGTH
    only = options.only
    if only in (None, "answers"):
        report(chosen, options.seeds, length, options.periods)
    if only in (None, "unions") and not options.final:
        unions(length)
    if only in (None, "changes") and not options.final:
        comparisons(2 if options.quick else 60)
    if only in (None, "alarms") and not options.final:
        alarms(2 if options.quick else 24)
    if only in (None, "speed") and not options.final:
        speed(2000 if options.quick else 100_000)
    real = [each for each in chosen if each.part != "synthetic"]
    flights = [each for each in real if each.name.startswith("flights")]
    if only in (None, "shuffled"):
        shuffled(real[::3], length)
    if only in (None, "weeks"):
        calibration(flights or real[:4], length)
    print(f"\n{time.process_time() - began:.0f} s of processor time")


if __name__ == "__main__":
    main()
