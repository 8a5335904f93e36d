"""What every case needs to know: where the peers are, and how much to do."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from suite.figures import Outcome
from suite.turns import Contestant, Results, take_turns


__all__ = ["Context"]

SYSTEMS = {
    "embedra": ("drivers.embedra_layers", None),
    "tfra": ("drivers.tfra", "tfra"),
    "tf_keras": ("drivers.tf_keras_static", None),
    "torchrec": ("drivers.torchrec_fused", "torchrec"),
    "hybridbackend": ("drivers.hybridbackend", "hybridbackend"),
    "numpy": ("drivers.numpy_floor", None),
}
STATE_CASES = {"memory", "save", "restore"}


@dataclass(frozen=True)
class Context:
    """Options of one run.

    Attributes:
        peers: Folder of the peers' virtual environments, if there are any.
        threads: Threads that each system may use.
        quick: Tiny sizes, to see that everything runs. No figure of a quick
            run means anything.
        results: Folder for plots.
    """

    peers: Path | None
    threads: int
    quick: bool
    results: Path

    def pick(self, full: int, quick: int) -> int:
        """A size for the full or the quick run."""
        return quick if self.quick else full

    def python(self, system: str) -> str | None:
        """The system's Python, or None if the peer is absent."""
        _, environment = SYSTEMS[system]
        if environment is None:
            return sys.executable
        if self.peers is None:
            return None
        python = self.peers / environment / "bin" / "python"
        return str(python.absolute()) if python.exists() else None

    def contestant(
        self,
        system: str,
        case: str,
        repetitions: Mapping[str, int],
        *,
        name: str = "",
        **options: object,
    ) -> Contestant | None:
        """Describes a driver process.

        Args:
            system: A key of `SYSTEMS`.
            case: The driver's case.
            repetitions: Repetitions in a turn, for each measure.
            name: What the results call it, if not by its system.
            **options: The driver's options, such as `keys`.

        Returns:
            The contestant, or None if the peer is absent.
        """
        python = self.python(system)
        if python is None:
            return None
        module, _ = SYSTEMS[system]
        if system == "embedra" and case in STATE_CASES:
            module = "drivers.embedra_state"
        if case == "export":
            module = "drivers.embedra_export"
        if case == "names":
            module = "drivers.embedra_names"
        if system == "embedra" and case.startswith("parquet-"):
            module = "drivers.parquet_reading"
        if case == "feeding":
            module = "drivers.parquet_training"
        options = {"threads": self.threads, **options}
        flags = [f"--{name}={value}" for name, value in options.items()]
        variables = [f"OMP_NUM_THREADS={self.threads}"]
        if system == "tfra":
            variables.append("TF_USE_LEGACY_KERAS=1")
        if system == "hybridbackend":
            variables.append(f"ARROW_NUM_THREADS={self.threads}")
        return Contestant(
            name or system,
            [python, "-m", module, case, *flags],
            repetitions,
            variables,
        )

    def compete(
        self,
        outcome: Outcome,
        label: str,
        contestants: list[Contestant | None],
        rounds: int,
    ) -> Results:
        """Takes turns and keeps raw results and failures in the outcome."""
        present = [c for c in contestants if c is not None]
        results = take_turns(present, rounds)
        outcome.raw[label] = results.to_json()
        outcome.failures += [
            f"{label}: {name} {why}" for name, why in results.failures.items()
        ]
        return results

    def missing(self, system: str) -> str:
        """Says why a system has no figures."""
        return "failed" if self.python(system) else f"{system} is absent"
