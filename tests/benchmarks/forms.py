"""Forms of the tree with and without a learned prior, on a year of flights.

    python -m tests.benchmarks.forms [--json] [--quick]

Mean rank errors of the candidates of `mechanism: auto` where priors learn: the table of
`quantile_tree.planning.choice` knows only priors that do not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from streamdp import wiring
from streamdp.backends.public import PublicFiles
from streamdp.config import load
from streamdp.engine.job import Job
from streamdp.kinds.quantiles.kind import Quantiles
from streamdp.kinds.quantiles.learners import learner
from streamdp.kinds.quantiles.priors import shapes
from streamdp.kinds.quantiles.section import Guess, QuantilesSection
from streamdp.mechanisms.quantile_tree.planning.choice import CANDIDATES
from tests.benchmarks.daemon import CONFIG, release_errors
from tests.benchmarks.report import Row, main

COLUMNS = {
    "air_time": ((Fraction(0), Fraction(1000)), Guess(location=120.0, scale=60.0)),
    "arrival_delay": ((Fraction(-200), Fraction(2000)), Guess(location=0.0, scale=20.0)),
}


def rows(quick: bool) -> Iterator[Row]:
    """One row a column, form and learner; the first quarter of the year is left out."""
    configuration = load(Path(CONFIG))
    job = wiring.jobs(configuration)["air_time"]
    for column, (bounds, guess) in COLUMNS.items():
        configured = configuration.releases["air_time"]
        assert isinstance(configured, QuantilesSection)
        learning = configured.model_copy(
            update={"column": column, "bounds": bounds, "guess": guess}
        )
        static = learning.model_copy(
            update={"prior": learning.prior.model_copy(update={"learner": "none"})}
        )
        for name, form in CANDIDATES.items():
            if quick and name not in ("binary", "joint"):
                continue
            for section in (learning, static):
                kind = wiring.kind(section, "add-remove")
                assert isinstance(kind, Quantiles)
                tree = form.tree(kind.quantiles, kind.epsilon, kind.grid)
                each = replace(
                    kind,
                    form=form,
                    shapes=shapes(section) if form.shapes else None,
                    learner=learner(section, tree, PublicFiles()),
                    expected_rows=None,
                )
                who = section.learner()
                yield {"column": column, "form": name, "learner": who, **_measured(job, each)}


def _measured(job: Job, kind: Quantiles) -> Row:
    start = time.process_time()
    errors = np.array(list(release_errors(job, kind)))[91:]
    return {
        "average_error": float(errors.mean()),
        "largest_error": float(errors.max(axis=1).mean()),
        "cpu_ms": (time.process_time() - start) / 365 * 1000,
    }


if __name__ == "__main__":
    main("Forms of the tree, learning and not, epsilon 0.1 a day", rows)
