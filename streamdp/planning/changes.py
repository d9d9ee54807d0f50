"""Changes of the configuration since the store last worked by it: what a person should know first.

Read off the store alone: what was renamed would be published and paid for again, another question
learns anew, a source that had files may have lost them.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamdp.errors import SourceError
from streamdp.files import nearest, resolve
from streamdp.objects import is_address, listed, parsed
from streamdp.types import Batch, NewNames, new_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.kinds.section import ReleaseSection
    from streamdp.planning.costs import Prices

MOST_NAMED = 5
"""Groups that a sentence names."""


@dataclass(frozen=True, slots=True)
class JobPast:
    """What a name has released.

    Args:
        source: Whose batches.
        batches: Their keys.
    """

    source: str
    batches: frozenset[str]


def changes(
    configuration: Configuration,
    database: Database,
    prices: Prices,
    waiting: Mapping[str, Sequence[Batch]],
) -> Iterator[str]:
    """One sentence for each change that costs something or loses something.

    Args:
        configuration: As it is now.
        database: The store.
        prices: Of the jobs.
        waiting: Batches that each job would release.
    """
    from streamdp.store.archive import latest_learned, released_batches

    left = _left_behind(configuration, database)
    for name, section in configuration.releases.items():
        signature = json.loads(json.dumps(prices.kind(name).signature()))
        learned = latest_learned(database, name)
        if learned is not None and learned.signature != signature:
            done = len(released_batches(database, name, section.source))
            yield (
                f"{name} asks another question than its {done} releases did: what it learned from"
                f" them is left{_but_for(database, name)}, and their batches are not released again"
                + _of_new_names(name, new_names(learned.signature, signature))
            )
        elif learned is not None:
            yield from _of_groups(database, name, section)
        if learned is not None:
            continue
        for was, past in left.items():
            again = [each for each in waiting.get(name, ()) if each.key in past.batches]
            if past.source != section.source or not again:
                continue
            cost = float(section.price.amount) * len(again)
            said = (
                f"new job {name} publishes batches already published as {was}: {len(again)}"
                f" batches, {price_name(section.price.measure)} {cost:g} again"
            )
            before = latest_learned(database, was)
            if before is not None and before.signature == signature:
                said += (
                    f"; if it is {was} under another name, `streamdp job {name} --was {was}"
                    " --operator NAME --reason WHY` keeps its past, and nothing is paid again"
                )
            yield said


def _but_for(database: Database, job: str) -> str:
    """What of a job's past teaches a learner that begins."""
    from streamdp.store.measurements import measured_in_turn

    count = sum(1 for _ in measured_in_turn(database, job))
    if not count:
        return ""
    return f", but for what measurements of the same records teach it ({count} releases have some)"


def _of_new_names(job: str, names: NewNames | None) -> str:
    """What new names of columns and measures mean, where nothing else changed."""
    if names is None:
        return ""
    pairs = [("column", *pair) for pair in names.columns]
    pairs += [("measure", *pair) for pair in names.measures]
    said = ", ".join(f"{what} {old} is {new} now" for what, old, new in pairs)
    options = " ".join(f"--{what} {shlex.quote(f'{old}={new}')}" for what, old, new in pairs)
    return (
        f"; nothing is paid again. Only names differ ({said}): if they mean the same,"
        f" `streamdp job {job} {options} --operator NAME --reason WHY` before the next run keeps"
        " what was learned, and rows that were published keep the old names"
    )


def _of_groups(database: Database, job: str, section: ReleaseSection) -> Iterator[str]:
    """One sentence where groups of the newest release are gone and others are new."""
    from streamdp.store.archive import learned_states, released_batches

    newest = next(learned_states(database, job, None), None)
    if newest is None or not section.cut_by or section.groups_from is not None:
        return
    rows = [row for row in newest[1].rows if all(name in row for name in section.by)]
    had = dict.fromkeys(tuple(str(row[name]) for name in section.by) for row in rows)
    gone = [group for group in had if group not in section.groups]
    new = [group for group in section.groups if group not in had]
    if not gone or not new:
        return
    done = len(released_batches(database, job, section.source))
    pair = f"{','.join(gone[0])}={','.join(new[0])}"
    option = shlex.quote(pair) if len(gone) == len(new) == 1 else "OLD=NEW"
    yield (
        f"{job}: {_listed(gone)} gone and {_listed(new)} new among its groups: its {done} releases"
        " stay as they are, their batches are not released again, and nothing is paid again; what"
        f" was learned of {_names(gone)} is left, and {_listed(new)} learned anew. If only the name"
        f" changed, `streamdp job {job} --group {option} --operator NAME --reason WHY` before the"
        " next run keeps what was learned"
    )


def _names(groups: Sequence[tuple[str, ...]]) -> str:
    said = [",".join(group) for group in groups[:MOST_NAMED]]
    left = len(groups) - len(said)
    return ", ".join(said) + (f" and {left} more" if left else "")


def _listed(groups: Sequence[tuple[str, ...]]) -> str:
    return f"{_names(groups)} {'is' if len(groups) == 1 else 'are'}"


def price_name(measure: str) -> str:
    """The sign of a measure of privacy loss."""
    return "ρ" if measure == "rho" else "ε"


def _left_behind(configuration: Configuration, database: Database) -> dict[str, JobPast]:
    """Names that have released something and are no job any more, nor one that a job had."""
    from streamdp.store.archive import released_by_all
    from streamdp.store.ledger.renames import names_of

    known = {each for name in configuration.releases for each in names_of(database, name)}
    found: dict[tuple[str, str], set[str]] = {}
    for job, source, batch in released_by_all(database):
        if job not in known:
            found.setdefault((job, source), set()).add(batch)
    return {job: JobPast(source, frozenset(keys)) for (job, source), keys in found.items()}


def require_files(configuration: Configuration, database: Database, names: Iterable[str]) -> None:
    """Refuse a source that had batches and finds no file now.

    Privacy: whether files are there, and how many batches there were, is public.

    Raises:
        SourceError: So it is; it names the first such source.
    """
    from streamdp.store.archive import known_batches

    for name in dict.fromkeys(names):
        section = configuration.sources[name]
        if not section.path or section.is_lake():
            continue
        remote = is_address(section.path)
        if listed(parsed(section.path)) if remote else resolve(section.path):
            continue
        had = len(known_batches(database, name))
        if had:
            raise SourceError(
                f"source {name} had {had} batches, and finds no file now",
                where=section.path,
                hint=("" if remote else nearest(section.path))
                or "put the files back, or mend the path; if the same records are in another"
                f" place, `streamdp source {name} --moved --operator NAME --reason WHY`",
                source=name,
            )
