"""Table: the Python handle of a native table."""

from typing import Any

import tensorflow as tf

from embedra import _ops
from embedra.distribute import Communicator

from ._arguments import check_ids, checked_rows
from ._bounds import checked_bound, checked_order
from ._keys import to_keys, to_tensor
from ._missing import create_missing
from ._owned import own_records
from ._resource import TableResource
from ._scalars import number
from ._stand_in import current_stand_in


class Table(TableResource):
    """A growable map from 64-bit keys to rows of width `dim`.

    Keys are integers of any width and sign, or strings (see
    `embedra.table.to_keys`). A key's first row is a pure function of the seed,
    the table's name and the key. Optimizers keep their slots beside the rows.
    All methods work eagerly and inside `tf.function`, and are thread-safe; a
    batch is not a transaction.

    A table is a trackable: `tf.train.Checkpoint`, `tf.saved_model.save` and
    Keras layers that own it save and restore all of its state.

    Args:
        dim: Width of a row.
        name: Name in messages; part of what initial rows are drawn from.
        initializer: What new rows start from; see
            `embedra.table.resolve_initializer`.
        key_dtype: An integer dtype or "string": what ids are meant to be.
            "string" refuses integers; the others take strings too.
        dtype: Dtype of the rows: "float32", "bfloat16" or "float16". Slots and
            arithmetic are float32.
        seed: Seed of the initial rows. By default the initializer's own seed,
            or else that of `embedra.scope(seed=...)`, or else a fresh one that
            `keras.utils.set_random_seed` governs; in a job of several ranks one
            that the name gives, the same on all.
        initial_capacity: Records to make room for up front.
        device: Device that holds the table, by default the current one.
        shared_name: What the sessions of a TF1 graph, also those of other
            processes on one server, know the table by. Unique by default.
        max_capacity: Records to hold at most, 0 for no bound. Whatever creates
            records drops others first, a sixteenth of the bound at a time; a
            batch of more distinct keys than fit is an error.
        eviction: Which records a full table drops: "recency", those whose last
            training lookup, or creation, is the most optimizer steps ago, or
            "frequency", those of the fewest training lookups.

    Raises:
        ValueError: If an argument is out of range or the initializer does not
            fit.

    Example:
        >>> table = Table(2, name="user", initializer=0.5)
        >>> table.assign([7], [[1.0, 2.0]])
        >>> table.lookup([7, 8]).numpy().tolist()
        [[1.0, 2.0], [0.5, 0.5]]
        >>> table.size()
        1
    """

    def __init__(
        self,
        dim: int,
        *,
        name: str,
        initializer: Any = "uniform",
        key_dtype: str = "int64",
        dtype: str = "float32",
        seed: int | None = None,
        initial_capacity: int = 0,
        device: str = "",
        shared_name: str | None = None,
        max_capacity: int = 0,
        eviction: str = "recency",
        communicator: Communicator | None = None,
    ) -> None:
        super().__init__(
            dim,
            name=name,
            initializer=initializer,
            key_dtype=key_dtype,
            dtype=dtype,
            seed=seed,
            initial_capacity=initial_capacity,
            device=device,
            shared_name=shared_name,
            bound=checked_bound(max_capacity, eviction, name),
            communicator=communicator,
        )

    def keys_of(self, ids: Any) -> tf.Tensor:
        """Converts dense ids to keys, and checks that they suit the table.

        Args:
            ids: Integers or strings of any shape.

        Returns:
            Keys, `int64`, of the same shape.

        Raises:
            KeyDtypeError: If the ids are of a wrong dtype.
        """
        owner = f"Table {self.name!r}"
        ids = to_tensor(ids, owner)
        check_ids(self.key_dtype, ids, owner)
        return to_keys(ids, owner)

    def lookup(
        self, keys: Any, insert: bool = False, default: Any = None
    ) -> tf.Tensor:
        """Reads rows.

        Args:
            keys: Keys of any shape. Repeats are allowed.
            insert: Whether absent keys are created, with their initial row, and
                the lookup is counted. If False, nothing is changed.
            default: What absent keys read as, if not inserted: a number or a
                row. By default the row that they would start with.

        Returns:
            Rows of the table's dtype, shape `keys.shape + (dim,)`.
        """
        keys = self.keys_of(keys)
        stand_in = current_stand_in()
        if stand_in is not None:
            return stand_in.read([self], keys, default)[0]
        if insert:
            keys = self.create_missing(keys)
        found = _ops.table_lookup(
            [self.resource_handle],
            # No variable takes part: the handle only fills the place.
            [self.resource_handle],
            [keys],
            [self.default_row(default)],
            dims=[self.dim],
            dtype=self.dtype,
            insert=insert,
        )
        return found.rows[0]

    def default_row(self, default: Any) -> tf.Tensor:
        """Returns `default` as the lookup ops take it.

        Args:
            default: A number, a row, or None for a key's initial row.

        Returns:
            Of the table's dtype, shape `(dim,)`, or `(0,)` for None.
        """
        if default is None:
            return tf.constant([], self.dtype)
        row = tf.cast(default, self.dtype)
        if row.shape.rank == 1 and row.shape[0] not in (1, self.dim):
            msg = (
                f"`default` of table {self.name!r} must be a number or a row "
                f"of width {self.dim}. Received: shape {tuple(row.shape)}."
            )
            raise ValueError(msg)
        return tf.broadcast_to(row, (self.dim,))

    def create_missing(self, keys: tf.Tensor) -> tf.Tensor:
        """Creates absent keys, if their rows come from a Python initializer.

        Native initializers need no help: the lookup itself draws the rows.

        Args:
            keys: Keys, `int64`, any shape.

        Returns:
            The keys; in a TF1 graph they come after the creation.
        """
        if self.initializer.function is None:
            return keys
        return create_missing(self, keys)

    def assign(self, keys: Any, rows: Any) -> Any:
        """Stores rows. Existing slots are kept, new ones are initial.

        Args:
            keys: Keys of any shape.
            rows: Rows, shape `keys.shape + (dim,)`. Of a repeated key the last
                row wins.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.

        Raises:
            ValueError: If the shape of `rows` does not fit.
        """
        keys = self.keys_of(keys)
        rows = checked_rows(self, keys, tf.cast(rows, self.dtype), "rows")
        keys, rows = own_records(self, tf.reshape(keys, (-1,)), rows)
        return _ops.table_assign(
            [self.resource_handle],
            [keys],
            [rows],
            dims=[self.dim],
            only_missing=False,
        )

    def accumulate(self, keys: Any, deltas: Any) -> Any:
        """Adds to rows; absent keys start from their initial row.

        Args:
            keys: Keys of any shape; all deltas of a repeated key count.
            deltas: What is added, shape `keys.shape + (dim,)`.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.

        Raises:
            ValueError: If the shape of `deltas` does not fit.
        """
        keys = self.keys_of(keys)
        deltas = checked_rows(self, keys, tf.cast(deltas, tf.float32), "deltas")
        keys, deltas = own_records(self, tf.reshape(keys, (-1,)), deltas)
        return _ops.table_accumulate(
            [self.resource_handle],
            [self.create_missing(keys)],
            [deltas],
            dims=[self.dim],
        )

    def remove(self, keys: Any) -> Any:
        """Removes keys with their rows and slots.

        Args:
            keys: Keys of any shape; absent ones are passed over.

        Returns:
            How many were there: an int, or a scalar in a `tf.function`.
        """
        keys = tf.reshape(self.keys_of(keys), (-1,))
        removed = _ops.table_remove([self.resource_handle], [keys])
        return number(removed[0])

    def restrict(self, max_size: Any, by: str = "recency") -> tf.Tensor:
        """Keeps so many keys, and removes the others with rows and slots.

        Args:
            max_size: How many to keep at most.
            by: Which go first: "recency", those whose last use is the most
                steps ago, or "frequency", those of the fewest uses. Ties go by
                the other, then by key, the smallest first. Training lookups are
                uses; see also `count_uses`.

        Returns:
            The keys removed, `int64`, shape `(n,)`, each once.

        Raises:
            ValueError: If `by` is neither.

        Example:
            >>> table = Table(2, name="user")
            >>> for ids in ([1, 2, 3], [1, 2], [1, 1]):
            ...     rows = table.lookup(ids, insert=True)
            >>> sorted(table.restrict(1, by="frequency").numpy().tolist())
            [2, 3]
        """
        return _ops.table_restrict(
            self.resource_handle,
            tf.cast(max_size, tf.int64),
            order=checked_order(by, "by", self.name),
        )

    def count_uses(self, keys: Any) -> Any:
        """Counts a use of each key that is there, as training lookups do.

        The call is a step of its own: it moves the table's clock on by one.

        Args:
            keys: Keys of any shape; each time that one is named counts.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.
        """
        return _ops.table_count_uses(self.resource_handle, self.keys_of(keys))
