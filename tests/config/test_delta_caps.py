"""Caps on delta: what they are in integers, and what they leave of a cap in epsilon and delta."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from pydantic import ValidationError

from streamdp.config.privacy import CapsSection
from streamdp.privacy.accountants import rho_for
from streamdp.privacy.filters import Limit

MILLIONTH, BILLIONTH = Fraction(1, 10**6), Fraction(1, 10**9)


def section(**caps: Any) -> CapsSection:
    return CapsSection.model_validate(caps)


def test_they_are_kept_in_whole_units() -> None:
    """Beside the other caps, each over its stretch, never more than was written."""
    caps = section(
        batch=0.5,
        lifetime=60,
        windows=[{"batches": 7, "epsilon": 2}],
        delta={
            "batch": "1e-9",
            "lifetime": 1.5e-6,
            "windows": [{"batches": 7, "delta": "1/300000000"}, {"time": "30d", "delta": 1e-8}],
        },
    ).caps()
    assert caps.deltas == (
        Limit(1_500_000_000_000, "delta"),
        Limit(1_000_000_000, "delta", 1),
        Limit(3_333_333_333, "delta", 7),
        Limit(10_000_000_000, "delta", None, 30 * 86_400),
    )
    assert caps.limits[2] == Limit(2_000_000_000, "epsilon", 7)
    assert section(batch=0.5, lifetime=60).caps().deltas == (Limit(0, "delta"),)


def test_a_cap_in_epsilon_and_delta_leaves_the_releases_theirs() -> None:
    """What they may spend in its own stretch is taken off, however that is bounded."""
    terms = {"epsilon": 1, "delta": "1e-6"}
    caps = section(
        batch=terms,
        lifetime={"epsilon": 3, "delta": "2e-6"},
        windows=[
            {"batches": 7, "epsilon": 2, "delta": "1e-6"},
            {"batches": 9, "epsilon": 2, "delta": "1e-6"},
            {"time": "30d", "epsilon": 2, "delta": "2e-6"},
            {"batches": "all", "epsilon": 2, "delta": "2e-6"},
        ],
        delta={
            "batch": "1e-8",
            "lifetime": "1e-6",
            "windows": [{"batches": 8, "delta": "3e-8"}, {"time": "31d", "delta": "2e-7"}],
        },
    ).caps()
    hundredth = MILLIONTH / 100
    assert caps.batch_nano == rho_for(Fraction(1), 99 * hundredth)
    assert caps.lifetime_nano == rho_for(Fraction(3), MILLIONTH)
    assert [limit.nano for limit in caps.windows[:4]] == [
        rho_for(Fraction(2), 97 * hundredth),
        rho_for(Fraction(2), 91 * hundredth),
        rho_for(Fraction(2), 180 * hundredth),
        rho_for(Fraction(2), MILLIONTH),
    ]
    assert [caps.delta_within(limit) for limit in caps.limits[:3]] == [10**12, 10**10, 3 * 10**10]
    before = section(batch=terms, lifetime={"epsilon": 3, "delta": "2e-6"}).caps()
    assert before.batch_nano == rho_for(Fraction(1), MILLIONTH) > caps.batch_nano


@pytest.mark.parametrize(
    ("caps", "why"),
    [
        ({"delta": {"batch": 1e-9}}, "lifetime"),
        ({"delta": {"lifetime": 1}}, "below 1"),
        ({"delta": {"lifetime": 1e-19}}, "at least 1e-18"),
        ({"delta": {"lifetime": 1e-9, "batch": 1e-8}}, "above that of the lifetime"),
        ({"delta": {"lifetime": 1e-9, "windows": [{"delta": 1e-9}]}}, "batches or time"),
        (
            {
                "batch": {"epsilon": 1, "delta": 1e-9},
                "lifetime": {"epsilon": 1, "delta": 1e-9},
                "delta": {"lifetime": 1e-9},
            },
            "they must leave some",
        ),
    ],
)
def test_what_is_no_cap_is_refused(caps: dict[str, Any], why: str) -> None:
    """With the reason."""
    with pytest.raises(ValidationError, match=why):
        section(**({"batch": 0.5, "lifetime": 60} | caps)).caps()
