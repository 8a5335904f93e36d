"""Settings: the arguments of a layer that make its variable, and their JSON."""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from embedra import table as table_lib
from embedra.dynamic_embedding._shards import default_partition_fn
from embedra.dynamic_embedding._variable import Variable

from ._serialized import (
    as_json,
    as_object,
    kind_as_json,
    kind_as_object,
    policy_as_class,
    policy_as_json,
)


# The core pools by the first three in one pass.
FUSED_COMBINERS = ("sum", "mean", "sqrtn")
COMBINERS = (*FUSED_COMBINERS, "max", "min", "prod")


@dataclasses.dataclass
class Settings:
    """How a layer's variable is made; see `de.keras.layers.Embedding`."""

    embedding_size: int
    key_dtype: Any = tf.int64
    value_dtype: Any = tf.float32
    combiner: str = "sum"
    initializer: Any = None
    devices: Any = None
    with_unique: bool = True
    short_file_name: bool = False
    bp_v2: bool = False
    restrict_policy: Any = None
    init_capacity: int = 0
    partitioner: Callable[..., Any] | None = None
    kv_creator: Any = None
    max_norm: float | None = None
    distribute_strategy: Any = None
    keep_distribution: bool = False
    checkpoint: bool = True
    shared_name: str | None = None
    mask_zero: bool = False

    def __post_init__(self) -> None:
        """Turns what `from_config` is given into objects.

        Raises:
            TypeError: If `embedding_size` is not a number.
            ValueError: If `combiner` or `max_norm` is out of range.
        """
        self.embedding_size = as_int(self.embedding_size, "embedding_size")
        self.key_dtype = tf.as_dtype(self.key_dtype)
        self.value_dtype = tf.as_dtype(self.value_dtype)
        self.combiner = _checked_combiner(self.combiner)
        if self.initializer is None:
            self.initializer = keras.initializers.RandomNormal()
        self.restrict_policy = policy_as_class(self.restrict_policy)
        self.partitioner = as_object(self.partitioner) or default_partition_fn
        self.kv_creator = kind_as_object(self.kv_creator)
        self.max_norm = _checked_norm(self.max_norm)

    @classmethod
    def take(cls, arguments: dict[str, Any], options: dict[str, Any]) -> Any:
        """Makes settings of a layer's arguments.

        Args:
            arguments: Those that the layer names.
            options: Its other ones. Those that settings know are taken out; the
                rest is for Keras.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        taken = {name: options.pop(name) for name in known & set(options)}
        return cls(**arguments, **taken)

    def make_variable(self, name: str) -> Variable:
        """Makes the variable. Whether it is trained is up to the layer.

        Args:
            name: Its name: the layer's.
        """
        return Variable(
            key_dtype=self.key_dtype,
            value_dtype=self.value_dtype,
            dim=self.embedding_size,
            devices=self.devices,
            partitioner=self.partitioner or default_partition_fn,
            shared_name=self.shared_name,
            name=name,
            initializer=self.initializer,
            checkpoint=self.checkpoint,
            init_size=self.init_capacity,
            kv_creator=self.kv_creator,
            restrict_policy=self.restrict_policy,
            bp_v2=self.bp_v2,
            short_file_name=self.short_file_name,
        )

    def to_config(self) -> dict[str, Any]:
        """Returns the settings as JSON, for `take`.

        As in TFRA, devices are left out unless `keep_distribution` is set: a
        model is often loaded where there are others. `distribute_strategy`
        cannot be saved.
        """
        partitioner = self.partitioner
        config = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
        }
        del config["distribute_strategy"]
        return {
            **config,
            "key_dtype": self.key_dtype.name,
            "value_dtype": self.value_dtype.name,
            "initializer": table_lib.initializer_config(
                self.initializer, self.embedding_size
            ),
            "devices": self._kept_devices(),
            "restrict_policy": policy_as_json(self.restrict_policy),
            "partitioner": (
                None
                if partitioner is default_partition_fn
                else as_json(partitioner)
            ),
            "kv_creator": kind_as_json(self.kv_creator),
        }

    def _kept_devices(self) -> list[str] | None:
        if not self.keep_distribution or self.devices is None:
            return None
        one = isinstance(self.devices, str)
        return [self.devices] if one else list(self.devices)


def as_int(value: Any, what: str) -> int:
    """Returns an int, or raises TypeError.

    Args:
        value: What can be converted to int.
        what: Name of the argument.
    """
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        msg = f"`{what}` must be an integer. Received: {value!r}"
        raise TypeError(msg) from error


def _checked_combiner(combiner: Any) -> str:
    combiner = "sqrtn" if combiner == "sqrt_n" else combiner
    if combiner not in COMBINERS:
        msg = f"`combiner` must be one of {COMBINERS}. Received: {combiner!r}"
        raise ValueError(msg)
    return str(combiner)


def _checked_norm(max_norm: Any) -> float | None:
    if isinstance(max_norm, dict):
        max_norm = keras.constraints.deserialize(max_norm)
    max_norm = getattr(max_norm, "max_value", max_norm)
    if max_norm is None:
        return None
    if float(max_norm) <= 0.0:
        msg = f"`max_norm` must be positive. Received: {max_norm!r}"
        raise ValueError(msg)
    return float(max_norm)
