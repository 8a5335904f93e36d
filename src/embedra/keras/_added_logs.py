"""Which logs callbacks add to those of a training's steps."""

from typing import Any

import keras

from ._table_progress import TABLE_ROWS, TableProgress


_RATES = (
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ReduceLROnPlateau,
)
_OURS, _KERAS = __name__.split(".", maxsplit=1)[0], "keras"


def callbacks_of(given: Any) -> list[Any]:
    """Lists callbacks.

    Args:
        given: What `fit` was given as `callbacks`.

    Raises:
        TypeError: If one is none.
    """
    if isinstance(given, keras.callbacks.CallbackList):
        given = given.callbacks
    callbacks = [one for one in keras.tree.flatten(given) if one is not None]
    for one in callbacks:
        if not hasattr(one, "set_model"):
            msg = (
                "`callbacks` must be keras.callbacks.Callback, or a list of "
                f"them. Received: {one!r}."
            )
            raise TypeError(msg)
    return callbacks


def added_logs(given: Any) -> frozenset[str] | None:
    """Returns what logs callbacks may add.

    Args:
        given: What `fit` was given as `callbacks`.

    Returns:
        Their names; None if they may be any, as there is a callback that is
        neither one of Keras nor of Embedra, calls functions, or adds what
        depends on the tables.
    """
    callbacks = callbacks_of(given)
    if any(map(_may_add_any, callbacks)):
        return None
    return frozenset(name for one in callbacks for name in _names(one))


def _may_add_any(callback: Any) -> bool:
    if isinstance(callback, TableProgress):
        return callback.each
    package = type(callback).__module__.split(".", maxsplit=1)[0]
    return package not in (_OURS, _KERAS) or isinstance(
        callback, keras.callbacks.LambdaCallback
    )


def _names(callback: Any) -> list[str]:
    if isinstance(callback, TableProgress):
        return [TABLE_ROWS]
    return ["learning_rate"] if isinstance(callback, _RATES) else []
