"""Statement of the guarantee of some jobs or of all: unit, neighbours, epsilon, caps, limits."""

from __future__ import annotations

from fractions import Fraction

from streamdp.config import Configuration
from streamdp.database import Database
from streamdp.privacy.accountants import epsilon_of_rho, loss_of_steps
from streamdp.privacy.amounts import ATTO, atto_up, delta_text, epsilon_text, nano_up, number_text
from streamdp.privacy.filters import Caps, Item, Limit
from streamdp.reports.plain import for_ever, in_plain_words, row_of, stretches
from streamdp.reports.releases.told import measurements_in_words
from streamdp.store.archive import versions
from streamdp.store.ledger.chain import spent_of
from streamdp.store.ledger.ledger import Room, caps_of, declaration_of, rooms
from streamdp.store.ledger.privacy_guarantee import (
    Loss,
    definition,
    loss_of,
    parameters_over_time,
)
from streamdp.store.measurements import select_forms
from streamdp.store.reading.reports import job_report
from streamdp.types import Json
from streamdp.version import __version__

ASSUMED = "that no charge was chosen by looking at releases; the sum, and the caps, assume nothing"

CAP_ASSUMES = "that no cap was raised by looking at releases"

NO_BOUND = "no bound: charges may have been chosen by looking at releases"

MOVED = "one record that changes its batch, or corrects one of another batch"

QUOTED = (
    "that the writer of its files quotes every field with a quote, a delimiter or a line end, and"
    " doubles quotes in it: a record that is written otherwise may change how others are read, or"
    " have the file refused"
)
"""Statement of a source whose CSV may have line ends in quotes."""

FIXED = {
    "model": "central: one curator reads the records, readers see releases only",
    "trusted": "the host, its operator, the files of store and source, the engine, and whoever may"
    " read the source",
    "published": "rows, and measurements: the outputs of the draws of every release as they were"
    " drawn, with the law of their noise. The price of a release is that of both; all that is"
    " computed from them, at any time, costs nothing",
    "reading": "a function from bytes to records, fixed by configuration, format and schema: it is"
    " total, and one record more changes no other; known limits name what is left to an engine",
    "not_protected": [
        "records beyond what the unit says: a person with more records, or under several names",
        "units that return, beyond the caps over windows and the lifetime",
        "a record that changes its batch or unit, beyond the caps of both: see the differences of"
        " each source",
        "that a batch or file exists, when it came, and what the configuration says",
        "what is true of everybody: a release may tell it of a person who took no part",
    ],
    "out_of_scope": "timing, memory and power of the host; who watches the engine, its network, or"
    " when log lines are written and sinks are reached",
    "numerics": "integer weights and one uniform integer of the operating system a draw; rounding"
    " is paid for from the same epsilon; results lie on a public grid",
    "renewal": "nothing renews in silence: a new batch has a batch cap of its own, a window frees"
    " what has left it, the lifetime cap never frees anything",
}
"""Statements that hold of every source."""

SEVERAL = " of one "
"""Part of the word for a unit that may have several records."""

COMMON_DELTA = Fraction(1, 10**9)
"""Delta of figures where nobody asks for another."""

CHANCE = (
    "delta bounds the chance that a release loses more than its epsilon or rho: that a unit decides"
    " alone that a key is found; deltas add up, burnt ones too, and every figure at a delta leaves"
    " them theirs"
)
"""Statement of a source whose releases may have a delta."""

CAPPED = (
    "of at most so many records of each unit: others are left out of every count, sum, mean and"
    " quantile, and intervals hold numbers of what is left"
)
"""What numbers are of where records of a unit are left out."""


def common_delta(configuration: Configuration, database: Database, names: list[str]) -> Fraction:
    """A delta for figures of some jobs: a common one, or twice what their sources have spent."""
    scopes = {configuration.releases[name].source for name in names}
    spent = max((spent_of(database, scope, "delta") for scope in scopes), default=0)
    return max(COMMON_DELTA, Fraction(2 * spent, ATTO))


