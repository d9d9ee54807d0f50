"""The data each budget belongs to: all that a scope ever read, in notes of the ledger.

A budget is found by the name of its source, but it belongs to the data. What a source reads, and
by which column, clocks and format it is cut into batches, is written down at its first use; later
it changes only by a person's word, and no other source may read data that a scope has ever claimed.
Claims of earlier versions lack clocks and format: those of the first later use are added to them.
Functions here run inside a transaction of their caller.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from streamdp.database import Database
from streamdp.errors import ConfigurationError
from streamdp.store.ledger import chain, ledger
from streamdp.types import Json

Overlap = Callable[[Json, Json], bool]
"""Whether two claims can mean the same records."""

_CLAIM = "source claimed"

_READ = "read"
"""Key of how records are read: absent from claims of earlier versions."""


def claims_of(database: Database) -> dict[str, list[Json]]:
    """Data that each scope has ever read, oldest first."""
    claims: dict[str, list[Json]] = {}
    for about in ledger.notes(database):
        if about.get("what") == _CLAIM:
            claims.setdefault(about["scope"], []).append(_with_port(about["data"]))
    return claims


def _with_port(data: Json) -> Json:
    """A claim in today's form, with the default port where none was given."""
    path = data["path"] if isinstance(data, dict) else ""
    if not path.startswith("postgres://") or ":None/" not in path:
        return data
    return {**data, "path": path.replace(":None/", ":5432/", 1)}


def claim(database: Database, wanted: Mapping[str, Json], overlap: Overlap, now: int) -> None:
    """Bind scopes to their data; refuse a scope that is bound to other data.

    Raises:
        ConfigurationError: A source reads what belongs to another's budget, or other data than
            before.
    """
    for scope in require_same(database, wanted, overlap):
        write(database, scope, wanted[scope], {"by": "first use"}, now)


def require_same(database: Database, wanted: Mapping[str, Json], overlap: Overlap) -> list[str]:
    """Refuse a scope that is bound to other data; return those whose data is not written down yet.

    Raises:
        ConfigurationError: As `claim`.
    """
    known = claims_of(database)
    for scope, data in wanted.items():
        _refuse_foreign(database, scope, data, known, overlap, wanted)
        if scope in known and not _is_claimed(data, known[scope]):
            raise ConfigurationError(
                f"source {scope} reads other data than before, takes its time or units from another"
                " column, or reads records in another format, times of another type, or days of"
                " another time zone",
                where=f"sources.{scope}",
                hint="set it as it was; if these are the same records in another place,"
                f" `streamdp source {scope} --moved --operator NAME --reason WHY` says so in the"
                " ledger",
            )
    return [scope for scope, data in wanted.items() if data not in known.get(scope, ())]


def _is_claimed(data: Json, claims: Sequence[Json]) -> bool:
    """Whether a scope is bound to data; if no claim says how they are read, any reading will do."""
    if any(_READ in claim for claim in claims):
        return data in claims
    return {name: each for name, each in data.items() if name != _READ} in claims


def move(
    database: Database, scope: str, data: Json, overlap: Overlap, about: Mapping[str, Any], now: int
) -> None:
    """Bind a scope to the new place of its data, by an operator's decision.

    Raises:
        ConfigurationError: The data belongs to another's budget.
    """
    _refuse_foreign(database, scope, data, claims_of(database), overlap, ())
    write(database, scope, data, about, now)


def _refuse_foreign(
    database: Database,
    scope: str,
    data: Json,
    known: Mapping[str, list[Json]],
    overlap: Overlap,
    configured: Collection[str],
) -> None:
    """Refuse data of another budget.

    Where nothing was spent, and no source of that name is left, there is no budget to come back to:
    such a claim binds nobody.
    """
    for other, claims in known.items():
        if other == scope or not any(overlap(data, each) for each in claims):
            continue
        if other in configured or chain.spent_of(database, other):
            raise ConfigurationError(
                f"source {scope} reads data whose budget is that of {other}",
                where=f"sources.{scope}",
                hint=f"a budget belongs to the data, whatever it is called: name it {other} again",
            )


def write(database: Database, scope: str, data: Json, about: Mapping[str, Any], now: int) -> None:
    """Write what a scope reads; `about` says by whom and why."""
    ledger.note(database, {"what": _CLAIM, "scope": scope, "data": data, **about}, now)
