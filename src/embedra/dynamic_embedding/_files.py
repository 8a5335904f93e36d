"""save_to_file_system and load_from_file_system: a variable as plain files."""

import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from embedra import table as table_lib

from . import _graph_files
from ._record_files import RecordFiles
from ._record_writer import RecordWriter, finish_save
from ._sharing import current_graph


# Records that are in memory at a time, at most.
_CHUNK_SIZE = 65_536


def save(
    variable: Any,
    folder: Path,
    names: Sequence[str],
    *,
    append: bool,
    buffer_size: int,
) -> Any:
    """Writes the tables of a variable, each to its files.

    Args:
        variable: The variable.
        folder: Where to.
        names: Beginnings of the file names, one for each table.
        append: Whether to go on with the files that are there.
        buffer_size: Records in memory at a time, at most.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    _check_count(variable, names)
    chunk_size = _chunk_size(buffer_size)
    tables = [
        (
            table,
            functools.partial(
                RecordWriter, folder / name, table.key_dtype, append=append
            ),
        )
        for table, name in zip(variable.tables, names, strict=True)
    ]
    if current_graph() is not None:
        return _graph_files.save_tables(tables, chunk_size)
    _check_eager(variable)
    header = table_lib.group_header(variable.state.group)
    writers: list[RecordWriter] = []
    try:
        for table, make_writer in tables:
            writers.append(make_writer())
            for records in table.export_chunks(chunk_size):
                writers[-1].write(records)
            pending = table_lib.group_pending(table_lib.TableGroup([table]))
            writers[-1].describe(header, pending)
        finish_save(writers)
    except BaseException:
        for writer in writers:
            writer.discard()
        raise
    return None


def load(
    variable: Any,
    prefixes: Sequence[Path],
    *,
    buffer_size: int,
    keep: Callable[[tf.Tensor], tf.Tensor] | None = None,
) -> Any:
    """Replaces the tables of a variable by what is in files.

    Args:
        variable: The variable.
        prefixes: Beginnings of the paths.
        buffer_size: Records in memory at a time, at most.
        keep: Given keys, which of them to load; all by default.

    Returns:
        The operation to run in a TF1 graph, None elsewhere.
    """
    group = variable.state.group
    source = FileSource(prefixes, variable.name, _chunk_size(buffer_size))
    if current_graph() is not None:
        return _graph_files.load_group(group, source, keep)
    _check_eager(variable)
    header = source.header(table_lib.group_header(group))
    table_lib.check_fits(group.first, header, f"files {prefixes[0]}-*")

    def read_chunks() -> Iterator[table_lib.Records]:
        for records in source.chunks(header):
            yield records if keep is None else _kept(records, keep)

    pending = source.pending(header)
    table_lib.replace_state(group, header, read_chunks, pending)
    return None


class FileSource:
    """Reads the files of several prefixes one after the other.

    Args:
        prefixes: Beginnings of the paths.
        name: Of the variable, for messages.
        chunk_size: Records in a chunk at most.
    """

    def __init__(
        self, prefixes: Sequence[Path], name: str, chunk_size: int
    ) -> None:
        self._prefixes = prefixes
        self._name = name
        self._chunk_size = chunk_size

    def header(self, current: table_lib.TableHeader) -> table_lib.TableHeader:
        """Describes what will be read, after all files' sizes were checked.

        Args:
            current: The table as it is: what files of TFRA are read as.

        Returns:
            The header, with the slots of all files.
        """
        files = [RecordFiles(prefix) for prefix in self._prefixes]
        headers = [file.header for file in files if file.header is not None]
        described = headers[0] if headers else current
        slots = {slot: None for head in headers for slot in head.slots}
        if headers:
            fields = {
                "slots": tuple(slots),
                "step": max(h.step for h in headers),
            }
            described = table_lib.TableHeader(**{**vars(described), **fields})
        if len(headers) < len(files):
            self._warn()
        for file in files:
            file.check_same_save(files)
            file.check(described)
        return described

    def _warn(self) -> None:
        warnings.warn(
            f"Variable {self._name!r} was loaded from files that hold keys and "
            "values only, as TFRA writes them. Slots of optimizers start at "
            "their initial values, and counts of lookups at 0.",
            UserWarning,
            stacklevel=2,
        )

    def chunks(
        self, header: table_lib.TableHeader
    ) -> Iterator[table_lib.Records]:
        """Reads all records.

        Args:
            header: As `header` gave it.

        Yields:
            Chunks, none of them empty.
        """
        for prefix in self._prefixes:
            yield from RecordFiles(prefix).chunks(header, self._chunk_size)

    def pending(self, header: table_lib.TableHeader) -> tuple[Any, Any]:
        """Returns keys and gradients accumulated for a step still to come.

        Args:
            header: As `header` gave it.
        """
        parts = [
            RecordFiles(prefix).pending(header.dim) for prefix in self._prefixes
        ]
        keys, gradients = zip(*parts, strict=True)
        return tf.concat(keys, 0), tf.concat(gradients, 0)


def _kept(
    records: table_lib.Records, keep: Callable[[tf.Tensor], tf.Tensor]
) -> table_lib.Records:
    mask = keep(tf.convert_to_tensor(records.keys)).numpy()
    return table_lib.Records(*(column[mask] for column in records))


def _chunk_size(buffer_size: int) -> int:
    if buffer_size < 1:
        msg = f"`buffer_size` must be at least 1. Received: {buffer_size}."
        raise ValueError(msg)
    return min(int(buffer_size), _CHUNK_SIZE)


def _check_count(variable: Any, names: Sequence[str]) -> None:
    if len(names) != len(variable.tables):
        msg = (
            f"`file_name_list` needs a name for each of the "
            f"{len(variable.tables)} devices of {variable!r}. Received: "
            f"{list(names)}."
        )
        raise ValueError(msg)


def _check_eager(variable: Any) -> None:
    if not tf.executing_eagerly():
        msg = (
            f"{variable!r} cannot be saved to or loaded from files inside of a "
            "tf.function. Call it outside."
        )
        raise RuntimeError(msg)
