"""The layers for models of tf_keras (Keras 2), imported when asked for."""

import importlib
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name == "layers":
        return importlib.import_module(f"{__name__}.layers")
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
