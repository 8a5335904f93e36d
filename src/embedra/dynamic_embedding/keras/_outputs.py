"""What the layers give for ids, whichever Keras their models are of."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from embedra.layers import TableOwner
from embedra.lookup import Bags, padding_mask, to_bags, without_padding

from ._rows import RowSource
from ._serialized import as_json, as_object
from ._settings import Settings, as_int


# At run time these are mixins, for the layers of two libraries.
_Layer: Any = keras.layers.Layer if TYPE_CHECKING else object
_Shape = tuple[int | None, ...]

# Of `name` among the positional arguments after `slot_map_fn`.
_POSITION_OF_NAME = 6


class RowsOfIds(TableOwner, _Layer):
    """Gives the row of each id.

    Attributes:
        settings: The layer's arguments.
        source: Reads the rows.
    """

    settings: Settings
    source: RowSource

    def outputs(self, ids: Any, insert: bool | None) -> Any:
        """Looks up ids.

        Args:
            ids: Ids: dense or ragged, and for layers that pool sparse.
            insert: Whether absent ids are created; see `RowSource.rows`.

        Returns:
            The layer's output, of any float dtype.
        """
        if isinstance(ids, tf.SparseTensor):
            msg = (
                f"{self.owner} gives a row for each id, and needs dense or "
                "ragged ids. Received: a SparseTensor. Use SquashedEmbedding, "
                "which pools them, or pass tf.RaggedTensor.from_sparse(ids)."
            )
            raise ValueError(msg)
        self._check_rank(ids, 1)
        if isinstance(ids, tf.RaggedTensor):
            return ids.with_flat_values(
                self.source.rows(ids.flat_values, insert)
            )
        return self.source.rows(ids, insert)

    def output_shape(self, input_shape: _Shape) -> _Shape:
        """Returns the shape of the output for ids of a shape.

        Args:
            input_shape: Of the ids.
        """
        return (*input_shape, self.settings.embedding_size)

    def extra_config(self) -> dict[str, Any]:
        """Returns the arguments, as JSON, that are not in the settings."""
        return {}

    @property
    def pools(self) -> bool:
        """Whether the structure of the ids is lost."""
        return False

    def _check_rank(self, ids: Any, least: int) -> None:
        if ids.shape.rank is not None and ids.shape.rank < least:
            msg = (
                f"{self.owner} needs ids of rank {least} or more. Received: "
                f"shape {tuple(ids.shape)}."
            )
            raise ValueError(msg)


class PooledExamples(RowsOfIds):
    """Pools all rows of an example."""

    def outputs(self, ids: Any, insert: bool | None) -> Any:
        """Looks up ids and pools them by example.

        Args:
            ids: Ids, shape `(batch, ...)`; those of one dimension are a single
                example.
            insert: Whether absent ids are created.

        Returns:
            `float32`, shape `(batch, dim)`, or `(dim,)` for a single example.
        """
        self._check_rank(ids, 1)
        bags = to_bags(_as_matrix(ids, self.owner), None, self.owner)
        if self.settings.mask_zero:
            bags = without_padding(bags)
        pooled = bags.restore(
            self.source.pooled(bags, insert, self.settings.combiner)
        )
        return pooled[0] if ids.shape.rank == 1 else pooled

    def output_shape(self, input_shape: _Shape) -> _Shape:
        """Returns the shape of the output for ids of a shape.

        Args:
            input_shape: Of the ids.
        """
        batch = input_shape[:1] if len(input_shape) > 1 else ()
        return (*batch, self.settings.embedding_size)

    @property
    def pools(self) -> bool:
        """Whether the structure of the ids is lost."""
        return True


class PooledFields(PooledExamples):
    """Pools the rows of each field of an example.

    Attributes:
        nslots: Number of fields.
        slot_map_fn: Gives the field of each id.
    """

    nslots: int
    slot_map_fn: Callable[[tf.Tensor], tf.Tensor]

    def __init__(
        self,
        embedding_size: int,
        nslots: int,
        slot_map_fn: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if len(args) < _POSITION_OF_NAME:
            kwargs.setdefault("name", "SlotDynamicEmbeddingLayer")
        super().__init__(embedding_size, *args, **kwargs)
        self.nslots = as_int(nslots, "nslots")
        slot_map_fn = as_object(slot_map_fn)
        if not callable(slot_map_fn):
            msg = (
                f"{self.owner} needs a `slot_map_fn` that gives the field of "
                f"each id. Received: {slot_map_fn!r}"
            )
            raise ValueError(msg)
        self.slot_map_fn = slot_map_fn

    def outputs(self, ids: Any, insert: bool | None) -> Any:
        """Looks up ids and pools them by example and field.

        Args:
            ids: Ids, shape `(batch, ...)`.
            insert: Whether absent ids are created.

        Returns:
            `float32`, shape `(batch, nslots, dim)`.
        """
        self._check_rank(ids, 2)
        bags = to_bags(_as_matrix(ids, self.owner), None, self.owner)
        examples = tf.ragged.row_splits_to_segment_ids(
            bags.row_splits, out_type=tf.int64
        )
        flat, bag = bags.ids, examples * self.nslots + self._fields_of(ids)
        if self.settings.mask_zero:
            kept = padding_mask(flat)
            flat, bag = (tf.boolean_mask(part, kept) for part in (flat, bag))
        count = tf.size(bags.row_splits, tf.int64) - 1
        by_field = _sorted_bags(flat, bag, count * self.nslots)
        pooled = self.source.pooled(by_field, insert, self.settings.combiner)
        dim = self.settings.embedding_size
        outputs = tf.reshape(pooled, (-1, self.nslots, dim))
        return tf.ensure_shape(outputs, (ids.shape[0], self.nslots, dim))

    def output_shape(self, input_shape: _Shape) -> _Shape:
        """Returns the shape of the output for ids of a shape.

        Args:
            input_shape: Of the ids.
        """
        return (input_shape[0], self.nslots, self.settings.embedding_size)

    def extra_config(self) -> dict[str, Any]:
        """Returns the arguments, as JSON, that are not in the settings."""
        return {
            "nslots": self.nslots,
            "slot_map_fn": as_json(self.slot_map_fn),
        }

    def _fields_of(self, ids: Any) -> tf.Tensor:
        """Returns the field of each id, `int64`, shape `(n,)`."""
        if isinstance(ids, tf.RaggedTensor):
            ids = ids.flat_values
        elif isinstance(ids, tf.SparseTensor):
            ids = ids.values
        fields = tf.reshape(tf.cast(self.slot_map_fn(ids), tf.int64), (-1,))
        in_range = tf.debugging.Assert(
            tf.reduce_all((fields >= 0) & (fields < self.nslots)),
            [
                f"`slot_map_fn` of {self.owner} must give fields from 0 to "
                f"{self.nslots - 1}. Received:",
                fields,
            ],
        )
        with tf.control_dependencies([] if in_range is None else [in_range]):
            return tf.identity(fields)


def _as_matrix(ids: Any, owner: str) -> Any:
    """Returns ids as one row for each example."""
    rank = ids.shape.rank
    if rank is None:
        msg = f"{owner} needs ids of known rank to pool them."
        raise ValueError(msg)
    if isinstance(ids, tf.RaggedTensor):
        return ids.merge_dims(1, rank - 1) if rank > 2 else ids
    if rank == 2:
        return ids
    if isinstance(ids, tf.SparseTensor):
        shape = ids.dense_shape
        batch = shape[0] if rank > 1 else tf.constant(1, tf.int64)
        width = tf.reduce_prod(shape[1:] if rank > 1 else shape)
        return tf.sparse.reshape(ids, tf.stack([batch, width]))
    shape = tf.shape(ids, tf.int64)
    batch = shape[0] if rank > 1 else tf.constant(1, tf.int64)
    width = tf.reduce_prod(shape[1:] if rank > 1 else shape)
    static_batch = ids.shape[0] if rank > 1 else 1
    matrix = tf.reshape(ids, tf.stack([batch, width]))
    return tf.ensure_shape(matrix, (static_batch, None))


def _sorted_bags(ids: tf.Tensor, bag: tf.Tensor, count: tf.Tensor) -> Bags:
    """Groups ids by the number of their bag."""
    order = tf.argsort(bag, stable=True)
    splits = tf.searchsorted(
        tf.gather(bag, order), tf.range(count + 1), out_type=tf.int64
    )
    return Bags(
        tf.gather(ids, order),
        splits,
        tf.constant([], tf.float32),
        lambda rows: rows,
    )
