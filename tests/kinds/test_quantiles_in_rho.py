"""Quantiles that are paid in rho cost no more of it, as records and as units."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from streamdp.config import Configuration, load
from streamdp.errors import ConfigurationError
from streamdp.kinds.charging import UnitCharging
from streamdp.kinds.quantiles.accuracy import RankError
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.privacy.price import Price
from streamdp.types import Batch
from streamdp.wiring import release_kind

HEAD = """
store: {path: store.db}
privacy: {unit: UNIT, caps: {batch: {rho: 1}, lifetime: {rho: 10}}}
sources:
  trips: {path: trips.parquet, batches: {column: at, every: 1d, start: 2024-01-01}}
releases:
  times:
    {kind: quantiles, source: trips, column: x, resolution: 1, bounds: [0, 999], BODY}
"""
RECORDS, UNITS = "trip", "{name: car, column: car, rows: 3}"
LEARNERS = ("mixture", "last-release", "online-gradient", "none")


def loaded(folder: Path, body: str, unit: str = RECORDS) -> Configuration:
    path = folder / "config.yaml"
    path.write_text(HEAD.replace("BODY", body).replace("UNIT", unit))
    return load(path)


@pytest.mark.parametrize("unit", [RECORDS, UNITS])
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("quantiles", ["median", "deciles"])
def test_a_release_costs_its_rho(tmp_path: Path, quantiles: str, learner: str, unit: str) -> None:
    """Never more; all of it where a batch is one draw."""
    body = f"quantiles: {quantiles}, rho: 0.02, expected_rows: 900, prior: {{learner: {learner}}}"
    configuration = loaded(tmp_path, body, unit)
    kind = release_kind(configuration, "times")
    charge = UnitCharging(configuration.privacy.unit.bound()).charge(
        kind.plan(kind.init(), Batch("s", "b"))
    )
    assert charge.rho_nano <= 20_000_000
    assert charge.rho_nano >= 19_990_000 or quantiles != "median"


def test_a_price_for_an_error_is_in_rho(tmp_path: Path) -> None:
    """As that of a release in epsilon, with the square over eight."""
    found = []
    for price in ("rho: 0.02", "epsilon: 0.4"):
        body = f"quantiles: median, {price}, expected_rows: 200, prior: {{learner: none}}"
        kind = release_kind(loaded(tmp_path, body), "times")
        assert isinstance(kind, Quantiles)
        assert kind.epsilon == Fraction(2, 5)
        found.append(RankError().price_for(kind, 0.1))
    rho, epsilon = found
    assert rho is not None
    assert epsilon is not None
    assert rho == Price(epsilon.amount**2 / 8, "rho")


def test_a_gradient_is_not_bought_in_rho(tmp_path: Path) -> None:
    """Its noise is of epsilon."""
    body = "quantiles: median, rho: 0.02, prior: {learner: online-gradient, private_gradient: 0.5}"
    with pytest.raises(ConfigurationError, match="private_gradient has no price in rho"):
        loaded(tmp_path, body)
