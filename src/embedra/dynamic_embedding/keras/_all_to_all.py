"""What HvdAllToAllEmbedding has besides an Embedding."""

from typing import Any

from embedra.scopes import context

from ._outputs import RowsOfIds


class AllToAll(RowsOfIds):
    """Takes the arguments of TFRA's layer for many processes.

    Args:
        with_unique: Accepted. Repeated ids are always one row.
        with_secondary_unique: Accepted, for the same reason.
        mpi_size: Number of processes, by default that of the launcher.
        batch_size: Unused.
        *args: Those of `Embedding`.
        **kwargs: Those of `Embedding`.

    Raises:
        ValueError: If `mpi_size` is another number of processes than the
            launcher has started.
    """

    def __init__(
        self,
        with_unique: bool = True,
        with_secondary_unique: bool = True,
        mpi_size: int | None = None,
        batch_size: int | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if mpi_size is not None and mpi_size != context.world_size:
            msg = (
                "`mpi_size` of HvdAllToAllEmbedding must be the number of "
                f"processes that train, {context.world_size}. Received: "
                f"mpi_size={mpi_size}. Leave it out, and start the script by "
                "`embedra run` or mpirun."
            )
            raise ValueError(msg)
        super().__init__(*args, with_unique=with_unique, **kwargs)
        self.with_secondary_unique = with_secondary_unique
        self.mpi_size = mpi_size
        self.batch_size = batch_size

    def extra_config(self) -> dict[str, Any]:
        """Returns the arguments, as JSON, that are not in the settings."""
        return {
            "with_secondary_unique": self.with_secondary_unique,
            "mpi_size": self.mpi_size,
            "batch_size": self.batch_size,
        }
