"""Restrict policies: which ids go when a variable has too many."""

from typing import Any, ClassVar

import tensorflow as tf

from embedra import _ops, table as table_lib


# A bound that no table reaches.
_NO_BOUND = 2**62


class RestrictPolicy:
    """Chooses what `de.Variable.restrict` removes.

    Tables count for each id the training lookups and the step of the last one,
    by themselves; a policy says which of the two matters. Subclass it with
    another `apply_restriction` for other rules.

    Args:
        var: The `de.Variable`.
    """

    # Which ids go first, "recency" or "frequency"; None if a subclass has a
    # rule of its own.
    order: ClassVar[str | None] = None

    def __init__(self, var: Any) -> None:
        self.var = var

    def apply_update(self, ids: Any) -> Any:
        """Counts a use of ids that are there.

        This is for uses outside of training: lookups that create ids count by
        themselves. The call is a step of its own, later than all before it.

        Args:
            ids: Ids of any shape; each time that one is named counts.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.
        """
        keys = tf.reshape(self.var.keys_of(ids), (-1,))

        def count(shard: int, keys: tf.Tensor) -> Any:
            handle = self.var.tables[shard].resource_handle
            return _ops.table_count_uses(handle, keys)

        return self.var.shards.run(keys, count)

    def apply_restriction(self, num_reserved: Any, trigger: Any = None) -> Any:
        """Removes ids, with rows and slots, until so many are left.

        Of several devices each keeps its share by its number of ids, so that
        exactly `num_reserved` are left in all.

        Args:
            num_reserved: How many ids to keep.
            trigger: Number of ids above which to do anything, by default
                `num_reserved`.

        Returns:
            Keys of the ids removed, `int64`, shape `(n,)`.

        Raises:
            NotImplementedError: If the class has no order.
            ValueError: If `trigger` is less than `num_reserved`.
        """
        if self.order is None:
            msg = (
                f"{type(self).__name__} does not say which ids go first. Use "
                "de.TimestampRestrictPolicy or de.FrequencyRestrictPolicy, or "
                "give it an `apply_restriction`."
            )
            raise NotImplementedError(msg)
        trigger = num_reserved if trigger is None else trigger
        _check_counts(num_reserved, trigger)
        # An op each: the tables may be on different servers.
        sizes = tf.stack(
            [tf.constant(0, tf.int64) + t.size() for t in self.var.tables]
        )
        bounds = tf.where(
            tf.reduce_sum(sizes) > tf.cast(trigger, tf.int64),
            _shares(tf.cast(num_reserved, tf.int64), sizes),
            tf.constant(_NO_BOUND, tf.int64),
        )
        removed = [
            _ops.table_restrict(
                table.resource_handle, bounds[i], order=self.order
            )
            for i, table in enumerate(self.var.tables)
        ]
        return tf.concat(removed, axis=0)

    @property
    def status(self) -> "RestrictStatus":
        """What the policy goes by: each id's counter."""
        return RestrictStatus(self.var, self.order or "frequency")


class TimestampRestrictPolicy(RestrictPolicy):
    """Removes the ids whose last use is the longest ago.

    Time is counted in steps, of the optimizer and of `apply_update`, so that it
    means the same after a checkpoint is restored elsewhere. Ties go by
    frequency, then by key, smaller ones first.

    Args:
        var: The `de.Variable`.

    Example:
        >>> import embedra.dynamic_embedding as de
        >>> policy = de.TimestampRestrictPolicy
        >>> user = de.Variable(dim=2, name="user", restrict_policy=policy)
        >>> user.upsert([1, 2, 3], [[0.0, 0.0]] * 3)
        >>> user.restrict_policy.apply_update([1, 3])
        >>> user.restrict(2).numpy().tolist()
        [2]
    """

    order = "recency"


