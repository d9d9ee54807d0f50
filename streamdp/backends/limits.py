"""What one question may take, fixed in the configuration: so known before a charge is spent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """None leaves it to the engine.

    Args:
        memory: Bytes.
        seconds: From asking to the answer.
        threads: Of an engine that runs in this process.
    """

    memory: int | None = None
    seconds: int | None = None
    threads: int | None = None


NO_LIMITS = Limits()
