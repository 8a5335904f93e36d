"""Exporters: what is exported after evaluations."""

import abc
import math
import os
import re
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from embedra.train import is_number

from ._numbers import is_integer
from ._run_notes import read_json, write_json


_BEST = "best_evaluation.json"
_NAME = re.compile(r"(?!\.\.?$)[^/\\]+")


class Exporter(abc.ABC):
    """Exports a model after evaluations; a base class for users' own."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Name of the exporter, and of its folder in `model_dir/export`."""

    @abc.abstractmethod
    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> Any:
        """Exports, or decides not to.

        Args:
            estimator: What was evaluated.
            export_path: The exporter's folder.
            checkpoint_path: What was evaluated.
            eval_result: Values of the metrics.
            is_the_final_export: Whether training has ended.

        Returns:
            The folder of the SavedModel, or None.
        """


class _SavedModelExporter(Exporter):
    """What exporters of SavedModels have in common.

    Args:
        name: Name of the exporter.
        serving_input_receiver_fn: See `Estimator.export_saved_model`.
        assets_extra: See there.
        as_text: See there.

    Raises:
        TypeError: If `serving_input_receiver_fn` is no function.
        ValueError: If the name cannot be one of a folder.
    """

    def __init__(
        self,
        name: Any,
        serving_input_receiver_fn: Any,
        assets_extra: Any = None,
        as_text: bool = False,
    ) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            msg = (
                "`name` of an exporter is that of its folder, and must not "
                f"have slashes. Received: {name!r}."
            )
            raise ValueError(msg)
        if not callable(serving_input_receiver_fn):
            msg = (
                f"Exporter {name!r} needs a function that returns a "
                "ServingInputReceiver. Received: "
                f"{serving_input_receiver_fn!r}."
            )
            raise TypeError(msg)
        self._name = name
        self._receiver_fn = serving_input_receiver_fn
        self._options = {"assets_extra": assets_extra, "as_text": as_text}

    @property
    def name(self) -> str:
        """Name of the exporter."""
        return self._name

    def _export(
        self, estimator: Any, export_path: str, checkpoint_path: str
    ) -> Any:
        return estimator.export_saved_model(
            export_path,
            self._receiver_fn,
            checkpoint_path=checkpoint_path,
            **self._options,
        )


class FinalExporter(_SavedModelExporter):
    """Exports once, when training has ended.

    Args:
        name: Name of the exporter.
        serving_input_receiver_fn: See `Estimator.export_saved_model`.
        assets_extra: See there.
        as_text: See there.
    """

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> Any:
        """Exports if training has ended; see `Exporter.export`."""
        del eval_result
        if not is_the_final_export:
            return None
        return self._export(estimator, export_path, checkpoint_path)


class LatestExporter(_SavedModelExporter):
    """Exports after every evaluation, and keeps the last ones.

    Args:
        name: Name of the exporter.
        serving_input_receiver_fn: See `Estimator.export_saved_model`.
        assets_extra: See there.
        as_text: See there.
        exports_to_keep: How many are kept; None for all.

    Raises:
        ValueError: If `exports_to_keep` is not positive.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Any,
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        self._to_keep = _checked_number(exports_to_keep)

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> Any:
        """Exports; see `Exporter.export`."""
        del eval_result, is_the_final_export
        exported = self._export(estimator, export_path, checkpoint_path)
        _keep_last(export_path, self._to_keep)
        return exported


def loss_smaller(
    best_eval_result: Mapping[str, Any], current_eval_result: Mapping[str, Any]
) -> bool:
    """Returns whether the loss of an evaluation is smaller than the best.

    Args:
        best_eval_result: Values of the best evaluation until now.
        current_eval_result: Values of the current one.

    Raises:
        ValueError: If one of them has no loss.
    """
    for result in (best_eval_result, current_eval_result):
        if "loss" not in result:
            msg = f"Evaluations are compared by their loss. Received: {result}."
            raise ValueError(msg)
    best, current = best_eval_result["loss"], current_eval_result["loss"]
    # Nothing is smaller than NaN, which would stay the best for ever.
    return bool(
        current < best or (math.isnan(best) and not math.isnan(current))
    )


class BestExporter(_SavedModelExporter):
    """Exports after every evaluation that is better than all before.

    The best evaluation is kept in the exporter's folder, so that it also counts
    in runs that go on.

    Args:
        name: Name of the exporter.
        serving_input_receiver_fn: See `Estimator.export_saved_model`.
        event_file_pattern: Accepted. Events are not needed to know the best.
        compare_fn: Called with `best_eval_result` and `current_eval_result`,
            dicts; gives whether the current one is better.
        assets_extra: See `Estimator.export_saved_model`.
        as_text: See there.
        exports_to_keep: How many of the last are kept; None for all.

    Raises:
        TypeError: If `compare_fn` is no function.
        ValueError: If `exports_to_keep` is not positive.
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Any = None,
        event_file_pattern: str | None = None,
        compare_fn: Any = loss_smaller,
        assets_extra: Any = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        del event_file_pattern
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        if not callable(compare_fn):
            msg = f"`compare_fn` must be a function. Received: {compare_fn!r}."
            raise TypeError(msg)
        self._compare = compare_fn
        self._to_keep = _checked_number(exports_to_keep)

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> Any:
        """Exports if the evaluation is the best; see `Exporter.export`."""
        del is_the_final_export
        path = os.path.join(export_path, _BEST)
        best = read_json(path)
        if best and not self._compare(
            best_eval_result=best, current_eval_result=eval_result
        ):
            return None
        exported = self._export(estimator, export_path, checkpoint_path)
        numbers = {
            name: float(value)
            for name, value in eval_result.items()
            if is_number(value)
        }
        write_json(path, numbers)
        _keep_last(export_path, self._to_keep)
        return exported


def _checked_number(exports_to_keep: int | None) -> int | None:
    if exports_to_keep is None:
        return None
    if not is_integer(exports_to_keep) or exports_to_keep <= 0:
        msg = (
            "`exports_to_keep` must be a positive integer, or None for all. "
            f"Received: {exports_to_keep!r}."
        )
        raise ValueError(msg)
    return int(exports_to_keep)


def _keep_last(folder: str, count: int | None) -> None:
    """Removes all but the last of the exports in a folder."""
    if count is None:
        return
    names = [name.rstrip("/") for name in tf.io.gfile.listdir(folder)]
    versions = sorted((n for n in names if n.isdigit()), key=int)
    for version in versions[:-count]:
        tf.io.gfile.rmtree(os.path.join(folder, version))
