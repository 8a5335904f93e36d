"""What is read from a set of files: fields, with all that was left open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import pyarrow as pa
import tensorflow as tf

from ._arrow_types import (
    Shape,
    TypeMismatchError,
    arrow_type,
    check_readable,
    check_times,
    take_apart,
    tensor_dtype,
    widest,
)
from ._containers import Container
from ._errors import DataError
from ._field import Field


@dataclass(frozen=True)
class Column:
    """A field with nothing left open.

    Attributes:
        field: What the user asked for.
        value: Plain Arrow type of the values.
        levels: Levels of lists in the tensor; 0 for scalars and dense ones.
        shape: Shape of a row of a dense tensor; empty for a scalar.
    """

    field: Field
    value: pa.DataType
    levels: int
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.field.name

    @property
    def size(self) -> int:
        """Values of a row of a dense tensor."""
        return prod(self.shape)

    @property
    def kind(self) -> pa.DataType:
        """Arrow type of the column as it is handed on."""
        if self.shape:
            return pa.list_(self.value, self.size)
        kind = self.value
        for _ in range(self.levels):
            kind = pa.list_(kind)
        return kind

    @property
    def filler(self) -> Any:
        """What stands in for a missing value: the default, or zero."""
        if self.field.default is not None:
            return self.field.default
        if pa.types.is_boolean(self.value):
            return False
        return b"" if pa.types.is_binary(self.value) else 0

    @property
    def dtype(self) -> tf.DType:
        """Type of the tensor."""
        return tensor_dtype(self.value)

    def settled(self) -> Field:
        """The field, with what was left open filled in."""
        rank = None if self.shape else self.levels
        return replace(
            self.field,
            dtype=self.dtype,
            ragged_rank=rank,
            shape=self.shape or None,
        )

    @property
    def mask_name(self) -> str:
        """Name of the tensor that tells nulls; empty for none."""
        return f"{self.name}_present" if self.field.mask else ""


def resolve(
    containers: Sequence[Container], fields: Sequence[Field | str] | None
) -> list[Column]:
    """Settles what the fields leave open by what the files have.

    Args:
        containers: The files.
        fields: What to read; default: all columns that the first has.

    Returns:
        The columns, in the order of the fields.

    Raises:
        DataError: If a column is missing or of an unfit type; the message
            names file and column.
    """
    if fields is None:
        fields = [*containers[0].schema.names, *containers[0].partitions]
    chosen = [Field(f) if isinstance(f, str) else f for f in fields]
    if not chosen:
        msg = "No column is asked for. Expected one or more, or fields=None."
        raise DataError(msg)
    names = [field.name for field in chosen]
    names += [f"{field.name}_present" for field in chosen if field.mask]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = (
            f"More than one column or mask is named "
            f"{', '.join(map(repr, twice))}. Expected each name once."
        )
        raise DataError(msg)
    partitions = partition_types(containers)
    return [_column(field, containers, partitions) for field in chosen]


def partition_types(
    containers: Sequence[Container],
) -> dict[str, pa.DataType]:
    """Types of the columns that folders stand for: int64 or text."""
    values: dict[str, set[str]] = {}
    for container in containers:
        for name, value in container.partitions.items():
            values.setdefault(name, set()).update([value] if value else [])
    return {
        name: pa.int64() if all(map(_is_integer, found)) else pa.string()
        for name, found in values.items()
    }


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isdecimal() and digits.isascii() and len(digits) < 19


def _column(
    field: Field,
    containers: Sequence[Container],
    partitions: Mapping[str, pa.DataType],
) -> Column:
    found = _found(field, containers, partitions)
    shapes = []
    for label, kind in found:
        try:
            shapes.append(take_apart(kind))
        except TypeMismatchError as error:
            msg = f"{label}: column {field.name!r} {error}"
            raise DataError(msg) from error
    if not shapes:
        if field.dtype is None:
            msg = (
                f"No file has a column {field.name!r}. Give its Field a dtype "
                "to read its default instead."
            )
            raise DataError(msg)
        shapes = [Shape(arrow_type(field.dtype), ())]
    value = _value(field, found, shapes)
    levels, shape = _layout(field, found, shapes)
    column = Column(field, value, levels, shape)
    _check_default(column)
    return column


def _check_default(column: Column) -> None:
    default = column.field.default
    if default is None:
        return
    try:
        held = pa.scalar(default, column.value).as_py()
        fits = not pa.types.is_integer(column.value) or held == default
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        fits = False
    if not fits:
        msg = (
            f"Field {column.name!r}: default={default!r} is no value of type "
            f"{column.dtype.name}, in which the column is read. Expected one "
            "that is, or a dtype that holds it."
        )
        raise DataError(msg)


def _found(
    field: Field,
    containers: Sequence[Container],
    partitions: Mapping[str, pa.DataType],
) -> list[tuple[str, pa.DataType]]:
    """Labels of the files that have a column, with its types."""
    found = []
    for container in containers:
        at = container.schema.get_all_field_indices(field.name)
        if len(at) > 1:
            msg = (
                f"{container.label}: {len(at)} columns are named "
                f"{field.name!r}. Expected each name once."
            )
            raise DataError(msg)
        if at:
            found.append((container.label, container.schema.field(at[0]).type))
        elif field.name in container.partitions:
            found.append((container.label, partitions[field.name]))
        elif field.default is None:
            msg = (
                f"{container.label}: no column {field.name!r}. The file has: "
                f"{', '.join(container.schema.names)}. Give the Field a "
                "default to read files without it."
            )
            raise DataError(msg)
    return found


def _value(
    field: Field, found: list[tuple[str, pa.DataType]], shapes: list[Shape]
) -> pa.DataType:
    label = found[0][0] if found else ""
    try:
        check_times(shapes)
        if field.dtype is None:
            value = widest([shape.value for shape in shapes])
            if pa.types.is_null(value):
                msg = "holds nulls only; give its Field a dtype"
                raise TypeMismatchError(msg)
            return value
        value = arrow_type(field.dtype)
        for number, shape in enumerate(shapes):
            label = found[number][0] if found else ""
            check_readable(shape.value, value)
    except TypeMismatchError as error:
        open_type = field.dtype is None
        label = _odd_one(found, shapes, open_type=open_type) or label
        msg = f"{label}: column {field.name!r} {error}."
        raise DataError(msg) from error
    return value


def _odd_one(
    found: list[tuple[str, pa.DataType]],
    shapes: list[Shape],
    *,
    open_type: bool,
) -> str:
    """The file at which the types stop to agree; empty if they do."""
    for count in range(1, len(shapes) + 1):
        try:
            check_times(shapes[:count])
            if open_type:
                widest([shape.value for shape in shapes[:count]])
        except TypeMismatchError:
            return found[count - 1][0]
    return ""


def _layout(
    field: Field, found: list[tuple[str, pa.DataType]], shapes: list[Shape]
) -> tuple[int, tuple[int, ...]]:
    """Levels of lists and dense shape of the tensor."""
    sizes = shapes[0].sizes
    if field.shape is not None:
        levels, shape = 0, tuple(field.shape)
    elif field.ragged_rank is not None:
        levels, shape = field.ragged_rank, ()
    elif sizes and None not in sizes:
        levels, shape = 0, tuple(size or 0 for size in sizes)
    else:
        levels, shape = len(sizes), ()
    for (label, kind), one in zip(found, shapes, strict=False):
        depth = len(one.sizes)
        fits = depth == levels if not shape else 1 <= depth <= len(shape)
        if not fits or (depth > 1 and field.length != "exact"):
            asked = (
                f"rows of shape {list(shape)}"
                if shape
                else f"{levels} levels of lists"
            )
            msg = (
                f"{label}: column {field.name!r} has type {kind}, which does "
                f"not give {asked}."
            )
            raise DataError(msg)
    return levels, shape
