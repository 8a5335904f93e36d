"""IncrementalCheckpoints: full checkpoints, and what changed since."""

import os
import re
import time
from collections.abc import Mapping

import tensorflow as tf

from embedra import table as table_lib
from embedra.distribute import (
    gather_values,
    job_communicator,
    one_writer,
    together,
)

from ._paths import check_path, publish
from ._pointer import POINTER, Kept, write_pointer
from ._saves import ChainError, Save, SavesInFolder, write_save


_PARTIAL = ".partial"
_OURS = re.compile(r"((?:full|delta)-(\d+))\.(?:index|data-.*|partial/?)")


class IncrementalCheckpoints:
    """A folder of full checkpoints, and of deltas: what changed since.

    A full checkpoint is one of `tf.train.Checkpoint`, which also that restores.
    A delta holds the dense variables, and of tables the records that changed
    since the save before: row, slots, frequency and last step, whatever changed
    them; and the keys that are gone. So it is as large as what changed.
    `restore` reads the newest full checkpoint with the deltas after it.

    To tell what changed, each key and a 64-bit digest of its record are kept in
    memory: 16 bytes a key, and up to 70 while a save runs. Each save digests
    all records. A change to a digest that is equal, one in about 2**64, would
    be missed.

    A save is written under another name, flushed to disk and renamed, its index
    last, so that a kill leaves those before it. What it leaves half-written is
    removed by the next save. One object at a time should write to a folder: a
    save that finds others than its own there is full.

    In a job of several ranks all of them make the object and call its methods.
    Each rank writes what changed of its part of tables that are split, rank 0
    all else, and looks into the folder, which the machines must share. Any
    number of ranks, also one process, restores what any number saved, and goes
    on with a delta.

    Args:
        checkpoint: What to save and restore. A full checkpoint counts up its
            `save_counter`, a delta too.
        directory: The folder, for this alone; made with the first save.
        keep: How many of the newest full checkpoints to keep, each with its
            deltas.

    Raises:
        TypeError: If `checkpoint` is none.
        ValueError: If `keep` is not positive, or TensorFlow cannot read
            checkpoints in such a path.

    Example:
        >>> import tempfile
        >>> from embedra.table import Table
        >>> user = Table(2, name="user")
        >>> checkpoint = tf.train.Checkpoint(user=user)
        >>> saves = IncrementalCheckpoints(checkpoint, tempfile.mkdtemp())
        >>> user.assign(range(1000), tf.ones((1000, 2)))
        >>> os.path.basename(saves.save(20))
        'full-20'
        >>> user.assign([7], [[1.0, 2.0]])
        >>> user.remove([8, 9])
        2
        >>> os.path.basename(saves.save(40))  # one row, two keys
        'delta-40'
        >>> user.clear()
        >>> saves.restore(), user.size(), user.lookup([7]).numpy().tolist()
        (40, 998, [[1.0, 2.0]])
    """

    def __init__(
        self,
        checkpoint: tf.train.Checkpoint,
        directory: str | os.PathLike[str],
        *,
        keep: int = 2,
    ) -> None:
        if not isinstance(checkpoint, tf.train.Checkpoint):
            msg = (
                "`checkpoint` must be a tf.train.Checkpoint. Received: "
                f"{checkpoint!r}."
            )
            raise TypeError(msg)
        if keep < 1:
            msg = f"`keep` must be positive. Received: {keep!r}."
            raise ValueError(msg)
        self.directory = os.fspath(directory)
        check_path(self.directory)
        self._ranks = job_communicator()
        self._is_first = self._ranks is None or self._ranks.rank == 0
        self._checkpoint = checkpoint
        self._keep = keep
        # What this object knows to be on disk, the newest last; and what this
        # rank's parts of tables are there.
        self._chain: list[Save] = []
        self._tables: Mapping[str, table_lib.Snapshot] = {}

    def save(self, step: int, full: bool | None = None) -> str:
        """Writes what changed since the save before, or everything.

        Args:
            step: Step of the training, larger than those of all saves in the
                folder.
            full: Whether to write everything. By default only where a delta
                has nothing to follow: at the first save of this object, unless
                it restored before, and if files that it would need are not
                there any more.

        Returns:
            Prefix of the checkpoint: `full-20` or `delta-40` in the folder, by
            its step.

        Raises:
            RankError: In a job, on all ranks, if one of them failed.
            ValueError: If there is a save of this or a later step in the
                folder, or `full=False` and a delta has nothing to follow. In a
                job it is the cause of the RankError on rank 0.
        """
        with together(self._ranks, "saving to", self.directory):
            planned = self._plan(int(step), full) if self._is_first else None
            told = gather_values(self._ranks, planned, label="next save")
        save = Save(*told[0])
        tables = self._write(save, self._tables if save.after else {})
        self._chain = [*self._chain, save] if save.after else [save]
        self._tables = tables
        with together(self._ranks, "tidying", self.directory):
            if self._is_first:
                newest = Kept(save.name, time.time())
                write_pointer(self.directory, [newest], [], newest.seconds)
                saves = SavesInFolder(self.directory)
                _tidy(self.directory, saves, self._keep)
        return self._path(save.name)

    def _plan(self, step: int, full: bool | None) -> Save:
        """Decides what to save next, and makes room for it."""
        saves = SavesInFolder(self.directory)
        self._check_later(step, saves)
        before = None if full else self._to_follow(saves)
        if full is False and before is None:
            msg = (
                f"Step {step} cannot be saved as a delta: folder "
                f"{self.directory} does not hold the save of this object that "
                "it would follow. Save with `full=True`, or `restore()` first."
            )
            raise ValueError(msg)
        _tidy(self.directory, saves, self._keep)
        return Save.following(step, before)

    def restore(self) -> int | None:
        """Restores the newest state; call it when the model is built.

        Each table is read from the newest full checkpoint and the deltas after
        it as one, and replaced as a whole. The save after it may be a delta.

        Returns:
            The step of the newest save, or None if the folder holds none.

        Raises:
            ChainError: If a delta is missing or of another chain; it names the
                file. Nothing is changed then. In a job it is the cause of the
                RankError on rank 0.
            RankError: In a job, on all ranks, if one of them failed.
        """
        with together(self._ranks, "restoring from", self.directory):
            found = self._saved() if self._is_first else []
            told = gather_values(self._ranks, found, label="saves")[0]
            if not told:
                return None
            chain = [Save(*each) for each in told]
            prefixes = [self._path(save.name) for save in chain]
            with table_lib.restoring_chain(prefixes) as tables:
                self._checkpoint.restore(prefixes[-1])
        self._chain, self._tables = chain, tables
        return chain[-1].step

    def _saved(self) -> list[Save]:
        """Reads which saves of the folder are to be restored."""
        saves = SavesInFolder(self.directory)
        chain = saves.chain()
        self._check_newest(saves)
        return chain

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def _check_later(self, step: int, saves: SavesInFolder) -> None:
        if step < 0:
            msg = f"`step` must not be negative. Received: {step}."
            raise ValueError(msg)
        newest = saves.newest
        if newest is not None and step <= saves.steps[newest]:
            msg = (
                f"Step {step} must be later than {self._path(newest)}, which "
                "is there. `restore()` goes on from it; a new training needs "
                "another folder."
            )
            raise ValueError(msg)

    def _to_follow(self, saves: SavesInFolder) -> Save | None:
        """Returns the save that a delta can follow now, if there is one."""
        if not self._chain or self._chain[-1].name != saves.newest:
            return None
        if any(save.name not in saves.steps for save in self._chain):
            return None
        # Another object may have written one of the same name.
        last = self._chain[-1]
        try:
            found = saves.read(last.name)
        except ChainError:
            return None
        return last if found == last else None

    def _check_newest(self, saves: SavesInFolder) -> None:
        """Raises if the newest save of which the folder tells is missing."""
        state = tf.train.get_checkpoint_state(self.directory)
        if state is None:
            return
        name = os.path.basename(state.model_checkpoint_path)
        if _OURS.fullmatch(f"{name}.index") and name not in saves.steps:
            pointer = self._path(POINTER)
            msg = (
                f"{self._path(name)} is missing, the newest save by "
                f"{pointer}. Put its files back, or remove {pointer} to "
                f"restore {saves.newest or 'nothing'}."
            )
            raise ChainError(msg)

    def _write(
        self, save: Save, since: Mapping[str, table_lib.Snapshot]
    ) -> Mapping[str, table_lib.Snapshot]:
        """Writes a save; returns what the tables in it are."""
        # As `tf.train.Checkpoint.save` does, for those who `restore`.
        self._checkpoint.save_counter.assign_add(1)
        try:
            with together(self._ranks, "saving", self._path(save.name)):
                return self._write_partial(save, since)
        except BaseException:
            self._checkpoint.save_counter.assign_sub(1)
            raise

    def _write_partial(
        self, save: Save, since: Mapping[str, table_lib.Snapshot]
    ) -> Mapping[str, table_lib.Snapshot]:
        """Writes a save under another name, and renames it."""
        partial = self._path(save.name + _PARTIAL)
        if self._is_first:
            tf.io.gfile.makedirs(partial)
        try:
            with (
                table_lib.saving_changes(since) as tables,
                one_writer(os.path.join(partial, save.name), self._ranks) as to,
            ):
                write_save(self._checkpoint, to, save)
            if self._is_first:
                publish(partial, self.directory)
        finally:
            if self._is_first:
                tf.io.gfile.rmtree(partial)
        return tables


def _tidy(directory: str, saves: SavesInFolder, keep: int) -> None:
    """Removes saves that are too old, and what kills left half-written."""
    first = saves.full_steps[-keep:][:1]
    matches = list(filter(None, map(_OURS.fullmatch, saves.files)))
    # Without its index a save is none: that goes first.
    for match in sorted(matches, key=lambda m: not m[0].endswith(".index")):
        path = os.path.join(directory, match[0].rstrip("/"))
        if match[0].rstrip("/").endswith(_PARTIAL):
            tf.io.gfile.rmtree(path)
        elif match[1] not in saves.steps or (
            first and int(match[2]) < first[0]
        ):
            tf.io.gfile.remove(path)
