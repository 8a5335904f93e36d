"""A table against a Python dict, over arbitrary sequences of calls."""

import numpy as np
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from embedra import _ops
from numerics import assert_allclose
from ops.calls import lookup_one


DIM = 2
START = 0.5
# A few keys that meet often, the ends of the range, and strangers.
KEY = st.one_of(
    st.integers(0, 12),
    st.sampled_from([-(2**63), 2**63 - 1, -1]),
    st.integers(-(2**63), 2**63 - 1),
)
KEYS = st.lists(KEY, max_size=20)
SLOTS = st.lists(
    st.sampled_from([("m", DIM, 0.0), ("v", DIM, 2.0), ("a", 1, 1.0)]),
    unique=True,
    max_size=3,
)


class TableMachine(RuleBasedStateMachine):
    """Runs the same calls on a table and on dicts of rows and slots."""

    @initialize()
    def make(self):
        self.handle = _ops.anonymous_table(
            name="t", dim=DIM, initializer_parameters=[START]
        )
        self.slots = []
        self.rows = {}
        self.counter = 0.0

    def _fresh_rows(self, count):
        """Rows that no other call writes."""
        self.counter += count
        first = np.arange(self.counter - count, self.counter)
        return np.stack([first, -first], 1).astype(np.float32)

    def _start(self, key):
        return self.rows.setdefault(int(key), np.full(DIM, START))

    @rule(keys=KEYS)
    def insert(self, keys):
        keys = np.array(keys, np.int64)
        rows, positions, found, bound = lookup_one(self.handle, keys, DIM)
        assert found.numpy().tolist() == [int(k) in self.rows for k in keys]
        assert_allclose(
            rows, np.array([self._start(k) for k in keys]).reshape(-1, DIM)
        )
        assert (positions.numpy() >= 0).all()
        assert (positions.numpy() < bound.numpy()).all()
        by_key = dict(zip(keys.tolist(), positions.numpy(), strict=True))
        assert len(set(by_key.values())) == len(by_key)

    @rule(keys=KEYS)
    def read(self, keys):
        keys = np.array(keys, np.int64)
        rows, positions, found, _ = lookup_one(
            self.handle, keys, DIM, insert=False, default=[9.0, 9.0]
        )
        absent = np.full(DIM, 9.0)
        expected = [self.rows.get(int(k), absent) for k in keys]
        assert_allclose(rows, np.array(expected).reshape(-1, DIM))
        assert found.numpy().tolist() == [int(k) in self.rows for k in keys]
        assert ((positions.numpy() >= 0) == found.numpy()).all()

    @rule(keys=KEYS, only_missing=st.booleans())
    def assign(self, keys, only_missing):
        rows = self._fresh_rows(len(keys))
        _ops.table_assign(
            [self.handle],
            [np.array(keys, np.int64)],
            [rows],
            dims=[DIM],
            only_missing=only_missing,
        )
        for key, row in zip(keys, rows, strict=True):
            if not only_missing or key not in self.rows:
                self.rows[key] = row

    @rule(keys=KEYS)
    def accumulate(self, keys):
        deltas = self._fresh_rows(len(keys))
        _ops.table_accumulate(
            [self.handle], [np.array(keys, np.int64)], [deltas], dims=[DIM]
        )
        for key, delta in zip(keys, deltas, strict=True):
            self.rows[key] = self._start(key) + delta

    @rule(keys=KEYS)
    def remove(self, keys):
        removed = _ops.table_remove([self.handle], [np.array(keys, np.int64)])
        present = {key for key in keys if key in self.rows}
        assert int(removed[0]) == len(present)
        for key in present:
            del self.rows[key]

    @rule(keys=KEYS)
    def missing(self, keys):
        missing = _ops.table_missing(self.handle, np.array(keys, np.int64))
        expected = [k for k in dict.fromkeys(keys) if k not in self.rows]
        assert missing.numpy().tolist() == expected

    @rule(keys=KEYS)
    def step(self, keys):
        keys = np.array(keys, np.int64)
        _, positions, _, _ = lookup_one(self.handle, keys, DIM, insert=False)
        grads = self._fresh_rows(len(keys))
        # SGD keeps no slots: what the machine has set is dropped.
        _ops.table_update(
            [self.handle], [positions], [grads], 1.0, 1, optimizer="sgd"
        )
        self.slots = []
        for key, grad in zip(keys.tolist(), grads, strict=True):
            if key in self.rows:
                self.rows[key] = self.rows[key] - grad

    @rule(slots=SLOTS)
    def set_slots(self, slots):
        names, widths, initials = ([s[i] for s in slots] for i in range(3))
        dropped = _ops.table_set_slots(self.handle, names, widths, initials)
        old = {slot[0] for slot in self.slots}
        assert {n.decode() for n in dropped.numpy()} == old - set(names)
        self.slots = slots

    @rule()
    def clear(self):
        _ops.table_clear([self.handle])
        self.rows = {}

    @rule(capacity=st.integers(0, 5000))
    def reserve(self, capacity):
        _ops.table_reserve(self.handle, capacity)

    @rule(chunk=st.integers(1, 7))
    def move_to_a_new_table(self, chunk):
        target = _ops.anonymous_table(
            name="t", dim=DIM, initializer_parameters=[START]
        )
        _ops.table_set_slots(target, *_ops.table_slots(self.handle))
        for records in self._chunks(chunk):
            _ops.table_import(target, *records)
        self.handle = target

    def _chunks(self, size):
        cursor = 0
        while True:
            *records, after = _ops.table_export(
                self.handle, cursor, size, dtype="float32", dim=DIM
            )
            if int(after) == cursor:
                return
            cursor = int(after)
            yield records

    @invariant()
    def same_size(self):
        if hasattr(self, "handle"):
            assert int(_ops.table_size([self.handle])[0]) == len(self.rows)

    def teardown(self):
        if not hasattr(self, "handle"):
            return
        exported = {}
        for keys, rows, slots, _, _ in self._chunks(5):
            assert slots.shape[1] == sum(slot[1] for slot in self.slots)
            for key, row in zip(keys.numpy(), rows.numpy(), strict=True):
                assert int(key) not in exported
                exported[int(key)] = row
        assert exported.keys() == self.rows.keys()
        for key, row in exported.items():
            assert_allclose(row, self.rows[key], atol=1e-3)


TestTableModel = TableMachine.TestCase
TestTableModel.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, derandomize=True
)
