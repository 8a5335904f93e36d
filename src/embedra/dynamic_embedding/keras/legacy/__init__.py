"""The same for models of tf_keras (Keras 2), imported when asked for."""

import importlib
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    if name in ("callbacks", "layers"):
        return importlib.import_module(f"{__name__}.{name}")
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
