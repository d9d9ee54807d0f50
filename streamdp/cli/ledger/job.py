"""`streamdp job`."""

from __future__ import annotations

from pathlib import Path

import click

from streamdp.cli.jobs import job_argument, require_job
from streamdp.cli.options import config_option, load_configuration, operator_option, reason_option


@click.command()
@job_argument
@click.option("--was", required=True, help="Its name so far, which no release has any more.")
@operator_option
@reason_option
@config_option
def job(job: str, was: str, operator: str, reason: str, config_path: Path) -> None:
    """Declare that JOB is the release that was called something else so far.

    It goes on where that one stopped: batches that were released under the old name are not
    released and paid for again, and what was learned is kept. Rows that were published keep the old
    name. Your name and reason stay in the ledger.

    Rename the release in the configuration first, before the next run. Its question must be the
    same; a release with a gate cannot be renamed.
    """
    import time

    from streamdp import wiring
    from streamdp.daemon.lock import store_lock
    from streamdp.store.sqlite import SqliteStore

    configuration = load_configuration(config_path)
    require_job(configuration, job)
    if was in configuration.releases:
        raise click.UsageError(f"{was} is still a release of {config_path}: rename it there")
    path, anchor = wiring.store_paths(configuration)
    source, now = configuration.releases[job].source, int(time.time())
    signature = wiring.release_kind(configuration, job).signature()
    with store_lock(path):
        store = SqliteStore.open(path, now, anchor)
        about = {"operator": operator, "reason": reason}
        kept = store.rename_job(job, was, source, signature, about, now)
        store.close()
    click.echo(f"{job} goes on with the {kept} releases of {was}")
