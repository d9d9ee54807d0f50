"""Release kind `experts`: weights over experts, learned online from noisy losses of each batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from streamdp.kinds.experts.forecasts import Forecasts
from streamdp.kinds.experts.learner import WAYS, Leader, OnlineLearner
from streamdp.kinds.experts.losses import LEVEL_SHARE, Actions, RuleLosses, sensitivity
from streamdp.kinds.experts.regret import Followed, RegretBound
from streamdp.mechanisms.noise import AdditiveNoise
from streamdp.privacy.draws import discrete_laplace_variance
from streamdp.privacy.events import pure, sequence
from streamdp.types import (
    Batch,
    Column,
    Entropy,
    FloatArray,
    History,
    Json,
    Lesson,
    Measurement,
    MeasurementTerms,
    Neighbours,
    NoiseLaw,
    Outcome,
    Plan,
    Row,
    Sums,
    TableCounts,
)

LEVEL = 0.95
"""How often an interval holds the loss of the batch, and the bound the regret of all batches."""

DEVIATIONS = 3.0 / math.sqrt(2.0)
"""Half the width of that interval: a Laplace variable stays within 3.0 scales, sums within less."""

CHANCE_BITS = 53
"""Bits of the public coin."""

MOST_SHOWN = 20
"""Experts of whom lessons tell."""

Action = Literal["heaviest", "drawn", "average"]
"""How an expert is chosen: by the largest weight, by chance, or nearest to the average of rules."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Scales of the noise of one release, fixed before data is touched.

    Args:
        scale: Of each integer.
        level: Of the level; None if none is asked for.
        forecasts: Of each expert that is one, None where there is none yet; public.
    """

    scale: Fraction
    level: Fraction | None
    forecasts: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class DrawnLosses:
    """Noisy integers of one release, and a public coin.

    Args:
        integers: That losses follow from.
        level: Noisy number of records that have the label; None where losses have no level.
        chance: In [0, 1): which expert is followed, where one is drawn.
    """

    integers: tuple[int, ...]
    level: int | None
    chance: float


@dataclass(frozen=True)
class Experts:
    """Noisy losses of experts on a batch, and the weights that online learning gives them.

    Args:
        losses: Who the experts are and what they lose.
        epsilon: Price of one release for one record.
        expected_rows: Public number of records of a batch: losses are shares of it.
        neighbours: Relation of one record.
        action: How the expert for the next batch is chosen by weight.
        where: SQL condition; records of which it is not true do not count.
        forecasts: Where the experts are forecasts of other jobs: these.
        known: Their numbers for the batch that is planned.
    """

    losses: RuleLosses | Actions
    epsilon: Fraction
    expected_rows: int
    neighbours: Neighbours = "add-remove"
    action: Action = "heaviest"
    where: str | None = None
    forecasts: Forecasts | None = None
    known: tuple[float | None, ...] = ()

    name: ClassVar[str] = "experts"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The expert, its loss, its weight for the next batch, and the regret so far."""
        unit = "losses per expected record"
        return (
            *self.losses.labels(),
            *((Column("forecast", "number", "estimate"),) if self.forecasts else ()),
            Column("loss", "number", "value", unit),
            Column("lower", "number", "lower", about="loss", level=LEVEL),
            Column("upper", "number", "upper", about="loss", level=LEVEL),
            Column("average_loss", "number", "estimate", unit),
            Column("weight", "number", "estimate", chart="shares"),
            Column("chosen", "integer", "estimate"),
            Column("regret_bound", "number", "error", unit, level=LEVEL, chart="lines"),
        )

    def signature(self) -> Json:
        """The experts, and the scale of their losses."""
        return {
            "experts": [list(row.values()) for row in self.losses.rows()],
            "losses": repr(self.losses.query()),
            "expected_rows": self.expected_rows,
            "where": self.where,
        } | ({} if self.forecasts is None else {"forecasts": repr(self.forecasts)})

    @property
    def jobs(self) -> tuple[str, ...]:
        """Jobs whose releases are forecasts."""
        return () if self.forecasts is None else self.forecasts.jobs

    def informed(self, past: Mapping[str, tuple[Row, ...]]) -> Experts:
        """The kind for one batch, whose forecasts are known; its price stays."""
        if self.forecasts is None:
            return self
        known = self.forecasts.numbers(past)
        return replace(self, losses=self.forecasts.actions(known), known=known)

    def init(self) -> Json:
        """The state before any losses were seen."""
        return {"releases": 0, "learner": self.learner.start().to_json()}

    @cached_property
    def learner(self) -> OnlineLearner:
        """The online learner, for the noise of one release."""
        return OnlineLearner(Leader.of(self.losses.kernels(), self._covariance))

    def noise(self) -> Noise:
        """Scales that make the release cost epsilon: sensitivity over its share of epsilon."""
        size = sensitivity(self.losses, self.neighbours)
        if isinstance(self.losses, Actions):
            return Noise(Fraction(size) / self.epsilon, None)
        return Noise(
            Fraction(size) / (self.epsilon * (1 - LEVEL_SHARE)),
            Fraction(1) / (self.epsilon * LEVEL_SHARE),
        )

    def plan(self, state: Json, batch: Batch) -> Plan:
        """Ask the same question at the same price for every batch.

        Privacy: z has L1 sensitivity `sensitivity`. The level is a count, which a record changes by
        one at most, added or substituted. Discrete Laplace noise of these scales costs pure loss
        sensitivity/scale each, epsilon together.
        """
        noise = self.noise()
        shares = [self.epsilon] if noise.level is None else self._shares()
        about = {"mechanism": "experts", "experts": self.losses.count, "scale": str(noise.scale)}
        event = sequence([pure(share) for share in shares], **about)
        query = replace(self.losses.query(), where=self.where)
        return Plan(query, event, replace(noise, forecasts=self.known))

    def draw(self, plan: Plan, statistic: TableCounts | Sums, entropy: Entropy) -> Outcome:
        """Noisy losses of all experts.

        Privacy: `neighbours` of one record, pure epsilon by the argument of `plan`. How much
        entropy is used depends on chance alone.
        """
        noise: Noise = plan.mechanism
        integers = self.losses.integers(statistic)
        noisy = AdditiveNoise(1 / noise.scale, 1).draw(integers, entropy)
        level = self.losses.level(statistic)
        if noise.level is not None and level is not None:
            (level,) = AdditiveNoise(1 / noise.level, 1).draw([level], entropy)
        drawn = DrawnLosses(noisy, level, entropy.bits(CHANCE_BITS) / 2**CHANCE_BITS)
        losses = self._losses(drawn)
        named: list[Row] = list(self.losses.rows())
        if noise.forecasts:
            pairs = zip(named, noise.forecasts, strict=True)
            named = [{**label, "forecast": number} for label, number in pairs]
        rows = tuple(
            {**label, "loss": loss, "lower": loss - half, "upper": loss + half}
            for label, loss, half in zip(
                named, losses.tolist(), self.half_widths().tolist(), strict=True
            )
        )
        return Outcome(rows, drawn)

    def _losses(self, drawn: DrawnLosses) -> FloatArray:
        """Losses per expected record, shape (k,)."""
        start = 0.5 if drawn.level is None else drawn.level / self.expected_rows
        noisy = np.array(drawn.integers, dtype=float)
        return np.asarray(start + self.losses.matrix @ noisy / self.expected_rows)

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """The state after the released losses, with the expert to follow next."""
        losses = np.array([row["loss"] for row in outcome.rows])
        return self._after(state, losses, outcome.auxiliary.chance)

    def _after(self, state: Json, losses: FloatArray, chance: float) -> Json:
        learned = self.learner.observe(self.learner.restored(state["learner"]), losses)
        followed = self._followed(state)
        if (chosen := state.get("chosen")) is not None:
            followed = followed.after(losses, self.losses.matrix, chosen)
        return {
            "releases": state["releases"] + 1,
            "learner": learned.to_json(),
            "followed": followed.to_json(),
            "chosen": self._action(self.learner.weights(learned), chance),
        }

    def measured(self, plan: Plan, outcome: Outcome) -> tuple[Measurement, ...]:
        """Return the noisy integers that losses follow from, and the noisy level.

        Privacy: outputs of the noise of `draw`.
        """
        return tuple(_measured(self, plan.mechanism, outcome.auxiliary))

    def replayed(self, state: Json, batch: Batch, measurements: tuple[Measurement, ...]) -> Json:
        """Return the state after a release that was measured so; None if it teaches nothing."""
        drawn = _drawn_of(self, measurements)
        return None if drawn is None else self._after(state, self._losses(drawn), drawn.chance)

    def lessons(self, history: History) -> Sequence[Lesson]:
        """Return what past releases taught, from releases and learned states alone."""
        return tuple(_lessons(self, history))

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        """The losses, and beside them the weights and the action for the next batch."""
        learned = self.learner.restored(state["learner"])
        weights = self.learner.weights(learned).tolist()
        averages = (learned.inner.losses / state["releases"]).tolist()
        regret = self._regret_bound().average(self._followed(state))
        added: list[Row] = [
            {
                "average_loss": average,
                "weight": weight,
                "chosen": int(number == state["chosen"]),
                "regret_bound": regret,
            }
            for number, (average, weight) in enumerate(zip(averages, weights, strict=True))
        ]
        rows = zip(outcome.rows, added, strict=True)
        return Outcome(tuple({**row, **more} for row, more in rows))

    def half_widths(self) -> FloatArray:
        """Half the width of the interval around each loss, shape (k,): a multiple of one integer.

        Noise is of whole numbers: an end between two of them would leave one out that is likely.
        """
        level = self._level_variance(self.noise())
        reach = DEVIATIONS * np.sqrt(np.diag(self._covariance) + level)
        unit = self._unit()
        return np.asarray(np.ceil(reach / unit - 1e-9) * unit)

    def deviation(self) -> float:
        """Largest standard deviation of the noise in a loss, but for their common level."""
        return float(np.sqrt(np.diag(self._covariance).max()))

    def _action(self, weights: FloatArray, chance: float) -> int:
        if self.action == "average" and isinstance(self.losses, RuleLosses):
            return self.losses.average(weights)
        if self.action != "drawn":
            return int(weights.argmax())
        return min(int(np.searchsorted(weights.cumsum(), chance, "right")), len(weights) - 1)

    def _followed(self, state: Json) -> Followed:
        """The record of what was followed; empty in states of earlier versions."""
        found = state.get("followed")
        return Followed.from_json(found) if found else Followed.nothing(self.losses.count)

    def _regret_bound(self) -> RegretBound:
        return RegretBound(self.noise().scale, self._unit(), 1.0 - LEVEL)

    def _unit(self) -> float:
        """Losses per expected record that one unit of an integer stands for."""
        return float(self.losses.matrix.max()) / self.expected_rows

    def _shares(self) -> tuple[Fraction, Fraction]:
        return self.epsilon * (1 - LEVEL_SHARE), self.epsilon * LEVEL_SHARE

    @cached_property
    def _covariance(self) -> FloatArray:
        """Covariance (k, k) of the noise in one release's losses, without their common level."""
        matrix = self.losses.matrix / self.expected_rows
        return np.asarray(matrix @ matrix.T) * discrete_laplace_variance(self.noise().scale)

    def _level_variance(self, noise: Noise) -> float:
        return (
            0.0
            if noise.level is None
            else discrete_laplace_variance(noise.level) / self.expected_rows**2
        )


