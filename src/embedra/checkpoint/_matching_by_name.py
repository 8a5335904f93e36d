"""Which variables and tables of a checkpoint have the names of which here."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ._leaves import is_table, name_of
from ._saved_objects import Pair, SavedObjects
from ._variable_names import own_name


_SEVERAL = "several are called so, of which none can be told to be the one"


def match_by_name(
    saved: SavedObjects,
    names: Mapping[int, str],
    missed: Sequence[Any],
    target: Any,
) -> tuple[list[Pair], dict[str, str]]:
    """Finds the states of variables and tables by their names.

    Args:
        saved: The checkpoint.
        names: What is still free there: the names, by number.
        missed: Leaves that have no state yet.
        target: The object that they are of, whose name may come before theirs.

    Returns:
        What was found, and by name why not, where a name is not unique.
    """
    states: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for node, name in names.items():
        states[name, saved.saver(node) is not None].append(node)
    wanting: dict[tuple[str, bool], list[Any]] = defaultdict(list)
    for leaf in missed:
        name = own_name(name_of(leaf), target)
        wanting[name, is_table(leaf)].append(leaf)
    pairs: list[Pair] = []
    reasons: dict[str, str] = {}
    for key, leaves in wanting.items():
        nodes = states.get(key, [])
        if len(nodes) == len(leaves) == 1:
            pairs.append(Pair(nodes[0], leaves[0]))
        elif nodes:
            reasons |= {name_of(leaf): _SEVERAL for leaf in leaves}
    return pairs, reasons
