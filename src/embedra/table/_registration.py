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


def register(
    cls: type,
    save: Callable[[dict[str, Any], Any], list[Any]],
    restore: Callable[[dict[str, Any], Any], None],
) -> None:
    """Registers a trackable class with checkpoints and SavedModels.

    Args:
        cls: The class. SavedModels rebuild it by its `_serialize_to_proto` and
            `_deserialize_from_proto`.
        save: Given trackables by unique name and a file prefix, writes
            checkpoints by `SaveV2` and returns their prefixes.
        restore: Given trackables by name and the prefix of the merged
            checkpoint, restores them.
    """

    def save_fn(trackables: dict[str, Any], file_prefix: Any) -> list[Any]:
        return save(trackables, file_prefix)

    def restore_fn(trackables: dict[str, Any], merged_prefix: Any) -> None:
        restore(trackables, merged_prefix)

    registration.register_serializable(package=_PACKAGE)(cls)
    registration.register_checkpoint_saver(
        package=_PACKAGE,
        name=cls.__name__,
        predicate=lambda trackable: isinstance(trackable, cls),
        save_fn=save_fn,
        restore_fn=restore_fn,
    )
