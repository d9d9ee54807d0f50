"""How a run of thresholding answers the question of a gate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from streamdp.gates.questions.section import Question, Test
from streamdp.mechanisms.sparse_vector.thresholding import Terms, Thresholding
from streamdp.privacy.events import charge_of
from streamdp.types import Batch, Charge, Entropy, Json, Past, Query, with_bound


@dataclass(frozen=True, slots=True)
class ThresholdingGate:
    """A gate: a question, and the mechanism of its runs.

    Args:
        asked: What is counted of each batch.
        question: What is asked of it.
        thresholding: A run.
        terms_of_tests: Of procedures, in the order in which they follow each other, the last for
            ever; scores need none.
        rows_per_unit: Most records in which neighbours differ: one of a score.
        configurations: Tests that each batch is put to, the first accepted one ends the run.
        each_test: Whether each test of a run moves on to the next terms, and not each acceptance.
    """

    asked: Query
    question: Question
    thresholding: Thresholding
    terms_of_tests: tuple[Terms, ...] = ()
    rows_per_unit: int = 1
    each_test: bool = False
    configurations: int = 1

    def query(self, batch: Batch) -> Query:
        """The question; which of a unit's records count is chosen anew in each batch."""
        bound = self.asked.bound
        return with_bound(self.asked, bound and bound.of(batch))

    def terms(self) -> Json:
        """The parameters of a run's noise; a run of other parameters cannot go on."""
        return self.thresholding.event()

    def margin(self, number: int) -> int:
        """The score from which some test is surely answered with yes."""
        return math.ceil(self.thresholding.noise.margin(number))

    def records_to_be_sure(self, number: int) -> int:
        """The margin in records."""
        return self.margin(number) * self.rows_per_unit

    def charge(self) -> Charge:
        """The price of a run."""
        event = self.thresholding.event() | {"question": self.question.describe()}
        return charge_of(event)

    def start(self, entropy: Entropy) -> Json:
        """The hidden state of a run."""
        return self.thresholding.start(entropy)

    def accepts(
        self, hidden: Json, number: int, past: Past, statistic: Any, entropy: Entropy
    ) -> int:
        """The answer for one batch: 0, or the place of its first accepted test, from 1.

        Args:
            hidden: What `start` returned.
            number: Of the batch in its run, from 1.
            past: What was released and answered before.
            statistic: The batch. Private.
            entropy: Source of chance.

        Privacy: the answers of a run, up to its first yes, cost the run's epsilon. The level of a
        test follows from its number and from earlier answers, which are public.
        """
        tests = self.question.test(past, statistic)
        tests = tests if isinstance(tests, tuple) else (tests,)
        before = (number - 1) * self.configurations
        for place, test in enumerate(tests[: self.configurations], 1):
            if self._accepts(hidden, before + place, past, test, entropy):
                return place
        return 0

    def _accepts(self, hidden: Json, number: int, past: Past, test: Test, entropy: Entropy) -> bool:
        """The bit of one test, by its number among all of the run."""
        if isinstance(test, Fraction):
            return self.thresholding.noise.accept(hidden, test - self.margin(number), entropy)
        terms = self.terms_at(number, past)
        return self.thresholding.accept(hidden, number, test, terms, entropy)

    def terms_at(self, number: int, past: Past) -> Terms:
        """Return the terms of a test, from its number in the run and earlier answers.

        Raises:
            TypeError: The question is a score.
        """
        if not self.terms_of_tests:
            raise TypeError("a question that is no score needs terms")
        step = number - 1 if self.each_test else past.accepted
        return self.terms_of_tests[min(step, len(self.terms_of_tests) - 1)]
