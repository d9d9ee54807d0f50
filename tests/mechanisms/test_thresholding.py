"""Gates say yes and no where they claim, sample within their ceiling, and refuse in time."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.errors import ConfigurationError
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.mechanisms.sparse_vector.above_threshold import AboveThreshold
from streamdp.mechanisms.sparse_vector.thresholding import Chance, Terms, Thresholding
from streamdp.privacy.draws import continuation, heads, one_sided
from streamdp.privacy.events import epsilon_of

F = Fraction
SIDES = [Terms(F(1, 50)), Terms(F(1, 50), F(1, 2000)), Terms(F(1, 100), level=F(19, 20))]


class Bytes:
    """Entropy that gives these bytes, one call after the other."""

    def __init__(self, *given):
        self._given = list(given)

    def bits(self, count):
        drawn = self._given.pop(0)
        assert count == 8 * len(drawn)
        return int.from_bytes(drawn, "little")


@pytest.fixture
def entropy():
    """The same chance each time: what holds but for a share of beta would fail now and then."""
    return PublicEntropy("thresholding")


def box(chance):
    """A black box that says yes with this probability."""
    generator = np.random.default_rng(5)
    return lambda runs, entropy: int(generator.binomial(runs, chance))


def test_a_coin_is_decided_by_its_first_byte_that_differs():
    """Heads are the strings of bytes below the bias, ties asking for more bytes."""
    bias = F(0x8042, 2**16)
    assert heads(4, bias, Bytes(b"\x7f\x81\x80\x80", b"\x41\x42", *[b"\x00"] * 14)) == 2
    assert heads(3, F(0), Bytes(b"\x00\x00\x01", *[b"\x00\x00"] * 15)) == 0
    assert heads(3, F(1), Bytes()) == 3


@pytest.mark.parametrize(
    ("drawn", "found"),
    [
        (b"\x7f", 1),
        (b"\x81", 0),
        (b"\x80\x41", 1),
        (b"\x80\x42\x01", 0),
        (b"\x80\x42" + bytes(14), 0),
    ],
)
def test_one_coin_is_decided_as_many_are(drawn, found):
    """Byte by byte, and no more bytes than it takes; a string that equals the bias is no head."""
    bias, given = F(0x8042, 2**16), Bytes(*(bytes([byte]) for byte in drawn))
    assert heads(1, bias, given) == found
    with pytest.raises(IndexError):
        given.bits(8)


@given(st.fractions(F(1, 10**6), 200))
def test_the_noise_never_falls_faster_than_it_may(loss):
    """The chance of one step more is at least e^-loss and hardly above."""
    bias = continuation(loss)
    assert np.log(float(bias)) >= -float(loss) * (1 + 1e-15)
    assert bias < 1
    assert loss > 50 or np.log(float(bias)) <= -float(loss) + 1e-11


def test_the_noise_is_exponential(entropy):
    """Its mean is 1/loss steps, its tail e^-loss a step."""
    drawn = np.array([one_sided(4, F(1, 2), entropy) for _ in range(4000)]) / 16.0
    assert abs(drawn.mean() - 2.0) < 0.2
    assert abs((drawn >= 2.0).mean() - np.exp(-1.0)) < 0.05


def test_a_run_costs_its_epsilon_whatever_its_tests():
    """The event names epsilon alone, and the two noises spend exactly that."""
    for theta in (F(1, 3), F(1), F(2)):
        gate = Thresholding(F(3, 10), theta=theta)
        assert epsilon_of(gate.event()) == F(3, 10) == sum(gate.noise.losses)
        assert epsilon_of(gate.noise.event()) == F(3, 10)


@pytest.mark.parametrize("terms", SIDES, ids=["low", "delta", "high"])
def test_black_boxes_are_accepted_at_the_level_and_rejected_below(terms, entropy):
    """p* says yes and the rejection level no, but for a share of beta."""
    gate = Thresholding(F(1), F(1, 20), horizon=50)
    low = gate.rejection_level(50, terms, sampled=True)
    assert 0 < low < terms.level
    answers = {
        chance: sum(
            gate.accept(gate.start(entropy), 50, box(chance), terms, entropy) for _ in range(60)
        )
        for chance in (low, float(terms.level))
    }
    assert answers[low] <= 4
    assert answers[float(terms.level)] >= 56


@pytest.mark.parametrize("terms", SIDES, ids=["low", "delta", "high"])
def test_computed_tests_are_told_apart_sooner(terms, entropy):
    """A computed chance is accepted at p*, rejected at a level that needs no sampling slack."""
    gate = Thresholding(F(1), F(1, 20), horizon=50)
    low = gate.rejection_level(50, terms, sampled=False)
    assert gate.rejection_level(50, terms, sampled=True) < low < terms.level
    for chance, accepted in ((low, 0), (float(terms.level), 60)):
        test = Chance(chance, 1.0 - chance)
        count = sum(gate.accept(gate.start(entropy), 50, test, terms, entropy) for _ in range(60))
        assert abs(count - accepted) <= 4


def test_runs_stay_under_the_ceiling(entropy):
    """No draw of the noises asks for more runs than was said before."""
    gate, terms, seen = Thresholding(F(1), horizon=10), Terms(F(1, 10)), []

    def test(runs, entropy):
        seen.append(runs)
        return 0

    state = gate.start(entropy)
    for t in range(1, 40):
        gate.accept(state, t, test, terms, entropy)
    expected, ceiling = gate.evaluations(40, terms)
    assert seen
    assert 0 < max(seen) <= ceiling
    assert expected <= ceiling


def test_what_is_not_practical_is_refused_with_numbers():
    """Too many runs, and a delta that leaves no sure no."""
    gate = Thresholding(F(1))
    gate.require_practical(Terms(F(1, 100)), 365, sampled=True)
    gate.require_practical(Terms(F(1)), 365, sampled=False)
    with pytest.raises(ConfigurationError, match=r"may take \d\.\de\+\d+ runs, more than 1e\+07"):
        gate.require_practical(Terms(F(1, 6)), 365, sampled=True)
    with pytest.raises(ConfigurationError, match="runs"):
        gate.require_practical(Terms(F(1)), 365, sampled=True)
    with pytest.raises(ConfigurationError, match="never be sure to say no"):
        gate.require_practical(Terms(F(1, 10), F(1, 100)), 365, sampled=False)


def test_a_test_of_less_than_one_run_is_refused(entropy):
    """With delta far above epsilon the bit would fall again above its threshold."""
    gate, terms = Thresholding(F(20)), Terms(F(1, 2**20), F(1, 2**10))
    with pytest.raises(ConfigurationError, match="make delta smaller"):
        gate.accept(gate.start(entropy), 1, box(0.5), terms, entropy)
    gate.accept(gate.start(entropy), 1, box(0.5), Terms(F(1, 2**20), F(1, 2**16)), entropy)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (Thresholding, [F(0)]),
        (Thresholding, [F(1), F(1)]),
        (Thresholding, [F(1), F(1, 2), F(0)]),
        (Thresholding, [F(1), F(1, 2), F(1), F(1)]),
        (Thresholding, [F(1), F(1, 2), F(1), F(2), 0]),
        (Terms, [F(0)]),
        (Terms, [F(1), F(1)]),
        (Terms, [F(1), F(0), F(1)]),
    ],
)
def test_impossible_parameters_are_errors(kind, arguments):
    """Each parameter has its range."""
    with pytest.raises(ValueError, match="must"):
        kind(*arguments)


def test_a_chance_shows_nothing():
    """Its repr hides both numbers."""
    assert repr(Chance(0.25, 0.75)) == "Chance(<private>)"


def test_a_plain_statistic_needs_no_test(entropy):
    """Scores of zero are accepted, scores a margin below are not."""
    run = AboveThreshold(F(1), F(1, 20), horizon=20)
    for score, accepted in ((F(0), 60), (-run.margin(20), 0)):
        count = sum(run.accept(run.start(entropy), score, entropy) for _ in range(60))
        assert abs(count - accepted) <= 4
    for score in (float("inf"), 1e308, F(10**400)):
        assert run.accept({"rho": 0}, score, entropy)
        assert not run.accept({"rho": 0}, -score, entropy)
    assert not run.accept({"rho": 0}, float("nan"), entropy)
