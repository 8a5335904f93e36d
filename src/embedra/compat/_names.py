"""Modules that have all names of another one, and some of their own."""

import importlib
from collections.abc import Callable, Collection
from typing import Any


def names_of(
    module: str, ours: Collection[str], theirs: Any
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Makes the `__getattr__` and the `__dir__` of a module.

    Nothing is copied: a name is looked up in the other module when it is asked
    for, so that what that module loads late is loaded late here too.

    Args:
        module: Name of the module that gets them.
        ours: Names of modules in it, which come first. They are imported when
            asked for.
        theirs: The module that has all other names.

    Returns:
        `__getattr__` and `__dir__`.
    """

    def get(name: str) -> Any:
        if name == "__all__":
            return [one for one in names() if not one.startswith("_")]
        if name in ours:
            return importlib.import_module(f"{module}.{name}")
        try:
            return getattr(theirs, name)
        except AttributeError:
            msg = (
                f"module {module!r} has no attribute {name!r}, and neither "
                "has the module of TensorFlow of which it has the names"
            )
            raise AttributeError(msg, name=name) from None

    def names() -> list[str]:
        own = importlib.import_module(module).__dict__
        return sorted({*dir(theirs), *ours, *own})

    return get, names
