"""Callbacks that watch tables, and Keras's own that save models."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb
from click_training import (
    Network,
    compiled,
    data,
    functional,
    records,
    table_of,
)


STEPS = 3


def summaries(folder):
    """The numbers that were written: by tag, and by step in each."""
    found = {}
    (path,) = (folder / "tables").iterdir()
    for record in tf.data.TFRecordDataset(str(path)):
        event = tf.compat.v1.Event.FromString(record.numpy())
        for value in event.summary.value:
            metadata = value.metadata.plugin_data.plugin_name
            assert metadata in ("scalars", ""), "TensorBoard shows no other"
            number = float(tf.make_ndarray(value.tensor))
            found.setdefault(value.tag, {})[event.step] = number
    return found


def fit(model, *callbacks, epochs=2, **kwargs):
    return model.fit(
        data(STEPS),
        epochs=epochs,
        verbose=0,
        shuffle=False,
        callbacks=list(callbacks),
        **kwargs,
    ).history


def test_a_summary_has_what_happened_in_each_epoch(tmp_path):
    model = compiled()
    fit(model, hb.keras.callbacks.TableSummary(tmp_path))
    found = summaries(tmp_path)
    table = table_of(model)
    statistics = table.statistics()
    ids = sum(x.shape.num_elements() for x, _ in data(STEPS))
    size = float(table.size())
    assert found["rows/rows"] == {STEPS: size, 2 * STEPS: size}
    assert found["rows/bytes"][2 * STEPS] == statistics.bytes
    # All ids are new in the first epoch, and known in the second.
    assert found["rows/inserts"] == {STEPS: size, 2 * STEPS: 0.0}
    assert found["rows/hits"][2 * STEPS] == ids
    assert found["rows/misses"][2 * STEPS] == 0.0
    assert found["rows/hit_rate"][2 * STEPS] == 1.0
    assert found["rows/removes"] == {STEPS: 0.0, 2 * STEPS: 0.0}
    assert sum(found["rows/updates"].values()) == statistics.updates
    (records,) = table.export_chunks()
    norms = np.linalg.norm(records.rows, axis=1)
    last = {tag: steps[2 * STEPS] for tag, steps in found.items()}
    assert last["rows/row_norm"] == pytest.approx(norms.mean(), rel=1e-6)
    assert last["rows/row_norm_max"] == pytest.approx(norms.max(), rel=1e-6)
    velocity = np.linalg.norm(records.slots[:, 4:], axis=1)
    assert last["rows/slot_norm/velocity"] == pytest.approx(
        velocity.mean(), rel=1e-6
    )


def test_a_summary_counts_removals_and_evictions(tmp_path):
    model = compiled()
    model(next(iter(data()))[0])

    class Remove(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            del epoch, logs
            table_of(model).restrict(5)

    fit(model, Remove(), hb.keras.callbacks.TableSummary(tmp_path), epochs=1)
    found = summaries(tmp_path)
    assert found["rows/rows"] == {STEPS: 5.0}
    removed = found["rows/inserts"][STEPS] - 5
    assert found["rows/removes"] == {STEPS: removed}
    assert found["rows/evictions"] == {STEPS: 0.0}


@pytest.mark.parametrize("steps_per_execution", [1, 2])
def test_a_summary_can_be_written_every_so_many_steps(
    tmp_path, steps_per_execution
):
    model = compiled(steps_per_execution=steps_per_execution)
    summary = hb.keras.callbacks.TableSummary(
        tmp_path, every_n_steps=4, sample=0
    )
    model.fit(data(10), verbose=0, callbacks=[summary])
    found = summaries(tmp_path)
    assert list(found["rows/rows"]) == [4, 8, 10]
    assert sum(found["rows/inserts"].values()) == table_of(model).size()
    assert "rows/row_norm" not in found


def test_a_summary_goes_on_at_the_step_of_a_continued_training(tmp_path):
    for epochs in (1, 2):
        summary = hb.keras.callbacks.TableSummary(tmp_path / str(epochs))
        fit(
            compiled(),
            summary,
            epochs=epochs,
            checkpoint_dir=tmp_path / "state",
        )
    assert list(summaries(tmp_path / "1")["rows/rows"]) == [STEPS]
    assert list(summaries(tmp_path / "2")["rows/rows"]) == [2 * STEPS]


def test_tables_of_one_name_are_told_apart(tmp_path):
    class Two(keras.Model):
        def __init__(self):
            super().__init__()
            self.inside = [Network(), Network()]

        def call(self, ids):
            return self.inside[0](ids) + self.inside[1](ids)

    model = compiled(Two())
    progress = hb.keras.callbacks.TableProgress(each=True)
    history = fit(
        model, hb.keras.callbacks.TableSummary(tmp_path), progress, epochs=1
    )
    found = summaries(tmp_path)
    size = float(table_of(model.inside[0]).size())
    assert found["rows/rows"] == found["rows_1/rows"] == {STEPS: size}
    assert history["table_rows"] == [2 * size]
    assert history["table_rows/rows_1"] == [size]


@pytest.mark.parametrize("given", [{"every_n_steps": 0}, {"sample": -1}])
def test_numbers_of_a_summary_are_checked(given, tmp_path):
    with pytest.raises(ValueError, match=f"`{next(iter(given))}`"):
        hb.keras.callbacks.TableSummary(tmp_path, **given)


def test_progress_shows_rows_and_keeps_the_history(capsys):
    plain = fit(compiled())
    model = compiled()
    progress = hb.keras.callbacks.TableProgress()
    history = model.fit(
        data(STEPS), epochs=2, callbacks=[progress], verbose=1
    ).history
    size = table_of(model).size()
    assert history.pop("table_rows") == [size, size]
    assert history == plain
    shown = capsys.readouterr().out
    assert f"table_rows: {size}.0000" in shown
    # Also between: after the first step.
    ids, _ = next(iter(data(STEPS)))
    first = len(np.unique(ids))
    assert f"table_rows: {first}.0000" in shown


def test_rows_can_be_monitored():
    class Seen(keras.callbacks.EarlyStopping):
        """Stops when no more rows come."""

    stop = Seen(monitor="table_rows", mode="max", patience=0)
    history = fit(
        compiled(), hb.keras.callbacks.TableProgress(), stop, epochs=5
    )
    assert len(history["loss"]) == 2


def test_a_model_without_tables_shows_none():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    progress = hb.keras.callbacks.TableProgress()
    assert set(fit(model, progress)) == {"loss"}


@pytest.mark.parametrize("form", [Network, functional])
@pytest.mark.parametrize("ending", [".keras", ".weights.h5"])
def test_model_checkpoints_of_keras_hold_tables(form, ending, tmp_path):
    path = tmp_path / f"best{ending}"
    model = compiled(form())
    saving = keras.callbacks.ModelCheckpoint(
        path, save_weights_only=ending == ".weights.h5"
    )
    fit(model, saving)
    if ending == ".keras" and form is functional:
        loaded = keras.saving.load_model(path)
    else:
        loaded = compiled(form())
        loaded(np.array([[1, 2, 3]]))
        loaded.load_weights(path)
    # All but the random state of dropout, which Keras keeps out of its files.
    for one, other in zip(records(loaded), records(model), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(variables(loaded), variables(model), strict=True):
        np.testing.assert_array_equal(one, other)


def variables(model):
    found = [*model.weights, *model.optimizer.variables]
    return [variable for variable in found if 0 not in variable.shape]


def test_model_checkpoints_of_keras_keep_the_best_epoch(tmp_path):
    path = tmp_path / "best.keras"
    model = compiled(functional())
    sizes = []

    class Grow(keras.callbacks.Callback):
        """Changes the table, so that epochs are told apart by it."""

        def on_epoch_end(self, epoch, logs=None):
            logs["score"] = [1.0, 3.0, 2.0][epoch]
            table_of(model).assign([10**6 + epoch], np.ones((1, 4)))
            sizes.append(table_of(model).size())

    saving = keras.callbacks.ModelCheckpoint(
        path, monitor="score", mode="max", save_best_only=True
    )
    fit(model, Grow(), saving, epochs=3)
    loaded = keras.saving.load_model(path)
    assert table_of(loaded).size() == sizes[1] < sizes[2]
