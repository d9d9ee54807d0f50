"""A release as typed columns, for engines that keep types: one line for each of its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from streamdp.privacy.amounts import ATTO, NANO, delta_text, epsilon_text
from streamdp.text import iso
from streamdp.types import Json, Release

NOTICES = {"gate": "acceptance", "standing": "standing", "alert": "alert", "rollup": "rollup"}
"""Types of what is no release, by its kind."""


def record(release: Release) -> dict[str, Json]:
    """The release as one JSON object; `type` tells rollups, notices and alerts: they are free."""
    return {
        "type": NOTICES.get(release.kind, "release"),
        "release_id": release.id,
        "job": release.job,
        "batch": release.batch,
        "window_start": iso(release.window_start),
        "window_end": iso(release.window_end),
        "kind": release.kind,
        **_cost(release),
        "released_at": iso(release.released_at),
        "rows": [dict(row) for row in release.rows],
    }


def _cost(release: Release) -> dict[str, Json]:
    """Pure loss; of a release that has none, the zero-concentrated one beside; delta, if any."""
    atto, rho = release.delta_atto, release.rho_nano or 0
    delta = {"delta": atto / ATTO, "delta_exact": delta_text(atto)} if atto else {}
    if release.epsilon_nano is not None:
        exact = epsilon_text(release.epsilon_nano)
        return {"epsilon": release.epsilon_nano / NANO, "epsilon_exact": exact, **delta}
    return {
        "epsilon": None,
        "epsilon_exact": None,
        "rho": rho / NANO,
        "rho_exact": epsilon_text(rho),
        **delta,
    }


def flat(release: Release) -> list[dict[str, Json]]:
    """One line a row, each with the facts of the release in front."""
    whole = record(release)
    del whole["rows"], whole["type"]
    return [{**whole, **row} for row in release.rows]


Kind = Literal["text", "number", "integer", "time", "boolean"]

_KINDS: dict[str, Kind] = {
    "row": "integer",
    "epsilon": "number",
    "epsilon_exact": "text",
    "rho": "number",
    "rho_exact": "text",
    "delta": "number",
    "delta_exact": "text",
    "window_start": "time",
    "window_end": "time",
    "released_at": "time",
}
"""Types of the facts of a release; a fact that is null today may be set tomorrow."""

_DUCKDB = {
    "text": "VARCHAR",
    "number": "DOUBLE",
    "integer": "BIGINT",
    "time": "TIMESTAMP",
    "boolean": "BOOLEAN",
}


def quoted(name: str) -> str:
    """A name of a table or column as SQL."""
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class TypedColumn:
    """One column of all lines of a release.

    Args:
        name: Of the column.
        kind: What it holds; times are in UTC.
        values: One a line: text, numbers, `datetime` with a zone, or None.
    """

    name: str
    kind: Kind
    values: tuple[Json, ...]

    @property
    def quoted(self) -> str:
        """The name as SQL."""
        return quoted(self.name)

    @property
    def duckdb_type(self) -> str:
        """Type of the column in DuckDB."""
        return _DUCKDB[self.kind]


def columns(release: Release) -> list[TypedColumn]:
    """Columns of a release: id and row, its facts, what was published."""
    lines = [{"release_id": release.id, "row": at} | line for at, line in enumerate(flat(release))]
    times = {
        name: None if seconds is None else datetime.fromtimestamp(seconds, UTC)
        for name, seconds in (
            ("window_start", release.window_start),
            ("window_end", release.window_end),
            ("released_at", release.released_at),
        )
    }
    kinds: dict[str, Kind] = {each.name: each.type for each in release.columns}
    named: dict[str, None] = dict.fromkeys(name for line in lines for name in line)
    found = []
    for name in named:
        values: list[Json] = [times.get(name, line.get(name)) for line in lines]
        found.append(
            TypedColumn(
                name, _KINDS.get(name) or kinds.get(name) or _kind_of(values), tuple(values)
            )
        )
    return found


CURRENT = "current"
"""Whether a line is of the newest release of its job and batch: tables keep it. After a restore a
batch can have two, and both were paid for."""

SAME = "job = {0} AND batch = {0} AND kind = {0} AND kind <> 'alert'"
"""Lines of the same job, batch and kind, by the placeholder of an engine: notices are others. No
two alerts are the same: many conditions may be about one job."""


Ask = Callable[[str, list[Json]], tuple[Json, ...] | None]
"""Runs a statement with its parameters, and returns its first row if it has any."""


def supersede(ask: Ask, table: str, mark: str, release: Release, at: Json) -> bool:
    """Mark earlier lines of the same batch as current no more.

    Nothing is updated where the table has no such line, so that a role may do without the right.

    Args:
        ask: Asks the table's database.
        table: As SQL.
        mark: Placeholder of the engine.
        release: One that the table does not have.
        at: Its time, as the column `released_at` keeps it.

    Returns:
        Whether the release is the newest of its batch.
    """
    same, about = SAME.format(mark), [release.job, release.batch, release.kind]
    newer = f"SELECT max(CASE WHEN released_at > {mark} THEN 1 ELSE 0 END) FROM {table}"  # noqa: S608
    (later,) = ask(f"{newer} WHERE {same}", [at, *about]) or (None,)
    if later == 0:
        ask(f'UPDATE {table} SET "{CURRENT}" = false WHERE {same}', about)  # noqa: S608
    return not later


def flagged(found: list[TypedColumn], newest: bool) -> list[TypedColumn]:
    """The columns with the flag."""
    return [*found, TypedColumn(CURRENT, "boolean", (newest,) * len(found[0].values))]


def duckdb_lines(found: list[TypedColumn]) -> tuple[str, list[Json]]:
    """A SELECT of all lines in DuckDB's types, and its parameters: a list for each column."""
    lists = ", ".join(f"unnest(CAST(? AS {each.duckdb_type}[])) AS {each.quoted}" for each in found)
    return f"SELECT {lists}", [list(map(_without_zone, each.values)) for each in found]


def _without_zone(value: Json) -> Json:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def _kind_of(values: list[Json]) -> Kind:
    if any(isinstance(value, bool) for value in values):
        return "boolean"
    return "text" if any(isinstance(value, str) for value in values) else "number"
