"""Where rows of embedding variables are kept: in memory."""

import dataclasses
import enum
from typing import Any

import keras

from ._option import Option


class StorageType(enum.Enum):
    """Where DeepRec can keep rows; Embedra keeps them in memory (`DRAM`)."""

    DRAM = "DRAM"
    PMEM_MEMKIND = "PMEM_MEMKIND"
    PMEM_LIBPMEM = "PMEM_LIBPMEM"
    SSDHASH = "SSDHASH"
    LEVELDB = "LEVELDB"
    HBM = "HBM"
    DRAM_PMEM = "DRAM_PMEM"
    DRAM_SSDHASH = "DRAM_SSDHASH"
    DRAM_LEVELDB = "DRAM_LEVELDB"
    HBM_DRAM = "HBM_DRAM"
    HBM_DRAM_SSDHASH = "HBM_DRAM_SSDHASH"


@keras.saving.register_keras_serializable(package="embedra")
@dataclasses.dataclass(frozen=True)
class StorageOption(Option):
    """Says where rows are kept: in memory.

    Attributes:
        storage_type: `StorageType.DRAM`, its name, or None.
        storage_path: Unused in memory.
        storage_size: Unused in memory.
        cache_strategy: Unused in memory.
        layout: Unused: row and slots are one record.

    Raises:
        NotImplementedError: If rows are to be kept elsewhere.

    Example:
        >>> StorageOption(storage_type=StorageType.DRAM).storage_type
        'DRAM'
    """

    storage_type: Any = None
    storage_path: str | None = None
    storage_size: Any = None
    cache_strategy: Any = None
    layout: str | None = None

    def __post_init__(self) -> None:
        given = self.storage_type
        name = given.value if isinstance(given, StorageType) else given
        object.__setattr__(self, "storage_type", name)
        if name in (None, "DRAM"):
            return
        msg = (
            "Embedding variables keep rows in memory: storage_type must be "
            f"StorageType.DRAM. Received: {given!r}. To bound the memory, use "
            "a CounterFilter or an evict_option, or a de.Variable with "
            "de.HkvHashTableConfig(max_capacity=...)."
        )
        raise NotImplementedError(msg)
