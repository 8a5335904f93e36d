"""The command with its subcommands."""

from __future__ import annotations

import typer

from ._demo import demo
from ._doctor import doctor
from ._train import train


app = typer.Typer(
    name="embedra",
    help="Dynamic embeddings for TensorFlow: demo, training, check-up.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
app.command()(demo)
app.command()(train)
app.command()(doctor)


def main() -> None:
    """Runs the command with the arguments of the process."""
    app(prog_name="embedra")
