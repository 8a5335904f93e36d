"""What ranks that hold tables together say of them, as of whole tables."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from embedra.distribute import Communicator, gather_values

from ._group import TableGroup
from ._planned_export import chunk_count
from ._records import Slot
from ._state import TableHeader, group_header, group_pending


# What may differ between ranks: a part that was not trained yet lacks slots.
_OF_RANK = ("slots", "step", "scalars")


class JointState(NamedTuple):
    """A table that ranks hold together, less its records.

    Attributes:
        header: Describes the whole.
        chunks: For each rank how many chunks of records each of its tables
            has.
        pending_counts: How many accumulated gradients each rank has.
        pending: Keys and gradients of this rank's.
    """

    header: TableHeader
    chunks: list[list[int]]
    pending_counts: list[int]
    pending: tuple[Any, Any]


def joint_states(
    groups: Mapping[str, TableGroup],
    communicator: Communicator | None,
    chunk_size: int,
) -> dict[str, JointState]:
    """Describes tables that ranks hold together; all must take part.

    The tables are given the slots that they have on any rank.

    Args:
        groups: Groups by a path that is the same on all ranks.
        communicator: Of the ranks.
        chunk_size: Records in a chunk.

    Returns:
        For each path what all ranks know.

    Raises:
        ValueError: If ranks save other tables, or tables that are not parts of
            one.
    """
    pending = {path: group_pending(group) for path, group in groups.items()}
    own = {
        path: {
            "header": group_header(group).to_json(),
            "chunks": [chunk_count(t, chunk_size) for t in group.tables],
            "pending": len(pending[path][0]),
        }
        for path, group in groups.items()
    }
    told = gather_values(communicator, own, label="tables to save")
    _check_same_paths([list(one) for one in told])
    states = {}
    for path, group in groups.items():
        parts = [one[path] for one in told]
        header = _joined([TableHeader.from_json(p["header"]) for p in parts])
        for table in group.tables:
            if table.slots != header.slots:
                table.set_slots(header.slots)
        states[path] = JointState(
            header,
            [part["chunks"] for part in parts],
            [part["pending"] for part in parts],
            pending[path],
        )
    return states


def _check_same_paths(paths: list[list[str]]) -> None:
    for rank, found in enumerate(paths):
        if found != paths[0]:
            msg = (
                "All ranks must save the same tables. Rank 0 saves "
                f"{paths[0]}, rank {rank} saves {found}."
            )
            raise ValueError(msg)


def _joined(headers: list[TableHeader]) -> TableHeader:
    """Returns the header of the whole."""
    first = headers[0]
    for rank, header in enumerate(headers):
        for field in dataclasses.fields(TableHeader):
            mine, its = (getattr(h, field.name) for h in (first, header))
            if field.name not in _OF_RANK and mine != its:
                msg = (
                    f"The parts of table {first.name!r} do not fit together: "
                    f"{field.name}={mine!r} on rank 0, {its!r} on rank "
                    f"{rank}. Make the table with the same arguments on all "
                    "ranks."
                )
                raise ValueError(msg)
    return dataclasses.replace(
        first,
        slots=_united(header.slots for header in headers),
        step=max(header.step for header in headers),
        scalars={
            name: value
            for header in reversed(headers)
            for name, value in header.scalars.items()
        },
    )


def _united(layouts: Iterable[tuple[Slot, ...]]) -> tuple[Slot, ...]:
    slots = {slot.name: slot for layout in layouts for slot in layout}
    return tuple(slots.values())
