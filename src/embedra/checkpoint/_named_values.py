"""NamedValues: what a checkpoint of `tf.compat.v1.train.Saver` holds."""

import re
from collections import defaultdict
from typing import Any

import numpy as np

from embedra import table as table_lib

from ._saved_tables import SavedTable, SavedTables


_PART = re.compile(r"(.+)/part_(\d+)")
# What a training keeps beside variables and what optimizers keep for them.
_OF_TRAINING = re.compile(
    r"(training/.*|(.*/)?(global_step|iterations|iter|learning_rate|decay"
    r"|beta[12]_power(_\d+)?))"
)


class NamedValues:
    """Dense variables and tables by name, with parts put together.

    A variable that was split over `<name>/part_0`, `<name>/part_1` and so on
    has the name `<name>`; so has a table.

    Args:
        saved: The checkpoint.

    Attributes:
        tables: The tables by name.
    """

    def __init__(self, saved: SavedTables) -> None:
        self._saved = saved
        self.tables: dict[str, SavedTable] = {}
        # For each dense variable the tensors of its parts.
        self._dense: dict[str, list[str]] = {}
        for name, parts in _joined(saved.tables).items():
            chunks = [c for part in parts for c in saved.tables[part].chunks]
            header = saved.tables[parts[0]].header
            self.tables[name] = SavedTable(header, chunks)
        tensors = {
            name
            for name, shape in saved.shapes.items()
            if 0 not in shape and not _within(name, saved.tables)
        }
        self._dense = _joined(tensors)

    def names(self) -> set[str]:
        """Returns the names of all that a model may have a place for.

        Steps of the training and slots of its optimizer are left out.
        """
        return set(self.tables) | {
            name
            for name in self._dense
            if not _OF_TRAINING.fullmatch(name)
            # As "dense/kernel/Adam" beside "dense/kernel".
            and not _within(name, self._dense)
        }

    def find(self, names: list[str], kind: str) -> str | None:
        """Returns the first of some names that there is.

        Args:
            names: Names of a variable or table.
            kind: "variable" or "table".
        """
        known: Any = self._dense if kind == "variable" else self.tables
        return next((name for name in names if name in known), None)

    def shape(self, name: str, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the shape of a dense variable.

        Args:
            name: Its name.
            wanted: The shape that it shall have. Parts are put together along
                the axis that gives it, if one does, or the first.
        """
        return self._join(name, wanted)[0]

    def value(self, name: str, wanted: tuple[int, ...]) -> Any:
        """Reads a dense variable.

        Args:
            name: Its name.
            wanted: Its shape.
        """
        axis = self._join(name, wanted)[1]
        parts = self._saved.read(self._dense[name])
        if len(parts) == 1:
            return parts[0].numpy()
        return np.concatenate([part.numpy() for part in parts], axis)

    def chunks(self, name: str) -> Any:
        """Reads the records of a table.

        Args:
            name: Its name.

        Yields:
            Chunks.
        """
        for chunk in self.tables[name].chunks:
            columns = self._saved.read(list(chunk.values()))
            yield table_lib.Records(*columns)

    def _join(
        self, name: str, wanted: tuple[int, ...]
    ) -> tuple[tuple[int, ...], int]:
        """Returns the shape of parts put together, and along which axis."""
        parts = [tuple(self._saved.shapes[p]) for p in self._dense[name]]
        joined = []
        for axis in range(len(parts[0])):
            length = sum(part[axis] for part in parts)
            first = parts[0]
            joined.append(((*first[:axis], length, *first[axis + 1 :]), axis))
        for shape, axis in joined:
            if shape == wanted and _differ_only_in(axis, parts):
                return shape, axis
        return joined[0] if len(parts) > 1 else (parts[0], 0)


def _joined(names: Any) -> dict[str, list[str]]:
    """Maps each name, without the number of a part, to those of its parts."""
    numbered: dict[str, dict[int, str]] = defaultdict(dict)
    joined: dict[str, list[str]] = {}
    for name in names:
        found = _PART.fullmatch(name)
        if found is None:
            joined[name] = [name]
        else:
            numbered[found[1]][int(found[2])] = name
    for name, parts in numbered.items():
        if name in joined or sorted(parts) != list(range(len(parts))):
            # Not what a partitioner made.
            joined |= {part: [part] for part in parts.values()}
        else:
            joined[name] = [parts[i] for i in range(len(parts))]
    return joined


def _within(name: str, others: Any) -> bool:
    """Whether a name is another one with something after it."""
    parts = name.split("/")
    return any("/".join(parts[:i]) in others for i in range(1, len(parts)))


def _differ_only_in(axis: int, shapes: list[tuple[int, ...]]) -> bool:
    rest = {shape[:axis] + shape[axis + 1 :] for shape in shapes}
    return len(rest) == 1
