"""The anchor: an append-only file that knows of every charge before the ledger does.

A ledger alone cannot tell that it is an old copy of itself. The anchor can; it should live on
another volume. It is written, and on the disk, before each transaction that adds rows to the
ledger commits, and again before a committed release is handed to a sink.

A *state* of a store is its epoch, and number and hash of its last ledger row. A line of the anchor
is an intent: from state `base` to state `target`, with the charges between. The base of a line is
the target of the line before if that one was committed, else that one's base; one bit says which.
A line whose target is its base confirms that the line before was committed. The lines hang
together in a hash chain of their own.

The order is: insert ledger rows, append the line, fsync, COMMIT (durable when it returns). So only
the transaction of the last line can be missing from the ledger:

* A crash while the line is written leaves it torn, without its newline. Its transaction is not
  committed: the store stands at the target of the line before. Ordinary.
* A crash between line and COMMIT: the store stands at the base of the last line. Ordinary; charges
  of that line are charged and burnt, so that nothing rests on what their process got to see.
* A crash after COMMIT: the store stands at the target of the last line. Ordinary.
* A COMMIT that fails while its process lives, as on a full disk: nothing was spent, no data was
  read, and the next line starts from the same base.

Every other state is refused. A store that was restored, cut or cloned stands at neither, unless it
is behind by one line that was never confirmed, and then nothing is lost that counts: if that line
is a charge, its release was not committed (there would be a line more), and it is burnt; if it is
a commit, its release reached no sink (there would be a confirmation), and its charge stands open
in the ledger, hence is burnt. Not found out is a store that was put back together with its anchor.

Here too: whether a ledger and its anchor agree, and how they differ.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from streamdp.database import Database
from streamdp.disk import keep_private, lock, open_file, sync
from streamdp.errors import IntegrityError, LockedError, StoreError
from streamdp.privacy.amounts import Losses, total_text
from streamdp.store.database import snapshot
from streamdp.store.ledger import chain, ledger
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


class StoreState(NamedTuple):
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
class AnchorLine:
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
    base: StoreState
    target: StoreState
    spent: tuple[Spending, ...] = ()
    assumes: bool = False


def read(path: Path) -> Iterator[AnchorLine]:
    """Lines of an anchor, oldest first; a torn last one is left out.

    Raises:
        IntegrityError: It is gone, or a line was changed, removed or added by other hands.
    """
    try:
        with path.open("rb") as file:
            yield from (line for _, _, line in scan(path, file) if isinstance(line, AnchorLine))
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


def scan(path: Path, file: BinaryIO) -> Iterator[tuple[str, int, AnchorLine | str]]:
    """Each line, the check it ends in, and the bytes up to its end; the first is an identity.

    Raises:
        IntegrityError: A line was changed, removed or added by other hands.
        NewerAnchorError: A line is whole, and of a later version.
    """
    check, size = "", 0
    line: AnchorLine | None = None
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
                found: AnchorLine | str = _identity(*word)
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


def newest_target(path: Path) -> StoreState | None:
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
        target = StoreState(*word[1:4])
        return _line(word, AnchorLine(True, False, target, target)).target
    except (OSError, ValueError, TypeError, IndexError):
        return None


def _identity(form: str, store_id: str) -> str:
    if form != FORMAT:
        raise ValueError
    return store_id


def _line(word: Json, before: AnchorLine | None) -> AnchorLine:
    """A line from its words: bits, epoch, number, hash, then a base if rebound, then charges."""
    bits, *target = word[:4]
    if bits & ~_BITS:
        raise ValueError
    follows, rebound, rest = bool(bits & _FOLLOWS), bool(bits & _REBOUND), word[4:]
    if rebound:
        base, rest = StoreState(*rest[0]), rest[1:]
    elif before is None:
        raise ValueError
    else:
        base = before.target if follows else before.base
    spent = tuple(Spending(*each) for each in rest)
    return AnchorLine(follows, rebound, base, StoreState(*target), spent, bool(bits & _ASSUMES))


def words(line: AnchorLine) -> Json:
    """Words of a line; `scan` reads them back."""
    bits = _FOLLOWS * line.follows | _REBOUND * line.rebound | _ASSUMES * line.assumes
    spent = [each.words for each in line.spent]
    return [bits, *line.target, *([line.base] if line.rebound else []), *spent]


def sealed(check: str, word: Json) -> tuple[str, bytes]:
    """The next check of the chain, and the line that ends in it."""
    text = json.dumps(word, separators=(",", ":"))
    check = hashlib.sha256(f"{check}{text}".encode()).hexdigest()[:_DIGITS]
    return check, f'{text[:-1]},"{check}"]\n'.encode()


_LONGEST = 1 << 20
_PATIENCE, _PAUSE = 2.0, 0.05


def default_anchor(store: Path) -> Path:
    """Path of the anchor beside the store, whatever link the store is reached by."""
    store = store.resolve()
    return store.with_name(store.name + ".anchor")


ONE_VOLUME = (
    "store and anchor are on one volume: who loses it loses both, and a copy of the store cannot"
    " tell what was spent since; store.anchor names another place"
)
"""The warning about a default that is there to try streamdp, in words."""


RECONCILE = "`streamdp reconcile --assume-spent --operator NAME --reason TEXT`"
"""The whole command that hints name: with fewer options it is refused."""


def on_one_volume(store: Path, anchor: Path) -> bool:
    """Whether the folders of store and anchor are on one device, hence are lost together."""
    try:
        return store.resolve().parent.stat().st_dev == anchor.resolve().parent.stat().st_dev
    except OSError:
        return False


def start_of(base: StoreState) -> StoreState:
    """State of a store before its first ledger row."""
    return StoreState.of(base.epoch, 0, "0" * 64)


class Anchor:
    """The anchor of one store, written by one process at a time.

    Args:
        path: Of the file.
        file: Its descriptor, opened for appending.
    """

    def __init__(self, path: Path, file: int) -> None:
        self.path, self._file = path, file
        self.store_id: str | None = None
        self.last: AnchorLine | None = None
        self._check, self._size = "", 0

    @classmethod
    def open(cls, path: Path, *, create: bool = False) -> Self:
        """Read it to the end; a torn last line is cut off by the next append.

        Raises:
            IntegrityError: It was altered, or is not there and was not to be made.
            StoreError: It cannot be used.
        """
        anchor = cls(path, _opened(path, os.O_CREAT if create else 0))
        try:
            anchor._read()
        except BaseException:
            anchor.close()
            raise
        return anchor

    def _read(self) -> None:
        with self.path.open("rb") as file:
            for check, size, found in scan(self.path, file):
                self._check, self._size = check, size
                if isinstance(found, str):
                    self.store_id = found
                else:
                    self.last = found
        if self.last is None:
            self.store_id, self._check, self._size = None, "", 0

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def begin(
        self, store_id: str, past: Sequence[tuple[StoreState, Spending]], base: StoreState
    ) -> None:
        """Write the store's identity, a line for each past charge, and the store's state.

        A beginning that a crash has cut off is written to its end.

        Raises:
            StoreError: It cannot be written.
        """
        start, done = start_of(base), self.last.target.seq if self.last else 0
        head = (
            [] if self.last else [[FORMAT, store_id], words(AnchorLine(True, True, start, start))]
        )
        lines = [
            *(AnchorLine(True, False, at, at, (spent,)) for at, spent in past if at.seq > done),
            AnchorLine(True, False, base, base),
        ]
        self._append(*head, *map(words, lines))
        try:
            sync(self.path.parent)
        except OSError as error:
            raise _unusable(self.path, error) from None
        self.store_id, self.last = store_id, lines[-1]

    def intend(self, base: StoreState, target: StoreState, spent: Sequence[Spending] = ()) -> None:
        """Write what is about to be committed.

        Raises:
            IntegrityError: The store does not stand where this anchor left it.
            LockedError: Another process wrote to it.
            StoreError: It cannot be written; nothing may be committed.
        """
        if self.last is None or base not in (self.last.target, self.last.base):
            raise IntegrityError(
                "the ledger was written without its anchor",
                where=str(self.path),
                hint="end all processes that use the store; the next start says how they differ",
            )
        self._write(AnchorLine(base == self.last.target, False, base, target, tuple(spent)))

    def confirm(self, state: StoreState) -> None:
        """Write that the last intent was committed, unless that is known."""
        if self.last is None or not self.last.base == self.last.target == state:
            self.intend(state, state)

    def rebind(self, base: StoreState, target: StoreState, spent: Sequence[Spending]) -> None:
        """Go on from a state that does not follow; `spent` is what this anchor did not know."""
        last = self.last
        unfinished = last is not None and last.rebound and not last.assumes and last.base == base
        self._write(AnchorLine(not unfinished, True, base, target, tuple(spent)))

    def assume(self, base: StoreState, target: StoreState, spent: Sequence[Spending]) -> None:
        """Go on from a state that does not follow; `spent` is charged between it and the target."""
        self._write(AnchorLine(True, True, base, target, tuple(spent), assumes=True))

    def _write(self, line: AnchorLine) -> None:
        self._append(words(line), last=line)

    def _append(self, *lines: Json, last: AnchorLine | None = None) -> None:
        """Write lines and wait for the disk; all of them or, as far as can be, none.

        What is in the file and what is known of it change together: memory may run out anywhere.
        """
        check, text = self._check, b""
        for word in lines:
            check, line = sealed(check, word)
            text += line
        after = check, self._size + len(text), last or self.last
        with _alone(self.path, self._file):
            self._require_mine()
            try:
                if os.write(self._file, text) != len(text):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(self._file)
                self._check, self._size, self.last = after
            except OSError as error:
                self._cut()
                raise _unusable(self.path, error) from None
            except BaseException:
                self._cut()
                raise

    def _cut(self) -> None:
        """Leave out what was not written to its end."""
        try:  # noqa: SIM105  a context would want memory
            os.ftruncate(self._file, self._size)
        except OSError:
            pass

    def _require_mine(self) -> None:
        """Refuse a file that was replaced, cut, or written to by others; cut off a torn line."""
        end = f'"{self._check}"]\n'.encode() if self._size else b""
        try:
            here, held = self.path.stat(), os.fstat(self._file)
            tail = os.pread(self._file, _LONGEST, self._size - len(end))
            whole = tail[len(end) :].count(b"\n") - (self.last is None)
            if tail != end and tail.startswith(end) and whole <= 0:
                os.ftruncate(self._file, self._size)
                tail = end
        except OSError as error:
            raise _unusable(self.path, error) from None
        if (here.st_dev, here.st_ino) != (held.st_dev, held.st_ino) or not tail.startswith(end):
            raise IntegrityError("the anchor was replaced or cut", where=str(self.path))
        if tail != end:
            raise _shared(self.path)


def _opened(path: Path, flags: int) -> int:
    try:
        file = open_file(path, os.O_RDWR | os.O_APPEND | flags)
        keep_private(file)
    except FileNotFoundError as error:
        raise _unusable(path, error) if flags & os.O_CREAT else missing(path) from None
    except OSError as error:
        raise _unusable(path, error) from None
    return file


@contextlib.contextmanager
def _alone(path: Path, file: int) -> Iterator[None]:
    """Keep other writers out while a line is written: two copies of a store may share a file."""
    try:
        lock(file, _PATIENCE, _PAUSE)
    except OSError:
        raise _shared(path) from None
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _shared(path: Path) -> LockedError:
    return LockedError(
        "another process writes to the anchor of this store",
        where=str(path),
        hint="there is one store for one anchor: stop the other, or this one",
    )


def _unusable(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"the anchor cannot be used: {error.strerror}",
        where=str(path),
        hint="its folder is not there: make it, or mount its volume; store.anchor names it"
        if not path.parent.is_dir()
        else "nothing is charged without it: look at its volume, free space and permissions",
    )


@dataclass(frozen=True, slots=True)
class Difference:
    """How ledger and anchor differ.

    Args:
        common: Last ledger row that both know.
        ledger_seq: Last row of the ledger.
        anchor: State the anchor was left at.
        missing: Charges that the anchor knows and the ledger does not.
        unknown: Charges that the ledger knows and the anchor does not.
    """

    common: int
    ledger_seq: int
    anchor: StoreState
    missing: tuple[Spending, ...]
    unknown: tuple[Spending, ...]

    def totals(self) -> dict[str, str]:
        """What is missing of each source, as one amount in words."""
        sums: dict[str, list[Losses]] = {}
        for spent in self.missing:
            sums.setdefault(spent.scope, []).append(spent.losses)
        return {scope: total_text(losses) for scope, losses in sums.items()}


def state_of(database: Database) -> StoreState:
    """State of the store."""
    (epoch,) = database.execute("SELECT epoch FROM instance").fetchone()
    return StoreState.of(epoch, *chain.head(database))


def charges_after(database: Database, seq: int) -> tuple[Spending, ...]:
    """Charges of the ledger behind a row, as the anchor keeps them."""
    return tuple(Spending(*charge) for _, _, *charge in ledger.charges_after(database, seq))


def history(database: Database) -> list[tuple[StoreState, Spending]]:
    """All charges of the ledger, and its state after each, for an anchor begun later."""
    (epoch,) = database.execute("SELECT epoch FROM instance").fetchone()
    rows = ledger.charges_after(database, 0)
    return [(StoreState.of(epoch, seq, digest), Spending(*charge)) for seq, digest, *charge in rows]


def difference(database: Database, anchor: Path) -> Difference:
    """Compare line by line.

    A line counts as committed unless the next one says that it was not: whatever is not known to
    be unspent is spent.

    Raises:
        IntegrityError: The anchor was altered.
    """
    rows = {seq: StoreState.of(0, seq, digest).digest for seq, digest in chain.hashes(database)}
    missing: list[Spending] = []
    open_spent: tuple[Spending, ...] = ()
    common, target = 0, StoreState.of(0, 0, "")
    for line in read(anchor):
        if line.follows:
            missing += open_spent
        open_spent, target = line.spent, line.target
        bound = line.rebound and not line.assumes
        if bound and rows.get(line.base.seq) == line.base.digest:
            open_spent = ()
        if rows.get(target.seq) == target.digest:
            common, open_spent = target.seq, ()
            missing.clear()
    return Difference(
        common,
        len(rows) - 1,
        target,
        (*missing, *open_spent),
        charges_after(database, common),
    )


def require_agreement(database: Database, anchor: Path) -> None:
    """Require that the last line of the anchor is the state of the store, with the same charges.

    A daemon may work meanwhile: it has then written further lines, and the store has moved on too.

    Raises:
        IntegrityError: They differ.
    """
    with snapshot(database):
        state, spent = state_of(database), ledger.spent_by_scope(database)
    known, agrees = Counter[tuple[str, str]](), None
    line = None
    for following in read(anchor):
        known.update(_sums(line.spent if line and following.follows else ()))
        line = following
        if line.target == state:
            agrees = known + _sums(line.spent)
    at_end = line is not None and state in (line.target, line.base)
    if agrees is None or not (at_end or state_of(database) != state):
        raise refusal(difference(database, anchor), state, anchor)
    if agrees != spent:
        raise IntegrityError("ledger and anchor add up to different charges", where=str(anchor))


def require_same_end(database: Database, anchor: Path) -> None:
    """Require that the anchor's last line is the state of the store; reads all of it if it is not.

    Raises:
        IntegrityError: They differ.
    """
    if newest_target(anchor) != state_of(database):
        require_agreement(database, anchor)


def _sums(spent: Iterable[Spending]) -> Counter[tuple[str, str]]:
    """Lifetime spending of scopes, as `ledger.spent_by_scope` adds it up.

    A run that joins a batch was charged before.
    """
    sums: Counter[tuple[str, str]] = Counter()
    for each in spent:
        if not each.joined:
            sums[each.scope, "epsilon"] += each.epsilon_nano or 0
            sums[each.scope, "rho"] += each.rho_nano
            sums[each.scope, "delta"] += each.delta_atto
            sums[each.scope, "without"] += each.epsilon_nano is None
    return sums


def is_older(found: Difference, store: StoreState) -> bool:
    """Whether an anchor knows of nothing beyond the store, and lacks what the store did last.

    Whoever put it back may have put the store back too: what was spent since nobody knows.
    """
    ahead = found.ledger_seq > found.common
    copied = store.epoch < found.anchor.epoch and not ahead
    return not (found.missing or found.anchor.seq > found.common or copied)


def refusal(found: Difference, store: StoreState, anchor: Path) -> IntegrityError:
    """The error for a store whose state is not that of its anchor."""
    at, known = (
        f"the ledger ends at row {found.ledger_seq}",
        f"its anchor at row {found.anchor.seq}",
    )
    if not is_older(found, store):
        what = "was restored from a backup, copied, or cut"
        if found.ledger_seq > found.common:
            what = f"and the anchor part ways after row {found.common}: one of two copies"
        lost = total_text(charge.losses for charge in found.missing)
        return IntegrityError(
            f"{at}, {known}: this store {what}; the anchor knows charges of {lost} more",
            where=str(anchor),
            hint=f"bring the newest store back, or {RECONCILE} charges what is missing",
            ledger_seq=found.ledger_seq,
            anchor_seq=found.anchor.seq,
        )
    return IntegrityError(
        f"{at}, {known}: the anchor is older than the store",
        where=str(anchor),
        hint=f"bring the newest anchor back; {LOST}",
        ledger_seq=found.ledger_seq,
        anchor_seq=found.anchor.seq,
    )
