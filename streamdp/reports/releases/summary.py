"""A report in words: its headline, what changed, what it cost, and who may see it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.privacy.amounts import delta_text, epsilon_text, total_text
from streamdp.reports.budget import budgets
from streamdp.reports.budget import in_words as lasting
from streamdp.reports.plain import NOT_PROMISED, guessed_right, one_and_all, row_of, times
from streamdp.reports.releases.changes import FEWEST, Comparison, PeriodRow, chosen, several
from streamdp.reports.releases.headline import Headline, headline, level_of, rounded
from streamdp.reports.releases.sentences import (
    CLEAR,
    amounts,
    change_said,
    range_said,
    sure_said,
)
from streamdp.reports.releases.series import Picture, columns_of, row_name, text_of
from streamdp.reports.statement import life_of
from streamdp.store.ledger.ledger import declaration_of
from streamdp.types import Column, Release

SENTENCES = 8
"""Changes that are said in words; a table has all."""

NAMED = 8
"""Names that one sentence lists."""

CHANCES = (
    (
        "chance that the records changed",
        "how likely it is that the records of the two periods differ, although noise was added to"
        " both. A rise or a fall is said from 95 in 100 on, and where the range of the change has"
        " not 0 in it; else there is no clear change",
    ),
    (
        "beyond usual ups and downs",
        "how likely it is, in 100, that whatever produces the records rose, or fell. Two periods"
        " differ somewhat even where it has not, and this figure allows for that; in tables,"
        " beyond usual",
    ),
)
"""The two chances of a change of a quantile, and what they mean."""

GLOSSARY = (
    (
        "release",
        "the numbers of one batch, published once, with noise that was added before anybody saw"
        " them",
    ),
    (
        "noise",
        "chance that is added so that no single record shows; it is why numbers have ranges",
    ),
    (
        "range, 19 in 20 sure",
        "both ends of an interval around a number: 19 of 20 are meant to hold what the records"
        " themselves say",
    ),
    ("median, 90 %", "half of the records lie below the median, nine in ten below the 90 % value"),
    *CHANCES,
    (
        "epsilon (ε)",
        "the price of a release in privacy: the smaller, the less it tells of any one; prices of"
        " releases add up",
    ),
)
"""Seven words of a report."""


@dataclass(frozen=True, slots=True)
class Point:
    """One point of an answer: what it is about, in a few words, and the sentences.

    Args:
        title: A few words.
        text: Sentences.
    """

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What a report says before its pictures and tables.

    Args:
        title: The period.
        headline: One sentence.
        flags: What is odd about batches, by reason.
        changed: Sentences on what changed since the period before.
        about_changes: How to read them.
        about_batches: What the table of batches shows; empty where that is what was released.
        sure: How sure its numbers are.
        cost: What the releases cost, and what is left.
        showing: Who may see the report, and what is not promised to them.
    """

    title: str
    headline: str
    flags: tuple[str, ...]
    changed: tuple[str, ...]
    about_changes: str
    about_batches: str
    sure: tuple[Point, ...]
    cost: str
    showing: tuple[Point, ...]

    @property
    def heading(self) -> str:
        """The title with a capital letter."""
        return _capital(self.title)


def summary(
    configuration: Configuration,
    database: Database,
    job: str,
    releases: Sequence[Release],
    whole: Picture,
    compared: Comparison | None,
    left_out: str,
) -> Summary:
    """A report of some releases in words.

    Args:
        configuration: Of the job.
        database: The store.
        job: Which.
        releases: Of the period, in the order of batches.
        whole: Their series.
        compared: The period beside the one before; None where there are no periods.
        left_out: What the releases are of many, in words; empty where they are all.
    """
    section = configuration.releases[job]
    newest = headline(whole, section.headline)
    title = f"{releases[0].batch} to {releases[-1].batch}"
    if compared is not None:
        title = compared.title + (f" ({compared.part})" if compared.part else "")
    flags = tuple(_flags(whole))
    said = (
        _of_period(compared, title),
        _choices(whole, title),
        _largest_share(releases[-1], whole),
        _of_batch(newest),
    )
    return Summary(
        title=title,
        headline=next(filter(None, said), "") + _look_first(flags),
        flags=flags,
        changed=(*_changed(compared, whole.unit, section.by), *_states(whole)),
        about_changes=about_changes(compared),
        about_batches=about_batches(whole),
        sure=tuple(how_sure(whole, releases[-1], newest, compared)),
        cost=_cost(configuration, database, section.source, releases, left_out),
        showing=tuple(may_be_shown(configuration, database, job, releases, left_out)),
    )


