"""State of tables that ranks hold together, written and read."""

import pickle
import sys
from pathlib import Path

import pytest
import state_of_tables as shared
import tensorflow as tf

from embedra import Table
from embedra.checkpoint import CheckpointFolder
from embedra.distribute import RankError, communicator, one_writer
from embedra.table import save_to_store


comm = communicator()


def write(folder):
    tables = shared.filled(comm)
    check_failures(tables, folder)
    with one_writer(folder / "model") as path:
        tf.train.Checkpoint(**tables).write(path)
    stores = {name: {} for name in tables}
    for name, table in tables.items():
        save_to_store(table, stores[name])
    with one_writer(folder / "stores") as path:
        Path(path).write_bytes(pickle.dumps(stores))
    shared.write_graph(folder)
    check_folder(tables, folder / "kept")
    # Others wrote nothing there, and rank 0 is done.
    names = {path.name.split(".")[0] for path in folder.iterdir()}
    assert names == {"model", "stores", "graph", "files", "kept"}, names


def check_folder(tables, directory):
    kept = CheckpointFolder(directory, keep_max=1)
    for _ in range(2):
        newest = kept.save(tf.train.Checkpoint(**tables))
    with pytest.raises(RankError, match="'uneven'"):
        kept.save(uneven())
    assert kept.paths == [newest] == CheckpointFolder(directory).paths
    assert Path(newest).name == "ckpt-2"
    names = {path.name.split(".")[0] for path in directory.iterdir()}
    assert names == {"checkpoint", "ckpt-2"}, names
    tables = shared.empty(comm)
    tf.train.Checkpoint(**tables).restore(newest).assert_consumed()
    shared.check(tables, comm)


def check_failures(tables, folder):
    """What fails on one rank fails on all, and leaves nothing."""
    checkpoint = tf.train.Checkpoint(**tables)
    with pytest.raises(RankError, match="to the same place.*one_writer"):
        checkpoint.write(str(folder / "same"))
    with pytest.raises(RankError, match="Rank 1 .*OSError: the disk is full"):
        write_or_fail(checkpoint, folder, failing=1)
    with pytest.raises(RankError, match="'uneven'.*seed=0 on rank 0, 1 on"):
        write_or_fail(uneven(), folder)
    comm.barrier(label="failures")
    assert not list(folder.iterdir())


def uneven():
    table = Table(2, name="uneven", seed=comm.rank, communicator=comm)
    return tf.train.Checkpoint(table=table)


def write_or_fail(checkpoint, folder, failing=None):
    with one_writer(folder / "failed") as path:
        if comm.rank == failing:
            msg = "the disk is full"
            raise OSError(msg)
        checkpoint.write(path)


def read(*folders):
    for folder in folders:
        tables = shared.empty(comm)
        shared.read(tables, folder)
        shared.check(tables, comm)
        tables = shared.empty(comm)
        shared.read_stores(tables, folder)
        shared.check(tables, comm)
        for size_in in (shared.size_in_graph, shared.size_in_files):
            size = size_in(folder, comm)
            total = int(comm.all_reduce(size))
            assert size < total == len(shared.GRAPH_KEYS), (size, total)


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](*map(Path, sys.argv[2:]))
    comm.barrier(label="end")
    print(f"rank {comm.rank} passed", flush=True)
