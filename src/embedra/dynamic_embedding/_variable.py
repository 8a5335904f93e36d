"""Variable: a dynamic embedding as the users of TFRA know it."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from embedra import table as table_lib

from ._arguments import check_arguments
from ._file_methods import FileMethods
from ._row_methods import RowMethods
from ._shards import ShardedTables, default_partition_fn
from ._sharing import shared_tables, unique_name
from ._state import state_of
from ._trainable import TrainableWrapper


class Variable(RowMethods, FileMethods, tf.__internal__.tracking.Trackable):
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
        TypeError: If an argument is of a wrong kind.
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
        check_arguments(
            name=name,
            devices=devices,
            partitioner=partitioner,
            init_size=init_size,
            kv_creator=kv_creator,
            restrict_policy=restrict_policy,
        )
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


def _as_tuple(devices: str | Sequence[str] | None) -> tuple[str, ...]:
    if devices is None:
        return ()
    return (devices,) if isinstance(devices, str) else tuple(devices)
