"""What ranks do together: it is done on all of them, or fails on all."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from ._communicator import Communicator


class RankError(RuntimeError):
    """What ranks did together failed on one of them, and so on all."""


@contextlib.contextmanager
def known_to_all() -> Iterator[None]:
    """Surrounds an exchange within `together`, whose errors all ranks get.

    Raises:
        RankError: In place of TensorFlow's error.

    Example:
        >>> from embedra.distribute import communicator
        >>> with known_to_all():
        ...     total = communicator().all_reduce(3)
    """
    try:
        yield
    except tf.errors.OpError as error:
        raise RankError(str(error.message)) from error


def gather_values(
    communicator: Communicator | None, value: Any, *, label: str
) -> list[Any]:
    """Gives every rank the value of each rank.

    It also waits for all ranks. Not inside a `tf.function`.

    Args:
        communicator: Of the ranks; None for this one alone.
        value: Small, and of what JSON has.
        label: Name in messages, the same on all ranks.

    Returns:
        The values by rank.

    Raises:
        RankError: If a rank that was to take part has failed; see `together`.

    Example:
        >>> from embedra.distribute import communicator
        >>> gather_values(communicator(), {"step": 3}, label="steps")
        [{'step': 3}]
    """
    if communicator is None:
        return [value]
    return _values(_exchange(communicator, {"value": value}, label))


def gather_bytes(
    communicator: Communicator, value: bytes, *, label: str
) -> list[bytes]:
    """Gives rank 0 what each rank has. Not inside a `tf.function`.

    Args:
        communicator: Of the ranks.
        value: Bytes of any number.
        label: Name in messages, the same on all ranks.

    Returns:
        The values by rank on rank 0, and nothing on the others.

    Example:
        >>> from embedra.distribute import communicator
        >>> gather_bytes(communicator(), b"state", label="states")
        [b'state']
    """
    splits = [len(value)] + [0] * (communicator.size - 1)
    with known_to_all():
        received, counts = communicator.all_to_all_v(
            np.frombuffer(value, np.uint8), splits, label=label
        )
    ends = np.cumsum(counts.numpy())
    if communicator.rank != 0:
        return []
    parts = np.split(received.numpy(), ends[:-1])
    return [part.tobytes() for part in parts]


@contextlib.contextmanager
def together(
    communicator: Communicator | None, label: str, detail: str = ""
) -> Iterator[None]:
    """Makes a block fail on all ranks if it fails on one.

    The block ends when that of each rank has. Ranks that wait in
    `gather_values` are told of the failure there.

    Args:
        communicator: Of the ranks; with None or one rank nothing is done.
        label: What the block does, the same on all ranks; for messages.
        detail: What it does that to, for messages too. It may differ between
            ranks, as the path of a folder does that they mount differently.

    Yields:
        Nothing.

    Raises:
        RankError: On all ranks, if the block failed on any. Its cause, on that
            rank, is the error itself.

    Example:
        >>> from embedra.distribute import communicator
        >>> with together(communicator(), "making a folder"):
        ...     done = True
    """
    if communicator is None or communicator.size == 1:
        yield
        return
    try:
        yield
        _values(_exchange(communicator, {}, label, detail))
    except RankError:
        raise
    except Exception as error:
        what = f"{label} {detail}".rstrip()
        own = {"error": f"{what}: {type(error).__name__}: {error}"}
        raise _failure(_tell(communicator, own, label, detail)) from error


def _tell(
    communicator: Communicator, own: dict[str, Any], label: str, detail: str
) -> list[dict[str, Any]]:
    """Tells the other ranks of an error; returns what all have told."""
    try:
        return _exchange(communicator, own, label, detail)
    except RankError:
        # Others are in another exchange, and fail in there.
        return [{}] * communicator.rank + [own]


def _exchange(
    communicator: Communicator,
    message: dict[str, Any],
    label: str,
    detail: str = "",
) -> list[dict[str, Any]]:
    """Sends a message to all ranks; returns theirs, with their labels."""
    labelled = {"label": label, **message}
    text = np.frombuffer(json.dumps(labelled).encode(), np.uint8)
    with tf.__internal__.eager_context.eager_mode(), known_to_all():
        # Errors are told whatever the others are at.
        gathered, counts = communicator.all_gather_v(
            text, label=f"{label} {detail}".rstrip(), any_label=True
        )
    ends = np.cumsum(counts.numpy())[:-1]
    return [
        json.loads(part.tobytes()) for part in np.split(gathered.numpy(), ends)
    ]


def _values(messages: list[dict[str, Any]]) -> list[Any]:
    """Returns what ranks have told each other at the same place.

    Raises:
        RankError: If one has failed, or they are not at the same place.
    """
    if any("error" in message for message in messages):
        raise _failure(messages)
    first = messages[0]["label"]
    for rank, message in enumerate(messages):
        if message["label"] != first:
            msg = (
                f"Ranks differ in what they do together: rank 0 is at "
                f"{first!r}, rank {rank} at {message['label']!r}. All ranks "
                "must make the same calls in the same order."
            )
            raise RankError(msg)
    return [message.get("value") for message in messages]


def _failure(messages: list[dict[str, Any]]) -> RankError:
    """Returns the error of the first rank that failed."""
    rank, text = next(
        (rank, message["error"])
        for rank, message in enumerate(messages)
        if "error" in message
    )
    return RankError(f"Rank {rank} failed, and so all ranks did. {text}")
