"""Options of embedding variables, under the names that DeepRec gives them."""

import dataclasses
from typing import Any

import keras
import tensorflow as tf

from ._option import Option
from ._storage import StorageOption


@keras.saving.register_keras_serializable(package="embedra")
@dataclasses.dataclass(frozen=True)
class CounterFilter(Option):
    """Gives an id a row once it was seen so many times in training.

    Up to then, and in the batch in which it is, the id reads as
    `InitializerOption.default_value_no_permission` and is not trained; only
    with a row is it in exports. Each occurrence in a batch counts.

    Attributes:
        filter_freq: Occurrences after which an id has a row; 0 for none.

    Example:
        >>> CounterFilter(filter_freq=3).filter_freq
        3
    """

    filter_freq: int = 0

    def __post_init__(self) -> None:
        _check_count(self, "filter_freq", self.filter_freq)


@keras.saving.register_keras_serializable(package="embedra")
@dataclasses.dataclass(frozen=True)
class CBFFilter(Option):
    """Admits an id as `CounterFilter` does, in bounded memory.

    DeepRec counts in a Bloom filter, which may admit an id too early. Here
    counts are exact; of more than `max_element_size` ids that wait, those of
    the fewest occurrences are forgotten first.

    Attributes:
        filter_freq: Occurrences after which an id has a row; 0 for none.
        max_element_size: Ids that may wait at a time, 0 for no bound.
        false_positive_probability: Accepted; here it is 0.
        counter_type: Accepted; counts are `int64`.

    Example:
        >>> CBFFilter(
        ...     filter_freq=3,
        ...     max_element_size=2**20,
        ...     false_positive_probability=0.01,
        ... ).max_element_size
        1048576
    """

    filter_freq: int = 0
    max_element_size: int = 0
    false_positive_probability: float = -1.0
    counter_type: Any = "uint64"

    def __post_init__(self) -> None:
        _check_count(self, "filter_freq", self.filter_freq)
        _check_count(self, "max_element_size", self.max_element_size)
        object.__setattr__(
            self, "counter_type", tf.as_dtype(self.counter_type).name
        )
        share = self.false_positive_probability
        if share != -1.0 and not 0 < share < 1:
            msg = (
                "`false_positive_probability` of CBFFilter must be between 0 "
                f"and 1. Received: {share}."
            )
            raise ValueError(msg)
        if (share == -1.0) != (self.max_element_size == 0):
            msg = (
                "CBFFilter needs `max_element_size` and "
                "`false_positive_probability`, or neither. Received: "
                f"max_element_size={self.max_element_size}, "
                f"false_positive_probability={share}."
            )
            raise ValueError(msg)


@keras.saving.register_keras_serializable(package="embedra")
@dataclasses.dataclass(frozen=True)
class GlobalStepEvict(Option):
    """Drops, when a checkpoint is saved, ids that were long not used.

    Attributes:
        steps_to_live: Steps of the optimizer for which an id is kept after its
            last training lookup; None or 0 for ever.

    Example:
        >>> GlobalStepEvict(steps_to_live=4000).steps_to_live
        4000
    """

    steps_to_live: int | None = None

    def __post_init__(self) -> None:
        _check_count(self, "steps_to_live", self.steps_to_live or 0)


@keras.saving.register_keras_serializable(package="embedra")
@dataclasses.dataclass(frozen=True)
class L2WeightEvict(Option):
    """Drops, when a checkpoint is saved, ids whose rows are short.

    Attributes:
        l2_weight_threshold: L2 norm below which a row goes; -1 for none.

    Example:
        >>> L2WeightEvict(l2_weight_threshold=0.01).l2_weight_threshold
        0.01
    """

    l2_weight_threshold: float = -1.0

    def __post_init__(self) -> None:
        threshold = self.l2_weight_threshold
        if threshold != -1.0 and not threshold > 0:
            msg = (
                "`l2_weight_threshold` of L2WeightEvict must be positive, or "
                f"-1 for no eviction. Received: {threshold}."
            )
            raise ValueError(msg)


@keras.saving.register_keras_serializable(package="embedra")
@dataclasses.dataclass(frozen=True)
class InitializerOption(Option):
    """Says what ids start from.

    Attributes:
        initializer: What admitted ids start from, where the variable itself
            is given no initializer.
        default_value_dim: Accepted: each id has a start of its own.
        default_value_no_permission: Each element of the row that ids read as
            which a filter has not admitted.

    Example:
        >>> InitializerOption().default_value_no_permission
        0.0
    """

    initializer: Any = None
    default_value_dim: int = 4096
    default_value_no_permission: float = 0.0


@keras.saving.register_keras_serializable(package="embedra")
@dataclasses.dataclass(frozen=True)
class EmbeddingVariableOption(Option):
    """Options of an embedding variable.

    Attributes:
        ht_type: Accepted: there is one kind of table.
        ht_partition_num: Accepted: tables grow by themselves.
        evict_option: `GlobalStepEvict` or `L2WeightEvict`, or None.
        ckpt: Not supported.
        filter_option: `CounterFilter` or `CBFFilter`, or None.
        storage_option: Where rows are kept.
        init_option: What ids start from.

    Raises:
        NotImplementedError: If `ckpt` is given.
        TypeError: If an option is of a wrong kind.

    Example:
        >>> option = EmbeddingVariableOption(
        ...     filter_option=CounterFilter(filter_freq=3),
        ...     evict_option=GlobalStepEvict(steps_to_live=4000),
        ... )
        >>> option.evict_option
        GlobalStepEvict(steps_to_live=4000)
    """

    ht_type: str = ""
    ht_partition_num: int = 1000
    evict_option: GlobalStepEvict | L2WeightEvict | None = None
    ckpt: Any = None
    filter_option: CounterFilter | CBFFilter | None = None
    storage_option: StorageOption = StorageOption()
    init_option: InitializerOption = InitializerOption()

    def __post_init__(self) -> None:
        if self.ckpt is not None:
            msg = (
                "EmbeddingVariableOption(ckpt=...) is not supported. Use "
                "embedra.dynamic_embedding.warm_start(path) to start from the "
                f"tables of a checkpoint. Received: {self.ckpt!r}."
            )
            raise NotImplementedError(msg)
        for name, kinds in (
            ("evict_option", (GlobalStepEvict, L2WeightEvict)),
            ("filter_option", (CounterFilter, CBFFilter)),
            ("storage_option", (StorageOption,)),
            ("init_option", (InitializerOption,)),
        ):
            _check_kind(name, getattr(self, name), kinds)


def _check_kind(name: str, value: Any, kinds: tuple[type, ...]) -> None:
    may_be_none = len(kinds) > 1
    if isinstance(value, kinds) or (may_be_none and value is None):
        return
    names = " or ".join(kind.__name__ for kind in kinds)
    msg = (
        f"`{name}` of EmbeddingVariableOption must be a {names}. Received: "
        f"{value!r}."
    )
    raise TypeError(msg)


def _check_count(option: Any, name: str, value: Any) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return
    msg = (
        f"`{name}` of {type(option).__name__} must be an integer from 0 on. "
        f"Received: {value!r}."
    )
    raise ValueError(msg)
