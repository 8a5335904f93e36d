"""Names of TFRA's namespace that are not here, and what to use instead."""

from typing import NoReturn

from embedra._checks import missing_name


GONE = {
    "CuckooHashTable": "use embedra.table.Table",
    "HkvHashTable": "use embedra.table.Table",
    "RedisTable": "use embedra.table.Table, shared by `devices` on TensorFlow "
    "servers",
    "DistributedVariableWrapper": "under a strategy of one replica "
    "tables need none, and others are refused: see docs/distributed.md",
    "DEResourceVariable": "lookups keep no variables of ids",
    "GraphKeys": "it was deprecated",
    "patch_on_tf": "TensorFlow stays as it is",
    "patch_on_tf_save_restore": "use tf.train.Checkpoint, which holds tables "
    "itself",
}


def missing(name: str) -> NoReturn:
    """Raises AttributeError, with advice for a name of TFRA's.

    Args:
        name: Name that the namespace does not have.
    """
    module = __name__.rpartition(".")[0]
    raise missing_name(module, name, GONE, "docs/migrate-from-tfra.md")
