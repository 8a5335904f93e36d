"""Which checkpoint a path means."""

import os

import tensorflow as tf

from embedra.distribute import gather_values, job_communicator, together

from ._folder import CheckpointFolder
from ._paths import check_path
from ._saves import refuse_delta


def find(path: str | os.PathLike[str]) -> str:
    """Returns the checkpoint that a path means.

    Args:
        path: The prefix of a checkpoint, or a folder of them: its newest.

    Returns:
        The prefix.

    Raises:
        ChainError: If it is a delta, which is none by itself.
        FileNotFoundError: If there is none.
    """
    path = os.fspath(path)
    check_path(path)
    if tf.io.gfile.isdir(path):
        folder = CheckpointFolder(path, tidy=False)
        found = folder.latest or tf.train.latest_checkpoint(path)
        if found is not None:
            return _whole(found)
    elif tf.io.gfile.exists(f"{path}.index"):
        return _whole(path)
    msg = (
        f"There is no checkpoint at {path!r}: neither a folder that holds one "
        "nor a prefix (the name of its `.index` file without that ending)."
    )
    raise FileNotFoundError(msg)


def find_together(path: str | os.PathLike[str]) -> str:
    """Does what `find` does, in a job for all ranks alike.

    Rank 0 looks: on a disk that machines share, others might not see yet what
    was written.

    Args:
        path: See `find`.

    Returns:
        The prefix, the same on all ranks.

    Raises:
        ChainError: As `find` does; in a job the cause of a RankError.
        FileNotFoundError: As `find` does; in a job the cause of a RankError.
    """
    communicator = job_communicator()
    with together(communicator, "looking for a checkpoint at", str(path)):
        first = communicator is None or communicator.rank == 0
        found = find(path) if first else ""
        told = gather_values(communicator, found, label="checkpoint to read")
    return str(told[0])


def _whole(prefix: str) -> str:
    refuse_delta(tf.train.load_checkpoint(prefix), prefix)
    return prefix
