"""An Airflow operator that releases, and a sensor that waits for a release. Copy it to plugins/.

    release = StreamdpRunOnce(task_id="release", config="/etc/streamdp/config.yaml", source="rides")
    there = StreamdpRelease(
        task_id="there", config=…, job="air_time", batch="{{ ds }}", mode="reschedule"
    )

They call `streamdp` and go by its exit codes and JSON; Airflow needs nothing of it installed.
Written for Airflow 3.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseOperator, BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import AirflowException, AirflowFailException

CAP_REACHED = 3
FATAL = {2: "the configuration cannot be used", 6: "the store must be looked at"}
"""Exit codes that no retry mends."""


def call(command: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `streamdp`; its messages hold no values of records, so they may be logged."""
    return subprocess.run([command, *words], capture_output=True, text=True, check=False)


class StreamdpRunOnce(BaseOperator):
    """Release what is due, of all jobs or of those of one source.

    Succeeds with exit code 0, and with 3 (a cap is reached), which it logs. Fails for good with 2
    and 6; any other failure may be retried, for nothing is released twice.

    Args:
        config: The configuration's path.
        source: Only jobs that read this source.
        command: Where `streamdp` is.
    """

    template_fields: Sequence[str] = ("config", "source")

    def __init__(
        self, *, config: str, source: str = "", command: str = "streamdp", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.source = source
        self.command = command

    def execute(self, context: Any) -> int:
        """Run it and return the exit code."""
        only = ("--source", self.source) if self.source else ()
        ended = call(self.command, "run", "--once", "--config", self.config, *only)
        self.log.info("%s", ended.stderr.strip())
        if ended.returncode in FATAL:
            raise AirflowFailException(f"{FATAL[ended.returncode]}: {ended.stderr.strip()}")
        if ended.returncode not in (0, CAP_REACHED):
            raise AirflowException(f"exit code {ended.returncode}: {ended.stderr.strip()}")
        if ended.returncode == CAP_REACHED:
            self.log.warning("a cap is reached: `streamdp status` says which")
        return ended.returncode


class StreamdpRelease(BaseSensorOperator):
    """Wait until a batch of a job is released; its rows are the task's result.

    Args:
        config: The configuration's path.
        job: The release's name.
        batch: Key of the batch, such as a date.
        command: Where `streamdp` is.
    """

    template_fields: Sequence[str] = ("config", "job", "batch")

    def __init__(
        self, *, config: str, job: str, batch: str, command: str = "streamdp", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.job = job
        self.batch = batch
        self.command = command

    def poke(self, context: Any) -> Any:
        """Whether it is there, and what it says."""
        ended = call(self.command, "show", self.job, self.batch, "--json", "--config", self.config)
        if ended.returncode in FATAL:
            raise AirflowFailException(ended.stderr.strip())
        if ended.returncode:
            return PokeReturnValue(is_done=False)
        return PokeReturnValue(is_done=True, xcom_value=json.loads(ended.stdout)["rows"])
