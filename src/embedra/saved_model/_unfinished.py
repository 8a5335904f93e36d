"""What exports leave behind that are killed, and who may remove it."""

import contextlib
import hashlib
import os
import re
import socket
import uuid

import tensorflow as tf


_NAMES = re.compile(
    r"\.(?P<name>.+)\.(?P<place>[0-9a-f]{8})\.(?P<process>\d+)\.[0-9a-f]{8}"
    r"\.tmp(?P<old>\.old\d+)?/?"
)


def temporary_name(name: str) -> str:
    """Returns a name for a folder while it is being filled by this process.

    Args:
        name: Of the folder when it is complete.
    """
    unique = uuid.uuid4().hex[:8]
    return f".{name}.{_place()}.{os.getpid()}.{unique}.tmp"


def remove_unfinished(parent: str) -> None:
    """Removes what processes left in a folder that are gone.

    A model that such a process had moved away, to put its own in the place, is
    put back if there is none. What processes left that ran elsewhere, of which
    nothing is known here, stays.

    Args:
        parent: The folder.
    """
    if not tf.io.gfile.isdir(parent):
        return
    for entry in tf.io.gfile.listdir(parent):
        found = _NAMES.fullmatch(entry)
        if found is None or not _is_gone(found["place"], int(found["process"])):
            continue
        path = os.path.join(parent, entry.rstrip("/"))
        target = os.path.join(parent, found["name"])
        # Others may do the same, and what cannot be removed does no harm.
        with contextlib.suppress(tf.errors.OpError):
            if found["old"] and not tf.io.gfile.exists(target):
                tf.io.gfile.rename(path, target)
            else:
                tf.io.gfile.rmtree(path)


def _place() -> str:
    """Says where numbers of processes mean what they do here."""
    try:
        # Containers number processes on their own.
        numbering = os.readlink("/proc/self/ns/pid")
    except OSError:
        numbering = ""
    text = f"{socket.gethostname()} {numbering}"
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def _is_gone(place: str, process: int) -> bool:
    """Whether a process ran here, and does not any more."""
    if place != _place():
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False
    return False