def statement(
    configuration: Configuration, database: Database, names: list[str], delta: Fraction
) -> dict[str, Json]:
    """Guarantee of some jobs and of their sources, and the statements that hold of all.

    Args:
        configuration: Of the jobs.
        database: The store.
        names: The jobs.
        delta: For figures with a delta.
    """
    scopes = list(dict.fromkeys(configuration.releases[name].source for name in names))
    sources = [_source(configuration, database, scope, delta) for scope in scopes]
    return {
        "in_plain_words": in_plain_words(sources),
        "sources": sources,
        "jobs": [_job(configuration, database, name) for name in names],
        **FIXED,
        "versions": {
            "streamdp": __version__,
            "of_releases": versions(database),
        },
    }


def _source(
    configuration: Configuration, database: Database, scope: str, delta: Fraction
) -> dict[str, Json]:
    meaning = declaration_of(database, scope)
    if meaning is None:
        return {"source": scope, "spent": "nothing: no batch was released"}
    loss, price, caps = loss_of(database, scope, delta), Item(0, 1, 1), caps_of(database, scope)
    every, growing = configuration.sources[scope].every(), "growth" in meaning
    way, best = loss.best
    by_zcdp, by_draws = epsilon_text(loss.zcdp), "install the extra: streamdp[accounting]"
    if loss.pure is None:
        by_draws = "none: a charge has no pure loss"
    if loss.distributions is not None:
        by_draws = epsilon_text(loss.distributions)
    if loss.adaptive:
        by_zcdp = by_draws = NO_BOUND
    return {
        "source": scope,
        "definition": f"{_definition(loss, caps)}, kept as caps on sums",
        **({"chance": CHANCE} if loss.delta_atto or _delta_cap(caps) else {}),
        "unit": meaning["unit"],
        **({"counts": CAPPED} if SEVERAL in meaning["unit"] else {}),
        "neighbours": meaning["neighbours"],
        **_texts(configuration, scope),
        **({"assumes": QUOTED} if configuration.sources[scope].quoted_newlines else {}),
        "how_much": [
            each.row()
            for each in stretches(database, scope, caps, every, loss.pure, delta, growing=growing)
        ],
        **_dearest(configuration, scope),
        "differences": _differences(meaning, caps),
        "caps": [_cap(room, caps, delta) for room in rooms(database, scope, price)],
        "spent_for_life": {
            "to_quote": _quoted(loss, delta),
            "epsilon": "no bound" if loss.pure is None else epsilon_text(loss.pure),
            **({"delta_of_releases": delta_text(loss.delta_atto)} if loss.delta_atto else {}),
            "delta": f"{float(delta):g}",
            "epsilon_at_delta": epsilon_text(best),
            "by": way,
            "assumes": {"sum": "nothing", "lifetime cap": CAP_ASSUMES}.get(way, ASSUMED),
            "by_zero_concentrated": by_zcdp,
            "by_loss_distributions": by_draws,
        },
    }


def _quoted(loss: Loss, delta: Fraction) -> str:
    """What was spent, with the delta that belongs to each epsilon."""
    way, best = loss.best
    smallest = f"epsilon {epsilon_text(best)} at delta {float(delta):g}"
    if loss.pure is None:
        return smallest
    own = f"at delta {delta_text(loss.delta_atto)}" if loss.delta_atto else "at delta 0"
    sum_ = f"epsilon {epsilon_text(loss.pure)} {own}"
    if way == "sum":
        return sum_
    return f"{sum_}, or {smallest}: two bounds of one loss, each complete; the second assumes more"


def life_of(configuration: Configuration, database: Database, scope: str) -> dict[str, Json]:
    """What one in all batches of a source may lose for ever, as its statement says it."""
    delta = common_delta(configuration, database, list(configuration.releases))
    return for_ever(caps_of(database, scope), None, delta).row()


