"""Differentiable lookups: rows of a table, single or combined by bags."""

from ._bags import (
    Bags as Bags,
    kept_of as kept_of,
    padding_mask as padding_mask,
    to_bags as to_bags,
    with_rank as with_rank,
    without_padding as without_padding,
)
from ._combine import combine as combine
from ._reader import RowReader as RowReader
from ._requests import Request as Request, look_up as look_up
