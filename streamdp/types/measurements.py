"""Measurements: the numbers that mechanisms drew of a batch, kept as they were paid for.

A measurement is the output of one private draw, neither rounded nor cut nor averaged after it: what
the proof of its mechanism is about. It is published with its release and never drawn again, so all
that is computed from it costs nothing.

Lessons: what past releases taught a release kind, in tables that a person reads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, Protocol, runtime_checkable

from streamdp.types.batches import Batch
from streamdp.types.forms import Json, Neighbours, Row
from streamdp.types.names import NewNames
from streamdp.types.releases import Outcome, Plan

Form = Literal[
    "counts", "values", "table", "sums", "units", "losses", "choice", "gradient", "found"
]
"""Forms of a measurement's numbers:

| form | cells | numbers | given |
|---|---|---|---|
| counts | cuts, increasing: a bin ends with its cut, c_(i-1) < x <= c_i | noisy count of each bin, one more than cuts | – |
| values | the drawn cell of each target | – | start of the prior's digest |
| table | – | noisy count of each cell, in the order of the axes, the last one fastest | centre, reach and unit of a table of distances |
| sums | – | one noisy sum of (cell - centre), or of its square | centre, reach |
| units | – | noisy number of units, or of those with so many records | – |
| losses | – | noisy integers that losses follow from | forecasts, and the public coin |
| choice | places of chosen candidates, the best first | – | – |
| gradient | – | noisy integers, 2^-24 each | – |
| found | – | noisy count of each known key | the known keys, and those that were found |
"""  # noqa: E501


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """The law of the noise in each number: `mechanisms.noise.noise_at` of these.

    Args:
        measure: `epsilon`: discrete Laplace noise. `rho`: discrete Gaussian noise.
        amount: Price of the vector for one record, exact.
        sensitivity: The most that neighbours' vectors differ, summed over their entries.
        entries: Between how many entries that sum is divided evenly, at worst.
    """

    measure: Literal["epsilon", "rho"]
    amount: Fraction
    sensitivity: int = 1
    entries: int = 1


@dataclass(frozen=True, slots=True)
class MeasurementTerms:
    """What a measurement is of and how it was made: public, and alike in most releases of a job.

    Args:
        form: What its numbers are.
        question: What is asked of a record and which records count: `column`, `expression`,
            `where`, `grid` (resolution, first and last cell), axes, columns of groups.
        part: Measure of a statistic, or item of a workload; empty where a kind has one part.
        stage: Number of the draw within its part; later ones may follow from earlier ones.
        group: Texts of its public group, by the columns `by` of the question; none without groups.
        noise: Of each number; None where cells were drawn or chosen.
        share: Of the release's price.
        relation: Neighbours.
        unit: Column of the unit and the most of its records that count; None if records are units.
        targets: Of drawn values.
        mechanism: Of drawn or chosen cells: its parameters, as the event of the ledger has them.
    """

    form: Form
    question: Json
    part: str = ""
    stage: int = 0
    group: tuple[str, ...] = ()
    noise: NoiseLaw | None = None
    share: Fraction = Fraction(1)
    relation: Neighbours = "add-remove"
    unit: tuple[str, int] | None = None
    targets: tuple[Fraction, ...] = ()
    mechanism: Json = None

    @property
    def digest(self) -> str:
        """Digest of the question and its records: measurements of one digest may be put together.

        Price, noise, targets and stage may differ.
        """
        about = [self.question, self.part, list(self.group), self.unit and list(self.unit)]
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]

    def renamed(self, names: NewNames) -> MeasurementTerms:
        """The measurement with renamed groups, columns and measures."""
        unit, columns = self.unit, dict(names.columns)
        return replace(
            self,
            question=names.of_signature(self.question),
            part=dict(names.measures).get(self.part, self.part),
            group=dict(names.groups).get(self.group, self.group),
            unit=unit and (columns.get(unit[0], unit[0]), unit[1]),
        )

    def to_json(self) -> Json:
        """What is not usual, in the order in which `from_json` reads it.

        >>> MeasurementTerms("counts", {"column": "x"}).to_json()
        {'form': 'counts', 'question': {'column': 'x'}}
        """
        noise = self.noise
        said: dict[str, Json] = {"form": self.form, "question": self.question}
        said |= {"part": self.part} if self.part else {}
        said |= {"stage": self.stage} if self.stage else {}
        said |= {"group": list(self.group)} if self.group else {}
        if noise is not None:
            law = [noise.measure, str(noise.amount), noise.sensitivity, noise.entries]
            said |= {"noise": law}
        said |= {"share": str(self.share)} if self.share != 1 else {}
        said |= {"relation": self.relation} if self.relation != "add-remove" else {}
        said |= {"unit": list(self.unit)} if self.unit else {}
        said |= {"targets": [str(each) for each in self.targets]} if self.targets else {}
        return said | ({} if self.mechanism is None else {"mechanism": self.mechanism})

    @classmethod
    def from_json(cls, said: Mapping[str, Json]) -> MeasurementTerms:
        """The terms that `to_json` wrote."""
        noise, unit = said.get("noise"), said.get("unit")
        return cls(
            form=said["form"],
            question=said["question"],
            part=said.get("part", ""),
            stage=said.get("stage", 0),
            group=tuple(said.get("group", ())),
            noise=noise and NoiseLaw(noise[0], Fraction(noise[1]), *noise[2:]),
            share=Fraction(said.get("share", 1)),
            relation=said.get("relation", "add-remove"),
            unit=unit and (unit[0], unit[1]),
            targets=tuple(Fraction(each) for each in said.get("targets", ())),
            mechanism=said.get("mechanism"),
        )


@dataclass(frozen=True, slots=True)
class Measurement:
    """One private draw of a batch, and the public terms that it was made on.

    The store has the terms once, and of each release the cells, the numbers and what was given, as
    lists of JSON.

    Args:
        terms: What it is of.
        cells: Integers that are public before the draw (cuts), or that were drawn or chosen.
        numbers: Noisy integers, of any size and sign.
        given: What else a reader must know that changes from release to release; all of it follows
            from earlier releases or from earlier stages.
    """

    terms: MeasurementTerms
    cells: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    given: Json = None


@dataclass(frozen=True, slots=True)
class MeasuredRelease:
    """A release of a job with its measurements, in the order in which they were drawn.

    Args:
        id: Of the release.
        kind: Of the release.
        batch: With its key and window.
        released_at: POSIX time.
        measurements: None of releases from before they were kept.
    """

    id: str
    kind: str
    batch: Batch
    released_at: int
    measurements: tuple[Measurement, ...]


@runtime_checkable
class Measures(Protocol):
    """A release kind whose draws are kept, and that can learn from them again."""

    def measured(self, plan: Plan, outcome: Outcome) -> tuple[Measurement, ...]:
        """Return the private draws behind an outcome, unchanged, in their order.

        Privacy: exactly outputs of the mechanisms of `Plan.event`; nothing that only a function of
        is covered by its proof.
        """
        ...

    def replayed(self, state: Json, batch: Batch, measurements: tuple[Measurement, ...]) -> Json:
        """Return the state after a release that was measured so; None if it teaches nothing.

        Of the kind that made them it is the state that `learn` returned, to the last bit. Of one
        with another learner, or other targets, it is what these measurements teach that one. Has no
        data argument: it is post-processing.
        """
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One release that a state was learned from.

    Args:
        batch: That was released.
        before: State before it.
        rows: Published.
    """

    batch: Batch
    before: Json
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class History:
    """Releases of a job up to one batch, and what was learned from them.

    Args:
        steps: The newest releases before the batch, in the order of their charges.
        state: What they taught.
        batch: Which is released next, or was.
        rows: Of its release; none if there is none yet.
    """

    steps: tuple[Step, ...]
    state: Json
    batch: Batch
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Lesson:
    """A table about what was learned.

    Args:
        title: Of the table.
        about: What its columns mean, in whole sentences.
        rows: Of it.
    """

    title: str
    about: str
    rows: tuple[Row, ...]


@runtime_checkable
class Explains(Protocol):
    """A release kind that can show what it has learned."""

    def lessons(self, history: History) -> Sequence[Lesson]:
        """Return what past releases taught, and how it shapes the release of a batch.

        From releases and learned states alone: post-processing, at no price.
        """
        ...


@runtime_checkable
class HasParts(Protocol):
    """A release kind that learns of each public part of a batch by itself."""

    def parts(self) -> tuple[str, ...]:
        """Return the names of the parts."""
        ...

    def part(self, name: str, history: History) -> tuple[object, History]:
        """Return the kind of one part, and its history as that kind knows it."""
        ...
