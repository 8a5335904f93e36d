"""A training that was stopped ends where one never stopped does."""

import signal

import keras
import numpy as np
import pytest

from embedra.cli._checkpoints import (
    StopRequest,
    TrainingCheckpoint,
    TrainingStopped,
)
from embedra.cli._models import (
    ModelName,
    OptimizerName,
    make_model,
    make_optimizer,
    table_sizes,
)
from embedra.cli._trainer import Trainer
from embedra.data import ClickReader, Columns


COLUMNS = Columns("click", numeric=("age",), categorical=("site", "ad"))
EPOCHS = 2


class StopAfter(StopRequest):
    """Asks to stop after some steps; it is looked at once a step."""

    def __init__(self, steps):
        self.steps = steps

    @property
    def signal_number(self):
        self.steps -= 1
        return None if self.steps else signal.SIGTERM

    @signal_number.setter
    def signal_number(self, value):
        assert value is None


@pytest.fixture
def reader(tmp_path, rng):
    path = tmp_path / "log.csv"
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


@pytest.mark.parametrize("steps", [8, 25])
def test_stopped_training_ends_where_one_never_stopped_does(
    reader, tmp_path, steps
):
    whole = make_trainer(reader, tmp_path / "whole", StopRequest())
    whole.run(EPOCHS, patience=0)
    stopped = make_trainer(reader, tmp_path / "parts", StopAfter(steps))
    with pytest.raises(TrainingStopped):
        stopped.run(EPOCHS, patience=0)
    resumed = make_trainer(reader, tmp_path / "parts", StopRequest())
    epoch_steps = 17  # 540 or so rows of 600, 32 at a time.
    assert resumed.checkpoint.place == divmod(steps, epoch_steps)
    resumed.run(EPOCHS, patience=0)
    assert table_sizes(resumed.model) == table_sizes(whole.model)
    assert resumed.checkpoint.best == whole.checkpoint.best
    features, _ = next(iter(reader.dataset(600)))
    np.testing.assert_allclose(
        resumed.model.predict_on_batch(features),
        whole.model.predict_on_batch(features),
        atol=1e-5,
    )
