"""One release of data in memory: charged to a ledger, drawn as the daemon draws.

Its arguments are the keys of its section in a configuration, checked by the same code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from streamdp import wiring
from streamdp.config import Configuration
from streamdp.config.loader import validated
from streamdp.config.privacy import Privacy
from streamdp.engine.draw import finish, get_ready
from streamdp.engine.release import new_release_id, redact_errors
from streamdp.errors import ConfigurationError
from streamdp.kinds.charging import UnitCharging
from streamdp.library.ledger import Amount, Ledger
from streamdp.library.table import Table, table_of
from streamdp.privacy.amounts import NANO
from streamdp.privacy.draws import OperatingSystemEntropy
from streamdp.sections.document import Document, Path
from streamdp.types import Batch, Charge, Column, Entropy, Json, Learned, ReleaseKind, Row

NAME, SOURCE = "release", "data"
"""Names of the one release and the one source."""

NOWHERE = "/dev/null"
"""Folder of paths that are no files: a release from memory reads and writes none."""

_BELONGS = ("source", "schedule", "gate", "sinks")
"""Common keys of a section that say when the daemon releases, of what, and where to."""


@dataclass(frozen=True, slots=True)
class Arguments(Document):
    """A configuration that was made of arguments: errors name these, not lines of a file."""

    def where(self, path: Path) -> str:
        """The argument that a value is in: `release(prior.learner)`."""
        inside = path[2:] if path[:1] == ("releases",) else path
        return f"release({'.'.join(map(str, inside))})"


def configured(options: Mapping[str, Any], privacy: Privacy) -> Configuration:
    """A configuration with the one release that the options are the section of.

    Args:
        options: Keys and values as they would stand in YAML; tuples are lists.
        privacy: Unit and relation.

    Raises:
        ConfigurationError: As `config.load`.
    """
    for name in _BELONGS:
        if name in options:
            raise ConfigurationError(
                "this belongs to a configuration: a release from memory is made at once",
                where=f"release({name})",
                hint="leave it out, or let the daemon make the release",
            )
    if "delta" in options:
        raise ConfigurationError(
            "this release has a delta, and a ledger in memory has no cap on it",
            where="release(delta)",
            hint="let the daemon make the release",
        )
    section = {"source": SOURCE} | {name: _plain(value) for name, value in options.items()}
    value = {
        "store": {"path": f"{NOWHERE}/store.db"},
        "privacy": privacy,
        "sources": {SOURCE: {"path": f"{NOWHERE}/data.arrow", "batches": "files"}},
        "releases": {NAME: section},
    }
    document = Arguments("release", value, dict.fromkeys(_paths(value), (1, 1)), path=NOWHERE)
    return validated(document, FilePath.cwd() / NAME)


def _plain(value: Any) -> Json:
    """A value as YAML would hold it; a fraction as the text of it."""
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, Fraction | FilePath):
        return str(value)
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    inside: Any = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    for name, each in inside:
        yield from _paths(each, (*path, name))


@dataclass(frozen=True, slots=True)
class Released:
    """A release.

    Args:
        id: A name that no other release has.
        kind: What was published.
        batch: Public key of the data.
        charge: What it cost.
        rows: What was published.
        columns: Of the rows.
        learned: What the next release of the same section can learn from; see `previous`.
    """

    id: str
    kind: str
    batch: str
    charge: Charge = field(repr=False)
    rows: tuple[Row, ...]
    columns: tuple[Column, ...] = field(repr=False)
    learned: Learned = field(repr=False)

    @property
    def epsilon(self) -> float | None:
        """Pure loss that it cost; `charge.epsilon_nano` is the exact amount in 1e-9.

        None where it has none, as at a price in rho.
        """
        nano = self.charge.epsilon_nano
        return None if nano is None else nano / NANO

    @property
    def rho(self) -> float:
        """Zero-concentrated loss that it cost; `charge.rho_nano` is the exact amount in 1e-9."""
        return self.charge.rho_nano / NANO

    @property
    def table(self) -> Table:
        """The rows as a table."""
        here = {name for row in self.rows for name in row}
        kinds = {each.name: each.type for each in self.columns if each.name in here}
        return table_of(self.rows, {**kinds})

    def _repr_html_(self) -> str:
        """The rows, for a notebook."""
        return self.table._repr_html_()


def release(
    data: Any,
    *,
    kind: str,
    epsilon: Amount | None = None,
    rho: Amount | None = None,
    ledger: Ledger,
    previous: Released | None = None,
    batch: str = "1",
    **options: Any,
) -> Released:
    """Release a statistic of data in memory, paid for by a ledger.

    The options are the keys of a release in the configuration, and are checked as they are there.

    Args:
        data: A DuckDB relation, a data frame or Arrow table, a mapping from names to arrays, or one
            array, which is the column that the option `column` names (or `x`). One row must be one
            record.
        kind: Any registered release kind.
        epsilon: Price of the release to a unit of the ledger.
        rho: Zero-concentrated price, in place of epsilon; of kinds with Gaussian noise, under a
            ledger with `rho` or with `epsilon` and `delta`.
        ledger: Pays, before the data are read.
        previous: The release before this one, of the same section: what was learned with it is the
            prior of this one.
        batch: Public key of the data, such as its date; features of the calendar follow from it.
        options: Further keys of the section.

    Privacy: the charge is fixed from public facts and spent before a record is read. The data reach
    `draw` alone; `learn` has no data argument. The relation and the unit are the ledger's. Types of
    columns are taken for public.

    Raises:
        ConfigurationError: An option is wrong, or `previous` is of another section; nothing was
            spent.
        BudgetExhaustedError: The ledger refuses; nothing was spent or read.
        SourceError: The data lack a column or have another type, and nothing was spent; or they
            could not be read after all, and the charge stays spent.
        InternalError: Anything else; if it was charged it stays spent.

    >>> import numpy as np
    >>> ledger, last = Ledger(epsilon=1), None
    >>> for day in range(2):
    ...     last = release(
    ...         np.arange(900.0) % 100, kind="quantiles", column="x", quantiles="quartiles",
    ...         resolution=1, bounds=[0, 99], expected_rows=900, epsilon=0.1, ledger=ledger,
    ...         previous=last,
    ...     )
    >>> len(last.rows), last.epsilon, ledger
    (3, 0.1, Ledger(0.2 of 1 epsilon spent))
    """
    return draw_release(
        data,
        {"kind": kind, **_price(epsilon, rho), **options},
        ledger,
        previous,
        batch,
        OperatingSystemEntropy(),
    )


def _price(epsilon: Amount | None, rho: Amount | None) -> dict[str, Amount]:
    prices = {"epsilon": epsilon, "rho": rho}
    return {name: price for name, price in prices.items() if price is not None}


def draw_release(
    data: Any,
    options: dict[str, Any],
    ledger: Ledger,
    previous: Released | None,
    batch: str,
    entropy: Entropy,
) -> Released:
    """Release, with the entropy passed in; see `release`."""
    configuration = configured(options, ledger.privacy)
    kind = wiring.release_kind(configuration, NAME)
    charging = UnitCharging(ledger.privacy.unit.bound())
    learned, here = _learned(kind, previous), Batch(SOURCE, batch)
    with redact_errors(entropy):
        ready = get_ready(kind, learned, here, charging)
        from streamdp.backends.duckdb.records import backend_of_records

        backend = backend_of_records(data, str(options.get("column", "x")))
        backend.check(ready.query, here)
        release_id = new_release_id(entropy)
    number = ledger.spend(ready.charge, kind.name)
    with redact_errors(entropy):
        done = finish(ready, backend.answer(ready.query, here), entropy)
    ledger.settle(number)
    rows, learned = done.published.rows, done.learned
    return Released(release_id, kind.name, batch, ready.charge, rows, kind.columns, learned)


def _learned(kind: ReleaseKind, previous: Released | None) -> Learned:
    """State after the release before.

    Raises:
        ConfigurationError: It was learned about something else.
    """
    signature = kind.signature()
    if previous is None:
        return Learned(0, signature, kind.init())
    if previous.kind != kind.name or previous.learned.signature != signature:
        raise ConfigurationError(
            "the previous release is of another section: what was learned with it is about"
            " something else",
            where="release(previous)",
            hint="give the same options, epsilon and batch apart; or leave previous out",
        )
    return previous.learned
