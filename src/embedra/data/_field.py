"""What a reader makes of one column of a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import tensorflow as tf

from ._transformations import padded_batch, sparse_batch, sparse_row


Length = Literal["exact", "right", "left"]


@dataclass(frozen=True)
class Field:
    """A column to read, and the tensor that it becomes.

    All but the name may be left to the files: a column of numbers or strings
    becomes a `[batch]` tensor, a list of fixed size a dense `[batch, n]` one,
    other lists ragged tensors.

    Args:
        name: Name of the column. Columns are matched by name, in any order.
        dtype: Type of the tensor, for example `tf.float32` or `"float32"`.
            Integers are checked to fit; floats and integers may become
            floats; nothing is parsed. Default: the type that holds what all
            files have.
        ragged_rank: Number of list levels of a ragged tensor; 0 for none.
            Default: as in the files.
        shape: Shape of one row for a dense tensor, without `None`: `[]` for
            a scalar, `[n]` for a list of `n` values, `[n, m]` for lists of
            `n * m` values or `n` lists of `m`.
        default: Stands in for nulls, for the padding of lists, and for the
            whole column in files without it. `None` makes a null an error.
        length: What to do with a list of another length than `shape` says:
            `"exact"` is an error, `"right"` pads and cuts at the end, `"left"`
            at the beginning.
        mask: Whether to add a bool tensor `<name>_present`, of the same shape,
            that is false where a value was null; such values become `default`
            or zero. Only for scalars.
        transform: Called with the tensor, in the graph of the dataset; what
            it returns takes its place.

    Raises:
        ValueError: If the arguments contradict each other.

    Example:
        >>> Field("age", "float32", default=0.0).dtype
        tf.float32
    """

    name: str
    dtype: Any = None
    ragged_rank: int | None = None
    shape: Sequence[int] | None = None
    default: Any = None
    length: Length = "exact"
    mask: bool = False
    transform: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if self.dtype is not None:
            object.__setattr__(self, "dtype", tf.as_dtype(self.dtype))
        if self.shape is not None:
            object.__setattr__(self, "shape", self._checked_shape())
        self._check()

    def _checked_shape(self) -> tuple[int, ...]:
        shape: tuple[Any, ...] = tuple(self.shape or ())
        if any(n is None or n < 1 for n in shape):
            msg = (
                f"Field {self.name!r}: the shape of a row has positive "
                f"dimensions only. Received: {list(shape)}. For lists of any "
                "length leave shape out and give ragged_rank."
            )
            raise ValueError(msg)
        return shape

    def _check(self) -> None:
        if self.length not in ("exact", "right", "left"):
            msg = (
                f"Field {self.name!r}: length is 'exact', 'right' or 'left'. "
                f"Received: {self.length!r}."
            )
            raise ValueError(msg)
        if self.ragged_rank and self.shape:
            msg = (
                f"Field {self.name!r}: a row is either ragged or has a shape. "
                f"Received: ragged_rank={self.ragged_rank}, "
                f"shape={list(self.shape)}."
            )
            raise ValueError(msg)
        if self.length != "exact" and not self.shape:
            msg = (
                f"Field {self.name!r}: length={self.length!r} pads and cuts "
                "to a length. Give it as shape=[n]."
            )
            raise ValueError(msg)
        if self.mask and (self.ragged_rank or self.shape):
            msg = (
                f"Field {self.name!r}: mask=True is for scalars. Give nulls "
                "within lists a default."
            )
            raise ValueError(msg)


class DataFrame:
    """The words of columns by the names that HybridBackend has for them."""

    Field = Field
    # Lists of a batch; has `values` and `nested_row_splits`.
    Value = tf.RaggedTensor

    @staticmethod
    def to_sparse(batch: Any) -> Any:
        """A batch with its ragged tensors as sparse ones."""
        return sparse_batch(batch)

    @staticmethod
    def unbatch_and_to_sparse(batch: Any) -> Any:
        """The row of a batch of one, with sparse tensors for ragged ones."""
        return sparse_row(batch)

    @staticmethod
    def parse(batch: Any, pad: bool = False) -> Any:
        """A batch, with its ragged tensors padded to dense ones if asked."""
        return padded_batch(batch) if pad else batch
