"""What finds a key's record: the same in NumPy, in graphs and in the core."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings, strategies as st

from embedra import _ops
from embedra.saved_model._slots import other_keys, slots_of, stock_slots_of
from embedra.saved_model._stock_table import StockTable
from embedra.saved_model._storage import pack, record_words, store, unpack
from embedra.saved_model._table_files import write_table
from embedra.table import Table


LOW, HIGH = -(2**63), 2**63 - 1
KEYS = st.integers(LOW, HIGH) | st.sampled_from(
    [0, 1, -1, LOW, LOW + 1, LOW + 2, HIGH, HIGH - 1]
)


class Variables:
    """Takes the parts of a checkpoint as the variables that they restore."""

    def __init__(self):
        self.content = {}

    def write(self, tensors, _=None):
        for path, tensor in tensors.items():
            name = path.split("/")[1]
            self.content.setdefault(name, []).append(np.array(tensor))


def filled(table):
    """A stand-in of a table, with what an export writes."""
    stock = StockTable([table], None)
    variables = Variables()
    write_table(stock, "table", variables)
    for name, parts in variables.content.items():
        getattr(stock, name).assign(np.concatenate(parts))
    return stock


def colliding(count):
    """Keys that are all in one bucket with the multipliers tried first."""
    first = _ops.perfect_hash(tf.constant([1], tf.int64)).parameters
    inverses = [
        np.uint64(pow(int(odd) % 2**64, -1, 2**64)) for odd in first[:2]
    ]
    products = np.random.default_rng(5).integers(
        0, 2**44, count, dtype=np.uint64
    )
    mixed = products * inverses[1]
    mixed ^= mixed >> np.uint64(32)
    return np.unique((mixed * inverses[0]).view(np.int64))


def check_against_dict(keys, asked):
    table = Table(2, name="table", initializer=0.5)
    rows = np.arange(2.0 * len(keys)).reshape(-1, 2) + 1
    table.assign(np.array(keys, np.int64), rows)
    known = dict(zip(keys, rows.tolist(), strict=True))
    asked = [*keys, *asked]
    rows, found = filled(table).read(tf.constant(asked, tf.int64), None)
    assert found.numpy().tolist() == [key in known for key in asked]
    assert rows.numpy().tolist() == [
        known.get(key, [0.5, 0.5]) for key in asked
    ]


@settings(max_examples=30, deadline=None)
@given(st.sets(KEYS, max_size=60), st.lists(KEYS, min_size=1, max_size=60))
def test_lookups_answer_as_a_dict(keys, asked):
    check_against_dict(sorted(keys), asked)


@pytest.mark.parametrize("stride", [1, 2**16, 2**32, 2**48])
def test_strided_keys(stride):
    wrapped = np.arange(3000, dtype=np.uint64) * np.uint64(stride)
    keys = np.unique(wrapped.view(np.int64)).tolist()
    check_against_dict(keys, [key + 1 for key in keys])


def test_keys_that_are_made_to_collide():
    keys = colliding(4000)
    usual = _ops.perfect_hash(tf.constant([1], tf.int64)).parameters
    found = _ops.perfect_hash(tf.constant(keys)).parameters
    assert np.all(found[:2] != usual[:2])
    check_against_dict(keys.tolist(), range(1000))


def test_slots_are_the_same_everywhere():
    keys = np.random.default_rng(1).integers(LOW, HIGH, 5000)
    found = _ops.perfect_hash(tf.constant(keys))
    parameters, pilots = found.parameters.numpy(), found.pilots.numpy()
    slots = slots_of(keys, parameters, pilots)
    np.testing.assert_array_equal(found.slots.numpy()[slots], keys)
    in_graph = stock_slots_of(tf.constant(keys), found.parameters, found.pilots)
    np.testing.assert_array_equal(in_graph, slots)
    all_slots = np.arange(parameters[3])
    others = other_keys(all_slots, parameters, pilots)
    assert np.all(slots_of(others, parameters, pilots) != all_slots)


def test_perfect_hashes_are_of_vectors():
    with pytest.raises(tf.errors.InvalidArgumentError, match="a vector"):
        _ops.perfect_hash(tf.constant([[1]], tf.int64))


@pytest.mark.parametrize("dim", [1, 2, 3, 8, 13])
@pytest.mark.parametrize(
    ("dtype", "quantize"),
    [
        ("float32", None),
        ("bfloat16", None),
        ("float16", None),
        ("float32", "float16"),
        ("bfloat16", "int8"),
    ],
)
def test_records_of_any_width(dim, dtype, quantize):
    rows = np.random.default_rng(2).normal(size=(7, dim))
    rows = rows.astype(tf.as_dtype(dtype).as_numpy_dtype)
    keys = np.arange(7) - 2**62
    records = pack(keys, store(rows, quantize))
    stored_as = quantize or dtype
    assert records.shape == (7, record_words(dim, stored_as))
    np.testing.assert_array_equal(records[:, 0], keys)
    back = unpack(tf.constant(records), dim, stored_as, dtype)
    assert (back.dtype, back.shape) == (dtype, (7, dim))
    np.testing.assert_allclose(
        tf.cast(back, tf.float32),
        rows.astype(np.float32),
        atol={None: 0, "float16": 2e-3, "int8": 2e-2}[quantize],
    )
