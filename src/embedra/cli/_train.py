"""`embedra train`: trains a click model on files."""

from __future__ import annotations

import math
import signal
import tempfile
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import keras
import typer
from rich.table import Table as Listing

from embedra.data import ClickReader, Columns

from ._checkpoints import StopRequest, TrainingCheckpoint, TrainingStopped
from ._console import (
    UsageError,
    console,
    errors,
    make_folder,
    quiet_tensorflow,
    readable_errors,
    warn,
)
from ._measures import Measures
from ._models import (
    ModelName,
    OptimizerName,
    make_model,
    make_optimizer,
    table_bytes,
    table_sizes,
)
from ._trainer import Trainer


class _Format(StrEnum):
    CRITEO = "criteo"
    AVAZU = "avazu"
    CSV = "csv"
    PARQUET = "parquet"


class _OnError(StrEnum):
    RAISE = "raise"
    SKIP = "skip"


def train(
    data: Annotated[Path, typer.Option(help="Training rows.")],
    format_: Annotated[
        _Format, typer.Option("--format", help="Layout of the files.")
    ],
    test: Annotated[
        Path | None, typer.Option(help="Rows for the final measure.")
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(
            help="Rows to choose the best epoch by. Without it a part of "
            "the training rows is set apart, see --held-out."
        ),
    ] = None,
    held_out: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=0.9,
            help="Share of the training rows set apart where there is no "
            "--validation; 0 trains on all and keeps the last epoch.",
        ),
    ] = 0.1,
    label: Annotated[
        str | None, typer.Option(help="Label column (csv, parquet).")
    ] = None,
    integer_columns: Annotated[
        str, typer.Option(help="Numeric columns, separated by commas.")
    ] = "",
    categorical_columns: Annotated[
        str, typer.Option(help="Columns of ids, separated by commas.")
    ] = "",
    model: Annotated[
        ModelName, typer.Option(help="Kind of the model.")
    ] = ModelName.DLRM,
    dim: Annotated[
        int,
        typer.Option(min=1, max=2**20, help="Width of the rows of the tables."),
    ] = 16,
    dropout: Annotated[
        float,
        typer.Option(
            min=0.0, max=0.9, help="Share of the units dropped in training."
        ),
    ] = 0.3,
    optimizer: Annotated[
        OptimizerName, typer.Option(help="How weights and rows are updated.")
    ] = OptimizerName.ADAM,
    learning_rate: Annotated[
        float | None,
        typer.Option(min=0.0, help="Default: one that suits the optimizer."),
    ] = None,
    epochs: Annotated[
        int, typer.Option(min=1, help="Passes over the training rows at most.")
    ] = 5,
    patience: Annotated[
        int,
        typer.Option(
            min=0,
            help="Stop after so many epochs without a better validation "
            "AUC; 0 for never.",
        ),
    ] = 1,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Rows of a training step.")
    ] = 128,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=2**32 - 1,
            help="Seed of the weights and the order of the rows.",
        ),
    ] = 0,
    on_error: Annotated[
        _OnError,
        typer.Option(help="Malformed rows: stop, or count and leave out."),
    ] = _OnError.RAISE,
    checkpoint_dir: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the state of the training. The same command "
            "goes on from there, at the exact step."
        ),
    ] = None,
    save_every: Annotated[
        int,
        typer.Option(
            min=0,
            help="Save also every so many steps, not only after each epoch.",
        ),
    ] = 0,
    export: Annotated[
        Path | None, typer.Option(help="Folder for a SavedModel.")
    ] = None,
) -> None:
    """Trains a click model on a file and reports AUC and log loss."""
    quiet_tensorflow()
    stop = StopRequest()
    with readable_errors(), ExitStack() as stack:
        columns = _columns(label, integer_columns, categorical_columns)

        def open_reader(path: Path) -> ClickReader:
            return ClickReader(
                path, format_.value, columns, on_error=on_error.value
            )

        try:
            reader = open_reader(data)
            validation_reader = open_reader(validation) if validation else None
            test_reader = open_reader(test) if test else None
        except ValueError as error:
            raise UsageError(str(error)) from error
        for folder, option in (
            (checkpoint_dir, "--checkpoint-dir"),
            (export, "--export"),
        ):
            if folder is not None:
                make_folder(folder, option)
        keras.utils.set_random_seed(seed)
        try:
            compiled = make_model(
                model,
                reader.columns,
                make_optimizer(optimizer, learning_rate),
                dim=dim,
                dropout=dropout,
            )
        except ValueError as error:
            raise UsageError(str(error)) from error
        settings = {
            "data": str(data.resolve()),
            "format": format_,
            "label": reader.columns.label,
            "integer_columns": reader.columns.numeric,
            "categorical_columns": reader.columns.categorical,
            "validation": validation and str(validation.resolve()),
            "held_out": held_out,
            "model": model,
            "dim": dim,
            "dropout": dropout,
            "optimizer": optimizer,
            "learning_rate": learning_rate,
            "batch_size": batch_size,
            "seed": seed,
            "on_error": on_error,
        }
        directory = checkpoint_dir or Path(
            stack.enter_context(tempfile.TemporaryDirectory())
        )
        trainer = Trainer(
            compiled,
            reader,
            validation_reader,
            TrainingCheckpoint(directory, compiled, settings),
            saving=checkpoint_dir is not None,
            batch_size=batch_size,
            seed=seed,
            held_out=held_out,
            save_every=save_every,
            stop=stop,
        )
        if trainer.checkpoint.restore():
            epoch, step = trainer.checkpoint.place
            console.print(
                f"Going on from {directory}: {epoch} epochs and {step} "
                "steps are done."
            )
        _run(trainer, epochs, patience)
        _report(trainer, test_reader)
        if export is not None:
            compiled.export(str(export), verbose=False)
            console.print(f"Exported to {export}.")


