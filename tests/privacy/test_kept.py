"""What is kept of a release is what its mechanisms put out, number by number, and nothing else.

The proof of a kind is about these outputs: enumerations and recorders beside this file show that
they lose no more than the price. Here production runs with mechanisms that are listened to, and a
kept number that none of them put out, such as a total without noise, is found.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from streamdp import wiring
from streamdp.config import Configuration, load
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.selection import kind as selection_module
from streamdp.kinds.statistics.kind import Statistics
from streamdp.mechanisms import finite_choice
from streamdp.mechanisms.noise import AdditiveNoise, GaussianNoise, Noise, noise_of
from streamdp.mechanisms.quantile_tree.tree import QuantileTree
from streamdp.types import Entropy, Measurement, Measures, Outcome, Plan
from tests.kinds.cases import BODIES, CASES, GROUPS, STATISTICS, configured, first_batches
from tests.worlds import ReplayedEntropy

Heard = Counter[tuple[bool, Fraction, int]]
"""Numbers, each with the kind and size of its noise."""

OF_DRAWN_CELLS = ("values", "choice")
IN_RHO = [(name, BODIES[name][0]) for name in ("quantiles", "statistics", "workload")]


@contextmanager
def listening() -> Iterator[tuple[Heard, Counter[int]]]:
    """Production, with mechanisms whose numbers and cells are listened to."""
    numbers, cells = Heard(), Counter[int]()
    of_tree, choice = QuantileTree.draw, finite_choice.exponential_choice

    def noisy(real: Callable[..., tuple[int, ...]]) -> Callable[..., tuple[int, ...]]:
        def draw(self: Noise, values: Iterable[int], entropy: Entropy) -> tuple[int, ...]:
            drawn = real(self, values, entropy)
            numbers.update((*size(self), each) for each in drawn)
            return drawn

        return draw

    def tree(*arguments: Any) -> tuple[int, ...]:
        drawn = of_tree(*arguments)
        cells.update(drawn)
        return drawn

    def chosen(scores: Sequence[int], *others: Any) -> int:
        place = choice(scores, *others)
        cells[place] += 1
        return place

    with (
        patch.object(AdditiveNoise, "draw", noisy(AdditiveNoise.draw)),
        patch.object(GaussianNoise, "draw", noisy(GaussianNoise.draw)),
        patch.object(QuantileTree, "draw", tree),
        patch.object(selection_module, "exponential_choice", chosen),
    ):
        yield numbers, cells


def size(noise: Noise) -> tuple[bool, Fraction]:
    """Whether noise is Gaussian, and its variance parameter or its scale."""
    return noise.gaussian, noise.squared if isinstance(noise, GaussianNoise) else noise.scale


def kept(measured: Iterable[Measurement]) -> tuple[Heard, Counter[int]]:
    """The same of what is kept; numbers without noise have a scale of nought."""
    numbers, cells = Heard(), Counter[int]()
    for each in measured:
        law = each.terms.noise
        of = (False, Fraction(0)) if law is None else size(noise_of(law))
        numbers.update((*of, number) for number in each.numbers)
        cells.update(each.cells if each.terms.form in OF_DRAWN_CELLS else ())
    return numbers, cells


def strays(configuration: Configuration, groups: bool, statistic: str) -> int:
    """How many numbers and cells of three releases are kept and were not put out, or not kept."""
    kind, entropy = wiring.release_kind(configuration, "it"), ReplayedEntropy()
    assert isinstance(kind, Measures)
    state, found = kind.init(), 0
    for batch in first_batches(configuration, 3):
        plan = kind.plan(state, batch)
        filled = STATISTICS[statistic](plan.query)
        with listening() as heard:
            outcome = kind.draw(plan, (filled,) * 3 if groups else filled, entropy)
        (numbers, cells), (kept_numbers, kept_cells) = heard, kept(kind.measured(plan, outcome))
        found += (numbers - kept_numbers).total() + (kept_numbers - numbers).total()
        found += (cells - kept_cells).total() + (kept_cells - cells).total()
        state = json.loads(json.dumps(kind.learn(state, plan, outcome)))
    return found


@pytest.mark.thinned(3)
@pytest.mark.parametrize("groups", ["", GROUPS], ids=["", "groups"])
@pytest.mark.parametrize(("name", "body"), CASES)
def test_what_is_kept_is_what_was_put_out(
    tmp_path: Path, name: str, body: str, groups: str
) -> None:
    """Negative numbers too, of an empty batch, and each with the law of its own noise."""
    if name == "keys" and groups:
        return  # it finds its groups
    configuration = configured(tmp_path, name, groups + body)
    for statistic in ("empty", "all equal"):
        assert strays(configuration, bool(groups), statistic) == 0


@pytest.mark.parametrize(("name", "body"), IN_RHO)
def test_so_it_is_at_a_price_in_rho(tmp_path: Path, name: str, body: str) -> None:
    """Gaussian noise has its law, and draws of a tree theirs."""
    configured(tmp_path, name, body)
    path = tmp_path / "config.yaml"
    text = path.read_text().replace(
        "batch: 1, lifetime: 10", "batch: {rho: 1}, lifetime: {rho: 10}"
    )
    path.write_text(text.replace("epsilon: 0.5", "rho: 0.1"))
    assert strays(load(path), False, "all equal") == 0


def _with_the_total(real: Callable[..., Any]) -> Any:
    """A mistake: the number of records is kept without noise."""
    totals: list[int] = []

    def draw(self: Any, plan: Plan, statistic: Any, entropy: Entropy) -> Outcome:
        totals.append(int(statistic.counts.sum()))
        outcome: Outcome = real(self, plan, statistic, entropy)
        return outcome

    return draw, totals


def test_a_total_without_noise_is_found(tmp_path: Path) -> None:
    """Beside noisy counts of quantiles."""
    configuration = configured(tmp_path, *CASES[0])
    draw, totals = _with_the_total(Quantiles.draw)
    real = Quantiles.measured

    def measured(self: Quantiles, plan: Plan, outcome: Outcome) -> tuple[Measurement, ...]:
        first, *others = real(self, plan, outcome)
        total = Measurement(first.terms, numbers=(totals[-1],))
        return (first, *others, total)

    with patch.object(Quantiles, "draw", draw), patch.object(Quantiles, "measured", measured):
        assert strays(configuration, False, "all equal") == 3


@pytest.mark.parametrize("mistake", [lambda number: max(number, 0), lambda number: number // 10])
def test_a_number_that_was_changed_is_found(tmp_path: Path, mistake: Callable[[int], int]) -> None:
    """Cut off at nought, or rounded."""
    configuration = configured(tmp_path, *CASES[3])
    real = Statistics.measured

    def measured(self: Statistics, plan: Plan, outcome: Outcome) -> tuple[Measurement, ...]:
        return tuple(
            replace(each, numbers=tuple(map(mistake, each.numbers)))
            for each in real(self, plan, outcome)
        )

    with patch.object(Statistics, "measured", measured):
        assert strays(configuration, False, "empty") > 0
