"""Questions about a job that its measurements answer, at no price.

Linear algebra has one thread while an answer is computed; whoever calls keeps as many as before.
Matrices of answers have some hundred rows: several threads wait for each other longer than they
compute. A command says so before NumPy is loaded; in a notebook NumPy is loaded already, and the
threads are those of all that is computed there.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import numpy as np

from streamdp.answers.job import DAY, Answer, Group, Measured, counts_records, mean, summed
from streamdp.answers.periods import AROUND, Period, Step, every, period
from streamdp.answers.tables import Part
from streamdp.database import Database
from streamdp.errors import QuestionError
from streamdp.kinds.axes import condition, described, labels
from streamdp.library.table import Table, table_of
from streamdp.reports.releases.sentences import change_said
from streamdp.sinks.columns import Kind
from streamdp.store.measurements import batches_span, select_measurements
from streamdp.store.reading.browse import newest_releases
from streamdp.types import Column, Json

_PLACES = (("numpy", "numpy.libs"), ("numpy", "numpy/.dylibs"), ("scipy", "scipy.libs"))
_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads")

_lock = threading.Lock()
_before: list[int] = []
_inside = 0


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread; as a decorator too. Blocks of several threads end with the last.

    Of the OpenBLAS that wheels of NumPy and SciPy bring; others are left as they are.
    """
    global _inside, _before  # noqa: PLW0603
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = [get() for get, _ in libraries()]
            for _, set_ in libraries():
                set_(1)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                for (_, set_), threads in zip(libraries(), _before, strict=True):
                    set_(threads)


@cache
def libraries() -> tuple[tuple[Callable[[], int], Callable[[int], None]], ...]:
    """How to ask each OpenBLAS that is loaded for its number of threads, and how to set it."""
    import numpy as np  # noqa: F401
    import scipy.linalg  # noqa: F401

    found = []
    for package, folder in _PLACES:
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            continue
        for path in sorted((Path(spec.origin).parents[1] / folder).glob("libscipy_openblas*")):
            try:
                library = ctypes.CDLL(str(path), mode=getattr(os, "RTLD_NOLOAD", 0))
            except OSError:
                continue
            for name in _NAMES:
                get, set_ = (getattr(library, name.format(each), None) for each in ("get", "set"))
                if get is not None and set_ is not None:
                    found.append((get, set_))
    return tuple(found)


NEXT = "next"
"""The period that is the batch after the last one."""

ALL = "all"
"""The period of all batches, of which those without counts are left out."""

MOVED = "all deciles together"

MOST_BINS = 200
"""Bins of a histogram, at most: one takes as long as a share."""

_KINDS: dict[str, Kind] = {
    "period": "text",
    "question": "text",
    "value": "number",
    "lower": "number",
    "upper": "number",
    "unit": "text",
    "batches": "integer",
    "left_out": "integer",
    "spent": "number",
}
_OF_CHANGES: dict[str, Kind] = {
    "question": "text",
    "before": "number",
    "after": "number",
    "change": "number",
    "lower": "number",
    "upper": "number",
    "unit": "text",
    "records_differ": "number",
    "process_rose": "number",
    "process_changed": "number",
    "said": "text",
    "spent": "number",
}