class FrequencyRestrictPolicy(RestrictPolicy):
    """Removes the ids of the fewest uses.

    Ties go by the last use, then by key, smaller ones first.

    Args:
        var: The `de.Variable`.

    Example:
        >>> import embedra.dynamic_embedding as de
        >>> policy = de.FrequencyRestrictPolicy
        >>> user = de.Variable(dim=2, name="user", restrict_policy=policy)
        >>> user.upsert([1, 2], [[0.0, 0.0]] * 2)
        >>> user.restrict_policy.apply_update([1, 1, 1, 2])
        >>> user.restrict_policy.status.lookup([1, 2]).numpy().tolist()
        [3, 1]
    """

    order = "frequency"


class RestrictStatus:
    """The counters that a policy goes by, to read.

    Args:
        var: The `de.Variable`.
        order: Which counter: the step of the last use for "recency", the
            number of uses for "frequency".
    """

    def __init__(self, var: Any, order: str) -> None:
        self._var = var
        self._order = order

    def __repr__(self) -> str:
        return f"<status of {self._var!r} by {self._order}>"

    def size(self) -> tf.Tensor:
        """Counts ids; scalar, `int64`."""
        return self._var.size()

    def lookup(self, keys: Any) -> tf.Tensor:
        """Reads counters.

        Args:
            keys: Ids of any shape.

        Returns:
            Counters, `int64`, of the shape of the ids, 0 for absent ones.
        """
        keys = self._var.keys_of(keys)
        counters = self._read(tf.reshape(keys, (-1,)))
        return tf.reshape(counters, tf.shape(keys))

    def export(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Reads all keys with their counters.

        Returns:
            Keys and counters, `int64`, shape `(n,)`.
        """
        parts = [self._export(table) for table in self._var.tables]
        keys, counters = zip(*parts, strict=True)
        return tf.concat(keys, axis=0), tf.concat(counters, axis=0)

    def _read(self, keys: tf.Tensor) -> tf.Tensor:
        def read(shard: int, keys: tf.Tensor) -> tf.Tensor:
            handle = self._var.tables[shard].resource_handle
            frequencies, last_steps, _ = _ops.table_uses(handle, keys)
            return last_steps if self._order == "recency" else frequencies

        counters: tf.Tensor = self._var.shards.map(keys, read)
        return counters

    def _export(self, table: table_lib.Table) -> tuple[Any, Any]:
        field = "last_steps" if self._order == "recency" else "frequencies"
        if tf.executing_eagerly():
            # In chunks: rows, which are of no interest, come along.
            chunks = [
                (chunk.keys, getattr(chunk, field))
                for chunk in table.export_chunks()
            ]
            empty = tf.zeros((0,), tf.int64)
            keys, counters = zip((empty, empty), *chunks, strict=True)
            return tf.concat(keys, axis=0), tf.concat(counters, axis=0)
        whole = _ops.table_export(
            table.resource_handle,
            tf.constant(0, tf.int64),
            _NO_BOUND,
            dtype=table.dtype,
            dim=table.dim,
        )
        return whole.keys, getattr(whole, field)


def _check_counts(num_reserved: Any, trigger: Any) -> None:
    """Raises unless numbers of ids, where known, make sense."""
    reserved, trigger = (
        tf.get_static_value(num_reserved),
        tf.get_static_value(trigger),
    )
    if reserved is None or trigger is None:
        return
    if reserved < 0 or trigger < reserved:
        msg = (
            "`num_reserved` must not be negative, and `trigger` not be less "
            f"than it. Received: num_reserved={int(reserved)}, "
            f"trigger={int(trigger)}."
        )
        raise ValueError(msg)


def _shares(total: tf.Tensor, sizes: tf.Tensor) -> tf.Tensor:
    """Divides a number in proportion to sizes, so that the sum is exact."""
    size = tf.maximum(tf.reduce_sum(sizes), 1)
    shares = total * sizes // size
    # What rounding down left over goes to those that lost most by it.
    by_loss = tf.argsort(
        total * sizes % size, direction="DESCENDING", stable=True
    )
    rank = tf.argsort(by_loss)
    left = tf.cast(total - tf.reduce_sum(shares), rank.dtype)
    return shares + tf.cast(rank < left, tf.int64)
