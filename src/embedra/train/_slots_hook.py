"""A hook that notices when tables are trained by another optimizer."""

from typing import Any

import tensorflow as tf

from embedra import _ops

from ._saved_states import saved_states


_V1: Any = tf.compat.v1


class TableSlotsHook(_V1.train.SessionRunHook):
    """Raises if the first step dropped slots that a checkpoint had of a table.

    Of dense variables, the slots that another optimizer has are missing in the
    checkpoint, which is an error. Tables have as many slots as are written to
    them, so that this is the place to see it. It must come before hooks that
    save: the checkpoint then stays what it is.

    Args:
        folder: Folder of the checkpoints, for messages.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._names: dict[str, tf.Tensor] = {}
        self._restored: dict[str, list[bytes]] = {}
        self._is_done = False

    def begin(self) -> None:
        """Adds what reads the names of slots to the graph."""
        self._names = {
            state.key: _ops.table_slots(state.tables[0].resource_handle)[0]
            for state in saved_states()
        }

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Reads which slots a checkpoint has brought.

        Args:
            session: The session, before its first step.
            coord: Unused.
        """
        del coord
        self._restored = session.run(self._names)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Reads which slots there are after the first step.

        Args:
            run_context: Has the session.
            run_values: Unused.

        Raises:
            ValueError: If some are gone.
        """
        del run_values
        if self._is_done:
            return
        self._is_done = True
        now = run_context.session.run(self._names)
        for key, before in self._restored.items():
            gone = sorted(set(before) - set(now[key]))
            if gone:
                raise ValueError(self._message(key, gone, list(now[key])))

    def _message(self, key: str, gone: list[bytes], now: list[bytes]) -> str:
        lost = ", ".join(name.decode() for name in gone)
        there = ", ".join(name.decode() for name in now) or "none"
        return (
            f"Table {key!r} was trained by another optimizer: the checkpoint "
            f"in {self._folder!r} has its slots {lost}, which this optimizer "
            f"does not know (its slots: {there}). Train on with the optimizer "
            "that the run began with, or use a new folder and start from the "
            "old one's rows: `warm_start_from` of an estimator, or "
            "`embedra.dynamic_embedding.WarmStartHook`. The checkpoint was "
            "left as it was."
        )
