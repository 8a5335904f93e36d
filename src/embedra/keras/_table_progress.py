"""TableProgress: how tables grow, beside the loss."""

from typing import Any

import keras
import tensorflow as tf

from embedra._checks import check_flag
from embedra.distribute import job_communicator
from embedra.table import Table, table_sizes

from ._summary import named_tables


# The log of all rows.
TABLE_ROWS = "table_rows"


class TableProgress(keras.callbacks.Callback):
    """Shows how many rows the tables have in the progress bar of `fit`.

    The number is added to the logs as `table_rows`, which the progress bar
    shows after each step, and which `History` holds for each epoch. Callbacks
    that come after this one may monitor it.

    In a job of several ranks the logs of an epoch count the rows of all, and
    those of a step the rows of this rank. All ranks must have the callback.

    Args:
        each: Whether the rows of each table are shown too, as
            `table_rows/<table>`.

    Attributes:
        each: Whether they are.

    Example:
        >>> import numpy as np
        >>> import embedra as hb
        >>> model = keras.Sequential([hb.layers.Embedding(2, combiner="sum")])
        >>> model.compile("sgd", "mse")
        >>> x, y = np.arange(8).reshape(4, 2), np.zeros((4, 2))
        >>> progress = hb.keras.callbacks.TableProgress()
        >>> history = model.fit(x, y, callbacks=[progress], verbose=0).history
        >>> history["table_rows"]
        [8]
    """

    def __init__(self, each: bool = False) -> None:
        super().__init__()
        check_flag("each", each)
        self.each = each

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Adds the rows to the logs of a step."""
        del batch
        tables = named_tables(self.model)
        self._add(logs, tables, table_sizes(list(tables.values())))

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Adds the rows to the logs of an epoch."""
        del epoch
        tables = named_tables(self.model)
        self._add(logs, tables, _sizes_over_ranks(list(tables.values())))

    def _add(
        self,
        logs: dict[str, Any] | None,
        tables: dict[str, Table],
        sizes: list[int],
    ) -> None:
        if logs is None or not tables:
            return
        logs[TABLE_ROWS] = sum(sizes)
        if self.each:
            for name, size in zip(tables, sizes, strict=True):
                logs[f"{TABLE_ROWS}/{name}"] = size


def _sizes_over_ranks(tables: list[Table]) -> list[int]:
    """Counts the rows of tables on all ranks of the job.

    Args:
        tables: The tables. Of one that is whole on each rank, those of rank 0
            count.

    Returns:
        The number of rows of each.
    """
    sizes = table_sizes(tables)
    ranks = job_communicator()
    if ranks is None or not tables:
        return sizes
    own = [
        size if table.communicator is not None or ranks.rank == 0 else 0
        for table, size in zip(tables, sizes, strict=True)
    ]
    total = ranks.all_reduce(tf.constant(own, tf.int64), label="table sizes")
    return [int(size) for size in total]
