"""Saves of an incremental checkpoint: which follows which, as files tell."""

import json
import os
import re
import uuid
from typing import Any, NamedTuple

import tensorflow as tf


# The tensor that holds what a save says of itself.
_TENSOR = "embedra_incremental_save"
_INDEX = re.compile(r"((?:full|delta)-(\d+))\.index")
_DATA = re.compile(r"\.data-\d+-of-(\d+)")


class ChainError(ValueError):
    """The saves in a folder are not one chain."""


class Save(NamedTuple):
    """What a save says of itself.

    Attributes:
        id: Unique to it.
        step: Step of the training.
        after: The id of the save that a delta follows; "" for a full one.
        after_name: The name of that one.
    """

    id: str
    step: int
    after: str = ""
    after_name: str = ""

    @classmethod
    def following(cls, step: int, before: "Save | None") -> "Save":
        """Returns a new save.

        Args:
            step: Its step.
            before: The one that it follows; None if it is full.
        """
        if before is None:
            return cls(uuid.uuid4().hex, step)
        return cls(uuid.uuid4().hex, step, before.id, before.name)

    @property
    def name(self) -> str:
        """Its name in the folder."""
        return f"{'delta' if self.after else 'full'}-{self.step}"


def write_save(
    checkpoint: tf.train.Checkpoint, prefix: str, save: Save
) -> None:
    """Writes a checkpoint that says which save it is.

    Args:
        checkpoint: What to write.
        prefix: Where, in a folder that is there.
        save: The save.
    """
    parts = [f"{prefix}.values", f"{prefix}.save"]
    checkpoint.write(parts[0])
    tf.raw_ops.SaveV2(
        prefix=parts[1],
        tensor_names=[_TENSOR],
        shape_and_slices=[""],
        tensors=[tf.constant(json.dumps(save._asdict()))],
    )
    tf.raw_ops.MergeV2Checkpoints(
        checkpoint_prefixes=parts,
        destination_prefix=prefix,
        delete_old_dirs=False,
    )


def refuse_delta(reader: Any, prefix: str) -> None:
    """Raises if a checkpoint is a delta, for those who read it by itself.

    Args:
        reader: Of the checkpoint.
        prefix: Its prefix.

    Raises:
        ChainError: If it is.
    """
    save = _read(reader)
    if save is not None and save.after:
        msg = (
            f"Checkpoint {prefix} holds of tables only what changed since "
            f"{save.after_name}, which it follows. Restore it with "
            "`embedra.checkpoint.IncrementalCheckpoints(checkpoint, folder)"
            ".restore()`, or give a full checkpoint."
        )
        raise ChainError(msg)


class SavesInFolder:
    """The complete saves in a folder, as they are now.

    Args:
        directory: The folder; it may be missing.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        exists = tf.io.gfile.isdir(directory)
        self.files = tf.io.gfile.listdir(directory) if exists else []
        matches = filter(None, map(_INDEX.fullmatch, self.files))
        steps = {match[1]: int(match[2]) for match in matches}
        self.steps = dict(sorted(steps.items(), key=lambda item: item[1]))

    @property
    def full_steps(self) -> list[int]:
        """Steps of full saves, ascending."""
        return [s for name, s in self.steps.items() if name.startswith("full")]

    @property
    def newest(self) -> str | None:
        """Name of the newest save, or None."""
        return next(reversed(self.steps), None)

    def read(self, name: str) -> Save:
        """Reads what a save says of itself.

        Args:
            name: Its name.

        Raises:
            ChainError: If it is none, or part of it is missing.
        """
        path = os.path.join(self._directory, name)
        data = [
            match
            for file in self.files
            if file.startswith(f"{name}.")
            and (match := _DATA.fullmatch(file, len(name)))
        ]
        if not data or len(data) != int(data[0][1]):
            msg = f"{path}: {len(data)} data files are there, which are not all"
            raise ChainError(msg)
        save = _read(tf.train.load_checkpoint(path))
        if save is None:
            msg = (
                f"{path}.index: was not written by IncrementalCheckpoints. "
                "Give it a folder of its own."
            )
            raise ChainError(msg)
        return save

    def chain(self) -> list[Save]:
        """Reads the newest full save and the deltas after it.

        Returns:
            The saves, in order; none if there are none.

        Raises:
            ChainError: If one is missing, or of another chain.
        """
        if not self.steps:
            return []
        if not self.full_steps:
            msg = (
                f"{os.path.join(self._directory, next(iter(self.steps)))} is "
                "there, but no full checkpoint, which deltas need to be "
                "restored."
            )
            raise ChainError(msg)
        first = self.full_steps[-1]
        names = [
            name
            for name, step in self.steps.items()
            if step > first or name == f"full-{first}"
        ]
        chain = [self.read(name) for name in names]
        for before, save in zip(chain, chain[1:], strict=False):
            self._check_follows(save, before)
        return chain

    def _check_follows(self, save: Save, before: Save) -> None:
        if save.after == before.id:
            return
        path = os.path.join(self._directory, save.name)
        needed = os.path.join(self._directory, save.after_name)
        if save.after_name in self.steps:
            msg = (
                f"{path} does not follow the {save.after_name} that is there "
                f"before it, but another save of that name: the files are of "
                "different trainings. Put back those that belong together, or "
                f"remove {path}.* to restore the state before it."
            )
        else:
            msg = (
                f"{needed} is missing, which {path} follows. Put its files "
                f"back, or remove {path}.* and what is newer to restore "
                f"{before.name}."
            )
        raise ChainError(msg)


def _read(reader: Any) -> Save | None:
    if not reader.has_tensor(_TENSOR):
        return None
    return Save(**json.loads(reader.get_tensor(_TENSOR)))
