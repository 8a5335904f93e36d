"""Which Keras optimizer is calling.

Keras hands a variable whose `overwrite_with_gradient` is true its gradient by
`variable.assign(gradient)`, and does not say who calls. The optimizer is needed
to make the step, so it is read from the Python call stack: the nearest frame
whose `self` is a Keras optimizer. This holds for Keras 3.15, is tested, and
where it fails an error names the explicit ways.
"""

import sys

import keras


# Keras calls directly; autograph may put a few frames of its own between.
_MAX_FRAMES = 12


def calling_optimizer() -> keras.optimizers.Optimizer | None:
    """Finds the optimizer that calls the caller of this function.

    Returns:
        The optimizer of the nearest frame that has one, or None.
    """
    frame = sys._getframe(1).f_back
    for _ in range(_MAX_FRAMES):
        if frame is None:
            return None
        owner = frame.f_locals.get("self")
        if isinstance(owner, keras.optimizers.Optimizer):
            return owner
        frame = frame.f_back
    return None
