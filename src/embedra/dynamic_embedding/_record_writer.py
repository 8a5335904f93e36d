"""RecordWriter: writes files of records, whole or not at all."""

import base64
import json
import os
import uuid
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from embedra import table as table_lib

from ._record_files import (
    FORMAT,
    HEADER_SUFFIX,
    SUFFIXES,
    RecordFiles,
    file_key_dtype,
    file_path,
)


_TEMPORARY = ".writing-"


class RecordWriter:
    """Writes records to the files of one prefix.

    The files are whole or absent: all go to temporary names first. They get
    their own by `finish_save`, the header before the others, so that a mixture,
    should the process end in between, is found by its checksums.

    Args:
        prefix: Beginning of the paths.
        key_dtype: Dtype of the ids.
        append: Whether to go on with the files that are there.

    Raises:
        ValueError: If those cannot be gone on with.
    """

    def __init__(self, prefix: Path, key_dtype: str, *, append: bool) -> None:
        self.prefix = prefix
        self._key_dtype = key_dtype
        self._ending = f"{_TEMPORARY}{uuid.uuid4().hex}"
        self._count = 0
        self._sums = dict.fromkeys(SUFFIXES, 0)
        self._fields: dict[str, Any] = {}
        prefix.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(prefix)
        self._appended_to: RecordFiles | None = None
        if append and file_path(prefix, SUFFIXES["keys"]).exists():
            self._appended_to = _checked_for_appending(prefix)
        self._files: dict[str, IO[bytes]] = {
            name: self._temporary(suffix).open("wb")
            for name, suffix in SUFFIXES.items()
        }
        if self._appended_to is not None:
            self._copy(self._appended_to)

    def write(self, records: table_lib.Records) -> None:
        """Adds records.

        Args:
            records: A chunk of whole records.
        """
        self._count += len(records.keys)
        columns = records._asdict()
        columns["keys"] = columns["keys"].astype(
            file_key_dtype(self._key_dtype)
        )
        for name, column in columns.items():
            self._add(name, np.ascontiguousarray(column).tobytes())

    def describe(
        self,
        header: table_lib.TableHeader,
        pending: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None,
    ) -> None:
        """Says what was written; `finish_save` is to follow.

        Args:
            header: What the table is.
            pending: Keys and gradients accumulated for a step still to come.

        Raises:
            ValueError: If files that are appended to are of another table.
        """
        if self._appended_to is not None:
            self._check_appended(self._appended_to, header)
        self._fields = {
            "format": FORMAT,
            "records": self._count,
            "crc32": self._sums,
            "pending": [
                base64.b64encode(
                    np.ascontiguousarray(column).tobytes()
                ).decode()
                for column in pending or ()
            ],
            "table": json.loads(header.to_json()),
        }

    def write_header(self, save: str, names: Sequence[str]) -> None:
        """Writes the last file, and waits until all are on disk.

        Args:
            save: What the save is known by.
            names: Beginnings of the names of all files of the save.
        """
        fields = {**self._fields, "save": save, "files": list(names)}
        self._files[HEADER_SUFFIX] = self._temporary(HEADER_SUFFIX).open("wb")
        self._files[HEADER_SUFFIX].write(json.dumps(fields).encode())
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()

    def rename(self) -> None:
        """Gives the files their names."""
        for suffix in (HEADER_SUFFIX, *SUFFIXES.values()):
            self._temporary(suffix).replace(file_path(self.prefix, suffix))
        _sync_folder(self.prefix.parent)

    def discard(self) -> None:
        """Removes what was written so far."""
        for file in self._files.values():
            file.close()
        _remove_leftovers(self.prefix)

    def _temporary(self, suffix: str) -> Path:
        return file_path(self.prefix, f"{suffix}{self._ending}")

    def _add(self, name: str, data: bytes) -> None:
        self._files[name].write(data)
        self._sums[name] = zlib.crc32(data, self._sums[name])

    def _copy(self, files: "RecordFiles") -> None:
        self._count = files.count
        for name, suffix in SUFFIXES.items():
            with file_path(self.prefix, suffix).open("rb") as file:
                while data := file.read(1 << 20):
                    self._add(name, data)

    def _check_appended(
        self, files: "RecordFiles", header: table_lib.TableHeader
    ) -> None:
        found = files.header
        for field in ("dim", "dtype", "key_dtype", "slots"):
            before, now = getattr(found, field), getattr(header, field)
            if before != now:
                msg = (
                    f"Cannot append to {self.prefix}{SUFFIXES['keys']}: "
                    f"{field} is {before!r} in the file, {now!r} in table "
                    f"{header.name!r}. Save to another folder."
                )
                raise ValueError(msg)


def finish_save(writers: Sequence[RecordWriter]) -> None:
    """Gives all files of a save their names, once all are on disk.

    Each header names the save and its files: those of a save that ended in
    between do not agree.

    Args:
        writers: One for each table, each told what it wrote.
    """
    save = uuid.uuid4().hex
    names = [writer.prefix.name for writer in writers]
    for writer in writers:
        writer.write_header(save, names)
    for writer in writers:
        writer.rename()


def _checked_for_appending(prefix: Path) -> RecordFiles:
    """Returns files to go on with, or raises ValueError."""
    files = RecordFiles(prefix)
    if files.header is None:
        path = file_path(prefix, HEADER_SUFFIX)
        msg = (
            f"There is no {path}: files that TFRA wrote cannot be appended to. "
            "Load and save them first."
        )
        raise ValueError(msg)
    files.check(files.header)
    return files


def _remove_leftovers(prefix: Path) -> None:
    """Removes what saves that did not finish left behind."""
    for suffix in (HEADER_SUFFIX, *SUFFIXES.values()):
        start = f"{prefix.name}{suffix}{_TEMPORARY}"
        for path in prefix.parent.iterdir():
            if path.name.startswith(start):
                path.unlink()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
