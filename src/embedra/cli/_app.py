"""The command with its subcommands."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

from ._convert import convert
from ._demo import demo
from ._doctor import doctor
from ._inspect import inspect
from ._run import run
from ._serve import serve
from ._train import train


app = typer.Typer(
    name="embedra",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"embedra {metadata.version('embedra')}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version and end.",
        ),
    ] = False,
) -> None:
    """Dynamic embeddings for TensorFlow: demo, training, ranks, check-up."""
    del version


app.command()(demo)
app.command()(train)
app.command()(convert)
app.add_typer(inspect, name="inspect")
app.command()(doctor)
app.command()(serve)
# What comes after the script is the script's.
app.command(
    context_settings={
        "allow_extra_args": True,
        "allow_interspersed_args": False,
        "ignore_unknown_options": True,
    }
)(run)


def main() -> None:
    """Runs the command with the arguments of the process."""
    app(prog_name="embedra")
