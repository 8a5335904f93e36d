"""EmbeddingVariable: a table with rules of admission and eviction."""

from typing import Any

import tensorflow as tf

from embedra.dynamic_embedding._lookup import clip_rows
from embedra.dynamic_embedding._mode import ModelMode, get_model_mode
from embedra.dynamic_embedding._pooling import combine
from embedra.dynamic_embedding._trainable import TrainableWrapper
from embedra.dynamic_embedding._variable import Variable
from embedra.lookup import Bags, RowReader
from embedra.table import Table

from ._admission import admission_of
from ._eviction import expiry_of
from ._options import EmbeddingVariableOption


class EmbeddingVariable(tf.__internal__.tracking.Trackable):
    """A trainable map from ids to rows, as the users of DeepRec know it.

    Lookups create an absent id, and count its use, if and when their gradient
    is computed: graphs and calls that only evaluate change nothing.

    Args:
        name: Name in messages and in checkpoints of `tf.compat.v1`.
        embedding_dim: Width of a row.
        key_dtype: Dtype of the ids: an integer dtype, or `tf.string`.
        value_dtype: Dtype of the rows: float32, bfloat16 or float16.
        initializer: What ids start from; see
            `embedra.table.resolve_initializer`. By default that of the
            options, or else zeros.
        trainable: Whether ids are created and rows trained.
        ev_option: Rules of admission and eviction.

    Example:
        >>> user = EmbeddingVariable("user", 2, initializer=0.5)
        >>> user.rows([7, 8]).numpy().tolist()
        [[0.5, 0.5], [0.5, 0.5]]
        >>> int(user.size())
        0
    """

    def __init__(
        self,
        name: str,
        embedding_dim: int,
        *,
        key_dtype: Any = tf.int64,
        value_dtype: Any = tf.float32,
        initializer: Any = None,
        trainable: bool = True,
        ev_option: EmbeddingVariableOption | None = None,
    ) -> None:
        option = ev_option or EmbeddingVariableOption()
        if initializer is None:
            initializer = option.init_option.initializer
        self.ev_option = option
        self.initializer = initializer
        self.variable = Variable(
            key_dtype=key_dtype,
            value_dtype=value_dtype,
            dim=embedding_dim,
            name=name,
            initializer=initializer,
            trainable=trainable,
        )
        self.variable.state.expiry = expiry_of(option.evict_option)
        default = option.init_option.default_value_no_permission
        self._admission = admission_of(
            self.variable, option.filter_option, default
        )
        self._track_trackable(self.variable, name="variable")
        if self._admission is not None:
            self._track_trackable(self._admission.candidates, "candidates")
        absent: Any = "initializer"
        if self._admission is not None:
            absent = [default] * self.variable.dim
        (table,) = self.variable.tables
        unwatched: Any = _NoVariable(table)
        self._reader = RowReader(table, self.trainable_variable, absent)
        self._frozen_reader = RowReader(table, unwatched, absent)

    def __repr__(self) -> str:
        return (
            f"<EmbeddingVariable {self.name!r} dim={self.dim} "
            f"key_dtype={self.key_dtype.name}>"
        )

    @property
    def name(self) -> str:
        """Name of the variable."""
        return self.variable.name

    @property
    def dim(self) -> int:
        """Width of a row."""
        return self.variable.dim

    @property
    def key_dtype(self) -> tf.DType:
        """Dtype of the ids."""
        return self.variable.key_dtype

    @property
    def dtype(self) -> tf.DType:
        """Dtype of the rows."""
        return self.variable.value_dtype

    @property
    def trainable(self) -> bool:
        """Whether ids are created and rows trained."""
        return self.variable.trainable

    @property
    def trainable_variable(self) -> TrainableWrapper:
        """What stands for the rows in tapes and optimizers."""
        return self.variable.trainable_of(None)

    @property
    def candidates(self) -> Variable | None:
        """The ids that wait to be admitted; None without a filter."""
        return None if self._admission is None else self._admission.candidates

    def size(self) -> tf.Tensor:
        """Counts ids that have a row; scalar, `int64`."""
        return self.variable.size()

    def export(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Reads all ids and rows, in one piece.

        Returns:
            Keys, `int64`, shape `(n,)` (strings are hashed), and their rows,
            shape `(n, dim)`.
        """
        return self.variable.export()

    def rows(
        self,
        ids: Any,
        *,
        insert: bool | None = None,
        trained: bool = True,
        max_norm: float | None = None,
    ) -> tf.Tensor:
        """Looks up rows.

        Args:
            ids: Dense ids of any shape.
            insert: Whether absent ids are created: now, never, or (None) if
                and when gradients are computed.
            trained: Whether rows have gradients; without, no ids are created.
            max_norm: Longest L2 norm of a row that is returned, or None.

        Returns:
            Rows, shape `ids.shape + (dim,)`.

        Raises:
            KeyDtypeError: If the ids are of a wrong dtype.
        """
        keys = self.variable.keys_of(ids)
        reader, insert = self._access(insert, trained)
        return clip_rows(self._rows(reader, keys, insert), max_norm)

    def pooled(
        self,
        bags: Bags,
        combiner: str,
        *,
        insert: bool | None = None,
        trained: bool = True,
        max_norm: float | None = None,
    ) -> tf.Tensor:
        """Looks up rows, and makes one of each bag; of an empty one, zeros.

        Args:
            bags: Keys in bags, `int64`, as `variable.keys_of` gives them.
            combiner: "sum", "mean" or "sqrtn".
            insert: As for `rows`.
            trained: As for `rows`.
            max_norm: Longest L2 norm of a row before it is combined, or None.

        Returns:
            `float32`, shape `(bags, dim)`.
        """
        keys = bags.ids
        reader, insert = self._access(insert, trained)
        is_plain = self._admission is None or insert is False
        if max_norm is None and is_plain:
            keys = reader.keys(keys, insert)
            return reader.pooled(
                keys, bags.row_splits, bags.weights, insert, combiner
            )
        rows = tf.cast(self._rows(reader, keys, insert), tf.float32)
        return combine(clip_rows(rows, max_norm), bags, combiner)

    def _rows(
        self, reader: RowReader, keys: tf.Tensor, insert: bool | None
    ) -> tf.Tensor:
        if self._admission is None or insert is False:
            return reader.rows(reader.keys(keys, insert), insert)
        return self._admission.rows(keys, insert)

    def _access(
        self, insert: bool | None, trained: bool
    ) -> tuple[RowReader, bool | None]:
        """Returns what reads rows, and whether absent ids are created."""
        is_inference = get_model_mode() is ModelMode.INFERENCE
        if trained and self.trainable and not is_inference:
            return self._reader, insert
        return self._frozen_reader, False


class _NoVariable:
    """Is where a variable is that stands for rows, and gets no gradients.

    Args:
        table: The table.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    @property
    def value(self) -> "_NoVariable":
        """What has the handle."""
        return self

    @property
    def handle(self) -> Any:
        """That of the table: something must be in its place."""
        return self._table.resource_handle

    def read_value(self) -> None:
        """Tells tapes nothing."""
