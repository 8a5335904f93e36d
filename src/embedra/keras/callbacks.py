"""Keras callbacks that watch tables, in any `keras.Model`."""

from ._table_progress import TableProgress as TableProgress
from ._table_summary import TableSummary as TableSummary
