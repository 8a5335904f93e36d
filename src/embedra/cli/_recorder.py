"""What happened while a model trained, shown as it happens and kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import keras
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from ._console import console
from ._models import table_sizes


@dataclass(frozen=True)
class Point:
    """The state of a training at one step.

    Attributes:
        step: Steps taken.
        loss: Mean loss since the point before.
        auc: AUC on rows kept apart, or on this epoch's training rows.
        ids_per_second: Ids looked up and updated per second of training
            since the point before.
        table_sizes: Keys in each table, by feature.
    """

    step: int
    loss: float
    auc: float
    ids_per_second: float
    table_sizes: dict[str, int]


@dataclass
class Recorder:
    """Collects points and draws the progress bar.

    Args:
        title: Text before the bar.
        ids_per_step: Ids in a full batch.
        every: Steps between two points.
        total: Steps in all, if known.
        measure_auc: Measures AUC on rows kept apart; default: the AUC of
            training so far in this epoch.
    """

    title: str
    ids_per_step: int
    every: int
    total: int | None = None
    measure_auc: Callable[[keras.Model], float] | None = None
    points: list[Point] = field(default_factory=list)
    seconds: float = 0.0
    ids: int = 0

    def callback(self, start: int = 0) -> RecorderCallback:
        """The callback for one call of `fit` that starts at a step.

        It is a context: the progress bar is drawn within it.
        """
        return RecorderCallback(self, start)

    @property
    def ids_per_second(self) -> float:
        """Mean over the training; evaluation and first step not counted."""
        return self.ids / self.seconds if self.seconds else 0.0


class RecorderCallback(keras.callbacks.Callback):
    """Writes into a recorder while `fit` runs; see `Recorder.callback`."""

    def __init__(self, recorder: Recorder, start: int) -> None:
        super().__init__()
        self._recorder = recorder
        self._start = start
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}"),
            TimeElapsedColumn(),
            console=console,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._progress.stop()

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Starts the bar and the clock."""
        del logs
        recorder = self._recorder
        self._task: TaskID = self._progress.add_task(
            recorder.title,
            total=recorder.total,
            completed=self._start,
            status="",
        )
        self._batches = 0
        self._marked_batches = 0
        self._marked_loss = 0.0
        self._clock = time.perf_counter()
        self._timed_batches = 0

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Moves the bar, and makes a point where one is due."""
        self._batches = batch + 1
        if batch == 0:
            # It traces the graph and fills the pipeline: not timed.
            self._clock = time.perf_counter()
            self._timed_batches = 0
        else:
            self._timed_batches += 1
        self._progress.update(self._task, advance=1)
        if self._batches % self._recorder.every == 0:
            self._mark(logs or {})

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Makes a point of what is left."""
        if self._batches > self._marked_batches:
            self._mark(logs or {})

    def _mark(self, logs: dict[str, Any]) -> None:
        recorder = self._recorder
        seconds = time.perf_counter() - self._clock
        batches = self._batches - self._marked_batches
        # Keras reports the mean since the epoch began.
        total_loss = float(logs["loss"]) * self._batches
        ids = self._timed_batches * recorder.ids_per_step
        auc = (
            float(logs["auc"])
            if recorder.measure_auc is None
            else recorder.measure_auc(self.model)
        )
        point = Point(
            self._start + self._batches,
            (total_loss - self._marked_loss) / batches,
            auc,
            ids / seconds if ids else 0.0,
            table_sizes(self.model),
        )
        recorder.points.append(point)
        if ids:
            recorder.seconds += seconds
            recorder.ids += ids
        keys = sum(point.table_sizes.values())
        status = f"loss {point.loss:.4f}  AUC {auc:.4f}  {keys:,} keys"
        self._progress.update(self._task, status=status)
        self._marked_batches, self._marked_loss = self._batches, total_loss
        self._clock = time.perf_counter()
        self._timed_batches = 0
