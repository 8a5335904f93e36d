"""A driver of several ranks: rank 0 talks with the suite, others follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from drivers.protocol import Driver


__all__ = ["RankDriver"]

Run = Callable[[int], Any]


class RankDriver:
    """The measures of a job, which all ranks run together.

    All ranks add the same measures in the same order. Before each run rank 0
    tells the others which it is; that is not timed.
    """

    def __init__(self) -> None:
        self.world = MPI.COMM_WORLD
        self._driver = Driver() if self.world.rank == 0 else None
        self._runs: list[Run] = []

    def fact(self, name: str, value: Any) -> None:
        """Records a figure; that of rank 0 counts."""
        if self._driver is not None:
            self._driver.fact(name, value)

    def measure(self, name: str, run: Run) -> None:
        """Adds something to be timed on rank 0.

        Args:
            name: What the suite calls it.
            run: Gets the number of calls so far; the same on all ranks.
        """
        number = len(self._runs)
        self._runs.append(run)
        if self._driver is None:
            return
        calls = iter(range(10**9))
        now = [0]

        def tell() -> None:
            now[0] = next(calls)
            self.world.bcast((number, now[0]))
            self.world.Barrier()

        self._driver.measure(name, lambda _: run(now[0]), prepare=tell)

    def serve(self) -> None:
        """Answers requests on rank 0, and follows it on the others."""
        if self._driver is not None:
            self._driver.serve()
            self.world.bcast(None)
            return
        while (order := self.world.bcast(None)) is not None:
            number, call = order
            self.world.Barrier()
            self._runs[number](call)
