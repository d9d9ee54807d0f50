"""The configuration that `streamdp init --source` proposes: counts by texts that nobody listed."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from streamdp.errors import ConfigurationError

TEMPLATE = """\
# Proposed by `streamdp init`: counts by {named}, whose texts nobody listed. They are found
# privately (deploy/docs/how-to/keys.md), and what is found is published for ever. `streamdp plan`
# says what it costs, and of how many units a text is soon found.

store:
  path: streamdp.db

privacy:
  unit: record                    # if a person can have several records:
  # unit: {{name: person, column: ID, rows: 4}}   # without it one person can publish a text
  caps:                           # in epsilon; raised later by `streamdp cap` only
    batch: 2
    lifetime: 100
    delta: {{batch: 1e-9, lifetime: 1e-6}}   # the chance to lose more, of all releases together

sources:
  records:
    path: {path}
{batches}
releases:
  found:
    kind: keys
    source: records
    by: {by}
    epsilon: 1
    delta: 1e-9
    at_least: 5                   # no text of fewer records is ever found
{window}    sinks: [found]

  counts:
    kind: statistics
    source: records
    by: {by}
    groups: {{from: found, most: 50}}
    epsilon: 1
    measures: {{records: count}}
    sinks: [table]

sinks:
  table: {{kind: table, table: counts}}
  found: {{kind: table, table: found}}

log:
  path: streamdp.log
"""

BY_TIME = """\
    batches: {{column: {time}, every: 1d, start: {start}{end}}}
"""

NO_END = """\
    # each day costs, with records or without: add the end of records that no more come to
"""

BY_FILE = """\
    # keys of a first file are counted from the next one on: one file alone needs --time and --start
    batches: files                # a file is read once it was left alone for a minute (settle)
"""

WINDOW = """\
    window: 7                     # a week is asked at once: rare texts are found in many days
"""


def proposed(
    source: str, by: Sequence[str], time: str | None, start: str | None, end: str | None = None
) -> str:
    """The text of a configuration.

    Privacy: names and types of columns are looked at, and no record.

    Args:
        source: Path or glob of files.
        by: Columns of texts; by default the only one there is.
        time: Column that puts a record in a day; by default a file is a batch.
        start: First day of the records.
        end: The day after their last, where none come later.

    Raises:
        ConfigurationError: A column is not there, or it is not clear which is meant.
        SourceError: The files cannot be read.
    """
    from streamdp.backends.duckdb.engine import DuckDBBackend
    from streamdp.files import file_format
    from streamdp.types import Batch, TableQuery

    form = file_format(source)
    if form is None:
        raise ConfigurationError(
            "the format of these files is not known",
            where=source,
            hint="csv, jsonl, parquet, arrow",
        )
    if (time is None) != (start is None):
        raise ConfigurationError(
            "a column of time and the first day go together",
            where="--time" if start is None else "--start",
            hint="--time at --start 2026-01-01; without both a file is a batch",
        )
    if end is not None and start is None:
        raise ConfigurationError(
            "files are no days, so they have no last one",
            where="--end",
            hint="--time and --start go with it",
        )
    backend = DuckDBBackend(os.path.abspath(source), form)
    kinds = backend.columns_of(TableQuery(()), Batch("records", "init"))
    backend.close()
    texts = [name for name, kind in kinds.items() if kind == "VARCHAR" and name != time]
    chosen = tuple(by) or tuple(texts)
    missing = [name for name in (*chosen, *([time] if time else [])) if name not in kinds]
    if missing or (not by and len(texts) != 1):
        raise ConfigurationError(
            f"there is no column {missing[0]!r}" if missing else "which column is counted by?",
            where=source,
            hint=f"name one with --by; its columns are: {', '.join(kinds)}",
        )
    batches = BY_FILE
    if time is not None:
        batches = BY_TIME.format(
            time=json.dumps(time), start=start, end="" if end is None else f", end: {end}"
        )
        batches = batches if end is not None else NO_END + batches
        if form in ("csv", "jsonl"):
            batches = f"    types: {{{json.dumps(time)}: timestamp}}\n{batches}"
    return TEMPLATE.format(
        named=", ".join(chosen),
        by=json.dumps(list(chosen), ensure_ascii=False),
        path=json.dumps(os.path.abspath(source)),
        batches=batches,
        window=WINDOW if time is not None else "",
    )
