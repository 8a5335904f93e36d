"""Options: what a scope can set, and its defaults from the environment."""

import dataclasses
import logging
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from embedra import _env

from ._foreign_options import MEANINGLESS


_LOGGER = logging.getLogger(__name__)

_TRUE = ("1", "true", "yes")
_FALSE = ("0", "false", "no")
_MODES = ("train", "eval", "infer")
WIRE_DTYPES = ("float32", "bfloat16", "float16")


def _boolean(value: Any) -> bool:
    text = str(value).lower()
    if text not in (*_TRUE, *_FALSE):
        msg = "True or False (in the environment 1, true, yes, 0, false or no)"
        raise ValueError(msg)
    return text in _TRUE


def _boolean_or_none(value: Any) -> bool | None:
    return None if value is None else _boolean(value)


def _one_of(choices: tuple[str, ...]) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in choices:
            msg = f"one of {choices}"
            raise ValueError(msg)
        return str(value)

    return read


def _integer_or_none(value: Any) -> int | None:
    if value is None:
        return None
    try:
        if isinstance(value, bool) or int(value) != float(value):
            raise ValueError
        return int(value)
    except (TypeError, ValueError):
        msg = "an integer"
        raise ValueError(msg) from None


def _count_or_none(value: Any) -> int | None:
    number = _integer_or_none(value)
    if number is not None and number < 1:
        msg = "an integer of at least 1"
        raise ValueError(msg)
    return number


def _hours_or_none(value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
        if not number > 0:
            raise ValueError
    except (TypeError, ValueError):
        msg = "a positive number of hours"
        raise ValueError(msg) from None
    return number


def _text_or_none(value: Any) -> str | None:
    return None if value is None else str(value)


def _option(default: Any, read: Callable[[Any], Any]) -> Any:
    return dataclasses.field(default=default, metadata={"read": read})


@dataclasses.dataclass(unsafe_hash=True)
class Options:
    """Options that hold within a scope.

    `embedra.scope` sets them for a block. The default of each can be set by an
    environment variable, `EMBEDRA_` and its name in capitals, which is read
    once: `EMBEDRA_SHARDING=1`.

    Attributes:
        sharding: Whether tables that layers and columns make here are split
            over the ranks of a job; None, the default, for yes. If False each
            rank has tables of its own. In one process, and in the modes "eval"
            and "infer", tables are whole.
        mode: What graphs are built for, "train", "eval" or "infer". Only with
            "train" do lookups of `embedra.dynamic_embedding` and of feature
            columns create rows.
        seed: Seed of the initial rows of tables made here, for those that have
            none of their own.
        model_dir: Folder of checkpoints of `embedra.train.monitored_session`
            where none is given.
        keep_checkpoint_max: How many checkpoints `embedra.train.Saver` keeps
            where it is not told; None for 5, as TensorFlow's.
        keep_checkpoint_every_n_hours: Of which age they are kept for good, in
            hours; None for 10,000, as TensorFlow's.
        wire_dtype: What ranks send rows and their gradients as, "float32",
            "bfloat16" or "float16", for layers made here that have none of
            their own.

    Example:
        >>> Options(mode="eval").mode
        'eval'
        >>> Options(mode="test")
        Traceback (most recent call last):
            ...
        ValueError: Option `mode` must be one of ('train', 'eval', 'infer'). \
Received: mode='test'.
    """

    sharding: bool | None = _option(None, _boolean_or_none)
    mode: str = _option("train", _one_of(_MODES))
    seed: int | None = _option(None, _integer_or_none)
    model_dir: str | None = _option(None, _text_or_none)
    keep_checkpoint_max: int | None = _option(None, _count_or_none)
    keep_checkpoint_every_n_hours: float | None = _option(None, _hours_or_none)
    wire_dtype: str = _option("float32", _one_of(WIRE_DTYPES))

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            read = _read(field, value, f"Option `{field.name}`", field.name)
            object.__setattr__(self, field.name, read)

    def __setattr__(self, name: str, value: Any) -> None:
        # Frozen, with an error that says how options are set.
        if name in vars(self) or not hasattr(type(self), name):
            _refuse_assignment(name, value)
        object.__setattr__(self, name, value)

    @classmethod
    def from_environment(cls) -> "Options":
        """Returns the defaults, with what the environment says of them.

        Raises:
            ValueError: If a variable of the environment has a value that its
                option cannot have; the message names the variable.
        """
        found = {}
        for field in dataclasses.fields(cls):
            variable = f"EMBEDRA_{field.name.upper()}"
            text = _env.setting(variable)
            if text is not None:
                said = f"Environment variable {variable}"
                found[field.name] = _read(field, text, said, variable)
        return cls(**found)

    def replaced(self, given: Mapping[str, Any]) -> "Options":
        """Returns the same options but for some.

        Args:
            given: Values by name. Names that HybridBackend has, and that mean
                nothing here, are logged and left out.

        Raises:
            TypeError: If a name is unknown.
            ValueError: If a value is wrong.
        """
        names = [field.name for field in dataclasses.fields(self)]
        for name in given:
            if name in MEANINGLESS:
                _LOGGER.info("Option `%s`: %s", name, MEANINGLESS[name])
            elif name not in names:
                msg = (
                    f"There is no option `{name}`. The options are "
                    f"{', '.join(names)}."
                )
                raise TypeError(msg)
        return dataclasses.replace(
            self, **{name: given[name] for name in names if name in given}
        )


def _read(
    field: dataclasses.Field[Any], value: Any, said: str, name: str
) -> Any:
    try:
        return field.metadata["read"](value)
    except ValueError as error:
        msg = f"{said} must be {error}. Received: {name}={value!r}."
        raise ValueError(msg) from None


def _refuse_assignment(name: str, value: Any) -> NoReturn:
    msg = (
        f"Options are not assigned to. Set them for a block, `with "
        f"embedra.scope({name}={value!r}):`, or for the process, by the "
        f"environment variable EMBEDRA_{name.upper()}."
    )
    raise AttributeError(msg)