@dataclass(frozen=True)
class Ask:
    """Questions about the batches of a job: answered from what was paid for, so free.

    Each answer is a table with one row a period: `value`, the ends of its 95 % interval, how many
    `batches` it is made of, how many more were `left_out` as nothing was counted of them, and what
    was `spent`: nothing. `unit` is that of the value, if one is
    known: a share has none.

    Args:
        measured: The releases.
        zone: Whose days, weeks and months are meant.
        span: First and last second of all batches of the job, and the longest batch.
        columns: Of its newest release, which say units.

    Privacy: post-processing of releases; reads no data, charges nothing, writes nothing.
    """

    measured: Measured = field(repr=False)
    zone: str = "UTC"
    span: tuple[int, int, int] | None = None
    columns: tuple[Column, ...] = ()

    @one_thread()
    def quantile(
        self,
        quantile: float,
        over: str = "all",
        *,
        every: Step | None = None,
        group: Sequence[str] = (),
        where: str = "",
        partial: bool = False,
    ) -> Table:
        """A quantile of all records of a period; over `next`: of the batch that comes.

        Without a group it is that of all groups together.

        Args:
            quantile: Between 0 and 1.
            over: `2013-06-03`, `2013-W22`, `2013-06`, `2013-Q2`, `2013`, `A..B`, `28d`, `all`.
            every: One answer for each day, week, month... of that.
            group: Of the job's groups.
            where: Only groups that meet this condition over their columns.
            partial: Whether batches may be missing.

        Raises:
            QuestionError: It was not measured; the reason is said.
        """
        _require_quantile(quantile)
        name = f"quantile {quantile:g}"
        if over == NEXT:
            if where:
                raise QuestionError(
                    "a forecast is of one group", hint="name it with group, without a condition"
                )
            found = self.measured.distribution(tuple(group)).next(quantile, self._following())
            return _table([_row(NEXT, name, found, self._unit())])
        of = self.measured.united(self._groups(group, where))
        return self._each(
            over,
            every,
            self._named(name, group, where),
            partial,
            lambda places, partial: of.quantile(quantile, places, partial),
            self._unit(),
        )

    @one_thread()
    def share(
        self,
        *,
        above: float | None = None,
        up_to: float | None = None,
        over: str = "all",
        every: Step | None = None,
        group: Sequence[str] = (),
        where: str = "",
        partial: bool = False,
    ) -> Table:
        """The share of records above a value, up to a value, or between: above < x <= up_to.

        Without a group it is that of all groups together, or of those that meet `where`.
        """
        if above is None and up_to is None:
            raise QuestionError("a share is above a value, up to one, or between two")
        _require_finite(each for each in (above, up_to) if each is not None)
        if above is not None and up_to is not None and above >= up_to:
            raise QuestionError(f"nothing is above {above:g} and up to {up_to:g}")
        of = self.measured.united(self._groups(group, where))
        return self._each(
            over,
            every,
            self._named(f"share {_range(above, up_to, self._unit())}", group, where),
            partial,
            lambda places, partial: of.share(above, up_to, places, partial),
        )

    @one_thread()
    def histogram(
        self,
        cuts: Sequence[float] | int = 10,
        over: str = "all",
        *,
        group: Sequence[str] = (),
        partial: bool = False,
    ) -> Table:
        """The share of records in each bin between cuts, or in about so many bins."""
        if not 1 <= (cuts if isinstance(cuts, int) else len(cuts)) <= MOST_BINS:
            raise QuestionError(f"a histogram has 1 to {MOST_BINS} bins, or as many cuts")
        if not isinstance(cuts, int):
            _require_finite(cuts)
        whole = self._period(over)
        places = self.measured.within(whole, partial)
        of = self.measured.distribution(tuple(group))
        own = of.of(places, partial or over == ALL)
        ends = of.ranges(cuts, own) if isinstance(cuts, int) else tuple(sorted(set(cuts)))
        rows = []
        for low, high in zip((None, *ends), (*ends, None), strict=True):
            found = of.share(low, high, own)
            name = f"share {_range(low, high, self._unit())}"
            rows.append(_row(whole.name, name, found, left_out=len(places) - len(own)))
        return _table(rows)

    @one_thread()
    def records(
        self,
        over: str = "all",
        *,
        every: Step | None = None,
        group: Sequence[str] = (),
        where: str = "",
        partial: bool = False,
    ) -> Table:
        """The number of records; without a group that of all groups together.

        A job of quantiles counts the records that have a value of its column.

        Args:
            over: A period.
            every: One answer for each day, week, month... of that.
            group: Of the job's groups.
            where: Only records that meet this condition over the axes of a workload and the
                columns of groups: `=`, `<>`, `IN`, `<` and `>=` at a cut, `AND`, `OR`, `NOT`.
            partial: Whether batches may be missing.

        Raises:
            QuestionError: It was not measured; the reason is said.
        """
        met = self._met(group, where)
        return self._each(
            over,
            every,
            self._named(self._counted(), group, where),
            partial,
            lambda places, partial: self._records(places, met, partial),
            "records",
        )

    @one_thread()
    def total(
        self,
        measure: str,
        over: str = "all",
        *,
        every: Step | None = None,
        group: Sequence[str] = (),
        where: str = "",
        partial: bool = False,
    ) -> Table:
        """The total of a measure `count` or `sum` of statistics."""
        groups = self._groups(group, where)
        return self._each(
            over,
            every,
            self._named(f"total {measure}", group, where),
            partial,
            lambda places, _: self._total(measure, places, groups),
            self._unit(measure),
        )

    @one_thread()
    def mean(
        self,
        measure: str,
        over: str = "all",
        *,
        per: str = "",
        every: Step | None = None,
        group: Sequence[str] = (),
        where: str = "",
        partial: bool = False,
    ) -> Table:
        """The mean of all records of a period, of a measure `mean` of statistics.

        Args:
            measure: A measure `mean`; or, with `per`, one that is divided.
            over: A period.
            per: A measure `count`: the total of a measure `sum` over it; of two counts, a share.
            every: One answer for each day, week, month... of that.
            group: Of the job's groups.
            where: Only groups that meet this condition over their columns.
            partial: Whether batches may be missing.

        Raises:
            QuestionError: It was not measured, or there may be hardly any records.
        """
        groups = self._groups(group, where)

        def answer(places: tuple[int, ...], _: bool) -> Answer:
            if not per:
                return self.measured.mean(measure, places, groups)
            return mean(self._total(measure, places, groups), self._total(per, places, groups))

        return self._each(
            over,
            every,
            self._named(f"mean {measure}" + (f" of {per}" if per else ""), group, where),
            partial,
            answer,
            "" if self.measured.is_count(measure) else self._unit(measure),
        )

    @one_thread()
    def compare(
        self,
        before: str,
        after: str,
        *,
        quantile: float = 0.5,
        group: Sequence[str] = (),
        partial: bool = False,
    ) -> Table:
        """How a quantile, and all deciles together, differ between two periods.

        `records_differ` is the probability that the records of the periods differ, and
        `process_rose` that what makes them rose: days that are alike differ too. Each period is
        judged by its own counts, and not by those of days around it.
        """
        _require_quantile(quantile)
        first, second = self._period(before), self._period(after)
        one, all_ = self.measured.change(first, second, quantile, tuple(group), partial)
        rows = []
        for name, found in ((f"quantile {quantile:g}", one), (MOVED, all_)):
            by = found.change, found.lower, found.upper
            rows.append(
                {
                    "question": name,
                    "before": found.before if name != MOVED else None,
                    "after": found.after if name != MOVED else None,
                    "change": found.change,
                    "lower": found.lower,
                    "upper": found.upper,
                    "unit": self._unit(),
                    "records_differ": found.differ,
                    "process_rose": found.rose,
                    "process_changed": found.changed,
                    "said": change_said(name, *by, self._unit(), found.differ, found.rose),
                    "spent": 0.0,
                }
            )
        return table_of(rows, _OF_CHANGES)

    def _each(
        self,
        over: str,
        step: Step | None,
        name: str,
        partial: bool,
        answer: Callable[[tuple[int, ...], bool], Answer],
        unit: str = "",
    ) -> Table:
        if step is not None and step not in get_args(Step):
            raise QuestionError(f"every {step} is no period", hint=", ".join(get_args(Step)))
        whole = self._period(over)
        periods = (whole,) if step is None else every(step, whole, self.zone)
        if not periods:
            raise QuestionError(f"no whole {step} lies in {over}")
        rows = []
        for each in periods:
            try:
                places = self.measured.within(each, partial)
                found = answer(places, partial or over == ALL)
            except QuestionError as error:
                if step is None:
                    raise
                what = f"{each.name}: {error.what}"
                raise QuestionError(what, where=error.where, hint=error.hint) from None
            rows.append(_row(each.name, name, found, unit, len(places) - found.batches))
        return _table(rows)

    def _named(self, name: str, group: Sequence[str], where: str) -> str:
        """A question with the groups or records that it is about."""
        many = len(self.measured.groups)
        together = f" of the {many} groups" if many > 1 and not group and not where else ""
        return name + together + _met(where)

    def _unit(self, measure: str | None = None) -> str:
        """Unit of values, or of those of one measure; empty where nobody said."""
        drawn = next((each for each in self.columns if each.role == "value"), None)
        return "" if drawn is None else drawn.unit_of(measure)

    def _period(self, over: str) -> Period:
        if over == NEXT:
            raise QuestionError("of the next batch only quantiles are forecast")
        if self.span is None:
            raise QuestionError(
                f"batches of {self.measured.job} are files without a time, so they have no periods"
            )
        return period(over, self.zone, self.span[0], self.span[1])

    def _following(self) -> float:
        last = self.measured.releases[-1].batch
        if last.end is None:
            return float(len(self.measured.releases))
        return last.end / DAY

    def _groups(self, group: Sequence[str], where: str) -> tuple[Group, ...]:
        """The groups that are asked about; none where there are no groups."""
        met = self._met(group, where)
        if part := next((each for each in met.values() if each is not None), None):
            raise QuestionError(
                f"{', '.join(part.axes)} cuts records of {self.measured.job} that were counted"
                " together here",
                hint="of a condition over axes of a workload, ask for the number of records",
            )
        return tuple(met) if group or where else ()

    def _met(self, group: Sequence[str], where: str) -> dict[Group, Part | None]:
        """Groups of which some records meet a condition, with it if not all of them do."""
        measured = self.measured
        groups = (tuple(group),) if group else measured.groups
        if not where:
            return dict.fromkeys(groups)
        values = zip(measured.by, zip(*measured.groups, strict=True), strict=False)
        axes = [described(name, tuple(dict.fromkeys(each))) for name, each in values]
        inner = [described(name, *about) for name, _, *about in measured.axes]
        if not axes and not inner:
            raise QuestionError(
                f"{measured.job} has no groups and no axes, so no part of its records was counted",
                hint="a job `by` groups, or of kind workload, counts parts",
            )
        try:
            looked, mask = condition(where, [*axes, *inner])
        except ValueError as error:
            raise QuestionError(f"{where!r}: {error}", where=measured.job) from None
        shaped = mask.reshape([[*axes, *inner][axis].size for axis in looked])
        names = tuple(inner[axis - len(axes)].name for axis in looked if axis >= len(axes))
        found = dict[Group, Part | None]()
        for each in groups:
            at = tuple(labels(axes[axis]).index(each[axis]) for axis in looked if axis < len(axes))
            own = np.asarray(shaped[at], dtype=np.float64)
            if own.any():
                found[each] = Part(where, names, own) if names else None
        if not found:
            raise QuestionError(f"nothing of {measured.job} meets {where!r}")
        return found

    def _counted(self) -> str:
        """What `records` counts: of a column, only records that have a value of it."""
        column = self.measured.column_of_records()
        return f"records with a value of {column}" if column else "records"

    def _records(
        self, places: tuple[int, ...], met: Mapping[Group, Part | None], partial: bool
    ) -> Answer:
        measured = self.measured
        if measured.axes:
            tables = {each: measured.crossed(places, each) for each in met}
            return summed(
                tables[each].cell("all records", {}) if part is None else tables[each].part(part)
                for each, part in met.items()
            )
        kept = [
            place
            for place in places
            if not partial or all(counts_records(measured.releases[place], each) for each in met)
        ]
        if not kept:
            raise QuestionError(f"no release of {measured.job} in this period counted all records")
        return summed(measured.records(kept, each) for each in met)

    def _total(self, measure: str, places: tuple[int, ...], groups: tuple[Group, ...]) -> Answer:
        of = groups or self.measured.groups
        return summed(self.measured.total(measure, places, each) for each in of)


