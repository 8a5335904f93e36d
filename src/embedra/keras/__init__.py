"""Keras models with checkpoints, clipping, and tables in their summary."""

import importlib as _importlib
from typing import Any as _Any

from embedra.checkpoint import (
    LoadReport as LoadReport,
    MismatchError as MismatchError,
)

from . import callbacks as callbacks
from ._convert import convert as convert
from ._methods import ModelMethods as ModelMethods
from ._model import Model as Model
from ._wraps import named_as as named_as, wraps as wraps


def __getattr__(name: str) -> _Any:
    # Imported when it is asked for: feature columns bring in much.
    if name == "layers":
        return _importlib.import_module(f"{__name__}.layers")
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg, name=name)
