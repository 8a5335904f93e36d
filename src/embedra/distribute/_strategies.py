"""Which strategies of tf.distribute tables can be used under."""

import tensorflow as tf


_WITH_SERVERS = (
    tf.distribute.experimental.ParameterServerStrategy,
    tf.compat.v1.distribute.experimental.ParameterServerStrategy,
)


def check_strategy(made: str) -> None:
    """Raises where a strategy of tf.distribute would make copies of a table.

    Args:
        made: What is to be made, "Table 'user'".

    Raises:
        NotImplementedError: Under a strategy of several replicas, or of
            parameter servers.

    Example:
        >>> with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        ...     check_strategy("Table 'user'")
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
        f"{made} cannot be made under a {type(strategy).__name__} of "
        f"{replicas} replicas: of a table there are no copies. Train with "
        "ranks in place of a strategy, `embedra run -n 2 train.py`, which "
        f"split tables among them{on_servers if has_servers else ''}. See "
        "docs/distributed.md."
    )
    raise NotImplementedError(msg)
