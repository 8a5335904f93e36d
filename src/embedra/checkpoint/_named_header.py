"""Headers of tables as checkpoints of `tf.compat.v1.train.Saver` hold them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from embedra import table as table_lib


# What is known of a table but its records, each a tensor.
FIELDS = (
    "slot_names",
    "slot_widths",
    "slot_initials",
    "stream_name",
    "initializer",
    "parameters",
    "seed",
    "step",
)


class SavedShape(NamedTuple):
    """What tensors of a v1 checkpoint say of a table, beside `FIELDS`.

    Attributes:
        name: Name of the table.
        dim: Width of a row.
        dtype: Dtype of the rows.
        key_dtype: What ids are meant to be.
    """

    name: str
    dim: int
    dtype: str
    key_dtype: str


def to_header(
    table: table_lib.Table | SavedShape, arrays: Sequence[Any]
) -> table_lib.TableHeader:
    """Returns the header that tensors say, once they have run.

    Args:
        table: The table, or what is known of it.
        arrays: One for each of `FIELDS`.
    """
    names, widths, initials, stream_name, kind, parameters, seed, step = arrays
    return table_lib.TableHeader(
        name=table.name,
        stream_name=_text(stream_name),
        dim=table.dim,
        dtype=table.dtype,
        key_dtype=table.key_dtype,
        seed=int(seed),
        initializer=_text(kind),
        parameters=tuple(float(number) for number in parameters),
        slots=tuple(
            table_lib.Slot(_text(name), int(width), float(initial))
            for name, width, initial in zip(
                names, widths, initials, strict=True
            )
        ),
        step=int(step),
        scalars={},
    )


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else _text(value.item())
