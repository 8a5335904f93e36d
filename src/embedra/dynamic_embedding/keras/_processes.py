"""How many processes train together."""

import sys

from embedra import _env


def check_one_process(who: str, count: int | None = None) -> None:
    """Raises if several processes train together.

    Args:
        who: What is used, for the message.
        count: Number of processes, or None for that of the launcher.

    Raises:
        NotImplementedError: If there are several.
    """
    count = process_count() if count is None else count
    if count > 1:
        msg = (
            f"{who} was used in one of {count} processes of which Embedra "
            "knows nothing, so that each would write the same files. Start "
            f"them by `embedra run -n {count}` or mpirun: then all ranks write "
            "together."
        )
        raise NotImplementedError(msg)


def process_count() -> int:
    """Returns the number of processes that Horovod or MPI started."""
    horovod = sys.modules.get("horovod.tensorflow")
    if horovod is not None and horovod.is_initialized():
        return int(horovod.size())
    return _env.launched_processes()
