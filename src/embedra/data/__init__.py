"""Readers of rows, Parquet above all, and of click logs; a synthetic one."""

from ._block import Block as Block
from ._click_log import ClickLog as ClickLog, ideal_auc as ideal_auc
from ._columns import Columns as Columns
from ._convert import convert as convert
from ._converted_rows import (
    ClickRows as ClickRows,
    CsvRows as CsvRows,
    RowSource as RowSource,
    TFRecordRows as TFRecordRows,
)
from ._datasets import (
    RebatchDataset as RebatchDataset,
    SyncReplicasDataset as SyncReplicasDataset,
)
from ._errors import DataError as DataError, ReadReport as ReadReport
from ._feature_functions import (
    bucket as bucket,
    cross as cross,
    hash_strings as hash_strings,
    log_scale as log_scale,
    standard_scale as standard_scale,
)
from ._field import DataFrame as DataFrame, Field as Field
from ._formats import (
    FORMATS as FORMATS,
    FileFormat as FileFormat,
    file_format as file_format,
)
from ._iterators import (
    Iterator as Iterator,
    make_initializable_iterator as make_initializable_iterator,
    make_one_shot_iterator as make_one_shot_iterator,
)
from ._load_report import LoadReport as LoadReport
from ._names import (
    Dataset as Dataset,
    UnbatchedRows as UnbatchedRows,
    read_parquet as read_parquet,
)
from ._other_readers import (
    read_arrow as read_arrow,
    read_csv as read_csv,
    read_orc as read_orc,
    read_table as read_table,
)
from ._parquet_dataset import ParquetDataset as ParquetDataset
from ._profile import (
    ColumnProfile as ColumnProfile,
    DataProfile as DataProfile,
    DistinctCounter as DistinctCounter,
    profile as profile,
)
from ._reader import ClickReader as ClickReader
from ._row_dataset import RowDataset as RowDataset
from ._string_ids import string_ids as string_ids
from ._symbolic import (
    BatchTensor as BatchTensor,
    SymbolicBatch as SymbolicBatch,
)
from ._tfrecord import read_tfrecord as read_tfrecord
from ._transformations import (
    deduplicate as deduplicate,
    parse as parse,
    rebatch as rebatch,
    to_sparse as to_sparse,
    unbatch_and_to_sparse as unbatch_and_to_sparse,
)
from ._upstream import set_epoch as set_epoch
