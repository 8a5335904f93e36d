"""Variables and columns that are split over ranks, against whole ones."""

import keras
import numpy as np
import tensorflow as tf

import embedra as hb
import embedra.compat.v1 as tf1
import embedra.dynamic_embedding as de
from embedra.distribute import job_communicator, owned
from embedra.dynamic_embedding.embedding_variable import (
    CounterFilter,
    EmbeddingVariable,
    EmbeddingVariableOption,
)


BATCH = 12
comm = job_communicator()
RANK, SIZE = comm.rank, comm.size
assert BATCH % SIZE == 0
PART = slice(RANK * BATCH // SIZE, (RANK + 1) * BATCH // SIZE)
EVERYTHING = slice(0, BATCH)

rng = np.random.default_rng(1)
USERS = rng.integers(0, 8, BATCH)
WORDS = np.array([["a", "b"], ["c", ""], ["", ""]] * (BATCH // 3))
LABELS = rng.normal(size=(BATCH, 1)).astype(np.float32)


def same_on_all(value):
    return int(comm.all_reduce(tf.constant(int(value), tf.int64)))


def columns():
    fc = tf1.feature_column
    user = fc.categorical_column_with_embedding("user", dtype=tf.int64)
    words = fc.categorical_column_with_embedding("words", dtype=tf.string)
    start = tf1.random_uniform_initializer(-1, 1)
    return [
        fc.embedding_column(user, dimension=3, initializer=start),
        fc.embedding_column(words, dimension=2, initializer=start),
    ]


def features(part):
    return {"user": tf.constant(USERS[part]), "words": tf.constant(WORDS[part])}


def graph_rows(part, **options):
    """What columns of a TF1 graph give for all data after some steps."""
    with tf.Graph().as_default():
        with hb.embedding_scope(seed=1, **options), tf1.variable_scope("in"):
            x = tf1.feature_column.input_layer(features(part), columns())
        loss = tf.reduce_mean((tf.reduce_sum(x, 1) - LABELS[part, 0]) ** 2)
        train = tf1.train.AdagradOptimizer(0.5).minimize(
            loss, global_step=tf1.train.get_or_create_global_step()
        )
        with (
            comm.chain("all rows"),
            hb.embedding_scope(seed=1, **options),
            tf1.variable_scope("in", reuse=True),
        ):
            rows = tf1.feature_column.input_layer(
                features(EVERYTHING), columns()
            )
        with tf1.Session() as session:
            session.run(tf1.global_variables_initializer())
            session.run(tf1.tables_initializer())
            for _ in range(3):
                session.run(train)
            return session.run(rows)


def check_columns_of_graphs():
    split = graph_rows(PART)
    np.testing.assert_allclose(
        split, graph_rows(EVERYTHING, sharding=False), rtol=1e-5, atol=1e-6
    )


def trained(make, part):
    """What lookups give for all data after some steps."""
    rows, variables, optimizer = make()
    for _ in range(3):
        with tf.GradientTape() as tape:
            x = tf.reduce_sum(rows(part), 1)
            loss = tf.reduce_mean((x - LABELS[part, 0]) ** 2)
        gradients = tape.gradient(loss, variables())
        optimizer.apply_gradients(zip(gradients, variables(), strict=True))
    return rows(EVERYTHING).numpy()


def check_same(make):
    split = trained(make, PART)
    with hb.scope(sharding=False):
        whole = trained(make, EVERYTHING)
    np.testing.assert_allclose(split, whole, rtol=1e-5, atol=1e-6)


def optimizer():
    return de.DynamicEmbeddingOptimizer(keras.optimizers.Adagrad(0.5))


def variables():
    start = keras.initializers.RandomUniform(-1, 1, seed=2)
    user = de.Variable(dim=3, name="user", initializer=start)
    words = de.Variable(
        key_dtype=tf.string, dim=2, name="words", initializer=start
    )

    def rows(part):
        sparse = tf.sparse.from_dense(WORDS[part])
        return tf.concat(
            [
                de.embedding_lookup(user, USERS[part]),
                de.safe_embedding_lookup_sparse(words, sparse),
            ],
            1,
        )

    def trainables():
        return [user.trainable_of(None), words.trainable_of(None)]

    return rows, trainables, optimizer()


def layers():
    start = keras.initializers.RandomUniform(-1, 1, seed=2)
    layer = de.keras.layers.HvdAllToAllEmbedding(
        embedding_size=3, initializer=start, name="user"
    )
    squashed = de.keras.layers.SquashedEmbedding(
        2, tf.string, initializer=start, name="words"
    )

    def rows(part):
        return tf.concat(
            [layer(USERS[part]), squashed(tf.constant(WORDS[part]))], 1
        )

    def trainables():
        return layer.trainable_variables + squashed.trainable_variables

    return rows, trainables, optimizer()


def dense_features():
    with hb.scope(seed=1):
        layer = hb.keras.layers.DenseFeatures(columns(), name="features")

    def rows(part):
        return layer(features(part))

    return rows, lambda: layer.trainable_variables, optimizer()


def check_rows_by_hand():
    user = de.Variable(dim=2, name="by_hand")
    keys = np.arange(20)
    values = np.tile(keys[:, None], 2).astype(np.float32)
    user.upsert(keys, values)
    own = owned(keys, comm).numpy()
    assert int(user.size()) == own.sum() < 20
    np.testing.assert_array_equal(de.embedding_lookup(user, keys), values)
    # Its methods are about what is here.
    np.testing.assert_array_equal(
        user.lookup(keys), values * own[:, None].astype(np.float32)
    )


def check_bound():
    user = de.Variable(
        dim=2,
        name="bounded",
        kv_creator=de.HkvHashTableCreator(
            de.HkvHashTableConfig(max_capacity=64 * SIZE + 1)
        ),
    )
    assert user.tables[0].bound.max_capacity == 64 + (RANK == 0)


def check_admission():
    option = EmbeddingVariableOption(filter_option=CounterFilter(SIZE))
    user = EmbeddingVariable("admitted", 2, initializer=1.0, ev_option=option)
    # All ranks bring 7, one brings 8.
    ids = tf.constant([7, 8] if RANK == 0 else [7])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(user.rows(ids))
    tape.gradient(loss, user.trainable_variable)
    assert same_on_all(user.size()) == 1
    np.testing.assert_array_equal(user.rows([7, 8]), [[1, 1], [0, 0]])


def check_devices_are_refused():
    try:
        de.Variable(dim=2, devices=["/CPU:0", "/CPU:0"], name="two")
    except ValueError as error:
        assert "2 devices" in str(error)  # noqa: PT017
        return
    msg = "several devices were taken in a job"
    raise AssertionError(msg)


def check_broadcast():
    keras.utils.set_random_seed(RANK)
    ids = keras.Input((2,), dtype="int64")
    rows = de.keras.layers.SquashedEmbedding(4, name="ids")(ids)
    model = keras.Model(ids, keras.layers.Dense(1)(rows))
    model.compile(optimizer(), "mse")
    callback = de.keras.callbacks.DEHvdBroadcastGlobalVariablesCallback(0)
    x = np.arange(8).reshape(4, 2) + RANK
    model.fit(x, np.ones((4, 1)), batch_size=4, verbose=0, callbacks=[callback])
    kernels, _ = comm.all_gather_v(model.layers[-1].kernel.value[None])
    assert np.ptp(kernels.numpy(), axis=0).max() == 0


check_columns_of_graphs()
for make in (variables, layers, dense_features):
    check_same(make)
check_rows_by_hand()
check_bound()
check_admission()
check_devices_are_refused()
check_broadcast()
print("passed", flush=True)
