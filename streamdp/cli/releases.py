"""`streamdp releases`, `streamdp show` and `streamdp learned`."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import (
    complete_job,
    config_option,
    job_argument,
    json_option,
    load_configuration,
    moment,
    require_job,
)
from streamdp.cli.output import Form, apart, fits, print_rows, sparkline
from streamdp.privacy.amounts import ATTO, NANO
from streamdp.text import Figure, iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.store.reading.reports import Standing
    from streamdp.types import Column, Json, Release, Row


PRICE = ("epsilon", "rho", "delta")
"""Columns that a drawn table says once, where all releases have one price."""

MOST_SPARKLINES = 12
"""Below a table on a terminal."""


MOST = 10**9
"""Releases that are listed, at most: SQLite counts no further than 2^63."""


@click.command()
@click.argument("job", required=False, shell_complete=complete_job)
@config_option
@click.option("--since", callback=moment, help="First day or time of the windows (ISO, UTC).")
@click.option("--until", callback=moment, help="End of the windows (ISO, UTC).")
@click.option("--last", type=click.IntRange(1, MOST), help="Only the last so many releases.")
@click.option("--measurements", is_flag=True, help="What was drawn, in place of what follows.")
@click.option("--rollups", is_flag=True, help="Closed weeks, months, ..., in place of batches.")
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values with a header.")
@json_option
def releases(
    job: str | None,
    config_path: Path,
    since: int | None,
    until: int | None,
    last: int | None,
    measurements: bool,
    rollups: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """List releases, of one JOB or of all.

    A table has one line a release and one column a value. On a terminal numbers have the digits
    that their intervals support, the ends of which stand in brackets, unless they alone make the
    lines too long; where lines are too long all the same, each release has a column. In a pipe
    numbers are exact, and intervals and windows have columns of their own.
    --json has the object that sinks get, one a release, and --csv the lines that a CSV sink writes.
    --measurements lists what each release drew: noisy counts between cuts, drawn values, raw sums.
    --rollups lists the newest revision of each closed period of `rollups`.
    Where a gate lets a release stand for later batches too, `stands to` is the last of them.
    """
    from streamdp.reports.releases.series import columns_of
    from streamdp.store.archive import select_releases
    from streamdp.store.migrations import open_to_read
    from streamdp.store.reading.reports import standing

    configuration = load_configuration(config_path)
    if job is not None:
        require_job(configuration, job)
    database = open_to_read(configuration.store.path)
    form: Form = "json" if as_json else "csv" if as_csv else "table"
    if measurements:
        named = [job] if job is not None else list(configuration.releases)
        _measurements(database, named, (since, until, last), form)
        return
    if rollups:
        _rollups(database, job, last, form)
        return
    by_job: dict[str, list[Release]] = {}
    for release in select_releases(database, job, since, until, last):
        by_job.setdefault(release.job, []).append(release)
    for name, found in by_job.items():
        stands = standing(database, name, int(time.time()))
        columns = columns_of(found)
        if form == "table" and sys.stdout.isatty():
            _draw(found, stands, columns, name)
        else:
            print_rows(_shown(found, stands, columns, form), form)
        _say_what_is_missing(configuration, name, columns)
        if form == "table" and sys.stdout.isatty() and len(found) > 1:
            _sparklines(found)
    if not by_job and form == "table":
        click.echo("no releases", err=True)


def _rollups(database: Database, job: str | None, last: int | None, form: Form) -> None:
    """Print the newest revisions of rollups: as sinks get them, or a line a row."""
    from streamdp.reports.releases.series import columns_of
    from streamdp.sinks.columns import flat, record
    from streamdp.store.rollups import select
    from streamdp.types import Column

    found = select(database, job, limit=last)
    for name in dict.fromkeys(each.job for each in found):
        own = [each for each in found if each.job == name]
        if form == "json":
            print_rows([record(each) for each in own], form, title=name)
        elif form == "csv":
            print_rows([line for each in own for line in flat(each)], form, title=name)
        else:
            lines = [{"period": each.batch, **row} for each in own for row in each.rows]
            if sys.stdout.isatty():
                _print_told(lines, (Column("period", "text", "label"), *columns_of(own)), name)
            else:
                print_rows(lines, form, title=name)
    if not found and form == "table":
        click.echo("no rollups: name periods in `rollups` of a release", err=True)


def _measurements(
    database: Database,
    jobs: list[str],
    wanted: tuple[int | None, int | None, int | None],
    form: Form,
) -> None:
    """Print the measurements of the last releases of some jobs; lists in tables are JSON."""
    from streamdp.reports.releases.told import rows_of
    from streamdp.store.measurements import select_measurements

    since, until, last = wanted
    for job in jobs:
        found = select_measurements(database, job, since, until)
        rows = list(rows_of(job, found if last is None else found[-last:]))
        if form != "json":
            rows = [{name: _flat(value) for name, value in row.items()} for row in rows]
        print_rows(rows, form, title=job)


def _flat(value: Json) -> Json:
    return json.dumps(value) if isinstance(value, list | dict) else value


@click.command()
@job_argument
@click.argument("batch")
@config_option
@json_option
def show(job: str, batch: str, config_path: Path, as_json: bool) -> None:
    """Show the release of BATCH by JOB: what was published, when, at what price.

    If a gate rejected BATCH, it is the release that still stands for it.
    """
    from streamdp.cli.web import columns_of as section_columns
    from streamdp.reports.releases.series import columns_of
    from streamdp.reports.releases.told import fields_of, measurements_in_words
    from streamdp.sinks.columns import record
    from streamdp.store.archive import require_release
    from streamdp.store.ledger.privacy_guarantee import claim_of
    from streamdp.store.measurements import measurements_of
    from streamdp.store.migrations import open_to_read
    from streamdp.store.reading.places import moment_of_key
    from streamdp.store.reading.reports import standing_for

    configuration = load_configuration(config_path)
    require_job(configuration, job)
    database = open_to_read(configuration.store.path)
    stands = standing_for(database, job, batch, int(time.time()))
    release = require_release(database, job, stands or batch)
    about = {"claim": claim_of(database, release.id)}
    whole = record(release) | about | ({"stands_for": batch} if stands else {})
    measured = measurements_of(database, job, release.id)
    if as_json:
        whole["measurements"] = [fields_of(each) for each in measured.measurements]
        click.echo(json.dumps(whole))
        return
    forms = [each.terms.form for each in measured.measurements]
    whole["measurements"] = measurements_in_words([(release.batch, forms)])
    at = moment_of_key(release.batch) if release.window_start is None else None
    whole |= {} if at is None else {"lies_at": iso(at), "by": "the date in the name of the batch"}
    rows, claim = whole.pop("rows"), whole.pop("claim") or {}
    whole |= {f"claim: {name}": value for name, value in claim.items()}
    if not sys.stdout.isatty():
        print_rows([{"fact": name, "value": value} for name, value in whole.items()], "table")
        print_rows(rows, "table")
        return
    facts = {name: value for name, value in whole.items() if not name.endswith("_exact")}
    print_rows([{"fact": n, "value": v} for n, v in facts.items() if v is not None], "table")
    _print_told(rows, columns_of([release], section_columns(configuration, job)), "rows")


def _print_told(rows: Sequence[Row], columns: Sequence[Column], title: str) -> None:
    """Draw rows for a person: what all share above, numbers as exact as their intervals are."""
    from streamdp.reports.releases.told import told_rows

    common, told = told_rows(rows, columns)
    shared = "  ".join(f"{name.replace('_', ' ')}: {value}" for name, value in common.items())
    print_rows(told, "table", title=f"{title}  {shared}" if shared else title)


def _say_what_is_missing(
    configuration: Configuration, job: str, columns: tuple[Column, ...]
) -> None:
    """Print to standard error, once a job, why it has no error bars."""
    section = configuration.releases.get(job)
    has_bars = any(each.role == "lower" and each.about == "value" for each in columns)
    about = None if section is None or has_bars else section.about_errors()
    if about is not None:
        click.echo(f"{job}: {about}", err=True)


def _sparklines(found: list[Release]) -> None:
    """Print a sparkline of each series over the listed releases."""
    from streamdp.reports.releases.series import picture

    series = picture(found).series
    for each in series[:MOST_SPARKLINES]:
        click.echo(f"{each.name:>12} {sparkline(each.best.values, 60)}")
    if len(series) > MOST_SPARKLINES:
        click.echo(f"{'':>12} and {len(series) - MOST_SPARKLINES} more rows")


def _shown(
    found: list[Release], stands: Mapping[str, Standing], columns: Sequence[Column], form: Form
) -> list[dict[str, Json]]:
    """Rows that show releases of one job in a format, but for a terminal."""
    from streamdp.sinks.columns import flat, record

    if form == "table":
        return [_line(release, stands, columns) for release in found]
    if form == "json":
        return [record(release) | _stands_to(release, stands) for release in found]
    lines = [
        {"release_id": release.id, "row": at} | line | _stands_to(release, stands)
        for release in found
        for at, line in enumerate(flat(release))
    ]
    names = dict.fromkeys(name for line in lines for name in line)
    return [{name: line.get(name) for name in names} for line in lines]


def _stands_to(release: Release, stands: Mapping[str, Standing]) -> dict[str, Json]:
    """The last batch a release stands for, if a gate carries releases forward."""
    if not stands:
        return {}
    return {"stands_to": stands[release.id].last if release.id in stands else None}


def _line(
    release: Release, stands: Mapping[str, Standing], columns: Sequence[Column]
) -> dict[str, Json]:
    """Job, batch and window, price, and each value with the ends of its interval."""
    line: dict[str, Json] = {
        "job": release.job,
        "batch": release.batch,
        "window_start": iso(release.window_start),
        "window_end": iso(release.window_end),
        **_price(release),
        **_stands_to(release, stands),
    }
    for title, row, value, ends in _values(release, columns):
        line[title] = row.get(value)
        line |= {f"{title} {each.role}": row.get(each.name) for each in ends}
    return line


def _draw(
    found: list[Release], stands: Mapping[str, Standing], columns: Sequence[Column], job: str
) -> None:
    """Draw releases of a job: a line each, or a column each where lines are too long."""
    units = _units(found, columns)
    job = f"{job}, in {next(iter(units))}" if len(units) == 1 and units != {""} else job
    whole, short = _drawn(found, stands, columns)
    lines = next((each for each in (whole, short) if fits(each)), None)
    if lines is not None:
        print_rows(lines, "table", title=job, once=PRICE)
        return
    most = 1
    while most < len(whole) and fits(_across(whole[: most + 1])):
        most += 1
    for first in range(0, len(found), most):
        print_rows(_across(whole[first : first + most]), "table", title=job)


def _units(found: list[Release], columns: Sequence[Column]) -> set[str]:
    """Units of all values; a single one is said above them."""
    known = {each.name: each for each in columns}
    return {
        known[value].unit_of(row.get("measure"))
        for release in found
        for _, row, value, _ in _values(release, columns)
    }


def _across(lines: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """A row for each value, and a column for each batch; the price, if it is one, in the head."""
    said, rest = apart(lines, PRICE)
    return [
        {", ".join(said): name, **{str(line["batch"]): line[name] for line in rest}}
        for name in rest[0]
        if name != "batch"
    ]


def _drawn(
    found: list[Release], stands: Mapping[str, Standing], columns: Sequence[Column]
) -> tuple[list[dict[str, Json]], list[dict[str, Json]]]:
    """Return two tables of batch, price and values: with intervals and without."""
    from streamdp.reports.releases.told import told_column

    whole: list[dict[str, Json]] = [
        {"batch": each.batch, **_price(each), **_stands_to(each, stands)} for each in found
    ]
    short = [dict(line) for line in whole]
    values: dict[tuple[str, str], dict[int, Row]] = {}
    for at, release in enumerate(found):
        for title, row, value, _ in _values(release, columns):
            values.setdefault((title, value), {})[at] = row
    known = {each.name: each for each in columns}
    units = _units(found, columns)
    for (title, value), rows in values.items():
        unit = known[value].unit_of(next(iter(rows.values())).get("measure"))
        unit = unit if len(units) > 1 else ""
        cells, ends = told_column(
            [rows.get(at, {}) for at in range(len(found))], known[value], columns
        )
        name = f"{title} ({unit})" if unit else title
        for one, other, cell, reach in zip(whole, short, cells, ends, strict=True):
            one[name] = other[name] = None if cell is None else Figure(cell)
            if cell is not None and reach is not None:
                one[name] = Figure(f"{cell} [{reach}]")
    return whole, short


def _price(release: Release) -> dict[str, Json]:
    epsilon, rho = release.epsilon_nano, release.rho_nano
    price = {"epsilon": None if epsilon is None else epsilon / NANO}
    delta = {"delta": release.delta_atto / ATTO} if release.delta_atto else {}
    return {**price, **({} if rho is None else {"rho": rho / NANO}), **delta}


def _values(
    release: Release, columns: Sequence[Column]
) -> Iterator[tuple[str, Row, str, list[Column]]]:
    """Every value: its title from the labels of its row, the row, its column, its interval's."""
    from streamdp.reports.releases.series import text_of

    labels = [each.name for each in columns if each.role == "label"]
    names = [each.name for each in columns if each.role == "value"]
    ends = {name: _ends(columns, name) for name in names}
    for row in release.rows:
        for name in names:
            words = [text_of(row[label]) for label in labels if row.get(label) is not None]
            words += [name] if len(names) > 1 or not words else []
            yield " ".join(filter(None, words)), row, name, ends[name]


