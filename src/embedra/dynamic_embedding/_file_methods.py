"""The methods of a variable that write and read files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from embedra.distribute import Communicator, owned, together

from . import _file_names, _files
from ._state import VariableState


# As in TFRA. What is in memory at a time is bounded further.
_BUFFER_SIZE = 4194304


class FileMethods:
    """What a `de.Variable` does with files.

    Attributes:
        partition_fn: Given ids and a number of shards, gives the shard of each.
        kv_creator: Kind of table; its `saver` has settings of files.
        state: Its tables, as they are saved.
    """

    partition_fn: Callable[..., Any]
    kv_creator: Any
    state: VariableState

    def save_to_file_system(
        self,
        dirpath: str | None = None,
        proc_size: int = 1,
        proc_rank: int = 0,
        file_name_list: Sequence[str] | None = None,
        dirpath_env: str = "TFRA_SAVED_KV",
        append_to_file: bool = False,
        buffer_size: int = _BUFFER_SIZE,
        name: str | None = None,
    ) -> Any:
        """Writes ids and rows to files that TFRA reads, and the rest beside.

        Files are written under temporary names, and get their own once all are
        on disk. Should the process end between the first and the last of these
        renames, loading raises an error: to have the previous files until the
        new ones are whole, save to a folder of another name.

        Args:
            dirpath: Folder to write to. This and the next two, and
                `buffer_size`, are by default those of the `de.FileSystemSaver`
                of the variable's kv creator, if there is one.
            proc_size: Number of processes that save their variable. By default
                this and the next are those of the job whose ranks hold the
                variable together, all of which then save.
            proc_rank: Number of this one.
            file_name_list: Beginning of the file names for each device.
            dirpath_env: Environment variable that, if set, overrules `dirpath`.
            append_to_file: Whether to add to the files that are there.
            buffer_size: Ids in memory at a time, at most.
            name: Name of the ops.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.

        Example:
            >>> import tempfile, embedra.dynamic_embedding as de
            >>> user = de.Variable(dim=2, name="user")
            >>> user.upsert([7], [[1.0, 2.0]])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     user.save_to_file_system(folder)
            ...     user.clear()
            ...     user.load_from_file_system(folder)
            >>> user.lookup([7]).numpy().tolist()
            [[1.0, 2.0]]
        """
        asked = self._settings(dirpath, proc_size, proc_rank, buffer_size)
        ranks = asked.ranks if tf.executing_eagerly() else None
        with (
            together(ranks, f"saving the files of {self!r}"),
            tf.name_scope(name or "save_to_file_system"),
        ):
            return _files.save(
                self,
                _file_names.folder_of(asked.folder, dirpath_env),
                file_name_list or self._file_names(asked),
                append=append_to_file,
                buffer_size=asked.buffer_size,
            )

    def load_from_file_system(
        self,
        dirpath: str | None = None,
        proc_size: int = 1,
        proc_rank: int = 0,
        file_name_list: Sequence[str] | None = None,
        dirpath_env: str = "TFRA_SAVED_KV",
        load_entire_dir: bool = False,
        buffer_size: int = _BUFFER_SIZE,
        name: str | None = None,
    ) -> Any:
        """Replaces all ids by those in files, or on failure none.

        Files that TFRA wrote have no slots and counters: these start anew, and
        a warning says so. Ranks of a job that hold the variable together read
        the files of all processes, whatever their number was, and each keeps
        the ids that it owns.

        Args:
            dirpath: Folder to read.
            proc_size: Number of processes that saved.
            proc_rank: Number of the one whose files to read.
            file_name_list: Beginnings of the file names.
            dirpath_env: Environment variable that, if set, overrules `dirpath`.
            load_entire_dir: Whether to read the files of all processes and
                devices, whatever their number was.
            buffer_size: Ids in memory at a time, at most.
            name: Name of the ops.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.

        Raises:
            FileNotFoundError: If a file is missing.
            ValueError: If one is damaged or does not fit.
        """
        asked = self._settings(dirpath, proc_size, proc_rank, buffer_size)
        folder = _file_names.folder_of(asked.folder, dirpath_env)
        if load_entire_dir or asked.ranks is not None:
            prefixes = _file_names.prefixes_in(folder, self, file_name_list)
        else:
            names = file_name_list or self._file_names(asked)
            prefixes = [folder / file_name for file_name in names]
        with tf.name_scope(name or "load_from_file_system"):
            return _files.load(
                self,
                prefixes,
                buffer_size=asked.buffer_size,
                keep=self._owned_by(asked),
            )

    def load_from_file_system_with_restore_function(
        self,
        dirpath: str | None = None,
        proc_size: int = 1,
        proc_rank: int = 0,
        buffer_size: int = _BUFFER_SIZE,
    ) -> Any:
        """Replaces all ids by this process's share of a save.

        The save may be by another number of processes and devices; the
        `partitioner` says which ids are whose.

        Args:
            dirpath: Folder with the files of all processes that saved.
            proc_size: Number of processes now.
            proc_rank: Number of this one.
            buffer_size: Ids in memory at a time, at most.

        Returns:
            The operation to run in a TF1 graph, None elsewhere.

        Raises:
            FileNotFoundError: If a file of the save is missing.
            ValueError: If one is damaged or does not fit, or there are several
                saves in the folder.
        """
        asked = self._settings(dirpath, proc_size, proc_rank, buffer_size)
        folder = Path(_file_names.checked_folder(asked.folder))
        prefixes = _file_names.prefixes_in(folder, self, None)
        _file_names.check_one_whole_save(prefixes)

        def is_ours(keys: tf.Tensor) -> tf.Tensor:
            ranks = tf.cast(self.partition_fn(keys, asked.size), tf.int32)
            return tf.equal(ranks, asked.rank)

        keep = self._owned_by(asked)
        if keep is None and asked.size > 1:
            keep = is_ours
        return _files.load(
            self, prefixes, buffer_size=asked.buffer_size, keep=keep
        )

    def _owned_by(
        self, asked: "_Settings"
    ) -> Callable[[tf.Tensor], tf.Tensor] | None:
        """Returns what tells keys that this rank owns, if there are ranks."""
        ranks = asked.ranks
        return None if ranks is None else lambda keys: owned(keys, ranks)

    def _file_names(self, asked: "_Settings") -> list[str]:
        return _file_names.file_names(self, asked.size, asked.rank)

    def _settings(
        self,
        dirpath: str | None,
        proc_size: int,
        proc_rank: int,
        buffer_size: int,
    ) -> "_Settings":
        """Returns what is asked for, defaults replaced by the saver's."""
        saver = getattr(self.kv_creator, "saver", None)
        if saver is not None:
            config = saver.config
            dirpath = dirpath or config.save_path
            if (proc_size, proc_rank) == (1, 0):
                proc_size = config.proc_size or 1
                proc_rank = config.proc_rank or 0
            if buffer_size == _BUFFER_SIZE:
                buffer_size = config.buffer_size
        if not 0 <= proc_rank < proc_size:
            msg = (
                "`proc_rank` must be at least 0 and less than `proc_size`. "
                f"Received: {proc_rank} and {proc_size}."
            )
            raise ValueError(msg)
        ranks = None
        if (proc_size, proc_rank) == (1, 0):
            ranks = self.state.group.communicator
        if ranks is not None:
            proc_size, proc_rank = ranks.size, ranks.rank
        return _Settings(dirpath, proc_size, proc_rank, buffer_size, ranks)


class _Settings(NamedTuple):
    folder: str | None
    size: int
    rank: int
    buffer_size: int
    # Those that hold the variable together, if they are whom it is about.
    ranks: Communicator | None
