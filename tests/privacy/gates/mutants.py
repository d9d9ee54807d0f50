"""Plausible mistakes in a gate, each put in production's place, and the run that exposes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest.mock import PropertyMock, patch

import numpy as np
from scipy.stats import binom

from streamdp.mechanisms.sparse_vector.above_threshold import AboveThreshold
from streamdp.mechanisms.sparse_vector.thresholding import Chance, Sampling, Terms, Thresholding
from streamdp.types import FloatArray
from tests.privacy.gates import law as gates
from tests.privacy.gates.cases import STEPS, asked
from tests.privacy.gates.law import Asked, coarse, loss

F = Fraction
GATE = Thresholding(F(1), F(1, 10), F(1), horizon=100)
SHARP = Thresholding(F(20), F(1, 10), F(3), horizon=1)
PURE, LOOSE = Terms(F(1, 10)), Terms(F(1, 10), F(1, 50), F(1, 20))


@dataclass(frozen=True)
class GateMutant:
    """A mistake and where it shows.

    Args:
        name: In the rows.
        mutation: Context manager that puts it in place.
        tests: The run.
        gate: What runs it.
        redrawn: Whether the threshold is drawn for each test anew.
        setting: Holds for production too.
    """

    name: str
    mutation: Callable[[], Any]
    tests: list[Asked]
    gate: Thresholding = GATE
    redrawn: bool = False
    setting: Callable[[], Any] = nullcontext

    @property
    def sampled(self) -> bool:
        """Whether its tests are black boxes."""
        return self.tests[0].sampled

    def real_loss(self) -> float:
        """Largest loss of production over epsilon."""
        with coarse(*STEPS[self.sampled]), self.setting():
            return loss(self.gate, self.tests)

    def loss(self) -> float:
        """The same of the mutant."""
        with coarse(*STEPS[self.sampled]), self.setting(), self.mutation():
            return loss(self.gate, self.tests, self.redrawn)


def _no_threshold_noise() -> Any:
    """rho is 0."""
    return patch.object(AboveThreshold, "start", lambda self, entropy: {"rho": 0})


def _query_noise_halved() -> Any:
    """nu is priced as a shift by one, not two."""
    real = AboveThreshold.losses.fget  # type: ignore[attr-defined]

    def losses(self: AboveThreshold) -> tuple[Fraction, Fraction]:
        threshold, query = real(self)
        return threshold, 2 * query

    return patch.object(AboveThreshold, "losses", property(losses))


def _fixed_count() -> Any:
    """The expected number of runs, instead of a random one."""

    def counted(sizes: Sampling, shares: FloatArray, extras: FloatArray, chance: Chance) -> Any:
        hit = chance.success if sizes.low else chance.failure
        return binom(np.rint(sizes.slots * shares), hit)

    return patch.object(gates, "counted", counted)


def _delta_ignored() -> Any:
    """kappa is 0 whatever the delta."""
    return patch.object(Terms, "kappa", PropertyMock(return_value=F(0)))


def _log_odds() -> Any:
    """Both sides added up: the logarithm of the odds, which moves by two."""

    def score(self: Terms, chance: Chance) -> float:
        odds = chance.success / chance.failure * float((1 - self.level) / self.level)
        return float(np.log(odds)) / float(self.epsilon)

    return patch.object(Terms, "score", score)


@contextmanager
def _two_runs() -> Iterator[None]:
    """Counts of about two: any sizes are private, and these show most of how p spreads a count.

    A fixed number of runs is nearly private: only a gate much sharper than its counts shows it.
    """
    sizes = Sampling(rate=2.0, needed=2, slots=1024, low=False, kappa=F(0))
    with (
        patch.object(Thresholding, "sampling", lambda *_: sizes),
        patch.multiple(gates, TAIL=150.0, FAINTEST=1e-50),
    ):
        yield


def _many(chance: float, times: int, sampled: bool = False) -> list[Asked]:
    """Rejections while the neighbour's tests succeed more, then one that succeeds less."""
    return [asked(PURE, chance, True, times, sampled), asked(PURE, chance, False, 1, sampled)]


GATE_MUTANTS = (
    GateMutant("no threshold noise", _no_threshold_noise, _many(0.025, 20_000)),
    GateMutant("no threshold noise", _no_threshold_noise, _many(0.025, 2000, sampled=True)),
    GateMutant("query noise halved", _query_noise_halved, _many(0.2, 2000)),
    GateMutant("query noise halved", _query_noise_halved, _many(0.2, 2000, sampled=True)),
    GateMutant(
        "threshold redrawn after a rejection", nullcontext, _many(0.025, 20_000), redrawn=True
    ),
    GateMutant(
        "threshold redrawn after a rejection",
        nullcontext,
        _many(0.025, 2000, sampled=True),
        redrawn=True,
    ),
    GateMutant(
        "fixed number of runs",
        _fixed_count,
        [asked(Terms(F(1)), 0.3, True, 10**5, True), asked(Terms(F(1)), 0.7, False, 1, True)],
        SHARP,
        setting=_two_runs,
    ),
    GateMutant("delta ignored", _delta_ignored, [asked(LOOSE, 1e-9, True)]),
    GateMutant("delta ignored", _delta_ignored, [asked(LOOSE, 1e-9, True, 1, True)]),
    GateMutant("log-odds as a score", _log_odds, _many(0.2, 2000)),
)
