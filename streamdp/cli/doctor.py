"""`streamdp validate`, `doctor`, `preview` and `schema`."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import print_rows
from streamdp.errors import StreamdpError
from streamdp.text import iso, require_name
from streamdp.types import Json

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.engine.job import Job
    from streamdp.sources.section import SourceSection
    from streamdp.store.problems import BatchProblem


PREVIEW = "`streamdp preview SOURCE --truth-may-be-seen` shows, to who may see it, whether"


@click.command()
@config_option
@json_option
def validate(config_path: Path, as_json: bool) -> None:
    """Check the configuration without touching data; show the next five times of each job.

    If there is a store, sources must be those that it knows: it is read, and nothing is written.

    Times are UTC. Words that `init` wrote in capitals are named where they still stand.
    """
    from streamdp import wiring
    from streamdp.disk import shared_by_hosts
    from streamdp.sections.schedules import next_times
    from streamdp.store.anchor import ONE_VOLUME, on_one_volume
    from streamdp.store.database import ONE_HOST

    _name_unreplaced(config_path)
    configuration = load_configuration(config_path)
    rows: list[dict[str, Json]] = []
    wiring.tasks(configuration)
    _compare(configuration)
    for said in wiring.rollups_without_rows(configuration):
        click.echo(said, err=True)
    for name in configuration.tasks():
        times = next_times(configuration.schedule_of(name), int(time.time()), 5)
        row: dict[str, Json] = {"job": name, "protects": configuration.privacy.unit.protects()}
        row |= {f"wake_{index}": iso(moment) for index, moment in enumerate(times, start=1)}
        rows.append(row)
    if not as_json:
        click.echo(f"{config_path} is valid", err=True)
        click.echo(f"{PREVIEW} values become what is meant", err=True)
        if on_one_volume(*configuration.store.paths()):
            click.echo(ONE_VOLUME, err=True)
        if kind := shared_by_hosts(configuration.store.path.parent):
            click.echo(ONE_HOST.format(kind=kind), err=True)
        left_out = configuration.privacy.unit.left_out()
        if left_out is not None and not configuration.store.path.exists():
            click.echo(left_out, err=True)
    print_rows(rows, "json" if as_json else "table", "wakes at (UTC)")


def _compare(configuration: Configuration) -> None:
    """Refuse sources that the store knows as other data, as `run` would; nothing is written."""
    from streamdp import wiring
    from streamdp.errors import IntegrityError, StoreError
    from streamdp.store.migrations import open_to_read

    if configuration.store.path.exists():
        try:
            database = open_to_read(configuration.store.path)
        except (StoreError, IntegrityError):
            return  # what is wrong with a store is said by `doctor`
        with closing(database):
            wiring.require_same_data(configuration, database)


def _name_unreplaced(config_path: Path) -> None:
    """Print to stderr which placeholders of `init` are left: errors may follow from them."""
    from streamdp.config.loader import MOST_BYTES
    from streamdp.disk import read_text

    with suppress(OSError, UnicodeDecodeError):  # `load` says what is wrong with it
        for line, word in _unreplaced(read_text(config_path, MOST_BYTES)):
            said = f"{config_path}:{line}: {word} is a placeholder of `init`: replace it"
            click.echo(said, err=True)


def _unreplaced(text: str) -> Iterator[tuple[int, str]]:
    """Lines that hold a placeholder of the configuration that `init` writes."""
    start = files("streamdp").joinpath("demo", "start.yaml").read_text(encoding="utf-8")
    words = {word for line in start.splitlines() for word in _capitals(line)}
    for number, line in enumerate(text.splitlines(), start=1):
        for word in _capitals(line):
            if word in words:
                yield number, word


def _capitals(line: str) -> list[str]:
    return re.findall(r"\b[A-Z][A-Z_]{3,}\b", line.partition("#")[0])


HELP = """Print the JSON Schema of the configuration.

\b
streamdp schema > streamdp.schema.json
and as first line of config.yaml:
# yaml-language-server: $schema=streamdp.schema.json
"""


@click.command(help=HELP)
def schema() -> None:
    """Print the JSON Schema of the configuration."""
    from streamdp.config import json_schema

    click.echo(json.dumps(json_schema(), indent=2))


EARLIEST = 1_767_225_600
"""2026-01-01: a clock that shows less was never set."""

LEAST_FREE = 100 * 10**6
"""Bytes the store's disk should have left."""

TOLD = ("no-file", "same-file")
"""Problems that are no faults: a path that finds nothing yet, a second name of a file."""

MOST_NAMES = 5
"""Skipped inputs that are listed; of more their number is told."""

Check = tuple[str, Callable[[], str]]


class Warned(str):
    """A finding that stops nothing, yet should be looked at."""

    __slots__ = ()