def _dearest(configuration: Configuration, scope: str) -> dict[str, Json]:
    """What one may lose by a release of the dearest job of a source; nothing of prices in rho."""
    prices = {
        name: each.price for name, each in configuration.releases.items() if each.source == scope
    }
    if not prices or any(each.measure != "epsilon" for each in prices.values()):
        return {}
    job = max(prices, key=lambda name: (prices[name].nano, prices[name].delta))
    row = row_of(prices[job].nano, atto_up(prices[job].delta))
    return {"dearest_release": {"job": job, **row}}


def _texts(configuration: Configuration, scope: str) -> dict[str, Json]:
    """Texts of the data that releases of a source publish, by release."""
    of_units = configuration.privacy.unit.column is not None
    said = {
        name: section.about_texts(of_units=of_units)
        for name, section in configuration.releases.items()
        if section.source == scope
    }
    found = [f"{name}: {text}" for name, text in said.items() if text is not None]
    return {"publishes": "; ".join(found)} if found else {}


def _differences(meaning: dict[str, str], caps: Caps) -> list[dict[str, Json]]:
    """What two streams of batches may differ in, in how many steps, and the most that loses.

    Of a unit that has other records, one record more or less is other records of that unit: which
    of them count may change with it.

    Args:
        meaning: Unit, neighbours, and whether batches grow.
        caps: Of the source. A step in a batch that grows is one in all later batches.
    """
    growing, several = "growth" in meaning, SEVERAL in meaning["unit"]
    cap = caps.lifetime_nano if growing else caps.batch_nano
    who = "the records of one unit" if several else "one record"
    replaced = 1 if meaning["neighbours"] == "substitute" else 2
    inside = "replaced within the batch" + (", or one more or less of them" if several else "")
    found = [
        (f"{who} more or less, {'from one batch on' if growing else 'in one batch'}", [(1, cap)]),
        (f"{who}, {inside}", [(replaced, cap)]),
    ]
    if several:
        found.append(("a record that becomes another unit's", [(2 * replaced, cap)]))
    if not growing:
        found.append((MOVED, [(replaced if several else 1, cap)] * 2))
    return [
        {
            "between_streams": what,
            "steps": sum(steps for steps, _ in batches),
            f"{caps.measure}_at_most": epsilon_text(_most(batches, caps)),
            **_delta_of_steps(batches, caps, growing=growing),
        }
        for what, batches in found
    ]


_DELTAS = {
    1: "",
    2: "(1 + e^epsilon of one step) times ",
    4: "(1 + e^epsilon + e^(2 epsilon) + e^(3 epsilon) of one step) times ",
}
"""Factor of delta by the number of steps in one batch: epsilon-close laws multiply what is beyond
them by e^epsilon."""


def _delta_of_steps(
    batches: list[tuple[int, int]], caps: Caps, *, growing: bool
) -> dict[str, Json]:
    """The most delta of a difference, where caps have one: as long as that of one step, in words.

    Steps in several batches add theirs up.
    """
    if not _delta_cap(caps):
        return {}
    one = delta_text(caps.delta_within(Limit(0, "delta", batches=None if growing else 1)))
    times = f"{len(batches)} times " if len(batches) > 1 else ""
    steps, _ = batches[0]
    return {"delta_at_most": f"{times}{_DELTAS[steps]}{one}"}


def _most(batches: list[tuple[int, int]], caps: Caps) -> int:
    """One step in each of several batches loses no more than the lifetime cap, which is over all.

    So many in each lose what so many in one batch would under that cap.
    """
    most = max(steps for steps, _ in batches)
    life = loss_of_steps([(most, caps.lifetime_nano)], caps.measure)
    return min(loss_of_steps(batches, caps.measure), life)


def _definition(loss: Loss, caps: Caps) -> str:
    """Definition of privacy that a source has: pure if its caps and all its charges are."""
    pure = loss.pure is not None and caps.measure == "epsilon"
    return definition(pure=pure, delta=bool(loss.delta_atto or _delta_cap(caps)))


