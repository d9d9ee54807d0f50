"""``python -m tests.privacy.reading [--quick] [--json] [WORD ...]``: pairs that are told apart.

A word chooses the pairs whose names hold it; several have to be in a name together. ``--sample N``
takes so many of them by chance, of each format, writer, role and record in proportion and spread
over the places; ``--but FILE`` leaves out those that an earlier ``--json`` has printed.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.report import Row, main
from tests.privacy.reading.pairs import Compared, Pair
from tests.privacy.reading.registry import pairs

PARSER = argparse.ArgumentParser(add_help=False)
PARSER.add_argument("words", nargs="*", metavar="WORD", help="only pairs whose name has it")
PARSER.add_argument("--sample", type=int, metavar="N", help="so many pairs, by chance")
PARSER.add_argument("--seed", type=int, default=0, help="of that chance")
PARSER.add_argument("--but", type=Path, metavar="FILE", help="leave out pairs of earlier output")


def sample(every: list[Pair], number: int, seed: int) -> list[Pair]:
    """So many pairs at even distances, from a random one on.

    Pairs are in the order of what they are and then of their places, so each kind of pair and each
    stretch of places has its share, and each pair the same chance.
    """
    if number >= len(every):
        return every
    first, order = random.Random(seed).random(), sorted(every, key=_kind)
    chosen = {id(order[int((each + first) * len(every) / number)]) for each in range(number)}
    return [pair for pair in every if id(pair) in chosen]


def _kind(pair: Pair) -> tuple[str, ...]:
    return pair.format, pair.writer, pair.role, pair.record


def rows(quick: bool) -> Iterator[Row]:
    """One row a pair, then the number of pairs that are told apart by format and writer.

    A data set that tells nothing, since it is refused without the record, counts as told apart.
    """
    options = PARSER.parse_known_args()[0]
    done = {row["pair"] for row in map(json.loads, options.but.open())} if options.but else set()
    chosen = [pair for pair in pairs(quick) if _is_meant(pair, options.words)]
    if options.sample is not None:
        chosen = sample(chosen, options.sample, options.seed)
    left = (pair for pair in chosen if pair.name not in done and pair.written())
    number: Counter[str] = Counter()
    apart: Counter[str] = Counter()
    for pair, without, extra, told in Compared().every(left):
        for name in (f"{pair.format} / {pair.writer}", "all"):
            number[name] += 1
            apart[name] += told
        yield _row(pair.name, without, extra, told)
    for name in sorted(number, key="all".__eq__):
        yield _row(f"{name}: {number[name]} pairs", "", f"{apart[name]} apart", bool(apart[name]))


def _is_meant(pair: Pair, words: list[str]) -> bool:
    return all(word.lower() in pair.name.lower() for word in words)


def _row(pair: str, without: str, extra: str, told: bool) -> Row:
    return {"pair": pair, "without": without, "with": extra, "told_apart": told}


if __name__ == "__main__":
    main(
        "Data sets with and without one record, told apart by what is released",
        rows,
        failed=lambda row: bool(row["told_apart"]),
        parser=PARSER,
    )
