"""The methods of a variable that write and read files."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from . import _files


class FileMethods:
    """What a `de.Variable` does with files.

    Attributes:
        partition_fn: Given ids and a number of shards, gives the shard of each.
    """

    partition_fn: Callable[..., Any]

    def save_to_file_system(
        self,
        dirpath: str,
        proc_size: int = 1,
        proc_rank: int = 0,
        file_name_list: Sequence[str] | None = None,
        dirpath_env: str = "TFRA_SAVED_KV",
        append_to_file: bool = False,
        buffer_size: int = 4194304,
        name: str | None = None,
    ) -> Any:
        """Writes ids and rows to files that TFRA reads, and the rest beside.

        Args:
            dirpath: Folder to write to.
            proc_size: Number of processes that save their variable.
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
        names = file_name_list or _files.file_names(self, proc_size, proc_rank)
        with tf.name_scope(name or "save_to_file_system"):
            return _files.save(
                self,
                _files.folder_of(dirpath, dirpath_env),
                names,
                append=append_to_file,
                buffer_size=buffer_size,
            )

    def load_from_file_system(
        self,
        dirpath: str,
        proc_size: int = 1,
        proc_rank: int = 0,
        file_name_list: Sequence[str] | None = None,
        dirpath_env: str = "TFRA_SAVED_KV",
        load_entire_dir: bool = False,
        buffer_size: int = 4194304,
        name: str | None = None,
    ) -> Any:
        """Replaces all ids by those in files, or on failure none.

        Files that TFRA wrote have no slots and counters: these start anew, and
        a warning says so.

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
        folder = _files.folder_of(dirpath, dirpath_env)
        if load_entire_dir:
            prefixes = _files.prefixes_in(folder, self, file_name_list)
        else:
            names = file_name_list or _files.file_names(
                self, proc_size, proc_rank
            )
            prefixes = [folder / file_name for file_name in names]
        with tf.name_scope(name or "load_from_file_system"):
            return _files.load(self, prefixes, buffer_size=buffer_size)

    def load_from_file_system_with_restore_function(
        self,
        dirpath: str,
        proc_size: int = 1,
        proc_rank: int = 0,
        buffer_size: int = 4194304,
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
        prefixes = _files.prefixes_in(Path(dirpath), self, None)
        _files.check_one_whole_save(prefixes)

        def is_ours(keys: tf.Tensor) -> tf.Tensor:
            ranks = tf.cast(self.partition_fn(keys, proc_size), tf.int32)
            return tf.equal(ranks, proc_rank)

        return _files.load(
            self,
            prefixes,
            buffer_size=buffer_size,
            keep=is_ours if proc_size > 1 else None,
        )