def _delta_cap(caps: Caps) -> int:
    """The most delta over the lifetime; 0 where caps say nothing of it."""
    return min(limit.nano for limit in caps.deltas if limit.lifetime)


def _cap(room: Room, caps: Caps, delta: Fraction) -> dict[str, Json]:
    """A cap and the most that one record, or one unit that returns, has lost under it."""
    widths = {"batch": "one batch", "lifetime": "all batches, for ever"}
    name, measure = room.limit.name, room.limit.measure
    rest = delta - Fraction(caps.delta_within(room.limit), ATTO)
    over = widths.get(name)
    if over is None and room.limit.seconds is not None:
        over = f"all batches that any {name} touch"
    return {
        "over": over or f"any {room.limit.batches} batches in a row",
        "measure": measure,
        "cap": number_text(room.limit.nano, measure),
        **(
            {"epsilon_at_delta": epsilon_text(epsilon_of_rho(room.limit.nano, rest))}
            if measure == "rho" and rest > 0
            else {}
        ),
        "worst_so_far": number_text(room.fullest_nano, measure),
    }


def _job(configuration: Configuration, database: Database, name: str) -> dict[str, Json]:
    release, report = configuration.releases[name], job_report(database, name)
    price = release.price
    learning = epsilon_text(nano_up(price.amount * release.auxiliary_share()))
    return {
        "job": name,
        "source": release.source,
        f"{price.measure}_of_one_release": epsilon_text(price.nano),
        **({"delta_of_one_release": delta_text(atto_up(price.delta))} if price.delta else {}),
        **({"of_which_for_its_learner": learning} if release.auxiliary_share() else {}),
        "releases": report.releases,
        "burnt": report.burnt,
        "measurements": measurements_in_words(select_forms(database, name)),
        **({"errors": release.about_errors()} if release.about_errors() else {}),
        "asked_over_time": parameters_over_time(database, name),
    }


def markdown(whole: dict[str, Json]) -> list[str]:
    """Lines of Markdown that say the same: plain words first, exact figures below."""
    lines = ["# Privacy statement", "", "## In plain words", ""]
    for each in whole["in_plain_words"]:
        lines += [f"**{each['title']}**: {each['text']}", ""]
    for source in whole["sources"]:
        lines += [f"## Source {source['source']}", ""]
        lines += [f"- {_words(key)}: {value}" for key, value in source.items() if _plain(value)][1:]
        if "caps" in source:
            for rows in ("how_much", "differences", "caps"):
                lines += ["", *_table(source[rows])]
            lines.append("")
            spent = source["spent_for_life"]
            lines += [f"- {_words(key)}: {value}" for key, value in spent.items()]
        lines.append("")
    for job in whole["jobs"]:
        lines += [f"## Job {job['job']}", ""]
        lines += [f"- {_words(key)}: {value}" for key, value in job.items() if _plain(value)][1:]
        lines += ["", *_table(job["asked_over_time"]), ""]
    lines += ["## What holds of all", ""]
    for key in FIXED:
        value = whole[key]
        lines.append(f"- {_words(key)}: {value if _plain(value) else ''}".rstrip())
        lines += [] if _plain(value) else [f"  - {each}" for each in value]
    versions = whole["versions"]
    lines.append(f"- versions: streamdp {versions['streamdp']}; releases by")
    lines[-1] += f" {', '.join(versions['of_releases']) or 'none'}"
    return lines


def _table(rows: list[dict[str, Json]]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not names:
        return []
    cells = [[*map(_words, names)], *([_cell(row.get(name)) for name in names] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "| " + " | ".join(map(str.ljust, row, widths)) + " |"  # as wide as in a terminal
        for row in cells
    ]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]


def _cell(value: Json) -> str:
    if isinstance(value, list):
        return ", ".join(map(_cell, value))
    return "" if value is None else str(value)


def _plain(value: Json) -> bool:
    return isinstance(value, str | int)


def _words(key: str) -> str:
    return key.replace("_", " ")
