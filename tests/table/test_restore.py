"""A restore that fails leaves the table as it was."""

import numpy as np
import pytest
import tensorflow as tf

from embedra import Table
from embedra.table import load_from_store, save_to_store


def _table(rows: int, value: float, seed: int = 1) -> Table:
    table = Table(3, name="items", seed=seed)
    if rows:
        table.assign(np.arange(rows), np.full((rows, 3), value, "float32"))
    return table


def _contents(table: Table):
    size = int(table.size())
    return size, table.seed, table.lookup(np.arange(12)).numpy().tolist()


def _drop(store, name):
    del store[name]


def _widen(store, name):
    store[name] = np.zeros((10, 7), store[name].dtype)


def _as_float(store, name):
    store[name] = store[name].astype("float32")


def _count_below_zero(store, _):
    store["chunks"] = np.int64(-1)


DAMAGES = [
    (_drop, "keys_000000"),
    (_drop, "rows_000000"),
    (_drop, "slots_000000"),
    (_drop, "pending_keys"),
    (_drop, "chunks"),
    (_widen, "rows_000000"),
    (_widen, "slots_000000"),
    (_widen, "pending_gradients"),
    (_as_float, "keys_000000"),
    (_count_below_zero, "chunks"),
]


@pytest.mark.parametrize(("damage", "name"), DAMAGES)
@pytest.mark.parametrize("rows", [0, 5])
def test_a_damaged_store_changes_nothing(damage, name, rows):
    store: dict = {}
    save_to_store(_table(10, 1.0, seed=2), store)
    damage(store, name)
    table = _table(rows, 2.0)
    before = _contents(table)
    with pytest.raises((ValueError, KeyError)):
        load_from_store(table, store)
    assert _contents(table) == before


@pytest.mark.parametrize("rows", [0, 5])
def test_a_damaged_checkpoint_changes_nothing(tmp_path, rows):
    checkpoint = tf.train.Checkpoint(table=_table(10, 1.0, seed=2))
    prefix = checkpoint.write(str(tmp_path / "state"))
    shards = tmp_path.glob("state.data-*")
    largest = max(shards, key=lambda path: path.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 0xFF
    largest.write_bytes(content)
    table = _table(rows, 2.0)
    before = _contents(table)
    with pytest.raises((tf.errors.DataLossError, ValueError)):
        tf.train.Checkpoint(table=table).read(prefix)
    assert _contents(table) == before
