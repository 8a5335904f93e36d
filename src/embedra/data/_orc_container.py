"""ORC files as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.orc

from ._containers import FAULTS, Container, slices
from ._errors import DataError
from ._files import SourceFile


class OrcContainer(Container):
    """An ORC file, in stripes."""

    unit_word = "stripe"

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        try:
            with file.open() as stream:
                orc = pa.orc.ORCFile(stream)
                schema = orc.schema
                # One column is enough to count rows by.
                first = schema.names[:1]
                stripes = range(orc.nstripes)
                rows = [orc.read_stripe(i, first).num_rows for i in stripes]
        except FAULTS as error:
            msg = f"{file.label}: not an ORC file, or damaged: {error}"
            raise DataError(msg) from error
        super().__init__(file.label, schema, rows, file.partitions)

    def read(
        self, units: Sequence[int], names: Sequence[str], chunk_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Streams some columns of stripes; see `Container`."""
        with self._file.open() as stream:
            orc = pa.orc.ORCFile(stream)
            for unit in units:
                batch = orc.read_stripe(unit, list(names))
                yield from slices(batch, chunk_rows)
