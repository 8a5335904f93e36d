"""TrainSpec and EvalSpec: what train_and_evaluate does."""

import numbers
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ._exporters import Exporter
from ._inputs import checked_input_fn
from ._numbers import is_real
from ._spec import checked_hooks, checked_listeners


class _TrainFields(NamedTuple):
    input_fn: Callable[..., Any]
    max_steps: int | None
    hooks: tuple[Any, ...]
    saving_listeners: tuple[Any, ...]


class TrainSpec(_TrainFields):
    """What is trained on.

    Args:
        input_fn: Gives the batches; see `Estimator.train`.
        max_steps: Step at which training ends. None for the end of the input.
        hooks: Hooks of the session.
        saving_listeners: Are told of each checkpoint.

    Raises:
        ValueError: If `max_steps` is not positive.
    """

    __slots__ = ()

    def __new__(
        cls,
        input_fn: Callable[..., Any],
        max_steps: int | None = None,
        hooks: Sequence[Any] | None = None,
        saving_listeners: Sequence[Any] | None = None,
    ) -> "TrainSpec":
        return super().__new__(
            cls,
            checked_input_fn(input_fn),
            checked_steps(max_steps, "max_steps"),
            checked_hooks(hooks),
            checked_listeners(saving_listeners),
        )


class _EvalFields(NamedTuple):
    input_fn: Callable[..., Any]
    steps: int | None
    name: str | None
    hooks: tuple[Any, ...]
    exporters: tuple[Exporter, ...]
    start_delay_secs: float
    throttle_secs: float


class EvalSpec(_EvalFields):
    """What is evaluated on, and exported after that.

    Args:
        input_fn: Gives the batches; see `Estimator.evaluate`.
        steps: Batches to evaluate at most. None for all.
        name: Tells several evaluations apart; part of the name of their folder.
        hooks: Hooks of the session.
        exporters: An exporter, or several of different names.
        start_delay_secs: Seconds before a process that only evaluates starts.
        throttle_secs: Seconds from one evaluation to the next, at least.

    Raises:
        TypeError: If an exporter is none, or the name no string.
        ValueError: If a number is negative, or names are not distinct.
    """

    __slots__ = ()

    def __new__(
        cls,
        input_fn: Callable[..., Any],
        steps: int | None = 100,
        name: Any = None,
        hooks: Sequence[Any] | None = None,
        exporters: Exporter | Iterable[Exporter] | None = None,
        start_delay_secs: float = 120,
        throttle_secs: float = 600,
    ) -> "EvalSpec":
        if not isinstance(name, str | None):
            msg = f"`name` must be a string or None. Received: {name!r}."
            raise TypeError(msg)
        for argument, value in (
            ("start_delay_secs", start_delay_secs),
            ("throttle_secs", throttle_secs),
        ):
            if not is_real(value) or value < 0:
                msg = f"`{argument}` must be 0 or more. Received: {value!r}."
                raise ValueError(msg)
        return super().__new__(
            cls,
            checked_input_fn(input_fn),
            checked_steps(steps, "steps"),
            name,
            checked_hooks(hooks),
            _checked_exporters(exporters),
            start_delay_secs,
            throttle_secs,
        )


def checked_steps(steps: Any, argument: str) -> int | None:
    """Returns a number of steps, or raises.

    Args:
        steps: The number, or None.
        argument: What the caller knows it by.

    Raises:
        TypeError: If it is no integer.
        ValueError: If it is not positive.
    """
    if isinstance(steps, bool) or not isinstance(
        steps, numbers.Integral | None
    ):
        msg = (
            f"`{argument}` must be an integer or None. Received: "
            f"{argument}={steps!r}."
        )
        raise TypeError(msg)
    if steps is not None and steps <= 0:
        msg = f"`{argument}` must be positive. Received: {argument}={steps}."
        raise ValueError(msg)
    return None if steps is None else int(steps)


def _checked_exporters(exporters: Any) -> tuple[Exporter, ...]:
    if isinstance(exporters, Exporter):
        exporters = (exporters,)
    checked: tuple[Any, ...] = tuple(exporters or ())
    for exporter in checked:
        if not isinstance(exporter, Exporter):
            msg = (
                "`exporters` must be exporters, such as LatestExporter. "
                f"Received: {exporter!r}."
            )
            raise TypeError(msg)
    names = [exporter.name for exporter in checked]
    if len(set(names)) != len(names):
        msg = f"Exporters need distinct names. Received: {names}."
        raise ValueError(msg)
    return checked
