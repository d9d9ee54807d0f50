"""``python -m tests.privacy [--json] [--quick]``: largest losses found, over the claim."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.report import Row, main
from tests.privacy.cases import CASES, LONG, largest_loss


def rows(quick: bool) -> Iterator[Row]:
    """One row a mechanism and relation; `ratio` is the largest log-ratio over epsilon."""
    for case in CASES if quick else (*CASES, *LONG):
        worst = largest_loss(case)
        yield {
            "mechanism": case.name,
            "relation": case.relation,
            "ratio": round(worst.loss, 9),
            "mutant": None,
            "caught": None,
        }


if __name__ == "__main__":
    main("Largest privacy loss over epsilon", rows)
