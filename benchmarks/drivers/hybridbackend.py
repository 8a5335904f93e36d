"""HybridBackend 1.0 on TensorFlow 1.15: its ParquetDataset drained.

It runs on Python 3.6, so it speaks as `drivers.protocol` does by itself.
"""

import argparse
import json
import os
import sys
import time
from typing import Any

import hybridbackend.tensorflow as hb
import tensorflow as tf


BATCH = 8192
# Its options for reading with several threads.
WAYS = {
    "hybridbackend": {},
    "hybridbackend, parallel": {"num_parallel_parser_calls": 2},
}


class Reading:
    """A pass over a file, all columns of all batches.

    Args:
        path: The file.
        threads: Threads of the session.
        settings: Options of the dataset.
    """

    def __init__(self, path: str, threads: int, settings: Any) -> None:
        with tf.Graph().as_default():
            data = hb.data.ParquetDataset(path, batch_size=BATCH, **settings)
            iterator = tf.data.make_initializable_iterator(data.prefetch(2))
            parts = []
            for column in iterator.get_next().values():
                if hasattr(column, "nested_row_splits"):
                    parts += [column.values, *column.nested_row_splits]
                else:
                    parts.append(column)
            with tf.control_dependencies([part.op for part in parts]):
                self.batch = tf.constant(1)
            self.begin = iterator.initializer
            self.session = tf.Session(
                config=tf.ConfigProto(
                    intra_op_parallelism_threads=threads,
                    inter_op_parallelism_threads=threads,
                )
            )

    def __call__(self) -> int:
        """Reads all of it and returns the number of batches."""
        self.session.run(self.begin)
        batches = 0
        while True:
            try:
                batches += int(self.session.run(self.batch))
            except tf.errors.OutOfRangeError:
                return batches


class Messages:
    """Messages to the suite; what libraries print goes to stderr."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def send(self, **message: Any) -> None:
        """Sends one."""
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()


def seconds_of(reading: Reading) -> float:
    """What a pass takes."""
    start = time.perf_counter()
    reading()
    return time.perf_counter() - start


def main() -> None:
    """Runs the case named on the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=["parquet-flat", "parquet-lists"])
    parser.add_argument("--path", required=True)
    parser.add_argument("--threads", type=int, default=2)
    arguments, _ = parser.parse_known_args()
    messages = Messages()
    readings = {
        name: Reading(arguments.path, arguments.threads, settings)
        for name, settings in WAYS.items()
    }
    messages.send(event="ready", facts={})
    for line in sys.stdin:
        request = json.loads(line)
        if request is None:
            break
        reading = readings[request["measure"]]
        reading()
        count = request["repetitions"]
        seconds = [seconds_of(reading) for _ in range(count)]
        messages.send(event="turn", seconds=seconds, values=[None] * count)


if __name__ == "__main__":
    main()
