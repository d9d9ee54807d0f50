"""How often intervals and bounds of every kind but quantiles hold, and how wide they are.

`python -m tests.benchmarks.calibration_kinds [--json] [--quick] [--held-back]`. A row is a cell:
`coverage` is the share of what is published that holds what it is about, `worst_series` that of the
series (cell, group, expert) which has the least, `width_ratio` the width over that which would hold
95 % of the errors, 1 at best. `reason` says why a cell holds more than 99 %. All releases count,
the first too.

`--held-back` runs streams whose every part is drawn by one seed, and flights by hour, which nothing
was tuned on; FRESH_SEED draws others. TRIPS names the trips of the bases of a city, as in the
benchmark of workloads.
`--periods` asks about days, weeks and 28 days of statistics and workloads instead.
Quantiles have a benchmark of their own, `calibration`; answers of gates are tested in
`tests.benchmarks.gates`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from fractions import Fraction

from streamdp.privacy.price import Price
from tests.benchmarks import workload as domains
from tests.benchmarks.calibration_kinds import (
    choices,
    counts,
    periods,
    statistics,
    values,
    workload,
)
from tests.benchmarks.report import Row, main

PRICES = (
    Price(Fraction(1)),
    Price(Fraction(1, 10)),
    Price(Fraction(1, 100)),
    Price(Fraction(1, 200), "rho"),
)
FEW = (Price(Fraction(1, 10)), Price(Fraction(1, 200), "rho"))
OF_WORKLOADS = (Price(Fraction(1)), Price(Fraction(1, 10)), Price(Fraction(7, 400), "rho"))
EPSILONS = (Fraction(3), Fraction(3, 10), Fraction(3, 100))

HELD_BACK_SEED = int(os.environ.get("FRESH_SEED", "20251122"))
"""Draws what is held back; chosen before any of it was looked at."""

DAYS, RELEASES = 60, 200


def rows(quick: bool) -> Iterator[Row]:
    """Every kind on development streams, or on those held back."""
    if "--periods" in sys.argv:
        yield from _periods(quick)
        return
    if "--held-back" in sys.argv:
        yield from _held_back()
        return
    yield from _statistics(quick)
    yield from _workloads(quick)
    yield from _choices(20 if quick else RELEASES)


def _statistics(quick: bool) -> Iterator[Row]:
    for stream in counts.development():
        if quick and stream.name == "flights, routes":
            continue
        for price in FEW[:1] if quick else PRICES:
            yield from statistics.of_counts(stream, price, 30 if quick else None)
    for each in values.development():
        for moment in each.moments:
            for price in FEW[:1] if quick else PRICES:
                yield from statistics.of_moment(each, moment, price, 20 if quick else None)
    units, value = counts.development()[3], values.development()[0]
    yield from statistics.of_counts(units, FEW[0], 30 if quick else None, rows=5)
    yield from statistics.of_moment(value, "mean", Price(Fraction(1)), 30, rows=5)


def _workloads(quick: bool) -> Iterator[Row]:
    for domain, (file, *_) in domains.DOMAINS.items():
        if not domains.FILES[file] or domain == "flights, with destinations":
            continue
        tables = domains.tables(domain)[: 10 if quick else DAYS]
        streams = {
            "stable": tables,
            "shifted": domains.relabelled(tables, [len(tables) // 2]),
            "never repeating": domains.relabelled(tables, range(len(tables))),
        }
        for name, stream in streams.items():
            for price in OF_WORKLOADS[1:2] if quick else OF_WORKLOADS:
                yield workload.stream_row(f"{domain}, {name}", stream, price)
        if not quick and domain == "flights, weeks":
            yield workload.stream_row(f"{domain}, stable", tables[:20], OF_WORKLOADS[0], "online")


def _periods(quick: bool) -> Iterator[Row]:
    """Answers about days, weeks and 28 days of statistics and of workloads."""
    held = "--held-back" in sys.argv
    found = values.held_back(HELD_BACK_SEED, 8) if held else values.development()
    for each in found[:1] if quick else found:
        if "sum" in each.moments:
            for price in FEW[:1] if quick else FEW:
                yield from periods.of_values(each, price)
    if held:
        streams = {f"drawn {number}": workload.drawn(HELD_BACK_SEED, number) for number in range(8)}
    else:
        streams = {f"made up {number}": workload.drawn(5, number, 60) for number in range(4)}
        for domain in ("flights",) if domains.FILES["flights"] else ():
            streams[domain] = domains.tables(domain)[:DAYS]
    for name, tables in streams.items():
        for price in OF_WORKLOADS[:2]:
            yield from periods.of_tables(name, tables, price)
        if quick:
            return


def _choices(length: int) -> Iterator[Row]:
    rules = choices.grid(-20, 80, 5)
    for name, seed in (("flights", None), ("made up", 1)):
        tables = choices.days(rules, seed, length)
        for epsilon in EPSILONS:
            yield choices.of_selection(name, tables, rules, epsilon, learned=False)
            yield choices.of_selection(name, tables, rules, epsilon, top=3)
            way = "permute-and-flip"
            yield choices.of_selection(name, tables, rules, epsilon, choice=way)
            yield from choices.of_rules(name, tables, rules, epsilon)
    for epsilon in EPSILONS:
        yield from choices.of_actions("made up", 2, epsilon, length)
        yield from choices.of_forecasts("made up", 3, epsilon, length)


def _held_back() -> Iterator[Row]:
    streams = counts.held_back(HELD_BACK_SEED, 12)
    for stream in (*streams, counts.CountStream("flights, hours", counts.by_hour)):
        for price in FEW:
            yield from statistics.of_counts(stream, price)
    for each in values.held_back(HELD_BACK_SEED, 8):
        for moment in each.moments:
            for price in FEW:
                yield from statistics.of_moment(each, moment, price)
    for number in range(8):
        tables = workload.drawn(HELD_BACK_SEED, number)
        for price in OF_WORKLOADS:
            yield workload.stream_row(f"drawn {number}", tables, price)
    yield from _held_back_choices()


def _held_back_choices() -> Iterator[Row]:
    rules = choices.grid(-15, 60, 3)
    for seed in (HELD_BACK_SEED, HELD_BACK_SEED + 1):
        name, tables = f"drawn {seed}", choices.days(rules, seed, RELEASES, 300)
        for epsilon in EPSILONS:
            yield choices.of_selection(name, tables, rules, epsilon)
            yield from choices.of_rules(name, tables, rules, epsilon)
            yield from choices.of_actions(name, seed, epsilon, RELEASES)
            yield from choices.of_forecasts(name, seed, epsilon, RELEASES)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--held-back", action="store_true", help="streams nothing was tuned on")
    parser.add_argument("--periods", action="store_true", help="answers about periods alone")
    main("Intervals of all kinds: how often they hold, and how wide they are", rows, parser=parser)
