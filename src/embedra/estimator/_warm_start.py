"""WarmStartSettings: what training begins with."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from embedra import dynamic_embedding as de


@dataclasses.dataclass(frozen=True)
class WarmStartSettings:
    """What training begins with, if there is no checkpoint to go on from.

    Args:
        ckpt_to_initialize_from: A checkpoint, or a folder of which the latest
            is taken.
        vars_to_warm_start: Which variables and tables; see `de.warm_start`. By
            default all trainable ones and rows, without slots of optimizers.
        var_name_to_vocab_info: Must be None: tables know their ids.
        var_name_to_prev_var_name: Names in the checkpoint of variables and
            tables that have another name now.

    Raises:
        ValueError: If there is no checkpoint named, or vocabularies are.

    Example:
        >>> WarmStartSettings("runs/first").vars_to_warm_start
        '.*'
    """

    ckpt_to_initialize_from: Any
    vars_to_warm_start: Any = ".*"
    var_name_to_vocab_info: Any = None
    var_name_to_prev_var_name: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if not self.ckpt_to_initialize_from:
            msg = (
                "`ckpt_to_initialize_from` must be a checkpoint or its folder. "
                f"Received: {self.ckpt_to_initialize_from!r}."
            )
            raise ValueError(msg)
        if self.var_name_to_vocab_info:
            msg = (
                "`var_name_to_vocab_info` is not supported: rows of tables are "
                "found by their ids, whatever the vocabulary. Received: "
                f"{self.var_name_to_vocab_info!r}."
            )
            raise ValueError(msg)

    def hook(self) -> de.WarmStartHook:
        """Returns the hook that does it."""
        return de.WarmStartHook(
            os.fspath(self.ckpt_to_initialize_from),
            self.vars_to_warm_start,
            self.var_name_to_prev_var_name,
        )


def checked_warm_start(warm_start_from: Any) -> WarmStartSettings | None:
    """Returns what training begins with.

    Args:
        warm_start_from: Settings, a checkpoint or its folder, or None.

    Raises:
        TypeError: If it is something else.
    """
    if warm_start_from is None or isinstance(
        warm_start_from, WarmStartSettings
    ):
        return warm_start_from
    if isinstance(warm_start_from, str | os.PathLike):
        return WarmStartSettings(os.fspath(warm_start_from))
    msg = (
        "`warm_start_from` must be a checkpoint, its folder or "
        f"WarmStartSettings. Received: {warm_start_from!r}."
    )
    raise TypeError(msg)
