"""Export of a checkpoint as a SavedModel."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from embedra import dynamic_embedding as de
from embedra.saved_model import export_graph
from embedra.table import Table

from ._checkpoints import explained
from ._graphs import Plan, graph_scope, session_config
from ._modes import ModeKeys
from ._outputs import ExportOutput, PredictOutput
from ._receivers import ServingInputReceiver
from ._spec import EstimatorSpec
from ._tables import saved_states


v1: Any = tf.compat.v1

_DEFAULT = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY


def export_checkpoint(
    plan: Plan,
    checkpoint: str,
    folder: Any,
    receiver_fn: Callable[[], Any],
    *,
    assets_extra: Any,
    as_text: bool,
) -> str:
    """Exports a checkpoint.

    Args:
        plan: What is exported.
        checkpoint: The checkpoint.
        folder: Where the SavedModel's folder is made.
        receiver_fn: Makes the placeholders.
        assets_extra: Files to copy.
        as_text: Whether the graph is written as text.

    Returns:
        The SavedModel's folder.
    """
    job = _Job(plan, checkpoint, receiver_fn)
    exported = export_graph(
        job.build,
        folder,
        twins_of=job.twins_of,
        values_of=job.values_of,
        assets_extra=assets_extra,
        as_text=as_text,
        versioned=True,
    )
    v1.logging.info("Exported %s to %s", checkpoint, exported.path)
    return exported.path


class _Job:
    """What is exported, and what the checkpoint holds of it.

    Args:
        plan: What is exported.
        checkpoint: The checkpoint.
        receiver_fn: Makes the placeholders.
    """

    def __init__(
        self, plan: Plan, checkpoint: str, receiver_fn: Callable[[], Any]
    ) -> None:
        self._plan = plan
        self._checkpoint = checkpoint
        self._receiver_fn = receiver_fn
        self._saver: Any = None
        # They are to live until the tables are written.
        self._twins: list[Any] = []

    def build(self) -> dict[str, Any]:
        """Builds the graph, and returns its signatures by name."""
        with graph_scope(self._plan.config, ModeKeys.PREDICT):
            v1.train.get_or_create_global_step()
            receiver = self._receiver_fn()
            if not isinstance(receiver, ServingInputReceiver):
                msg = (
                    "`serving_input_receiver_fn` must return a "
                    f"ServingInputReceiver. Received: {receiver!r}."
                )
                raise TypeError(msg)
            try:
                spec = self._plan.model(
                    receiver.features, None, ModeKeys.PREDICT
                )
            except (KeyError, ValueError) as error:
                error.add_note(_described(receiver.features))
                raise
        self._saver = spec.scaffold.saver
        return _signatures(receiver, spec)

    def twins_of(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Returns eager tables with what the checkpoint holds of others.

        Args:
            tables: Tables of the graph.

        Raises:
            ValueError: If the checkpoint does not hold them.
        """
        first = tables[0]
        keys = [s.key for s in saved_states() if s.tables[0] is first]
        saved = tf.train.load_checkpoint(self._checkpoint)
        if not keys or not saved.has_tensor(f"{keys[0]}/keys"):
            msg = (
                f"Table {first.name!r} is not in checkpoint "
                f"{self._checkpoint!r}, from which the model is exported. "
                "Tables of the model must be made as they were in training, "
                "with checkpoint=True."
            )
            raise ValueError(msg)
        initializer = first.initializer
        twin = de.Variable(
            key_dtype=first.key_dtype,
            value_dtype=first.dtype,
            dim=first.dim,
            name=keys[0],
            initializer=initializer.function
            or {
                "kind": initializer.kind,
                "parameters": initializer.parameters,
                "seed": initializer.seed,
            },
        )
        tf.train.Checkpoint(table=twin).restore(self._checkpoint)
        self._twins.append(twin)
        return list(twin.tables)

    def values_of(self, variables: Sequence[Any]) -> Sequence[Any]:
        """Returns what the checkpoint holds of variables of the graph.

        Args:
            variables: The variables.
        """
        if not variables:
            return []
        saver = self._saver or v1.train.Saver(list(variables))
        with v1.Session(config=session_config(self._plan.config)) as session:
            try:
                saver.restore(session, self._checkpoint)
            except (
                tf.errors.NotFoundError,
                tf.errors.InvalidArgumentError,
            ) as error:
                raise explained(error, self._checkpoint) from error
            values: Sequence[Any] = session.run(list(variables))
            return values


def _described(features: Any) -> str:
    given = sorted(features) if isinstance(features, Mapping) else features
    return f"The receiver of the export gives features {given}."


def _signatures(
    receiver: ServingInputReceiver, spec: EstimatorSpec
) -> dict[str, Any]:
    outputs = _named_outputs(spec)
    signatures = {
        name: output.signature(receiver.receiver_tensors)
        for name, output in outputs.items()
    }
    for other, tensors in receiver.receiver_tensors_alternatives.items():
        for name, output in outputs.items():
            joint = other if name == _DEFAULT else f"{other}:{name}"
            signatures[joint] = output.signature(tensors)
    return signatures


def _named_outputs(spec: EstimatorSpec) -> dict[str, ExportOutput]:
    outputs = spec.export_outputs
    if outputs is None:
        return {_DEFAULT: PredictOutput(spec.predictions)}
    if len(outputs) == 1:
        outputs = {**outputs, _DEFAULT: next(iter(outputs.values()))}
    if _DEFAULT not in outputs:
        msg = (
            "One of several `export_outputs` must be the default, named "
            f"{_DEFAULT!r}. Received: {sorted(outputs)}."
        )
        raise ValueError(msg)
    return outputs
