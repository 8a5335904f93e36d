"""The best epoch of a training: by which log, and as what the model is left."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb
from click_training import compiled, data, functional, table_of


IDS = np.array([[1, 2, 3], [9, 4, 1], [10**12, 5, 6]])


class Scored(keras.callbacks.Callback):
    """Adds a log: what users measure by code of their own."""

    def __init__(self, values, name="val_ndcg"):
        super().__init__()
        self.values = values
        self.name = name
        self.predictions = []

    def on_epoch_end(self, epoch, logs=None):
        logs[self.name] = self.values[epoch]
        self.predictions.append(self.model(IDS, training=False).numpy())


def fit(model, folder, callbacks, **options):
    options = {"epochs": 4, "monitor": "val_ndcg", "verbose": 0} | options
    return model.fit(
        data(2),
        callbacks=callbacks,
        checkpoint_dir=folder,
        save_best_only=True,
        **options,
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model left as that of its best epoch, the second of four."""
    folder = tmp_path_factory.mktemp("best")
    model, scored = compiled(functional()), Scored([0.5, 0.9, 0.7, 0.6])
    history = fit(model, folder, [scored], restore_best_weights=True)
    assert history.epoch == [0, 1, 2, 3]
    return model, folder, scored.predictions


def test_the_model_is_left_as_that_of_the_best_epoch(trained, tmp_path):
    model, _, (_, best, _, last) = trained
    answer = model.predict(IDS, verbose=0)
    np.testing.assert_allclose(answer, best, rtol=1e-5)
    assert not np.allclose(answer, last, rtol=1e-5)
    exported = tf.saved_model.load(model.export_saved_model(tmp_path).path)
    served = exported.serve(IDS)
    np.testing.assert_allclose(served, best, rtol=1e-5)


@pytest.mark.parametrize("built", [True, False])
def test_with_nothing_left_to_train_it_is_that_of_the_best_too(trained, built):
    _, folder, (_, best, _, last) = trained
    for restore, expected in ((True, best), (False, last)):
        model = compiled(functional())
        if not built:
            model = keras.models.clone_model(model)
            model = compiled(model)
        fit(model, folder, [Scored([])], restore_best_weights=restore)
        answer = model.predict(IDS, verbose=0)
        np.testing.assert_allclose(answer, expected, rtol=1e-5)


def test_the_best_is_exported_from_the_folder_of_the_training(
    trained, tmp_path
):
    _, folder, (_, best, *_) = trained
    model = compiled(functional())
    path = model.export_saved_model(tmp_path, checkpoint_path=folder).path
    exported = tf.saved_model.load(path)
    np.testing.assert_allclose(exported.serve(IDS), best, rtol=1e-5)


def test_restoring_the_best_needs_that_it_is_kept(tmp_path):
    model = compiled(functional())
    with pytest.raises(ValueError, match="needs save_best_only=True"):
        model.fit(data(1), checkpoint_dir=tmp_path, restore_best_weights=True)
    with pytest.raises(ValueError, match="restore_best_weights.*checkpoint_di"):
        model.fit(data(1), restore_best_weights=True)
    assert int(table_of(model).size()) == 0


def test_a_log_that_no_callback_adds_after_all_is_told_by_the_first_epoch(
    tmp_path,
):
    model, scored = compiled(functional()), Scored([0.5], name="val_other")
    with pytest.raises(ValueError, match=r"auc, loss, val_other.*'val_ndcg'"):
        fit(model, tmp_path, [scored])
    assert len(scored.predictions) == 1


@pytest.mark.parametrize(
    "callback",
    [
        hb.keras.callbacks.TableProgress(),
        keras.callbacks.LearningRateScheduler(lambda _: 0.1),
    ],
    ids=["progress", "schedule"],
)
def test_logs_of_callbacks_that_are_known_are_checked_before_training(
    callback, tmp_path
):
    model = compiled(functional())
    with pytest.raises(ValueError, match="table_rows|learning_rate"):
        fit(model, tmp_path, [callback], monitor="val_ndcg")
    assert int(table_of(model).size()) == 0


@pytest.mark.parametrize(
    ("callback", "name"),
    [
        (hb.keras.callbacks.TableProgress(), "table_rows"),
        (hb.keras.callbacks.TableProgress(each=True), "table_rows/rows"),
    ],
    ids=["all", "each"],
)
def test_rows_of_tables_may_be_monitored(callback, name, tmp_path):
    model = compiled(functional())
    fit(model, tmp_path, callback, monitor=name, mode="max", epochs=1)
    saved = str(tmp_path / "ckpt-1")
    best = tf.train.load_variable(saved, "best/.ATTRIBUTES/VARIABLE_VALUE")
    assert best == int(table_of(model).size()) > 0
