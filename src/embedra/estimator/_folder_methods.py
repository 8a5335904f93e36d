"""Methods of an estimator that say what its folder holds."""

import os
from typing import Any

import tensorflow as tf

from ._checkpoints import chosen_checkpoint
from ._graphs import Plan


class FolderMethods:
    """What the folder of an estimator holds."""

    _plan: Plan

    @property
    def model_dir(self) -> str:
        """Folder of checkpoints and events."""
        return str(self._plan.config.model_dir)

    def latest_checkpoint(self) -> str | None:
        """Returns the latest checkpoint, None if there is none."""
        path: str | None = tf.train.latest_checkpoint(self.model_dir)
        return path

    def eval_dir(self, name: str | None = None) -> str:
        """Returns the folder of the events of evaluations.

        Args:
            name: As it was given to `evaluate`.
        """
        return os.path.join(self.model_dir, f"eval_{name}" if name else "eval")

    def get_variable_names(self) -> list[str]:
        """Returns the names in the latest checkpoint.

        Tables have several: `<table>/keys`, `<table>/rows` and so on.
        """
        path = chosen_checkpoint(self.model_dir, None, "list names of")
        return [name for name, _ in tf.train.list_variables(path)]

    def get_variable_value(self, name: str) -> Any:
        """Returns what the latest checkpoint holds under a name.

        Args:
            name: One of `get_variable_names`.

        Returns:
            An array.

        Raises:
            ValueError: If there is none of that name.
        """
        path = chosen_checkpoint(self.model_dir, None, "read")
        names = self.get_variable_names()
        if name not in names:
            msg = f"{path!r} has no variable {name!r}. There are: {names}."
            raise ValueError(msg)
        return tf.train.load_variable(path, name)
