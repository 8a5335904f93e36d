"""State of tables that ranks hold together: any number reads what any wrote."""

import pickle

import numpy as np
import pytest
import tensorflow as tf

from distribute.launching import (
    check_passed,
    needs_mpi,
    run_ranks,
    written_by_two_ranks,
)
from distribute.ranks import state_of_tables
from embedra.checkpoint import SavedTables
from embedra.table import save_to_store


pytestmark = [pytest.mark.distributed, needs_mpi]


written_by_two = written_by_two_ranks("state.py", "write")


def test_one_process_reads_what_two_ranks_wrote(written_by_two):
    for read in (state_of_tables.read, state_of_tables.read_stores):
        tables = state_of_tables.empty(None)
        read(tables, written_by_two)
        state_of_tables.check(tables, None)
    for size_in in (
        state_of_tables.size_in_graph,
        state_of_tables.size_in_files,
    ):
        size = size_in(written_by_two, None)
        assert size == len(state_of_tables.GRAPH_KEYS)


def test_two_ranks_read_what_two_and_one_wrote(written_by_two, tmp_path):
    tables = state_of_tables.filled(None)
    tf.train.Checkpoint(**tables).write(str(tmp_path / "model"))
    stores = {name: {} for name in tables}
    for name, table in tables.items():
        save_to_store(table, stores[name])
    (tmp_path / "stores").write_bytes(pickle.dumps(stores))
    state_of_tables.write_graph(tmp_path)
    result = run_ranks(2, "state.py", "read", written_by_two, tmp_path)
    check_passed(result, 2)


@pytest.mark.more_ranks
def test_three_ranks_read_what_two_wrote(written_by_two):
    check_passed(run_ranks(3, "state.py", "read", written_by_two), 3)


def test_what_ranks_wrote_is_described_as_what_one_process_writes(
    written_by_two,
):
    saved = SavedTables(str(written_by_two / "model"))
    assert set(saved.tables) == {"user", "item", "empty"}
    user = saved.tables["user"]
    counts = [saved.shapes[chunk["keys"]][0] for chunk in user.chunks]
    assert sum(counts) == len(state_of_tables.keys_of("user"))
    assert user.header.slots == state_of_tables.SLOTS
    (name,) = (n for n in saved.shapes if n.endswith("user/pending_keys"))
    reader = tf.train.load_checkpoint(saved.path)
    np.testing.assert_array_equal(
        np.sort(reader.get_tensor(name)),
        np.sort(state_of_tables.pending_of("user")[0]),
    )
