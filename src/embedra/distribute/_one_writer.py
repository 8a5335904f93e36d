"""one_writer: a path that all ranks may write to, each in its own way."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator

from ._agreement import together
from ._communicator import Communicator
from ._current import job_communicator


@contextlib.contextmanager
def one_writer(
    path: str | os.PathLike[str], communicator: Communicator | None = None
) -> Iterator[str]:
    """Lets all ranks save to one path, where only rank 0 then writes.

    What saves a model with tables that are split over ranks must run on all of
    them, as each brings its part, while files must be written by one. So rank 0
    is given the path itself, and the others one in a scratch folder of their
    own, which is deleted. The block ends when that of each rank has, so what is
    saved can be read afterwards by all.

    Args:
        path: A file, folder or prefix; the same on all ranks.
        communicator: Of the ranks; None for those of the job. In one process,
            nothing is done.

    Yields:
        Where to write.

    Raises:
        RankError: On all ranks, if the block failed on any.

    Example:
        >>> import tensorflow as tf
        >>> checkpoint = tf.train.Checkpoint(step=tf.Variable(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with one_writer(os.path.join(folder, "model")) as path:
        ...         written = checkpoint.write(path)
        ...     sorted(os.listdir(folder))
        ['model.data-00000-of-00001', 'model.index']
    """
    path = os.fspath(path)
    name = os.path.basename(path.rstrip("/"))
    if communicator is None:
        communicator = job_communicator()
    if communicator is None or communicator.rank == 0:
        with together(communicator, "writing", path):
            yield path
        return
    scratch = tempfile.mkdtemp(prefix="embedra-")
    try:
        with together(communicator, "writing", path):
            yield os.path.join(scratch, name)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
