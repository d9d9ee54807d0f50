"""``python -m tests.privacy [--json] [--quick]``: largest losses found, over the claim."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks.report import Row, main
from tests.kinds.keys import worlds
from tests.privacy import choices, streams
from tests.privacy.gates import cases as gate_cases
from tests.privacy.gates.mutants import GATE_MUTANTS
from tests.privacy.keys import rho
from tests.privacy.noise import gaussian, histograms, units
from tests.privacy.quantiles.cases import CASES, LONG, largest_loss
from tests.privacy.quantiles.gradients import BOUGHT, GRADIENT_MUTANTS
from tests.privacy.quantiles.mutants import MUTANTS

IMPOSSIBLE = 1e9
"""Stands for the infinite loss of an output that a neighbour cannot have."""


def rows(quick: bool) -> Iterator[Row]:
    """One row a mechanism and relation, then one a mutant; `ratio` is the largest loss/epsilon."""
    for case in CASES if quick else (*CASES, *LONG):
        worst = largest_loss(case)
        yield _row(f"{case.name} ({case.bound})", case.relation, worst.loss)
    for mutant in MUTANTS:
        yield _row(mutant.case.name, mutant.case.relation, mutant.loss(), mutant.name)
    yield from _gradients()
    yield from (_row(name, "shift", ratio, mutant) for name, ratio, mutant in gaussian.rows())
    yield from _histograms(quick)
    yield from (_row(str(case), case.neighbours, case.largest_loss()) for case in units.CASES)
    for each in units.MUTANTS:
        yield _row(str(each.case), each.case.neighbours, each.loss(), each.name)
    yield from _keys()
    yield from _choices()
    yield from _streams()
    yield from _gates(quick)


def _gradients() -> Iterator[Row]:
    """Releases that buy a gradient for their learner."""
    for bought in BOUGHT:
        yield _row(bought.name, bought.relation, bought.largest_loss())
    for mutant in GRADIENT_MUTANTS:
        yield _row(mutant.bought.name, mutant.bought.relation, mutant.loss(), mutant.name)


def _histograms(quick: bool) -> Iterator[Row]:
    """Histograms on public cuts of one and of several stages, then their mutants."""
    for case in histograms.CASES if quick else (*histograms.CASES, histograms.IN_RHO):
        yield _row(str(case), case.relation, case.largest_loss())
    for mutant in histograms.MUTANTS:
        yield _row(str(mutant.case), mutant.case.relation, mutant.loss(), mutant.name)


def _keys() -> Iterator[Row]:
    """Keys that are found: what neighbours lose of delta, and at a price in rho of rho."""
    for neighbours in ("add-remove", "substitute"):
        for rows in (1, 2):
            delta = worlds.largest_delta(worlds.keys(rows, neighbours)) / float(worlds.DELTA)
            yield _row(f"keys, {rows} of a unit, delta", neighbours, delta)
            delta, loss = rho.largest_losses(rho.keys(rows, neighbours))
            yield _row(f"keys in rho, {rows} of a unit, delta", neighbours, delta)
            yield _row(f"keys in rho, {rows} of a unit, rho", neighbours, loss)


def _choices() -> Iterator[Row]:
    """Choices among candidates and noisy losses of experts, then their mutants."""
    for name, kind in choices.SELECTIONS.items():
        yield _row(f"selection {name}", kind.neighbours, choices.selection_loss(kind))
    for name, experts in choices.EXPERTS.items():
        yield _row(f"experts {name}", experts.neighbours, choices.experts_loss(experts))
    for mutant in choices.MUTANTS:
        yield _row(mutant.mechanism, mutant.relation, mutant.loss(), mutant.name)


def _streams() -> Iterator[Row]:
    """Pairs of streams of two batches, over what their steps may lose, then mutants."""
    for case in streams.CASES:
        yield _row(str(case), case.relation, case.ratio())
    for mutant in streams.MUTANTS:
        yield _row(str(mutant.case), mutant.case.relation, mutant.loss(), mutant.name)


def _gates(quick: bool) -> Iterator[Row]:
    """Random runs of each sort of test, pure and with delta, then the mutants of gates."""
    for sampled, name in ((False, "gate-computed"), (True, "gate-sampled")):
        for delta, title in ((False, name), (True, f"{name} delta")):
            runs = (10 if sampled else 100) * (1 if quick else 10)
            worst = gate_cases.largest_loss(sampled, delta, runs)
            yield _row(f"{title} ({runs} runs)", "any", worst)
    for mutant in GATE_MUTANTS:
        name = "gate-sampled" if mutant.sampled else "gate-computed"
        yield _row(name, "any", mutant.loss(), mutant.name)


def _row(mechanism: str, relation: str, ratio: float, mutant: str | None = None) -> Row:
    return {
        "mechanism": mechanism,
        "relation": relation,
        "ratio": round(min(ratio, IMPOSSIBLE), 9),
        "mutant": mutant,
        "caught": None if mutant is None else ratio > 1.0,
    }


def _fails(row: Row) -> bool:
    """Production above its claim, or a mutant that is not."""
    ratio = row["ratio"]
    assert isinstance(ratio, float)
    return (ratio > 1.0) is (row["mutant"] is None)


if __name__ == "__main__":
    main("Largest privacy loss over epsilon", rows, failed=_fails)
