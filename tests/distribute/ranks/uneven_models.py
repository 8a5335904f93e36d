"""What estimators train on where ranks have uneven data, in tests."""

import numpy as np

import embedra as hb
import embedra.compat.v1 as tf
import embedra.dynamic_embedding as de


ROWS = 40

_numbers = np.random.default_rng(5)
USERS = _numbers.integers(0, 12, ROWS)
AGES = _numbers.random((ROWS, 2)).astype(np.float32)
CLICKS = _numbers.random(ROWS).astype(np.float32)
LISTS = [_numbers.integers(0, 9, 1 + row % 3).tolist() for row in range(ROWS)]

# How many rows the batches of each rank have.
SIZES = [[3, 1, 0, 0, 3, 2], [4, 0, 0, 4], []]

OPTIMIZERS = {
    "sgd": lambda: hb.train.GradientDescentOptimizer(0.2),
    "adagrad": lambda: hb.train.AdagradOptimizer(0.2),
    "adam": lambda: hb.train.AdamOptimizer(0.05),
}


def batches(rank):
    """Returns the rows of the batches of a rank: those of no other."""
    before = sum(map(sum, SIZES[:rank]))
    ends = before + np.cumsum([0, *SIZES[rank]])
    return [np.arange(*pair) for pair in zip(ends, ends[1:], strict=False)]


def joined(ranks):
    """Returns the rows of each step of several ranks, for one process."""
    parts = [batches(rank) for rank in range(ranks)]
    steps = [
        np.concatenate([part[i] for part in parts if i < len(part)])
        for i in range(max(map(len, parts)))
    ]
    return [rows for rows in steps if len(rows)]


def input_fn(rows_of_batches):
    """Gives an input function: dense, ragged and sparse features, nested."""

    def columns(rows):
        lists = tf.gather(tf.ragged.constant(LISTS, tf.int64), rows)
        features = {
            "user": (tf.gather(USERS, rows),),
            "age": tf.gather(AGES, rows),
            "seen": lists,
            "tags": lists.to_sparse(),
        }
        return features, tf.gather(CLICKS, rows)

    def give():
        rows = tf.data.Dataset.from_generator(
            lambda: iter(rows_of_batches),
            output_signature=tf.TensorSpec([None], tf.int64),
        )
        return rows.map(columns)

    return give


def model_fn(features, labels, mode, params):
    user, tag = (de.get_variable(name, dim=2) for name in ("user", "tag"))
    seen = features["seen"]
    of_seen = seen.with_values(de.embedding_lookup(tag, seen.values))
    x = tf.concat(
        [
            de.embedding_lookup(user, features["user"][0]),
            tf.reduce_sum(of_seen, axis=1),
            de.embedding_lookup_sparse(
                tag, features["tags"], None, combiner="mean"
            ),
            features["age"],
        ],
        axis=1,
    )
    weights = tf.get_variable("weights", (8, 1))
    bias = tf.get_variable("bias", (), initializer=tf.zeros_initializer())
    score = tf.squeeze(x @ weights, axis=1) + bias
    # Of no examples, it is no number.
    loss = tf.reduce_mean((score - labels) ** 2)
    optimizer = OPTIMIZERS[params["optimizer"]]()
    pairs = optimizer.compute_gradients(loss)
    if params.get("clip"):
        gradients, variables = zip(*pairs, strict=True)
        gradients, _ = tf.clip_by_global_norm(gradients, 1e6)
        pairs = zip(gradients, variables, strict=True)
    step = tf.train.get_global_step()
    train_op = optimizer.apply_gradients(pairs, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def averaging_model_fn(features, labels, mode, params):
    """Follows the mean of batches, as batch normalization does."""
    mean = tf.get_variable("moving_mean", (2,), trainable=False)
    weights = tf.get_variable("weights", (2,))
    now = tf.reduce_mean(features["age"], axis=0)
    update = mean.assign_sub(0.1 * (mean - now))
    score = tf.linalg.matvec(features["age"], weights)
    loss = tf.reduce_mean((score - labels) ** 2)
    with tf.control_dependencies([update]):
        train_op = OPTIMIZERS[params["optimizer"]]().minimize(
            loss, tf.train.get_global_step()
        )
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


# By what each estimator begins with what another has learnt, and which.
WARM_STARTS = {
    "one": ("source", ".*"),
    "both": ("adam", ".*"),
    "slots": ("source", ["user", "tag", "weights", "bias"]),
}


def make(folder, optimizer, model=model_fn, warm=None):
    """Makes an estimator that tells the loss of each step."""
    config = hb.estimator.RunConfig(
        save_checkpoints_secs=None,
        save_summary_steps=1,
        log_step_count_steps=None,
    )
    params = {"optimizer": optimizer, "clip": optimizer == "adagrad"}
    if warm is not None:
        warm = hb.estimator.WarmStartSettings(*warm)
    return hb.estimator.Estimator(
        model, str(folder), config, params, warm_start_from=warm
    )


def train(
    folder, optimizer, rows_of_batches, model=model_fn, warm=None, **arguments
):
    """Trains an estimator, and returns it."""
    estimator = make(folder, optimizer, model, warm)
    return estimator.train(input_fn(rows_of_batches), **arguments)


def iterated(give):
    """Gives an input function of tensors from one of a dataset."""
    return lambda: tf.data.make_one_shot_iterator(give()).get_next()


def train_session(folder, rows_of_batches, hooks=(), **arguments):
    """Trains in a monitored session; returns the losses of this rank."""
    losses = []
    with tf.Graph().as_default(), hb.scope(seed=1):
        tf.set_random_seed(1)
        tf.train.get_or_create_global_step()
        data = input_fn(rows_of_batches)()
        batch = tf.data.make_one_shot_iterator(data).get_next()
        spec = model_fn(*batch, "train", {"optimizer": "sgd"})
        with hb.train.monitored_session(
            hooks=hooks, checkpoint_dir=str(folder), **arguments
        ) as session:
            while not session.should_stop():
                _, loss = session.run([spec.train_op, spec.loss])
                losses.append(loss)
    return losses
