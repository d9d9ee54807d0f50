"""``python -m tests.privacy.reading [--quick] [--json] [WORD ...]``: pairs that are told apart.

A word chooses the pairs whose names hold it; several have to be in a name together.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tests.benchmarks.report import Row, main
from tests.privacy.reading.pairs import Compared
from tests.privacy.reading.registry import pairs

PARSER = argparse.ArgumentParser(add_help=False)
PARSER.add_argument("words", nargs="*", metavar="WORD", help="only pairs whose name has it")


def rows(quick: bool) -> Iterator[Row]:
    """One row a pair, then one with the number of those that are told apart."""
    words, compared, number, apart = PARSER.parse_known_args()[0].words, Compared(), 0, 0
    for pair in pairs(quick):
        if not all(word.lower() in pair.name.lower() for word in words):
            continue
        without, extra, told = compared(pair)
        number, apart = number + 1, apart + told
        yield {
            "pair": pair.name,
            "without": str(without),
            "with": str(extra),
            "told_apart": told,
        }
    yield {"pair": f"{number} pairs", "without": "", "with": f"{apart} apart", "told_apart": apart}


if __name__ == "__main__":
    main(
        "Data sets with and without one record, told apart by what is released",
        rows,
        failed=lambda row: bool(row["told_apart"]),
        parser=PARSER,
    )
