"""The one door to TensorFlow's registry of checkpoint savers.

`tensorflow.python.saved_model.registration` is not public, but it is the only
way to write a resource as many shards of one checkpoint, with no tensor as
large as the table. Its own documentation describes the protocol used here.
"""

from collections.abc import Callable
from typing import Any

from tensorflow.python.saved_model import (  # noqa: TID251
    registration,
)


_PACKAGE = "embedra"

Restore = Callable[[dict[str, Any], Any], None]

_RESTORES: dict[str, tuple[type, Restore]] = {}


def register_saved_class(cls: type) -> None:
    """Has SavedModels rebuild objects of a class.

    Args:
        cls: A trackable class, with `_serialize_to_proto` and
            `_deserialize_from_proto`.
    """
    registration.register_serializable(package=_PACKAGE)(cls)


def register_saver(
    cls: type,
    save: Callable[[dict[str, Any], Any], list[Any]],
    restore: Callable[[dict[str, Any], Any], None],
) -> None:
    """Has checkpoints save and restore objects of a class.

    Args:
        cls: A trackable class.
        save: Given trackables by unique name and a file prefix, writes
            checkpoints by `SaveV2` and returns their prefixes.
        restore: Given trackables by name and the prefix of the merged
            checkpoint, restores them.
    """
    _RESTORES[f"{_PACKAGE}.{cls.__name__}"] = (cls, restore)

    def save_fn(trackables: dict[str, Any], file_prefix: Any) -> list[Any]:
        return save(trackables, file_prefix)

    def restore_fn(trackables: dict[str, Any], merged_prefix: Any) -> None:
        restore(trackables, merged_prefix)

    registration.register_checkpoint_saver(
        package=_PACKAGE,
        name=cls.__name__,
        predicate=lambda trackable: isinstance(trackable, cls),
        save_fn=save_fn,
        restore_fn=restore_fn,
    )


def restore_of(saver: str, trackable: Any) -> Restore | None:
    """Returns what restores an object from checkpoints.

    Args:
        saver: Name of the saver that wrote the object's state; "" for any.
        trackable: The object.

    Returns:
        The function given to `register_saver`, or None if the object is not of
        the class that the saver was registered for.
    """
    for name, (cls, restore) in _RESTORES.items():
        if saver in ("", name) and isinstance(trackable, cls):
            return restore
    return None
