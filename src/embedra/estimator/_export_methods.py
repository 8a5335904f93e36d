"""Methods of an estimator that export."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ._checkpoints import chosen_checkpoint
from ._export import export_checkpoint
from ._graphs import Plan
from ._modes import ModeKeys


class ExportMethods:
    """What an estimator exports."""

    _plan: Plan

    def export_saved_model(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, Any] | Sequence[Any] | None = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> str | None:
        """Exports a checkpoint as a SavedModel for serving.

        It has TensorFlow's own ops alone, with tables that can only be read,
        and loads where Embedra is not installed. Its folder is named by the
        time in seconds, and appears when it is complete.

        Args:
            export_dir_base: Where the folder is made.
            serving_input_receiver_fn: Makes placeholders, dense and sparse, and
                returns a `ServingInputReceiver`.
            assets_extra: Files to copy to the folder `assets.extra`: a list, or
                a dict from names there.
            as_text: Whether the graph is written as text.
            checkpoint_path: What is exported. None for the latest checkpoint.
            experimental_mode: Must be PREDICT.

        Returns:
            The folder; None if this process is not the chief.

        Raises:
            StockOpsError: If the model does more with a table than look up.
            ValueError: If there is no checkpoint, or it is one of another
                model, or outputs are missing.
        """
        return self.experimental_export_all_saved_models(
            export_dir_base,
            {experimental_mode: serving_input_receiver_fn},
            assets_extra=assets_extra,
            as_text=as_text,
            checkpoint_path=checkpoint_path,
        )

    def experimental_export_all_saved_models(
        self,
        export_dir_base: Any,
        input_receiver_fn_map: Mapping[str, Callable[[], Any]],
        assets_extra: Mapping[str, Any] | Sequence[Any] | None = None,
        as_text: bool = False,
        checkpoint_path: Any = None,
    ) -> str | None:
        """Exports a checkpoint for several modes; only PREDICT is supported.

        Args:
            export_dir_base: See `export_saved_model`, like all that follow.
            input_receiver_fn_map: Functions that make placeholders, by mode.
            assets_extra: Files to copy.
            as_text: Whether the graph is written as text.
            checkpoint_path: What is exported.

        Returns:
            The folder; None if this process is not the chief.

        Raises:
            ValueError: If there is another mode than PREDICT.
        """
        if set(input_receiver_fn_map) != {ModeKeys.PREDICT}:
            msg = (
                "Models are exported for ModeKeys.PREDICT ('infer') alone: "
                "an exported model only reads its tables. Received modes: "
                f"{sorted(input_receiver_fn_map)}."
            )
            raise ValueError(msg)
        config = self._plan.config
        checkpoint = chosen_checkpoint(
            str(config.model_dir), checkpoint_path, "export"
        )
        if not config.is_chief:
            return None
        return export_checkpoint(
            self._plan,
            checkpoint,
            export_dir_base,
            input_receiver_fn_map[ModeKeys.PREDICT],
            assets_extra=assets_extra,
            as_text=as_text,
        )
