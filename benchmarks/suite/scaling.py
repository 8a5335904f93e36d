"""How a step would take on many ranks: a model, with simulated traffic.

See "How it scales" in docs/distributed.md. Each rank has a batch of its own, so
that the work of a rank stays the same; what is added is what ranks send. Who
sends how many rows to whom is counted in batches that are drawn as in the other
cases; the rest is arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from drivers import workload


__all__ = ["Constants", "Traffic", "efficiency", "seconds_of_step", "simulate"]

KEY_BYTES = 8
HEADER_BYTES = 128
# Of the lookups: keys, rows, gradients.
EXCHANGES = 3


@dataclass(frozen=True)
class Constants:
    """What is measured on one machine, and what the network is said to do.

    Attributes:
        step_seconds: A step of one rank by itself.
        latency_seconds: A message between machines, one way.
        network_bytes: What a machine sends in a second, to others.
        memory_bytes: What a rank sends in a second, within its machine.
        ranks_per_machine: They share the network.
        dense_bytes: Gradients of dense weights.
        dim: Width of a row.
        wire_bytes: Of a number of a row, 4 or 2.
    """

    step_seconds: float
    latency_seconds: float
    network_bytes: float
    memory_bytes: float
    ranks_per_machine: int
    dense_bytes: int
    dim: int = workload.DIM
    wire_bytes: int = 4


@dataclass(frozen=True)
class Traffic:
    """Distinct keys that ranks ask each other for in a step.

    Attributes:
        keys: How many rank r asks owner o for, shape `(ranks, ranks)`.
    """

    keys: NDArray[np.int64]

    def busiest_machine(self, ranks_per_machine: int) -> int:
        """Returns the most keys that cross the network at one machine.

        Those that its ranks ask others for, or that others ask them for: rows
        go the way back, gradients the way of the keys.

        Args:
            ranks_per_machine: How many ranks are on one.
        """
        machine = np.arange(len(self.keys)) // ranks_per_machine
        crossing = self.keys * (machine[:, None] != machine[None, :])
        ends = machine.max() + 1
        asked = [crossing[machine == m].sum() for m in range(ends)]
        owned = [crossing[:, machine == m].sum() for m in range(ends)]
        return int(max(*asked, *owned))

    def busiest_rank(self) -> int:
        """Returns the most keys that one rank asks others for, or owns."""
        others = self.keys - np.diag(np.diag(self.keys))
        return int(max(others.sum(0).max(), others.sum(1).max()))


def simulate(ranks: int, keys: int, features: int) -> Traffic:
    """Draws a batch for each rank, and counts whom it asks for what.

    Args:
        ranks: Number of ranks.
        keys: Keys of each feature.
        features: Number of features.
    """
    drawn = workload.clicks(keys, features=features, batches=ranks)
    counts = np.zeros((ranks, ranks), np.int64)
    for rank, batch in enumerate(drawn.ids):
        for column in batch.T:
            # Any hash will do: keys are spread already.
            owner = np.unique(column) % ranks
            counts[rank] += np.bincount(owner, minlength=ranks)
    return Traffic(counts)


def seconds_of_step(traffic: Traffic, constants: Constants) -> float:
    """Returns how long a step takes: compute, and sending after that.

    Nothing overlaps, which is the worst case.

    Args:
        traffic: Of the number of ranks that is asked about.
        constants: Measured, and assumed.
    """
    ranks = len(traffic.keys)
    if ranks == 1:
        return constants.step_seconds
    row_bytes = constants.dim * constants.wire_bytes
    per_key = KEY_BYTES + 2 * row_bytes
    machines = math.ceil(ranks / constants.ranks_per_machine)
    memory = traffic.busiest_rank() * per_key / constants.memory_bytes
    network = 0.0
    if machines > 1:
        crossing = traffic.busiest_machine(constants.ranks_per_machine)
        network = crossing * per_key / constants.network_bytes
    # A ring: each number goes round twice, once to be added, once to be known.
    share = 2 * (machines - 1) / machines
    dense = share * constants.dense_bytes / constants.network_bytes
    headers = ranks * HEADER_BYTES * EXCHANGES / constants.memory_bytes
    # Pairwise exchanges, and trees of headers and of the dense gradients.
    messages = EXCHANGES * (ranks - 1) + (EXCHANGES + 3) * math.log2(ranks)
    latency = messages * constants.latency_seconds
    return constants.step_seconds + memory + network + dense + headers + latency


def efficiency(traffic: Traffic, constants: Constants) -> float:
    """Returns which part of its speed by itself a rank keeps.

    Args:
        traffic: Of the number of ranks that is asked about.
        constants: Measured, and assumed.
    """
    return constants.step_seconds / seconds_of_step(traffic, constants)
