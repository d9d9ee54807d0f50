"""The law of a gate's bits, integrated from production's own noise, scores and sample sizes.

Production is asked, not re-implemented: `heads` is replaced by a recorder, which gives the biases
behind rho and nu; `accept` is asked where it changes its mind; the shares and sizes of sampled
tests are those it hands to `heads`. What is added here is arithmetic: sums over the two noises,
a binomial count, and the product over the tests of a run, all of positive terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast
from unittest.mock import patch

import numpy as np
from scipy.stats import binom

from streamdp.mechanisms.sparse_vector import above_threshold, thresholding
from streamdp.mechanisms.sparse_vector.thresholding import Chance, Sampling, Terms, Thresholding
from streamdp.privacy import draws as one_sided_module
from streamdp.types import Entropy, FloatArray, IntArray

NO_ENTROPY = cast(Entropy, None)
"""Nothing under test may take chance but through what is replaced here."""

TAIL = 45.0
"""The noises are summed up to where e^-45 of them is left, all of which is put there."""

FAINTEST = 1e-14
"""Outcomes less likely than this are left out: there the tail would show."""


@dataclass(frozen=True)
class Asked:
    """A test as it stands under both neighbours, asked so many times.

    Args:
        terms: Public.
        mine: p_t, success and failure.
        other: p_t of the neighbour.
        times: How often in a row.
        sampled: Whether it is a black box.
        number: Of the test in its run, by which a black box is sized; else that of its block.
    """

    terms: Terms
    mine: Chance
    other: Chance
    times: int = 1
    sampled: bool = False
    number: int | None = None


@contextmanager
def coarse(step_bits: int, reserve: int = 1) -> Iterator[None]:
    """Inside, one of a score is 2^step_bits units less the reserve: sums are shorter."""
    step = 1 << step_bits
    with (
        patch.multiple(above_threshold, STEP_BITS=step_bits, STEP=step, UNIT=step - reserve),
        patch.object(thresholding, "UNIT", step - reserve),
    ):
        yield


def noise_law(draw: Callable[[], int]) -> FloatArray:
    """P(0), P(1), ... of a one-sided noise, from the biases it asks `heads` for.

    The first coin is asked until tails; then each digit has its own, whatever the others were.
    """
    law: list[FloatArray] = []
    for answer in (0, 1):
        biases: list[float] = []

        def heads(coins: int, bias: Fraction, entropy: Any, answer: int = answer) -> int:
            biases.append(float(bias))  # noqa: B023
            return 0 if len(biases) == 1 else answer  # noqa: B023

        with patch.object(one_sided_module, "heads", heads):
            drawn = draw()
        if not biases:
            return np.array([0.0] * drawn + [1.0])
        assert drawn == (1 << len(biases) - 1) * answer - answer
        rest = np.ones(1)
        for bias in biases[1:]:
            rest = np.concatenate((rest * (1.0 - bias), rest * bias))
        blocks = biases[0] ** np.arange(math.ceil(TAIL / -math.log(biases[0])))
        blocks[:-1] *= 1.0 - biases[0]
        law.append(np.outer(blocks, rest).ravel())
    assert np.array_equal(law[0], law[1])
    return law[0]


def accepting_gap(gate: Thresholding, chance: Chance, terms: Terms) -> int:
    """Least nu - rho from which production accepts a computed test, by asking it."""
    low, high = -(1 << 24), 1 << 24

    def accepts(gap: int) -> bool:
        with patch.object(above_threshold, "one_sided", lambda *_: max(gap, 0)):
            return gate.accept({"rho": max(-gap, 0)}, 1, chance, terms, NO_ENTROPY)

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if accepts(middle) else (middle, high)
    return high


def share_of(sizes: Sampling, gap: int, terms: Terms) -> tuple[Fraction, Fraction] | None:
    """What production asks `heads` for at this gap: the share of runs, and that of extras."""
    log_rate = float(terms.epsilon) * gap / above_threshold.UNIT
    share = sizes.share(log_rate if sizes.low else -log_rate)
    return None if share is None else (share, share * sizes.kappa / (1 - share))


def counted(sizes: Sampling, shares: FloatArray, extras: FloatArray, chance: Chance) -> Any:
    """The law of the count that is compared with `needed`: binomial over the slots."""
    hit = chance.success if sizes.low else chance.failure
    return binom(sizes.slots, shares * hit + (1.0 - shares) * extras)


def sampled_bit(
    gate: Thresholding, t: int, chance: Chance, terms: Terms, gaps: IntArray
) -> tuple[FloatArray, FloatArray]:
    """P(accept) and P(reject) at each nu - rho; gaps rise by one unit."""
    sizes = gate.sampling(t, terms)
    shifted = [int(gap) + gate.noise.offset(4) for gap in gaps]
    asked = [share_of(sizes, gap, terms) for gap in shifted]
    accept = np.array([float(gap >= 0) for gap in shifted])
    open_ = np.array([each is not None for each in asked])
    shares = np.array([[float(x) for x in each] for each in asked if each is not None])
    count = counted(sizes, shares[:, 0], shares[:, 1], chance)
    needed = sizes.needed
    yes, no = count.sf(needed - 1), count.cdf(needed - 1)
    if not sizes.low:
        yes, no = count.cdf(needed), count.sf(needed)
    reject = 1.0 - accept
    accept[open_], reject[open_] = yes, no
    return accept, reject


def run_law(
    gate: Thresholding, tests: list[Asked], other: bool, redrawn: bool = False
) -> FloatArray:
    """P(first acceptance in block 1), ..., P(no acceptance); a block counts its last test.

    Args:
        gate: Production.
        tests: Blocks of tests in a row.
        other: Whether for the neighbour.
        redrawn: Whether rho is drawn for each test anew, which is a mistake.
    """
    rho = noise_law(lambda: int(gate.start(NO_ENTROPY)["rho"]))
    nu = noise_law(lambda: gate.noise.gap({"rho": 0}, NO_ENTROPY) - gate.noise.offset())
    alive, law = rho.copy(), []
    for index, asked in enumerate(tests):
        chance = asked.other if other else asked.mine
        accept, reject = _bits(gate, asked.number or index + 1, asked, chance, rho, nu)
        if redrawn:
            accept, reject = (np.full(len(rho), rho @ each) for each in (accept, reject))
        alive = alive * reject ** (asked.times - 1)
        law.append(float(alive @ accept))
        alive = alive * reject
    return np.array([*law, float(alive.sum())])


def _bits(
    gate: Thresholding, t: int, asked: Asked, chance: Chance, rho: FloatArray, nu: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """P(accept) and P(reject) of one test for each rho."""
    if asked.sampled:
        gaps = np.arange(1 - len(rho), len(nu))
        bits = sampled_bit(gate, t, chance, asked.terms, gaps)
        accept, reject = (np.correlate(bit, nu, "valid")[::-1] for bit in bits)
        return accept, reject
    least = accepting_gap(gate, chance, asked.terms) + np.arange(len(rho))
    upper = np.append(np.cumsum(nu[::-1])[::-1], 0.0)
    lower = np.append(0.0, np.cumsum(nu))
    index = np.clip(least, 0, len(nu))
    return upper[index], lower[index]


def loss(gate: Thresholding, tests: list[Asked], redrawn: bool = False) -> float:
    """Largest log-ratio over epsilon, over when a run is accepted and both directions."""
    mine, other = (run_law(gate, tests, each, redrawn) for each in (False, True))
    seen = np.minimum(mine, other) > FAINTEST
    ratios = np.abs(np.log(mine[seen] / other[seen]))
    missed = np.maximum(mine, other)[~seen] > 1e6 * FAINTEST
    return math.inf if missed.any() else float(ratios.max(initial=0.0)) / float(gate.epsilon)