def how_sure(
    whole: Picture,
    newest: Release,
    said: Headline | None,
    compared: Comparison | None,
) -> Iterator[Point]:
    """How sure numbers are, and apart from it how likely changes are: each figure in its words.

    Args:
        whole: The series.
        newest: Release, whose published errors are said.
        said: The one number of the job.
        compared: What is said to have changed; None where nothing is.
    """
    level = level_of(whole)
    if level is None:
        yield Point(
            "No range",
            "this job publishes none beside its numbers. They are drawn with noise, which hides"
            " single records, so the nearest others may be as good.",
        )
    else:
        shown = f"{said.interval} {said.unit}".rstrip() if said and said.interval else ""
        yield Point(
            f"{sure_said(level)} sure",
            f"{range_said(level, shown)} The number alone may be off by the noise that hides single"
            " records; the range says by how much. It means the same beside every number here.",
        )
    yield from errors_of(newest, whole.columns)
    rows = [each for each in (compared.rows if compared else ()) if each.moved]
    if any(each.moved and each.moved.differ is not None for each in rows):
        for name, text in CHANCES:
            yield Point(_capital(name), f"of a change alone: {text}.")
    elif rows:
        yield Point(
            "Of a change",
            "its own range, at the same 19 in 20, of the noise alone. Where it has 0 in it there is"
            " no clear change.",
        )


def errors_of(newest: Release, columns: Sequence[Column]) -> list[Point]:
    """Errors to expect of a release, where all its rows say the same."""
    found = []
    for each in columns_of([newest], columns):
        values = {row.get(each.name) for row in newest.rows}
        value = next(iter(values), None)
        if each.role == "error" and len(values) == 1 and isinstance(value, int | float):
            often = "" if each.level is None else f", {sure_said(each.level)} sure"
            said = f"at most {rounded(value)} {each.unit}".rstrip()
            found.append(Point(_capital(each.name.replace("_", " ")), f"{said}{often}."))
    return found


def _of_period(compared: Comparison | None, title: str) -> str:
    """The headline of a period: its value, its change, and what is usual."""
    if compared is None or compared.headline is None:
        return ""
    row = compared.headline
    of = f" {row.unit}" if row.unit else ""
    value, low, high = amounts(*row.shown)
    said = f"{_capital(title)}: {compared.called(row)} {value}{of} ({low} to {high})"
    if row.moved is not None:
        by = change_said("", *row.moved.by, row.unit, row.moved.differ).strip(": ")
        said += f"; it {by}" if row.moved.direction else f"; {by}"
        said += f" since the {compared.step} before"
    return f"{said}{_usual(compared)}."


def _usual(compared: Comparison) -> str:
    """How a value lies among those of earlier periods; nothing where there are too few."""
    row, past = compared.headline, compared.earlier
    if row is None or len(past) < FEWEST:
        return ""
    low, high = min(past), max(past)
    _, least, most = amounts(row.value[0], low, high)
    of = f"the {len(past)} {compared.step}s before ({least} to {most})"
    if row.value[2] < low:
        return f". That is below all of {of}"
    if row.value[1] > high:
        return f". That is above all of {of}"
    if low <= row.value[0] <= high:
        return f". That is usual beside {of}"
    return (
        f". That is {'below' if row.value[0] < low else 'above'} {of}, by no more than noise may be"
    )


def _of_batch(newest: Headline | None) -> str:
    """The headline of the newest batch, where the period has none of its own."""
    if newest is None:
        return ""
    of = f" {newest.unit}" if newest.unit else ""
    interval = f" ({newest.interval})" if newest.interval else ""
    usual = f"; {newest.usual}" if newest.usual else ""
    return f"{newest.batch}, the newest batch: {newest.name} {newest.value}{of}{interval}{usual}."


