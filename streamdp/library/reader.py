"""Stores, opened for reading only: jobs, releases and budgets as tables, and charts of a job."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from streamdp.database import Database
from streamdp.errors import StreamdpError
from streamdp.library.table import Table, table_of, table_of_releases
from streamdp.privacy.amounts import NANO
from streamdp.privacy.filters import Item
from streamdp.reports.charts.frame import alone
from streamdp.reports.charts.own import own_charts
from streamdp.reports.charts.panels import chart
from streamdp.reports.releases.series import MANY, picture
from streamdp.sinks.columns import Kind
from streamdp.store.database import restrict, snapshot, translate
from streamdp.store.ledger.ledger import rooms
from streamdp.store.migrations import open_to_read
from streamdp.store.reading.browse import newest_releases
from streamdp.store.reading.reports import job_report, scope_reports, spending_jobs
from streamdp.text import known_names
from streamdp.types import Json, Release

if TYPE_CHECKING:
    from streamdp.library.ask import Ask


@dataclass(frozen=True, slots=True)
class NotebookChart:
    """One chart or several, which a notebook shows.

    Args:
        job: What they are of.
        svgs: Each as the text of an SVG file.
    """

    job: str
    svgs: tuple[str, ...] = field(repr=False)

    def _repr_html_(self) -> str:
        """The charts below each other, for a notebook."""
        return "".join(f"<div>{svg}</div>" for svg in self.svgs)

    def save(self, path: str | Path) -> None:
        """Write the first chart as an SVG file."""
        Path(path).write_text(self.svgs[0], encoding="utf-8")


def drawn(job: str, releases: Sequence[Release]) -> NotebookChart:
    """Charts of releases over time: their series with intervals, and those the kind brings.

    Raises:
        StreamdpError: There is nothing that can be drawn.
    """
    whole = picture(releases)
    few = whole.only([each.name for each in whole.series[:MANY]])
    is_choice = any(each.chart == "choices" for each in whole.columns)
    main = "" if is_choice else chart(few, title=f"{job}: releases over time")
    found = [main, *(each.svg for each in own_charts(job, releases, ()))]
    svgs = tuple(alone(svg) for svg in found if svg)
    if not svgs:
        raise StreamdpError(f"{job} has released nothing that can be drawn")
    return NotebookChart(job, svgs)


_OF_JOBS: dict[str, Kind] = {
    "job": "text",
    "kind": "text",
    "source": "text",
    "releases": "integer",
    "last_batch": "text",
    "last_released_at": "time",
    "measure": "text",
    "spent": "number",
    "burnt": "integer",
}
_OF_BUDGETS: dict[str, Kind] = {
    "source": "text",
    "cap": "text",
    "measure": "text",
    "allowed": "number",
    "spent": "number",
    "left": "number",
}


def open(path: str | os.PathLike[str]) -> StoreReader:
    """Open a store for reading, beside a running daemon.

    Raises:
        StoreError: There is no store at the path, or it has an older schema.
        IntegrityError: It has a newer one.
    """
    where = Path(path)
    database = open_to_read(where)
    restrict(database)
    return StoreReader(database, where)


class StoreReader:
    """A store that can be read and not written; close it, or use it in a `with` statement.

    SQLite refuses it every write and the private columns. It belongs to the thread that opened it.
    """

    def __init__(self, database: Database, path: Path) -> None:
        self._database, self._path = database, path

    def jobs(self) -> Table:
        """Jobs that have spent something; `burnt` counts lost charges.

        `spent` is in `measure`, that of their caps.
        """
        with self._moment() as database:
            return table_of([_job(database, name) for name in spending_jobs(database)], _OF_JOBS)

    def releases(self, job: str, last: int | None = None) -> Table:
        """Releases of a job, the oldest batch first: a line for each row of each.

        Args:
            job: Whose.
            last: Only the last so many releases; all by default.

        Raises:
            StreamdpError: The store knows no such job.
        """
        return table_of_releases(self._releases(job, last))

    def rollups(self, job: str, step: str | None = None, last: int | None = None) -> Table:
        """Closed weeks, months, ... of a job, the oldest first: newest revisions, a line a row.

        Args:
            job: Whose.
            step: `week`, `month`, ..., `rolling 28d`: of these alone; all by default.
            last: Only the last so many; all by default.

        Raises:
            StreamdpError: The store knows no such job.
        """
        from streamdp.store.rollups import select

        self._releases(job, 1)
        with self._moment() as database:
            return table_of_releases(select(database, job, step, last))

    def plot(self, job: str, last: int | None = None) -> NotebookChart:
        """Charts of a job's releases over time, which a notebook shows and `save` writes.

        Args:
            job: Whose.
            last: Only the last so many releases; all by default.

        Raises:
            StreamdpError: The store knows no such job, or nothing of it can be drawn.
        """
        return drawn(job, self._releases(job, last))

    def ask(self, job: str, *, zone: str = "UTC", about: Sequence[str] = ()) -> Ask:
        """Questions about a job that its measurements answer: quantiles, shares, totals, changes.

        Args:
            job: Whose.
            zone: Whose days, weeks and months are meant: that of the source's batches.
            about: Periods that will be asked about; only they and what is around them are read.
                All by default.

        Raises:
            StreamdpError: The store knows no such job.
        """
        from streamdp.library.ask import asking

        self._releases(job, 1)
        with self._moment() as database:
            return asking(database, job, zone, about)

    def _releases(self, job: str, last: int | None) -> tuple[Release, ...]:
        """Releases of a job, the oldest batch first."""
        with self._moment() as database:
            found = newest_releases(database, job, -1 if last is None else max(last, 0))
            known = spending_jobs(database)
        if job not in known:
            raise StreamdpError(
                f"the store has no releases of {job!r}",
                where=str(self._path),
                hint=known_names(job, known),
            )
        return found[::-1]

    def budget(self) -> Table:
        """Every cap of every source: the most that was spent under it, and what is left."""
        with self._moment() as database:
            return table_of(
                (
                    {
                        "source": report.scope,
                        "cap": room.limit.name,
                        "measure": room.limit.measure,
                        "allowed": room.limit.nano / room.limit.unit,
                        "spent": room.fullest_nano / room.limit.unit,
                        "left": room.left_nano / room.limit.unit,
                    }
                    for report in scope_reports(database)
                    for room in rooms(database, report.scope, Item(0, 0, 0))
                ),
                _OF_BUDGETS,
            )

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"StoreReader({str(self._path)!r})"

    @contextmanager
    def _moment(self) -> Iterator[Database]:
        """Read all inside the block from one moment of the store.

        Raises:
            StoreError: The file cannot be read any more.
        """
        try:
            with snapshot(self._database):
                yield self._database
        except sqlite3.Error as error:
            raise translate(error, self._path) from None


def _job(database: Database, name: str) -> dict[str, Json]:
    report = job_report(database, name)
    newest = next(iter(newest_releases(database, name, 1)), None)
    at = report.last_released_at
    return {
        "job": name,
        "kind": newest and newest.kind,
        "source": newest and newest.source,
        "releases": report.releases,
        "last_batch": report.last_batch,
        "last_released_at": None if at is None else datetime.fromtimestamp(at, UTC),
        "measure": report.measure,
        "spent": report.spent_nano / NANO,
        "burnt": report.burnt,
    }
