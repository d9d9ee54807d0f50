"""The lines of an anchor: how they are written, and what they say when they are read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from streamdp.errors import IntegrityError
from streamdp.privacy.amounts import Losses
from streamdp.types import Json

FORMAT = "streamdp-anchor-1"
"""First word of an anchor; behind it stands the identity of its store."""

SHARED = 2
"""Mark of a batch against which the charge before counts too: of a window of batches, or one that
was assumed for many together."""

_DIGITS = 16
_FOLLOWS, _REBOUND, _ASSUMES = 1, 2, 4
_BITS = _FOLLOWS | _REBOUND | _ASSUMES
_TAIL = 1 << 14
"""Bytes at the end of an anchor that hold its last two lines, but for a line of many charges."""


LOST = (
    "if it is lost, `streamdp anchor adopt --operator NAME --reason TEXT` shows the most that may"
    " have been spent since this store was written, charges it, and goes on"
)
"""The way out, for messages."""


class NewerAnchorError(IntegrityError):
    """A line that hangs in its chain says what this version does not know."""


class State(NamedTuple):
    """State of a store: its epoch, and number and hash of its last ledger row."""

    epoch: int
    seq: int
    digest: str

    @classmethod
    def of(cls, epoch: int, seq: int, digest: str) -> Self:
        """A state with as much of the hash as the anchor keeps."""
        return cls(epoch, seq, digest[:_DIGITS])


class Spending(NamedTuple):
    """A charge as the anchor keeps it.

    Args:
        scope: Whose budget.
        batch: Whose records; empty for a run, which is charged for all that will join it.
        epsilon_nano: Amount in units of 1e-9; None where there is no pure loss.
        rho_nano: The same in zero-concentrated differential privacy.
        joined: 1 if the amount is that of a run, counted against one more batch; `SHARED` if it is
            that of the last charge before.
        start: First second of the batch's window; None if it is none of time.
        end: Second after its last.
        delta_atto: The chance to lose more, in units of 1e-18.
    """

    scope: str
    batch: str
    epsilon_nano: int | None
    rho_nano: int
    joined: int = 0
    start: int | None = None
    end: int | None = None
    delta_atto: int = 0

    @property
    def losses(self) -> Losses:
        """Amounts of this charge; zero where it only shares those of the charge before."""
        if self.joined == SHARED:
            return 0, 0, 0
        return self.epsilon_nano, self.rho_nano, self.delta_atto

    @property
    def words(self) -> tuple[Json, ...]:
        """Words of the charge, without those at its end that say nothing."""
        if self.delta_atto:
            return tuple(self)
        if self.start is not None:
            return self[:-1]
        return self[:-3] if self.joined else self[:-4]


@dataclass(frozen=True, slots=True)
class Line:
    """One intent.

    Args:
        follows: Whether the line before was committed.
        rebound: Whether the store was bound to the anchor here, wherever the line before ended.
        base: State of the store before.
        target: State after.
        spent: Charges between the two; if the store was bound here, those that the ledger had and
            the anchor had not.
        assumes: Whether the store was bound here and they are charged here too.
    """

    follows: bool
    rebound: bool
    base: State
    target: State
    spent: tuple[Spending, ...] = ()
    assumes: bool = False


def read(path: Path) -> Iterator[Line]:
    """Lines of an anchor, oldest first; a torn last one is left out.

    Raises:
        IntegrityError: It is gone, or a line was changed, removed or added by other hands.
    """
    try:
        with path.open("rb") as file:
            yield from (line for _, _, line in scan(path, file) if isinstance(line, Line))
    except OSError:
        raise missing(path) from None


def is_readable(path: Path) -> bool:
    """Whether an anchor is there, holds more than its beginning, and is unaltered.

    Raises:
        NewerAnchorError: This version does not know all of its words.
    """
    try:
        return path.exists() and sum(1 for _ in read(path)) > 0
    except NewerAnchorError:
        raise
    except IntegrityError:
        return False


def missing(path: Path) -> IntegrityError:
    """The error for an anchor that is missing."""
    return IntegrityError(
        "the anchor of this store is not there, or cannot be read",
        where=str(path),
        hint=f"is its volume mounted? {LOST}",
    )


def scan(path: Path, file: BinaryIO) -> Iterator[tuple[str, int, Line | str]]:
    """Each line, the check it ends in, and the bytes up to its end; the first is an identity.

    Raises:
        IntegrityError: A line was changed, removed or added by other hands.
        NewerAnchorError: A line is whole, and of a later version.
    """
    check, size = "", 0
    line: Line | None = None
    for number, text in enumerate(file, start=1):
        if not text.endswith(b"\n"):
            return
        try:
            *word, _ = json.loads(text)
            check, expected = sealed(check, word)
        except (ValueError, TypeError):
            expected = b""
        if expected != text:
            raise IntegrityError(
                f"the anchor was altered at line {number}",
                where=str(path),
                hint=f"bring back an unaltered copy of it; {LOST}",
                line=number,
            )
        try:
            if number == 1:
                found: Line | str = _identity(*word)
            else:
                found = line = _line(word, line)
        except (ValueError, TypeError, IndexError, AttributeError):
            raise NewerAnchorError(
                f"a newer streamdp has written line {number} of the anchor",
                where=str(path),
                hint="install that version or a later one: this one cannot tell what was spent",
                line=number,
            ) from None
        size += len(text)
        yield check, size, found


def newest_target(path: Path) -> State | None:
    """State that the last line names, read from the end of the file.

    None if that line is torn, altered, too long or of a later version: `scan` says which.
    """
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _TAIL, 0))
            *_, before, last, rest = file.read().split(b"\n")
        _, check, _ = before.rsplit(b'"', 2)
        *word, _ = json.loads(last)
        if rest or sealed(check.decode(), word)[1] != last + b"\n":
            return None
        target = State(*word[1:4])
        return _line(word, Line(True, False, target, target)).target
    except (OSError, ValueError, TypeError, IndexError):
        return None


def _identity(form: str, store_id: str) -> str:
    if form != FORMAT:
        raise ValueError
    return store_id


def _line(word: Json, before: Line | None) -> Line:
    """A line from its words: bits, epoch, number, hash, then a base if rebound, then charges."""
    bits, *target = word[:4]
    if bits & ~_BITS:
        raise ValueError
    follows, rebound, rest = bool(bits & _FOLLOWS), bool(bits & _REBOUND), word[4:]
    if rebound:
        base, rest = State(*rest[0]), rest[1:]
    elif before is None:
        raise ValueError
    else:
        base = before.target if follows else before.base
    spent = tuple(Spending(*each) for each in rest)
    return Line(follows, rebound, base, State(*target), spent, bool(bits & _ASSUMES))


def words(line: Line) -> Json:
    """Words of a line; `scan` reads them back."""
    bits = _FOLLOWS * line.follows | _REBOUND * line.rebound | _ASSUMES * line.assumes
    spent = [each.words for each in line.spent]
    return [bits, *line.target, *([line.base] if line.rebound else []), *spent]


def sealed(check: str, word: Json) -> tuple[str, bytes]:
    """The next check of the chain, and the line that ends in it."""
    text = json.dumps(word, separators=(",", ":"))
    check = hashlib.sha256(f"{check}{text}".encode()).hexdigest()[:_DIGITS]
    return check, f'{text[:-1]},"{check}"]\n'.encode()
