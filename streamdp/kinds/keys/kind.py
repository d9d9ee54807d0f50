"""Release kind `keys`: keys that are found in the data, and counts of those that are known."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from operator import itemgetter
from typing import ClassVar

import numpy as np

from streamdp.kinds.keys.section import publishable
from streamdp.kinds.statistics.measures.counts import counted
from streamdp.kinds.statistics.measures.protocol import LEVEL
from streamdp.mechanisms.key_selection import Selection, selection_at
from streamdp.mechanisms.noise import Noise, law_of, noise_of
from streamdp.privacy.events import sequence
from streamdp.privacy.price import Price
from streamdp.types import (
    Batch,
    Column,
    Entropy,
    History,
    Json,
    Key,
    KeyCounts,
    KeyQuery,
    Lesson,
    Measurement,
    MeasurementTerms,
    Neighbours,
    Outcome,
    Plan,
    Row,
)

NEW, QUIET = "found now", "quiet"
"""Marks: of a key that this batch made known, and of one that hardly any units hold any more."""

TOGETHER = 2000
"""Keys whose counts are filtered together, which bounds the memory of that."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known before a batch.

    Args:
        known: Keys that are counted, those that were known first in front.
        found: The batch in which each was found, empty where it was always public.
        series: What was learned of the counts, for each part of the known keys.
        batch: Key of the batch.
        weekday: Of the batch, 0 to 6; None where it is no window of time.
    """

    known: tuple[Key, ...]
    found: tuple[str, ...]
    series: tuple[Json, ...]
    batch: str
    weekday: int | None


@dataclass(frozen=True, slots=True)
class KeysPlan(Known):
    """Input of `draw`, fixed before data is touched: what is known, coins and noise."""

    selection: Selection


@dataclass(frozen=True, slots=True)
class DrawnKeys:
    """What was drawn, and the rows and the state that follow from it.

    Args:
        state: The next.
        rows: Of the release.
        counts: Noisy ones of the known keys.
        new: Keys that were found.
    """

    state: Json
    rows: tuple[Row, ...]
    counts: tuple[int, ...]
    new: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Keys:
    """Finds keys, and counts those that are known, from one question at one price.

    Args:
        by: Columns of the key.
        price: Of a release, for a unit.
        delta: Likewise.
        keys_per_unit: For how many keys a unit counts at most.
        at_least: No key of fewer units is found.
        longest: Bytes of one text.
        public: Keys that are known from the start.
        never: Keys that are not published.
        where: SQL condition; records of which it is not true do not count.
        neighbours: Relation of one unit.
        counted: What a count is a number of.
        window: How many batches a question is asked about.

    Privacy: let a unit be in the batch and not in its neighbour. Within the bound it holds a keys
    that are not known and b known ones, a + b ≤ k: the bound looks at that unit and at public facts
    alone (`sql.question`). So a numbers of units rise by one, each of which a coin reads, and
    b counts, each of which gets noise; every coin and every count is drawn by itself, so the unit
    loses what `Selection.event` says. Known keys follow from earlier releases; given any of them
    this holds, so releases compose. A text that is drawn and not published is dropped by the text
    alone, which is post-processing.
    """

    by: tuple[str, ...]
    price: Price
    delta: Fraction
    keys_per_unit: int = 1
    at_least: int = 5
    longest: int = 64
    public: tuple[Key, ...] = ()
    never: frozenset[Key] = frozenset()
    where: str | None = None
    neighbours: Neighbours = "add-remove"
    counted: str = "records"
    window: int = 1

    name: ClassVar[str] = "keys"

    @property
    def columns(self) -> tuple[Column, ...]:
        """The key, the batch in which it was found, and its count."""
        of, unit = "smoothed", self.counted
        return (
            *(Column(name, "text", "label") for name in self.by),
            Column("found", "text", "origin"),
            *([Column("batches", "integer", "batch")] if self.window > 1 else []),
            Column("count", "integer", "value", unit),
            Column("lower", "integer", "lower", unit, about="count", level=LEVEL),
            Column("upper", "integer", "upper", unit, about="count", level=LEVEL),
            Column("smoothed", "number", "estimate", unit, about="count"),
            Column("smoothed_lower", "number", "lower", unit, about=of, level=LEVEL),
            Column("smoothed_upper", "number", "upper", unit, about=of, level=LEVEL),
            Column("flag", "text", "state"),
        )

    @property
    def selection(self) -> Selection:
        """Coins for keys that are not known, and noise for counts of those that are."""
        return selection_at(
            self.price,
            self.delta,
            self.keys_per_unit,
            self.at_least,
            substitute=self.neighbours == "substitute",
        )

    def signature(self) -> Json:
        """Columns and condition: at another price what is known stays known."""
        return {"by": list(self.by), "where": self.where}

    def init(self) -> Json:
        """No key was found."""
        return {"found": {}, "series": [], "window": self.window}

    def plan(self, state: Json, batch: Batch) -> Plan:
        """The question about known and other keys, and the price of coins and counts together."""
        before: dict[str, str] = state["found"]
        public = key_texts(self.public)
        found = before | {text: "" for text in public if text not in before}
        known = zip(keys_of(found), found.values(), strict=True)
        kept = {key: first for key, first in known if key not in self.never}
        selection = self.selection
        mechanism = KeysPlan(
            tuple(kept),
            tuple(kept.values()),
            self._series(state),
            batch.key,
            None if self.window > 1 else _weekday(batch),
            selection,
        )
        query = KeyQuery(self.by, tuple(kept), self.at_least, self.longest, self.where)
        about = {"mechanism": "keys", "at_least": self.at_least, "relation": self.neighbours}
        return Plan(query, sequence([], **about), mechanism, selection.event())

    def draw(self, plan: Plan, statistic: KeyCounts, entropy: Entropy) -> Outcome:
        """A row for each known key, and one for each key that is found.

        Privacy: `neighbours` of one unit, the price of `Plan.unit_event`, see above. Keys are drawn
        in the order of their texts, so nothing follows from an engine's order of rows.
        """
        mechanism: KeysPlan = plan.mechanism
        known = set(mechanism.known)
        counts = mechanism.selection.noise.draw(
            (statistic.units.get(key, 0) for key in mechanism.known), entropy
        )
        apart = known | self.never
        others = [key for key in statistic.units if key not in apart]
        others.sort(key=itemgetter(0) if len(self.by) == 1 else None)
        units = np.array([statistic.units[key] for key in others], dtype=np.int64)
        heads = np.flatnonzero(mechanism.selection.found(units, entropy)).tolist()
        drawn = [others[place] for place in heads]
        new = tuple(key for key in drawn if publishable(key, self.longest))
        found = self._following(mechanism, mechanism.selection.noise, counts, new)
        return Outcome(found.rows, found)

    def learn(self, state: Json, plan: Plan, outcome: Outcome) -> Json:
        """What is known for ever, and what was learned of its counts."""
        return outcome.auxiliary.state

    def measured(self, plan: Plan, outcome: Outcome) -> tuple[Measurement, ...]:
        """Return the noisy counts of known keys, and the keys that were found.

        Privacy: outputs of the noise and of the coins of `draw`; texts that may not be published
        are dropped by themselves alone.
        """
        drawn: DrawnKeys = outcome.auxiliary
        given = {
            "known": list(map(list, plan.mechanism.known)),
            "found": list(map(list, drawn.new)),
        }
        terms = MeasurementTerms(
            "found",
            self.signature(),
            noise=law_of(plan.mechanism.selection.noise),
            relation=self.neighbours,
            mechanism={
                "delta": str(self.delta),
                "at_least": self.at_least,
                "window": self.window,
            },
        )
        return (Measurement(terms, numbers=drawn.counts, given=given),)

    def replayed(self, state: Json, batch: Batch, measurements: tuple[Measurement, ...]) -> Json:
        """Return the state after a release that was measured so; None if it teaches nothing."""
        for each in measurements:
            terms, law = each.terms, each.terms.noise
            if terms.form == "found" and terms.question == self.signature() and law is not None:
                known, new = (tuple(map(tuple, each.given[name])) for name in ("known", "found"))
                before = tuple(state["found"].get(text, "") for text in key_texts(known))
                weekday = None if self.window > 1 else _weekday(batch)
                told = Known(known, before, self._series(state), batch.key, weekday)
                after = self._following(told, noise_of(law), each.numbers, new).state
                alike = terms.mechanism["window"] == self.window
                return after if alike else {**after, "series": state["series"]}
        return None

    def publish(self, state: Json, outcome: Outcome) -> Outcome:
        """The rows as they were drawn: each release holds all that is known."""
        return Outcome(outcome.rows)

    def lessons(self, history: History) -> Sequence[Lesson]:
        """Return when keys were found."""
        batches: dict[str, int] = {}
        for batch in history.state["found"].values():
            batches[batch] = batches.get(batch, 0) + 1
        rows: list[Row] = [{"batch": "public", "keys": len(self.public)}]
        rows += [{"batch": batch, "keys": keys} for batch, keys in batches.items() if batch]
        return (
            Lesson(
                "When keys were found",
                "A key is known from the batch in which it was found, and costs nothing more to be"
                f" found. Of a key that {self.selection.half} {self.counted} hold, the chance to be"
                " found in a batch is one half.",
                tuple(rows[-60:]),
            ),
        )

    def _following(
        self, known: Known, noise: Noise, counts: Sequence[int], new: tuple[Key, ...]
    ) -> DrawnKeys:
        """What follows from noisy counts and keys that were found: rows, and the next state."""
        states, rows, reach = list[Json](), list[Row](), noise.reach(LEVEL)
        for place, start in enumerate(range(0, len(known.known), TOGETHER)):
            part = slice(start, start + TOGETHER)
            keys, found, noisy = known.known[part], known.found[part], counts[part]
            before = known.series[place] if place < len(known.series) else {}
            with np.errstate(all="ignore"):
                after, told = counted(("",), before, noise, noisy, keys, known.weekday)
            states.append(after)
            for i, (key, first, count) in enumerate(zip(keys, found, noisy, strict=True)):
                row: Row = {
                    **dict(zip(self.by, key, strict=True)),
                    "found": first or None,
                    **self._asked(),
                    "count": count,
                    "lower": count - reach,
                    "upper": count + reach,
                    "smoothed": float(told.smoothed[i]),
                    "smoothed_lower": float(told.smoothed_lower[i]),
                    "smoothed_upper": float(told.smoothed_upper[i]),
                    "flag": QUIET if told.smoothed_lower[i] < 1 else None,
                }
                rows.append(row)
        rows += self._new(new, known.batch)
        found_in = dict(zip(key_texts(known.known), known.found, strict=True))
        found_in |= dict.fromkeys(key_texts(new), known.batch)
        state = {"found": found_in, "series": states, "window": self.window}
        return DrawnKeys(state, tuple(rows), tuple(counts), new)

    def _series(self, state: Json) -> tuple[Json, ...]:
        """What was learned of counts; nothing where they were of other windows."""
        return tuple(state["series"]) if state["window"] == self.window else ()

    def _new(self, keys: Sequence[Key], batch: str) -> Iterator[Row]:
        """What is said of keys that were found: their numbers of units are not."""
        about: dict[str, str | int | None] = dict.fromkeys(each.name for each in self.columns)
        about |= {**self._asked(), "found": batch, "flag": NEW}
        for key in keys:
            yield about | dict(zip(self.by, key, strict=True))

    def _asked(self) -> dict[str, int]:
        """How many batches a count is of, where it is not one."""
        return {"batches": self.window} if self.window > 1 else {}


_in_lines = json.JSONEncoder(ensure_ascii=False, separators=("\n", ":")).encode


def key_texts(keys: Sequence[Key]) -> list[str]:
    r"""Keys as a state names them, each as a JSON list of its texts.

    All texts are written at once, one a line, since each by itself takes longer: JSON has no line
    end within a text.

    >>> key_texts([("UA", "Zürich"), ('"', "")])
    ['["UA", "Zürich"]', '["\\"", ""]']
    """
    if not keys:
        return []
    texts = _in_lines([text for key in keys for text in key])[1:-1].split("\n")
    alike = [iter(texts)] * len(keys[0])
    return [f"[{', '.join(each)}]" for each in zip(*alike, strict=True)]


def keys_of(texts: Iterable[str]) -> list[Key]:
    """The keys that a state names; all are read at once, since each by itself takes longer."""
    return list(map(tuple, json.loads(f"[{','.join(texts)}]")))


def _weekday(batch: Batch) -> int | None:
    """Weekday of a batch, 0 to 6; None where it is no window of time."""
    if batch.start is None:
        return None
    return datetime.fromtimestamp(batch.start, UTC).weekday()
