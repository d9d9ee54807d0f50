"""How selections are simulated: how far chosen candidates are from the best ones left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamdp.kinds.rules import synthetic
from streamdp.kinds.selection.candidates import ThresholdRules, candidates
from streamdp.kinds.selection.kind import Selection
from streamdp.kinds.selection.scores import label_of
from streamdp.kinds.selection.section import SelectionSection
from streamdp.kinds.study import Stream, Study
from streamdp.types import FloatArray, Outcome, Sums, TableCounts

Scores = TableCounts | Sums


class SelectionStudy(Study):
    """Shortfall of each chosen candidate against the best one left, in records."""

    measure = "shortfall"
    streams: tuple[str, ...] = synthetic.NAMES
    variants: tuple[str, ...] = ("choices", "none")

    def variant(self, section: SelectionSection, name: str, rows: int) -> SelectionSection:
        """Return the section with a prior of past choices or without; the oracle has one."""
        return section.model_copy(update={"learner": "none" if name == "none" else "choices"})

    def on_stream(self, section: SelectionSection, stream: str) -> SelectionSection:
        """Return the section with the records of the stream, unless it says how many it expects."""
        return section.model_copy(update={"expected_rows": section.expected_rows or synthetic.ROWS})

    def synthetic(
        self, section: SelectionSection, stream: str, seed: int, length: int | None
    ) -> Stream:
        """The stream of a name in `NAMES`."""
        rows, days = section.expected_rows or synthetic.ROWS, length or synthetic.LENGTH
        score = section.scored("duckdb")
        made = candidates(section, score, "duckdb")
        counts: tuple[Scores, ...]
        if isinstance(made, ThresholdRules):
            labelled = label_of(score) is not None
            counts = tuple(
                synthetic.rule_tables(made.grid, stream, rows, seed, days, labelled=labelled)
            )
        else:
            parts = synthetic.losses(section.count(), stream, rows, seed, days)
            unit = max(map(abs, score.of_record()))
            counts = synthetic.sums((-part for part in parts), unit)
        return Stream(stream, synthetic.batches(stream, days), counts, synthetic=True)

    def taught(self, kind: Selection) -> Selection:
        """The kind, learning from the best candidates instead of from chosen ones."""
        return replace(kind, learned=True)

    def truth(self, kind: Selection, statistic: Scores) -> Outcome:
        """The best candidates, the first of those that are as good."""
        scores = np.array(kind.candidates.scores(statistic))
        return Outcome((), tuple(np.argsort(-scores, kind="stable")[: kind.top].tolist()))

    def errors(self, kind: Selection, statistic: Scores, outcome: Outcome) -> FloatArray:
        """Shortfall of the choice at each place, shape (top,)."""
        left = np.array(kind.candidates.scores(statistic), dtype=float)
        short = []
        for winner in outcome.auxiliary:
            short.append(left.max() - left[winner])
            left[winner] = -np.inf
        return np.array(short) / kind.unit()
