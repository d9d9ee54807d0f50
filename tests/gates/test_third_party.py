"""A test of another package with keys of its own, found by its entry point."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streamdp import wiring
from streamdp.config import load
from streamdp.errors import ConfigurationError
from streamdp.gates.questions.growth import GrowthTest
from streamdp.gates.questions.section import TESTS
from tests.packages import offer

DEMO = Path(__file__).parents[2] / "config.yaml"
MODULE = '''
from fractions import Fraction
from typing import Literal
from streamdp.gates.questions.section import TestSection
from streamdp.mechanisms.sparse_vector.drift import rows

class Full:
    def __init__(self, level, units):
        self.level, self.units = level, units

    def describe(self):
        return {"kind": "full", "seats": str(self.level)}

    def test(self, past, statistic):
        return rows(statistic, self.level, self.units)

class FullTest(TestSection):
    """More records than there are seats."""
    kind: Literal["full"]
    seats: int

    def question(self, name, tested):
        return Full(Fraction(self.seats), tested.units)
'''


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package on the path."""
    offers = {"full": "FullTest", "growth": "FullTest"}
    offer(tmp_path, monkeypatch, TESTS, "streamdp_full", MODULE, offers)
    yield
    TESTS.forget()


def configured(folder: Path, test: str) -> Path:
    gate = f"gates:\n  seats: {{release: air_time, epsilon: 0.2, horizon: 9, test: {test}}}\n"
    (folder / "config.yaml").write_text(DEMO.read_text() + gate)
    return folder / "config.yaml"


def test_it_is_configured_and_asks(tmp_path: Path) -> None:
    """Its keys are checked and its question is the gate's."""
    made = wiring.gate_kind("seats", load(configured(tmp_path, "{kind: full, seats: 300}"), {}))
    assert made.question.describe() == {"kind": "full", "seats": "300"}


def test_keys_that_it_does_not_have_are_refused(tmp_path: Path) -> None:
    """As those of the tests of streamdp are."""
    with pytest.raises(ConfigurationError, match="chairs"):
        load(configured(tmp_path, "{kind: full, seats: 300, chairs: 1}"), {})


def test_it_cannot_take_the_name_of_one_of_streamdp() -> None:
    """The package offers `growth`, too."""
    assert TESTS.find("growth") is GrowthTest
