"""Leaves: what holds values in a model, its variables and tables."""

from typing import Any

import keras
import tensorflow as tf

from embedra import table as table_lib
from embedra.optimizers import TableVariable


# Why a leaf is skipped.
ABSENT = "it is not in the checkpoint"


def leaves(target: Any) -> list[Any]:
    """Lists what holds values: variables, tables.

    Args:
        target: An object, as a model.
    """
    return [
        found
        for found in tf.train.TrackableView(target).descendants()
        if (
            isinstance(found, tf.Variable | keras.Variable)
            # They stand for tables, and hold nothing.
            and not isinstance(found, TableVariable)
        )
        or is_table(found)
    ]


def is_table(leaf: Any) -> bool:
    """Whether a leaf is a table, or several that are saved as one.

    Args:
        leaf: One of `leaves`.
    """
    return table_lib.restore_of("", leaf) is not None


def reached(target: Any, names: tuple[str, ...]) -> set[int]:
    """Returns the ids of all objects that only some attributes lead to.

    Args:
        target: An object.
        names: Of its attributes.
    """
    view = tf.train.TrackableView(target)
    children = view.children(target)
    left_alone: set[int] = set()
    for name in names:
        if name in children:
            inside = tf.train.TrackableView(children[name]).descendants()
            left_alone.update(id(found) for found in inside)
    own = {
        id(found)
        for name, child in children.items()
        if name not in names
        for found in tf.train.TrackableView(child).descendants()
    }
    return left_alone - own


def name_of(leaf: Any) -> str:
    """Returns the name of a leaf.

    Args:
        leaf: One of `leaves`.
    """
    name = getattr(leaf, "path", None) or getattr(leaf, "name", None)
    return str(name or type(leaf).__name__).removesuffix(":0")


def is_within(name: str, scope: str | None, target: Any) -> bool:
    """Whether a name begins with a scope, with or without the target's name.

    Args:
        name: A name.
        scope: The scope; None for all.
        target: The object whose name may come first.
    """
    if scope is None:
        return True
    scope = scope.rstrip("/")
    name = name.removeprefix(f"{getattr(target, 'name', '')}/")
    own = scope.removeprefix(f"{getattr(target, 'name', '')}/")
    return name == own or name.startswith(f"{own}/")


def other_shape(wanted: tuple[int, ...], found: tuple[int, ...]) -> str:
    """Says that a variable has another shape than its saved value.

    Args:
        wanted: The variable's.
        found: That of the value.
    """
    return f"it has shape {wanted}, and {found} in the checkpoint"


def group_of(leaf: Any) -> table_lib.TableGroup:
    """Returns the tables of a leaf that is one.

    Args:
        leaf: A table, or several that are saved as one.
    """
    group = getattr(leaf, "group", None)
    return table_lib.TableGroup([leaf]) if group is None else group


def table_problem(leaf: Any, header: table_lib.TableHeader, prefix: str) -> str:
    """Says why a table cannot take a state; "" if it can.

    Args:
        leaf: The table.
        header: Header of the state.
        prefix: Prefix of the checkpoint.
    """
    try:
        source = f"checkpoint {prefix}"
        table_lib.check_fits(group_of(leaf).first, header, source)
    except ValueError as error:
        return str(error)
    return ""


def assign(variable: Any, value: Any) -> None:
    """Gives a variable a value, also while a function is traced.

    Args:
        variable: Of TensorFlow or Keras.
        value: Of any dtype that its own can hold.
    """
    # A keras.Variable would only note the value while Keras looks at shapes.
    inner = variable if isinstance(variable, tf.Variable) else variable.value
    with tf.init_scope():
        inner.assign(tf.cast(value, inner.dtype))
