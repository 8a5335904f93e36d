"""Files of raw records: the keys and values of TFRA, and beside them the rest.

    <prefix>-keys         little-endian integers of the key dtype
    <prefix>-values       rows of the value dtype, one after the other
    <prefix>-slots        float32, all slots of a record side by side
    <prefix>-frequencies  int64
    <prefix>-last_steps   int64
    <prefix>-table.json   what the table is, checksums of the files above

The first two are all that TFRA writes and reads.
"""

import base64
import contextlib
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from embedra import table as table_lib


FORMAT = 1
SUFFIXES = {
    "keys": "-keys",
    "rows": "-values",
    "slots": "-slots",
    "frequencies": "-frequencies",
    "last_steps": "-last_steps",
}
HEADER_SUFFIX = "-table.json"


class RecordFiles:
    """The files of one prefix, to be read.

    Args:
        prefix: Beginning of the paths.

    Raises:
        FileNotFoundError: If there are slots, but no header.
        ValueError: If the header is damaged, or of a later release.
    """

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self.header: table_lib.TableHeader | None = None
        self.count = -1
        self._sums: dict[str, int] = {}
        self._pending: list[bytes] = []
        self._save: str | None = None
        self._files_of_save: list[str] = []
        path = file_path(prefix, HEADER_SUFFIX)
        if path.exists():
            self._read_header(path)
        elif file_path(prefix, SUFFIXES["slots"]).exists():
            msg = (
                f"There is no {path}, though there are files beside it that "
                "TFRA does not write. Nothing was loaded."
            )
            raise FileNotFoundError(msg)

    def _read_header(self, path: Path) -> None:
        try:
            fields = json.loads(path.read_bytes())
            is_known = fields["format"] == FORMAT
            if is_known:
                self._set_header(fields)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            msg = f"{path} is damaged: {error!r}. Nothing was loaded."
            raise ValueError(msg) from error
        if not is_known:
            msg = (
                f"{path} has format {fields['format']}; this release of "
                f"Embedra reads format {FORMAT}. Use a release that matches "
                "the file."
            )
            raise ValueError(msg)

    def _set_header(self, fields: dict[str, Any]) -> None:
        self.header = table_lib.TableHeader.from_json(
            json.dumps(fields["table"])
        )
        self.count = int(fields["records"])
        self._sums = {name: fields["crc32"][name] for name in SUFFIXES}
        self._pending = [base64.b64decode(text) for text in fields["pending"]]
        self._save = fields.get("save")
        self._files_of_save = list(fields.get("files", []))

    def check_same_save(self, others: Sequence["RecordFiles"]) -> None:
        """Raises if one that was saved together with this was saved again.

        Args:
            others: All that are loaded.

        Raises:
            ValueError: If a file of the save is of another save.
        """
        for other in others:
            is_sibling = (
                other.prefix.parent == self.prefix.parent
                and other.prefix.name in self._files_of_save
            )
            if is_sibling and other._save != self._save:
                msg = (
                    f"{self.prefix}-* and {other.prefix}-* are of two saves: "
                    "one of them is from a save that was interrupted. Nothing "
                    "was loaded."
                )
                raise ValueError(msg)

    def pending(self, dim: int) -> tuple[Any, Any]:
        """Returns keys and gradients accumulated for a step still to come.

        Args:
            dim: Width of a row.
        """
        keys, gradients = self._pending or (b"", b"")
        return (
            np.frombuffer(keys, np.int64),
            np.frombuffer(gradients, np.float32).reshape(-1, dim),
        )

    def check(self, described: table_lib.TableHeader) -> None:
        """Raises unless the files have the sizes that they should have.

        Args:
            described: What the records are, if the files do not say.

        Raises:
            FileNotFoundError: If a file is missing.
            ValueError: If one has a wrong size.
        """
        widths = _widths(self.header or described)
        names = SUFFIXES if self.header else ("keys", "rows")
        for name in names:
            dtype, width = widths[name]
            path = file_path(self.prefix, SUFFIXES[name])
            if not path.exists():
                msg = f"There is no {path}. Nothing was loaded."
                raise FileNotFoundError(msg)
            size = path.stat().st_size
            if self.count < 0:
                self.count = size // dtype.itemsize
            expected = self.count * width * dtype.itemsize
            if size != expected:
                msg = (
                    f"{path} has {path.stat().st_size} bytes, but {self.count} "
                    f"records of {width} x {dtype.name} need {expected}: it is "
                    "truncated, or of a table of another width or dtype. "
                    "Nothing was loaded."
                )
                raise ValueError(msg)

    def chunks(
        self, described: table_lib.TableHeader, chunk_size: int
    ) -> Iterator[table_lib.Records]:
        """Reads the records, with the slots that `described` has.

        Args:
            described: What the records are to be. Slots that the files lack
                are initial, and counters 0.
            chunk_size: Records in a chunk at most.

        Yields:
            Chunks, none of them empty.

        Raises:
            ValueError: If a file is damaged.
        """
        self.check(described)
        header = self.header or described
        widths = _widths(header)
        names = list(SUFFIXES) if self.header else ["keys", "rows"]
        sums = dict.fromkeys(names, 0)
        with contextlib.ExitStack() as stack:
            files = {
                name: stack.enter_context(
                    file_path(self.prefix, SUFFIXES[name]).open("rb")
                )
                for name in names
            }
            for start in range(0, self.count, chunk_size):
                count = min(chunk_size, self.count - start)
                columns = {}
                for name, file in files.items():
                    dtype, width = widths[name]
                    data = file.read(count * width * dtype.itemsize)
                    sums[name] = zlib.crc32(data, sums[name])
                    shape = (count, width) if name in _WIDE else (count,)
                    columns[name] = np.frombuffer(data, dtype).reshape(shape)
                yield _as_records(columns, self.header, described)
        for name, found in sums.items():
            if self._sums and found != self._sums[name]:
                path = file_path(self.prefix, SUFFIXES[name])
                msg = (
                    f"{path} is damaged, or from a save that was interrupted: "
                    "its checksum is not the one in "
                    f"{file_path(self.prefix, HEADER_SUFFIX)}. Nothing was "
                    "loaded."
                )
                raise ValueError(msg)


