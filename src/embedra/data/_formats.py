"""The layouts of files that the reader knows by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ._columns import Columns


Kind = Literal["text", "parquet"]


@dataclass(frozen=True)
class FileFormat:
    """How rows are laid out in a file.

    Attributes:
        name: The name used on the command line and in messages.
        kind: Delimited text, or Parquet.
        delimiter: Text between two values of a row.
        quoted: Whether values may stand in double quotes.
        names: Names of the columns of a file without a header line; empty
            where the first line names them.
        optional_header: Whether a first line equal to `names` is a header.
        columns: What the columns are; `None` where the user has to say.
        hour: Name of a `YYMMDDHH` column, from which `hour_of_day` and
            `day_of_week` are derived; empty for none.
    """

    name: str
    kind: Kind = "text"
    delimiter: str = ","
    quoted: bool = False
    names: tuple[str, ...] = ()
    optional_header: bool = False
    columns: Columns | None = None
    hour: str = ""


def _criteo() -> FileFormat:
    integers = tuple(f"I{i}" for i in range(1, 14))
    categories = tuple(f"C{i}" for i in range(1, 27))
    return FileFormat(
        "criteo",
        delimiter="\t",
        names=("label", *integers, *categories),
        columns=Columns("label", integers, categories),
    )


def _avazu() -> FileFormat:
    categories = (
        "C1",
        "banner_pos",
        *(f"site_{part}" for part in ("id", "domain", "category")),
        *(f"app_{part}" for part in ("id", "domain", "category")),
        *(f"device_{p}" for p in ("id", "ip", "model", "type", "conn_type")),
        *(f"C{i}" for i in range(14, 22)),
    )
    return FileFormat(
        "avazu",
        names=("id", "click", "hour", *categories),
        optional_header=True,
        columns=Columns(
            "click",
            categorical=("hour_of_day", "day_of_week", *categories),
        ),
        hour="hour",
    )


FORMATS: dict[str, FileFormat] = {
    "criteo": _criteo(),
    "avazu": _avazu(),
    "csv": FileFormat("csv", quoted=True),
    "parquet": FileFormat("parquet", kind="parquet"),
}


def file_format(name: str) -> FileFormat:
    """Looks up a layout by name.

    `criteo` is the Criteo display-advertising log: tab-separated, no header,
    a label, 13 integers and 26 categorical values, any of which may be empty.
    `avazu` is the Avazu click log: comma-separated with 24 columns; a header
    line is recognised and not needed; the row id is dropped and `hour` turned
    into the hour of the day and the day of the week. `csv` has a header line.

    Args:
        name: One of `criteo`, `avazu`, `csv`, `parquet`.

    Raises:
        ValueError: If no layout has that name.

    Example:
        >>> file_format("avazu").columns.label
        'click'
    """
    if name not in FORMATS:
        msg = f"Unknown format {name!r}. Known: {', '.join(FORMATS)}."
        raise ValueError(msg)
    return FORMATS[name]
