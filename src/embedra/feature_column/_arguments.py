"""Checks of the arguments of functions that make columns."""

from collections.abc import Sequence
from typing import Any

from embedra import table as table_lib

from ._categorical import open_column
from ._embedding_column import DynamicEmbeddingColumn
from ._tf_columns import is_categorical


_COMBINERS = ("mean", "sqrtn", "sum")


def is_dynamic(columns: Sequence[Any], dynamic: bool | None) -> bool:
    """Returns whether rows of columns are in a table that grows.

    Args:
        columns: Columns of ids.
        dynamic: As it was asked for.

    Raises:
        TypeError: If one of the columns is none of ids.
        ValueError: If ids without a vocabulary are not to be in a table.
    """
    for column in columns:
        check_categorical(column)
    is_open = [open_column(column) is not None for column in columns]
    if dynamic is False and any(is_open):
        msg = (
            f"Ids of column {columns[is_open.index(True)].name!r} have no "
            "vocabulary, so that their rows are in a table that grows. Leave "
            "out dynamic=False."
        )
        raise ValueError(msg)
    return any(is_open) if dynamic is None else dynamic


def checked(column: DynamicEmbeddingColumn) -> DynamicEmbeddingColumn:
    """Returns a column, or raises ValueError if its arguments make no sense.

    Args:
        column: The column.
    """
    owner = f"column {column.name!r}"
    dim: Any = column.dimension
    if not isinstance(dim, int) or isinstance(dim, bool) or dim < 1:
        msg = (
            f"`dimension` of {owner} must be an integer from 1 on. Received: "
            f"{dim!r}."
        )
        raise ValueError(msg)
    if column.combiner not in _COMBINERS:
        msg = (
            f"`combiner` of {owner} must be one of {_COMBINERS}. Received: "
            f"{column.combiner!r}."
        )
        raise ValueError(msg)
    if column.max_norm is not None and not column.max_norm > 0:
        msg = (
            f"`max_norm` of {owner} must be positive. Received: "
            f"{column.max_norm!r}."
        )
        raise ValueError(msg)
    if column.initializer is not None:
        table_lib.resolve_initializer(column.initializer, dim)
    return column


def check_categorical(column: Any) -> None:
    """Raises TypeError unless this is a column of ids.

    Args:
        column: What was given.
    """
    if is_categorical(column):
        return
    msg = (
        "Needs a column of ids, as categorical_column_with_embedding makes "
        f"one. Received: {column!r}."
    )
    raise TypeError(msg)


def check_names(columns: Sequence[Any], owner: str) -> None:
    """Raises ValueError if there are no columns, or two have one name.

    Args:
        columns: The columns.
        owner: What they were given to.
    """
    if not columns:
        msg = f"{owner} needs feature columns. Received: none."
        raise ValueError(msg)
    names: set[str] = set()
    for column in columns:
        if column.name in names:
            msg = (
                f"{owner} was given two columns named {column.name!r}. Leave "
                "one out, or give its feature another name."
            )
            raise ValueError(msg)
        names.add(column.name)


def check_no_checkpoint(
    column: Any, path: str | None, tensor: str | None
) -> None:
    """Raises NotImplementedError if rows are to come from a checkpoint.

    Args:
        column: The column of ids.
        path: Path of the checkpoint, or None.
        tensor: Name of the tensor, or None.
    """
    if path is None and tensor is None:
        return
    msg = (
        f"Rows of column {column.name!r} are in a table, which "
        "ckpt_to_load_from cannot fill. Use "
        f"embedra.dynamic_embedding.warm_start({path!r})."
    )
    raise NotImplementedError(msg)


def check_alike(columns: Sequence[Any]) -> None:
    """Raises ValueError unless ids of columns can be keys of one table.

    Args:
        columns: Columns of ids.
    """
    first, *others = [(open_column(column), column) for column in columns]
    for ids, column in others:
        if (ids is None) == (first[0] is None) and (
            ids is None
            or first[0] is None
            or (ids.dtype, ids.ev_option)
            == (first[0].dtype, first[0].ev_option)
        ):
            continue
        msg = (
            "Columns that share a table must have the same dtype and "
            f"ev_option. Received: {first[1]!r} and {column!r}."
        )
        raise ValueError(msg)
