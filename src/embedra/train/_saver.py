"""Saver: the one of TensorFlow, with limits from scopes."""

from typing import Any

import tensorflow as tf

from embedra import scopes
from embedra.dynamic_embedding import train as de_train


_V1: Any = tf.compat.v1
_SAVERS = _V1.GraphKeys.SAVERS
_LIMITS = {
    "max_to_keep": ("keep_checkpoint_max", 5),
    "keep_checkpoint_every_n_hours": ("keep_checkpoint_every_n_hours", 1e4),
}


class Saver(de_train.DEHvdSaver):
    """A `tf.compat.v1.train.Saver`, which saves tables with the variables.

    Any saver of TensorFlow does, if it has no list of variables, or one with
    the `de.Variable`s. This one leaves out what only stands for rows if that is
    in the list, keeps as many checkpoints as `embedra.scope` says, and writes
    paths in such a way that the folder of the checkpoints may be moved.

    Args:
        var_list: As for `tf.compat.v1.train.Saver`.
        *args: As for `tf.compat.v1.train.Saver`: `reshape`, `sharded`,
            `max_to_keep`, `keep_checkpoint_every_n_hours` and so on.
        **kwargs: As for `tf.compat.v1.train.Saver`.

    Example:
        >>> import tensorflow as tf
        >>> from embedra import scope
        >>> with tf.Graph().as_default(), scope(keep_checkpoint_max=2):
        ...     step = tf.compat.v1.train.get_or_create_global_step()
        ...     saver = Saver()
        >>> saver.as_saver_def().max_to_keep
        2
    """

    def __init__(self, var_list: Any = None, *args: Any, **kwargs: Any) -> None:
        options = scopes.current_options()
        # `reshape` and `sharded` come before them.
        for name, (option, default) in list(_LIMITS.items())[len(args[2:]) :]:
            limit = getattr(options, option)
            kwargs.setdefault(name, default if limit is None else limit)
        kwargs.setdefault("save_relative_paths", True)
        super().__init__(var_list, *args, **kwargs)


def replace_default_saver() -> None:
    """Makes a `Saver` the one that a monitored session takes, if there is none.

    Not needed: the default saver of TensorFlow saves tables, too.

    Raises:
        ValueError: If the graph has several savers.
    """
    savers = _V1.get_collection(_SAVERS)
    if len(savers) > 1:
        msg = (
            f"The graph has {len(savers)} savers, of which a monitored session "
            "cannot choose one. Give it `scaffold=tf.compat.v1.train.Scaffold("
            "saver=...)`."
        )
        raise ValueError(msg)
    if not savers:
        _V1.add_to_collection(_SAVERS, Saver(defer_build=True, sharded=True))
