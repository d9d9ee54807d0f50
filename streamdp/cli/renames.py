"""`streamdp job`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import (
    config_option,
    job_argument,
    load_configuration,
    operator_option,
    own_store,
    reason_option,
    require_job,
)
from streamdp.text import require_name
from streamdp.types import Json, NewNames

if TYPE_CHECKING:
    from streamdp.config import Configuration


def _pairs(
    context: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    """Old and new names."""
    pairs = []
    for text in texts:
        old, _, new = text.partition("=")
        if not old or not new:
            raise click.BadParameter(f"{text!r} is not OLD=NEW")
        pairs.append((old, new))
    for names in zip(*pairs, strict=True):
        if len(set(names)) < len(names):
            raise click.BadParameter("a name is there twice")
    return tuple(pairs)


@click.command()
@job_argument
@click.option("--was", help="Its name so far, which no release has any more.")
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="OLD=NEW",
    callback=_pairs,
    help="A group and its new name; texts of several columns are joined by commas.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="OLD=NEW",
    callback=_pairs,
    help="A column of the source and its new name.",
)
@click.option(
    "--measure",
    "measures",
    multiple=True,
    metavar="OLD=NEW",
    callback=_pairs,
    help="A measure of statistics and its new name.",
)
@operator_option
@reason_option
@config_option
def job(
    job: str,
    was: str | None,
    groups: tuple[tuple[str, str], ...],
    columns: tuple[tuple[str, str], ...],
    measures: tuple[tuple[str, str], ...],
    operator: str,
    reason: str,
    config_path: Path,
) -> None:
    """Declare that JOB, or a group, column or measure of it, was called something else so far.

    With --was it goes on where that one stopped: batches that were released under the old name are
    not released and paid for again, and what was learned is kept. Rows that were published keep the
    old name. Your name and reason stay in the ledger.

    Rename the release in the configuration first, before the next run. Its question must be the
    same; a release with a gate cannot be renamed.

    With --group, --column and --measure, once they are renamed in the configuration, what was
    learned under the old names is kept from the next release on. Nothing else of the question may
    have changed. Axes of a workload cannot be renamed so: they are learned anew.
    """
    from streamdp import wiring

    configuration = load_configuration(config_path)
    require_job(configuration, job)
    within = bool(groups or columns or measures)
    if within == (was is not None):
        raise click.UsageError("give --was, or any of --group, --column and --measure")
    if was in configuration.releases:
        raise click.UsageError(f"{was} is still a release of {config_path}: rename it there")
    source, now = configuration.releases[job].source, int(time.time())
    signature = wiring.release_kind(configuration, job).signature()
    about = {"operator": operator, "reason": reason}
    with own_store(configuration, now) as store:
        if was is not None:
            kept = store.rename_job(job, was, source, signature, about, now)
            said = f"the {kept} releases of {was}"
        else:
            names = _new_names(configuration, job, groups, columns, measures)
            kept = store.rename_within(job, names, signature, about, now)
            said = f"what its {kept} releases taught, in the new names"
    click.echo(f"{job} goes on with {said}")


def _new_names(
    configuration: Configuration,
    job: str,
    groups: tuple[tuple[str, str], ...],
    columns: tuple[tuple[str, str], ...],
    measures: tuple[tuple[str, str], ...],
) -> NewNames:
    """The names as the store keeps them; groups as the configuration has them."""
    from streamdp.types import NewNames

    known = {",".join(group): group for group in configuration.releases[job].groups}
    found = []
    for old, new in groups:
        if new not in known:
            raise click.UsageError(f"{new} is no group of {job}: rename it there first")
        if old in known:
            raise click.UsageError(f"{old} is still a group of {job}: rename it there")
        parts = tuple(old.split(",")) if len(known[new]) > 1 else (old,)
        if len(parts) != len(known[new]):
            raise click.UsageError(f"{old} and {new} are of different columns")
        found.append((parts, known[new]))
    return NewNames(tuple(found), columns, measures)


@click.command()
@click.argument("name")
@click.option("--moved", is_flag=True, required=True, help="Its records are in another place.")
@operator_option
@reason_option
@config_option
def source(name: str, moved: bool, operator: str, reason: str, config_path: Path) -> None:
    """Declare that the source NAME has the same records in another place or by another column.

    Its budget goes on. A budget belongs to the data: without this command a source that reads other
    files, takes its time or units from another column, or is read in another format or time zone,
    is refused. Your name and reason stay in the ledger.

    With another time column, time zone or format records fall in other batches: the batch cap and
    the caps over windows begin anew for records that were paid for, and only the lifetime cap
    counts both. With another unit column the guarantee of the old unit ends.
    """
    from streamdp.sources.section import same_data
    from streamdp.store.ledger.source_binding import claims_of

    if not moved:
        raise click.UsageError("there is only --moved")
    configuration = load_configuration(config_path)
    require_name(name, configuration.sources, "source")
    who, now = configuration.privacy.unit.column, int(time.time())
    data = configuration.sources[name].identity(who)
    with own_store(configuration, now) as store:
        before = claims_of(store.database).get(name, [None])[-1]
        store.move_source(name, data, same_data, {"operator": operator, "reason": reason}, now)
    click.echo(f"{name} goes on with its budget; {_cost(before, data)}")


def _cost(before: Json, after: Json) -> str:
    """Warning about the privacy cost of a move."""
    if before is None or all(before.get(key) == after.get(key) for key in ("column", "read")):
        return "batches that were released stay released"
    return (
        "its time is another column or is read otherwise, so each batch may cost its cap once more"
        " for records that were paid for: only the lifetime cap counts both"
    )
