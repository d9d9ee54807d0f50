"""How quantiles are simulated: rank errors of learners, on synthetic streams or a public table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.quantiles.section import Guess, QuantilesSection
from streamdp.kinds.quantiles.synthetic import GUESS, NAMES, RESOLUTION, expected_rows, synthetic
from streamdp.kinds.study import ORACLE, ReplayedRelease, Stream, Study, Trace
from streamdp.learning.learner import DrawnPlan
from streamdp.mechanisms.quantile_tree.grains import exact_quantiles
from streamdp.mechanisms.quantile_tree.planning.simulation import rank_errors
from streamdp.priors.shapes import SHARES, band
from streamdp.types import CellCounts, FloatArray, Outcome


class QuantilesStudy(Study):
    """The share of records by which each released quantile is off."""

    measure = "rank error"
    streams: tuple[str, ...] = NAMES
    variants: tuple[str, ...] = ("mixture", "online-gradient", "last-release", "none")

    def variant(self, section: QuantilesSection, name: str, rows: int) -> QuantilesSection:
        """Another learner; the oracle is that of the mixture under the tree's default form."""
        prior = section.prior.model_copy(
            update={"learner": self.variants[0] if name == ORACLE else name}
        )
        changed = section.model_copy(update={"prior": prior})
        if name != ORACLE:
            return changed
        known = {"expected_rows": section.expected_rows or rows, "mechanism": "auto"}
        return changed.model_copy(update=known)

    def on_stream(self, section: QuantilesSection, stream: str) -> QuantilesSection:
        """Return the section with the stream's guess, cells and rows, and no bounds."""
        location, scale = GUESS
        own = {
            "guess": Guess(location=location, scale=scale),
            "bounds": None,
            "resolution": RESOLUTION,
            "expected_rows": expected_rows(stream),
        }
        of_the_column = dict.fromkeys(("robust", "public", "table"))
        prior = section.prior.model_copy(update=of_the_column)
        return section.model_copy(update={**own, "prior": prior})

    def synthetic(
        self, section: QuantilesSection, stream: str, seed: int, length: int | None
    ) -> Stream:
        """One of `NAMES`."""
        return synthetic(stream, section.quantiles, seed, length)

    def numbers(self, section: QuantilesSection) -> tuple[str, ...]:
        """The column, unless it is derived: an expression casts for itself."""
        return (section.column,) if isinstance(section.column, str) else ()

    def simulated(self, kind: Quantiles, stream: Stream) -> Quantiles:
        """Return the kind without its `expected_rows`; its learner keeps its own.

        They only make the statement of accuracy, which takes as long as a hundred releases.
        """
        made = replace(kind, expected_rows=None)
        feature = stream.feature()
        if feature is None:
            return made
        return replace(made, features=feature, feature_names=("of the stream",))

    def taught(self, kind: Quantiles) -> Quantiles:
        """Return the kind that draws every quantile: true values are read as draws."""
        return replace(kind, learner=kind.learner.without_counts())

    def truth(self, kind: Quantiles, statistic: CellCounts) -> Outcome:
        """The quantiles of the records."""
        cells = exact_quantiles(statistic, kind.quantiles).tolist()
        return Outcome(
            tuple(
                {"quantile": float(q), "value": kind.grid.value(cell)}
                for q, cell in zip(kind.quantiles, cells, strict=True)
            )
        )

    def errors(self, kind: Quantiles, statistic: CellCounts, outcome: Outcome) -> FloatArray:
        """Rank errors, shape (m,)."""
        width = float(kind.grid.resolution)
        cells = np.array([round(float(row["value"] or 0) / width) for row in outcome.rows])
        return rank_errors(statistic, kind.quantiles, cells)

    def trace(self, kind: Quantiles, steps: Iterable[ReplayedRelease]) -> Trace:
        """The lowest, middle and highest quantile, and weights of what is believed."""
        count = len(kind.quantiles)
        targets = sorted({0, count // 2, count - 1})
        truth, bands, weights = [], [], []
        for step in steps:
            empty = bool(np.isnan(step.errors).any())
            values = [np.nan if empty else step.truth.rows[j]["value"] for j in targets]
            truth.append(values)
            release_plan, features = step.plan.mechanism.release_plan, step.plan.mechanism.features
            drawn = isinstance(release_plan, DrawnPlan)
            priors = (release_plan.prior if drawn else kind.believed(step.state, features)).robust
            bands.append([band(priors[j], kind.grid) for j in targets])
            weights.append(kind.learner.weights(step.state))
        last_first = reversed(weights)
        names = tuple(dict.fromkeys(name for mixed in last_first for name in mixed))
        return Trace(
            tuple(f"quantile {float(kind.quantiles[j]):g}" for j in targets),
            np.array(truth, dtype=float),
            np.array(bands).reshape(-1, len(targets), len(SHARES)),
            np.array([[mixed.get(name, 0.0) for name in names] for mixed in weights])
            if names
            else None,
            names,
        )