def _flags(whole: Picture) -> Iterator[str]:
    """Each thing that is odd, and of which batches."""
    found: dict[str, list[str]] = {}
    for at, batch in enumerate(whole.batches):
        for flag in () if _has_states(whole) else whole.flags_at(at):
            found.setdefault(flag, []).append(batch)
    for flag, batches in found.items():
        yield f"{_listed(batches)}: {flag}"


def _states(whole: Picture) -> Iterator[str]:
    """Each thing that became of rows, and of which: nothing to be warned of."""
    found: dict[str, list[str]] = {}
    for series in whole.series if _has_states(whole) else ():
        for state in dict.fromkeys(filter(None, series.flags)):
            found.setdefault(state, []).append(whole.called(series))
    for state, names in found.items():
        yield f"{_capital(state)}: {_listed(names)}."


def _has_states(whole: Picture) -> bool:
    return {"state"} == {each.role for each in whole.columns if each.role in ("flag", "state")}


def _choices(whole: Picture, title: str) -> str:
    """What was chosen most often; nothing of a job that chooses nothing."""
    names = [each.name for each in whole.columns if each.chart == "choices"]
    if not names or not whole.series:
        return ""
    counted = chosen(whole)
    often, less = counted.most_common(3), len(counted) - 3
    first, *rest = [f"{choice} in {count}" for choice, count in often] or ["none"]
    said = f"{_capital(title)}: the {' and '.join(names)} that was chosen most often is {first}"
    then = f", then {', '.join(rest)}" if rest else ""
    then += f" and {less} more less often" if less > 0 else ""
    return f"{said} of {_many(len(whole.batches), 'batch')}{then}."


def _largest_share(newest: Release, whole: Picture) -> str:
    """The row that has most of the whole in the newest batch; nothing of a job without shares."""
    shares = next((each.name for each in whole.columns if each.chart == "shares"), "")
    known = [row for row in newest.rows if isinstance(row.get(shares), int | float)]
    if not known:
        return ""
    first = max(known, key=lambda row: float(row[shares] or 0))
    named = " · ".join(f"{name} {text_of(first[name])}" for name in whole.labels if first.get(name))
    size = float(first[shares] or 0)
    share = amounts(size, size, size)[0]
    return f"{newest.batch}, the newest batch: the largest {shares}, {share}, has {named}."


def _look_first(flags: tuple[str, ...]) -> str:
    return f" Look first at what is flagged: {'; '.join(flags)}." if flags else ""


def since_said(compared: Comparison, by: tuple[str, ...]) -> str:
    """How a period changed since the one before, in one sentence; of groups, which rose or fell."""
    peers = [
        (each, [row for row in compared.rows if by and _is_peer(row, each, by)])
        for each in _measures(compared.rows, by)
    ]
    parts = [f"{_without(row, by)}: {_ways(of, by)}" for row, of in peers if len(of) > 1]
    main = compared.headline
    if not parts and main is not None and main.moved is not None:
        parts = [main.moved.said(compared.called(main), main.unit)]
    return f"{_capital(compared.title)} beside the {compared.step} before: {'. '.join(parts)}."


def _measures(rows: Sequence[PeriodRow], by: tuple[str, ...]) -> list[PeriodRow]:
    """The first row of each measure."""
    first: dict[str, PeriodRow] = {}
    for row in rows:
        first.setdefault(_without(row, by), row)
    return list(first.values())


def _without(row: PeriodRow, by: tuple[str, ...]) -> str:
    """What a row measures, as people say it, without its group."""
    return row_name({name: text for name, text in row.labels.items() if name not in by})


