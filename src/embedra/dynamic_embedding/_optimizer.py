"""DynamicEmbeddingOptimizer, with the arguments that TFRA gives it."""

from typing import Any

from embedra import optimizers


def DynamicEmbeddingOptimizer(  # noqa: N802
    self: Any, bp_v2: bool = False, synchronous: bool = False, **kwargs: Any
) -> Any:
    """Makes an optimizer that knows of tables.

    Args:
        self: An optimizer of Keras, tf_keras or `tf.compat.v1.train`.
        bp_v2: Accepted. Updates of rows are always atomic, which is what it
            asks for.
        synchronous: Accepted. Updates of a process are always synchronous.
        **kwargs: Accepted, for TFRA's settings of Horovod.

    Returns:
        See `embedra.DynamicEmbeddingOptimizer`.
    """
    del bp_v2, synchronous, kwargs
    return optimizers.DynamicEmbeddingOptimizer(self)
