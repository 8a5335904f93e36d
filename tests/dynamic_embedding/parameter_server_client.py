"""What a program does with tables on servers; run with a cluster and a mode."""

import json
import sys

import keras
import numpy as np
import tensorflow as tf

import embedra.dynamic_embedding as de


v1 = tf.compat.v1

DEVICES = ["/job:ps/task:0", "/job:ps/task:1"]
IDS = [1, -2, 3, 4, 5, 5]


def step(variable, optimizer, ids):
    with tf.GradientTape() as tape:
        rows, trainable = de.embedding_lookup(
            variable, ids, return_trainable=True
        )
        loss = tf.reduce_sum(rows**2)
    gradients = tape.gradient(loss, [trainable])
    optimizer.apply_gradients(zip(gradients, [trainable], strict=True))
    return loss


def train(devices):
    variable = de.Variable(
        dim=3, name="v", initializer=0.5, devices=devices, init_size=10
    )
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.Adam(0.1))
    ids = tf.constant(IDS, tf.int64)
    in_function = tf.function(step)
    for run in (step, step, in_function, in_function):
        run(variable, optimizer, ids)
    return variable


def eager(cluster):
    tf.config.experimental_connect_to_cluster(
        tf.train.ClusterSpec(cluster), job_name="chief", task_index=0
    )
    remote, local = train(DEVICES), train(None)
    np.testing.assert_allclose(
        remote.lookup(IDS).numpy(), local.lookup(IDS).numpy(), rtol=1e-6
    )
    sizes = [int(remote.size(i)) for i in range(2)]
    assert min(sizes) > 0, sizes
    assert sum(sizes) == int(remote.size()) == int(local.size()) == 5
    keys, rows = remote.export()
    np.testing.assert_array_equal(sorted(keys.numpy()), [-2, 1, 3, 4, 5])
    assert rows.shape == (5, 3)
    remote.remove([1])
    assert int(remote.size()) == 4


def graph(cluster):
    """Two clients with graphs of their own have one table."""
    target = "grpc://" + cluster["ps"][0]
    for client in range(2):
        with tf.Graph().as_default():
            variable = de.Variable(
                dim=3, name="of_graphs", initializer=0.5, devices=DEVICES
            )
            # The graph's own ops run where the session is.
            with tf.device("/job:ps/task:0"):
                stored = variable.upsert([client, client + 10], np.ones((2, 3)))
                size = variable.size()
            with v1.Session(target) as session:
                session.run(stored)
                found = session.run(size)
                assert found == 2 * (client + 1), found


def monitored(cluster):
    """Trains and restricts in a monitored session; so does a local table."""
    results = []
    for target, devices in (
        ("grpc://" + cluster["ps"][0], DEVICES),
        ("", None),
    ):
        with tf.Graph().as_default(), v1.device(devices and devices[0]):
            variable = de.Variable(
                dim=3,
                name="of_monitored",
                initializer=0.5,
                devices=devices,
                restrict_policy=de.FrequencyRestrictPolicy,
            )
            rows = de.embedding_lookup(variable, tf.constant(IDS, tf.int64))
            optimizer = de.DynamicEmbeddingOptimizer(
                v1.train.AdamOptimizer(0.1)
            )
            step = v1.train.get_or_create_global_step()
            train_op = optimizer.minimize(tf.reduce_sum(rows**2), step)
            found = variable.lookup(IDS)
            size, removed = variable.size(), variable.restrict(2)
            with v1.train.MonitoredTrainingSession(target) as session:
                for _ in range(3):
                    session.run(train_op)
                results.append(session.run(found))
                assert len(session.run(removed)) == 3
                assert session.run(size) == 2
    np.testing.assert_allclose(*results, rtol=1e-6)


if __name__ == "__main__":
    modes = {"eager": eager, "graph": graph, "monitored": monitored}
    modes[sys.argv[2]](json.loads(sys.argv[1]))
    print("passed")