def _changed(compared: Comparison | None, unit: str, by: tuple[str, ...]) -> Iterator[str]:
    """What changed since the period before: groups first, then measures, then all deciles."""
    if compared is None:
        return
    main = compared.headline
    rows = [each for each in compared.rows if each.moved is not None]
    measures = _grouped(rows, main, by) if by and main else {}
    for name, peers in list(measures.items())[:SENTENCES]:
        said = f"Of {len(peers)} groups: {_ways(peers, by)}."
        one = f"{said} {by_itself(len(peers))}"
        yield f"{_capital(name)}. {said}" if len(measures) > 1 else one
    yield from _more(list(measures)[SENTENCES:], "measures, in the table below")
    if len(measures) > 1:
        yield by_itself(sum(map(len, measures.values())))
    grouped = [row for peers in measures.values() for row in peers]
    others = [each for each in rows if each not in grouped and main and _is_like(each, main)]
    clear = [row for row in _by_clearness(grouped) if row.moved and row.moved.direction]
    few = max(SENTENCES - len(grouped), 2)
    for row in clear[:SENTENCES] + others[:few]:
        if row.moved is not None:
            yield f"{row.moved.said(compared.called(row), row.unit)}."
    yield from _more(clear[SENTENCES:], "that clearly changed, in the table below")
    yield from _more(others[few:], "in the table below")
    for choice, now, then in compared.chosen[:SENTENCES]:
        yield (
            f"{choice} was chosen in {now} of {_many(compared.batches, compared.each)}, and in"
            f" {then} of {compared.batches_before} in the {compared.step} before."
        )
    yield from _more(compared.chosen[SENTENCES:], "that were chosen less often")
    if compared.came:
        yield f"Found now, and not in the {compared.step} before: {_listed(compared.came)}."
    if compared.went:
        yield f"Found in the {compared.step} before, and not now: {_listed(compared.went)}."
    # Of several groups those of which it says something: the table has all.
    deciles = [(g, m) for g, m in compared.all_deciles.items() if not g or m.direction]
    for group, moved in deciles[:SENTENCES]:
        name = " · ".join(filter(None, (group, "all deciles together")))
        yield f"{moved.said(name, unit)}."
    yield from _more(deciles[SENTENCES:], "groups whose deciles moved together")


def _more(left: Sequence[object], where: str) -> Iterator[str]:
    """How many a list leaves out, where it does."""
    if left:
        yield f"And {len(left)} more {where}."


def by_itself(many: int) -> str:
    """How to read changes of several rows: how many look like one without any, at most.

    >>> by_itself(9)
    'Each of 9 is looked at by itself: had none changed, 1 or fewer would be expected to look so.'
    """
    most = math.ceil(many * (1 - CLEAR) - 1e-9)
    return (
        f"Each of {many} is looked at by itself: had none changed, {most} or fewer would be"
        " expected to look so."
    )


def _grouped(
    rows: Sequence[PeriodRow], main: PeriodRow, by: tuple[str, ...]
) -> dict[str, list[PeriodRow]]:
    """Rows of groups by their measure, of those that say as much as the headline: its own first."""
    found: dict[str, list[PeriodRow]] = {}
    for each in (main, *rows):
        name = _without(each, by)
        if name not in found and _is_like(each, main, by):
            found[name] = [row for row in rows if _is_peer(row, each, by)]
    return {name: peers for name, peers in found.items() if len(peers) > 1}


def _is_peer(row: PeriodRow, main: PeriodRow, by: tuple[str, ...]) -> bool:
    """Whether a row says of one group what the headline says of all, or of another."""
    if any(row.labels.get(name) is None for name in by):
        return False
    return all(row.labels.get(n) == text for n, text in main.labels.items() if n not in by)


def _is_like(row: PeriodRow, main: PeriodRow, by: tuple[str, ...] = ()) -> bool:
    """Whether a row says as much as the headline: another measure, not a cell or a quantile.

    Args:
        row: Which.
        main: The headline.
        by: Labels that do not count: those of groups.
    """
    many = [
        len([name for name, text in each.labels.items() if text and name not in by])
        for each in (row, main)
    ]
    return row is main or (row.pooled != "quantile" and many[0] == many[1])


def _by_clearness(rows: Sequence[PeriodRow]) -> list[PeriodRow]:
    """The rows that clearly changed, then those farthest from none, in widths of the interval."""

    def far(row: PeriodRow) -> tuple[bool, float]:
        by, low, high = row.moved.by if row.moved else (0.0, 0.0, 0.0)
        is_clear = row.moved is not None and row.moved.direction != 0
        return is_clear, abs(by) / (high - low) if high > low else 0.0

    return sorted(rows, key=far, reverse=True)


