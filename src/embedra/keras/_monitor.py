"""Monitor: which epoch is the best so far, by one of the logs."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from embedra.checkpoint import improves


_HIGHER = (
    "auc",
    "acc",
    "precision",
    "recall",
    "ndcg",
    "fmeasure",
    "f_measure",
    "f1",
    "fbeta",
    "hit",
    "mean_average",
    "map",
    "iou",
    "r2",
    "similarity",
)
_LOWER = (
    "loss",
    "error",
    "entropy",
    "mse",
    "mae",
    "mape",
    "msle",
    "rmse",
    "hinge",
    "logcosh",
    "poisson",
    "divergence",
    "perplexity",
    "false_",
)
_MODES = ("auto", "min", "max")


class Monitor:
    """Compares epochs by a log.

    Args:
        name: Of the log, as "val_loss".
        mode: "min" or "max"; "auto" takes it from the name.

    Raises:
        ValueError: If the mode is none of these, or is not in the name.

    Attributes:
        name: Of the log. One that is not known is taken for the only one that
            Keras numbered, as "val_auc" for "val_auc_1"; see `check`.
        label: The name that was given, and the mode.
    """

    def __init__(self, name: str, mode: str = "auto") -> None:
        if mode not in _MODES:
            msg = f"`mode` must be one of {_MODES}. Received: {mode!r}."
            raise ValueError(msg)
        self.name = name
        self.mode = _mode_of(name) if mode == "auto" else mode
        self.label = f"{self.mode} {name}"

    @property
    def validates(self) -> bool:
        """Whether the log is one of validation."""
        return self.name.startswith("val_")

    def check(self, known: Collection[str]) -> None:
        """Raises if there will be no such log.

        Args:
            known: Names of the logs.

        Raises:
            ValueError: If there is not exactly one of the name.
        """
        if self.name in known:
            return
        numbered = re.compile(re.escape(self.name) + r"_\d+")
        alike = [name for name in known if numbered.fullmatch(name)]
        if len(alike) == 1:
            self.name = alike[0]
            return
        msg = (
            f"`monitor` must name one of the logs of this training: "
            f"{', '.join(sorted(known))}. Received: monitor={self.name!r}."
        )
        if self.validates:
            msg += " Logs of `val_` need `validation_data`."
        raise ValueError(msg)

    def better(self, logs: Mapping[str, Any], best: float) -> float | None:
        """Compares an epoch to the best one before.

        Args:
            logs: Of the epoch.
            best: Value of the best one; NaN for none.

        Returns:
            The epoch's value if it is better, else None.
        """
        if self.name not in logs:
            return None
        value = float(logs[self.name])
        return value if improves(value, best, self.mode) else None


def _mode_of(name: str) -> str:
    plain = name.lower().removeprefix("val_")
    # First, so that "cross_entropy_at_max_recall" is no recall.
    if any(word in plain for word in _LOWER):
        return "min"
    if any(word in plain for word in _HIGHER):
        return "max"
    msg = (
        f"`mode` is 'auto', but monitor={name!r} does not tell whether higher "
        "is better. Give mode='min' or mode='max'."
    )
    raise ValueError(msg)
