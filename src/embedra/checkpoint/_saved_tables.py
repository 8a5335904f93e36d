"""Tables in a checkpoint of any kind, by the name of their variable."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from embedra import table as table_lib

from ._named_header import FIELDS, SavedShape, to_header
from ._saves import refuse_delta


COLUMNS = table_lib.Records._fields


class SavedTable(NamedTuple):
    """A table in a checkpoint.

    Attributes:
        header: Everything but its records.
        chunks: For each chunk of records the tensor that holds each column.
    """

    header: table_lib.TableHeader
    chunks: Sequence[Mapping[str, str]]


class SavedTables:
    """What a checkpoint holds, of `tf.compat.v1.train.Saver` or Checkpoint.

    Args:
        path: A checkpoint, or a folder of which the latest is taken.

    Raises:
        FileNotFoundError: If there is none.
        ValueError: If it holds only what changed since another.
    """

    def __init__(self, path: str) -> None:
        given = str(path)
        found: str | None = given
        if tf.io.gfile.isdir(given):
            found = tf.train.latest_checkpoint(given)
        if found is None or not tf.io.gfile.exists(f"{found}.index"):
            msg = f"There is no checkpoint at {given}."
            raise FileNotFoundError(msg)
        self.path: str = found
        self._reader = tf.train.load_checkpoint(found)
        refuse_delta(self._reader, found)
        self.shapes: dict[str, list[int]] = (
            self._reader.get_variable_to_shape_map()
        )
        self.dtypes: dict[str, tf.DType] = (
            self._reader.get_variable_to_dtype_map()
        )
        self.tables = dict(self._tables())

    def dense_name(self, name: str) -> str | None:
        """Returns the tensor that holds a dense variable, if there is one.

        Args:
            name: Name of the variable, or its path in a `tf.train.Checkpoint`.
        """
        names = (name, f"{name}/.ATTRIBUTES/VARIABLE_VALUE")
        return next((n for n in names if n in self.shapes), None)

    def read(self, names: Sequence[str]) -> list[tf.Tensor]:
        """Reads tensors, in a TF1 graph when it runs.

        Args:
            names: Their names.
        """
        return list(
            tf.raw_ops.RestoreV2(
                prefix=self.path,
                tensor_names=list(names),
                shape_and_slices=[""] * len(names),
                dtypes=[self.dtypes[name] for name in names],
            )
        )

    def _tables(self) -> Iterator[tuple[str, SavedTable]]:
        for name in self.shapes:
            prefix, _, last = name.rpartition("/")
            if last == "header" and f"{prefix}/chunks" in self.shapes:
                table = self._of_checkpoint(prefix)
                yield table.header.name, table
            if last == "keys" and f"{prefix}/stream_name" in self.shapes:
                yield prefix, self._of_saver(prefix)

    def _of_checkpoint(self, prefix: str) -> SavedTable:
        text = self._reader.get_tensor(f"{prefix}/header")
        count = int(self._reader.get_tensor(f"{prefix}/chunks"))
        return SavedTable(
            table_lib.TableHeader.from_json(text),
            [
                {name: f"{prefix}/{name}_{chunk:06d}" for name in COLUMNS}
                for chunk in range(count)
            ],
        )

    def _of_saver(self, prefix: str) -> SavedTable:
        described = SavedShape(
            name=prefix,
            dim=self.shapes[f"{prefix}/rows"][-1],
            dtype=self.dtypes[f"{prefix}/rows"].name,
            key_dtype=self._reader.get_tensor(f"{prefix}/key_dtype").decode(),
        )
        arrays: list[Any] = [
            self._reader.get_tensor(f"{prefix}/{field}") for field in FIELDS
        ]
        return SavedTable(
            to_header(described, arrays),
            [{name: f"{prefix}/{name}" for name in COLUMNS}],
        )


def slot_columns(
    header: table_lib.TableHeader, slots: Sequence[table_lib.Slot]
) -> list[int]:
    """Returns which columns of all slots some slots have.

    Args:
        header: Header of the records.
        slots: Slots of theirs.
    """
    ends = np.cumsum([slot.width for slot in header.slots])
    return [
        column
        for slot, end in zip(header.slots, ends, strict=True)
        if slot in slots
        for column in range(int(end) - slot.width, int(end))
    ]
