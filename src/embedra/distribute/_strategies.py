"""Which strategies of tf.distribute tables can be used under."""

import tensorflow as tf


_WITH_SERVERS = (
    tf.distribute.experimental.ParameterServerStrategy,
    tf.compat.v1.distribute.experimental.ParameterServerStrategy,
)


def check_strategy(table_name: str) -> None:
    """Raises where a strategy of tf.distribute would make copies of a table.

    Args:
        table_name: Of the table that is to be made.

    Raises:
        NotImplementedError: Under a strategy of several replicas, or of
            parameter servers.
    """
    strategy = tf.distribute.get_strategy()
    has_servers = isinstance(strategy, _WITH_SERVERS)
    replicas = strategy.num_replicas_in_sync
    if replicas == 1 and not has_servers:
        return
    on_servers = (
        "; or keep tables on TensorFlow servers, "
        "de.Variable(devices=['/job:ps/task:0'])"
    )
    msg = (
        f"Table {table_name!r} cannot be made under a "
        f"{type(strategy).__name__} of {replicas} replicas: of a table there "
        "are no copies. Train with ranks in place of a strategy, `embedra run "
        f"-n 2 train.py`, which split tables among them"
        f"{on_servers if has_servers else ''}. See docs/distributed.md."
    )
    raise NotImplementedError(msg)
