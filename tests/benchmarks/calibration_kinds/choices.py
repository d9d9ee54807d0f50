"""Bounds of selection, and intervals and bounds of experts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from streamdp.kinds.experts.forecasts import Forecast, Forecasts
from streamdp.kinds.experts.kind import Experts
from streamdp.kinds.experts.losses import Actions, RuleLosses
from streamdp.kinds.rules import synthetic
from streamdp.kinds.rules.rules import RuleComparison, RuleGrid
from streamdp.kinds.selection.candidates import ThresholdRules
from streamdp.kinds.selection.kind import Selection
from streamdp.kinds.selection.scores import Errors
from streamdp.mechanisms.quantile_tree.planning.simulation import PublicEntropy
from streamdp.types import Batch, Sums, TableCounts
from tests.benchmarks import flights
from tests.benchmarks.calibration_kinds.intervals import SURE, Intervals
from tests.benchmarks.report import Row

LABEL = "arrival_delay > 15"
LEVEL = 0.95
BOUND = "a bound for whatever the scores are, by the law of the draw"
ALWAYS = "a bound for all releases and all experts at once"


def grid(low: int, high: int, step: int) -> RuleGrid:
    """Rules `departure_delay >= t`."""
    values = tuple(map(Fraction, range(low, high, step)))
    return RuleGrid((RuleComparison("departure_delay", ">=", "t", values),))


def days(rules: RuleGrid, seed: int | None, length: int, rows: int = 1000) -> list[TableCounts]:
    """Of the flights; of made-up records, where a seed is given."""
    if seed is None:
        return flights.tables(rules, LABEL)[:length]
    return list(synthetic.rule_tables(rules, "change", rows, seed, length))


def of_selection(
    name: str, tables: Sequence[TableCounts], rules: RuleGrid, epsilon: Fraction, **about: Any
) -> Row:
    """How often a chosen score is within `shortfall` of the best one left."""
    kind = Selection(ThresholdRules(rules, Errors("late")), Errors("late"), epsilon, **about)
    state, entropy, short, said = kind.init(), PublicEntropy(f"{name} {about}"), [], 0.0
    for number, table in enumerate(tables):
        plan = kind.plan(state, Batch("s", str(number)))
        outcome = kind.draw(plan, table, entropy)
        left = np.array(kind.candidates.scores(table), dtype=float)
        for winner, row in zip(outcome.auxiliary, outcome.rows, strict=True):
            short.append((left.max() - left[winner]) / kind.unit())
            left[winner], said = -np.inf, float(row["shortfall"] or 0)
        state = kind.learn(state, plan, outcome)
    who = "selection" + "".join(f", {key} {value}" for key, value in about.items())
    found = _about(who, name, _mean(tables), epsilon)
    return found | _bound("shortfall", np.array(short), np.full(len(short), said), BOUND)


def of_rules(
    name: str, tables: Sequence[TableCounts], rules: RuleGrid, epsilon: Fraction
) -> Iterator[Row]:
    """Losses of rules, and the regret of what was followed."""
    kind = Experts(RuleLosses(rules, "late"), epsilon, round(_mean(tables)))
    about = _about("experts, rules", name, _mean(tables), epsilon)
    yield from _of_experts(about, kind, [kind] * len(tables), tables)


def of_forecasts(name: str, seed: int, epsilon: Fraction, length: int) -> Iterator[Row]:
    """Shares of records above forecasts that other jobs publish; none before their first."""
    chance, rows = np.random.default_rng(seed), 500
    named = tuple((each, Forecast("j", (("q", each),), "value")) for each in "abc")
    forecasts, kinds, answers = Forecasts(named, "x > {f}", "{f}", 2), [], []
    first = Experts(
        forecasts.actions((None,) * 3), epsilon, rows, forecasts=forecasts, known=(None,) * 3
    )
    for number in range(length):
        places = (0.0, 0.5, float(chance.normal()))
        past: dict[str, tuple[Any, ...]] = {
            "j": tuple({"q": q, "value": v} for q, v in zip("abc", places, strict=True))
        }
        kind = first.informed(past) if number else first
        values = chance.normal(size=chance.poisson(rows))
        parts = [int(2 * np.sum(2 * (values > place) - 1)) if number else 0 for place in places]
        kinds.append(kind)
        answers.append(Sums(tuple(parts)))
    yield from _of_experts(_about("experts, forecasts", name, rows, epsilon), first, kinds, answers)


def of_actions(name: str, seed: int, epsilon: Fraction, length: int) -> Iterator[Row]:
    """Means of losses between 0 and 1."""
    parts = synthetic.losses(5, "change", 800, seed, length)
    kind = Experts(Actions(tuple((each, each) for each in "abcde"), 20), epsilon, 800)
    answers = synthetic.sums(parts, 20)
    about = _about("experts, actions", name, 800, epsilon)
    yield from _of_experts(about, kind, [kind] * length, answers)


def _of_experts(
    about: dict[str, Any], kind: Experts, kinds: Sequence[Experts], answers: Sequence[Any]
) -> Iterator[Row]:
    state, entropy, rows, truth = kind.init(), PublicEntropy(str(about)), [], []
    regrets, said, lost, chosen = [], [], np.zeros(kind.losses.count), []
    for number, (each, answer) in enumerate(zip(kinds, answers, strict=True)):
        plan = each.plan(state, Batch("s", str(number)))
        outcome = each.draw(plan, answer, entropy)
        truth.append(_losses(each, answer))
        if (following := state.get("chosen")) is not None:
            chosen.append(truth[-1][following])
            lost = lost + truth[-1]
        state = each.learn(state, plan, outcome)
        rows.append(outcome.rows)
        if chosen:
            bound = each.publish(state, outcome).rows[0]["regret_bound"]
            said.append(float(bound or 0))
            regrets.append((sum(chosen) - lost.min()) / len(chosen))
    ends = (np.array([[row[n] for row in each] for each in rows]) for n in _COLUMNS)
    points, lowers, uppers = ends
    yield Intervals(np.array(truth), points, lowers, uppers).row(
        about, "loss", LEVEL, "noise is of whole numbers"
    )
    yield about | _bound("regret_bound", np.array(regrets), np.array(said), ALWAYS)


_COLUMNS = ("loss", "lower", "upper")


def _losses(kind: Experts, answer: Any) -> Any:
    """True losses per expected record."""
    level = kind.losses.level(answer)
    start = 0.5 if level is None else level / kind.expected_rows
    numbers = np.array(kind.losses.integers(answer), dtype=float)
    return start + kind.losses.matrix @ numbers / kind.expected_rows


def _bound(what: str, errors: Any, bounds: Any, reason: str) -> dict[str, Any]:
    """`width_ratio` is the bound over the one that 95 % of the errors are within."""
    coverage = float((errors <= bounds + 1e-9).mean())
    needed = max(float(np.quantile(errors, LEVEL)), 1e-3)
    return {
        "what": what,
        "level": LEVEL,
        "coverage": round(coverage, 3),
        "worst_series": None,
        "width_ratio": round(float(np.median(bounds)) / needed, 2),
        "reason": reason if coverage > SURE else None,
    }


def _mean(tables: Sequence[TableCounts]) -> float:
    return float(np.mean([table.marginals[0].sum() for table in tables]))


def _about(who: str, data: str, n: float, epsilon: Fraction) -> dict[str, Any]:
    return {"who": who, "data": data, "n": round(n, 1), "epsilon": float(epsilon), "rho": None}
