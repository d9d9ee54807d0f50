"""What records of a source look like as they are parsed, for somebody who may see them.

Nothing here is private, and nothing of it is kept: no store is opened, and no log is written.
Errors of the engine are replaced by our own words, as everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from streamdp import wiring
from streamdp.backends.duckdb.engine import DuckDBBackend
from streamdp.backends.duckdb.lines import typed
from streamdp.backends.sql.dialect import quoted
from streamdp.backends.sql.server import ServerBackend
from streamdp.errors import ConfigurationError
from streamdp.objects import is_address
from streamdp.types import Batch, Json, TableQuery

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.sources.section import SourceSection

    Rows = list[dict[str, Json]]

EXAMPLES = 3
"""Values of a column that are shown where they are none of its type."""

MOST_GROUPS = 10
"""Groups that are not listed and are shown, those of most records first."""

Looked = DuckDBBackend | ServerBackend[Any, Any]
"""Engines whose records can be shown."""

_COUNT = TableQuery(())
"""How many records there are."""


@dataclass(frozen=True, slots=True)
class Preview:
    """A source as it is read.

    Args:
        rows: The first records.
        columns: Each with its type, and what became null.
        batches: Records a batch.
        units: Records of a unit in a batch.
        groups: Groups of releases that are not listed.
        warnings: Sentences about what is hardly meant so.
    """

    rows: Rows
    columns: Rows
    batches: Rows
    units: Rows
    groups: Rows
    warnings: list[str]


def preview(configuration: Configuration, name: str, first: int, now: int) -> Preview:
    """Look at a source.

    Args:
        configuration: That has it.
        name: Of the source.
        first: Number of records to show.
        now: POSIX time; batches that are complete by then are counted.

    Raises:
        ConfigurationError: Its engine is Spark.
        SourceError: It cannot be read.
    """
    section = configuration.sources[name]
    found = wiring.backends(configuration)(name)
    if not isinstance(found, DuckDBBackend | ServerBackend):
        raise ConfigurationError(
            f"source {name} is read by {section.engine.kind}",
            where=f"sources.{name}.engine",
            hint="preview shows files and tables of DuckDB, PostgreSQL and MariaDB; look at"
            " tables of Spark with its own shell",
        )
    batches = tuple(section.source(name).batches(now))
    whole = _whole(section, found)
    of_one = whole is found and isinstance(found, DuckDBBackend) and batches
    everything = batches[0] if of_one else Batch(name, "preview")
    kinds = whole.columns_of(_COUNT, everything)
    counts = [int(found.answer(_COUNT, batch).marginals[0].sum()) for batch in batches]
    unit = configuration.privacy.unit.column
    columns = list(_columns(section, whole, everything, kinds))
    try:
        rows = whole.shown(_first(whole, kinds, first), _COUNT, everything)
        return Preview(
            [dict(zip(kinds, map(_shown, row), strict=True)) for row in rows],
            columns,
            _batches(batches, counts),
            _units(found, batches, unit) if unit in kinds else [],
            list(_groups(configuration, name, whole, everything, kinds)),
            _warnings(columns, counts),
        )
    finally:
        whole.close()
        found.close()


def _whole(section: SourceSection, found: Looked) -> Looked:
    """An engine for all records at once, batches or not; the same where there is none."""
    if isinstance(found, ServerBackend) or section.is_lake() or is_address(section.path):
        return found
    return DuckDBBackend(
        found.path, found.format, None, found.limits, found.relation, types=section.types
    )


def _first(whole: Looked, kinds: dict[str, str], number: int) -> str:
    """The first records; DuckDB's times as text, since one in a zone needs a library in Python."""
    name, as_text = whole.dialect().name, isinstance(whole, DuckDBBackend)
    columns = (
        f"CAST({name(column)} AS VARCHAR)" if as_text and "TIME" in kind else name(column)
        for column, kind in kinds.items()
    )
    return f"SELECT {', '.join(columns)} FROM records LIMIT {number}"  # noqa: S608


def _shown(value: Any) -> Json:
    return value if isinstance(value, bool | int | float | None) else str(value)


