"""Charges: what a release or a run of a gate costs, and what the ledger holds of it."""

from __future__ import annotations

from dataclasses import dataclass

from streamdp.types.forms import Json


@dataclass(frozen=True, slots=True)
class Charge:
    """The price of a release, fixed before data is touched.

    Args:
        event: The draws and their parameters, in the ledger's vocabulary (`privacy.events`).
        epsilon_nano: Pure privacy loss in units of 1e-9, rounded up; None where there is none, as
            of Gaussian noise.
        rho_nano: The same in zero-concentrated differential privacy.
        delta_atto: The chance with which it may lose more, in units of 1e-18, rounded up.
    """

    event: Json
    epsilon_nano: int | None
    rho_nano: int
    delta_atto: int = 0


@dataclass(frozen=True, slots=True)
class Reservation:
    """A charge that is spent and not yet settled: row `seq` of the ledger."""

    seq: int
    scope: str
    job: str
    batch: str


@dataclass(frozen=True, slots=True)
class Run:
    """A charge for all batches that one gate ever tests, paid once: row `seq` of the ledger.

    It stays open until it is closed; every batch it tests must join it first.
    """

    seq: int
    scope: str
    job: str
    epsilon_nano: int | None
    rho_nano: int
    delta_atto: int = 0
