"""Records that ranks hold together, sent to rank 0 as a TF1 graph saves."""

from collections.abc import Sequence

import tensorflow as tf

from embedra import table as table_lib
from embedra.distribute import Communicator


def gathered(
    records: table_lib.Records, step: tf.Tensor, ranks: Communicator | None
) -> tuple[table_lib.Records, tf.Tensor]:
    """Sends all records to rank 0 when the graph runs, on all ranks.

    Args:
        records: Of this rank.
        step: The step of this rank's table.
        ranks: Those that hold the table together; None if it is whole.

    Returns:
        The records of all ranks on rank 0, none on others; and the last step.
    """
    if ranks is None:
        return records, step

    def send(columns: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        count = tf.size(records.keys, tf.int64)[tf.newaxis]
        splits = tf.pad(count, [[0, ranks.size - 1]])
        sent, _ = ranks.all_to_all_v(
            list(columns), [splits] * len(columns), label="records to save"
        )
        return list(sent)

    # It runs by itself, not in a step.
    with ranks.chain("saving"):
        keys, frequencies, last_steps = send(
            [records.keys, records.frequencies, records.last_steps]
        )
        (rows,) = send([records.rows])
        (slots,) = send([records.slots])
        step = ranks.all_reduce(step, "max", label="step to save")
    return (
        table_lib.Records(keys, rows, slots, frequencies, last_steps),
        step,
    )
