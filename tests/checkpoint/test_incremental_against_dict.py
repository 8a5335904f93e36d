"""Any edits and saves restore as what a dict holds."""

import shutil
import tempfile

import numpy as np
import tensorflow as tf
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from embedra.checkpoint import IncrementalCheckpoints
from embedra.table import Table


_KEYS = st.lists(
    st.one_of(st.integers(0, 8), st.integers(-(2**63), 2**63 - 1)), max_size=8
)


class SavesMachine(RuleBasedStateMachine):
    """Edits a table and a dict alike, saves and restores."""

    @initialize()
    def begin(self):
        self.folder = tempfile.mkdtemp()
        self.rows = {}
        self.saved = None
        self.step = self.count = 0
        self._new_process()

    def _new_process(self):
        self.table = Table(2, name="machine")
        checkpoint = tf.train.Checkpoint(table=self.table)
        self.saves = IncrementalCheckpoints(checkpoint, self.folder)

    @rule(keys=_KEYS)
    def assign(self, keys):
        self.count += 1
        rows = np.full((len(keys), 2), self.count, np.float32)
        self.table.assign(keys, rows)
        self.rows.update(dict.fromkeys(keys, self.count))

    @rule(keys=_KEYS)
    def remove(self, keys):
        self.table.remove(keys)
        for key in keys:
            self.rows.pop(key, None)

    @rule()
    def clear(self):
        self.table.clear()
        self.rows = {}

    @rule(full=st.sampled_from([None, None, True]))
    def save(self, full):
        self.step += 1
        self.saves.save(self.step, full=full)
        self.saved = dict(self.rows)

    @rule(fresh=st.booleans())
    def restore(self, fresh):
        if fresh:
            self._new_process()
            self.rows = {}
        step = self.saves.restore()
        assert step == (None if self.saved is None else self.step)
        if self.saved is not None:
            self.rows = dict(self.saved)
        found = {
            int(key): row.tolist()
            for chunk in self.table.export_chunks()
            for key, row in zip(chunk.keys, chunk.rows, strict=True)
        }
        assert found == {key: [n, n] for key, n in self.rows.items()}

    def teardown(self):
        if hasattr(self, "folder"):
            self.restore(fresh=True)
            shutil.rmtree(self.folder)


TestSaves = SavesMachine.TestCase
TestSaves.settings = settings(
    max_examples=15, stateful_step_count=20, deadline=None
)