@click.command()
@config_option
@json_option
def doctor(config_path: Path, as_json: bool) -> None:
    """Look at everything a release needs, without releasing: sources, store, clock, permissions.

    Opens schemas, reads no rows, spends nothing. Exits with 1 if something is wrong.
    """
    configuration = load_configuration(config_path)
    rows, sick = [], False
    for what, look in _checks(configuration):
        try:
            finding = look()
            state = "warning" if isinstance(finding, Warned) else "ok"
        except StreamdpError as error:
            state, finding, sick = "WRONG", error.line, True
        rows.append({"check": what, "state": state, "finding": finding})
    print_rows(rows, "json" if as_json else "table")
    if not as_json:
        click.echo(f"values are not looked at: {PREVIEW} they become what is meant", err=True)
    if sick:
        click.get_current_context().exit(1)


def _checks(configuration: Configuration) -> Iterator[Check]:
    from streamdp.sections.secrets import concealed

    yield "clock", lambda: _clock(configuration)
    yield "store", lambda: _store(configuration)
    yield "store folder", lambda: _store_folder(configuration.store.path.parent)
    for number, problem in enumerate(_problems(configuration), start=1):
        name = "notice" if problem.code in TOLD else "problem"
        yield f"{name} {number}", lambda problem=problem: _said(problem)  # type: ignore[misc]
    yield "anchor", lambda: _anchor(configuration)
    yield from _sources(configuration)
    yield from _skipped(configuration)
    for name, sink in configuration.sinks.items():
        path = getattr(sink, "path", None)
        if path is not None:
            yield f"sink {name}", lambda path=path: _folder(path.parent)  # type: ignore[misc]
        if concealed(sink):
            yield f"secrets of {name}", lambda at=name: _secrets(configuration, at)  # type: ignore[misc]


def _sources(configuration: Configuration) -> Iterator[Check]:
    """One check of each release; those of one source share its engine."""
    from streamdp import wiring

    made: list[Job] = []
    engines = wiring.backends(configuration)

    def look(name: str) -> str:
        job = wiring.jobs(configuration, engines, [name])[name]
        made.append(job)
        return _source(configuration, job)

    try:
        for name in configuration.releases:
            yield f"source of {name}", partial(look, name)
    finally:
        wiring.hang_up(made)


def _skipped(configuration: Configuration) -> Iterator[Check]:
    """One warning for each source of files whose pattern finds what is not read."""
    from streamdp.engine.job import Skips
    from streamdp.objects import is_address

    for name, section in configuration.sources.items():
        if section.is_lake() or is_address(section.path):
            continue
        source = section.source(name)
        found = Counter(source.skipped()) if isinstance(source, Skips) else {}
        if found:
            said = [
                f"{each.batch}: {each.why}" if each.batch else f"{each.why} ({count})"
                for each, count in list(found.items())[:MOST_NAMES]
            ]
            more = f", and {len(found) - MOST_NAMES} more" if len(found) > MOST_NAMES else ""
            finding = Warned(f"skipped: {', '.join(said)}{more}")
            yield f"inputs of {name}", lambda finding=finding: finding  # type: ignore[misc]


def _clock(configuration: Configuration) -> str:
    """The clock as `run` sees it: against the last time the store knew."""
    from streamdp.reports.holds import clock_errors
    from streamdp.store.clock_guard import require_followed
    from streamdp.store.database import connect_to_read
    from streamdp.store.migrations import is_current

    now = int(time.time())
    if now < EARLIEST:
        raise StreamdpError("the clock was never set", hint="set it: windows are cut by it")
    section, shown = configuration.store, iso(now)
    if not section.path.exists():
        return shown
    with closing(connect_to_read(section.path)) as database:
        if not is_current(database):
            return f"{shown}; upgrade pending: it is compared with the store after that"
        require_followed(database, now, section.max_clock_step)
        for error in clock_errors(configuration, database, now, configuration.tasks()):
            raise error
    return shown


def _store(configuration: Configuration) -> str:
    from streamdp.daemon.lock import is_locked
    from streamdp.store.anchor import require_agreement
    from streamdp.store.database import connect_to_read
    from streamdp.store.ledger import chain
    from streamdp.store.migrations import is_current
    from streamdp.store.verified_open import require_store

    path = configuration.store.path
    require_store(*configuration.store.paths())
    if not path.exists():
        return "not made yet; `streamdp run` makes it"
    if path.stat().st_mode & 0o077:
        raise StreamdpError("others may read the store", where=str(path), hint="chmod 600")
    database = connect_to_read(path)
    chain.verify(database)
    if not is_current(database):
        return "ledger verified; upgrade pending: the next run brings it up to this version"
    anchor = configuration.store.paths()[1]
    require_agreement(database, anchor)
    return "ledger verified, its anchor agrees" + (
        ", a daemon is working on it" if is_locked(path) else ""
    )


def _problems(configuration: Configuration) -> list[BatchProblem]:
    """Problems that are known; whether a release can read its source is looked at anew."""
    from streamdp.reports.holds import wrong_now
    from streamdp.store.database import connect_to_read

    path = configuration.store.path
    try:
        found = wrong_now(configuration, connect_to_read(path) if path.exists() else None)
        return [each for each in found if each.batch or each.about not in configuration.releases]
    except StreamdpError:
        return []


