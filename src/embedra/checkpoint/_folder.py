"""CheckpointFolder: the newest complete states of a training, by number."""

import os
import re
import time
from typing import Any

import tensorflow as tf

from embedra.distribute import (
    gather_values,
    job_communicator,
    one_writer,
    together,
)

from ._paths import check_path, check_writable, publish
from ._pointer import POINTER, Kept, names_to_delete, write_pointer


_NAME = re.compile(r"ckpt-(\d+)\.index")
_UNFINISHED = re.compile(
    r"ckpt-\d+\.(partial/?|data-\d+-of-\d+)|checkpoint\.tmp"
)
_PARTIAL = ".partial"
_KEEP_MAX = 5


class CheckpointFolder:
    """A folder of checkpoints `ckpt-1`, `ckpt-2` and so on.

    A checkpoint is written under another name, flushed to disk and renamed,
    its index last; then `checkpoint` points to it, as TensorFlow's readers
    expect; then those that are too many are deleted. What a crash leaves
    unfinished is never read, and removed when the folder is opened again.

    In a job of several ranks all of them make the object and call its methods.
    Rank 0 then looks into the folder, and tells the others; of a checkpoint
    each rank writes its part of tables that are split, and rank 0 all else.
    The machines must share the folder.

    Args:
        directory: The folder; made with the first checkpoint.
        keep_max: How many of the newest to keep, by default 5.
        keep_every_n_hours: Keep one more for each so many hours.
        tidy: Whether what a crash left is removed. Not for those who only read,
            as another process may be writing it; each rank may do so by itself.

    Raises:
        RankError: On all ranks of a job, if one of them failed.
        ValueError: If a number is not positive, or TensorFlow cannot read
            checkpoints in such a path.

    Example:
        >>> import tempfile
        >>> folder = CheckpointFolder(tempfile.mkdtemp(), keep_max=1)
        >>> state = tf.train.Checkpoint(step=tf.Variable(1))
        >>> for _ in range(2):
        ...     path = folder.save(state)
        >>> path.endswith("ckpt-2"), len(folder.paths)
        (True, 1)
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        keep_max: int | None = None,
        keep_every_n_hours: float | None = None,
        tidy: bool = True,
    ) -> None:
        if keep_max is None:
            keep_max = _KEEP_MAX
        _check_positive("keep_max", keep_max)
        if keep_every_n_hours is not None:
            _check_positive("keep_every_n_hours", keep_every_n_hours)
        self.directory = os.fspath(directory)
        check_path(self.directory)
        self._keep_max = keep_max
        self._every_seconds = (
            None if keep_every_n_hours is None else keep_every_n_hours * 3600.0
        )
        self._preserved = time.time()
        self._kept: list[Kept] = []
        self._communicator = job_communicator() if tidy else None
        self._is_first = (
            self._communicator is None or self._communicator.rank == 0
        )
        with together(self._communicator, "opening folder", self.directory):
            if self._is_first:
                self._kept = self._read()
                if tidy:
                    self._tidy()
        self._tell()

    @property
    def paths(self) -> list[str]:
        """Prefixes of the newest checkpoints, the oldest first."""
        return [self._path(kept.name) for kept in self._kept]

    @property
    def latest(self) -> str | None:
        """Prefix of the newest complete checkpoint, or None."""
        return self.paths[-1] if self._kept else None

    def save(self, checkpoint: tf.train.Checkpoint) -> str:
        """Writes a checkpoint, and deletes those that are too many.

        Args:
            checkpoint: What to write.

        Returns:
            Its prefix.
        """
        number = _number(self._kept[-1].name) + 1 if self._kept else 1
        name = f"ckpt-{number}"
        partial = self._path(name + _PARTIAL)
        with together(self._communicator, "saving", self._path(name)):
            if self._is_first:
                tf.io.gfile.makedirs(partial)
            try:
                # As `tf.train.Checkpoint.save` does, for those who `restore`.
                checkpoint.save_counter.assign_add(1)
                with one_writer(
                    os.path.join(partial, name), self._communicator
                ) as path:
                    checkpoint.write(path)
                if self._is_first:
                    publish(partial, self.directory)
                    self._keep(name)
            finally:
                if self._is_first and tf.io.gfile.exists(partial):
                    tf.io.gfile.rmtree(partial)
        self._tell()
        return self._path(name)

    def check_writable(self) -> None:
        """Makes the folder, and raises if nothing can be written there.

        Raises:
            OSError: If not.
        """
        with together(self._communicator, "looking whether it can be written"):
            if self._is_first:
                check_writable(self.directory, self._path(POINTER + ".tmp"))

    def clear(self) -> None:
        """Deletes the folder, with all that is in it."""
        self._kept = []
        with together(self._communicator, "deleting", self.directory):
            if self._is_first and tf.io.gfile.exists(self.directory):
                tf.io.gfile.rmtree(self.directory)

    def _tell(self) -> None:
        """Has all ranks know what rank 0 knows of the folder."""
        own = (self._kept, self._preserved)
        told = gather_values(self._communicator, own, label="checkpoints")
        kept, self._preserved = told[0]
        self._kept = [Kept(*one) for one in kept]

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def _keep(self, name: str) -> None:
        """Points to a new checkpoint, and deletes those that are too many."""
        self._kept.append(Kept(name, time.time()))
        deleted = self._drop_old()
        write_pointer(self.directory, self._kept, deleted, self._preserved)
        for old in deleted:
            self._delete(old.name)

    def _drop_old(self) -> list[Kept]:
        """Takes out what is too many; returns what is to be deleted."""
        deleted = []
        while len(self._kept) > self._keep_max:
            oldest = self._kept.pop(0)
            since = oldest.seconds - self._preserved
            if self._every_seconds is not None and since >= self._every_seconds:
                self._preserved = oldest.seconds
            else:
                deleted.append(oldest)
        return deleted

    def _delete(self, name: str) -> None:
        for path in sorted(
            tf.io.gfile.glob(self._path(f"{name}.*")),
            key=lambda file: not file.endswith(".index"),
        ):
            tf.io.gfile.remove(path)

    def _read(self) -> list[Kept]:
        """Lists the complete checkpoints that are among the newest.

        Those that were renamed, but not pointed to, before a crash, too.
        """
        if not tf.io.gfile.isdir(self.directory):
            return []
        complete = {
            file.removesuffix(".index")
            for file in tf.io.gfile.listdir(self.directory)
            if _NAME.fullmatch(file)
        }
        state: Any = tf.train.get_checkpoint_state(self.directory)
        listed: list[Kept] = []
        if state is not None:
            names = map(os.path.basename, state.all_model_checkpoint_paths)
            times = list(state.all_model_checkpoint_timestamps)
            times += [time.time()] * len(state.all_model_checkpoint_paths)
            listed = [
                Kept(name, seconds)
                for name, seconds in zip(names, times, strict=False)
                if name in complete
            ]
            self._preserved = state.last_preserved_timestamp or self._preserved
        newest = max((_number(kept.name) for kept in listed), default=0)
        found = sorted(
            (name for name in complete if _number(name) > newest), key=_number
        )
        return listed + [Kept(name, time.time()) for name in found]

    def _tidy(self) -> None:
        """Removes what a crash left unfinished, and what it left over."""
        if not tf.io.gfile.isdir(self.directory):
            return
        for name in names_to_delete(self.directory):
            self._delete(name)
        files = tf.io.gfile.listdir(self.directory)
        complete = {
            f.removesuffix(".index") for f in files if _NAME.fullmatch(f)
        }
        for file in files:
            if not _UNFINISHED.fullmatch(file):
                continue
            path = self._path(file.rstrip("/"))
            if tf.io.gfile.isdir(path):
                tf.io.gfile.rmtree(path)
            elif file.split(".")[0] not in complete:
                tf.io.gfile.remove(path)


def _number(name: str) -> int:
    digits = name.rsplit("-", 1)[-1]
    return int(digits) if digits.isdigit() else 0


def _check_positive(name: str, value: float) -> None:
    if value <= 0:
        msg = f"`{name}` must be positive. Received: {value!r}."
        raise ValueError(msg)
