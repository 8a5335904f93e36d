"""What a layer keeps in files, and whether it fits."""

import re
from typing import Any

import numpy as np


def checked_default(default: Any, dim: int, name: str) -> str | list[float]:
    """Returns `inference_default` in a form that JSON holds.

    Args:
        default: "initializer", "zeros" or a row.
        dim: Width of a row.
        name: Of the layer.

    Returns:
        The same; a row as a list.

    Raises:
        ValueError: If it is none of these.
    """
    if isinstance(default, str) and default in ("initializer", "zeros"):
        return default
    is_row = np.ndim(default) == 1
    row = list(default) if is_row else []
    if len(row) != dim:
        msg = (
            f"`inference_default` of layer {name!r} must be 'initializer', "
            f"'zeros' or a row of width {dim}. Received: {default!r}"
        )
        raise ValueError(msg)
    return [float(value) for value in row]


def check_same_name(layer: Any, saved: str) -> None:
    """Raises if a state belongs to a layer that was given another name.

    Keras finds states by their place in the model. Names that it made up itself
    differ from process to process, and are let pass.

    Args:
        layer: The layer that is to take the state.
        saved: Name of the layer that was saved.

    Raises:
        ValueError: If both were given names, and they differ.
    """
    if saved == layer.name:
        return
    if any(_is_automatic(name, type(layer)) for name in (saved, layer.name)):
        return
    msg = (
        f"The file has the state of layer {saved!r} where the model has layer "
        f"{layer.name!r}. Nothing was restored into it: give the layers of "
        "both models the same names and order."
    )
    raise ValueError(msg)


def _is_automatic(name: str, cls: type) -> bool:
    """Whether a name is one that Keras makes up for a class."""
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
    return re.fullmatch(rf"{snake}(_\d+)?", name) is not None