def _measured(kind: Experts, noise: Noise, drawn: DrawnLosses) -> Iterator[Measurement]:
    """The integers, with forecasts and coin beside them; then the level, if there is one."""
    asked = _question(kind)
    given: Json = {"coin": round(drawn.chance * 2**CHANCE_BITS)}
    if noise.forecasts:
        given |= {"forecasts": list(noise.forecasts)}
    share = Fraction(1) if drawn.level is None else 1 - LEVEL_SHARE
    size = sensitivity(kind.losses, kind.neighbours)
    law = NoiseLaw("epsilon", kind.epsilon * share, size)
    terms = MeasurementTerms("losses", asked, noise=law, share=share, relation=kind.neighbours)
    yield Measurement(terms, numbers=drawn.integers, given=given)
    if drawn.level is not None:
        yield Measurement(
            MeasurementTerms(
                "losses",
                asked,
                part="level",
                stage=1,
                noise=NoiseLaw("epsilon", kind.epsilon * LEVEL_SHARE),
                share=LEVEL_SHARE,
                relation=kind.neighbours,
            ),
            numbers=(drawn.level,),
        )


def _drawn_of(kind: Experts, measurements: Sequence[Measurement]) -> DrawnLosses | None:
    """The draw that was measured so; None if it was of other experts."""
    asked = _question(kind)
    found = {each.terms.part: each for each in measurements if each.terms.question == asked}
    if "" not in found:
        return None
    level = found["level"].numbers[0] if "level" in found else None
    return DrawnLosses(found[""].numbers, level, found[""].given["coin"] / 2**CHANCE_BITS)