_WIDE = ("rows", "slots")


def file_key_dtype(key_dtype: str) -> np.dtype[Any]:
    """Returns the dtype of keys in files.

    Args:
        key_dtype: Dtype of the ids; hashed strings are `int64`.
    """
    if key_dtype == "string":
        return np.dtype("<i8")
    return np.dtype(key_dtype).newbyteorder("<")


def _widths(
    header: table_lib.TableHeader,
) -> dict[str, tuple[np.dtype[Any], int]]:
    rows = np.dtype(tf.as_dtype(header.dtype).as_numpy_dtype)
    return {
        "keys": (file_key_dtype(header.key_dtype), 1),
        "rows": (rows, header.dim),
        "slots": (np.dtype("<f4"), sum(slot.width for slot in header.slots)),
        "frequencies": (np.dtype("<i8"), 1),
        "last_steps": (np.dtype("<i8"), 1),
    }


def _as_records(
    columns: dict[str, npt.NDArray[Any]],
    header: table_lib.TableHeader | None,
    described: table_lib.TableHeader,
) -> table_lib.Records:
    count = len(columns["keys"])
    found = {}
    start = 0
    for slot in header.slots if header else ():
        found[slot] = columns["slots"][:, start : start + slot.width]
        start += slot.width
    slots = [
        found[slot]
        if slot in found
        else np.full((count, slot.width), slot.initial, np.float32)
        for slot in described.slots
    ]
    zeros = np.zeros(count, np.int64)
    return table_lib.Records(
        keys=columns["keys"].astype(np.int64),
        rows=columns["rows"],
        slots=np.concatenate(
            [np.zeros((count, 0), np.float32), *slots], axis=1
        ),
        frequencies=columns.get("frequencies", zeros),
        last_steps=columns.get("last_steps", zeros),
    )


def file_path(prefix: Path, suffix: str) -> Path:
    """Returns the path of a file.

    Args:
        prefix: Beginning of the path.
        suffix: One of `SUFFIXES`, or `HEADER_SUFFIX`.
    """
    return prefix.with_name(prefix.name + suffix)
