"""Gates: accuracy, time of a test, and a year of flights.

python -m tests.benchmarks.gates [--json] [--quick]
python -m tests.benchmarks.gates.picture
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.gates import accuracy, flights
from tests.benchmarks.report import Row, main


def rows(quick: bool) -> Iterator[Row]:
    """Accuracy over beta, times over a release, then the year of flights."""
    yield from accuracy.times(quick)
    yield from flights.rows(quick)
    yield from accuracy.rows(quick)


def _fails(row: Row) -> bool:
    """More errors than beta, by more than chance: 2,000 runs have a deviation of 0.07."""
    return any(float(row.get(name) or 0.0) > 1.3 for name in ("err_at_p*", "err_at_level"))


if __name__ == "__main__":
    main("Gates", rows, failed=_fails)
