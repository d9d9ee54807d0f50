"""Which batches a gate is due for, and which of its jobs release one."""

from __future__ import annotations

from collections.abc import Iterable

from streamdp.engine.gate import Gate
from streamdp.engine.job import Job
from streamdp.engine.protocols import Store
from streamdp.types import Batch


def due_of_gate(gate: Gate, store: Store, batches: Iterable[Batch]) -> list[Batch]:
    """Batches that have arrived without an answer, and accepted ones that a job has to release.

    The first batch that the first job releases, it releases unasked.
    """
    source = gate.source.name
    answers = store.gates.answers(gate.name, source)
    released = [store.released_batches(job.name, source) for job in gate.jobs]

    def waits(key: str) -> bool:
        if key in answers:
            return answers[key] and not all(key in done for done in released)
        return not (released and key in released[0])

    return [batch for batch in batches if waits(batch.key)]


def unasked(gate: Gate, store: Store) -> tuple[Job, ...]:
    """Jobs without any release; their first one needs no answer of the gate."""
    return tuple(job for job in gate.jobs if store.last_release(job.name) is None)


def must_ask(gate: Gate, store: Store) -> bool:
    """Whether the gate must be asked: its first job has a release, or it has no jobs."""
    return not gate.jobs or store.last_release(gate.jobs[0].name) is not None
