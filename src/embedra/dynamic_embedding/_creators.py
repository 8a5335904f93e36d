"""Creators: the kinds of tables of TFRA, as options of Embedra's own.

There is one native table. What the kinds differ in, bounds and what goes when
they are reached, are options of it.
"""

import dataclasses
import enum
from collections.abc import Callable
from typing import Any


class KVCreator:
    """Says what the tables of a `de.Variable` are like.

    Args:
        config: What the kind of table is told.
        saver: A saver by which `save_to_file_system` writes; see
            `de.FileSystemSaver`.
    """

    def __init__(self, config: Any = None, saver: Any = None) -> None:
        self.config = config
        self.saver = saver

    def __repr__(self) -> str:
        return f"{type(self).__name__}(config={self.config!r})"

    def table_options(self) -> dict[str, Any]:
        """Returns what the tables of one variable are made with.

        Returns:
            Arguments of `embedra.table.Table`; `initial_capacity` and
            `max_capacity` are those of all devices together.
        """
        return {}


@dataclasses.dataclass(frozen=True)
class CuckooHashTableConfig:
    """Tables in memory, without a bound. There is nothing to choose."""


class CuckooHashTableCreator(KVCreator):
    """Makes tables in memory, without a bound: the default.

    Args:
        config: A `CuckooHashTableConfig`.
        saver: See `KVCreator`.
    """


class HkvEvictStrategy(enum.IntEnum):
    """Which ids a full table drops first.

    Attributes:
        LRU: Those whose last use is the longest ago.
        LFU: Those of the fewest uses.
        EPOCHLRU: As LRU: steps go on over epochs.
        EPOCHLFU: As LFU.
        CUSTOMIZED: By scores of one's own; not supported.
    """

    LRU = 0
    LFU = 1
    EPOCHLRU = 2
    EPOCHLFU = 3
    CUSTOMIZED = 4


@dataclasses.dataclass(frozen=True)
class HkvHashTableConfig:
    """Tables in memory, with a bound if one is given.

    Unlike in TFRA, where a table drops ids above 2^20 unless told otherwise,
    one without `max_capacity` drops nothing.

    Attributes:
        init_capacity: Ids to make room for up front.
        max_capacity: Ids to hold at most, on all devices together; None or 0
            for no bound. Each device holds its equal part.
        max_hbm_for_values: Unused: rows are in the memory of the host.
        evict_strategy: Which ids a full table drops.
        step_per_epoch: Unused: a use's step is that of the optimizer.
        gen_scores_fn: Not supported.
        reserved_key_start_bit: Unused: every key is legal.

    Example:
        >>> import embedra.dynamic_embedding as de
        >>> config = de.HkvHashTableConfig(max_capacity=1000)
        >>> user = de.Variable(
        ...     dim=2, name="user", kv_creator=de.HkvHashTableCreator(config)
        ... )
        >>> user.tables[0].bound
        Bound(max_capacity=1000, eviction='recency')
    """

    init_capacity: int | None = None
    max_capacity: int | None = None
    max_hbm_for_values: int | None = None
    evict_strategy: HkvEvictStrategy = HkvEvictStrategy.LRU
    step_per_epoch: int = 0
    gen_scores_fn: Callable[..., Any] | None = None
    reserved_key_start_bit: int = 0


class HkvHashTableCreator(KVCreator):
    """Makes tables in memory, with a bound if the config has one.

    Args:
        config: An `HkvHashTableConfig`.
        saver: See `KVCreator`.
    """

    def table_options(self) -> dict[str, Any]:
        """Returns what the tables of one variable are made with.

        Returns:
            Arguments of `embedra.table.Table`.

        Raises:
            NotImplementedError: If ids are to go by scores of one's own.
        """
        config = self.config or HkvHashTableConfig()
        strategy = HkvEvictStrategy(config.evict_strategy)
        customized = strategy is HkvEvictStrategy.CUSTOMIZED
        if customized or config.gen_scores_fn is not None:
            msg = (
                "Ids that go by scores of one's own (CUSTOMIZED or "
                "gen_scores_fn) are not supported. Use HkvEvictStrategy.LRU or "
                "LFU, or a subclass of de.RestrictPolicy that removes ids by "
                f"any rule. Received: {config}."
            )
            raise NotImplementedError(msg)
        by_uses = (HkvEvictStrategy.LFU, HkvEvictStrategy.EPOCHLFU)
        return {
            "initial_capacity": config.init_capacity or 0,
            "max_capacity": config.max_capacity or 0,
            "eviction": "frequency" if strategy in by_uses else "recency",
        }


@dataclasses.dataclass(frozen=True)
class RedisTableConfig:
    """Tables in a Redis server, which Embedra does not use.

    Attributes:
        redis_config_abs_dir: Unused.
        redis_config_abs_dir_env: Unused.
    """

    redis_config_abs_dir: str | None = None
    redis_config_abs_dir_env: str | None = None


class RedisTableCreator(KVCreator):
    """Says, where a variable is made, what to use instead of Redis.

    Args:
        config: A `RedisTableConfig`.
        saver: See `KVCreator`.
    """

    def table_options(self) -> dict[str, Any]:
        """Raises: there are no such tables.

        Raises:
            NotImplementedError: Always.
        """
        msg = (
            "Tables in Redis are not supported. Leave out `kv_creator` for "
            "tables in memory; name TensorFlow servers in `devices`, as in "
            '["/job:ps/task:0", "/job:ps/task:1"], to spread them over '
            "machines; or bound them by de.HkvHashTableCreator("
            "de.HkvHashTableConfig(max_capacity=...))."
        )
        raise NotImplementedError(msg)
