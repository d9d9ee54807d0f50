"""`streamdp ask`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from streamdp.cli.options import (
    config_option,
    job_argument,
    json_option,
    load_configuration,
    require_job,
)
from streamdp.cli.output import print_rows
from streamdp.errors import ConfigurationError, QuestionError

if TYPE_CHECKING:
    from streamdp.config import Configuration
    from streamdp.library.ask import Ask
    from streamdp.library.table import Table

_STEPS = ("day", "week", "month", "quarter", "year")


@click.command()
@job_argument
@click.argument("batch", required=False)
@click.argument("question", required=False)
@config_option
@click.option("--quantile", type=float, help="A quantile of the records, such as .5.")
@click.option("--above", type=float, help="The share of records above this value.")
@click.option("--up-to", type=float, help="The share up to this value; with --above, between.")
@click.option("--histogram", type=int, help="Shares of the records in about so many bins.")
@click.option("--records", is_flag=True, help="The number of records; of quantiles, with a value.")
@click.option("--total", metavar="MEASURE", help="The total of a count or sum of statistics.")
@click.option("--mean", metavar="MEASURE", help="The mean of all records, of a mean of statistics.")
@click.option("--per", metavar="COUNT", help="With --mean SUM: a sum over a count, or a share.")
@click.option("--compare", nargs=2, metavar="A B", help="How --quantile differs from A to B.")
@click.option(
    "--over",
    default="all",
    show_default=True,
    help="2013-06-03, 2013-W22, 2013-06, 2013-Q2, 2013, 2013-06-03..2013-07-15, 28d (the last),"
    " all; next: a forecast of the batch to come.",
)
@click.option("--every", type=click.Choice(_STEPS), help="One answer for each of these in --over.")
@click.option("--group", multiple=True, help="A group: a value for each column of `by`.")
@click.option("--where", default="", help="Only groups, or cells of a workload, that meet this.")
@click.option("--partial", is_flag=True, help="Answer although batches of the period are missing.")
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="CSV with a header.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Draw the answers as an .svg file.",
)
def ask(
    job: str,
    batch: str | None,
    question: str | None,
    config_path: Path,
    as_json: bool,
    as_csv: bool,
    output: Path | None,
    **asked: Any,
) -> None:
    """Answer a question about JOB from what was released and paid for; spends nothing.

    Every answer has its 95 % interval and says how many batches it is of, and how many were left
    out: of all batches those without counts, as the first day of quantiles. Days and weeks are
    those of the time zone of the batches. Tables are rounded to what intervals support; JSON and
    CSV have all digits.

    --records of a job of quantiles counts the records that have a value of its column. --compare
    judges each period by its own counts, so `before` and `after` may differ a little from what
    --quantile answers of it, and from what was published of its days.

    --records --where "carrier = 'AA' and hour < 9" counts the records of a workload that meet a
    condition over its public axes; conditions over columns of `by` choose groups in every question.

    With BATCH and QUESTION it is about one release of a workload: QUESTION is
    `count where CONDITION`, a condition over its public axes, such as
    "count where carrier = 'AA' and hour < 9". With groups there is one answer a group. `within` is
    the published table that holds the question's axes; where there is none, the interval is a
    guess from those of other answers.
    """
    configuration = load_configuration(config_path)
    require_job(configuration, job)
    if batch is not None:
        if question is None and asked["mean"]:
            raise click.UsageError(f"a sum over a count is --mean {asked['mean']} --per {batch}")
        if question is None:
            raise click.UsageError("a question about one batch needs BATCH and QUESTION")
        rows = _of_one(configuration, job, batch, question)
    else:
        table = _measured(configuration, job, asked)
        rows = list(table.rows)
        if output is not None:
            shares = any(asked[each] is not None for each in ("above", "up_to", "histogram"))
            _draw(output, job, table, shares=shares)
    if as_json or as_csv:
        print_rows(rows, "json" if as_json else "csv")
    else:
        from streamdp.reports.releases.told import told_answers

        print_rows(told_answers(rows), "table")
    if asked["compare"] and batch is None and not (as_json or as_csv):
        click.echo(
            "each period is judged by its own counts: --quantile over one of them, which looks at"
            " the days around it too, may answer a little otherwise",
            err=True,
        )


def _measured(configuration: Configuration, job: str, asked: dict[str, Any]) -> Table:
    """The answer to the one question that was asked."""
    from streamdp.library.ask import asking
    from streamdp.store.migrations import open_to_read

    compare = asked["compare"]
    about = compare or (asked["over"],)
    zone = configuration.source_section(job).zone
    with closing(open_to_read(configuration.store.path)) as database:
        made = asking(database, job, zone, () if "all" in about else about)
    about = {name: asked[name] for name in ("group", "partial")}
    if asked["where"] and (compare or asked["histogram"] is not None):
        raise click.UsageError(
            "--compare and --histogram are about one group: --group, not --where"
        )
    if compare:
        quantile = 0.5 if asked["quantile"] is None else asked["quantile"]
        return made.compare(*compare, quantile=quantile, **about)
    if asked["histogram"] is not None:
        return made.histogram(asked["histogram"], asked["over"], **about)
    return _over(made, asked, about | {name: asked[name] for name in ("every", "where")})


def _over(made: Ask, asked: dict[str, Any], about: dict[str, Any]) -> Table:
    over = asked["over"]
    if asked["quantile"] is not None:
        return made.quantile(asked["quantile"], over, **about)
    if asked["above"] is not None or asked["up_to"] is not None:
        return made.share(above=asked["above"], up_to=asked["up_to"], over=over, **about)
    if asked["records"]:
        return made.records(over, **about)
    if asked["total"]:
        return made.total(asked["total"], over, **about)
    if asked["per"] and not asked["mean"]:
        raise click.UsageError("--per COUNT goes with --mean SUM")
    if asked["mean"]:
        return made.mean(asked["mean"], over, per=asked["per"] or "", **about)
    raise click.UsageError(
        "ask for --quantile, --above, --up-to, --histogram, --records, --total, --mean or --compare"
    )


def _draw(output: Path, job: str, table: Table, *, shares: bool) -> None:
    from streamdp.reports.charts.files import draw_answers

    if output.suffix != ".svg":
        raise ConfigurationError("a picture of answers is .svg", where=str(output))
    output.write_text(draw_answers(job, table.rows, shares=shares), encoding="utf-8")
    click.echo(f"wrote {output}", err=True)


def _of_one(
    configuration: Configuration, job: str, batch: str, question: str
) -> list[dict[str, Any]]:
    """Answers from the published rows of one release of a workload."""
    from streamdp import wiring
    from streamdp.kinds.spec import spec_of
    from streamdp.store.archive import require_release, signature_of
    from streamdp.store.migrations import open_to_read

    section = configuration.releases[job]
    answering = spec_of(section).ask
    if answering is None:
        raise QuestionError(
            f"releases of kind {section.kind} answer no further questions",
            where=f"releases.{job}",
            hint="those of kind workload do; ask about a period with --quantile, --records, ...",
        )
    store = open_to_read(configuration.store.path)
    release = require_release(store, job, batch)
    if signature_of(store, release.id) != wiring.release_kind(configuration, job).signature():
        raise ConfigurationError(
            f"the release of {batch!r} was made with other axes, predicates or records",
            where=f"releases.{job}",
            hint="ask with the configuration that it was made with",
        )
    found = []
    for group in section.groups or ((),):
        about = dict(zip(section.by, group, strict=True))
        rows = [row for row in release.rows if about.items() <= row.items()]
        found.append(about | asdict(answering(section, rows, question)))
    return found
