"""What a workload has learned: which hypothesis about the next batch leads, and by how much.

From learned states alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamdp.kinds.workload.fitting.hypotheses import BIAS
from streamdp.kinds.workload.fitting.state import from_json
from streamdp.types import History, Lesson

if TYPE_CHECKING:
    from streamdp.kinds.workload.kind import WorkloadRelease

MEANINGS = (
    ("uniform", "nothing repeats: all cells of an axis are alike"),
    ("slow", "the running average of past releases"),
    ("last", "the release before"),
)


def lessons(kind: WorkloadRelease, history: History) -> Iterator[Lesson]:
    """Return what past releases taught a workload."""
    memory = from_json(history.state, kind.mechanism.workload)
    if not kind.learns or not memory.releases:
        return
    ahead = [each + bias for each, bias in zip(memory.evidence, BIAS.tolist(), strict=True)]
    leading = memory.leading()
    yield Lesson(
        "What the next batch is taken to be like",
        "Each noisy count that is released is a test of all three. Evidence is in nats behind the"
        " best, with a head start of the running average. The leader is what answers start from;"
        " the first counts of a batch may overrule it.",
        tuple(
            {
                "hypothesis": name,
                "evidence": round(nats - max(ahead), 3),
                "leads": "yes" if place == leading else "",
                "meaning": meaning,
            }
            for place, ((name, meaning), nats) in enumerate(zip(MEANINGS, ahead, strict=True))
        ),
    )
    shares = memory.concentration.of_items(kind.mechanism.workload).tolist()
    yield Lesson(
        "How concentrated the items are",
        "0 where the records of an item are spread evenly, more where few cells hold most: what is"
        " concentrated is measured first.",
        tuple(
            {"item": name, "concentration": float(f"{share:.4g}")}
            for name, share in zip(kind.names, shares, strict=True)
        ),
    )
    yield Lesson(
        "How many records the next batch is expected to have",
        "The running average of the totals that releases showed.",
        ({"records": round(memory.total, 1), "releases": memory.releases},),
    )
