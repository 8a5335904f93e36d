"""Tables that several variables have in common."""

import itertools
import threading
from typing import Any
from weakref import WeakValueDictionary

import tensorflow as tf

from embedra import table as table_lib
from embedra.distribute import Communicator, table_communicator


# By graph (None when executing eagerly), shared name and number of the device,
# for as long as a variable holds them.
_SHARED: WeakValueDictionary[Any, table_lib.Table] = WeakValueDictionary()

_MAKING = threading.RLock()

# Collection of the names that variables of a TF1 graph have.
_NAMES = ("embedra", "dynamic_embedding_names")


def current_graph() -> Any:
    """Returns the TF1 graph that objects are made in, None if eagerly."""
    with tf.init_scope():
        if tf.executing_eagerly():
            return None
        return tf.compat.v1.get_default_graph()


def unique_name(name: str) -> str:
    """Returns a name that no other variable of a TF1 graph has.

    Args:
        name: The name to start from.

    Returns:
        The name itself when executing eagerly.
    """
    graph = current_graph()
    if graph is None:
        return name
    taken = graph.get_collection_ref(_NAMES)
    names = (f"{name}_{i}" for i in itertools.count(1))
    unique = next(n for n in itertools.chain([name], names) if n not in taken)
    taken.append(unique)
    return unique


def shared_tables(variable: Any, graph_name: str) -> list[table_lib.Table]:
    """Returns the tables of a new variable.

    Args:
        variable: The variable, with its arguments set.
        graph_name: A name that it has alone in a TF1 graph.

    Returns:
        Those of a variable of its `shared_name`, or new ones.

    Raises:
        ValueError: If those have another width, dtype or number of devices.
    """
    if variable.shared_name is None:
        return _new_tables(variable, graph_name)
    # Of several threads one makes them.
    with _MAKING:
        return _found_or_made(variable, graph_name)


def _found_or_made(variable: Any, graph_name: str) -> list[table_lib.Table]:
    graph = current_graph()
    keys = [
        (graph and id(graph), variable.shared_name, i)
        for i in range(len(variable.devices))
    ]
    if keys[0] not in _SHARED:
        tables = _new_tables(variable, graph_name)
        _SHARED.update(zip(keys, tables, strict=True))
        return tables
    _check_same(variable, _SHARED[keys[0]])
    beyond = (*keys[0][:2], len(keys))
    if keys[-1] not in _SHARED or beyond in _SHARED:
        msg = (
            f"{_described(variable)} asks for {len(keys)} devices, but the "
            "variable of that shared_name has another number of them. Use the "
            "same `devices`, or another shared_name."
        )
        raise ValueError(msg)
    return [_SHARED[key] for key in keys]


def _new_tables(variable: Any, graph_name: str) -> list[table_lib.Table]:
    given = variable.arguments
    kind = variable.kv_creator
    options: dict[str, Any] = {} if kind is None else kind.table_options()
    capacity = max(given["init_size"], options.pop("initial_capacity", 0))
    ranks = _ranks_of(variable)
    parts = len(variable.devices) if ranks is None else ranks.size
    bounds = _shared_out(
        variable,
        options.pop("max_capacity", 0),
        f"{parts} {'devices' if ranks is None else 'ranks'}",
        parts,
    )
    if ranks is not None:
        bounds = [bounds[ranks.rank]]
    tables: list[table_lib.Table] = []
    for i, device in enumerate(variable.devices):
        tables.append(
            table_lib.Table(
                given["dim"],
                name=variable.name,
                initializer=variable.initializer,
                key_dtype=given["key_dtype"],
                dtype=given["value_dtype"],
                # A row starts the same on whichever device.
                seed=tables[0].seed if tables else None,
                initial_capacity=capacity // parts,
                device=device,
                shared_name=f"{variable.shared_name or graph_name}/{i}",
                max_capacity=bounds[i],
                communicator=ranks,
                **options,
            )
        )
    return tables


def _ranks_of(variable: Any) -> Communicator | None:
    """Returns the communicator of the ranks that hold a variable together."""
    ranks = table_communicator()
    if ranks is not None and len(variable.devices) > 1:
        msg = (
            f"{_described(variable)} has {len(variable.devices)} devices in a "
            f"job of {ranks.size} ranks, over which its ids are split already. "
            "Leave out `devices`, or make it in embedra.scope(sharding=False)."
        )
        raise ValueError(msg)
    return ranks


def _shared_out(variable: Any, bound: int, parts: str, count: int) -> list[int]:
    """Returns the bound of each part's table; 0 means none."""
    if 0 < bound < count:
        msg = (
            f"{_described(variable)} has {parts}, each of which holds an id at "
            f"least. Received: max_capacity={bound}."
        )
        raise ValueError(msg)
    return [bound // count + (i < bound % count) for i in range(count)]


def _check_same(variable: Any, table: table_lib.Table) -> None:
    given = variable.arguments
    differing = [
        f"{name}={given[argument]!r} here, {getattr(table, field)!r} there"
        for name, argument, field in (
            ("dim", "dim", "dim"),
            ("key_dtype", "key_dtype", "key_dtype"),
            ("value_dtype", "value_dtype", "dtype"),
        )
        if given[argument] != getattr(table, field)
    ]
    if differing:
        msg = (
            f"{_described(variable)} differs from variable {table.name!r} of "
            f"that shared_name: {'; '.join(differing)}."
        )
        raise ValueError(msg)


def _described(variable: Any) -> str:
    return f"Variable {variable.name!r} (shared_name={variable.shared_name!r})"
