"""How wrappers of tf_keras optimizers are told apart, and saved."""

import sys
from typing import Any

from ._substitution import Substitution, wrap
from ._support import UnsupportedOptimizerError


_CONFIG = "optimizer"


class TfKerasWrapper(Substitution):
    """What the wrappers of tf_keras optimizers have in common.

    They are saved as their optimizer's config.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "tf_keras" in sys.modules:
            register_in_tf_keras(cls)

    def get_config(self) -> dict[str, Any]:
        """Returns the config of the optimizer inside."""
        return {_CONFIG: tf_keras().saving.serialize_keras_object(self.plain())}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> Any:
        """Rebuilds an optimizer from `get_config`.

        Args:
            config: What `get_config` gave.
            custom_objects: Classes by name.

        Returns:
            The wrapped optimizer.
        """
        optimizer = tf_keras().saving.deserialize_keras_object(
            config[_CONFIG], custom_objects=custom_objects
        )
        for wrapper in TfKerasWrapper.__subclasses__():
            if wrapper.suits(optimizer):
                return wrap(optimizer, wrapper)
        msg = f"{optimizer!r} is no optimizer of tf_keras."
        raise TypeError(msg)

    @classmethod
    def suits(cls, optimizer: Any) -> bool:
        """Returns whether this is the wrapper for an optimizer.

        Args:
            optimizer: Any optimizer.
        """
        raise NotImplementedError


def register_in_tf_keras(wrapper: type = TfKerasWrapper) -> None:
    """Has tf_keras find wrapped optimizers in the files it loads.

    Args:
        wrapper: The class it is to find. All are saved under one name, as
            `from_config` is the same.
    """
    tf_keras().saving.register_keras_serializable(
        package="embedra", name="DynamicEmbeddingOptimizer"
    )(wrapper)


def tf_keras() -> Any:
    """Returns tf_keras, which is there wherever one of its optimizers is.

    Embedra itself never imports it.
    """
    return sys.modules["tf_keras"]


def check_wrappable(optimizer: Any) -> None:
    """Raises for optimizers that hand over to another one.

    Args:
        optimizer: Any optimizer.

    Raises:
        UnsupportedOptimizerError: It says what to wrap instead.
    """
    if "tf_keras" not in sys.modules:
        return
    if isinstance(optimizer, tf_keras().mixed_precision.LossScaleOptimizer):
        msg = (
            "Wrap the optimizer inside of LossScaleOptimizer: "
            "LossScaleOptimizer(DynamicEmbeddingOptimizer(optimizer))."
        )
        raise UnsupportedOptimizerError(msg)
