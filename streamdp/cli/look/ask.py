"""`streamdp ask`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from streamdp.cli.jobs import job_argument, require_job, require_release
from streamdp.cli.options import config_option, json_option, load_configuration
from streamdp.cli.output import print_rows
from streamdp.errors import ConfigurationError


@click.command()
@job_argument
@click.argument("batch")
@click.argument("question")
@config_option
@json_option
def ask(job: str, batch: str, question: str, config_path: Path, as_json: bool) -> None:
    """Answer QUESTION from the release of BATCH by JOB, with its error; costs nothing.

    QUESTION is `count where CONDITION`, a condition over the public axes of the release, such as
    "count where carrier = 'AA' and hour < 9". With groups there is one answer a group. `within` is
    the published table that holds the question's axes; where there is none, the interval is a
    guess from those of other answers.
    """
    from streamdp import wiring
    from streamdp.store.archive import signature_of
    from streamdp.store.schema.schema import open_to_read

    configuration = load_configuration(config_path)
    require_job(configuration, job)
    section = configuration.releases[job]
    answering = wiring.spec_of(section).ask
    if answering is None:
        raise ConfigurationError(
            f"releases of kind {section.kind} answer no further questions",
            where=f"releases.{job}",
            hint="those of kind workload do",
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
    print_rows(found, "json" if as_json else "table")
