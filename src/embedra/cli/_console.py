"""How the command talks to people."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf
import typer
from absl import logging as absl_logging
from rich.console import Console

from embedra.data import DataError


console = Console(soft_wrap=True)
errors = Console(stderr=True, soft_wrap=True)


def quiet_tensorflow() -> None:
    """Leaves out TensorFlow's remarks below the level of errors."""
    tf.get_logger().setLevel("ERROR")
    absl_logging.set_verbosity(absl_logging.ERROR)


@contextmanager
def readable_errors() -> Iterator[None]:
    """Ends the command with one clear message where the user can mend it.

    Raises:
        typer.Exit: With status 1, for errors in the data or the options.
    """
    try:
        yield
    except (DataError, UsageError) as error:
        errors.print(f"[bold red]Error:[/] {_escape(str(error))}")
        raise typer.Exit(1) from error


@contextmanager
def unknown_length() -> Iterator[None]:
    """Lets Keras find the end of a dataset by itself, without its warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Your input ran out of data")
        yield


class UsageError(Exception):
    """Options that cannot be followed; the message says what to do."""


def _escape(text: str) -> str:
    """Keeps Rich from reading brackets in data as markup."""
    return text.replace("[", r"\[")
