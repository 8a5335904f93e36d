"""How the command talks to people."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf
import typer
from absl import logging as absl_logging
from rich.console import Console
from rich.text import Text

from embedra.data import DataError
from embedra.saved_model import check_free
from embedra.scopes import context


# Without markup: what is printed holds names and values of the user.
console = Console(soft_wrap=True, markup=False, emoji=False)
errors = Console(stderr=True, soft_wrap=True, markup=False, emoji=False)


def quiet_tensorflow() -> None:
    """Leaves out TensorFlow's remarks below the level of errors."""
    tf.get_logger().setLevel("ERROR")
    absl_logging.set_verbosity(absl_logging.ERROR)


@contextmanager
def readable_errors() -> Iterator[None]:
    """Ends the command with one clear message where the user can mend it.

    Raises:
        typer.Exit: With status 1, for errors in the data, the options, or
            of the file system.
    """
    try:
        yield
    except (DataError, UsageError, OSError) as error:
        errors.print(marked("Error:", "bold red", str(error)))
        raise typer.Exit(1) from error


@contextmanager
def unknown_length() -> Iterator[None]:
    """Lets Keras find the end of a dataset by itself, without its warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Your input ran out of data")
        yield


def check_one_process(command: str) -> None:
    """Raises if this is a rank of a job, where each would write the same.

    Args:
        command: What the user has called.

    Raises:
        UsageError: If there are several ranks.
    """
    ranks = context.world_size
    if ranks > 1:
        msg = (
            f"`embedra {command}` works in one process, and was started as "
            f"{ranks} ranks. Call it by itself. Several ranks train together "
            "in a script with `embedra.keras.Model.fit`: `embedra run -n "
            f"{ranks} script.py`."
        )
        raise UsageError(msg)


class UsageError(Exception):
    """Options that cannot be followed; the message says what to do."""


def marked(mark: str, style: str, text: str) -> Text:
    """A line with a coloured word before it; the text stays as it is."""
    return Text.assemble((mark, style), " ", text)


def warn(text: str) -> None:
    """Prints a warning."""
    errors.print(marked("Warning:", "yellow", text))


def make_folder(path: Path, option: str) -> None:
    """Makes a folder to write to, before much work is done for it.

    Raises:
        UsageError: If it cannot be made or written to.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        msg = (
            f"{path}: cannot be written to ({error.strerror}). Name a folder "
            f"that can be with {option}."
        )
        raise UsageError(msg) from error


def check_replaceable(path: Path, option: str) -> None:
    """Looks whether a SavedModel may go to a folder.

    Raises:
        UsageError: If there is something else than a SavedModel.
    """
    try:
        check_free(str(path), overwrite=True)
    except FileExistsError as error:
        msg = (
            f"{path}: has files that are no SavedModel. Name a folder that is "
            f"new or empty with {option}."
        )
        raise UsageError(msg) from error
