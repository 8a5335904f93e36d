"""A TensorFlow server that can hold tables: run with a cluster and a number."""

import json
import sys

import tensorflow as tf

# The server runs the ops of tables, so it has to load them.
import embedra


if __name__ == "__main__":
    assert embedra.__version__
    # A session waits for all that its servers know of: clients are not named.
    cluster = {"ps": json.loads(sys.argv[1])["ps"]}
    server = tf.distribute.Server(
        tf.train.ClusterSpec(cluster),
        job_name="ps",
        task_index=int(sys.argv[2]),
    )
    print("ready", flush=True)
    server.join()
