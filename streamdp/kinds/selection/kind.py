"""Release kind `selection`: the best of a finite list of candidates, chosen privately."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from streamdp.kinds.selection.candidates import Candidates
from streamdp.kinds.selection.sample_size import shortfall
from streamdp.kinds.selection.scores import Score, Total, score_range, step_of
from streamdp.mechanisms.finite_choice import exponent, exponential_choice, permute_and_flip
from streamdp.privacy.events import bounded_range, pure, sequence
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
    Outcome,
    Plan,
    Sums,
    TableCounts,
)

STEP = 1.0
"""η, for every release."""

ROBUST_WEIGHT = 0.05
"""λ: share of the uniform law, so that no candidate is ever ruled out."""

GUESSED = 4.0
"""θ of a publicly guessed candidate before any release; by K, those that are alike have a part."""

LIKENESS = 0.125
"""Width of K along a parameter, as a share of its values."""


@dataclass(frozen=True, slots=True, eq=False)
class ChoicePrior:
    """Law of the next choice before the batch is looked at, learned from past choices.

    The score of candidate i, in units of the exponent, is believed to be θ_i: a batch is then
    chosen with p_i ∝ μ_i·e^(θ_i), μ the prior it was drawn under. After candidate j is released,

        θ ← θ + η·K·(1[j] - p),        μ = (1 - λ)·softmax(θ) + λ/|C|,

    a step up the log-likelihood of the choice. A draw that only echoes its prior moves nothing on
    average, since then its expectation is p. K smooths over parameters of rules that are alike:
    what is learned of one threshold is learned of its neighbours. Reads releases alone:
    post-processing, no privacy cost.

    Args:
        shape: Values of each parameter of a grid of rules; of a list, its length.
        ordered: Whether neighbours along each axis are alike.
    """

    shape: tuple[int, ...]
    ordered: bool

    def start(self, guess: int | None = None) -> FloatArray:
        """θ before any release, shape (candidates,).

        Args:
            guess: A candidate that is publicly thought to be about the best.
        """
        scores = np.zeros(int(np.prod(self.shape)))
        if guess is not None:
            scores[guess] = GUESSED
        return self._smooth(scores.reshape(self.shape)).reshape(-1)

    def log_prior(self, scores: FloatArray) -> FloatArray:
        """ln μ of each candidate."""
        weights = np.exp(scores - scores.max())
        share = weights / weights.sum()
        return np.asarray(np.log((1.0 - ROBUST_WEIGHT) * share + ROBUST_WEIGHT / len(share)))

    def observe(self, scores: FloatArray, chosen: Sequence[int]) -> FloatArray:
        """θ after a release of one candidate, or of several in the order of their draws."""
        logits = self.log_prior(scores) + scores
        moved = np.zeros(self.shape)
        for number, winner in enumerate(chosen):
            left = logits.copy()
            left[list(chosen[:number])] = -np.inf
            law = np.exp(left - left.max())
            surprise = -law / law.sum()
            surprise[winner] += 1.0
            moved += self._smooth(surprise.reshape(self.shape))
        moved_scores = scores + STEP * moved.reshape(-1)
        return np.asarray(moved_scores - moved_scores.mean())

    def _smooth(self, surprise: FloatArray) -> FloatArray:
        if not self.ordered:
            return surprise
        for axis, size in enumerate(self.shape):
            places = np.arange(size) / (LIKENESS * size)
            kernel = np.exp(-0.5 * (places[:, None] - places) ** 2)
            surprise = np.moveaxis(np.moveaxis(surprise, axis, -1) @ kernel, -1, axis)
        return surprise


def virtual_records(log_prior: FloatArray, exponent: Fraction) -> list[int]:
    """Public integers added to the scores so that the draw follows the prior: ln(μ)/c, rounded.

    Args:
        log_prior: ln μ of each candidate.
        exponent: c of the mechanism.
    """
    return [round(float(each) / float(exponent)) for each in log_prior]


Choice = Literal["exponential", "permute-and-flip"]

MOST = 20
"""Candidates that lessons show."""

LEVEL = 0.95
"""How often a chosen score is within `shortfall` of the best one left."""

_DIGITS = 3
"""Digits of a learned score in the store: a thousandth of a nat moves nothing."""


@dataclass(frozen=True)
class Selection:
    """The candidates of the highest scores, one draw each.

    Args:
        candidates: What there is to choose from.
        score: By what.
        epsilon: Price of one release for one record; each of the `top` draws has its share.
        neighbours: Relation of one record.
        choice: Mechanism of a draw.
        top: How many candidates are released.
        learned: Whether past choices make the prior; else all candidates are alike.
        guess: A candidate that is publicly thought to be about the best.
        where: SQL condition; records of which it is not true do not count.
        expected_rows: Public number of records of a batch, for what is foretold.
    """

    candidates: Candidates
    score: Score
    epsilon: Fraction
    neighbours: Neighbours = "add-remove"
    choice: Choice = "exponential"
    top: int = 1
    learned: bool = True
    guess: int | None = None
    where: str | None = None
    expected_rows: int | None = None

    name: ClassVar[str] = "selection"

    @property
    def columns(self) -> tuple[Column, ...]:
        """Place, candidate, and how far its score may be below the best one left."""
        unit = "unit of the sum" if isinstance(self.score, Total) else "records"
        return (
            Column("place", "integer", "label"),
            *(replace(each, role="value", chart="choices") for each in self.candidates.labels()),
            Column("shortfall", "number", "error", unit, level=LEVEL),
        )

    def signature(self) -> Json:
        """The question and its records: a prior learned for others would mislead."""
        about = {} if self.where is None else {"where": self.where}
        if self.guess is not None:
            about |= {"guess": str(self.guess)}
        return {"question": repr(self.candidates.query()), "score": repr(self.score)} | about

    def init(self) -> Json:
        """The state before any choice."""
        return {"scores": self.prior.start(self.guess).tolist()}

    @property
    def prior(self) -> ChoicePrior:
        """Prior that past choices are learned by."""
        return ChoicePrior(self.candidates.shape, self.candidates.ordered)

    @property
    def exponent(self) -> Fraction:
        """Exponent c of each of the `top` draws."""
        return exponent(self.epsilon / self.top, score_range(self.score, self.neighbours))

    @cached_property
    def count(self) -> int:
        """How many candidates there are."""
        return int(np.prod(self.candidates.shape))

    def plan(self, state: Json, batch: Batch) -> Plan:
        """One question, `top` draws, and virtual records from past choices.

        Privacy: one record changes the scores by amounts of range `score_range`; a draw with
        exponent c costs c times that, epsilon/top. Virtual records are public and change no range.
        A later draw chooses among the candidates that are left, which earlier draws made public.
        """
        bonuses = [0] * self.count
        if self.informed:
            bonuses = virtual_records(self.prior.log_prior(_scores(state)), self.exponent)
        share = self.epsilon / self.top
        draw = bounded_range(share) if self.choice == "exponential" else pure(share)
        about = {"mechanism": self.choice, "candidates": self.count, "c": str(self.exponent)}
        event = sequence([draw] * self.top, **about)
        return Plan(replace(self.candidates.query(), where=self.where), event, bonuses)

    def draw(self, plan: Plan, statistic: TableCounts | Sums, entropy: Entropy) -> Outcome:
        """The chosen candidates, best first.

        Privacy: `neighbours` of one record, pure epsilon by the argument of `plan`. The
        exponential mechanism takes the same steps whatever the scores; the time of
        permute-and-flip depends on them and is not to be shown.
        """
        scores = self.candidates.scores(statistic)
        total = [score + bonus for score, bonus in zip(scores, plan.mechanism, strict=True)]
        choose = exponential_choice if self.choice == "exponential" else permute_and_flip
        left, chosen = list(range(self.count)), []
        for _ in range(self.top):
            winner = left.pop(choose([total[each] for each in left], self.exponent, entropy))
            chosen.append(winner)
        within = self.shortfall()
        rows = tuple(
            {"place": place, **self.candidates.row(winner), "shortfall": within}
            for place, winner in enumerate(chosen, start=1)
        )
        return Outcome(rows, tuple(chosen))

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """State after this choice: the estimated scores."""
        return self._after(state, outcome.auxiliary)

    def _after(self, state: Json, chosen: Sequence[int]) -> Json:
        if not self.learned:
            return state
        after = self.prior.observe(_scores(state), chosen)
        return {"scores": after.round(_DIGITS).tolist()}

    def measured(self, plan: Plan, outcome: Outcome) -> tuple[Measurement, ...]:
        """Return the places of the chosen candidates.

        Privacy: outputs of the draws; of noisy scores, which exist in some ways of drawing alone,
        nothing is covered but which is the largest.
        """
        mechanism = {"mechanism": self.choice, "c": str(self.exponent), "top": self.top}
        terms = MeasurementTerms(
            "choice", self._question(), relation=self.neighbours, mechanism=mechanism
        )
        return (Measurement(terms, tuple(outcome.auxiliary)),)

    def replayed(self, state: Json, batch: Batch, measurements: tuple[Measurement, ...]) -> Json:
        """Return the state after choices among the same candidates by the same score, or None."""
        asked = self._question()
        chosen = [each.cells for each in measurements if each.terms.question == asked]
        return self._after(state, chosen[0]) if chosen else None

    def _question(self) -> Json:
        """What there is to choose from, by what, and which records count."""
        about = {"candidates": repr(self.candidates.query()), "score": repr(self.score)}
        return about | ({} if self.where is None else {"where": self.where})

    def lessons(self, history: History) -> Sequence[Lesson]:
        """Return which candidates past choices speak for, from learned states alone."""
        if not self.informed:
            return ()
        log_prior = self.prior.log_prior(np.array(history.state["scores"]))
        prior, lead = np.exp(log_prior), log_prior / float(self.exponent)
        rows = tuple(
            {"rank": rank, **self.candidates.row(place)}
            | {
                "prior chance": float(f"{prior[place]:.4g}"),
                "worth in score": float(f"{lead[place] - lead.max():.4g}"),
            }
            for rank, place in enumerate(np.argsort(-prior)[:MOST].tolist(), start=1)
        )
        about = (
            "prior chance: of being chosen by a batch without records. worth in score: by so much a"
            " candidate is behind the likeliest before the batch is scored, in records or units of"
            " the sum; it costs nothing, and no candidate is ruled out."
        )
        return (Lesson("Which candidates past choices speak for", about, rows),)

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        """The choice as it was drawn."""
        return Outcome(outcome.rows)

    def unit(self) -> float:
        """The most that one record adds to a score, in its integers."""
        return float(max(map(abs, self.score.of_record())))

    def shortfall(self) -> float:
        """How far a chosen score may be below the best one left: in records, or the sum's unit."""
        integers = shortfall(self.exponent, self.count, 1.0 - LEVEL, self.least_prior)
        return integers * float(step_of(self.score))

    @property
    def least_prior(self) -> float:
        """Least prior of a candidate, times their number, over what rounding may add to others.

        Each of two virtual records is off by half a unit of the score at most.
        """
        return ROBUST_WEIGHT * math.exp(-float(self.exponent)) if self.informed else 1.0

    @property
    def informed(self) -> bool:
        """Whether candidates have a prior, learned or guessed; else they are all alike."""
        return self.learned or self.guess is not None


def _scores(state: Json) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array(state["scores"], dtype=float)
