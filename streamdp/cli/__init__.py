"""Commands: what a person types."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import click

from streamdp.cli import streams
from streamdp.cli.streams import has_no_color, print_error
from streamdp.errors import (
    MORE_MEMORY,
    ConfigurationError,
    OutOfMemoryError,
    StreamdpError,
    lacks_memory,
)
from streamdp.text import is_text


class LazyGroup(click.Group):
    """Commands by name, module and one line of help."""

    def __init__(
        self, *args: Any, lazy_commands: Mapping[str, tuple[str, str]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy_commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of the table, which is the order of use."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module that holds the command."""
        if cmd_name not in self._lazy:
            return None
        module, _ = self._lazy[cmd_name]
        found: click.Command = getattr(importlib.import_module(f"streamdp.cli.{module}"), cmd_name)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List names and help without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._lazy.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command when there is none of that name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], self._lazy, n=1)
            if near:
                raise click.UsageError(
                    f"{error.message} Did you mean {near[0]!r}?", ctx=ctx
                ) from None
            raise


ONE_THREAD = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""What libraries of linear algebra read as they are loaded. Matrices here have some hundred rows:
several threads wait for each other longer than they compute. What is already set is kept."""

EXIT_CODES = """\b
Exit codes:
  0  done
  1  a release, source or sink failed; the log says which
  2  wrong usage or configuration; nothing was touched
  3  a cap is reached
  4  nothing was due, with run --once --require-release
  5  another streamdp works on this store
  6  the store is damaged, altered, or newer than this streamdp
"""

COMMANDS = {
    "init": ("init", "Write a configuration to start from."),
    "validate": ("doctor", "Check the configuration; show when each job will run."),
    "doctor": ("doctor", "Check sources, store, clock and permissions."),
    "preview": ("doctor", "Show records as they are parsed, if you may see them."),
    "plan": ("plan", "Show what the next days will cost and what a cap would refuse."),
    "simulate": ("simulate", "Replay a release where the truth is known; spends nothing."),
    "run": ("run", "Work on schedule until stopped, or once."),
    "release": ("release", "Release what is due of one job, now."),
    "backfill": ("release", "Release the windows of a stretch of time."),
    "pause": ("release", "Stop releasing a job until it is resumed."),
    "resume": ("release", "Resume a paused job."),
    "rearm": ("release", "Start the next run of a gate that waits."),
    "status": ("status", "Show whether the daemon is alive, and the state of each job."),
    "web": ("web", "Serve a read-only page of releases, budget, statement and log."),
    "releases": ("releases", "List releases as a table, JSON or CSV."),
    "show": ("releases", "Show one release."),
    "learned": ("releases", "Show what a job has learned, and where it cuts next."),
    "report": (
        "report",
        "Write a period of a job as an HTML, PDF or Markdown file.",
    ),
    "plot": ("report", "Draw what a job published in a period."),
    "budget": ("budget", "Show what was spent, and what is left of every budget."),
    "ask": ("ask", "Answer a count from a release that was made; costs nothing."),
    "statement": ("budget", "Print what is promised to whom, and what is not."),
    "cap": ("budget", "Change a cap; the ledger keeps your name and the reason."),
    "source": ("renames", "Declare that a source's records are in another place."),
    "job": ("renames", "Declare that a job goes on under another name."),
    "verify": ("anchor", "Check ledger, releases and anchor of the store."),
    "backup": ("backup", "Copy the store, beside a running daemon."),
    "restore": ("backup", "Put a backup back, after saying what that costs."),
    "reconcile": ("anchor", "Charge what a restored store lacks."),
    "anchor": ("anchor", "Go on after the anchor was lost, charging a bound."),
    "outbox": ("status", "Show releases that sinks have not taken; retry dead letters."),
    "logs": ("status", "Read, filter and follow the log."),
    "schema": ("doctor", "Print the JSON Schema of the configuration, for editors."),
    "completion": ("options", "Print the shell completion script."),
    "version": ("options", "Print the version."),
}
"""Name of each command, its module below `streamdp.cli`, and what `--help` says of it."""


def _print_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from streamdp.cli.options import version_line

        click.echo(version_line())
        context.exit()


@click.group(
    cls=LazyGroup,
    lazy_commands=COMMANDS,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show version and commit, and exit.",
)
def cli() -> None:
    """Differentially private statistics of every new batch, on a schedule.

    Start with `streamdp init --demo`, then `streamdp run --once` and `streamdp releases`.
    """


def compute_on_one_thread() -> None:
    """Let linear algebra use one thread, unless the environment says how many it is to use."""
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")


def main() -> NoReturn:
    """Run a command; errors become one message and a fixed exit code."""
    compute_on_one_thread()
    streams.secure()
    code = _ended(_typed)
    left = _ended(streams.finish) if code == 0 else streams.give_up()
    sys.exit(code or left)


def _typed() -> None:
    """Run the command line, once it is text."""
    for argument in sys.argv[1:]:
        if not is_text(argument):
            shown = argument.encode(errors="surrogateescape").decode(errors="backslashreplace")
            raise ConfigurationError(
                "this is no UTF-8 text", where=shown, hint="names and paths are given as UTF-8"
            )
    cli(color=False if has_no_color() else None)


def _ended(work: Callable[[], object]) -> int:
    """Run some work; print its error, if any, and return its exit code."""
    try:
        work()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except StreamdpError as error:
        return _fail(error)
    except Exception as error:  # noqa: BLE001
        return _fail(_known(error))
    return 0


def _fail(error: StreamdpError) -> int:
    print_error(error.code, str(error))
    return error.exit_code


def _known(error: Exception) -> StreamdpError:
    """Translate an error of SQLite or the system into one of ours; raise any other as it is.

    Raises:
        Exception: The error itself, if it is neither.
    """
    if lacks_memory(error):
        return OutOfMemoryError("there is not enough memory", hint=MORE_MEMORY)
    if isinstance(error, OSError):
        where = str(error.filename or "")
        return StreamdpError(error.strerror or "the system refused", where=where)
    if type(error).__module__ == "sqlite3":
        from streamdp.store.database import translate

        return translate(error)
    raise error
