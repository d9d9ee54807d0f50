"""A table in the SQLite store: one line for each row of a release."""

from __future__ import annotations

import json
import sqlite3
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from streamdp.database import Database, NoTable
from streamdp.errors import SinkError, StoreError
from streamdp.sinks.columns import CURRENT, flat, quoted, supersede
from streamdp.sinks.section import Alone, SinkContext, SinkSection
from streamdp.text import iso
from streamdp.types import Json, Release

_TYPES = {"text": str, "number": float, "integer": int}


class TableSinkSection(SinkSection):
    """A table in the store."""

    in_store: ClassVar[bool] = True

    kind: Literal["table"] = Field(description="`table`: a table in the store's SQLite file.")
    table: str = Field(
        pattern=r"^[A-Za-z][A-Za-z0-9_]{0,62}$",
        description="Name of the table. It is created if missing.",
        examples=["published"],
    )

    @field_validator("table")
    @classmethod
    def _not_a_table_of_the_store(cls, value: str) -> str:
        own = (
            "instance batch ledger release learner learned_state outbox notice pause migration"
            " origin arrival problem alert release_columns release_form measurement"
            " measurement_terms rollup"
        )
        if value.lower() in own.split() or value.lower().startswith(("gate_", "sqlite", "v_")):
            raise ValueError("the store has a table of that name; choose another")
        return value

    def sink(self, name: str, context: SinkContext) -> TableSink:
        """The sink, which writes through the store's own connection."""
        if context.store is None:
            raise ValueError("a table of the store is written through its own connection")
        return TableSink(name, context.store.database, self.table, context.store.alone)


class TableSink:
    """Upserts on (release_id, row), so a second delivery changes nothing.

    Args:
        name: Of the sink.
        database: Connection of the calling thread, in autocommit.
        table: Made by the first release.
        alone: Keeps other writers from the database, inside a `with` block.
    """

    def __init__(self, name: str, database: Database, table: str, alone: Alone) -> None:
        self.name = name
        self._database = database
        self._table = table
        self._alone = alone

    def deliver(self, release: Release) -> None:
        """Write the lines in one transaction.

        Raises:
            SinkError: SQLite refused.
        """
        try:
            with self._alone(self._database):
                self._upsert(release)
        except (StoreError, sqlite3.Error, NoTable) as error:
            self._database.conn.rollback()
            raise SinkError(
                f"sink {self.name} cannot write: {error}",
                where=f"table {self._table} of the store",
                hint="give the sink a table that nothing else writes to",
                sink=self.name,
            ) from None
        except BaseException:
            self._database.conn.rollback()
            raise

    def _upsert(self, release: Release) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        asked = self._database.execute(f"PRAGMA table_info({quoted(self._table)})")
        kinds = {name: kind for _, name, kind, *_ in asked.fetchall()}
        there = set(kinds)
        flag = self._flag(release, there)
        lines = [{"row": index, **line, **flag} for index, line in enumerate(flat(release))]
        types = {"epsilon": float} | {each.name: _TYPES[each.type] for each in release.columns}
        self._widen(
            [name for name in types if types[name] is float and kinds.get(name) == "INTEGER"]
        )
        named = list(dict.fromkeys(name for line in lines for name in line))
        if there.issuperset((*types, *named)):
            self._write(lines, named)
        else:
            self._extend(lines, types, there)
        self._database.execute("COMMIT")

    def _widen(self, names: list[str]) -> None:
        """Let columns hold numbers that the release of another job has left as integers."""
        if names:
            table = self._database.table(self._table)
            for statement in table.transform_sql(types=dict.fromkeys(names, float)):
                self._database.execute(statement)

    def _write(self, lines: list[dict[str, Json]], named: list[str]) -> None:
        """Write the lines to a table that has all their columns."""
        columns = [quoted(name) for name in named]
        changed = ", ".join(f"{name} = excluded.{name}" for name in columns)
        values = [[_stored(line.get(name)) for name in named] for line in lines]
        self._database.conn.executemany(
            f"INSERT INTO {quoted(self._table)} ({', '.join(columns)})"  # noqa: S608
            f" VALUES ({', '.join('?' * len(columns))})"
            f" ON CONFLICT (release_id, row) DO UPDATE SET {changed}",
            values,
        )

    def _extend(
        self, lines: list[dict[str, Json]], types: dict[str, type], there: set[str]
    ) -> None:
        """Write the lines to a table that is not there yet, or has other columns."""
        table = self._database.table(self._table)
        if there:  # a new column of nulls would else be one of text
            for name in types.keys() - there:
                table.add_column(name, types[name])
        table.upsert_all(lines, pk=("release_id", "row"), strict=True, alter=True, columns=types)

    def _flag(self, release: Release, there: set[str]) -> dict[str, Json]:
        """Mark the newest release of a batch as current, and earlier ones as superseded.

        A release that is there keeps its flag.
        """
        if CURRENT not in there:
            return {CURRENT: True}

        def ask(sql: str, values: list[Json]) -> tuple[Json, ...] | None:
            found: tuple[Json, ...] | None = self._database.execute(sql, values).fetchone()
            return found

        name = quoted(self._table)
        if ask(f"SELECT 1 FROM {name} WHERE release_id = ? LIMIT 1", [release.id]):  # noqa: S608
            return {}
        return {CURRENT: supersede(ask, name, "?", release, iso(release.released_at))}


def _stored(value: Json) -> Json:
    """A value as sqlite-utils stores it: lists and objects as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
