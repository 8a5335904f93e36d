"""read_table: the rows that a checkpoint holds of a table."""

import dataclasses
from collections.abc import Mapping

import tensorflow as tf

from embedra import table as table_lib

from ._saved_tables import COLUMNS, SavedTables


def read_table(checkpoint: str | SavedTables, name: str) -> table_lib.Table:
    """Reads the rows of a table from a checkpoint, without its slots.

    Args:
        checkpoint: A checkpoint of `tf.compat.v1.train.Saver` or
            `tf.train.Checkpoint`, or a folder of which the latest is taken; or
            what was read of it already.
        name: Name of the table, or of the `de.Variable`.

    Returns:
        A table, whatever the number of devices was. Ids that it lacks read as
        they would start.

    Raises:
        FileNotFoundError: If there is no checkpoint.
        ValueError: If it has no such table.

    Example:
        >>> import tempfile
        >>> user = table_lib.Table(2, name="user")
        >>> user.assign([7], [[1.0, 2.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = tf.train.Checkpoint(user=user).save(folder + "/model")
        ...     table = read_table(path, "user")
        >>> table.lookup([7]).numpy().tolist()
        [[1.0, 2.0]]
    """
    saved = checkpoint
    if not isinstance(saved, SavedTables):
        saved = SavedTables(saved)
    if name not in saved.tables:
        msg = (
            f"Checkpoint {saved.path!r} has no table {name!r}. It has: "
            f"{sorted(saved.tables)}."
        )
        raise ValueError(msg)
    found = saved.tables[name]
    header = dataclasses.replace(found.header, slots=(), scalars={})
    table = table_lib.Table(
        header.dim,
        name=name,
        key_dtype=header.key_dtype,
        dtype=header.dtype,
        seed=header.seed,
    )

    def read(chunk: Mapping[str, str]) -> table_lib.Records:
        names = [column for column in COLUMNS if column != "slots"]
        columns = saved.read([chunk[column] for column in names])
        records = dict(zip(names, columns, strict=True))
        slots = tf.zeros((tf.size(records["keys"]), 0))
        return table_lib.Records(slots=slots, **records)

    table_lib.replace_state(
        table_lib.TableGroup([table]),
        header,
        lambda: map(read, found.chunks),
        (tf.zeros(0, tf.int64), tf.zeros((0, header.dim))),
    )
    return table
