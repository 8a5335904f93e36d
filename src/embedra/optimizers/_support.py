"""What an optimizer can and cannot do with tables."""

from typing import Any

import keras


# Their step on an element depends on others in a way that the touched rows
# alone cannot give, or their state does not start as a constant.
_NOT_ELEMENTWISE = (
    keras.optimizers.Adafactor,
    keras.optimizers.Muon,
    keras.optimizers.ScheduleFreeAdamW,
)

_REMEDY = (
    "Use SGD, Adagrad, embedra.optimizers.RowwiseAdagrad, Adam, AdamW, Ftrl, "
    "RMSprop, or another elementwise optimizer, or give the table its own with "
    "embedra.layers.Embedding(..., optimizer=...)."
)


class UnsupportedOptimizerError(ValueError):
    """An optimizer, or one of its settings, does not work with tables."""

    # By this autograph knows that it may raise it anew with a longer message;
    # in functions it would be another error otherwise.
    __init__: Any = Exception.__init__


def check_supported(
    optimizer: keras.optimizers.Optimizer, table_name: str
) -> None:
    """Raises if an optimizer cannot update a table.

    Args:
        optimizer: The optimizer that is about to.
        table_name: Of the table.

    Raises:
        UnsupportedOptimizerError: It says what to use instead.
    """
    name = type(optimizer).__name__
    if isinstance(optimizer, _NOT_ELEMENTWISE):
        why = "its step is not made row by row."
        raise unsupported_state(optimizer, table_name, why)
    if optimizer.use_ema:
        raise unsupported_average(name, table_name)
    if getattr(optimizer, "handles_tables", False):
        return
    for setting in ("gradient_accumulation_steps", "global_clipnorm"):
        if getattr(optimizer, setting):
            value = getattr(optimizer, setting)
            msg = (
                f"Optimizer {name} has {setting}={value}, which spans "
                f"table {table_name!r} and the dense weights. Pass "
                "embedra.DynamicEmbeddingOptimizer(optimizer) to `compile` "
                "instead of the optimizer itself."
            )
            raise UnsupportedOptimizerError(msg)


def unsupported_state(
    optimizer: keras.optimizers.Optimizer, table_name: str, why: Any
) -> UnsupportedOptimizerError:
    """Returns an error for an optimizer whose state does not fit rows.

    Args:
        optimizer: The optimizer.
        table_name: Of the table.
        why: What does not fit.

    Returns:
        The error, to be raised.
    """
    error: UnsupportedOptimizerError = UnsupportedOptimizerError(
        f"Optimizer {type(optimizer).__name__} cannot update table "
        f"{table_name!r}: {why} {_REMEDY}"
    )
    return error


def unsupported_average(
    name: str, table_name: str
) -> UnsupportedOptimizerError:
    """Returns an error for an optimizer that averages over its steps.

    Args:
        name: Of the optimizer's class.
        table_name: Of the table.

    Returns:
        The error, to be raised.
    """
    error: UnsupportedOptimizerError = UnsupportedOptimizerError(
        f"Optimizer {name} has use_ema=True, which table {table_name!r} "
        "cannot follow: an average of all rows would have to move at every "
        "step. Set use_ema=False."
    )
    return error
