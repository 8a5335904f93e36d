"""What a training comes to, and how that is told."""

from __future__ import annotations

import math
import signal
from dataclasses import dataclass, field

import typer
from rich.table import Table as Listing

from embedra.checkpoint import TrainingStopped
from embedra.data import ClickReader

from ._console import console, errors, warn
from ._inputs import Inputs
from ._measures import Measures
from ._models import table_bytes, table_sizes
from ._trainer import MeasuringError, Trainer


@dataclass(frozen=True)
class Results:
    """Measures of a trained model.

    Attributes:
        measured: By the name of the rows.
        failures: A sentence for all rows that could not be measured on.
    """

    measured: dict[str, Measures] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def train_and_measure(
    trainer: Trainer, test: ClickReader | None, epochs: int, patience: int
) -> Results:
    """Trains, and measures the best epoch.

    Rows that cannot be measured on take nothing from what was trained: the
    results say so.

    Args:
        trainer: Trains from where its checkpoint is, or from the start.
        test: Rows to measure on besides those of the validation.
        epochs: As of `Trainer.run`.
        patience: As of `Trainer.run`.

    Raises:
        DataError: If the training rows cannot be read.
        typer.Exit: After a signal, with its status.
    """
    results = Results()
    if trainer.checkpoint.restore():
        console.print(
            f"Going on from {trainer.checkpoint.directory}: "
            f"{_place(trainer)} are done."
        )
    try:
        with trainer.stop.listening():
            try:
                trainer.run(epochs, patience)
                validated = trainer.validate()
                if validated is not None:
                    results.measured["validation"] = validated
            except MeasuringError as error:
                results.failures.append(_failed("validation", trainer, error))
            try:
                if test is not None:
                    results.measured["test"] = trainer.measure(test)
            except MeasuringError as error:
                results.failures.append(_failed("test", trainer, error))
    except TrainingStopped as stopped:
        _tell_of_stop(trainer, stopped.signal_number)
        raise typer.Exit(128 + stopped.signal_number) from stopped
    return results


def show(results: Results, trainer: Trainer, inputs: Inputs) -> None:
    """Prints results, speed, and the size of the tables, with warnings."""
    if results.measured:
        console.print(_listing(results))
    for name, measured in results.measured.items():
        _warn_of_nan(name, measured)
    best_epoch, _ = trainer.checkpoint.best
    if best_epoch:
        console.print(f"Best epoch by validation AUC: {best_epoch}.")
    if trainer.seconds:
        speed = trainer.ids / trainer.seconds
        console.print(f"Training: {speed:,.0f} ids per second.")
    sizes = table_sizes(trainer.model)
    listed = ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    console.print(
        f"Tables: {sum(sizes.values()):,} keys, "
        f"{table_bytes(trainer.model) / 2**20:.1f} MiB ({listed})."
    )
    for reader in (inputs.data, inputs.validation, inputs.test):
        if reader is not None and reader.report.malformed:
            warn(reader.report.summary())


def _listing(results: Results) -> Listing:
    listing = Listing("rows", "count", "AUC", "log loss", title="Results")
    for name, measured in results.measured.items():
        listing.add_row(
            name,
            f"{measured.rows:,}",
            f"{measured.auc:.4f}",
            f"{measured.log_loss:.4f}",
        )
    return listing


def _warn_of_nan(name: str, measured: Measures) -> None:
    if math.isnan(measured.log_loss):
        warn(
            f"The model predicts NaN on the {name} rows: the training "
            "diverged. Lower --learning-rate."
        )
    elif math.isnan(measured.auc):
        warn(
            f"All labels of the {name} rows are equal, so there is no "
            "AUC. Choose rows with labels of both kinds."
        )


def _place(trainer: Trainer) -> str:
    epoch, step = trainer.checkpoint.place
    return f"{epoch} epochs and {step} steps"


def _failed(rows: str, trainer: Trainer, error: MeasuringError) -> str:
    kept = (
        f" What was trained is saved in {trainer.checkpoint.directory}; the "
        "same command goes on from there."
        if trainer.saving
        else ""
    )
    return (
        f"Trained, but the {rows} rows could not be measured on: {error}{kept}"
    )


def _tell_of_stop(trainer: Trainer, signal_number: int) -> None:
    name = signal.Signals(signal_number).name
    if trainer.saving:
        errors.print(
            f"Stopped by {name} after {_place(trainer)}; saved in "
            f"{trainer.checkpoint.directory}. The same command goes on."
        )
    else:
        errors.print(
            f"Stopped by {name}. Nothing was saved: there was no "
            "--checkpoint-dir."
        )
