"""ModelMode: whether lookups train, for the whole process."""

import enum

from embedra import scopes


class ModelMode(enum.Enum):
    """What lookups are for.

    Attributes:
        TRAIN: Lookups of trainable variables create absent keys.
        INFERENCE: Lookups only read.
    """

    TRAIN = "train"
    INFERENCE = "inference"


_mode = ModelMode.TRAIN


def enable_train_mode() -> None:
    """Has lookups create absent keys from now on; the mode at start.

    A function that is already traced keeps the mode that it was traced in.
    """
    _set(ModelMode.TRAIN)


def enable_inference_mode() -> None:
    """Has lookups only read from now on.

    A function that is already traced keeps the mode that it was traced in.
    """
    _set(ModelMode.INFERENCE)


def get_model_mode() -> ModelMode:
    """Returns the mode.

    Within `embedra.scope(mode="eval")`, or "infer", it is INFERENCE.

    Example:
        >>> get_model_mode()
        <ModelMode.TRAIN: 'train'>
    """
    if scopes.current_options().mode != "train":
        return ModelMode.INFERENCE
    return _mode


def _set(mode: ModelMode) -> None:
    global _mode
    _mode = mode