def _question(kind: Experts) -> Json:
    """The experts, what they lose, and which records count.

    Forecasts change from batch to batch and stand beside the integers.
    """
    asked = kind.losses.query() if kind.forecasts is None else kind.forecasts
    experts = [list(row.values()) for row in kind.losses.rows()]
    about = {"experts": experts, "losses": repr(asked)}
    return about | ({} if kind.where is None else {"where": kind.where})


def _lessons(kind: Experts, history: History) -> Iterator[Lesson]:
    """What past losses taught: weights of experts, and of the learners behind them."""
    releases = history.state["releases"]
    if not releases:
        return
    state = kind.learner.restored(history.state["learner"])
    weights, chosen = kind.learner.weights(state), history.state.get("chosen")
    averages = state.inner.losses / releases
    order = np.lexsort((averages, -weights))[:MOST_SHOWN].tolist()
    names = kind.losses.rows()
    yield Lesson(
        "Weights of experts for the next batch",
        "average loss: of all releases so far, per expected record. The weights follow from these"
        " losses and their known noise alone; next marks the one that is followed.",
        tuple(
            {
                **names[place],
                "weight": round(float(weights[place]), 4),
                "average loss": float(f"{averages[place]:.4g}"),
                "next": "yes" if place == chosen else "",
            }
            for place in order
        ),
    )
    yield Lesson(
        "Weights of the learners behind them",
        "An outer AdaHedge weighs these ways of learning by the released losses of what they"
        " played.",
        tuple(
            {"learner": name, "weight": round(weight, 4), "meaning": meaning}
            for (name, meaning), weight in zip(WAYS, state.outer.weights().tolist(), strict=True)
        ),
    )
