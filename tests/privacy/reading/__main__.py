"""``python -m tests.privacy.reading [--quick] [--json] [WORD ...]``: pairs that are told apart.

A word chooses the pairs whose names hold it; several have to be in a name together.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

from tests.benchmarks.report import Row, main
from tests.privacy.reading.pairs import Compared, TellsNothingError
from tests.privacy.reading.registry import pairs

PARSER = argparse.ArgumentParser(add_help=False)
PARSER.add_argument("words", nargs="*", metavar="WORD", help="only pairs whose name has it")


def rows(quick: bool) -> Iterator[Row]:
    """One row a pair, then the number of pairs that are told apart by format and writer.

    A data set that tells nothing, since it is refused without the record, counts as told apart.
    """
    words, compared = PARSER.parse_known_args()[0].words, Compared()
    number: Counter[str] = Counter()
    apart: Counter[str] = Counter()
    for pair in pairs(quick):
        chosen = all(word.lower() in pair.name.lower() for word in words)
        if not chosen or not pair.written():
            continue
        try:
            without, extra, told = map(str, compared(pair))
        except TellsNothingError as error:
            without, extra, told = str(error), "", "True"
        for name in (f"{pair.format} / {pair.writer}", "all"):
            number[name] += 1
            apart[name] += told == "True"
        yield _row(pair.name, without, extra, told == "True")
    for name in sorted(number, key="all".__eq__):
        yield _row(f"{name}: {number[name]} pairs", "", f"{apart[name]} apart", bool(apart[name]))


def _row(pair: str, without: str, extra: str, told: bool) -> Row:
    return {"pair": pair, "without": without, "with": extra, "told_apart": told}


if __name__ == "__main__":
    main(
        "Data sets with and without one record, told apart by what is released",
        rows,
        failed=lambda row: bool(row["told_apart"]),
        parser=PARSER,
    )
