"""`streamdp simulate`."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamdp.cli.options import (
    complete_job,
    config_option,
    json_option,
    load_configuration,
    require_job,
)
from streamdp.cli.output import SAY_EVERY, print_rows, progress_bar

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.kinds.section import ReleaseSection
    from streamdp.privacy.filters import Measure
    from streamdp.simulation.comparison import Progress, Trial, TrialSetting
    from streamdp.types import FloatArray, Json

NOTE = "simulation: not private"

SAMPLED = 3
"""Batches of one replay by which the time of all is estimated."""

SAY_FROM = 10
"""Seconds from which on an estimate is told."""


def _listed(context: click.Context, parameter: click.Parameter, text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",")] if text else []


@click.command()
@click.argument("job", required=False, shell_complete=complete_job)
@click.option(
    "--learners",
    callback=_listed,
    help="Some of those of the release's kind; by default all that the release admits.",
)
@click.option(
    "--epsilons",
    callback=_listed,
    help="Prices of a release, such as 0.1,0.3,1; by default the configured one. They are in rho"
    " where the release has a price in rho.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="How often releases are drawn, each time with other noise.",
)
@click.option(
    "--stream",
    default="table",
    show_default=True,
    help="`table`, or the name of a synthetic stream.",
)
@click.option("--table", type=click.Path(), help="Files to replay instead of the source's own.")
@click.option("--group", help="Of a release by groups, the one to replay: its values, with commas.")
@click.option("--length", type=click.IntRange(min=1), help="Number of batches, the first ones.")
@click.option("--picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw a PNG.")
@click.option(
    "--truth-may-be-seen",
    is_flag=True,
    help="These records are public: a table that a source names may be simulated on.",
)
@config_option
@json_option
def simulate(
    job: str | None,
    learners: list[str],
    epsilons: list[str],
    seeds: int,
    stream: str,
    table: str | None,
    group: str | None,
    length: int | None,
    picture: Path | None,
    truth_may_be_seen: bool,
    config_path: Path,
    as_json: bool,
) -> None:
    """Replay the release JOB where the truth is known; say how far each learner is from it.

    Spends nothing, writes no release, opens no store. Figures are errors as the kind of release
    measures them (of a quantile the rank error: the share of records by which it is off), on
    average over all values and batches, and of the worst value of each batch; measures of
    statistics and dimensions of workloads have a row each, named in `of`. `late` leaves out the
    first quarter of the stream. The row `oracle` is the default learner shown the true values of
    all past batches in place of releases. Where releases are counted, counts show more of a batch
    than its quantiles do, so the learner itself may err less.

    A table is cut into batches as the release's source is. Synthetic streams bring their own unit
    and number of records; a kind has its own, such as `seasonal`, `season-ends`, `level-shift`,
    `random-walk`, `iid`, `strange-day`, `wrong-guess`, and `linear` (the sequence of the paper).

    Kinds of other packages that bring no study cannot be simulated: they are refused, and
    `streamdp plan` says what error to expect.

    Results are repeatable and show what the records say: nothing here is private, and a table that
    any source of the configuration reads is refused.
    """
    from streamdp.planning import comparison
    from streamdp.simulation.comparison import run

    if table is not None and stream != "table":
        raise click.UsageError("--table and --stream exclude each other")
    configuration = load_configuration(config_path)
    name = _chosen(configuration, job)
    if picture is not None:
        _require_room_for(picture)
    section = configuration.releases[name]
    trials = _trials(section, stream, learners, epsilons, seeds)
    if stream == "table" and not truth_may_be_seen:
        comparison.require_permission(configuration, section, table)
    scene = comparison.Scene(stream, table, group, length)
    compared = comparison.comparison(configuration, section, scene)
    parts = _outlook(compared, trials)
    with _progress(len(trials)) as progress:
        errors = run(compared, trials, progress)
    rows = _rows(stream if stream != "table" else name, section.price.measure, errors, parts)
    _print(rows, compared.study.measure, as_json)
    if picture is not None:
        what = f"{name} on its table" if stream == "table" else f"{name} on {stream}"
        _draw(picture, what, section.price.measure, compared, errors)


def _trials(
    section: ReleaseSection, stream: str, learners: list[str], epsilons: list[str], seeds: int
) -> list[Trial]:
    """Replays of each learner at each price; those of the oracle are the last."""
    from streamdp.kinds.study import ORACLE
    from streamdp.planning import comparison
    from streamdp.simulation.comparison import Trial

    study = comparison.study_of(section)
    names = comparison.admitted(comparison.on_stream(section, study, stream), study, learners)
    prices = [_price(each) for each in epsilons] or [section.price.amount]
    each = itertools.product((*names, ORACLE), prices, range(seeds))
    return [Trial(learner, price, seed) for learner, price, seed in each]


def _draw(
    picture: Path,
    what: str,
    measure: Measure,
    compared: TrialSetting,
    errors: dict[Trial, FloatArray],
) -> None:
    from streamdp.simulation.picture import draw

    draw(picture, f"{what} ({NOTE})", compared, errors, "ρ" if measure == "rho" else "ε")
    click.echo(f"wrote {picture}", err=True)


def _require_room_for(picture: Path) -> None:
    """Fail before anything is simulated if no picture can be drawn or kept."""
    from streamdp.simulation.picture import require_matplotlib

    require_matplotlib()
    if not picture.parent.is_dir():
        raise click.BadParameter("its folder does not exist", param_hint="'--picture'")


def _print(rows: list[dict[str, Json]], measure: str, as_json: bool) -> None:
    """Print the rows; on a terminal, columns that all rows share move to the title."""
    if as_json or not sys.stdout.isatty():
        print_rows([row | {"note": NOTE} for row in rows], "json" if as_json else "table")
        return
    shared = rows[0]
    title = (
        f"{measure}s on {shared['stream']}, {shared['batches']} batches,"
        f" {shared['seeds']} seeds ({NOTE})"
    )
    common = ("stream", "batches", "seeds")
    print_rows(
        [
            {key.removesuffix("_error"): value for key, value in row.items() if key not in common}
            for row in rows
        ],
        "table",
        title,
    )


def _chosen(configuration: Configuration, job: str | None) -> str:
    """The named release, or the only one."""
    if job is not None:
        require_job(configuration, job)
        return job
    if len(configuration.releases) > 1:
        raise click.UsageError(f"name a release: {', '.join(configuration.releases)}")
    return next(iter(configuration.releases))


def _price(text: str) -> Fraction:
    from streamdp.privacy.amounts import exact

    try:
        price = exact(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--epsilons'") from None
    if price <= 0:
        raise click.BadParameter("a price must be positive", param_hint="'--epsilons'")
    return price


def _outlook(compared: TrialSetting, trials: list[Trial]) -> tuple[str, ...]:
    """Say about how long it will take, where it takes long; name the part that each error is of."""
    click.echo("reading the batches", err=True)
    first = trials[0]
    compared.sample(first, 1)
    begun = time.monotonic()
    parts, batches = compared.sample(first, SAMPLED)
    each = (time.monotonic() - begun) / min(SAMPLED, batches)
    seconds = each * batches * len(trials) / min(os.cpu_count() or 1, len(trials))
    if seconds >= SAY_FROM:
        about = f"{seconds / 60:.0f} minutes" if seconds > 90 else f"{seconds:.0f} s"
        click.echo(f"{len(trials)} replays of {batches} batches, about {about}", err=True)
    return parts


def _rows(
    stream: str, measure: str, errors: dict[Trial, FloatArray], parts: tuple[str, ...]
) -> list[dict[str, Json]]:
    """One row a learner, price and part of the release, over all seeds.

    Errors of several parts are not averaged: they may be of different units.
    """
    from streamdp.simulation.comparison import figures

    groups: dict[tuple[str, Fraction], list[FloatArray]] = {}
    for trial, each in errors.items():
        groups.setdefault((trial.learner, trial.price), []).append(each)
    rows: list[dict[str, Json]] = []
    for (learner, price), group in groups.items():
        about: dict[str, Json] = {"stream": stream, "learner": learner, measure: float(price)}
        about |= {"seeds": len(group), "batches": len(group[0])}
        for part in dict.fromkeys(parts or ("",)):
            columns = [at for at, name in enumerate(parts) if name == part]
            chosen = [each[:, columns] for each in group] if parts else group
            named = {"of": part} if parts else {}
            rows.append(about | named | figures(chosen).rounded())
    return rows


def _lines(timer: Callable[[], float]) -> Progress:
    """Progress as lines."""
    last = timer()

    def tell(done: int, total: int) -> None:
        nonlocal last
        if timer() - last >= SAY_EVERY and done < total:
            last = timer()
            click.echo(f"{done} of {total} replays", err=True)

    return tell


@contextmanager
def _progress(total: int) -> Iterator[Progress]:
    """A bar on a terminal; in a pipe a line for each replay, every few seconds at most."""
    if not sys.stderr.isatty():
        yield _lines(time.monotonic)
        return
    from rich.progress import TimeElapsedColumn

    with progress_bar(TimeElapsedColumn()) as bar:
        task = bar.add_task("replays", total=total)
        yield lambda done, total: bar.update(task, completed=done)
