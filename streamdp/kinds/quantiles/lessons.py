"""What a release of quantiles has learned: priors, beliefs, cuts, losses and regret as tables.

From releases, learned states and public facts alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from streamdp.kinds.quantiles.section import PLENTY
from streamdp.learning.features import NUMBERS, calendar, calendar_names, clock
from streamdp.learning.learner import CountedPlan, DrawnPlan, ReleasePlan
from streamdp.learning.mixture.mixture import BayesianMixture, PlanBasis
from streamdp.learning.summary import best_fixed, components, middles
from streamdp.priors.shapes import band
from streamdp.types import Batch, FloatArray, History, Json, Lesson, Prior, Row, Step

if TYPE_CHECKING:
    from streamdp.kinds.quantiles.kind import Quantiles

MEANINGS = {
    "usual": "the distribution that past releases have on average",
    "of late": "the distribution of the last few releases",
    "last": "the distribution of the release before",
    "inputs": "the usual one, moved as its public numbers say",
    "gradient": "the priors that online gradient descent has learned",
    "other groups": "what releases of other groups of the batch show",
    "broad": "what the configuration guesses, in case nothing that was learned holds",
}
"""What each belief is, by its name."""

_LEARNERS = {"expert-mixture": "mixture"}
"""Learners whose states have other names than the configuration."""

DAY = 86_400

ENOUGH = 10
"""Releases for each public number from which on the best weights in hindsight mean anything."""

DIGITS = 4
"""Significant digits that are shown."""


def lessons(kind: Quantiles, history: History) -> Iterator[Lesson]:
    """Return what past releases taught a release of quantiles, and what follows for a batch."""
    release_plan = _release_plan(kind, history.state, history.batch)
    basis = release_plan.basis if isinstance(kind.learner, BayesianMixture) else None
    yield _plan(kind, history, release_plan)
    if basis is not None:
        yield _beliefs(kind, basis)
        if isinstance(release_plan, CountedPlan):
            yield _cuts(kind, basis, release_plan)
    yield _before(kind, history, release_plan)
    if basis is not None:
        yield from _numbers(kind, history.batch, basis)
    yield _weights(kind, history)
    yield _priors(kind, history, release_plan)
    yield _losses(kind, history)


def _release_plan(kind: Quantiles, state: Json, batch: Batch) -> ReleasePlan:
    release_plan: ReleasePlan = kind.plan(state, batch).mechanism.release_plan
    return release_plan


def _plan(kind: Quantiles, history: History, release_plan: ReleasePlan) -> Lesson:
    """How the batch is released, and why."""
    about = kind.learner.describe()
    facts: dict[str, Json] = {"batch": clock(history.batch) or history.batch.key}
    facts["column"] = "an expression" if kind.expression else kind.column
    facts["learner"] = _LEARNERS.get(about["learner"], about["learner"])
    if isinstance(release_plan, DrawnPlan):
        facts["how"] = "quantiles are drawn under their priors"
        facts["why"] = why_drawn(kind) or "nothing was released before"
    else:
        stages = len(release_plan.histograms.shares)
        again = f"{stages - 1} more time{'s' if stages > 2 else ''}"
        more = "" if stages == 1 else f", then {again} where the counts so far put the same shares"
        facts["how"] = f"records are counted between the cuts below{more}"
        facts["why"] = "of the ways to count, this one is foretold to err least"
    rows: list[Row] = [{"fact": name, "value": value} for name, value in facts.items()]
    fixed = "Fixed before its data are touched, from earlier releases and public facts alone."
    if isinstance(release_plan, CountedPlan):
        fixed += (
            " The batch is asked for the numbers of its records between neighbouring cuts, to which"
            " noise is added; the quantiles follow from these, best where cuts are near them."
        )
    return Lesson("How this batch is released", fixed, tuple(rows))


def why_drawn(kind: Quantiles) -> str | None:
    """Say why no release of a configuration counts records; None where releases do."""
    if getattr(kind.learner, "histograms", ()):
        return None
    if not isinstance(kind.learner, BayesianMixture):
        return "its learner draws every quantile"
    if len(kind.quantiles) == 1:
        return "a single quantile is drawn: one draw has less noise than counts on both its sides"
    if float(kind.epsilon) * (kind.expected_rows or 0) >= PLENTY:
        return (
            f"epsilon times the expected records is at least {PLENTY:,.0f}: a draw is off by hardly"
            " a rank then, and counts would rest on beliefs about what lies between cuts"
        )
    return "with its mechanism, prior.measure and price every quantile is drawn"


def _beliefs(kind: Quantiles, basis: PlanBasis) -> Lesson:
    """Weights of beliefs, and where each puts the quantiles."""
    shown = _few(len(kind.quantiles))
    targets = np.array([float(kind.quantiles[each]) for each in shown])
    rows: list[Row] = []
    for name, each in components(basis, targets).items():
        row: dict[str, Json] = {"belief": name, "weight": round(each.weight, 3)}
        row |= _at(kind, targets, each.quantiles)
        rows.append(row | {"meaning": MEANINGS.get(name, name)})
    return Lesson(
        "What is believed of this batch",
        "A belief gains weight when releases lie where it foretold them. Each is held as it is and"
        " also shifted and stretched by several amounts; weights and columns are of all of these"
        " together. Columns are the quantiles as each belief has them.",
        tuple(rows),
    )


def _cuts(kind: Quantiles, basis: PlanBasis, release_plan: CountedPlan) -> Lesson:
    """The first cuts, and where each belief would have cut."""
    shares = cut_levels(kind)
    found = components(basis, shares)
    heaviest = list(found)[:4]
    weighs = f"{found[heaviest[0]].weight:.0%}"
    most = f"The heaviest, at {weighs}, is {heaviest[0]}: {MEANINGS.get(heaviest[0], '')}."
    rows: list[Row] = []
    for number, (share, cell) in enumerate(
        zip(shares.tolist(), release_plan.next_cuts(()), strict=True)
    ):
        row: dict[str, Json] = {"share below": round(share, 4), "cut at": kind.grid.value(cell)}
        for name in heaviest:
            place = kind.grid.value(round(float(found[name].quantiles[number])))
            row[f"{name} ({found[name].weight:.0%})"] = place
        rows.append(row)
    return Lesson(
        "Where the next cuts lie",
        "Each cut lies where the beliefs, taken together by weight, put this share of the records."
        f" The other columns say where a belief alone would cut, and how much it weighs. {most}",
        tuple(rows),
    )


def _before(kind: Quantiles, history: History, release_plan: ReleasePlan) -> Lesson:
    """What the release before showed, beside what had been foretold of it and what is now."""
    title = "What the release before showed"
    about = (
        "foretold: the middle of the prior before that release. released, lower and upper: what it"
        " showed, with its interval. now: the middle of the prior of this batch, which has learned"
        " from it and has public numbers of its own."
    )
    if not history.steps or len(history.steps[-1].rows) != len(kind.quantiles):
        return Lesson(title, about, ())
    last = history.steps[-1]
    then = _laws(kind, _release_plan(kind, last.before, last.batch))
    rows: list[Row] = []
    for quantile, row, old, new in zip(
        kind.quantiles, last.rows, then, _laws(kind, release_plan), strict=True
    ):
        middles_of = [_short(float(band(law, kind.grid, (0.5,))[0])) for law in (old, new)]
        seen = {name: row[name] for name in ("lower", "upper") if row.get(name) is not None}
        rows.append(
            {"quantile": float(quantile), "foretold": middles_of[0], "released": row.get("value")}
            | seen
            | {"now": middles_of[1]}
        )
    return Lesson(title, f"{clock(last.batch) or last.batch.key}. {about}", tuple(rows))


def cut_levels(kind: Quantiles) -> FloatArray:
    """Return the shares of the records at which a batch is cut."""
    assert isinstance(kind.learner, BayesianMixture)  # noqa: S101
    return kind.learner.cut_levels


def _numbers(kind: Quantiles, batch: Batch, basis: PlanBasis) -> Iterator[Lesson]:
    """What public numbers of the batch do to beliefs that depend on them."""
    inputs, names = basis.facts.inputs, _input_names(kind, batch)
    if len(inputs) < 2:
        return
    here, unit = middles(basis, inputs), float(kind.grid.resolution)
    rows: list[Row] = []
    for name, places in _places(names).items():
        without = inputs.copy()
        without[places] = 0.0
        if (without == inputs).all():
            continue
        for belief, place in middles(basis, without).items():
            moved = (here[belief].centre - place.centre) * unit
            stretched = here[belief].half_width / place.half_width
            if moved or stretched != 1.0:
                row: dict[str, Json] = {
                    "number": name,
                    "is": _short(inputs[places[0]]),
                    "belief": belief,
                }
                rows.append(
                    row | {"moves the median by": _short(moved), "widens by": _short(stretched)}
                )
    yield Lesson(
        "What public numbers of this batch do",
        "How far each number that is not 0 moves the median of a belief, in the unit of the column,"
        " and by what it multiplies the width. A Monday has no number of its own: the others are"
        " told against it."
        if NUMBERS["weekday"][0] in names
        else "How far each number that is not 0 moves the median of a belief, in the unit of the"
        " column, and by what it multiplies the width.",
        tuple(rows),
    )
    yield _weekdays(kind, batch, basis)


def _weekdays(kind: Quantiles, batch: Batch, basis: PlanBasis) -> Lesson:
    """Where beliefs would put the same batch on each weekday."""
    title = "The same batch on other weekdays"
    about = (
        "Median of each belief that depends on the weekday, in the unit of the column, were all"
        " else the same. The first row is the day of this batch."
    )
    if len(calendar(batch)) != len(NUMBERS["weekday"]) or batch.start is None or batch.end is None:
        return Lesson(title, about, ())
    named, inputs = _places(_input_names(kind, batch)), basis.facts.inputs.copy()
    rows: list[Row] = []
    for days in range(7):
        other = _later(batch, days * DAY)
        for name, number in zip(NUMBERS["weekday"], calendar(other), strict=True):
            inputs[named.get(name, [])] = number
        places = middles(basis, inputs.copy())
        day = clock(other).split(" ")[0]
        medians = {name: float(kind.grid.resolution) * at.centre for name, at in places.items()}
        rows.append({"weekday": day} | {name: _short(each) for name, each in medians.items()})
    same = [name for name in rows[0] if len({row[name] for row in rows}) == 1]
    return Lesson(
        title,
        about,
        tuple({name: each for name, each in row.items() if name not in same} for row in rows)
        if len(same) < len(rows[0]) - 1
        else (),
    )


def _later(batch: Batch, seconds: int) -> Batch:
    """A batch at another time."""
    start, end = (None if each is None else each + seconds for each in (batch.start, batch.end))
    wall = None if batch.wall is None else (batch.wall[0] + seconds, batch.wall[1] + seconds)
    return replace(batch, start=start, end=end, wall=wall)


def _weights(kind: Quantiles, history: History) -> Lesson:
    """W, φ and locations of the priors that gradient descent has learned."""
    title = "Weights that gradient descent has learned"
    about = (
        "The prior of each quantile is Laplace(W·f/φ, 1/φ), f the public numbers of the batch."
        " Columns are W/φ, in the unit of the column: always is where the prior lies if all"
        " numbers are 0, the others are added as many times as the number says. scale is 1/φ. A"
        " small share of each prior lies about the guess of the configuration instead, so that its"
        " middle is not quite at the location. A belief is one distribution through all of them,"
        " also shifted and stretched: its quantiles are not quite there, either."
    )
    priors = kind.learner.linear_priors(history.state)
    inputs = _inputs(kind, history.batch, history.batch)
    if priors is None or priors.effects.shape[1] != len(inputs):
        return Lesson(title, about, ())
    named, count = _places(_input_names(kind, history.batch)), len(kind.quantiles)
    targets = np.array([float(each) for each in kind.quantiles])
    at = np.searchsorted(priors.levels, targets) if len(priors.levels) else np.arange(count)
    rows: list[Row] = []
    for quantile, effects, scale in zip(
        targets.tolist(), priors.effects[at], priors.scales[at].tolist(), strict=True
    ):
        row: dict[str, Json] = {"quantile": quantile, "location": _short(effects @ inputs)}
        row["scale"] = _short(scale)
        row["always"] = _short(effects[0])
        rows.append(row | {name: _short(effects[each].sum()) for name, each in named.items()})
    return Lesson(title, about, tuple(rows))


def _priors(kind: Quantiles, history: History, release_plan: ReleasePlan) -> Lesson:
    """The prior of each quantile, and what was released."""
    rows: list[Row] = []
    known = len(history.rows) == len(kind.quantiles)
    released = [row.get("value") for row in history.rows] if known else [None] * len(kind.quantiles)
    laws = _laws(kind, release_plan)
    for quantile, law, value in zip(kind.quantiles, laws, released, strict=True):
        low, middle, high = band(law, kind.grid, (0.1, 0.5, 0.9)).tolist()
        row: dict[str, Json] = {"quantile": float(quantile), "prior, tenth": _short(low)}
        row |= {"prior, middle": _short(middle), "prior, nine tenths": _short(high)}
        if known:
            row |= {"released": value, "loss": _short(_loss(kind, law, _number(value)))}
        rows.append(row)
    return Lesson(
        "Prior of each quantile" + (" beside its release" if known else ""),
        "Where the prior puts the quantile, in the unit of the column: below its tenth with a"
        " chance of .1, below its middle with .5, below its nine tenths with .9."
        + (
            " The loss is -ln of the mass that the prior gives to the cell of the release."
            if known
            else ""
        ),
        tuple(rows),
    )


def _losses(kind: Quantiles, history: History) -> Lesson:
    """Surrogate loss of each release, and the regret against the best fixed priors."""
    title = "Surrogate loss and regret by release"
    about = (
        "How much each release surprised: the lower, the better it was foretold. loss: Σ of -ln of"
        " the mass that the priors before a release gave to the cells that were released. best"
        " fixed: that of the one W and φ that would have been best for all of these releases,"
        f" chosen in hindsight; W has the public numbers from {ENOUGH} releases a number"
        " on, and is a constant before. regret: the sum of the differences so far; it may fall,"
        " for learned priors may change and those cannot."
    )
    steps = [step for step in history.steps if len(step.rows) == len(kind.quantiles)]
    inputs = [_inputs(kind, step.batch, step.batch) for step in steps]
    kept = [place for place, each in enumerate(inputs) if len(each) == len(inputs[-1])]
    if len(kept) < 2:
        return Lesson(title, about, ())
    steps, numbers = [steps[place] for place in kept], np.array([inputs[place] for place in kept])
    if len(numbers) < ENOUGH * numbers.shape[1]:
        numbers = numbers[:, :1]
    released = np.array([[_number(row.get("value")) for row in step.rows] for step in steps])
    lost = np.array(
        [_lost(kind, step, values) for step, values in zip(steps, released, strict=True)]
    )
    half = float(kind.grid.resolution) / 2.0
    best = np.zeros(len(steps))
    for values in released.T:
        best += best_fixed(numbers, values - half, values + half, 2.0 * half)
    shown = zip(steps, lost.tolist(), best.tolist(), np.cumsum(lost - best).tolist(), strict=True)
    rows: list[Row] = []
    for step, loss, fixed, regret in shown:
        row: dict[str, Json] = {"batch": step.batch.key, "day": clock(step.batch).split(" ")[0]}
        row |= {"loss": _short(loss), "best fixed": _short(fixed), "regret": _short(regret)}
        rows.append(row)
    return Lesson(title, about, tuple(rows))


def _lost(kind: Quantiles, step: Step, values: FloatArray) -> float:
    """Surrogate loss of the priors before a release."""
    laws = _laws(kind, _release_plan(kind, step.before, step.batch))
    return sum(_loss(kind, law, value) for law, value in zip(laws, values.tolist(), strict=True))


def _laws(kind: Quantiles, release_plan: ReleasePlan) -> tuple[Prior, ...]:
    """The prior of each quantile, were it drawn."""
    if isinstance(release_plan, DrawnPlan):
        return release_plan.prior.robust
    laws: tuple[Prior, ...] = kind.learner.priors_of(release_plan).robust
    return laws


def _number(value: Json) -> float:
    return float(value or 0.0)


def _loss(kind: Quantiles, law: Prior, value: float) -> float:
    half = float(kind.grid.resolution) / 2.0
    ends = np.array([value - half]), np.array([value + half])
    return -float(law.log_mass(*ends)[0])


def _inputs(kind: Quantiles, batch: Batch, day: Batch) -> FloatArray:
    """Public numbers of a batch that the learner uses, a one first, as of some day."""
    features = kind.features(batch) if kind.features else ()
    if not isinstance(kind.learner, BayesianMixture):
        return np.array([1.0, *features])
    if calendar(batch) == features:
        return np.array([1.0, *calendar(day)])
    return np.array([1.0, *calendar(day), *features])


def _input_names(kind: Quantiles, batch: Batch) -> tuple[str, ...]:
    """Names of the numbers after the one."""
    features = kind.features(batch) if kind.features else ()
    if not isinstance(kind.learner, BayesianMixture):
        return _feature_names(kind)
    if calendar(batch) == features:
        return calendar_names(batch)
    return (*calendar_names(batch), *_feature_names(kind))


def _places(names: tuple[str, ...]) -> dict[str, list[int]]:
    """Where each number is among the inputs: the calendar's may be configured as features, too."""
    found: dict[str, list[int]] = {}
    for place, name in enumerate(names, start=1):
        found.setdefault(name, []).append(place)
    return found


def _feature_names(kind: Quantiles) -> tuple[str, ...]:
    return tuple(each for name in kind.feature_names for each in NUMBERS.get(name, (name,)))


def _few(count: int) -> list[int]:
    """Places of at most nine of some quantiles, the outermost among them."""
    return sorted({round(each) for each in np.linspace(0, count - 1, min(count, 9)).tolist()})


def _at(kind: Quantiles, targets: FloatArray, cells: FloatArray) -> dict[str, Json]:
    unit = float(kind.grid.resolution)
    named = zip(targets.tolist(), cells.tolist(), strict=True)
    return {f"q{target:g}": _short(cell * unit) for target, cell in named}


def _short(number: float) -> float:
    """A number with a few significant digits."""
    return float(f"{float(number):.{DIGITS}g}")
