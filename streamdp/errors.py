"""One base error: what happened, where, and what to do; never a value from the data.

Every error that reaches a person is a `StreamdpError`. Its `fields` are public facts only
(names from the configuration, identifiers, ledger amounts), so it may be logged as it is.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import ClassVar


class StreamdpError(Exception):
    """Base of all errors that are shown to a person.

    Args:
        what: One sentence that says what went wrong.
        where: Place of the cause, e.g. ``config.yaml:12:5 releases.air_time.epsilon``.
        hint: What to do about it.
        fields: Public facts for the log.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(
        self, what: str, *, where: str = "", hint: str = "", **fields: str | int | None
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint
        self.fields = fields

    @property
    def line(self) -> str:
        """All of it in one line, for a log, a table or an alert."""
        return " ".join("; ".join(filter(None, (self._head, self.hint))).split())

    @property
    def _head(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what

    def __str__(self) -> str:
        lines = [self._head]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class ConfigurationError(StreamdpError):
    """The configuration cannot be used; nothing was touched."""

    code = "configuration"
    exit_code = 2


class QuestionError(ConfigurationError):
    """A question that nothing which was measured answers; nothing was touched."""

    code = "question"


class BudgetExhaustedError(StreamdpError):
    """A cap refuses the charge; nothing was drawn."""

    code = "budget-exhausted"
    exit_code = 3


class LockedError(StreamdpError):
    """Another daemon works on this store."""

    code = "locked"
    exit_code = 5


class IntegrityError(StreamdpError):
    """The store is not what it was left as; nothing is released from it."""

    code = "integrity"
    exit_code = 6


class SourceError(StreamdpError):
    """A source or its engine failed. The engine's own text is dropped: it quotes rows."""

    code = "source"


class WaitingError(StreamdpError):
    """A batch waits for what another job has not released yet; nothing was spent."""

    code = "waiting"


class TooSlowError(SourceError):
    """A question took longer than it may."""

    code = "timeout"


class SourceLockedError(SourceError):
    """Another session holds a lock on what is read."""

    code = "source-locked"


class UnreachableError(SourceError):
    """A server does not answer, or went away."""

    code = "unreachable"


class AuthenticationError(SourceError):
    """A server does not admit the user of a source."""

    code = "authentication"


class PermissionDeniedError(SourceError):
    """The user of a source may not read it."""

    code = "permission"


class MissingColumnError(SourceError):
    """A source lacks a column that the configuration names."""

    code = "missing-column"


class InternalError(StreamdpError):
    """A mistake in streamdp. Its own text is dropped: it may quote what was computed with."""

    code = "internal"


class OutOfMemoryError(StreamdpError):
    """The process has no more memory; a charge whose release it ends is burnt."""

    code = "memory"


MORE_MEMORY = "give the process more memory, or lower engine.memory of its sources"
"""Advice that is shown with the error."""


@contextmanager
def told_of_memory() -> Iterator[None]:
    """Say in our words that there is no more memory.

    Raises:
        OutOfMemoryError: There is none.
    """
    try:
        yield
    except (MemoryError, OSError, ImportError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        raise OutOfMemoryError("there is not enough memory", hint=MORE_MEMORY) from None


def lacks_memory(error: Exception) -> bool:
    """Whether an error is the system's or a loader's word for no memory."""
    said = str(error).lower()
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or (isinstance(error, ImportError) and ("allocate" in said or "map segment" in said))
        or (isinstance(error, RuntimeError) and "start new thread" in said)
    )


class AlteredBatchError(StreamdpError):
    """A batch is not the one that was ingested under its key."""

    code = "batch-altered"


class SinkError(StreamdpError):
    """A sink did not take a release; the outbox keeps it."""

    code = "sink"


class RefusedError(SinkError):
    """A receiver will never take this delivery; it waits for a person, not for another attempt."""


class ClockError(StreamdpError):
    """The clock is further ahead than the store will follow; nothing was sealed or spent."""

    code = "clock"


class StoreError(StreamdpError):
    """The store cannot be read or written."""

    code = "store"


def require_extra(module: str, extra: str, where: str) -> None:
    """Refuse an adapter whose library is missing.

    Raises:
        ConfigurationError: Says what to install.
    """
    if find_spec(module) is None:
        raise ConfigurationError(
            f"this needs the package {module}",
            where=where,
            hint=f"pip install 'streamdp[{extra}]'",
        )
