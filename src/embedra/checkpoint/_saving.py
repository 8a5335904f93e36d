"""When a training saves, and whether a state is the best so far."""

import math
from collections.abc import Callable
from typing import Any

from ._stopping import StopRequest, TrainingStopped


def is_due(before: int, now: int, every: int | None) -> bool:
    """Whether something that is done every so many steps is due.

    Args:
        before: Steps that had been done when this was asked last.
        now: Steps that are done.
        every: Steps from one time to the next; None or 0 for
            never.

    Example:
        >>> [is_due(step - 1, step, 3) for step in (2, 3, 4)]
        [False, True, False]
        >>> is_due(4, 8, 3)  # several steps in one execution
        True
    """
    return every is not None and every > 0 and now // every > before // every


def save_after_step(
    before: int,
    now: int,
    every: int | None,
    stop: StopRequest,
    save: Callable[[], Any],
) -> None:
    """Saves if it is due after a step, or if the training is to stop.

    Args:
        before: Steps that had been done before this one.
        now: Steps that are done.
        every: Steps between two saves; None or 0 for none in between.
        stop: The request to stop.
        save: Writes the state.

    Raises:
        TrainingStopped: After saving, if a stop was requested.
    """
    # Looked at once: a signal between saving and raising must wait.
    requested = stop.signal_number
    if requested is not None or is_due(before, now, every):
        save()
    if requested is not None:
        raise TrainingStopped(requested)


def improves(value: float, best: float, mode: str) -> bool:
    """Whether a measured value is better than the best one before.

    Args:
        value: The value. NaN never is.
        best: The best one before; NaN for none.
        mode: "max" if higher is better, or "min".

    Example:
        >>> improves(0.8, 0.7, "max"), improves(0.8, 0.7, "min")
        (True, False)
    """
    if math.isnan(value):
        return False
    if math.isnan(best):
        return True
    return value > best if mode == "max" else value < best
