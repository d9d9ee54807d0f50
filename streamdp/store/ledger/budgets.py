"""Scopes: what a budget means, and its caps, are bound at first use and never loosened by an edit.

Functions here run inside a transaction of their caller.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamdp.database import Database
from streamdp.errors import ConfigurationError
from streamdp.privacy.amounts import number_text
from streamdp.privacy.filters import Caps
from streamdp.store.ledger import ledger
from streamdp.types import Json

Terms = tuple[Caps, Mapping[str, str]]
"""Caps, and what a scope is bound to besides: unit, neighbours, and how growing batches grow."""


BATCHES = {"growth"}
"""Terms that only some sources have: how their batches are cut."""


def bind(database: Database, scope: str, terms: Terms, now: int) -> bool:
    """Bind one scope to its terms; whether its caps fell.

    Raises:
        ConfigurationError: The configuration says other than the ledger, or asks for more.
    """
    caps, about = terms
    declared = ledger.declaration_of(database, scope)
    if declared is None:
        ledger.set_caps(database, scope, caps, {**about, "by": "first use"}, now)
        return False
    _refuse_other_meaning(scope, about, declared)
    in_force = ledger.caps_of(database, scope)
    _refuse_higher_caps(scope, caps, in_force)
    if caps != in_force or not about.keys() <= declared.keys():
        ledger.set_caps(database, scope, caps, {**about, "by": "configuration"}, now)
    return caps != in_force


def _refuse_other_meaning(scope: str, wanted: Mapping[str, str], declared: Json) -> None:
    for name in (*wanted, *BATCHES & declared.keys() - wanted.keys()):
        said = wanted.get(name, "none")
        if declared.get(name, said) != said:
            raise ConfigurationError(
                f"the ledger of {scope} was opened with {name} {declared[name]!r},"
                f" the configuration says {said!r}",
                where=f"sources.{scope}" if name in BATCHES else "privacy",
                hint="what was spent was spent in those terms: keep them, or begin a new store",
            )


def _refuse_higher_caps(scope: str, caps: Caps, in_force: Caps) -> None:
    for limit in caps.above(in_force):
        raise ConfigurationError(
            f"the configuration allows {scope} more than the ledger's {limit.name} cap of"
            f" {number_text(limit.nano, limit.measure)} {limit.measure}",
            where="privacy.caps",
            hint="a cap is not raised or dropped by an edit: `streamdp cap` writes it into the"
            " ledger, with your name and reason",
        )
