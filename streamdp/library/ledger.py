"""A ledger in memory: what a notebook has spent, and a filter that nothing overspends."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, NoReturn

from pydantic import ValidationError

from streamdp.config.privacy import Privacy
from streamdp.config.wording import wording
from streamdp.errors import BudgetExhaustedError, ConfigurationError
from streamdp.library.table import Table, table_of
from streamdp.privacy.amounts import NANO, NO_PURE_LOSS, UNBOUNDED, delta_text, epsilon_text
from streamdp.privacy.filters import Item, Measure
from streamdp.types import Charge, Json, Neighbours

Amount = float | int | str | Fraction
"""An exact amount: 0.1 is one tenth, "1/3" is one third."""

NO_CAPS: Mapping[Measure, Mapping[str, Json]] = {
    "epsilon": {"batch": 10**6, "lifetime": 10**6},
    "rho": {"batch": {"rho": 10**6}, "lifetime": {"rho": 10**6}},
}
"""Caps of a configuration that has others: the ledger's own limit refuses."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge of a ledger in memory.

    Args:
        what: Kind of the release.
        charge: Its price, with the event it was computed from.
        state: `released`, or `burnt` where the release failed. It is spent either way.
    """

    what: str
    charge: Charge
    state: Literal["released", "burnt"] = "burnt"


class Ledger:
    """Budget for records that belong together, and the charges to it.

    All charges add up, whatever data they are for: the limit bounds the loss of a unit that is in
    all of them. Amounts are integers of 1e-9, rounded up, and the limit is rounded down. A charge
    is spent before data is read and stays spent if the release fails. It is in memory and of one
    process: it cannot be copied or pickled, and a process that was forked off cannot charge it.

    Args:
        epsilon: The most that may be spent: pure, or with `delta` by zero-concentrated accounting.
        delta: Goes with epsilon.
        rho: Zero-concentrated loss, in place of epsilon.
        unit: As `privacy.unit` of the configuration: a word for what one record stands for, or
            `{"name": ..., "column": ..., "rows": ...}`.
        neighbours: As `privacy.neighbours`.
        allow_large_epsilon: Admit releases at an epsilon above 20.

    Raises:
        ConfigurationError: An argument is none of these.

    >>> Ledger(epsilon=1)
    Ledger(0 of 1 epsilon spent)
    """

    def __init__(
        self,
        epsilon: Amount | None = None,
        *,
        delta: Amount | None = None,
        rho: Amount | None = None,
        unit: str | Mapping[str, Json] = "record",
        neighbours: Neighbours = "add-remove",
        allow_large_epsilon: bool = False,
    ) -> None:
        window = {"batches": "all", "epsilon": epsilon, "delta": delta, "rho": rho}
        measure: Measure = "epsilon" if delta is None and rho is None else "rho"
        privacy = _validated(
            {
                "unit": unit if isinstance(unit, str) else dict(unit),
                "neighbours": neighbours,
                "caps": {**NO_CAPS[measure], "windows": [_without_none(window)]},
                "allow_large_epsilon": allow_large_epsilon,
            }
        )
        self._limit = privacy.caps.windows[0].limit()
        self._privacy = privacy.model_copy(
            update={"caps": privacy.caps.model_copy(update={"windows": ()})}
        )
        self._entries: list[Entry] = []
        self._lock, self._process = threading.Lock(), os.getpid()

    @property
    def privacy(self) -> Privacy:
        """Unit and relation that all its charges are for."""
        return self._privacy

    @property
    def spent(self) -> float:
        """Spent budget, in the measure of the limit; the ledger itself counts in integers."""
        return self._spent_nano() / NANO

    @property
    def left(self) -> float:
        """Remaining budget, in the measure of the limit."""
        return (self._limit.nano - self._spent_nano()) / NANO

    @property
    def entries(self) -> Table:
        """All charges, oldest first."""
        rows = [
            {
                "what": each.what,
                "epsilon": _text(each.charge.epsilon_nano),
                "rho": epsilon_text(each.charge.rho_nano),
                "state": each.state,
            }
            for each in self._entries
        ]
        return table_of(rows, {"what": "text", "epsilon": "text", "rho": "text", "state": "text"})

    def spend(self, charge: Charge, what: str) -> int:
        """Spend a charge before data is read; return its number.

        Raises:
            BudgetExhaustedError: It does not fit; nothing was spent.
            ConfigurationError: Another process made the ledger, which counts on its own.
        """
        if os.getpid() != self._process:
            raise ConfigurationError(
                "this ledger is that of another process, which would not see what is spent here",
                hint="make releases in the process that made the ledger",
            )
        with self._lock:
            cost = _item(charge).amount(self._limit.measure)
            used, cap = self._spent_nano(), self._limit.nano
            if charge.delta_atto:
                raise BudgetExhaustedError(
                    "this ledger has no delta, and this release costs a delta of"
                    f" {delta_text(charge.delta_atto)}",
                    hint="releases that find keys are made by a store, under caps with a delta",
                    left_nano=cap - used,
                )
            if cost >= UNBOUNDED:
                raise BudgetExhaustedError(
                    "the ledger is in pure epsilon, and this release has no pure loss: it is paid"
                    " in rho",
                    hint=NO_PURE_LOSS,
                    left_nano=cap - used,
                )
            if used + cost > cap:
                raise BudgetExhaustedError(
                    f"the ledger has {epsilon_text(cap - used)} of {epsilon_text(cap)}"
                    f" {self._limit.measure} left, this release costs {epsilon_text(cost)}",
                    hint="nothing is given back; a lower epsilon may fit",
                    left_nano=cap - used,
                )
            self._entries.append(Entry(what, charge))
            return len(self._entries) - 1

    def settle(self, number: int) -> None:
        """Note that a charge led to a release; it is spent whether or not."""
        self._entries[number] = replace(self._entries[number], state="released")

    def __repr__(self) -> str:
        used, cap = epsilon_text(self._spent_nano()), epsilon_text(self._limit.nano)
        return f"Ledger({used} of {cap} {self._limit.measure} spent)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a ledger cannot be copied: each copy could spend all of it")

    def _spent_nano(self) -> int:
        return sum(_item(each.charge).amount(self._limit.measure) for each in self._entries)


def _text(epsilon_nano: int | None) -> str:
    return epsilon_text(UNBOUNDED if epsilon_nano is None else epsilon_nano)


def _item(charge: Charge) -> Item:
    return Item(0, charge.epsilon_nano, charge.rho_nano, charge.delta_atto)


def _without_none(value: Mapping[str, Json]) -> dict[str, Json]:
    return {name: each for name, each in value.items() if each is not None}


def _validated(value: Json) -> Privacy:
    try:
        return Privacy.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        names = [part for part in first["loc"] if isinstance(part, str) and part != "caps"]
        place = ".".join(name for name in names if name != "windows")
        raise ConfigurationError(wording(first), where=f"Ledger({place})") from None