def asking(database: Database, job: str, zone: str, about: Sequence[str] = ()) -> Ask:
    """Questions about a job, of what its store holds of some periods and the batches around them.

    Args:
        database: The store.
        job: Whose.
        zone: Of its batches.
        about: Periods; all by default.
    """
    span = batches_span(database, job)
    since = until = None
    if span is not None and about:
        first, last, longest = span
        found = [
            Period(text, last - longest, last) if text == NEXT else period(text, zone, first, last)
            for text in about
        ]
        since = min(each.since for each in found) - AROUND * longest
        until = max(each.until for each in found) + AROUND * longest
    releases = select_measurements(database, job, since, until)
    newest = newest_releases(database, job, 1)
    columns = newest[0].columns if newest else ()
    return Ask(Measured(job, releases), zone, span, columns)


def _row(
    name: str, question: str, answer: Answer, unit: str = "", left_out: int = 0
) -> dict[str, Json]:
    about = {"unit": unit, "left_out": left_out, "spent": 0.0}
    return {"period": name, "question": question, **asdict(answer), **about}


def _require_quantile(quantile: float) -> None:
    if not 0.0 < quantile < 1.0:
        raise QuestionError(f"a quantile lies between 0 and 1, and {quantile:g} does not")


def _require_finite(values: Iterable[float]) -> None:
    for each in values:
        if not math.isfinite(each):
            raise QuestionError(f"a value is a finite number, and {each:g} is none")


def _table(rows: Sequence[Mapping[str, Json]]) -> Table:
    return table_of(rows, _KINDS)


def _met(where: str) -> str:
    return f" where {where}" if where else ""


def _range(above: float | None, up_to: float | None, unit: str) -> str:
    of = f" {unit}" if unit else ""
    if above is None:
        return f"up to {up_to:g}{of}"
    return f"above {above:g}{of}" if up_to is None else f"above {above:g} up to {up_to:g}{of}"