def _said(problem: BatchProblem) -> str:
    """The text of a problem that needs no action; raises any other."""
    about = f"{problem.about}{' batch ' if problem.batch else ''}{problem.batch}: {problem.reason}"
    if problem.code in TOLD:
        return about
    raise StreamdpError(about)


def _anchor(configuration: Configuration) -> str:
    from streamdp.store.anchor import ONE_VOLUME, on_one_volume

    store, anchor = configuration.store.paths()
    free = _folder(anchor.parent)
    return Warned(f"{free}; {ONE_VOLUME}") if on_one_volume(store, anchor) else free


def _store_folder(folder: Path) -> str:
    from streamdp.disk import shared_by_hosts
    from streamdp.store.database import ONE_HOST

    free, kind = _folder(folder), shared_by_hosts(folder)
    return Warned(f"{free}; {ONE_HOST.format(kind=kind)}") if kind else free


def _folder(folder: Path) -> str:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StreamdpError("this folder cannot be written", where=str(folder))
    statistics = os.statvfs(folder)
    free = statistics.f_bavail * statistics.f_frsize
    if free < LEAST_FREE:
        raise StreamdpError("the disk is nearly full", where=str(folder), hint="free 100 MB")
    return f"{free // 10**9} GB free"


def _secrets(configuration: Configuration, name: str) -> str:
    from streamdp.sections.secrets import concealed, reveal

    for secret in concealed(configuration.sinks[name]):
        reveal(secret)
    return "can be read"


def _source(configuration: Configuration, job: Job) -> str:
    from streamdp.backends.sql.engine import SqlBackend
    from streamdp.sources.windows import Windows

    _require_files(configuration, job.source.name)
    first = next(iter(job.source.batches(int(time.time()))), None)
    if first is None:
        section = configuration.sources[job.source.name]
        files = not isinstance(section.batches, Windows)
        return _waiting(section) if files else "no batch is complete yet"
    asked = job.charging.bounded(job.kind.plan(job.kind.init(), first).query, first)
    job.backend.check(asked, first)
    known = job.backend.notices(first) if isinstance(job.backend, SqlBackend) else []
    return "; ".join(["can be read, its columns are there", *known])


def _require_files(configuration: Configuration, name: str) -> None:
    """Refuse a source that had batches and has no file any more."""
    from streamdp.planning.changes import require_files
    from streamdp.store.migrations import open_to_read

    if configuration.store.path.exists():
        with closing(open_to_read(configuration.store.path)) as database:
            require_files(configuration, database, [name])


def _waiting(section: SourceSection) -> str:
    from streamdp.files import resolve
    from streamdp.objects import is_address, listed, parsed

    remote = is_address(section.path)
    count = len(listed(parsed(section.path)) if remote else resolve(section.path))
    if not count:
        return f"no {'object' if remote else 'file'} is there yet: {section.path}"
    if section.batches == "files":
        return f"{count} files are not left alone for {section.settle} s yet"
    return "no folder has its marker yet"


@click.command()
@click.argument("source")
@click.option(
    "--rows", "first", type=click.IntRange(0, 1000), default=5, show_default=True, help="To show."
)
@click.option(
    "--truth-may-be-seen",
    is_flag=True,
    help="You may see these records: what is shown is not private.",
)
@config_option
@json_option
def preview(
    source: str, first: int, truth_may_be_seen: bool, config_path: Path, as_json: bool
) -> None:
    """Show records of SOURCE as they are parsed, for somebody who may see them; spends nothing.

    Shows the first rows; of each column its type and the share of values that are missing or became
    null because they are none of that type, with three of them; records a batch and batches without
    any; records of a unit in a batch, with the share that each `rows` of the unit would keep; and
    groups of releases that are not listed.

    It reads the records themselves: what it prints is true, not private, and no figure of it may be
    published. Nothing of it is written to the store or the log. Choose bounds, groups and `rows` by
    what is known without the data where the choice itself would tell something.
    """
    from streamdp.errors import ConfigurationError
    from streamdp.planning.preview import preview as look

    configuration = load_configuration(config_path)
    require_name(source, configuration.sources, "source")
    if not truth_may_be_seen:
        raise ConfigurationError(
            f"a preview shows records of {source} as they are",
            where=f"sources.{source}",
            hint="add --truth-may-be-seen if you may see them; `streamdp doctor` looks at columns"
            " and types alone",
        )
    found = look(configuration, source, first, int(time.time()))
    titles = {
        f"first rows of {source}": found.rows,
        "columns": found.columns,
        "records a batch": found.batches,
        "records of a unit in a batch, and the share that `rows` keeps": found.units,
        "groups that are not listed": found.groups,
    }
    for title, rows in titles.items():
        if rows:
            print_rows(rows, "json" if as_json else "table", f"{title} (not private)")
    for said in found.warnings:
        click.echo(said, err=True)
