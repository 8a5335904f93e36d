"""Export of a checkpoint as a SavedModel."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from embedra.saved_model import export_graph
from embedra.train import CheckpointSource

from ._graphs import Plan, graph_scope, session_config
from ._modes import ModeKeys
from ._outputs import ExportOutput, PredictOutput
from ._receivers import ServingInputReceiver
from ._spec import EstimatorSpec


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
    source = CheckpointSource(checkpoint, config=session_config(plan.config))

    def build() -> dict[str, Any]:
        with graph_scope(plan.config, ModeKeys.PREDICT):
            v1.train.get_or_create_global_step()
            receiver = _received(receiver_fn)
            try:
                spec = plan.model(receiver.features, None, ModeKeys.PREDICT)
            except (KeyError, ValueError) as error:
                error.add_note(_described(receiver.features))
                raise
        source.saver = spec.scaffold.saver
        return _signatures(receiver, spec)

    exported = export_graph(
        build,
        folder,
        twins_of=source.twins_of,
        values_of=source.values_of,
        assets_extra=assets_extra,
        as_text=as_text,
        versioned=True,
    )
    v1.logging.info("Exported %s to %s", checkpoint, exported.path)
    return exported.path


def _received(receiver_fn: Callable[[], Any]) -> ServingInputReceiver:
    receiver = receiver_fn()
    if not isinstance(receiver, ServingInputReceiver):
        msg = (
            "`serving_input_receiver_fn` must return a ServingInputReceiver. "
            f"Received: {receiver!r}."
        )
        raise TypeError(msg)
    return receiver


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
