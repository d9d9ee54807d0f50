"""Races: two daemons on one store, with its lock and without, and threads at the last charge."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial

from streamdp.daemon import runtime
from streamdp.errors import BudgetExhaustedError, LockedError, StoreError, StreamdpError
from streamdp.privacy.filters import Caps
from streamdp.store.database import connect, transaction
from streamdp.store.ledger import chain, ledger
from streamdp.store.sqlite import SqliteStore
from streamdp.types import Batch, Charge
from tests.children import leave_behind
from tests.crash import tracer
from tests.crash.home import Home, folder
from tests.store.kept import batch_spent, terms

UNIT = 1000


def pair(template: Home, *, locked: bool) -> list[str]:
    """Two daemons start at once: no charge twice, none lost, and who is late says why.

    Args:
        template: What both work on.
        locked: Whether the lock keeps one out; without it the epoch in each transaction must.
    """
    with folder() as place:
        home = template.copy(place / "home")
        codes = together([partial(home.live, seed) for seed in "ab"], locked=locked)
        wrong = [] if set(codes) <= {0, LockedError.exit_code} else [f"exit codes {codes}"]
        if locked and 0 not in codes:
            wrong.append("both were refused")
        last = tracer.live(lambda: home.live("last", rounds=2))
        if last.status != 0:
            what = f"the next life ends with {last.status} after exit codes {codes}"
            return [*wrong, f"{what}: {last.trouble}"]
        burnt = sum("burn" in row for row in home.facts()["ledger"])
        if locked and burnt:
            wrong.append(f"{burnt} charges burnt by a race that the lock decides")
        return [*wrong, *home.broken()]


def together(works: list[Callable[[], object]], *, locked: bool) -> list[int]:
    """Run each work in a process of its own, all from one shot; returns their exit codes."""
    ready, start = os.pipe(), os.pipe()
    children = [_runner(work, ready[1], start[0], locked=locked) for work in works]
    for _ in children:
        os.read(ready[0], 1)
    os.write(start[1], b"x" * len(children))
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    for end in (*ready, *start):
        os.close(end)
    return codes


def _runner(work: Callable[[], object], ready: int, start: int, *, locked: bool) -> int:
    child = os.fork()
    if child:
        return child
    code = tracer.FOREIGN
    try:
        leave_behind()
        if not locked:
            vars(runtime)["store_lock"] = lambda store: nullcontext()
        os.write(ready, b"x")
        os.read(start, 1)
        work()
        code = 0
    except StreamdpError as error:
        code = error.exit_code
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
    raise AssertionError


def last_unit(threads: int) -> Iterator[str]:
    """Many threads ask for the one charge that is left: one of them gets it."""
    with folder() as place:
        path = place / "store.db"
        store = SqliteStore.open(path, 0)
        store.declare(terms(Caps(UNIT, UNIT)), 0)
        store.close()
        won: list[int] = []
        foreign: list[str] = []
        barrier = threading.Barrier(threads)

        def ask(number: int) -> None:
            own = connect(path)
            barrier.wait()
            try:
                with transaction(own):
                    charge = Charge({"type": "pure", "epsilon": "1e-6"}, UNIT, 1)
                    ledger.reserve(own, "s", "j", Batch("s", "b"), charge, 0)
                won.append(number)
            except (BudgetExhaustedError, StoreError):
                pass
            except Exception as error:  # noqa: BLE001
                foreign.append(f"a foreign {type(error).__name__}")
            finally:
                own.close()

        crowd = [threading.Thread(target=ask, args=(number,)) for number in range(threads)]
        for thread in crowd:
            thread.start()
        for thread in crowd:
            thread.join()
        yield from foreign
        if len(won) != 1:
            yield f"{len(won)} of {threads} threads got the one charge that was left"
        database = connect(path)
        if batch_spent(database, "b") != UNIT:
            yield "the ledger does not hold the one charge"
        try:
            chain.verify(database)
        except StreamdpError as error:
            yield str(error)
        database.close()
