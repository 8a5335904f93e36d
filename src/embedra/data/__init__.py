"""Readers of rows, Parquet above all, and of click logs; a synthetic one."""

from ._block import Block as Block
from ._click_log import ClickLog as ClickLog, ideal_auc as ideal_auc
from ._columns import Columns as Columns
from ._errors import DataError as DataError, ReadReport as ReadReport
from ._field import DataFrame as DataFrame, Field as Field
from ._formats import (
    FORMATS as FORMATS,
    FileFormat as FileFormat,
    file_format as file_format,
)
from ._iterators import (
    make_initializable_iterator as make_initializable_iterator,
    make_one_shot_iterator as make_one_shot_iterator,
)
from ._load_report import LoadReport as LoadReport
from ._parquet_dataset import ParquetDataset as ParquetDataset
from ._reader import ClickReader as ClickReader
from ._row_dataset import RowDataset as RowDataset
from ._string_ids import string_ids as string_ids
from ._symbolic import (
    BatchTensor as BatchTensor,
    SymbolicBatch as SymbolicBatch,
)
