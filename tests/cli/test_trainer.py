"""A training that was stopped ends where one never stopped does."""

import signal

import keras
import numpy as np
import pytest

from embedra.checkpoint import StopRequest, TrainingStopped
from embedra.cli._checkpoints import TrainingCheckpoint
from embedra.cli._models import (
    ModelName,
    OptimizerName,
    make_model,
    make_optimizer,
    table_sizes,
)
from embedra.cli._trainer import MeasuringError, Trainer
from embedra.data import ClickReader, Columns


COLUMNS = Columns("click", numeric=("age",), categorical=("site", "ad"))
EPOCHS = 2


class StopAfter(StopRequest):
    """Asks to stop after some batches: it is looked at once for each."""

    def __init__(self, batches):
        self.batches = batches

    @property
    def signal_number(self):
        self.batches -= 1
        return None if self.batches else signal.SIGTERM

    @signal_number.setter
    def signal_number(self, value):
        assert value is None


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("data") / "log.csv"
    lines = (
        f"{rng.integers(2)},{i % 7},s{rng.integers(50)},a{rng.integers(9)}\n"
        for i in range(600)
    )
    path.write_text("click,age,site,ad\n" + "".join(lines))
    return ClickReader(path, "csv", COLUMNS)


def make_trainer(reader, directory, stop):
    keras.utils.set_random_seed(5)
    model = make_model(
        ModelName.DLRM,
        COLUMNS,
        make_optimizer(OptimizerName.ADAM, 0.01),
        dim=4,
        dropout=0.2,
    )
    checkpoint = TrainingCheckpoint(directory, model, {"seed": 5})
    checkpoint.restore()
    return Trainer(
        model,
        reader,
        None,
        checkpoint,
        saving=True,
        batch_size=32,
        seed=5,
        held_out=0.1,
        save_every=0,
        stop=stop,
    )


@pytest.fixture(scope="module")
def whole(reader, tmp_path_factory):
    """A training that was never stopped."""
    directory = tmp_path_factory.mktemp("whole")
    trainer = make_trainer(reader, directory, StopRequest())
    trainer.run(EPOCHS, patience=0)
    return trainer


# An epoch is 17 batches of training rows (540 or so of 600, 32 at a time) and
# 2 of validation rows; what is measured is the epoch before.
@pytest.mark.parametrize(
    ("batches", "place", "measured"),
    [
        (17, (0, 17), 0),
        (18, (1, 0), 0),
        (27, (1, 8), 1),
        (38, (2, 0), 1),
    ],
)
def test_stopped_training_ends_where_one_never_stopped_does(
    reader, whole, tmp_path, batches, place, measured
):
    stopped = make_trainer(reader, tmp_path / "parts", StopAfter(batches))
    with pytest.raises(TrainingStopped):
        stopped.run(EPOCHS, patience=0)
    resumed = make_trainer(reader, tmp_path / "parts", StopRequest())
    assert resumed.checkpoint.place == place
    assert resumed.checkpoint.measured == measured
    resumed.run(EPOCHS, patience=0)
    again = make_trainer(reader, tmp_path / "parts", StopRequest())
    assert (again.checkpoint.place, again.checkpoint.measured) == ((2, 0), 2)
    assert table_sizes(resumed.model) == table_sizes(whole.model)
    assert resumed.checkpoint.best == whole.checkpoint.best
    features, _ = next(iter(reader.dataset(600)))
    np.testing.assert_allclose(
        resumed.model.predict_on_batch(features),
        whole.model.predict_on_batch(features),
        atol=1e-5,
    )


def test_epoch_that_could_not_be_measured_is_measured_later(reader, tmp_path):
    text = reader.path.read_text()
    wrong = tmp_path / "wrong.csv"
    wrong.write_text(text + "5,0,s,a\n")
    part = make_trainer(reader, tmp_path / "state", StopRequest())
    part.validation = ClickReader(wrong, "csv", COLUMNS)
    with pytest.raises(MeasuringError, match=r"wrong\.csv:602: column 'click'"):
        part.run(EPOCHS, patience=0)
    wrong.write_text(text)
    expected = part.validate()
    mended = make_trainer(reader, tmp_path / "state", StopRequest())
    mended.validation = part.validation
    assert mended.checkpoint.place == (1, 0)
    mended.run(1, patience=0)
    assert mended.checkpoint.best == (1, pytest.approx(expected.auc, abs=1e-6))
