"""DynamicEmbeddingOptimizer and create_slots, with TFRA's arguments."""

from typing import Any

import tensorflow as tf

from embedra import _ops, optimizers, table as table_lib

from ._trainable import TrainableWrapper
from ._variable import Variable


def DynamicEmbeddingOptimizer(  # noqa: N802
    self: Any, bp_v2: bool = False, synchronous: bool = False, **kwargs: Any
) -> Any:
    """Makes an optimizer that knows of tables.

    Args:
        self: An optimizer of Keras, tf_keras or `tf.compat.v1.train`.
        bp_v2: Accepted. Updates of rows are always atomic, which is what it
            asks for.
        synchronous: Accepted. Updates of a process are always synchronous.
        **kwargs: Accepted, for TFRA's settings of Horovod.

    Returns:
        See `embedra.DynamicEmbeddingOptimizer`.
    """
    del bp_v2, synchronous, kwargs
    return optimizers.DynamicEmbeddingOptimizer(self)


class SlotOfVariable:
    """A slot that is kept beside the rows of a `de.Variable`.

    Args:
        params: The variable.
        slot: Which slot.
    """

    def __init__(self, params: Variable, slot: table_lib.Slot) -> None:
        self.params = params
        self.slot = slot
        self.name = f"{params.name}/{slot.name}"

    def lookup(self, keys: Any, name: str | None = None) -> tf.Tensor:
        """Reads the slot's rows.

        Args:
            keys: Ids of any shape.
            name: Name of the ops.

        Returns:
            Rows, `float32`, shape `keys.shape + (width,)`; those of absent ids
            as they would start.
        """
        keys = self.params.keys_of(keys)
        with tf.name_scope(name or "lookup_slot"):
            flat = tf.reshape(keys, (-1,))
            rows = self.params.shards.map(flat, self._read)
            shape = tf.concat([tf.shape(keys), [self.slot.width]], axis=0)
            rows = tf.reshape(rows, shape)
            rows.set_shape(keys.shape.concatenate([self.slot.width]))
            return rows

    def _read(self, shard: int, keys: tf.Tensor) -> tf.Tensor:
        table = self.params.tables[shard]
        found = _ops.table_lookup(
            [table.resource_handle],
            # No variable takes part: the handle only fills the place.
            [table.resource_handle],
            [keys],
            [table.default_row(None)],
            dims=[table.dim],
            dtype=table.dtype,
            insert=False,
        )
        positions = found.positions[0]
        _, slots = _ops.table_read_records(
            table.resource_handle,
            positions,
            [self.slot.name],
            dim=table.dim,
            slot_widths=[self.slot.width],
        )
        return tf.where(positions[:, None] < 0, self.slot.initial, slots[0])


def create_slots(
    variable: Any,
    init: Any,
    slot_name: str,
    op_name: str | None = None,
    bp_v2: bool = False,
) -> SlotOfVariable:
    """Adds a slot to a variable, or finds the one of that name.

    Optimizers make their slots by themselves, at their first step; the slots
    are then found by their names, `variable.get_slot_variables(optimizer)`.
    Note that a step of an optimizer keeps only the optimizer's own slots.

    Args:
        variable: A `de.Variable`, or what stands for its rows.
        init: What the slot starts from: a number, or an initializer that gives
            one number for all elements. Unused if the slot is there.
        slot_name: Name of the slot.
        op_name: Accepted: slots are told apart by `slot_name` alone.
        bp_v2: Accepted. Updates of rows are always atomic.

    Returns:
        The slot, by which its rows can be looked up. In a TF1 graph the slot
        must be made by an optimizer, which does so in the session.

    Raises:
        ValueError: If `init` is no constant.

    Example:
        >>> import embedra.dynamic_embedding as de
        >>> user = de.Variable(dim=2, name="user")
        >>> slot = de.create_slots(user, 0.5, "accumulator", "Adagrad")
        >>> slot.lookup([7]).numpy().tolist()
        [[0.5, 0.5]]
    """
    del op_name, bp_v2
    params = variable.params if _stands_for_rows(variable) else variable
    initial = optimizers.constant_initial(init, params.dim)
    if initial is None:
        msg = (
            f"Slot {slot_name!r} of {params!r} must start as one number. "
            f"Received: init={init!r}."
        )
        raise ValueError(msg)
    slot = table_lib.Slot(slot_name, params.dim, initial)
    with tf.init_scope():
        if not tf.executing_eagerly():
            return SlotOfVariable(params, slot)
        for table in params.tables:
            present = {found.name: found for found in table.slots}
            if slot_name not in present:
                table.set_slots([*present.values(), slot])
            slot = present.get(slot_name, slot)
    return SlotOfVariable(params, slot)


def _stands_for_rows(variable: Any) -> bool:
    return isinstance(optimizers.table_variable_of(variable), TrainableWrapper)
