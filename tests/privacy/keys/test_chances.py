"""Chances to find a key: every table against its inequality in rationals, and every coin."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.mechanisms.key_selection import (
    ONE,
    GaussianThreshold,
    Selection,
    TruncatedGeometric,
    chances,
    selection_at,
    tail,
)
from streamdp.privacy.draws import BIAS_BITS, OperatingSystemEntropy, digits_of, toss_each
from streamdp.privacy.events import delta_of, epsilon_of, rho_of
from streamdp.privacy.price import Price

BILLIONTH = Fraction(1, 10**9)
PRICES = [
    (Fraction(epsilon), Fraction(delta), numbers)
    for epsilon in ("0.01", "0.1", "0.3", "1", "7/2", "20")
    for delta in ("1e-9", "1e-6", "1/10")
    for numbers in (1, 2, 3, 10)
]


def exponential_below(power: Fraction) -> Fraction:
    """A rational below e^power, by a relative 1e-60: the series of a small part of the power."""
    parts = math.ceil(power) * 4
    term, total = Fraction(1), Fraction(0)
    for number in range(1, 60):
        total += term
        term = term * power / parts / number
    scale = 10**75
    below = Fraction(math.floor(total * scale), scale)
    return Fraction(math.floor(below**parts * scale), scale)


def breaks(table: tuple[int, ...], epsilon: Fraction, delta: Fraction) -> Iterator[int]:
    """Numbers of units n at which n and n + 1 are told apart by more than (epsilon, delta).

    Both answers, found and not found, either way around.
    """
    grow = exponential_below(epsilon)
    scale, step = grow.denominator * delta.denominator, grow.numerator * delta.denominator
    more = delta.numerator * grow.denominator * ONE
    for n, (p, q) in enumerate(pairwise(table)):
        pairs = ((p, q), (q, p), (ONE - p, ONE - q), (ONE - q, ONE - p))
        if any(one * scale > other * step + more for one, other in pairs):
            yield n


@pytest.mark.thinned(2)
@pytest.mark.parametrize("price", PRICES, ids=str)
def test_every_step_of_a_table_keeps_its_inequality(price: tuple[Fraction, Fraction, int]) -> None:
    """In rationals, of the numbers that coins are tossed with; a hair more would break it."""
    epsilon, delta = price[0] / price[2], price[1] / price[2]
    table = chances(epsilon, delta)
    assert table[0] == 0
    assert table[-1] == ONE
    assert not list(breaks(table, epsilon, delta))
    for n in range(1, len(table) - 1, max(1, len(table) // 50)):
        more = (*table[:n], table[n] + ONE // 10**20, *table[n + 1 :])
        assert list(breaks(more[n - 1 : n + 1], epsilon, delta))


@given(
    st.lists(st.integers(0, ONE - 1), min_size=1, max_size=4),
    st.data(),
)
def test_a_coin_falls_heads_if_and_only_if_its_bits_are_below_its_bias(
    biases: list[int], data: st.DataObject
) -> None:
    """Bits are uniform, so the chance of heads is the bias, for coins that are tossed at once."""
    which = data.draw(st.lists(st.integers(0, len(biases) - 1), min_size=1, max_size=6))
    near = st.sampled_from([-1, 0, 1])
    drawn = [
        data.draw(st.integers(0, ONE - 1))
        if data.draw(st.booleans())
        else min(max(biases[each] + data.draw(near), 0), ONE - 1)
        for each in which
    ]
    fell, undecided = toss_each(digits_of(biases), np.array(which), _Bytes(drawn, biases, which))
    assert fell.tolist() == [bits < biases[each] for bits, each in zip(drawn, which, strict=True)]
    equal = [i for i, each in enumerate(which) if drawn[i] == biases[each]]
    assert undecided.tolist() == equal


class _Bytes:
    """Answers with the bytes of each coin's number, place by place, while it is undecided."""

    def __init__(self, drawn: list[int], biases: list[int], which: list[int]) -> None:
        self._coins = [
            (number.to_bytes(16, "big"), biases[each].to_bytes(16, "big"))
            for number, each in zip(drawn, which, strict=True)
        ]
        self._place = 0

    def bits(self, count: int) -> int:
        place = self._place
        self._place += 1
        open_ = [mine for mine, bias in self._coins if mine[:place] == bias[:place]]
        assert count == 8 * len(open_)
        return int.from_bytes(bytes(mine[place] for mine in open_), "little")


@pytest.mark.parametrize(
    "price", [Price(Fraction(1, 2)), Price(Fraction(1, 8), "rho")], ids=["epsilon", "rho"]
)
@pytest.mark.parametrize("substitute", [False, True])
@pytest.mark.parametrize("keys", [1, 3])
def test_a_selection_has_its_price_and_finds_nothing_below_its_border(
    price: Price, keys: int, substitute: bool
) -> None:
    """The event of all coins and counts is that of the price; a key of few units has chance 0."""
    found = selection_at(price, BILLIONTH, keys, at_least=5, substitute=substitute)
    event = found.event()
    assert delta_of(event) == BILLIONTH
    assert (epsilon_of if price.measure == "epsilon" else rho_of)(event) == price.amount
    assert [_chance(found, units) for units in (0, 1, 4)] == [0, 0, 0]
    assert 0 < _chance(found, 5) <= BILLIONTH / keys / (2 if substitute else 1)
    assert _chance(found, found.half) >= Fraction(1, 2) > _chance(found, found.half - 1)
    few = np.full(10**6, 4)
    assert not found.found(few, OperatingSystemEntropy()).any()
    assert found.found(few + 10**6, OperatingSystemEntropy()).all()


