"""The tables of a model, and lines that show them."""

from collections.abc import Iterator
from typing import Any

from embedra.optimizers import TableVariable


def tables_of(model: Any) -> list[Any]:
    """Lists the tables of a model, each once.

    Args:
        model: A Keras model.

    Returns:
        The tables, in the order of its variables.
    """
    tables = {
        id(table): table
        for variable in model.variables
        if isinstance(variable, TableVariable)
        for table in variable.tables
    }
    return list(tables.values())


def named_tables(model: Any) -> dict[str, Any]:
    """Names the tables of a model.

    Args:
        model: A Keras model.

    Returns:
        The tables by name; of those of one name, later ones get a number.
    """
    found: dict[str, Any] = {}
    for table in tables_of(model):
        name, number = table.name, 1
        while name in found:
            name, number = f"{table.name}_{number}", number + 1
        found[name] = table
    return found


def table_lines(model: Any) -> Iterator[str]:
    """Describes the tables of a model, of split ones the part of this rank.

    Args:
        model: A Keras model.

    Yields:
        Lines, which tell the rank; none if there are no tables.
    """
    rows = [("Table", "Rows", "Width", "Bytes")]
    total = 0
    ranks = None
    for table in tables_of(model):
        if table.communicator is not None:
            ranks = table.communicator
        size, count = int(table.size()), int(table.statistics().bytes)
        total += count
        rows.append((table.name, f"{size:,}", str(table.dim), f"{count:,}"))
    if len(rows) == 1:
        return
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    # It may be that only one rank asks, so the others are not asked.
    where = f" on rank {ranks.rank} of {ranks.size}" if ranks else ""
    yield f" Tables{where} (their rows are in no variable above):"
    for name, *numbers in rows:
        cells = [name.ljust(widths[0])]
        cells += [n.rjust(w) for n, w in zip(numbers, widths[1:], strict=True)]
        yield "  " + "  ".join(cells)
    yield f" Total bytes of tables{where}: {total:,}"
