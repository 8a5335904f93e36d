"""From Arrow columns to numbers, ids and labels."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ._block import Block
from ._columns import Columns
from ._errors import DataError
from ._raw import Fault, RawRows
from ._string_ids import string_ids


FloatArray = npt.NDArray[np.float64]
IdArray = npt.NDArray[np.int64]
Faults = list[Fault]


def decode(
    raw: RawRows, columns: Columns, hour: str = ""
) -> tuple[Block, Faults]:
    """Decodes a run of rows and sets the malformed ones aside.

    A missing number (empty text, null, or NaN) becomes NaN. A missing
    category (empty text or null) becomes the id of the empty string.

    Args:
        raw: The rows; must hold all `columns`.
        columns: What to decode.
        hour: Name of the `YYMMDDHH` column that `hour_of_day` and
            `day_of_week` come from; empty for none.

    Returns:
        The usable rows, and one fault for each row left out.

    Raises:
        DataError: If the type of a column cannot be read as asked.
    """
    faults: Faults = list(raw.faults)
    usable = np.ones(raw.count, np.bool_)

    def reject(bad: npt.NDArray[np.bool_], name: str, expected: str) -> None:
        for position in np.flatnonzero(bad & usable).tolist():
            value = _shown(raw.columns[name][position])
            reason = f"column {name!r} is {value}, expected {expected}"
            faults.append(Fault(raw.line_of(position), reason))
        usable[bad] = False

    labels, bad = _numbers(raw.columns[columns.label], columns.label)
    reject(bad | ~np.isin(labels, (0.0, 1.0)), columns.label, "0 or 1")
    numeric = np.empty((raw.count, len(columns.numeric)), np.float32)
    for i, name in enumerate(columns.numeric):
        numeric[:, i], bad = _numbers(raw.columns[name], name)
        reject(bad, name, "a finite number or nothing")
    derived: Mapping[str, IdArray] = {}
    if hour:
        derived, bad = _calendar(raw.columns[hour])
        reject(bad, hour, "an hour as YYMMDDHH")
    ids = np.empty((raw.count, len(columns.categorical)), np.int64)
    for i, name in enumerate(columns.categorical):
        ids[:, i] = (
            derived[name] if name in derived else _ids(raw.columns[name], name)
        )
    block = Block(numeric, ids, labels.astype(np.float32))
    return (block if usable.all() else block.take(np.flatnonzero(usable))), (
        sorted(faults)
    )


def _shown(value: pa.Scalar) -> str:
    shown = value.as_py()
    if isinstance(shown, bytes):
        shown = shown.decode(errors="replace")
    return "empty" if shown in ("", None) else repr(shown)[:40]


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


def _numbers(
    values: pa.Array, name: str
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """Numbers, NaN where missing, and which values are no numbers."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    missing = np.asarray(values.is_null())
    if _is_text(values.type):
        values = values.cast(pa.binary())
        empty = pc.equal(values, b"").fill_null(True)
        missing = np.asarray(empty)
        values = pc.if_else(empty, pa.scalar(None, pa.binary()), values)
    try:
        numbers = np.asarray(values.cast(pa.float64()), np.float64)
    except pa.ArrowInvalid:
        numbers = np.array([_number(v) for v in values.to_pylist()])
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        msg = f"Column {name!r} of type {values.type} holds no numbers."
        raise DataError(msg) from error
    # Infinity, or beyond the range of float32.
    bad = np.abs(numbers) > np.finfo(np.float32).max
    numbers = np.where(missing | bad, np.nan, numbers)
    return numbers, bad


def _number(value: bytes | None) -> float:
    """The number a text stands for; infinity where it is none."""
    try:
        return float(value) if value else np.nan
    except ValueError:
        return np.inf


def _ids(values: pa.Array, name: str) -> IdArray:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    missing = string_ids([b""])[0]
    if _is_text(values.type):
        # Hash each different value of the run once.
        encoded = values.cast(pa.large_binary()).dictionary_encode()
        hashed = string_ids(encoded.dictionary.to_pylist())
        positions = encoded.indices.fill_null(len(hashed))
        ids: IdArray = np.append(hashed, missing)[np.asarray(positions)]
        return ids
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if not pa.types.is_integer(values.type):
        msg = (
            f"Categorical column {name!r} has type {values.type}. Expected "
            "integers or strings; name it among the numeric columns, or "
            "convert it."
        )
        raise DataError(msg)
    present = np.asarray(values.fill_null(0))
    # uint64 keeps its bits, as it does in a table.
    ids = present.astype(np.int64)
    return np.where(np.asarray(values.is_null()), missing, ids)


def _calendar(
    hours: pa.Array,
) -> tuple[dict[str, IdArray], npt.NDArray[np.bool_]]:
    """Ids of the hour of the day (00-23) and day of the week (1 = Monday)."""
    encoded = hours.dictionary_encode()
    times = [_time(value) for value in encoded.dictionary.to_pylist()]
    positions = np.asarray(encoded.indices)
    bad = np.array([time is None for time in times], np.bool_)
    shown = [("", "") if t is None else (f"{t:%H}", f"{t:%u}") for t in times]
    parts = {
        "hour_of_day": string_ids([hour for hour, _ in shown])[positions],
        "day_of_week": string_ids([day for _, day in shown])[positions],
    }
    return parts, bad[positions]


def _time(value: bytes) -> datetime | None:
    if len(value) != len("YYMMDDHH"):
        return None
    try:
        return datetime.strptime(value.decode("ascii"), "%y%m%d%H")
    except ValueError:
        return None
