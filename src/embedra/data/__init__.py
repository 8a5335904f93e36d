"""Click logs: a synthetic one, and readers for files of real ones."""

from ._block import Block as Block
from ._click_log import ClickLog as ClickLog, ideal_auc as ideal_auc
from ._columns import Columns as Columns
from ._errors import DataError as DataError, ReadReport as ReadReport
from ._formats import (
    FORMATS as FORMATS,
    FileFormat as FileFormat,
    file_format as file_format,
)
from ._reader import ClickReader as ClickReader
from ._string_ids import string_ids as string_ids
