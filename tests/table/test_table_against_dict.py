"""A table does what a dict does, whatever is done to it."""

import numpy as np
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from embedra.table import Table


_DIM = 3
_INITIAL = np.full(_DIM, 0.25, np.float32)
_KEYS = st.lists(
    st.one_of(st.integers(-4, 4), st.integers(-(2**63), 2**63 - 1)),
    min_size=0,
    max_size=12,
)


class TableMachine(RuleBasedStateMachine):
    """Does the same to a table and to a dict."""

    def __init__(self):
        super().__init__()
        self.table = Table(_DIM, name="machine", initializer=0.25)
        self.rows = {}
        self.count = 0

    def _fresh_rows(self, keys):
        self.count += 1
        shape = (len(keys), _DIM)
        numbers = np.arange(np.prod(shape), dtype=np.float32)
        return (numbers + self.count).reshape(shape)

    @rule(keys=_KEYS, insert=st.booleans())
    def lookup(self, keys, insert):
        found = self.table.lookup(keys, insert=insert).numpy()
        expected = [self.rows.get(key, _INITIAL) for key in keys]
        np.testing.assert_array_equal(found, np.reshape(expected, (-1, _DIM)))
        if insert:
            self.rows = {**dict.fromkeys(keys, _INITIAL), **self.rows}

    @rule(keys=_KEYS)
    def assign(self, keys):
        rows = self._fresh_rows(keys)
        self.table.assign(keys, rows)
        self.rows.update(zip(keys, rows, strict=True))

    @rule(keys=_KEYS)
    def accumulate(self, keys):
        deltas = self._fresh_rows(keys)
        self.table.accumulate(keys, deltas)
        for key, delta in zip(keys, deltas, strict=True):
            self.rows[key] = self.rows.get(key, _INITIAL) + delta

    @rule(keys=_KEYS)
    def remove(self, keys):
        present = set(keys) & set(self.rows)
        assert self.table.remove(keys) == len(present)
        for key in present:
            del self.rows[key]

    @rule()
    def clear(self):
        self.table.clear()
        self.rows = {}

    @rule(chunk_size=st.integers(1, 5))
    def export_and_import(self, chunk_size):
        chunks = list(self.table.export_chunks(chunk_size))
        self.table = Table(_DIM, name="machine", initializer=0.25)
        for chunk in chunks:
            self.table.import_records(chunk)

    @invariant()
    def size_is_equal(self):
        assert self.table.size() == len(self.rows)


TestTable = TableMachine.TestCase
TestTable.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None
)
