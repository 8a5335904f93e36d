"""TableResource: a native table as a TensorFlow resource, and its records."""

import json
import uuid
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary, finalize

import tensorflow as tf
from google.protobuf import wrappers_pb2  # type: ignore[import-untyped]

from embedra import _ops
from embedra.distribute import Communicator, check_strategy

from ._arguments import checked_dim, checked_dtype, checked_key_dtype
from ._bounds import Bound
from ._closing import close_table
from ._initializers import InitializerSpec, resolve_initializer
from ._records import Records, Slot, TableStatistics
from ._scalars import ScalarStore, number
from ._seeds import chosen_seed


CHUNK_SIZE = 65_536


class TableResource(tf.saved_model.experimental.TrackableResource):
    """Owns a native table: its life, counters, slots and whole records.

    Args:
        dim: Width of a row.
        name: Name in messages; part of what initial rows are drawn from.
        initializer: What new rows start from.
        key_dtype: What ids are meant to be.
        dtype: Dtype of the rows.
        seed: Seed of the initial rows, or None.
        initial_capacity: Records to make room for up front.
        device: Device that holds the table, or "".
        shared_name: What sessions know the table by, or None.
        bound: How many records it keeps, and which go first.
        communicator: Of the ranks that hold the table together, or None.
    """

    def __init__(
        self,
        dim: int,
        *,
        name: str,
        initializer: Any,
        key_dtype: str,
        dtype: str,
        seed: int | None,
        initial_capacity: int,
        device: str,
        shared_name: str | None,
        bound: Bound,
        communicator: Communicator | None,
    ) -> None:
        check_strategy(f"Table {name!r}")
        super().__init__(device=device)
        self.name = name
        self.dim = checked_dim(dim, name)
        self.dtype = checked_dtype(dtype, name)
        self.key_dtype = checked_key_dtype(key_dtype, name)
        self.initial_capacity = int(initial_capacity)
        self.bound = bound
        self._communicator = communicator
        self.initializer: InitializerSpec = resolve_initializer(
            initializer, self.dim
        )
        self.seed = chosen_seed(seed, self.initializer, name)
        # The name that initial rows are drawn with: the name at creation, also
        # after the state is restored into a table of another name.
        self.stream_name = name
        shared_name = shared_name or f"{name}/{uuid.uuid4().hex}"
        self._shared_name = f"embedra/{shared_name}"
        self.scalars = ScalarStore()
        # Set in the copies that stand for the table in a SavedModel's graph.
        self.exported_from: Any = None
        # What others keep for this table for as long as the key lives.
        self.companions: MutableMapping[Any, Any] = WeakKeyDictionary()
        with tf.init_scope():
            # The resource is made when the handle is first asked for.
            handle = self.resource_handle
        # TensorFlow may keep functions, and with them the handle, long after
        # the model is gone; the memory goes with the table.
        self._closing: Any = None
        if hasattr(handle, "numpy"):
            self._closing = finalize(self, close_table, handle)
            self._closing.atexit = False

    def __repr__(self) -> str:
        return (
            f"<Table {self.name!r} dim={self.dim} dtype={self.dtype} "
            f"key_dtype={self.key_dtype}>"
        )

    def _create_resource(self) -> tf.Tensor:
        arguments: dict[str, Any] = {
            "name": self.name,
            "dim": self.dim,
            "dtype": self.dtype,
            "initializer": self.initializer.kind,
            "initializer_parameters": self.initializer.parameters,
            "seed": self.seed,
            "initial_capacity": self.initial_capacity,
            **self.bound._asdict(),
        }
        if tf.executing_eagerly():
            return _ops.anonymous_table(**arguments)
        # A graph makes its resources anew in each run, unless they are named.
        return _ops.table(shared_name=self._shared_name, **arguments)

    def _serialize_to_tensors(self) -> dict[str, Any]:
        """Never runs: the registered saver comes first.

        It is here since TensorFlow takes objects without it for stateless, and
        would not report a table that a checkpoint lacks.
        """
        msg = f"Table {self.name!r} is saved by its registered saver."
        raise NotImplementedError(msg)

    # How SavedModels rebuild a table (a protocol of tf.Trackable).

    def _export_to_saved_model_graph(
        self, object_map: Any, tensor_map: Any, **kwargs: Any
    ) -> Any:
        resources = super()._export_to_saved_model_graph(
            object_map, tensor_map, **kwargs
        )
        object_map[self].exported_from = self.origin
        return resources

    def _serialize_to_proto(self, **kwargs: Any) -> Any:
        del kwargs
        config = {
            "dim": self.dim,
            "name": self.name,
            "key_dtype": self.key_dtype,
            "dtype": self.dtype,
            "seed": self.seed,
            **self.bound._asdict(),
            "initializer": {
                "kind": self.initializer.kind,
                "parameters": self.initializer.parameters,
                "seed": None,
            },
        }
        return wrappers_pb2.StringValue(value=json.dumps(config))

    @classmethod
    def _deserialize_from_proto(cls, proto: Any, **kwargs: Any) -> Any:
        del kwargs
        config = wrappers_pb2.StringValue()
        proto.Unpack(config)
        table = cls(**json.loads(config.value))
        # Signatures of a SavedModel work on when the loaded object is dropped.
        if table._closing is not None:
            table._closing.detach()
        return table

    def _add_trackable_child(self, name: str, value: Any) -> None:
        """Leaves out the saved functions: the class itself has them."""

    @property
    def communicator(self) -> Communicator | None:
        """Of the ranks that hold the table together; None if it is whole."""
        return self._communicator

    @property
    def origin(self) -> Any:
        """The table itself, or the one that this is exported from."""
        return self if self.exported_from is None else self.exported_from

    def size(self) -> Any:
        """Returns the number of keys (a tensor in a `tf.function`)."""
        return number(_ops.table_size([self.resource_handle])[0])

    def clear(self) -> Any:
        """Removes all keys. Seed, step and slot layout stay.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.
        """
        return _ops.table_clear([self.resource_handle])

    def reserve(self, capacity: int) -> None:
        """Makes room for `capacity` keys in all.

        Args:
            capacity: Number of keys.
        """
        _ops.table_reserve(self.resource_handle, capacity)

    # Counters and slots.

    def statistics(self) -> TableStatistics:
        """Returns the table's counters (not inside a `tf.function`)."""
        counters, load_factor = _ops.table_statistics(self.resource_handle)
        counts: list[int] = counters.numpy().tolist()
        return TableStatistics._make([*counts, float(load_factor)])

    @property
    def step(self) -> Any:
        """Number of optimizer steps seen."""
        return number(_ops.table_step(self.resource_handle))

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The slots kept beside rows (not inside a `tf.function`)."""
        with tf.init_scope():
            names, widths, initials = _ops.table_slots(self.resource_handle)
            return tuple(
                Slot(name.decode(), int(width), float(initial))
                for name, width, initial in zip(
                    names.numpy(), widths.numpy(), initials.numpy(), strict=True
                )
            )

    @property
    def slot_names(self) -> tuple[str, ...]:
        """Names of the slots kept beside rows."""
        return tuple(slot.name for slot in self.slots)

    def set_slots(self, slots: Sequence[Slot]) -> tf.Tensor:
        """Sets what is kept beside rows.

        Args:
            slots: The slots. Those unchanged keep their contents, new ones
                start at their initial value, others are dropped.

        Returns:
            Names of the slots dropped, `string`, shape `(k,)`.
        """
        return _ops.table_set_slots(
            self.resource_handle,
            [slot.name for slot in slots],
            [slot.width for slot in slots],
            [slot.initial for slot in slots],
        )

    # Whole records.

    def export_chunks(self, chunk_size: int = CHUNK_SIZE) -> Iterator[Records]:
        """Reads all records, chunk by chunk (not inside a `tf.function`).

        Safe while others write: a record that lives through the whole scan
        appears exactly once.

        Args:
            chunk_size: Records in a chunk at most.

        Yields:
            Chunks, none of them empty.
        """
        cursor = tf.constant(0, tf.int64)
        while True:
            *columns, cursor = _ops.table_export(
                self.resource_handle,
                cursor,
                chunk_size,
                dtype=self.dtype,
                dim=self.dim,
            )
            records = Records(*(column.numpy() for column in columns))
            if not len(records.keys):
                return
            yield records

    def import_records(self, records: Records) -> Any:
        """Adds or overwrites whole records.

        Args:
            records: As `export_chunks` gives them, with the table's slots.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.

        Raises:
            ValueError: If the rows have another width.
        """
        rows = tf.convert_to_tensor(records.rows)
        if rows.shape.rank != 2 or rows.shape[1] != self.dim:
            msg = (
                f"Records for table {self.name!r} must have rows of shape "
                f"(n, {self.dim}). Received: {tuple(rows.shape)}."
            )
            raise ValueError(msg)
        return _ops.table_import(
            self.resource_handle,
            records.keys,
            tf.cast(rows, self.dtype),
            records.slots,
            records.frequencies,
            records.last_steps,
        )
