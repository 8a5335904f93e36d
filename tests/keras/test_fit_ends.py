"""How a training with checkpoints is begun, left and ended in odd ways."""

import os
import signal

import keras
import pytest
import tensorflow as tf

import embedra as hb
from click_training import (
    BATCHES,
    Network,
    assert_same_state,
    compiled,
    data,
    functional,
)


def fit(model, folder, epochs=3, **kwargs):
    return model.fit(
        data(), epochs=epochs, verbose=0, checkpoint_dir=folder, **kwargs
    )


class StopAt(keras.callbacks.Callback):
    """Asks Keras to end the training at a step of the optimizer."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def on_train_batch_end(self, batch, logs=None):
        del batch, logs
        if int(self.model.optimizer.iterations) == self.step:
            self.model.stop_training = True


class Crash(keras.callbacks.Callback):
    """Raises after so many steps."""

    def __init__(self, steps):
        super().__init__()
        self.left = steps

    def on_train_batch_end(self, batch, logs=None):
        del batch, logs
        self.left -= 1
        if not self.left:
            message = "crash"
            raise RuntimeError(message)


def crashed(model, folder, steps):
    with pytest.raises(RuntimeError, match="crash"):
        fit(model, folder, save_checkpoints_steps=2, callbacks=[Crash(steps)])


def counted(steps):
    """A callback that notes steps in a list."""
    return keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, **_: steps.append(batch)
    )


@pytest.mark.parametrize("step", [8, 2 * BATCHES])
def test_an_epoch_that_a_callback_left_is_finished_by_the_next_fit(
    step, tmp_path
):
    validation = {"validation_data": data(2)}
    straight = compiled()
    whole = fit(straight, tmp_path / "straight", **validation).history
    fit(compiled(), tmp_path / "left", callbacks=[StopAt(step)], **validation)
    model = compiled()
    rest = fit(model, tmp_path / "left", **validation)
    assert_same_state(model, straight)
    assert rest.epoch == [1, 2]
    assert rest.history == {name: v[1:] for name, v in whole.items()}


def test_a_training_left_while_it_passes_steps_over_is_where_it_was(tmp_path):
    straight = compiled()
    fit(straight, tmp_path / "straight")
    crashed(compiled(), tmp_path / "broken", 11)
    fit(compiled(), tmp_path / "broken", callbacks=[StopAt(BATCHES + 4)])
    model = compiled()
    assert fit(model, tmp_path / "broken").epoch == [1, 2]
    assert_same_state(model, straight)


def test_an_initial_epoch_after_the_saved_one_begins_at_its_first_step(
    tmp_path,
):
    crashed(compiled(), tmp_path, 9)
    model, steps = compiled(), []
    fit(model, tmp_path, initial_epoch=2, callbacks=[counted(steps)])
    assert steps == list(range(BATCHES))
    assert int(model.optimizer.iterations) == 8 + BATCHES


class OwnSteps(Network):
    """Trains and validates by steps of its own, with logs of its own."""

    def train_step(self, data):
        ids, labels = data
        with tf.GradientTape() as tape:
            scores = self(ids, training=True)
            loss = tf.reduce_mean(tf.square(scores - labels))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"own": loss}

    def test_step(self, data):
        return {"hits": tf.reduce_mean(self(data[0]))}


def own():
    model = OwnSteps()
    # Keras asks metrics of `compile` for results, which they would not have.
    model.compile(keras.optimizers.Adam(0.05))
    return model


def test_a_training_by_steps_of_its_own_goes_on_within_an_epoch(tmp_path):
    straight = own()
    fit(straight, tmp_path / "straight")
    crashed(own(), tmp_path / "broken", 9)
    model = own()
    fit(model, tmp_path / "broken")
    assert_same_state(model, straight)


def test_the_best_may_be_by_a_log_of_validation_steps_of_its_own(tmp_path):
    best = {"validation_data": data(1), "save_best_only": True, "epochs": 2}
    fit(own(), tmp_path / "a", monitor="val_hits", **best)
    assert tf.train.latest_checkpoint(tmp_path / "a") is not None
    with pytest.raises(ValueError, match="val_hits"):
        fit(own(), tmp_path / "b", monitor="val_hit", **best)


def file_in_its_place(folder):
    folder.write_text("")
    return folder


def file_above(folder):
    return file_in_its_place(folder) / "inside"


def wildcards(folder):
    return folder.with_name("rate[0.1]*")


@pytest.mark.parametrize("place", [file_in_its_place, file_above, wildcards])
def test_a_folder_that_cannot_be_one_is_refused_before_the_first_step(
    place, tmp_path
):
    steps = []
    with pytest.raises((OSError, ValueError), match=str(tmp_path)):
        fit(compiled(), place(tmp_path / "x"), callbacks=[counted(steps)])
    assert steps == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("checkpoint_dir", ""),
        ("checkpoint_dir", b"folder"),
        ("keep_checkpoint_max", "3"),
        ("keep_checkpoint_max", 1.5),
        ("keep_checkpoint_max", True),
        ("keep_checkpoint_every_n_hours", "1"),
        ("save_checkpoints_steps", 2.5),
        ("monitor", None),
    ],
)
def test_arguments_of_another_type_are_refused_by_name(name, value, tmp_path):
    given = {"checkpoint_dir": tmp_path, name: value}
    with pytest.raises(TypeError, match=f"`{name}` must be"):
        compiled().fit(data(1), verbose=0, **given)


def test_the_folder_stays_where_it_was_when_the_program_goes_elsewhere(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    leave = keras.callbacks.LambdaCallback(
        on_epoch_begin=lambda *_, **__: os.chdir(elsewhere)
    )
    fit(compiled(), "training", epochs=2, callbacks=[leave])
    assert tf.train.latest_checkpoint(tmp_path / "training").endswith("ckpt-2")


def test_a_signal_after_the_last_step_ends_the_process_too(tmp_path, capsys):
    late = keras.callbacks.LambdaCallback(
        on_train_end=lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM)
    )
    with pytest.raises(SystemExit) as ended:
        fit(compiled(), tmp_path, epochs=1, callbacks=[late])
    assert ended.value.code == 128 + signal.SIGTERM
    assert "after 1 epochs" in capsys.readouterr().err


def test_an_eager_model_that_is_not_built_is_said_to_be_so(tmp_path):
    with pytest.raises(ValueError, match="run_eagerly=True has to be built"):
        fit(compiled(run_eagerly=True), tmp_path)


@pytest.mark.parametrize(
    ("file", "argument"),
    [
        ("ckpt", {"skip_mismatch": False}),  # the name that Keras has
        ("ckpt", {"by_name": True}),
        ("ckpt", {"scope": 3}),
        ("m.weights.h5", {"scope": "rows"}),
    ],
)
def test_arguments_that_would_have_no_effect_on_loading_are_refused(
    file, argument, tmp_path
):
    (name,) = argument
    with pytest.raises(TypeError, match=f"`{name}`"):
        functional().load_weights(tmp_path / file, **argument)


def test_an_empty_scope_loads_all(tmp_path):
    fit(compiled(functional()), tmp_path, epochs=1)
    report = functional().load_weights(tmp_path, scope="")
    assert (len(report.variables), report.tables) == (4, ["rows"])


def test_a_scope_that_names_nothing_is_no_match_when_all_must_be(tmp_path):
    fit(compiled(functional()), tmp_path, epochs=1)
    with pytest.raises(hb.keras.MismatchError, match="scope 'row'"):
        functional().load_weights(tmp_path, scope="row", skip_mismatched=False)
