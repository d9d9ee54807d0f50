"""Changes of the configuration since the store last worked by it: what a person should know first.

Read off the store alone: what was renamed would be published and paid for again, another question
learns anew, a source that had files may have lost them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamdp.errors import SourceError
from streamdp.files import nearest, resolve
from streamdp.objects.address import is_address, parsed
from streamdp.objects.storage import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from streamdp.config import Configuration
    from streamdp.database import Database
    from streamdp.planning.prices import Prices
    from streamdp.types import Batch


@dataclass(frozen=True, slots=True)
class Past:
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
                " them is left, and their batches are not released again"
            )
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


def price_name(measure: str) -> str:
    """The sign of a measure of privacy loss."""
    return "ρ" if measure == "rho" else "ε"


def _left_behind(configuration: Configuration, database: Database) -> dict[str, Past]:
    """Names that have released something and are no job any more, nor one that a job had."""
    from streamdp.store.ledger.renames import names_of

    known = {each for name in configuration.releases for each in names_of(database, name)}
    found: dict[tuple[str, str], set[str]] = {}
    for job, source, batch in database.execute("SELECT job, source, batch FROM release"):
        if job not in known:
            found.setdefault((job, source), set()).add(batch)
    return {job: Past(source, frozenset(keys)) for (job, source), keys in found.items()}


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
