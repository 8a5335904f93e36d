"""Server: the TensorFlow server of this process, if it is in a cluster."""

from typing import Any

import tensorflow as tf

from embedra import scopes

from ._session_config import wraps_session_config


def wraps_server(server_class: Any) -> Any:
    """Makes a class of servers that finds its place in the cluster itself.

    Args:
        server_class: `tf.distribute.Server`, or a subclass.

    Returns:
        A subclass; the same if it is one already.
    """
    if issubclass(server_class, _ServerMethods):
        return server_class
    return type(server_class.__name__, (_ServerMethods, server_class), {})


class _ServerMethods:
    """What `wraps_server` puts before a class of servers."""

    _default: Any = None

    def __init__(
        self, server_or_cluster_def: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        context = scopes.context
        if server_or_cluster_def is None:
            server_or_cluster_def = context.cluster_spec
            kwargs.setdefault("job_name", context.task_type)
            kwargs.setdefault("task_index", context.task_id)
        self.is_local = server_or_cluster_def is None
        if not self.is_local:
            kwargs["config"] = wraps_session_config(kwargs.get("config"))
            super().__init__(  # type: ignore[call-arg]
                server_or_cluster_def, *args, **kwargs
            )

    @classmethod
    def get(cls) -> Any:
        """Returns the server of this process, which starts when first asked."""
        if cls._default is None:
            cls._default = cls()
        return cls._default

    @property
    def target(self) -> str:
        """What a session connects to; "" if the process is in no cluster."""
        if self.is_local:
            return ""
        return str(super().target)  # type: ignore[misc]

    def join(self) -> None:
        """Serves until the process is ended.

        Raises:
            RuntimeError: If the process is in no cluster.
        """
        if self.is_local:
            msg = (
                "This process is in no cluster, so that it serves nothing. Set "
                "TF_CONFIG, as by embedra.context.set_tf_config."
            )
            raise RuntimeError(msg)
        super().join()  # type: ignore[misc]

    def monitored_session(self, **kwargs: Any) -> Any:
        """Makes a session on this server.

        Args:
            **kwargs: See `embedra.train.monitored_session`.
        """
        # Here, as sessions ask for the server.
        from ._session import monitored_session

        return monitored_session(master=self.target, **kwargs)


class Server(_ServerMethods, tf.distribute.Server):
    """The TensorFlow server of this process.

    Without arguments it has the place in the cluster that `TF_CONFIG` tells.
    If that tells none, no server is started, and sessions run in the process.

    Args:
        server_or_cluster_def: As for `tf.distribute.Server`.
        *args: As for `tf.distribute.Server`.
        **kwargs: As for `tf.distribute.Server`.

    Example:
        >>> Server.get().target
        ''
    """


def target() -> str:
    """Returns what a session connects to; "" if the process is in no cluster.

    Example:
        >>> target()
        ''
    """
    return str(Server.get().target)
