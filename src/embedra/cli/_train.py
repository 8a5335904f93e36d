"""`embedra train`: trains a click model on files."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import keras
import typer

from embedra import saved_model
from embedra.checkpoint import StopRequest

from ._checkpoints import TrainingCheckpoint
from ._console import (
    UsageError,
    check_one_process,
    check_replaceable,
    console,
    make_folder,
    quiet_tensorflow,
    readable_errors,
)
from ._inputs import (
    Format,
    OnError,
    columns_of,
    format_of,
    open_inputs,
    usage_errors,
)
from ._models import ModelName, OptimizerName, make_model, make_optimizer
from ._results import show, train_and_measure
from ._trainer import Trainer


def train(
    data: Annotated[Path, typer.Option(help="Training rows.")],
    format_: Annotated[
        Format | None,
        typer.Option(
            "--format", help="Layout of the files; .parquet says it by itself."
        ),
    ] = None,
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
        OnError,
        typer.Option(help="Malformed rows: stop, or count and leave out."),
    ] = OnError.RAISE,
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
        Path | None,
        typer.Option(
            help="Folder for a SavedModel; one that is there is replaced."
        ),
    ] = None,
    native_ops: Annotated[
        bool,
        typer.Option(
            "--native-ops",
            help="Export tables that can be trained further, with Embedra's "
            "ops. By default TensorFlow alone loads the SavedModel.",
        ),
    ] = False,
) -> None:
    """Trains a click model on a file and reports AUC and log loss."""
    quiet_tensorflow()
    with readable_errors(), ExitStack() as stack:
        check_one_process("train")
        columns = columns_of(label, integer_columns, categorical_columns)
        layout = format_of(data, format_)
        inputs = open_inputs(data, validation, test, layout, columns, on_error)
        for folder, option in (
            (checkpoint_dir, "--checkpoint-dir"),
            (export, "--export"),
        ):
            if folder is not None:
                make_folder(folder, option)
        if export is not None:
            check_replaceable(export, "--export")
        keras.utils.set_random_seed(seed)
        columns = inputs.data.columns
        with usage_errors():
            compiled = make_model(
                model,
                columns,
                make_optimizer(optimizer, learning_rate),
                dim=dim,
                dropout=dropout,
            )
        settings = {
            "data": str(data.resolve()),
            "format": layout,
            "label": columns.label,
            "integer_columns": columns.numeric,
            "categorical_columns": columns.categorical,
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
            inputs.data,
            inputs.validation,
            TrainingCheckpoint(directory, compiled, settings),
            saving=checkpoint_dir is not None,
            batch_size=batch_size,
            seed=seed,
            held_out=held_out,
            save_every=save_every,
            stop=StopRequest(),
        )
        results = train_and_measure(trainer, inputs.test, epochs, patience)
        show(results, trainer, inputs)
        if export is not None:
            saved_model.export(
                compiled, export, native_ops=native_ops, overwrite=True
            )
            console.print(f"Exported to {export}.")
        if results.failures:
            raise UsageError(" ".join(results.failures))