def _ends(columns: Sequence[Column], name: str) -> list[Column]:
    """Columns of the interval around a value, the lower end first; none if it has no interval."""
    found = {each.role: each for each in columns if each.about == name}
    return [found[role] for role in ("lower", "upper") if role in found]


@click.command()
@job_argument
@click.argument("batch", required=False)
@config_option
@click.option("--group", help="Group of the release, as `a, b`. Default: the first.")
@click.option(
    "--last",
    type=click.IntRange(1, MOST),
    default=30,
    show_default=True,
    help="Releases whose losses are shown.",
)
@json_option
def learned(
    job: str,
    batch: str | None,
    config_path: Path,
    group: str | None,
    last: int,
    as_json: bool,
) -> None:
    """Show what JOB has learned from its past releases; costs nothing.

    Without BATCH, what it knows of the batch that comes next: its beliefs and their weights, where
    the next cuts lie and why, the prior of each quantile, what public numbers of the batch do, and
    the losses of past releases. With BATCH, what it knew before that batch was released, beside its
    release.
    """
    from streamdp import wiring
    from streamdp.reports.releases.learned import learned as read
    from streamdp.store.migrations import open_to_read

    configuration = load_configuration(config_path)
    require_job(configuration, job)
    database = open_to_read(configuration.store.path)
    kind = wiring.release_kind(configuration, job)
    found = read(configuration, database, kind, job, batch, group, last)
    if as_json:
        click.echo(json.dumps(asdict(found)))
        return
    of = f" of {found.part}" if found.part else ""
    releases = "1 release" if found.releases == 1 else f"{found.releases} releases"
    click.echo(f"{job}{of}, {found.batch}: learned from {releases}")
    for table in found.tables:
        click.echo(f"\n{table.title}\n{table.about}")
        print_rows(table.rows, "table")
    if len(found.parts) > 1:
        click.echo(f"\nother groups (--group): {'; '.join(found.parts)}")
