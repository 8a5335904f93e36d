"""A training that is stopped and goes on equals one that never stopped."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb
from click_training import (
    Network,
    assert_same_state,
    compiled,
    data,
    functional,
)
from embedra.keras._continued_data import continued


FORMS = {"subclass": Network, "functional": functional}


class StopAfter(keras.callbacks.Callback):
    """Breaks a training after so many steps, as a crash does."""

    def __init__(self, steps):
        super().__init__()
        self.left = steps

    def on_train_batch_begin(self, batch, logs=None):
        del batch, logs
        if self.left == 0:
            message = "crash"
            raise RuntimeError(message)
        self.left -= 1


def fit(model, folder, **kwargs):
    kwargs = {"epochs": 3, "verbose": 0} | kwargs
    return model.fit(data(), checkpoint_dir=folder, **kwargs)


@pytest.mark.parametrize(
    ("form", "crash_at"), [("subclass", 9), ("functional", 12)]
)
def test_a_training_goes_on_at_the_step_that_was_saved(
    form, crash_at, tmp_path
):
    # One with validation is enough, which takes long to trace.
    validation = {"validation_data": data(2)} if form == "subclass" else {}
    straight = compiled(FORMS[form]())
    whole = fit(straight, tmp_path / "straight", **validation).history
    with pytest.raises(RuntimeError, match="crash"):
        fit(
            compiled(FORMS[form]()),
            tmp_path / "broken",
            save_checkpoints_steps=2,
            callbacks=[StopAfter(crash_at)],
            **validation,
        )
    model = compiled(FORMS[form]())
    rest = fit(
        model, tmp_path / "broken", save_checkpoints_steps=2, **validation
    )
    assert_same_state(model, straight)
    epoch = crash_at // 6
    assert rest.epoch == list(range(epoch, 3))
    for name, values in rest.history.items():
        assert values == whole[name][epoch:], name


def test_epochs_done_are_not_done_again_and_more_can_be_added(tmp_path):
    straight = compiled()
    straight.fit(data(), epochs=4, verbose=0)
    half = compiled()
    fit(half, tmp_path, epochs=2)
    again = compiled()
    # With nothing left to train, weights are loaded.
    assert fit(again, tmp_path, epochs=2).history == {}
    ids = np.array([[1, 2, 3], [70, 800, 9]])
    np.testing.assert_array_equal(
        again.predict(ids, verbose=0), half.predict(ids, verbose=0)
    )
    fit(again, tmp_path, epochs=4)
    assert_same_state(again, straight)


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
@pytest.mark.parametrize(
    "source",
    [lambda: data(10), lambda: (batch for batch in data(20))],
    ids=["short last epoch", "generator"],
)
def test_data_read_on_from_epoch_to_epoch_are_read_on(source, tmp_path):
    kwargs = {"steps_per_epoch": 4, "verbose": 0}
    straight = compiled()
    straight.fit(source(), epochs=4, **kwargs)
    for epochs in (2, 4):
        model = compiled()
        model.fit(source(), epochs=epochs, checkpoint_dir=tmp_path, **kwargs)
    assert_same_state(model, straight)


@pytest.mark.parametrize(
    ("batches", "epoch", "expected"),
    [
        (4, 3, (0, None)),  # each epoch is a pass
        (3, 3, (0, None)),
        (8, 3, (4, None)),  # two epochs are one
        (10, 2, (8, 2)),  # three, of which the last has two steps
        (10, 4, (4, 6)),
        (None, 3, (12, None)),
    ],
)
def test_where_the_data_of_an_epoch_begin(batches, epoch, expected):
    numbers = tf.data.Dataset.range(batches or 1)
    if batches is None:
        numbers = numbers.repeat()
    found = continued(numbers, 4, epoch)
    assert (found.pass_over, found.length) == expected
    assert continued(numbers, None, epoch) == (numbers, 0, None)


def test_steps_per_execution_go_on_too(tmp_path):
    straight = compiled(steps_per_execution=2)
    straight.fit(data(), epochs=3, verbose=0)
    settings = {"save_checkpoints_steps": 2}
    with pytest.raises(RuntimeError, match="crash"):
        fit(
            compiled(steps_per_execution=2),
            tmp_path / "broken",
            callbacks=[StopAfter(5)],
            **settings,
        )
    model = compiled(steps_per_execution=2)
    fit(model, tmp_path / "broken", **settings)
    assert_same_state(model, straight)


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_arrays_dicts_and_generators_are_trained_on(tmp_path):
    ids, labels = zip(*data().unbatch().as_numpy_iterator(), strict=True)
    ids, labels = np.array(ids), np.array(labels)
    tensor = keras.Input((3,), dtype="int64", name="ids")
    rows = hb.layers.Embedding(2, combiner="sum")(tensor)
    model = hb.keras.Model({"ids": tensor}, keras.layers.Dense(1)(rows))
    model.compile("sgd", "mse")
    for number, (x, y) in enumerate(
        [
            ({"ids": ids}, labels),
            (data().map(lambda x, y: ({"ids": x}, y)), None),
            ((({"ids": x.numpy()}, y.numpy()) for x, y in data()), None),
        ]
    ):
        folder = tmp_path / str(number)
        history = model.fit(x, y, verbose=0, checkpoint_dir=folder)
        assert np.isfinite(history.history["loss"]).all()
        assert tf.train.latest_checkpoint(folder).endswith("ckpt-1")


def test_another_model_cannot_go_on(tmp_path):
    fit(compiled(functional()), tmp_path)
    other = compiled(functional(hidden="other"))
    with pytest.raises(hb.keras.MismatchError, match="hidden/kernel"):
        fit(other, tmp_path, epochs=5)


def test_stock_checkpoints_read_what_fit_wrote(tmp_path):
    model = compiled(functional())
    fit(model, tmp_path)
    other = compiled(functional())
    other.optimizer.build(other.trainable_variables)
    status = tf.train.Checkpoint(
        model=other, optimizer=other.optimizer
    ).restore(tf.train.latest_checkpoint(tmp_path))
    status.assert_existing_objects_matched()
    np.testing.assert_array_equal(
        other.get_layer("score").kernel, model.get_layer("score").kernel
    )
    assert table_size(other) == table_size(model) > 20


def table_size(model):
    return int(model.get_layer("rows").table.size())
