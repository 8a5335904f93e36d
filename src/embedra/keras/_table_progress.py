"""TableProgress: how tables grow, beside the loss."""

from typing import Any

import keras

from embedra._checks import check_flag
from embedra.table import table_sizes

from ._summary import named_tables


# The log of all rows.
TABLE_ROWS = "table_rows"


class TableProgress(keras.callbacks.Callback):
    """Shows how many rows the tables have in the progress bar of `fit`.

    The number is added to the logs as `table_rows`, which the progress bar
    shows after each step, and which `History` holds for each epoch. Callbacks
    that come after this one may monitor it.

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
        self._add(logs)

    def on_epoch_end(
        self, epoch: int, logs: dict[str, Any] | None = None
    ) -> None:
        """Adds the rows to the logs of an epoch."""
        del epoch
        self._add(logs)

    def _add(self, logs: dict[str, Any] | None) -> None:
        tables = named_tables(self.model)
        if logs is None or not tables:
            return
        sizes = table_sizes(list(tables.values()))
        logs[TABLE_ROWS] = sum(sizes)
        if self.each:
            for name, size in zip(tables, sizes, strict=True):
                logs[f"{TABLE_ROWS}/{name}"] = size