def _ways(rows: Sequence[PeriodRow], by: tuple[str, ...]) -> str:
    """Which groups rose, which fell, and of which neither is clear."""

    def named(of: list[PeriodRow]) -> str:
        return _listed([" · ".join(each.labels[name] or "" for name in by) for each in of])

    ways = [(each, each.moved.direction) for each in rows if each.moved is not None]
    rose, fell = ([each for each, way in ways if way == sign] for sign in (1, -1))
    rest = [each for each in rows if each not in rose and each not in fell]
    parts = [
        *([f"{named(rose)} rose"] if rose else ["none rose"]),
        *([f"{named(fell)} fell"] if fell else ["none fell"]),
        *([f"{named(rest)} without a clear change"] if rest else []),
    ]
    return "; ".join(parts)


def about_changes(compared: Comparison | None) -> str:
    """What was compared with what, and what the numbers leave out."""
    if compared is None:
        return (
            "Nothing is compared: the report is of all batches, or batches have no date in their"
            " name, so there is no period before."
        )
    if compared.why:
        return f"Nothing is compared: {compared.why}."
    if compared.before is None:
        return f"Nothing was released in the {compared.step} before."
    if compared.chosen:
        return "Choices are drawn with noise: what is chosen more often need not be better."
    if compared.found:
        same = (
            "" if compared.came or compared.went else "The same keys were found in both periods. "
        )
        return f"{same}A key is found where its noisy count is large enough: others may be there."
    if not compared.rows:
        return "What this job releases does not add up over batches, so periods are not compared."
    said = f"{_many(compared.batches, compared.each)} against {compared.batches_before}."
    pooled = {row.pooled for row in compared.rows}
    if compared.per_batch and "sum" in pooled:
        said += (
            f" Counts and sums are means of a {compared.each}, because the periods have not as"
            f" many {several(compared.each)}."
        )
    if pooled & {"sum", "mean"}:
        others = "sums and means" if "mean" in pooled else "sums"
        said += (
            f" The ranges of counts are those of the added noise; those of {others} reckon with"
            " what clipping hides, too. How likely it is that whatever produces the records has"
            " changed is not measured for them."
        )
    if "mean of batches" in pooled:
        said += (
            f" What neither adds up nor has a mean, such as a variance, is averaged over the"
            f" {several(compared.each)}; its range is as wide as if all of them were off the same"
            " way."
        )
    if any(row.shown != row.value for row in compared.rows):
        said += (
            " Counts, and sums of values from 0 on, are never below 0: what noise took below is"
            " shown as 0, and changes are those of the values with their noise."
        )
    if compared.groups > 1:
        said += (
            f" The {compared.groups} groups together are not all records: those of no such group"
            " are left out, so the total of a job without groups is another."
        )
    if compared.left_out:
        said += f" {compared.left_out} more groups are not compared."
    if compared.rows_left:
        said += f" {compared.rows_left} more rows are not compared."
    return said


def about_batches(whole: Picture) -> str:
    """What charts and tables of batches show; nothing where that is what was released."""
    estimate = whole.series[0].estimate if whole.series else None
    if estimate is None:
        return ""
    return (
        f"Here and in charts stands {estimate.column.replace('_', ' ')}, which follows from this"
        " and earlier releases; a week or month is the sum of what was released, so batches need"
        " not add up to it."
    )


def _many(count: int, each: str) -> str:
    return f"1 {each}" if count == 1 else f"{count} {several(each)}"


def _cost(
    configuration: Configuration,
    database: Database,
    source: str,
    releases: Sequence[Release],
    left_out: str,
) -> str:
    """What the releases cost, and for how long the budget of the source lasts."""
    sums = total_text((each.epsilon_nano, each.rho_nano or 0, each.delta_atto) for each in releases)
    letter = "" if sums.startswith("rho") else "ε "
    many = f"The {len(releases)} releases" if len(releases) > 1 else "The release"
    said = f"{many} cost {letter}{sums}{' together' * (len(releases) > 1)}{left_out}."
    found = next(iter(budgets(configuration, database, source)), None)
    if found is None:
        return said
    report = found.report
    measure = "ρ" if report.measure == "rho" else "ε"
    said += (
        f" By all jobs together {source} has spent {measure}"
        f" {epsilon_text(report.lifetime_spent_nano)} of {epsilon_text(report.lifetime_cap_nano)}"
    )
    left = found.batches_left
    return said + (
        "." if left is None else f"; at today's prices the rest is {lasting(found.now)}."
    )


