"""Specification of a release kind (section, checks, builder, accuracy), and those there are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from streamdp.errors import InternalError
from streamdp.kinds.section import CheckContext, GroupsFrom, Problem, ReleaseSection
from streamdp.registry import Registry
from streamdp.types import CellCounts, CellQuery, Format, Neighbours, ReleaseKind, Row, Rows

if TYPE_CHECKING:
    from streamdp.gates.questions.section import CountTable
    from streamdp.kinds.rules.rules import RuleErrors
    from streamdp.kinds.section import Group
    from streamdp.kinds.selection.candidates import BestScore
    from streamdp.kinds.study import Study
    from streamdp.privacy.price import Price
    from streamdp.sections.dialects import Dialect


class PublicData(Protocol):
    """Reads public files: of nobody's records, so for nothing."""

    def counts(self, path: str, format: Format | None, query: CellQuery) -> CellCounts:
        """Rows of a file by cell.

        Raises:
            SourceError: It cannot be read.
        """
        ...

    def numbers(
        self, path: str, format: Format | None, key: str, columns: Sequence[str]
    ) -> Mapping[str, tuple[float, ...]]:
        """Numbers of each key of a table; NaN where a value is no number.

        Raises:
            SourceError: It cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class BuildContext:
    """Inputs of a release kind's builder besides its section.

    Args:
        neighbours: Relation of one record.
        rows: The most records of one unit that count.
        groups: How many disjoint groups the release has; this kind is made for one of them.
        dialect: Of the engine that reads expressions.
        public: Reads public files.
        zone: Time zone of the source's batches, whose clocks show parts of a time.
        counted: What a number of records is a number of: those of a unit beyond `rows` are left
            out.
        unit: Name of a unit.
    """

    neighbours: Neighbours
    rows: int
    groups: int
    dialect: Dialect
    public: PublicData
    zone: str = "UTC"
    counted: str = "records"
    unit: str = "unit"

    def epsilon_of_record(self, section: ReleaseSection) -> Fraction:
        """Most that draws may cost one record: a unit has `rows` of them and pays the epsilon."""
        return section.pure_price / self.rows

    def price_of_record(self, section: ReleaseSection) -> Price:
        """Most that draws may cost one record, of a kind that may be paid in rho."""
        return section.price.of_record(self.rows)


class Accuracy(Protocol):
    """Expected error of a release, from public facts alone."""

    def expected(self, kind: Any) -> Mapping[str, float | None]:
        """Expected errors by what they are called; None where too little is known."""
        ...

    def price_for(self, kind: Any, error: float) -> Price | None:
        """Price for one record, in the measure of the kind, at which the first error is so small.

        None if no price is known that is enough.
        """
        ...


@runtime_checkable
class Simulates(Protocol):
    """An `Accuracy` that simulates, which takes a while."""

    def simulates(self, kind: Any) -> bool:
        """Whether there is anything to simulate."""
        ...

    def key(self, kind: Any) -> Hashable:
        """Key of its figures, equal where they are equal."""
        ...


@runtime_checkable
class InUnit(Protocol):
    """An `Accuracy` that tells errors in the unit of what is released, and prices for them."""

    def prices_for(self, kind: Any, error: float) -> Mapping[str, Price | None]:
        """Price for one record at which each part of a release is so near, by its name.

        None where no price is known that is enough.
        """
        ...


RowCount = Callable[[Sequence[Row]], Rows]
"""From a release's rows to the records that each group is known to have, by group."""


class LeftOut(NamedTuple):
    """The share of records that a bound on those of a unit leaves out, with an interval."""

    share: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class KindSpec:
    """A release kind, as the registry holds it.

    Args:
        name: `kind` in the configuration.
        section: Its keys; the common ones are inherited.
        check: What does not hang together in a section; the common keys are checked already.
        build: The kind for one group of records, at the price of one record.
        accuracy: What error to expect; None if nobody can say.
        cells: The question of cells that gates of a release may test; None if they may not.
        counts: The tables of counts that gates of a release may test, by name; None as `cells`.
        rules: The rules that a release names one of, for gates that test its errors; None if it
            names none.
        scored: The candidates whose best score gates of a release may follow; None as `cells`.
        rows: Reads how many records a batch has off a release's rows, by the name of a measure;
            None if the kind counts no records, or a measure does not.
        expects_rows: Whether kinds have a method `expecting`, and so may be told of such counts.
        study: Makes what simulations need; None if the kind cannot be simulated.
        pools_groups: Whether `build` makes the kind for all groups of a section together, because
            it learns across them; else it is made for one, and `grouped` wraps it.
        left_out: Reads off a section and a release's rows which share of the records each bound on
            those of a unit leaves out; None if the kind never tells.
        ask: Answers a question, as text, from a section and the rows of one release (of one
            group), for nothing: a dataclass of facts. None if releases cannot be asked.
        groups: Reads off a section and the rows of one release the groups that others ask for; None
            if the kind finds none.
        no_periods: Says of a built kind (that of one group) why no period of its releases can be
            answered, None where one may be; None if periods of all releases of the kind may be.
    """

    name: str
    section: type[ReleaseSection]
    check: Callable[[Any, CheckContext], Iterable[Problem]]
    build: Callable[[Any, BuildContext], ReleaseKind]
    accuracy: Accuracy | None = None
    cells: Callable[[Any, Dialect], CellQuery] | None = None
    study: Callable[[], Study] | None = None
    counts: Callable[[Any, Dialect], Mapping[str, CountTable]] | None = None
    rows: Callable[[Any, str], RowCount | None] | None = None
    expects_rows: bool = False
    rules: Callable[[Any, Dialect], RuleErrors | None] | None = None
    scored: Callable[[Any, Dialect], BestScore] | None = None
    pools_groups: bool = False
    left_out: Callable[[Any, Sequence[Row]], Mapping[int, LeftOut]] | None = None
    ask: Callable[[Any, Sequence[Row], str], Any] | None = None
    groups: Callable[[Any, GroupsFrom, Sequence[Row]], tuple[Group, ...]] | None = None
    no_periods: Callable[[Any], str | None] | None = None


OWN = {
    "quantiles": "streamdp.kinds.quantiles.spec:SPEC",
    "statistics": "streamdp.kinds.statistics.spec:SPEC",
    "workload": "streamdp.kinds.workload.spec:SPEC",
    "selection": "streamdp.kinds.selection.spec:SPEC",
    "experts": "streamdp.kinds.experts.spec:SPEC",
    "keys": "streamdp.kinds.keys.spec:SPEC",
}
"""Kinds of streamdp; other packages offer a `KindSpec` in the group `streamdp.kinds`."""


def _spec(name: str, offer: Any) -> KindSpec | None:
    return offer if isinstance(offer, KindSpec) and offer.name == name else None


KINDS: Registry[KindSpec] = Registry("streamdp.kinds", "release kind", OWN, _spec)


def spec_of(section: ReleaseSection) -> KindSpec:
    """Specification of the kind of a section that was loaded."""
    spec = KINDS.find(section.kind)
    if spec is None:
        raise InternalError(f"there is no release kind {section.kind!r}")
    return spec
