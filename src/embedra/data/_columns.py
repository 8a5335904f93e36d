"""Which columns of a file are what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Columns:
    """The columns of a click log that a model reads.

    Args:
        label: Name of the label column; its values are 0 or 1.
        numeric: Names of the columns read as numbers.
        categorical: Names of the columns read as ids. Each gets a table of
            its own, so equal values in two columns never share a row.

    Raises:
        ValueError: If a name is used twice, or there is no feature at all.

    Example:
        >>> Columns("click", numeric=("age",), categorical=("site", "ad"))
        Columns(label='click', numeric=('age',), categorical=('site', 'ad'))
    """

    label: str
    numeric: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [self.label, *self.numeric, *self.categorical]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            msg = (
                "Each column is the label, or numeric, or categorical, once. "
                f"Given more than once: {', '.join(twice)}."
            )
            raise ValueError(msg)
        if len(names) == 1:
            msg = (
                f"Nothing to learn from: only the label {self.label!r} is "
                "named. Name numeric or categorical columns too."
            )
            raise ValueError(msg)

    @property
    def features(self) -> tuple[str, ...]:
        """Numeric, then categorical names: the inputs of a model."""
        return self.numeric + self.categorical
