"""TableSummary: what happens in tables, for TensorBoard."""

import os
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from embedra._checks import check_number, checked_path
from embedra.checkpoint import is_due
from embedra.distribute import job_communicator
from embedra.table import Records, Slot, Table, sample_records

from ._summary import named_tables


# What happened since the numbers were written last; see `TableStatistics`.
_COUNTS = (
    "inserts",
    "removes",
    "evictions",
    "hits",
    "misses",
    "updates",
)


class TableSummary(keras.callbacks.Callback):
    """Writes what happens in the tables of a model, for TensorBoard.

    For each table, under its name: `rows` and `bytes`; `inserts`, `removes`,
    `evictions`, `hits`, `misses` and `updates` since they were written last
    (rows that a checkpoint restores count as inserts, and lookups of a
    validation as hits or misses); `hit_rate`, the share of keys that were
    found; and of a sample of rows the mean and largest Euclidean norm, as
    `row_norm` and `row_norm_max`, with the mean norm of each slot of the
    optimizer as `slot_norm/<slot>`. The step is that of the optimizer, which
    goes on where a training is continued.

    TensorBoard itself need not be installed to write.

    Args:
        log_dir: The numbers are written to its folder `tables`. It may be that
            of `keras.callbacks.TensorBoard`. In a job each rank has a folder
            of its own, `tables-0` and so on, for its part of the tables.
        every_n_steps: Steps between two writings within an epoch, by default
            none. They are always written at its end.
        sample: Rows to measure in each table at most; 0 for no norms.

    Raises:
        TypeError: If an argument is of another kind.
        ValueError: If a number is out of range.

    Example:
        >>> import tempfile
        >>> import embedra as hb
        >>> model = keras.Sequential([hb.layers.Embedding(2, combiner="sum")])
        >>> model.compile("sgd", "mse")
        >>> x, y = np.arange(8).reshape(4, 2), np.zeros((4, 2))
        >>> folder = tempfile.mkdtemp()
        >>> summary = hb.keras.callbacks.TableSummary(folder)
        >>> history = model.fit(x, y, callbacks=[summary], verbose=0)
        >>> os.listdir(folder)
        ['tables']
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        *,
        every_n_steps: int | None = None,
        sample: int = 4096,
    ) -> None:
        super().__init__()
        if every_n_steps is not None:
            check_number("every_n_steps", every_n_steps, whole=True)
        check_number("sample", sample, whole=True, zero=True)
        self.log_dir = checked_path("log_dir", log_dir)
        self._every = every_n_steps
        self._sample = sample
        self._writer: Any = None
        self._step = 0
        # Counters of each table when they were written last.
        self._before: dict[str, dict[str, int]] = {}

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Notes the counters, and where the training is."""
        del logs
        ranks = job_communicator()
        folder = "tables" if ranks is None else f"tables-{ranks.rank}"
        self._writer = tf.summary.create_file_writer(
            os.path.join(self.log_dir, folder)
        )
        self._step = self._now()
        self._before = {
            name: _counts(table)
            for name, table in named_tables(self.model).items()
        }

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Writes the numbers where due."""
        del batch, logs
        if not self._every:
            return
        before, self._step = self._step, self._now()
        if is_due(before, self._step, self._every):
            self._write()

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Writes the numbers of the epoch."""
        del epoch, logs
        self._step = self._now()
        self._write()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Closes the file."""
        del logs
        if self._writer is not None:
            self._writer.close()

    def _now(self) -> int:
        return int(self.model.optimizer.iterations)

    def _write(self) -> None:
        with self._writer.as_default(step=self._step):
            for name, table in named_tables(self.model).items():
                counts = _counts(table)
                before = self._before.get(name, {})
                self._before[name] = counts
                for measure, value in self._measures(table, counts, before):
                    _write_scalar(f"{name}/{measure}", value)
        self._writer.flush()

    def _measures(
        self, table: Table, counts: dict[str, int], before: dict[str, int]
    ) -> Iterator[tuple[str, float]]:
        statistics = table.statistics()
        yield "rows", statistics.size
        yield "bytes", statistics.bytes
        new = {name: counts[name] - before.get(name, 0) for name in _COUNTS}
        yield from new.items()
        lookups = new["hits"] + new["misses"]
        if lookups:
            yield "hit_rate", new["hits"] / lookups
        if self._sample and statistics.size:
            records = sample_records(table, self._sample)
            yield from _norms(records, table.slots)


def _counts(table: Table) -> dict[str, int]:
    statistics = table.statistics()
    return {name: getattr(statistics, name) for name in _COUNTS}


def _norms(
    records: Records, slots: tuple[Slot, ...]
) -> Iterator[tuple[str, float]]:
    rows = _norm(records.rows)
    yield "row_norm", rows.mean()
    yield "row_norm_max", rows.max()
    ends = np.cumsum([slot.width for slot in slots])
    for slot, end in zip(slots, ends, strict=True):
        values = _norm(records.slots[:, end - slot.width : end])
        yield f"slot_norm/{slot.name}", values.mean()


def _norm(rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    norm: npt.NDArray[np.float64] = np.linalg.norm(
        rows.astype(np.float64), axis=1
    )
    return norm


def _write_scalar(tag: str, value: float) -> None:
    """Writes a number as `tf.summary.scalar` does.

    That function needs TensorBoard's package, which TensorFlow no longer
    brings; what it writes is simple.
    """
    summary = tf.compat.v1.SummaryMetadata(data_class="DATA_CLASS_SCALAR")
    summary.plugin_data.plugin_name = "scalars"
    tf.summary.write(tag, tf.constant(value, tf.float32), metadata=summary)