def may_be_shown(
    configuration: Configuration,
    database: Database,
    job: str,
    releases: Sequence[Release],
    left_out: str,
) -> Iterator[Point]:
    """Whether a report of some releases may be shown: to whom, why, and what remains to decide."""
    section = configuration.releases[job]
    meaning = declaration_of(database, section.source)
    if meaning is None:
        return
    growing = configuration.sources[section.source].is_growing()
    yield Point(
        "Yes: showing it costs no more privacy",
        "to a colleague, a customer, a competitor or the public. Its price was paid when it was"
        " released, and the bound below is the same whoever reads it.",
    )
    yield Point(
        "What you decide first",
        "whether that bound is low enough; whether the names below may be seen, which are not"
        " protected; and whether the figures may, for what is true of everybody is shown.",
    )
    bound = bound_said(configuration, database, job, releases)
    if not left_out and len(releases) > 1:
        bound += _together(releases, growing=growing)
    yield Point(
        "The bound",
        f"protected is each {meaning['unit']}. {bound} All numbers, changes and pictures follow"
        " from releases that were made, and tell no more of any one than these do. Earlier"
        " releases, which changes and smoothed values follow from, and gates, lost charges and"
        f" other jobs of {section.source} come on top: `streamdp statement` has the sum, and what"
        " it assumes.",
    )
    of_units = configuration.privacy.unit.column is not None
    finder = section.groups_from and configuration.releases.get(section.groups_from.job)
    texts = (finder or section).about_texts(of_units=of_units)
    found = f" Found in the data: {texts}." if texts else ""
    yield Point(
        "Names, not protected",
        "shown as they are: names of the job, of columns, conditions and groups as they were"
        f" configured, names of batches and files, and that they exist.{found}",
    )
    yield Point("Not promised", NOT_PROMISED)


def bound_said(
    configuration: Configuration, database: Database, job: str, releases: Sequence[Release]
) -> str:
    """How often a guess about one is right at most, by one release and by all of its source.

    Args:
        configuration: Of the job.
        database: The store.
        job: Which.
        releases: Of the job; the dearest of them counts.
    """
    source = configuration.releases[job].source
    meaning = declaration_of(database, source)
    if meaning is None or not releases:
        return ""
    if any(each.epsilon_nano is None for each in releases):
        return "What a price in ρ is worth in ε, the statement says."
    exchanged = meaning["neighbours"] == "substitute"
    among = "which of two is among the data" if exchanged else "whether one is among the data"
    most = max((each.epsilon_nano or 0, each.delta_atto) for each in releases)
    said = one_and_all(row_of(*most), life_of(configuration, database, source), source)
    return (
        f"A guess {among}, where both are as likely, is right 50 times in 100 without releases."
        f" With them it is right {said}."
    )


def _together(releases: Sequence[Release], *, growing: bool) -> str:
    """Say how often a guess from all releases of a period is right; empty for prices in rho.

    Args:
        releases: Those that are shown, and none is left out.
        growing: Whether a record is in all batches from its own on.
    """
    if any(each.epsilon_nano is None for each in releases):
        return ""
    sums = sum(each.epsilon_nano or 0 for each in releases), sum(e.delta_atto for e in releases)
    chance = f", δ {delta_text(sums[1])}" if sums[1] else ""
    every = "" if growing else ", if it is in every batch"
    return (
        f" It is {times(guessed_right(*sums))} by {_all(len(releases))} of this period"
        f" (ε {epsilon_text(sums[0])}{chance}){every}."
    )


def _all(many: int) -> str:
    return "both" if many == 2 else f"all {many}"


def _listed(names: Sequence[str]) -> str:
    # One more is named as shortly as it is counted.
    few = names if len(names) <= NAMED + 1 else names[:NAMED]
    more = len(names) - len(few)
    return ", ".join(few) + (f" and {more} more" if more else "")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
