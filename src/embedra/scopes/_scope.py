"""scope: sets options for a block, in this thread or task alone."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

from ._context import Context, context
from ._current import holding
from ._options import Options


_P = ParamSpec("_P")
_R = TypeVar("_R")


@contextlib.contextmanager
def scope(**options: Any) -> Iterator[Context]:
    """Sets options for a block.

    Scopes may be within one another: the inner ones set what they name, the
    rest stays. They hold in their thread, or task of asyncio. TensorFlow and
    Keras are not changed: functions of Embedra read the options.

    Args:
        **options: See `embedra.scopes.Options`. Options of HybridBackend that
            are about graphics cards or the exchange of values are accepted, and
            logged as without effect.

    Yields:
        `embedra.context`, which has the options.

    Raises:
        TypeError: If an option is unknown.
        ValueError: If the value of an option is wrong.

    Example:
        >>> with scope(keep_checkpoint_max=2), scope(mode="eval") as context:
        ...     context.options.keep_checkpoint_max
        2
    """
    with holding(options):
        yield context


def embedding_scope(
    **options: Any,
) -> contextlib.AbstractContextManager[Context]:
    """Is `scope(sharding=True)`: its tables are split over the ranks of a job.

    In one process there is one part.

    Args:
        **options: See `scope`.

    Example:
        >>> with embedding_scope() as context:
        ...     context.options.sharding
        True
    """
    return scope(**{"sharding": True, **options})


def function(**options: Any) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Makes a decorator by which a function runs in a scope.

    Args:
        **options: See `scope`. They are checked when the decorator is made.

    Returns:
        The decorator.

    Raises:
        TypeError: If an option is unknown, or what is decorated is a generator
            or a coroutine, which would run after the scope has ended.
        ValueError: If the value of an option is wrong.

    Example:
        >>> @function(mode="infer")
        ... def predict():
        ...     return context.options.mode
        >>> predict()
        'infer'
    """
    Options().replaced(options)

    def decorate(decorated: Callable[_P, _R]) -> Callable[_P, _R]:
        _check_runs_when_called(decorated)

        @functools.wraps(decorated)
        def within(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with scope(**options):
                return decorated(*args, **kwargs)

        return within

    return decorate


def _check_runs_when_called(decorated: Callable[..., Any]) -> None:
    if (
        inspect.isgeneratorfunction(decorated)
        or inspect.iscoroutinefunction(decorated)
        or inspect.isasyncgenfunction(decorated)
    ):
        msg = (
            f"{decorated!r} runs after it was called, out of the scope that "
            "embedra.function makes for the call. Use `with embedra.scope(...)`"
            " within it."
        )
        raise TypeError(msg)
