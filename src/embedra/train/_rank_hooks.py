"""Hooks of the sessions of a job: each rank has one, of a graph of its own."""

import os
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from embedra.distribute import Communicator, gather_values, one_writer


_V1: Any = tf.compat.v1
_KEYS = _V1.GraphKeys

# What rounding may make of sums that are the same on all ranks.
_TOLERANCE = 1e-3


class FirstWeightsHook(_V1.train.SessionRunHook):
    """Gives dense variables the values of rank 0 before the first step.

    Tables need that not: their rows begin as their keys and seeds say.

    Args:
        ranks: The ranks of the job.
    """

    def __init__(self, ranks: Communicator) -> None:
        self._ranks = ranks
        self._assigned: Any = None

    def begin(self) -> None:
        """Adds what does it to the graph."""
        assigned = []
        with self._ranks.chain("first weights"):
            for variable in _dense(_V1.global_variables()):
                value = self._ranks.broadcast(
                    variable.read_value(), label=variable.op.name
                )
                assigned.append(_V1.assign(variable, value).op)
        self._assigned = tf.group(*assigned)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Does it.

        Args:
            session: The session.
            coord: Unused.
        """
        del coord
        session.run(self._assigned)


class SameWeights:
    """Tells weights that ranks have trained apart.

    To be made before the graph is finalized.

    Args:
        ranks: The ranks of the job.
    """

    def __init__(self, ranks: Communicator) -> None:
        self._ranks = ranks
        self._names = []
        sums = []
        for variable in _dense(_V1.trainable_variables()):
            if variable.dtype.is_floating:
                self._names.append(variable.op.name)
                value = tf.cast(variable.read_value(), tf.float64)
                sums.append(tf.reduce_sum(tf.abs(value)))
        self._sums: Any = sums

    def check(self, session: Any) -> None:
        """Raises if weights differ between ranks.

        Args:
            session: The session.

        Raises:
            RuntimeError: It names a weight, on all ranks.
        """
        own = [float(one) for one in session.run(self._sums)]
        sums = gather_values(self._ranks, own, label="sums of weights")
        for name, first, *others in zip(self._names, *sums, strict=True):
            most = _TOLERANCE * max(abs(first), 1e-6)
            if any(abs(other - first) > most for other in others):
                msg = (
                    f"Weights {name!r} are not the same on all ranks: what "
                    "trains them does not reduce gradients over ranks. Use an "
                    "optimizer of embedra.train, or wrap it: "
                    "embedra.DynamicEmbeddingOptimizer(optimizer)."
                )
                raise RuntimeError(msg)


class RankSaverHook(_V1.train.SessionRunHook):
    """Saves checkpoints on all ranks, of which rank 0 writes the files.

    It is what `tf.compat.v1.train.CheckpointSaverHook` is in one process: it
    saves at the start, when it is time, and in the end.

    Args:
        ranks: The ranks of the job.
        folder: Folder of the checkpoints.
        save_secs: Seconds from one checkpoint to the next, by the clock of rank
            0, or None.
        save_steps: Steps from one to the next, or None.
        listeners: Are told of each checkpoint, on all ranks.
        save_graph: Whether the graph is saved with it.
    """

    def __init__(
        self,
        ranks: Communicator,
        folder: str,
        save_secs: float | None,
        save_steps: int | None,
        listeners: Sequence[Any] = (),
        *,
        save_graph: bool = True,
    ) -> None:
        self._ranks = ranks
        self._folder = folder
        self._by_clock = save_secs is not None
        self._timer = _V1.train.SecondOrStepTimer(save_secs, save_steps)
        self._listeners = list(listeners)
        self._save_graph = save_graph
        self._global_step: Any = None
        self._weights: SameWeights | None = None

    def begin(self) -> None:
        """Adds what it needs to the graph."""
        self._global_step = _V1.train.get_global_step()
        self._weights = SameWeights(self._ranks)
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Saves what training begins with.

        Args:
            session: The session.
            coord: Unused.
        """
        del coord
        step = int(session.run(self._global_step))
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Saves when it is time.

        Args:
            run_context: Has the session.
            run_values: Unused.
        """
        del run_values
        step = int(run_context.session.run(self._global_step))
        if not self._is_due(step):
            return
        self._timer.update_last_triggered_step(step)
        if self._save(run_context.session, step):
            run_context.request_stop()

    def end(self, session: Any) -> None:
        """Saves what training has ended with.

        Args:
            session: The session.
        """
        step = int(session.run(self._global_step))
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _is_due(self, step: int) -> bool:
        due = bool(self._timer.should_trigger_for_step(step))
        if not self._by_clock:
            return due
        told = gather_values(self._ranks, due, label="time to save")
        return bool(told[0])

    def _save(self, session: Any, step: int) -> bool:
        """Saves; returns whether a listener asks to stop."""
        if self._weights is not None:
            self._weights.check(session)
        for listener in self._listeners:
            listener.before_save(session, step)
        save_by_all(
            self._ranks, session, self._folder, step, graph=self._save_graph
        )
        return any([one.after_save(session, step) for one in self._listeners])


def save_by_all(
    ranks: Communicator | None,
    session: Any,
    folder: str,
    step: int,
    *,
    graph: bool = False,
) -> None:
    """Saves a checkpoint of a session by the saver of its graph.

    Args:
        ranks: The ranks of the job, which must all do so; None for this process
            alone.
        session: The session.
        folder: Folder of the checkpoints.
        step: Its step.
        graph: Whether the graph is saved with it.
    """
    saver = session.graph.get_collection(_KEYS.SAVERS)[0]
    prefix = os.path.join(folder, "model.ckpt")
    if ranks is None:
        saver.save(session, prefix, step, write_meta_graph=graph)
        return
    with one_writer(prefix, ranks) as path:
        saver.save(
            session, path, step, write_meta_graph=graph and ranks.rank == 0
        )


def _dense(variables: Sequence[Any]) -> list[Any]:
    """Leaves out what only stands for rows of tables, and what is no number."""
    return [
        variable
        for variable in variables
        if not hasattr(variable, "table_variable")
        and variable.dtype.base_dtype not in (tf.string, tf.bool)
        and variable.shape.is_fully_defined()
        and variable.shape.num_elements()
    ]
