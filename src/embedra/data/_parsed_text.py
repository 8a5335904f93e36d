"""Columns of text read as columns of other types, row by row where need be."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ._normalize import RowFault


def parse_columns(
    batch: pa.RecordBatch, types: Mapping[str, pa.DataType]
) -> tuple[pa.RecordBatch, list[RowFault]]:
    """Reads columns of bytes as the types that they should have.

    Args:
        batch: Columns of bytes; nulls stay.
        types: The types of some of them.

    Returns:
        The rows of which all values are of these types, and a fault for each
        other row.
    """
    bad = np.zeros(batch.num_rows, np.bool_)
    faults: list[RowFault] = []
    arrays = []
    for name, kind in types.items():
        text = batch.column(name)
        wrong = _wrong(text, kind)
        for row in wrong:
            if not bad[row]:
                value = text[row].as_py().decode(errors="replace")
                reason = f"column {name!r} holds {value!r}, expected {kind}"
                faults.append(RowFault(row, reason))
        bad[wrong] = True
        if wrong:
            mask = np.zeros(len(text), np.bool_)
            mask[wrong] = True
            text = pc.if_else(pa.array(mask), pa.scalar(None, text.type), text)
        arrays.append(_read(text, kind))
    parsed = pa.RecordBatch.from_arrays(arrays, list(types))
    if faults:
        parsed = parsed.filter(pa.array(~bad))
    return parsed, sorted(faults)


def _wrong(text: pa.Array, kind: pa.DataType) -> list[int]:
    """Places of values that cannot be read; halved until each is found."""
    try:
        _read(text, kind)
    except pa.ArrowInvalid:
        if len(text) == 1:
            return [0]
        half = len(text) // 2
        second = _wrong(text.slice(half), kind)
        return [
            *_wrong(text.slice(0, half), kind),
            *(half + place for place in second),
        ]
    return []


def _read(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of a type.

    Raises:
        pyarrow.ArrowInvalid: If there is one that is none.
    """
    if pa.types.is_binary(kind):
        return text
    if pa.types.is_null(kind):
        if text.null_count < len(text):
            msg = "expected no value"
            raise pa.ArrowInvalid(msg)
        return pa.nulls(len(text))
    words = text.cast(pa.string())
    if pa.types.is_string(kind):
        return words
    # As the parser of text does.
    return pc.utf8_trim_whitespace(words).cast(kind)
