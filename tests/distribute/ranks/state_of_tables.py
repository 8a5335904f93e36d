"""Tables with all that a state has, held by any number of ranks."""

import pickle
import types

import numpy as np
import tensorflow as tf

from embedra import Table, dynamic_embedding as de
from embedra.distribute import one_writer, owned
from embedra.table import (
    Records,
    Slot,
    TableGroup,
    group_pending,
    header_of,
    load_from_store,
    replace_state,
)


DTYPES = {"user": "float32", "item": "bfloat16", "empty": "float32"}
SLOTS = (Slot("momentum", 2, 0.0), Slot("count", 1, 0.5))
STEPS = {"user": 7, "item": 3, "empty": 0}
SCALARS = {"beta_power": 0.25}
FIRST_OF_TWO = types.SimpleNamespace(rank=0, size=2)


def empty(comm):
    return {
        name: Table(2, name=name, dtype=dtype, seed=5, communicator=comm)
        for name, dtype in DTYPES.items()
    }


def filled(comm):
    """Tables of which each rank has what it owns; of "item", rank 0 has all."""
    tables = empty(comm)
    for name, table in tables.items():
        keys = keys_of(name)
        if STEPS[name] and len(own(keys, comm)):
            header = header_of(table).__class__(
                **{
                    **vars(header_of(table)),
                    "slots": SLOTS,
                    "step": STEPS[name],
                    "scalars": SCALARS,
                }
            )
            replace_state(
                TableGroup([table]),
                header,
                lambda name=name, keys=keys: iter([records_of(name, keys)]),
                pending_of(name),
            )
    return tables


def keys_of(name):
    counts = {"user": 70_000, "item": 40, "empty": 0}
    generator = np.random.default_rng(1)
    keys = generator.integers(-(2**62), 2**62, counts[name])
    return own(keys, FIRST_OF_TWO) if name == "item" else keys


def records_of(name, keys):
    unsigned = keys.view(np.uint64)
    numbers = (unsigned % np.uint64(1000)).astype(np.float32)
    return Records(
        keys,
        tf.cast(np.stack([numbers, -numbers], 1), DTYPES[name]).numpy(),
        np.stack([numbers + 1, numbers + 2, numbers + 3], 1) / 7,
        (unsigned % np.uint64(5)).astype(np.int64),
        (unsigned % np.uint64(3)).astype(np.int64),
    )


def pending_of(name):
    keys = keys_of(name)[:9:2]
    return keys, np.stack([np.arange(len(keys)), keys % 4], 1).astype("float32")


def own(keys, comm):
    return keys[owned(keys, comm).numpy()]


def read(tables, folder):
    checkpoint = tf.train.Checkpoint(**tables)
    checkpoint.read(str(folder / "model")).assert_consumed()


def read_stores(tables, folder):
    for name, store in pickle.loads((folder / "stores").read_bytes()).items():
        load_from_store(tables[name], store)


GRAPH_KEYS = list(range(100))


def _in_graph():
    variable = de.get_variable("graph", dim=2, initializer=0.5)
    rows = [[key, -key] for key in GRAPH_KEYS]
    return variable, variable.upsert(GRAPH_KEYS, tf.constant(rows, tf.float32))


def write_graph(folder):
    """Saves a variable as TF1 programs do."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        _, fill = _in_graph()
        saver = tf.compat.v1.train.Saver()
        session.run(fill)
        with one_writer(folder / "graph") as path:
            saver.save(
                session,
                path,
                write_meta_graph=False,
                latest_filename="graph.latest",
            )
    _filled_variable().save_to_file_system(str(folder / "files"))


def _filled_variable():
    variable = de.Variable(dim=2, name="files", initializer=0.5)
    rows = [[key, -key] for key in GRAPH_KEYS]
    variable.upsert(GRAPH_KEYS, tf.constant(rows, tf.float32))
    return variable


def size_in_files(folder, comm):
    """Loads a variable from its files; returns its size."""
    variable = de.Variable(dim=2, name="files", initializer=0.5)
    # One process asks for the files of all ranks.
    variable.load_from_file_system(
        str(folder / "files"), load_entire_dir=comm is None
    )
    keys = own(np.array(GRAPH_KEYS), comm)
    np.testing.assert_array_equal(
        variable.tables[0].lookup(keys), np.stack([keys, -keys], 1)
    )
    return int(variable.tables[0].size())


def size_in_graph(folder, comm):
    """Restores that variable, and looks up some rows; returns its size."""
    keys = np.array([3, 70, 71, 10**6])
    here = owned(keys, comm).numpy() & (keys < len(GRAPH_KEYS))
    expected = np.where(here[:, None], np.stack([keys, -keys], 1), 0.5)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variable, _ = _in_graph()
        found = variable.tables[0].lookup(keys)
        tf.compat.v1.train.Saver().restore(session, str(folder / "graph"))
        np.testing.assert_array_equal(session.run(found), expected)
        return int(session.run(variable.tables[0].size()))


def check(tables, comm):
    """Asserts that tables hold what `filled` gives, less what others own."""
    for name, table in tables.items():
        keys = np.sort(own(keys_of(name), comm))
        chunks = list(table.export_chunks())
        if chunks:
            found = Records(
                *(
                    np.concatenate(column)
                    for column in zip(*chunks, strict=True)
                )
            )
            order = np.argsort(found.keys)
            for column, expected in zip(
                found, records_of(name, keys), strict=True
            ):
                np.testing.assert_array_equal(column[order], expected)
        assert table.size() == len(keys), (name, table.size())
        if STEPS[name]:
            assert table.slots == SLOTS
            assert table.scalars.values() == SCALARS
        assert table.step == STEPS[name]
        _check_pending(table, name, comm)


def _check_pending(table, name, comm):
    keys, gradients = pending_of(name)
    kept = owned(keys, comm).numpy()
    found = group_pending(TableGroup([table]))
    order, expected_order = np.argsort(found[0]), np.argsort(keys[kept])
    expected = keys[kept], gradients[kept]
    for part, values in zip(found, expected, strict=True):
        np.testing.assert_array_equal(part[order], values[expected_order])
