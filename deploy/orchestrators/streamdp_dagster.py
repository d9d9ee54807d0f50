"""A Dagster asset of what streamdp publishes. Copy it beside your definitions.

    air_time = releases("air_time", config="/etc/streamdp/config.yaml", deps=[flights])

It calls `streamdp` and goes by its exit codes and JSON; Dagster needs nothing of it installed.
"""

import json
import subprocess
from collections.abc import Iterable
from typing import Any

import dagster as dg

CAP_REACHED = 3
FATAL = (2, 6)
"""Exit codes that no retry mends: configuration, damaged or restored store."""


def releases(
    job: str,
    *,
    config: str,
    source: str = "",
    deps: Iterable[Any] = (),
    command: str = "streamdp",
) -> dg.AssetsDefinition:
    """An asset that is materialized by releasing what is due.

    Its metadata say which batch was released last, at what price, and whether a cap is reached.
    A failure may be retried, for nothing is released twice; those that no retry mends say so.

    Args:
        job: The release's name; the asset's too.
        config: The configuration's path.
        source: Only jobs that read this source are run.
        deps: Assets that it is made of.
        command: Where `streamdp` is.
    """

    @dg.asset(name=job, deps=list(deps), kinds={"streamdp"})
    def published(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        only = ("--source", source) if source else ()
        ended = call(command, "run", "--once", "--config", config, *only)
        context.log.info(ended.stderr.strip())
        if ended.returncode not in (0, CAP_REACHED):
            raise dg.Failure(
                f"exit code {ended.returncode}: {ended.stderr.strip()}",
                allow_retries=ended.returncode not in FATAL,
            )
        told = call(command, "releases", job, "--last", "1", "--json", "--config", config)
        metadata: dict[str, Any] = {"cap_reached": ended.returncode == CAP_REACHED}
        for line in told.stdout.splitlines():
            release = json.loads(line)
            metadata |= {key: release[key] for key in ("batch", "epsilon")}
        return dg.MaterializeResult(metadata=metadata)

    return published


def call(command: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `streamdp`; its messages hold no values of records, so they may be logged."""
    return subprocess.run([command, *words], capture_output=True, text=True, check=False)