def _columns(
    label: str | None, integer: str, categorical: str
) -> Columns | None:
    """Columns as the options name them; `None` if they do not."""
    if label is None and not integer and not categorical:
        return None
    if label is None:
        msg = "Name the label column too: --label NAME."
        raise UsageError(msg)

    def split(names: str) -> tuple[str, ...]:
        return tuple(n.strip() for n in names.split(",") if n.strip())

    try:
        return Columns(label, split(integer), split(categorical))
    except ValueError as error:
        raise UsageError(str(error)) from error


def _run(trainer: Trainer, epochs: int, patience: int) -> None:
    """Trains; after a signal says where it stopped and ends the command."""
    try:
        with trainer.stop.listening():
            trainer.run(epochs, patience)
    except TrainingStopped as stopped:
        name = signal.Signals(stopped.signal_number).name
        if trainer.saving:
            epoch, step = trainer.checkpoint.place
            place = f"{epoch} epochs and {step} steps"
            errors.print(
                f"Stopped by {name} after {place}; saved in "
                f"{trainer.checkpoint.directory}. The same command goes on."
            )
        else:
            errors.print(
                f"Stopped by {name}. Nothing was saved: there was no "
                "--checkpoint-dir."
            )
        raise typer.Exit(128 + stopped.signal_number) from stopped


def _report(trainer: Trainer, test: ClickReader | None) -> None:
    results = Listing("rows", "count", "AUC", "log loss", title="Results")

    def add(name: str, measured: Measures) -> None:
        results.add_row(
            name,
            f"{measured.rows:,}",
            f"{measured.auc:.4f}",
            f"{measured.log_loss:.4f}",
        )
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

    measured = trainer.validate()
    if measured is not None:
        add("validation", measured)
    if test is not None:
        add("test", trainer.measure(test))
    console.print(results)
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
    for reader in (trainer.reader, trainer.validation, test):
        if reader is not None and reader.report.malformed:
            warn(reader.report.summary())
