"""`embedra demo`: the whole job on a synthetic click log."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
import typer
from rich.table import Table as Listing

from embedra.data import Block, ClickLog, ideal_auc

from ._console import (
    check_one_process,
    console,
    make_folder,
    marked,
    quiet_tensorflow,
    readable_errors,
)
from ._measures import Measures, measure
from ._models import (
    ModelName,
    OptimizerName,
    make_model,
    make_optimizer,
    table_bytes,
    table_sizes,
)
from ._recorder import Recorder
from ._report import write_report
from ._saved_check import features_of, save_and_compare


_BATCH_SIZE = 1024
_DIM = 8
_TEST_BATCHES = 16
_TITLES = {ModelName.DLRM: "DLRM", ModelName.DCN_V2: "DCN V2"}
# How far predictions may differ: after loading, by rounding alone; after
# training again on several threads, by rounding that training has amplified.
_ROUNDING = 1e-6
_DRIFT = 1e-2


@dataclass(frozen=True)
class _Trained:
    model: keras.Model
    recorder: Recorder
    measures: Measures


class _Demo:
    """The parts that the steps of the demo share."""

    def __init__(self, directory: Path, seed: int, steps: int) -> None:
        self.directory = directory
        self.seed = seed
        self.steps = steps
        self.log = ClickLog(seed=seed)
        # The test rows come after all training rows, as in real life.
        parts = [
            self.log.batch(steps + i, _BATCH_SIZE) for i in range(_TEST_BATCHES)
        ]
        self.test = Block.concatenate([block for block, _ in parts])
        self.ideal_auc = ideal_auc(np.concatenate([p for _, p in parts]))
        self.test_features = features_of(self.test, self.log.columns)

    def new_model(self, name: ModelName) -> keras.Model:
        keras.utils.set_random_seed(self.seed)
        optimizer = make_optimizer(OptimizerName.ADAM, 0.005)
        return make_model(
            name, self.log.columns, optimizer, dim=_DIM, dropout=0.0
        )

    def predict(self, model: keras.Model) -> npt.NDArray[np.float32]:
        predicted = model.predict_on_batch(self.test_features)
        return np.asarray(predicted, np.float32).reshape(-1)

    def measure(self, model: keras.Model) -> Measures:
        return measure(self.test.labels, self.predict(model))

    def fit(
        self,
        model: keras.Model,
        title: str,
        first: int = 0,
        saver: keras.callbacks.Callback | None = None,
    ) -> Recorder:
        recorder = Recorder(
            title,
            _BATCH_SIZE * len(self.log.columns.categorical),
            every=max(self.steps // 20, 1),
            total=self.steps,
            measure_auc=lambda trained: self.measure(trained).auc,
        )
        data = self.log.dataset(_BATCH_SIZE, self.steps - first, first)
        with recorder.callback(first) as recording:
            callbacks = [recording, *([saver] if saver else [])]
            model.fit(data, shuffle=False, verbose=0, callbacks=callbacks)
        return recorder

    def resume(
        self, name: ModelName, checkpoint: str, step: int
    ) -> keras.Model:
        model = self.new_model(name)
        model.optimizer.build(model.trainable_variables)
        restored = _checkpoint(model).restore(checkpoint)
        restored.assert_consumed()
        self.fit(model, f"{_TITLES[name]} resumed", first=step)
        return model


class _SaveAt(keras.callbacks.Callback):
    """Writes a checkpoint after one step of the training."""

    def __init__(self, step: int, prefix: str) -> None:
        super().__init__()
        self.step = step
        self._prefix = prefix
        self.path = ""

    def on_train_batch_end(
        self, batch: int, logs: dict[str, float] | None = None
    ) -> None:
        del logs
        if batch + 1 == self.step:
            self.path = _checkpoint(self.model).save(self._prefix)


def _checkpoint(model: keras.Model) -> tf.train.Checkpoint:
    return tf.train.Checkpoint(model=model, optimizer=model.optimizer)


def demo(
    output: Annotated[
        Path, typer.Option(help="Folder for the report and the models.")
    ] = Path("embedra-demo"),
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=2**32 - 1, help="Seed of the log and the models."
        ),
    ] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help="A tenth of the training.")
    ] = False,
) -> None:
    """Trains, saves, reloads, resumes and exports models on a made-up log."""
    quiet_tensorflow()
    with readable_errors():
        check_one_process("demo")
        make_folder(output, "--output")
        _demonstrate(output, seed, quick=quick)


def _demonstrate(output: Path, seed: int, *, quick: bool) -> None:
    began = time.perf_counter()
    job = _Demo(output, seed, steps=40 if quick else 400)
    notes = [
        f"A click log (seed {seed}) with {len(job.log.columns.categorical)} "
        f"kinds of ids: {job.steps * _BATCH_SIZE:,} rows to train on, "
        f"{len(job.test):,} later ones to test. On these nobody can do "
        f"better than AUC {job.ideal_auc:.4f}, the ideal."
    ]
    console.print(notes[0])
    saver = _SaveAt(job.steps * 3 // 4, str(output / "checkpoint" / "state"))
    trained = {}
    for name, title in _TITLES.items():
        model = job.new_model(name)
        keep = saver if name is ModelName.DLRM else None
        recorder = job.fit(model, title, saver=keep)
        trained[name] = _Trained(model, recorder, job.measure(model))
    checks = [
        _check_resume(job, saver, trained[ModelName.DLRM].model),
        *_check_saving(job, {n: one.model for n, one in trained.items()}),
    ]
    for check in checks:
        verdict = ("pass", "green") if check.passed else ("fail", "red")
        console.print(marked(*verdict, f" {check.finding}"))
    results = _results(job, trained)
    _show(results)
    notes += [check.finding for check in checks]
    seconds = time.perf_counter() - began
    notes.append(f"All this took {seconds:.0f} seconds.")
    write_report(
        output / "report.html",
        {_TITLES[n]: one.recorder.points for n, one in trained.items()},
        results,
        job.ideal_auc,
        notes,
    )
    console.print(f"Report: {output / 'report.html'} ({seconds:.0f} s in all)")
    if not all(check.passed for check in checks):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Check:
    finding: str
    passed: bool


def _check_resume(job: _Demo, saver: _SaveAt, reference: keras.Model) -> _Check:
    resumed = job.resume(ModelName.DLRM, saver.path, saver.step)
    drift = float(np.abs(job.predict(resumed) - job.predict(reference)).max())
    return _Check(
        f"{_TITLES[ModelName.DLRM]}: resumed from the checkpoint of step "
        f"{saver.step} and trained to the end, predictions differ from those "
        f"of the training that never stopped by at most {drift:.1e}.",
        drift <= _DRIFT and table_sizes(resumed) == table_sizes(reference),
    )


def _check_saving(
    job: _Demo, models: dict[ModelName, keras.Model]
) -> list[_Check]:
    differences = save_and_compare(
        job.directory,
        {name.value: model for name, model in models.items()},
        job.test,
        job.log.columns,
    )
    return [
        _Check(
            f"{_TITLES[name]}: loaded in new processes, predictions differ "
            f"by at most {differences[name].keras:.1e} (.keras file) and "
            f"{differences[name].exported:.1e} (SavedModel, in TensorFlow "
            "without Embedra).",
            max(differences[name].keras, differences[name].exported)
            <= _ROUNDING,
        )
        for name in models
    ]


def _results(
    job: _Demo, trained: dict[ModelName, _Trained]
) -> list[tuple[str, ...]]:
    head = ("model", "test AUC", "log loss", "ids/s", "keys", "MiB in tables")
    rows = [
        (
            _TITLES[name],
            f"{one.measures.auc:.4f}",
            f"{one.measures.log_loss:.4f}",
            f"{one.recorder.ids_per_second:,.0f}",
            f"{sum(table_sizes(one.model).values()):,}",
            f"{table_bytes(one.model) / 2**20:.1f}",
        )
        for name, one in trained.items()
    ]
    ideal = ("ideal", f"{job.ideal_auc:.4f}", "", "", "", "")
    return [head, *rows, ideal]


def _show(results: list[tuple[str, ...]]) -> None:
    head, *rows = results
    listing = Listing(*head, title="Results")
    for row in rows:
        listing.add_row(*row)
    console.print(listing)
