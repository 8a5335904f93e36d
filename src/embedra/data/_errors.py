"""What goes wrong with the data of a user, said so that it can be mended."""

from __future__ import annotations

from dataclasses import dataclass, field


class DataError(ValueError):
    """Input that cannot be read as asked; the message names file and line."""


@dataclass
class ReadReport:
    """What one pass over one file found.

    Attributes:
        path: The file that was read.
        rows: Usable rows so far.
        malformed: Rows left out so far; 0 unless the reader skips them.
        examples: `path:line: reason` of the first few malformed rows.
    """

    path: str
    rows: int = 0
    malformed: int = 0
    examples: list[str] = field(default_factory=list)

    MAX_EXAMPLES = 5

    def add_malformed(self, line: int, reason: str) -> None:
        """Counts one malformed row and keeps it if it is among the first."""
        self.malformed += 1
        if len(self.examples) < self.MAX_EXAMPLES:
            self.examples.append(f"{self.path}:{line}: {reason}")

    def summary(self) -> str:
        """One paragraph for people.

        Example:
            >>> report = ReadReport("log.csv", rows=7)
            >>> report.summary()
            'log.csv: 7 rows, none malformed.'
        """
        if not self.malformed:
            return f"{self.path}: {self.rows} rows, none malformed."
        lines = "\n  ".join(self.examples)
        return (
            f"{self.path}: {self.rows} rows, {self.malformed} malformed "
            f"and left out. The first:\n  {lines}"
        )
