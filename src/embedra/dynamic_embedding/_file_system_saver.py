"""FileSystemSaver: where and how a variable's files are written."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class FileSystemSaver:
    """Settings of files, given to a kv creator as its `saver`.

    They are what `save_to_file_system` and `load_from_file_system` use where
    the call leaves an argument out. Nothing else changes: checkpoints hold the
    rows with or without it, since they are written in pieces and need no files
    beside them. With TFRA the saver moves the rows out of the checkpoint.

    Args:
        proc_size: Number of processes that save their variable.
        proc_rank: Number of this one.
        save_path: Folder of the files.
        buffer_size: Ids in memory at a time, at most.

    Raises:
        ValueError: If a number is out of range.

    Example:
        >>> import embedra.dynamic_embedding as de
        >>> de.FileSystemSaver(save_path="/data/tables").save_path
        '/data/tables'
    """

    proc_size: int | None = None
    proc_rank: int | None = None
    save_path: str | None = None
    buffer_size: int = 4096

    def __post_init__(self) -> None:
        """Checks the numbers."""
        size, rank = self.proc_size or 1, self.proc_rank or 0
        if not 0 <= rank < size:
            msg = (
                "`proc_rank` must be at least 0 and less than `proc_size`. "
                f"Received: {rank} and {size}."
            )
            raise ValueError(msg)
        if self.buffer_size < 1:
            msg = (
                "`buffer_size` must be at least 1. Received: "
                f"{self.buffer_size}."
            )
            raise ValueError(msg)

    @property
    def config(self) -> "FileSystemSaver":
        """The settings themselves."""
        return self
