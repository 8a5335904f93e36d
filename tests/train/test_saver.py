"""Savers, optimizers and names of `embedra.train`."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb
import embedra.dynamic_embedding as de
from embedra import train

from .clicks import Model


v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize("listed", [False, True])
def test_saver_saves_tables(tmp_path, listed):
    model = Model()
    variables = None
    if listed:
        variables = [*v1.global_variables(), model.users]
        variables += v1.trainable_variables()
        variables = list({id(v): v for v in variables}.values())
    saver = train.Saver(variables)
    remove = model.users.clear()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run([model.train])
        path = saver.save(session, str(tmp_path / "model"), 1)
        session.run(remove)
        assert session.run(model.size) == 0
        saver.restore(session, path)
        assert session.run(model.size) == 3


def test_saver_keeps_what_it_is_told_before_what_scopes_say():
    Model()
    with hb.scope(keep_checkpoint_max=2, keep_checkpoint_every_n_hours=0.5):
        savers = [
            train.Saver(),
            train.Saver(max_to_keep=3),
            train.Saver(None, False, False, 4),
            train.Saver(None, False, False, 4, 1.5),
        ]
    found = [saver.as_saver_def() for saver in savers]
    assert [one.max_to_keep for one in found] == [2, 3, 4, 4]
    hours = [one.keep_checkpoint_every_n_hours for one in found]
    assert hours == [0.5, 0.5, 0.5, 1.5]
    assert train.Saver().as_saver_def().max_to_keep == 5


def test_default_saver_is_made_once():
    Model()
    train.replace_default_saver()
    train.replace_default_saver()
    (saver,) = v1.get_collection(v1.GraphKeys.SAVERS)
    assert isinstance(saver, train.Saver)
    v1.add_to_collection(v1.GraphKeys.SAVERS, train.Saver())
    with pytest.raises(ValueError, match="2 savers"):
        train.replace_default_saver()


NAMES = sorted(
    name
    for name in dir(v1.train)
    if name.endswith("Optimizer")
    and name not in ("Optimizer", "SyncReplicasOptimizer")
)


def arguments(name):
    if name == "MomentumOptimizer":
        return {"momentum": 0.9}
    if name == "AdagradDAOptimizer":
        return {"global_step": v1.train.get_or_create_global_step()}
    return {}


def trained(optimizer):
    """Rows and losses after some steps."""
    with tf.Graph().as_default():
        made = optimizer()
        model = Model(made)
        rows = model.users.lookup(tf.range(6, dtype=tf.int64))
        with v1.train.MonitoredSession() as session:
            losses = [
                session.run([model.loss, model.train])[0] for _ in range(4)
            ]
            return session.run(rows), losses


@pytest.mark.parametrize("name", NAMES)
def test_every_optimizer_of_tensorflow_trains_tables(name):
    cls = getattr(train, name)
    assert issubclass(cls, getattr(v1.train, name))

    def plain():
        optimizer = getattr(v1.train, name)(0.1, **arguments(name))
        return de.DynamicEmbeddingOptimizer(optimizer)

    rows, losses = trained(lambda: cls(0.1, **arguments(name)))
    np.testing.assert_array_equal(rows, trained(plain)[0])
    assert losses[-1] != losses[0]
    assert np.ptp(rows) > 0


@pytest.mark.parametrize(
    "name", ["SyncReplicasOptimizer", "wraps_monitored_training_session"]
)
def test_names_that_are_gone_say_what_to_use(name):
    with pytest.raises(AttributeError, match=f"{name}.*hybridbackend.md"):
        getattr(train, name)


def test_unknown_name_is_an_error_as_ever():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        _ = train.nonsense


def click_model(features, labels):
    """A model with a Keras layer over a table, in a TF1 graph."""
    layer = hb.layers.Embedding(
        2, combiner="sum", name="users", embeddings_initializer="random_normal"
    )
    scores = tf.reduce_sum(layer(features, training=True), axis=1)
    loss = tf.reduce_mean((scores - labels) ** 2)
    adagrad = hb.DynamicEmbeddingOptimizer(v1.train.AdagradOptimizer(0.1))
    step = v1.train.get_or_create_global_step()
    return layer, scores, loss, adagrad.minimize(loss, global_step=step)


IDS, LABELS = np.array([[1, 2], [3, 1]]), np.float32([1, 0])


def test_tables_of_keras_layers_are_saved_and_restored(tmp_path):
    _, scores, _, step = click_model(tf.constant(IDS), tf.constant(LABELS))
    saver = train.Saver()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(step)
        path = saver.save(session, str(tmp_path / "model"))
        expected = session.run(scores)
    shapes = dict(tf.train.list_variables(path))
    assert (shapes["users/rows"], shapes["users/slots"]) == ([3, 2], [3, 2])
    with tf.Graph().as_default(), v1.Session() as session:
        _, scores, _, step = click_model(tf.constant(IDS), tf.constant(LABELS))
        saver = train.Saver()
        session.run(v1.global_variables_initializer())
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(scores), expected)
    # Slots of optimizers aside, a Keras model takes it too.
    with tf.__internal__.eager_context.eager_mode():
        layer = hb.layers.Embedding(2, combiner="sum", name="users")
        model = hb.wraps(keras.Sequential)([layer])
        model(IDS)
        report = model.load_weights(tmp_path, scope="users")
        rows = model(IDS).numpy().sum(axis=1)
    assert report.tables == ["users"]
    np.testing.assert_allclose(rows, expected, rtol=1e-6)


def test_tables_of_variables_are_saved_once(tmp_path):
    model = Model()
    saver = train.Saver()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run([model.train])
        path = saver.save(session, str(tmp_path / "model"))
    keys = [n for n, _ in tf.train.list_variables(path) if n.endswith("/keys")]
    assert keys == ["users/keys"]


def test_estimators_keep_the_tables_of_keras_layers(tmp_path):
    def model_fn(features, labels, mode):
        labels = tf.constant(LABELS) if labels is None else labels
        _, scores, loss, step = click_model(features, labels)
        return hb.estimator.EstimatorSpec(
            mode, predictions=scores, loss=loss, train_op=step
        )

    def input_fn():
        return tf.data.Dataset.from_tensors((IDS, LABELS)).repeat(2)

    def predictions():
        made = hb.estimator.Estimator(model_fn, model_dir=str(tmp_path))
        return made, list(made.predict(input_fn))

    estimator = hb.estimator.Estimator(model_fn, model_dir=str(tmp_path))
    estimator.train(input_fn, steps=2)
    _, first = predictions()
    _, second = predictions()
    assert first == second
    size = dict(tf.train.list_variables(str(tmp_path)))["users/keys"]
    assert size == [3]
