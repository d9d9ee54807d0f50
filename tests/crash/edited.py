"""Installations of the newer kinds, and edits of their configurations."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamdp.types import Json

_HEAD = """
store: {{path: store.db, anchor: vault/anchor}}
privacy: {{unit: {unit}, neighbours: add-remove, caps: {caps}}}
sources:
  stream:
    path: ../../stream.csv
    types: {{at: timestamp, x: number}}
    batches: {{column: at, every: 1d, start: 2023-11-15}}
sinks:
  file: {{kind: jsonl, path: out.jsonl}}
log: {{path: streamdp.log}}
releases:
"""

_RULE = """kind: selection, score: {errors: note = 'a'},
     among: {sql: "x >= {t}", t: {from: 0, to: 3}}"""

_PURE = {
    "rows": "kind: statistics, measures: {all: count, notes: {histogram: note, values: [a, b]}}",
    "by_note": "kind: statistics, by: note, groups: [a, b], measures: {rows: count}",
    "middle": """kind: quantiles, column: x, quantiles: [0.5], resolution: 1, bounds: [0, 100],
     expected_rows: 4, rows_from: {job: rows, measure: all}""",
    "tested": """kind: workload, expected_rows: 4000, choose: online, tolerance: 0.9,
     dimensions: {note: {values: [a, b]}, size: {column: x, cuts: [0, 50]}}""",
    "rule": f"{_RULE}, gate: {{test: {{kind: error, above: 0.01}}, epsilon: 4, horizon: 3}}",
    "counted": """kind: statistics, measures: {all: count},
     gate: {test: {kind: count, measure: all, absolute: 1}, epsilon: 4, horizon: 3}""",
    "followed": """kind: experts, expected_rows: 4, experts: {loss: "abs(x - {value}) / 100",
     forecasts: {middle: {job: middle, row: {quantile: 0.5}}, all: {job: rows}}}""",
}
_ALONE = """
gates:
  many: {source: stream, test: {kind: count, where: x > 50, above: 1}, sinks: [file],
    epsilon: 4, horizon: 3}
"""
_RHO = {
    "noisy": """kind: statistics, measures: {rows: count,
     mean: {mean: x, resolution: 1, bounds: [0, 100]}}""",
    "by_note": "kind: statistics, by: note, groups: [a, b], measures: {rows: count}",
    "weighed": """kind: workload, expected_rows: 20,
     dimensions: {note: {values: [a, b]}, size: {column: x, cuts: [0, 50]}}""",
}


@dataclass(frozen=True, slots=True)
class World:
    """What is configured at first, and what its caps allow.

    Args:
        config: Text of the configuration.
        batch: Event of the most that may ever be drawn of one batch.
        lifetime: The same of all batches.
        rows: Records of one unit that count.
    """

    config: str
    batch: Json
    lifetime: Json
    rows: int = 1


def _releases(asked: dict[str, str], price: str) -> str:
    return "".join(
        f"  {name}:\n    {{source: stream, {price}, sinks: [file],\n     {text}}}\n"
        for name, text in asked.items()
    )


WORLDS = (
    World(
        _HEAD.format(unit="visit", caps="{batch: 14, lifetime: 150}")
        + _releases(_PURE, "epsilon: 0.2")
        + _ALONE,
        {"type": "pure", "epsilon": "14"},
        {"type": "pure", "epsilon": "150"},
    ),
    World(
        _HEAD.format(
            unit="{name: person, column: who, rows: 3}",
            caps="{batch: {rho: 0.3}, lifetime: {rho: 0.8}}",
        )
        + _releases(_RHO, "rho: 0.06")
        + _releases({"rule": _RULE}, "epsilon: 0.3"),
        {"type": "zero-concentrated", "rho": "0.3"},
        {"type": "zero-concentrated", "rho": "0.8"},
        3,
    ),
)
"""Gates and pure prices; prices in rho and units of three records."""

Edit = Callable[[Any, random.Random], None]


def _price(said: Any, chance: random.Random) -> None:
    for release in said["releases"].values():
        for measure in {"epsilon", "rho"} & set(release):
            release[measure] = chance.choice((0.05, 0.1, 0.25))


def _measure(said: Any, chance: random.Random) -> None:
    release = said["releases"]["by_note"]
    was = release.pop("epsilon", None)
    release["rho" if was else "epsilon"] = 0.05 if was else release.pop("rho")


def _where(said: Any, chance: random.Random) -> None:
    for release in said["releases"].values():
        release["where"] = f"x > {chance.randint(0, 9)}"


def _groups(said: Any, chance: random.Random) -> None:
    said["releases"]["by_note"]["groups"] = chance.sample(["a", "b", "c", "d"], 3)


def _kind(said: Any, chance: random.Random) -> None:
    """The name of one kind, and what it has learned, are taken over by another."""
    releases = said["releases"]
    other = "tested" if "tested" in releases else "weighed"
    releases[other], releases["by_note"] = releases["by_note"], releases[other]


def _choose(said: Any, chance: random.Random) -> None:
    said["releases"]["tested"] |= {"choose": "public"}
    del said["releases"]["tested"]["tolerance"]


def _job(said: Any, chance: random.Random) -> None:
    """A job that is copied under a new name pays from what is left."""
    releases = said["releases"]
    releases[f"copy{chance.randint(0, 10**9)}"] = dict(releases["by_note"])


def _gate(said: Any, chance: random.Random) -> None:
    gate = said["releases"]["counted"]["gate"]
    gate |= {"epsilon": chance.choice((3, 5)), "horizon": chance.randint(2, 5)}
    gate["test"]["absolute"] = chance.randint(1, 9)


def _caps(said: Any, chance: random.Random) -> None:
    """Refused: an edit raises no cap."""
    caps = said["privacy"]["caps"]
    of_rho = isinstance(caps["lifetime"], dict)
    caps["lifetime"] = {"rho": 90} if of_rho else 90


def _unit(said: Any, chance: random.Random) -> None:
    """Refused: who is protected is said once."""
    said["privacy"]["unit"] = {"name": "person", "column": "note", "rows": 2}


def _source(said: Any, chance: random.Random) -> None:
    """Refused: the same records under another name have the budget that they had."""
    said["sources"]["again"] = said["sources"].pop("stream")
    for task in (*said["releases"].values(), *said.get("gates", {}).values()):
        task["source"] = "again"


EDITS: tuple[Edit, ...] = (
    *(_price, _measure, _where, _groups, _kind, _choose, _job, _gate, _caps, _unit, _source),
)
"""What an operator does between lives: what is refused is undone, and nothing gives more."""