def _chance(selection: Selection, units: int) -> Fraction:
    if isinstance(selection, GaussianThreshold):
        return Fraction(selection.chance(units) + (units >= selection.at_least), ONE)
    table = selection.chances
    return Fraction(table[min(max(units - selection.at_least + 1, 0), len(table) - 1)], ONE)


@pytest.mark.parametrize("squared", ["1/2", "1", "25/3", "100", "2000"])
def test_a_tail_is_right_to_the_last_bit(squared: str) -> None:
    """Against sums of weights in decimals of 120 digits, at both ends and at 128 and 256 bits."""
    from decimal import Decimal, localcontext

    variance = Fraction(squared)
    with localcontext() as numbers:
        numbers.prec = 120
        most = math.ceil(25 * math.sqrt(variance))
        exact = [
            (Decimal(-z * z * variance.denominator) / (2 * variance.numerator)).exp()
            for z in range(most)
        ]
        whole = 2 * sum(exact) - 1
        for bits in (BIAS_BITS, 2 * BIAS_BITS):
            for reach in (1, 2, int(3 * variance**0.5) + 1, int(6 * variance**0.5) + 1):
                wanted = sum(exact[reach:]) / whole
                assert tail(variance, reach, bits) == int(wanted * 2**bits)
                assert tail(variance, 1 - reach, bits) == int((1 - wanted) * 2**bits)


@pytest.mark.parametrize("rho", ["1/200", "1/8", "2"])
@pytest.mark.parametrize("numbers", [1, 6])
def test_coins_of_noise_keep_rho_but_with_chance_delta(rho: str, numbers: int) -> None:
    """Their Rényi divergences at every order; the first is found with delta/numbers at most."""
    found = GaussianThreshold(Fraction(rho), BILLIONTH, numbers, at_least=2)
    first = found.chance(2) + 1
    assert first <= BILLIONTH / numbers * ONE
    nearer = tail(found.noise.squared, found.distance - 1)
    assert nearer > BILLIONTH / numbers * ONE * Fraction(9, 10), "it is hardly higher than it must"
    share = float(found.rho) / numbers
    for units in range(2, 2 * found.half):
        p, q = ((found.chance(each) + Fraction(1, 2)) / ONE for each in (units, units + 1))
        if min(p, 1 - q) < Fraction(1, 10**25):
            continue
        for order in (1.01, 1.5, 2.0, 5.0, 20.0):
            assert _renyi(p, q, order) <= order * share * (1 + 1e-9)
            assert _renyi(q, p, order) <= order * share * (1 + 1e-9)


def _renyi(p: Fraction, q: Fraction, order: float) -> float:
    """D_order between two coins, by logarithms that keep small differences."""
    total = sum(
        float(b) * math.expm1(order * (math.log(a) - math.log(b)))
        for a, b in ((p, q), (1 - p, 1 - q))
    )
    return math.log1p(total) / (order - 1)


def test_a_coin_whose_bits_are_all_drawn_is_decided_by_the_next_ones() -> None:
    """A chance of Gaussian noise has no last digit: what follows is asked for, to the end."""
    found = GaussianThreshold(Fraction(1, 8), BILLIONTH, 1, at_least=1)
    units = found.half
    first, more = found.chance(units), found.chance(units, 2 * BIAS_BITS) % ONE
    for bits, heads in ((more - 1, True), (more + 1, False), (0, True), (ONE - 1, False)):
        entropy = _Script([*first.to_bytes(16, "big"), bits])
        assert found.found(np.array([units]), entropy).tolist() == [heads]
        assert not entropy.left


class _Script:
    """Answers one after the other."""

    def __init__(self, left: list[int]) -> None:
        self.left = left

    def bits(self, count: int) -> int:
        return self.left.pop(0)


@pytest.mark.parametrize(
    ("epsilon", "delta", "numbers"),
    [("1", "1e-9", 20_000), ("1", "0", 1), ("1", "1", 1), ("1", "1e-18", 2)],
)
def test_prices_that_are_too_small_are_refused(epsilon: str, delta: str, numbers: int) -> None:
    """With what to do."""
    with pytest.raises(ValueError, match=r"epsilon|delta"):
        TruncatedGeometric(Fraction(epsilon), Fraction(delta), numbers, 1)
    with pytest.raises(ValueError, match=r"rho|delta"):
        GaussianThreshold(Fraction(epsilon) / 10**4, Fraction(delta), numbers, 1)


def test_a_substitute_needs_all_of_delta() -> None:
    """A key at the end of the table is left for one that has a record too few."""
    table = TruncatedGeometric(Fraction(1), Fraction(1, 1000), 2, 1).chances
    bias = [Fraction(each, ONE) for each in table]
    end = next(n for n, each in enumerate(bias) if each == 1)
    before, after = (bias[0], bias[end]), (bias[1], bias[end - 1])

    def chance(coins: tuple[Fraction, Fraction], heads: tuple[bool, bool]) -> Fraction:
        one, two = (p if head else 1 - p for p, head in zip(coins, heads, strict=True))
        return one * two

    sides = [(a, b) for a in (True, False) for b in (True, False)]
    lost = sum(max(0.0, float(chance(after, s)) - math.e * float(chance(before, s))) for s in sides)
    assert 0.9 / 1000 < lost <= 1 / 1000
