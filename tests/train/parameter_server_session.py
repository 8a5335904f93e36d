"""A process of a cluster; run with the cluster, its task, and a folder."""

import json
import sys

import tensorflow as tf

import embedra as hb
from embedra import dynamic_embedding as de, train


v1 = tf.compat.v1


def main(workers, servers, task_type, folder):
    hb.context.set_tf_config(task_type, 0, workers, servers)
    if task_type == "ps":
        server = train.Server.get()
        print("ready", flush=True)
        server.join()
    with tf.Graph().as_default():
        users = de.get_variable(
            "users", dim=2, initializer=0.1, devices=["/job:ps/task:0"]
        )
        rows = de.embedding_lookup(users, tf.constant([7, 8], tf.int64))
        step = v1.train.get_or_create_global_step()
        minimize = train.AdamOptimizer(0.1).minimize(
            tf.reduce_sum(rows**2), global_step=step
        )
        size = users.size()
        with train.monitored_session(
            checkpoint_dir=folder, log_step_count_steps=None
        ) as session:
            for _ in range(3):
                session.run(minimize)
            print(hb.context.task_type, *session.run([step, size]), flush=True)


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