def _columns(
    section: SourceSection, whole: Looked, batch: Batch, kinds: dict[str, str]
) -> Iterator[dict[str, Json]]:
    """Each column: its type, how many values it lacks, and how many are none of its type.

    A server has no values that are none of their type.
    """
    if isinstance(whole, ServerBackend):
        for column, kind in kinds.items():
            missing = f"SELECT count(*), count({whole.dialect().name(column)}) FROM records"  # noqa: S608
            ((records, there),) = whole.shown(missing, _COUNT, batch)
            share = _share(records - there, records)
            told: dict[str, Json] = {"column": column, "type": kind, "missing": share}
            yield told | {"became_null": 0.0, "such_as": ""}
        return
    texts = whole.format in ("csv", "jsonl")
    raw = whole
    if texts:
        read = dict.fromkeys(section.types, "text")
        raw = DuckDBBackend(whole.path, whole.format, None, whole.limits, types=read)
    for column, kind in kinds.items():
        value = quoted(column, '"')
        declared = section.types.get(column, "text") if texts else "text"
        read_as = typed(value, declared)
        lost = f"{value} IS NOT NULL AND ({read_as}) IS NULL"
        counted = (
            f"SELECT count(*), count(*) FILTER (WHERE {value} IS NULL),"  # noqa: S608
            f" count(*) FILTER (WHERE {lost}), list(DISTINCT {value}) FILTER (WHERE {lost})"
            f"[1:{EXAMPLES}] FROM records"
        )
        ((records, empty, wrong, examples),) = raw.shown(counted, _COUNT, batch)
        row: dict[str, Json] = {"column": column, "type": kind}
        row |= {"declared": declared} if texts else {}
        row |= {"missing": _share(empty, records), "became_null": _share(wrong, records)}
        yield row | {"such_as": ", ".join(map(str, examples or ()))}
    if raw is not whole:
        raw.close()


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _batches(batches: tuple[Batch, ...], counts: list[int]) -> Rows:
    """Figures of all batches, then the ones without records."""
    if not counts:
        return [{"batches": 0}]
    empty = [batch.key for batch, count in zip(batches, counts, strict=True) if not count]
    some = ", ".join(empty[:5]) + (", …" if len(empty) > 5 else "")
    figures = _figures(np.array(counts))
    return [{"batches": len(counts), "records": sum(counts), **figures, "empty": len(empty)}] + (
        [{"batches": "empty ones", "records": some}] if empty else []
    )


def _figures(numbers: Any) -> dict[str, Json]:
    low, middle, high, most = np.quantile(
        numbers, (0, 0.5, 0.99, 1), method="inverted_cdf"
    ).tolist()
    return {"least": low, "median": middle, "0.99": high, "largest": most}


def _units(found: Looked, batches: tuple[Batch, ...], unit: str | None) -> Rows:
    """Records of a unit in a batch, over all units and batches, and what each cap would keep."""
    column, seen = found.dialect().name(unit or ""), Counter[int]()
    select = (
        "SELECT n, count(*) FROM (SELECT count(*) AS n FROM records"  # noqa: S608
        f" WHERE {column} IS NOT NULL GROUP BY {column}) AS sizes GROUP BY n"
    )
    for batch in batches:
        seen.update(dict(found.shown(select, _COUNT, batch)))
    if not seen:
        return []
    sizes = np.repeat(list(seen), list(seen.values()))
    figures = _figures(sizes)
    rows: Rows = []
    for most in sorted({1, 2, int(figures["median"]), int(figures["0.99"]), int(sizes.max())}):
        kept = float(np.minimum(sizes, most).sum() / sizes.sum())
        rows.append({"unit": unit, **figures, "rows": most, "records_kept": round(kept, 4)})
    return rows


def _groups(
    configuration: Configuration, source: str, whole: Looked, batch: Batch, kinds: dict[str, str]
) -> Iterator[dict[str, Json]]:
    """Groups with records that no list of a release has."""
    for name, section in configuration.releases.items():
        if section.source != source or not section.cut_by or section.groups_from:
            continue
        words = whole.dialect()
        names = {each: words.name(each) for each in section.by}
        columns = [words.as_text(name, kinds[each]) for each, name in names.items()]
        where = " AND ".join(f"{name} IS NOT NULL" for name in names.values())
        select = (
            f"SELECT count(*), {', '.join(columns)} FROM records WHERE {where}"  # noqa: S608
            f" GROUP BY {', '.join(columns)}"
        )
        found = sorted(whole.shown(select, _COUNT, batch), key=lambda row: (-row[0], row[1:]))
        missing = [(n, group) for n, *group in found if tuple(group) not in section.groups]
        for n, group in missing[:MOST_GROUPS]:
            yield {"release": name, "not_listed": ",".join(group), "records": n}
        if more := missing[MOST_GROUPS:]:
            rest = f"{len(more)} more"
            yield {"release": name, "not_listed": rest, "records": sum(n for n, _ in more)}


def _warnings(columns: Rows, counts: list[int]) -> list[str]:
    """What is hardly meant so: most values are none of their type, or there are no records."""
    found = []
    for row in columns:
        wrong, missing = float(str(row["became_null"])), float(str(row["missing"]))
        if wrong > 0.5 * (1 - missing):
            found.append(
                f"{wrong:.0%} of {row['column']} are no {row['declared']}, such as"
                f" {row['such_as']}: types of the source say how it is written"
            )
    if counts and not any(counts):
        found.append("no batch has a record: look at the batches' column, start and time zone")
    return found
