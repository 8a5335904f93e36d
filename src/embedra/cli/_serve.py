"""`embedra serve`: a TensorFlow server that holds tables for others."""

from __future__ import annotations

from embedra.scopes import context
from embedra.train import Server

from ._console import UsageError, console, readable_errors


def serve() -> None:
    """Serves the cluster that TF_CONFIG tells, until it is ended.

    It is what a parameter server runs: TensorFlow's server, which knows the
    ops of tables. `embedra run --ps` starts them.
    """
    with readable_errors():
        if not context.target:
            msg = (
                "TF_CONFIG names no server that this process is. Set it, as "
                '{"cluster": {"chief": ["host:port"], "ps": ["host:port"]}, '
                '"task": {"type": "ps", "index": 0}}.'
            )
            raise UsageError(msg)
        console.print(
            f"{context.task_type} {context.task_id} serves at {context.target}"
        )
        Server.get().join()
