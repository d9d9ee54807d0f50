"""`streamdp completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

HELP = """Print the completion script of a shell.

\b
bash:  eval "$(streamdp completion bash)"
zsh:   eval "$(streamdp completion zsh)"
fish:  streamdp completion fish | source
"""


@click.command(help=HELP)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    from streamdp.cli import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(kind(cli, {}, "streamdp", "_STREAMDP_COMPLETE").source())
