"""Calls model functions with the arguments that they take."""

import inspect
from collections.abc import Callable
from typing import Any

from ._modes import ModeKeys
from ._spec import EstimatorSpec


_BY_NAME = ("labels", "mode", "params", "config")


class ModelFunction:
    """A model function of `tf.estimator`.

    It takes features first, and any of `labels`, `mode`, `params` and `config`
    by these names.

    Args:
        function: The function.
        params: Hyper-parameters; an empty dict for none.
        config: A `RunConfig`.

    Raises:
        TypeError: If it is no function.
        ValueError: If it takes other arguments, or no parameters though there
            are some.
    """

    def __init__(self, function: Any, params: Any, config: Any) -> None:
        if not callable(function):
            msg = (
                "`model_fn` must be a function (features, labels, mode, "
                f"params, config). Received: {function!r}."
            )
            raise TypeError(msg)
        self.function = function
        self._params = params
        self._config = config
        self._taken = _taken(function)
        if params != {} and "params" not in self._taken:
            msg = (
                f"`params` were given, but model function {self.name!r} has "
                "no argument `params`. Add it, or leave `params` out."
            )
            raise ValueError(msg)

    @property
    def name(self) -> str:
        """What messages call the function."""
        return getattr(self.function, "__qualname__", repr(self.function))

    def __call__(self, features: Any, labels: Any, mode: str) -> EstimatorSpec:
        """Builds the model in the graph that is current.

        Args:
            features: What the model sees.
            labels: What it is to learn, or None.
            mode: One of `ModeKeys`.

        Returns:
            What the function returned.

        Raises:
            TypeError: If that is no `EstimatorSpec`.
            ValueError: If it is of another mode, or there are labels that the
                function does not take.
        """
        given = {
            "labels": labels,
            "mode": mode,
            "params": self._params,
            "config": self._config,
        }
        if labels is not None and "labels" not in self._taken:
            msg = (
                f"Model function {self.name!r} has no argument `labels`, but "
                "the input function gives labels. Add the argument, or give "
                "features alone."
            )
            raise ValueError(msg)
        try:
            spec = self.function(
                features, **{name: given[name] for name in self._taken}
            )
        except Exception as error:
            if mode == ModeKeys.PREDICT:
                error.add_note(
                    f"Model function {self.name!r} was called with "
                    "mode='infer', in which labels are None: it must return "
                    "its predictions before it makes anything of labels."
                )
            elif labels is None and "labels" in self._taken:
                error.add_note(
                    f"Model function {self.name!r} was called with labels=None:"
                    " the input function gives features alone."
                )
            raise
        if not isinstance(spec, EstimatorSpec):
            msg = (
                f"Model function {self.name!r} must return an "
                f"embedra.estimator.EstimatorSpec. Received: {spec!r}."
            )
            raise TypeError(msg)
        if spec.mode != mode:
            msg = (
                f"Model function {self.name!r} was called with mode={mode!r}, "
                f"but returned an EstimatorSpec of mode {spec.mode!r}. Pass "
                "`mode` on."
            )
            raise ValueError(msg)
        return spec


def _taken(function: Callable[..., Any]) -> list[str]:
    """Returns which arguments a model function takes by name."""
    parameters = list(inspect.signature(function).parameters.values())
    kinds = {p.kind for p in parameters}
    if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        msg = f"A model function takes features first. Received: {function!r}."
        raise ValueError(msg)
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return list(_BY_NAME)
    taken = [p.name for p in parameters if p.name in _BY_NAME]
    others = [
        p.name
        for p in parameters[1:]
        if p.name not in _BY_NAME and p.default is inspect.Parameter.empty
        if p.kind is not inspect.Parameter.VAR_POSITIONAL
    ]
    if others:
        msg = (
            "A model function takes features first, and any of "
            f"{', '.join(_BY_NAME)}. Received: {function!r}, which also needs "
            f"{', '.join(others)}."
        )
        raise ValueError(msg)
    return taken
