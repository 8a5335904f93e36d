"""From arguments of a reader to a source of batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ._containers import Container
from ._errors import DataError
from ._field import Field
from ._files import SourceFile
from ._load_report import LoadReport
from ._plan import Plan, Share
from ._schema import resolve
from ._source import OnError, Options, Source


# Rows that are shuffled together where nothing else is said.
_WINDOW = 65_536
# Files opened at once to look at their columns; remote ones take long.
_OPENERS = 8


def make_options(
    batch_size: int,
    *,
    shuffle: bool | int,
    seed: int,
    drop_remainder: bool,
    num_parallel_reads: int | None,
    prefetch: int,
    on_error: OnError,
) -> Options:
    """Checks arguments that all readers have.

    Raises:
        ValueError: If one has no sense.
    """
    least: dict[str, tuple[Any, int]] = {
        "batch_size": (batch_size, 1),
        "shuffle": (shuffle, 0),
        "seed": (seed, 0),
        "num_parallel_reads": (
            2 if num_parallel_reads is None else num_parallel_reads,
            1,
        ),
        "prefetch": (prefetch, 1),
    }
    for name, (value, bound) in least.items():
        if not isinstance(value, int | np.integer) or value < bound:
            msg = f"{name} is an integer, {bound} or more. Received: {value!r}."
            raise ValueError(msg)
    if on_error not in ("raise", "skip"):
        msg = f"on_error is 'raise' or 'skip'. Received: {on_error!r}."
        raise ValueError(msg)
    window = _WINDOW if shuffle is True else int(shuffle)
    return Options(
        batch_size=batch_size,
        window=window,
        seed=seed,
        drop_remainder=drop_remainder,
        reads=least["num_parallel_reads"][0],
        prefetch=prefetch,
        on_error=on_error,
    )


def open_files(
    files: Sequence[SourceFile],
    opener: Callable[[SourceFile], Container],
    on_error: OnError,
    report: LoadReport,
) -> list[Container]:
    """Opens files to look at their columns, several at once.

    Raises:
        DataError: If one cannot be opened and is not to be skipped, or none
            can.
    """

    def attempt(file: SourceFile) -> Container | DataError:
        try:
            return opener(file)
        except DataError as error:
            return error

    with ThreadPoolExecutor(min(_OPENERS, len(files))) as pool:
        opened = list(pool.map(attempt, files))
    containers = []
    for file, result in zip(files, opened, strict=True):
        if isinstance(result, Container):
            containers.append(result)
        elif on_error == "raise":
            raise result
        else:
            report.skip_file(file.label, str(result))
    if not containers:
        msg = f"No file can be opened. {report.summary()}"
        raise DataError(msg)
    return containers


def make_source(
    containers: Sequence[Container],
    fields: Sequence[Field | str] | None,
    share: Share,
    options: Options,
    report: LoadReport,
) -> Source:
    """A source of batches of some files.

    Raises:
        DataError: If a column is missing or of an unfit type, and files are
            not to be skipped.
    """
    if options.on_error == "skip":
        containers = _that_fit(containers, fields, report)
    columns = resolve(containers, fields)
    plan = Plan(
        containers, share, shuffle=bool(options.window), seed=options.seed
    )
    return Source(containers, columns, plan, options, report)


def _that_fit(
    containers: Sequence[Container],
    fields: Sequence[Field | str] | None,
    report: LoadReport,
) -> list[Container]:
    """The files without those that do not fit to the ones before them."""
    kept: list[Container] = []
    errors: list[DataError] = []

    def fit(some: Sequence[Container]) -> None:
        # Halved where one of them does not fit: few do not.
        try:
            resolve([*kept, *some], fields)
        except DataError as error:
            if len(some) > 1:
                half = len(some) // 2
                fit(some[:half])
                fit(some[half:])
                return
            errors.append(error)
            report.skip_file(some[0].label, str(error))
        else:
            kept.extend(some)

    fit(containers)
    if not kept:
        raise errors[-1]
    return kept
