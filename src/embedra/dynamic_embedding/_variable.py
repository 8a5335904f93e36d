"""Variable: a dynamic embedding as the users of TFRA know it."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from embedra import _ops, table as table_lib

from ._file_methods import FileMethods
from ._shards import ShardedTables, default_partition_fn
from ._sharing import shared_tables, unique_name
from ._state import export_all, state_of
from ._trainable import TrainableWrapper


class Variable(FileMethods, tf.__internal__.tracking.Trackable):
    """A trainable map from ids to rows, without a vocabulary.

    It is a dense `[vocabulary, dim]` variable in all that concerns rows by id,
    but rows come into being as their ids are seen in training. Each device has
    a native table (`embedra.table.Table`); optimizers keep their slots in it.

    Args:
        key_dtype: Dtype of the ids: an integer dtype, or `tf.string`.
        value_dtype: Dtype of the rows: float32, bfloat16 or float16.
        dim: Width of a row.
        devices: Devices that hold a table each, one table by default. May be
            those of other TensorFlow servers ("/job:ps/task:0").
        partitioner: Given ids and the number of devices, the device of each.
        shared_name: Variables of the same shared name are the same tables.
        name: Name in messages; part of what initial rows are drawn from.
        initializer: What absent ids start from; see
            `embedra.table.resolve_initializer`. None means 0.
        trainable: Whether lookups create absent ids and rows are trained.
        checkpoint: Whether `tf.train.Checkpoint` and `tf.compat.v1.train.Saver`
            save the rows.
        init_size: Ids to make room for up front.
        kv_creator: Kind of table, as `de.HkvHashTableCreator(config)`. All
            kinds are Embedra's native table; the config's bounds count.
        restrict_policy: A `de.RestrictPolicy` class, by which `restrict`
            chooses what to remove.
        bp_v2: Accepted. Updates of rows are always atomic, which is what it
            asks for.
        short_file_name: Whether files by `save_to_file_system` are named after
            the last part of `name` alone.

    Raises:
        ValueError: If an argument is out of range, or `shared_name` is that of
            tables of another width or dtype.

    Example:
        >>> import embedra.dynamic_embedding as de
        >>> user = de.Variable(dim=2, initializer=0.5, name="user")
        >>> user.upsert([7], [[1.0, 2.0]])
        >>> user.lookup([7, 8]).numpy().tolist()
        [[1.0, 2.0], [0.5, 0.5]]
        >>> int(user.size())
        1
    """

    def __init__(
        self,
        key_dtype: Any = tf.int64,
        value_dtype: Any = tf.float32,
        dim: int = 1,
        devices: str | Sequence[str] | None = None,
        partitioner: Callable[..., Any] = default_partition_fn,
        shared_name: str | None = None,
        name: str = "DynamicEmbedding_Variable",
        initializer: Any = None,
        trainable: bool = True,
        checkpoint: bool = True,
        init_size: int = 0,
        kv_creator: Any = None,
        restrict_policy: Any = None,
        bp_v2: bool = False,
        short_file_name: bool = False,
    ) -> None:
        self.arguments = self.described(
            key_dtype=key_dtype,
            value_dtype=value_dtype,
            dim=dim,
            devices=devices,
            initializer=initializer,
            trainable=trainable,
            checkpoint=checkpoint,
            init_size=init_size,
            kv_creator=kv_creator,
            restrict_policy=restrict_policy,
        )
        self.name = name
        self.shared_name = shared_name
        self.trainable = trainable
        self.checkpoint = checkpoint
        self.bp_v2 = bp_v2
        self.short_file_name = short_file_name
        self.partition_fn = partitioner
        self.kv_creator = kv_creator
        self.initializer = 0.0 if initializer is None else initializer
        self.devices = self.arguments["devices"] or ("",)
        graph_name = unique_name(name)
        self.tables: list[table_lib.Table] = shared_tables(self, graph_name)
        self.shards = ShardedTables(self.tables, partitioner)
        self.state = state_of(self, graph_name)
        if checkpoint:
            self._track_trackable(self.state, name="state")
        self.trainable_store: dict[str, TrainableWrapper] = {}
        self.restrict_policy = (
            None if restrict_policy is None else restrict_policy(self)
        )

    @classmethod
    def described(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Returns arguments in a form by which equal ones are told.

        Args:
            *args: Those of the class.
            **kwargs: Those of the class.
        """
        given = inspect.signature(cls).bind(*args, **kwargs)
        given.apply_defaults()
        values = given.arguments
        initializer = values["initializer"]
        kind = values["kv_creator"]
        return {
            "key_dtype": tf.as_dtype(values["key_dtype"]).name,
            "value_dtype": tf.as_dtype(values["value_dtype"]).name,
            "dim": values["dim"],
            "devices": _as_tuple(values["devices"]),
            "initializer": table_lib.resolve_initializer(
                0.0 if initializer is None else initializer, values["dim"]
            ),
            "trainable": values["trainable"],
            "checkpoint": values["checkpoint"],
            "init_size": values["init_size"],
            "kv_creator": {} if kind is None else kind.table_options(),
            "restrict_policy": values["restrict_policy"],
        }

    def __repr__(self) -> str:
        return (
            f"<de.Variable {self.name!r} dim={self.dim} "
            f"key_dtype={self.key_dtype.name} "
            f"value_dtype={self.value_dtype.name}>"
        )

    def __reduce__(self) -> Any:
        msg = (
            f"{self!r} cannot be pickled or copied: its rows are in native "
            "memory. Save it with tf.train.Checkpoint or "
            "`save_to_file_system`."
        )
        raise TypeError(msg)

    # How checkpoints and SavedModels see a variable (a protocol of Trackable).

    def _trackable_children(
        self, save_type: str = "checkpoint", **kwargs: Any
    ) -> dict[str, Any]:
        children = super()._trackable_children(save_type, **kwargs)
        if save_type == "savedmodel":
            children.pop("state", None)
            for i, table in enumerate(self.tables):
                children[f"table_{i}"] = table
            for name, trainable in self.trainable_store.items():
                children[f"trainable_{name}"] = trainable.value
        return dict(children)

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        """Lets a `tf.compat.v1.train.Saver` be given the variable itself."""
        if not self.state.is_in_graph:
            return {}
        return self.state._gather_saveables_for_checkpoint()

    @property
    def dim(self) -> int:
        """Width of a row."""
        return self.tables[0].dim

    @property
    def key_dtype(self) -> tf.DType:
        """Dtype of the ids."""
        return tf.as_dtype(self.tables[0].key_dtype)

    @property
    def value_dtype(self) -> tf.DType:
        """Dtype of the rows."""
        return tf.as_dtype(self.tables[0].dtype)

    def keys_of(self, ids: Any) -> tf.Tensor:
        """Converts dense ids to keys, and checks that they suit the tables.

        Args:
            ids: Integers of any width, or strings, of any shape.

        Returns:
            Keys, `int64`, of the same shape.

        Raises:
            KeyDtypeError: If the ids are of a wrong dtype.
        """
        return self.tables[0].keys_of(ids)

    # Rows by id.

    def lookup(
        self, keys: Any, return_exists: bool = False, name: str | None = None
    ) -> Any:
        """Reads rows; changes nothing.

        Args:
            keys: Ids of any shape.
            return_exists: Whether to say which ids are there.
            name: Name of the ops.

        Returns:
            Rows, shape `keys.shape + (dim,)`, those of absent ids as they would
            start; and, if asked for, `bool` of the shape of the keys.
        """
        keys = self.keys_of(keys)
        with tf.name_scope(name or "lookup"):
            rows, found = self.shards.read(keys)
        return (rows, found) if return_exists else rows

    def upsert(self, keys: Any, values: Any, name: str | None = None) -> Any:
        """Stores rows, of absent ids too.

        Args:
            keys: Ids of any shape.
            values: Rows, shape `keys.shape + (dim,)`. Of a repeated id the
                last row wins.
            name: Name of the ops.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.

        Raises:
            ValueError: If the shape of `values` does not fit.
        """
        keys, values = self._flat(keys, values, "values", self.value_dtype)

        def assign(shard: int, keys: tf.Tensor, values: tf.Tensor) -> Any:
            return _ops.table_assign(
                [self.tables[shard].resource_handle],
                [keys],
                [values],
                dims=[self.dim],
                only_missing=False,
            )

        with tf.name_scope(name or "upsert"):
            return self.shards.run(keys, assign, values)

    def accum(
        self,
        keys: Any,
        old_values: Any,
        new_values: Any,
        exists: Any,
        name: str | None = None,
    ) -> Any:
        """Adds the difference of two values of rows, atomically for each row.

        Ids that existed get `new_values - old_values` added, if they are still
        there. Ids that did not get `new_values`, if they are still absent.

        Args:
            keys: Ids, of any shape.
            old_values: Rows as they were, shape `keys.shape + (dim,)`.
            new_values: Rows as they should be, of the same shape.
            exists: Which ids were there, of the shape of the keys.
            name: Name of the ops.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.

        Raises:
            ValueError: If a shape does not fit.
        """
        ids = self.keys_of(keys)
        exists = tf.cast(exists, tf.bool)
        if not exists.shape.is_compatible_with(ids.shape):
            msg = (
                f"`exists` of {self!r} must have the shape of the keys, "
                f"{tuple(ids.shape)}. Received: {tuple(exists.shape)}."
            )
            raise ValueError(msg)
        exists = tf.reshape(exists, (-1,))
        _, old = self._flat(keys, old_values, "old_values", tf.float32)
        keys, new = self._flat(keys, new_values, "new_values", tf.float32)

        def accumulate(shard: int, *columns: tf.Tensor) -> Any:
            return _accumulate(self.tables[shard], *columns)

        with tf.name_scope(name or "accum"):
            return self.shards.run(keys, accumulate, old, new, exists)

    def remove(self, keys: Any, name: str | None = None) -> Any:
        """Removes ids with their rows and slots; absent ones are passed over.

        Args:
            keys: Ids of any shape.
            name: Name of the ops.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.
        """
        keys = tf.reshape(self.keys_of(keys), (-1,))

        def remove(shard: int, keys: tf.Tensor) -> Any:
            handle = self.tables[shard].resource_handle
            return _ops.table_remove([handle], [keys])[0]

        with tf.name_scope(name or "remove"):
            return self.shards.run(keys, remove)

    # The whole.

    def clear(self, name: str | None = None) -> Any:
        """Removes all ids.

        Args:
            name: Name of the ops.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.
        """
        with tf.name_scope(name or "clear"):
            return _group(
                [_ops.table_clear([t.resource_handle]) for t in self.tables]
            )

    def size(self, index: int | None = None, name: str | None = None) -> Any:
        """Counts ids.

        Args:
            index: Of one device, or None for all.
            name: Name of the ops.

        Returns:
            Scalar, `int64`.
        """
        tables = self.tables if index is None else [self.tables[index]]
        with tf.name_scope(name or "size"):
            # An op each: the tables may be on different servers.
            return tf.add_n(
                [_ops.table_size([t.resource_handle])[0] for t in tables]
            )

    def export(self, name: str | None = None) -> tuple[tf.Tensor, tf.Tensor]:
        """Reads all ids and rows, in one piece.

        For large tables, `tables[i].export_chunks()` reads in pieces.

        Args:
            name: Name of the ops.

        Returns:
            Keys, `int64`, shape `(n,)` (strings are hashed), and their rows,
            shape `(n, dim)`.
        """
        with tf.name_scope(name or "export"):
            parts = [export_all(table) for table in self.tables]
            keys = tf.concat([part.keys for part in parts], axis=0)
            rows = tf.concat([part.rows for part in parts], axis=0)
            return keys, tf.ensure_shape(rows, (None, self.dim))

    def restrict(self, num_reserved: int, **kwargs: Any) -> Any:
        """Removes ids by the restrict policy, until so many are left.

        Args:
            num_reserved: Ids to keep at most.
            **kwargs: See `RestrictPolicy.apply_restriction`.

        Returns:
            What the policy's `apply_restriction` gives: the keys removed.

        Raises:
            ValueError: If the variable has no policy.
        """
        if self.restrict_policy is None:
            msg = (
                f"{self!r} has no restrict policy. Pass restrict_policy="
                "de.TimestampRestrictPolicy or de.FrequencyRestrictPolicy."
            )
            raise ValueError(msg)
        return self.restrict_policy.apply_restriction(num_reserved, **kwargs)

    # What stands for looked-up rows.

    def trainable_of(self, name: str | None) -> TrainableWrapper:
        """Returns what stands for the rows of lookups of a name.

        Args:
            name: Name of the lookups; lookups without one have theirs in
                common.

        Returns:
            The same for the same name.
        """
        name = name or "embeddings"
        found = self.trainable_store.get(name)
        if found is None:
            made = TrainableWrapper(self, name)
            # Another thread may have been faster.
            found = self.trainable_store.setdefault(name, made)
        return found

    def get_trainable_by_name(self, name: str) -> TrainableWrapper:
        """Returns what stands for the rows of lookups of a name.

        Args:
            name: As it was given to `de.embedding_lookup`.

        Raises:
            ValueError: If there were no lookups of that name.
        """
        if name not in self.trainable_store:
            msg = (
                f"{self!r} has had no lookups named {name!r}; there are "
                f"{sorted(self.trainable_store)}."
            )
            raise ValueError(msg)
        return self.trainable_store[name]

    def get_slot_variables(self, optimizer: Any) -> list[str]:
        """Returns the names of the slots that are kept beside the rows.

        Args:
            optimizer: Unused: a table has the slots of one optimizer.
        """
        del optimizer
        return list(self.tables[0].slot_names)

    def _flat(
        self, keys: Any, values: Any, what: str, dtype: tf.DType
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns keys and rows as `(n,)` and `(n, dim)`, after a check."""
        keys = self.keys_of(keys)
        values = tf.cast(values, dtype)
        expected = keys.shape.concatenate([self.dim])
        if not values.shape.is_compatible_with(expected):
            msg = (
                f"`{what}` of {self!r} must have the shape of the keys and the "
                f"width of a row, {tuple(expected)}. Received: "
                f"{tuple(values.shape)}."
            )
            raise ValueError(msg)
        return tf.reshape(keys, (-1,)), tf.reshape(values, (-1, self.dim))


def _accumulate(
    table: table_lib.Table,
    keys: tf.Tensor,
    old: tf.Tensor,
    new: tf.Tensor,
    exists: tf.Tensor,
) -> Any:
    handle = table.resource_handle
    found = _ops.table_lookup(
        [handle],
        [handle],
        [keys],
        [table.default_row(0.0)],
        dims=[table.dim],
        dtype=table.dtype,
        insert=False,
    ).found[0]
    both = tf.logical_and(exists, found)
    added = _ops.table_accumulate(
        [handle],
        [tf.boolean_mask(keys, both)],
        [tf.boolean_mask(new - old, both)],
        dims=[table.dim],
    )
    absent = tf.logical_not(exists)
    with tf.control_dependencies([] if added is None else [added]):
        return _ops.table_assign(
            [handle],
            [tf.boolean_mask(keys, absent)],
            [tf.cast(tf.boolean_mask(new, absent), table.dtype)],
            dims=[table.dim],
            only_missing=True,
        )


def _group(operations: list[Any]) -> Any:
    """Returns one operation for many, or None when executing eagerly."""
    made = [op for op in operations if op is not None]
    return tf.group(*made) if made else None


def _as_tuple(devices: str | Sequence[str] | None) -> tuple[str, ...]:
    if devices is None:
        return ()
    return (devices,) if isinstance(devices, str) else tuple(devices)
