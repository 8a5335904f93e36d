"""What reading a data set found, and what it left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock


@dataclass
class LoadReport:
    """Counts of a data set; those of all epochs and iterators together.

    Attributes:
        rows: Rows handed on to be batched.
        skipped_rows: Rows left out, one by one or with a damaged part of a
            file of which it is known how many rows it had; 0 unless
            `on_error="skip"`.
        skipped_files: Labels of files that could not be opened.
        reasons: What was left out and why, the first few.
    """

    rows: int = 0
    skipped_rows: int = 0
    skipped_files: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    MAX_REASONS = 20

    def add_rows(self, rows: int) -> None:
        """Counts rows that were read."""
        with self._lock:
            self.rows += rows

    def skip_rows(self, rows: int, reason: str) -> None:
        """Counts rows that were left out."""
        with self._lock:
            self.skipped_rows += rows
            self._keep(reason)

    def skip_file(self, label: str, reason: str) -> None:
        """Lists a file that was left out."""
        with self._lock:
            self.skipped_files.append(label)
            self._keep(reason)

    def _keep(self, reason: str) -> None:
        if len(self.reasons) < self.MAX_REASONS and reason not in self.reasons:
            self.reasons.append(reason)

    def summary(self) -> str:
        """One paragraph for people.

        Example:
            >>> LoadReport(rows=7).summary()
            '7 rows, nothing left out.'
        """
        if not self.reasons:
            return f"{self.rows} rows, nothing left out."
        reasons = "\n  ".join(self.reasons)
        return (
            f"{self.rows} rows; left out: {self.skipped_rows} rows, "
            f"{len(self.skipped_files)} files. The first:\n  {reasons}"
        )
