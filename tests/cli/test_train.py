"""`embedra train` on small files and on the public extracts."""

import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf
from typer.testing import CliRunner

from embedra.cli._app import app


COLUMNS = (
    "--label=click",
    "--integer-columns=age",
    "--categorical-columns=site,ad",
)


def command(path, *options):
    common = ("--format=csv", "--dim=4", "--batch-size=32", *COLUMNS)
    return ["train", f"--data={path}", *common, *options]


@pytest.fixture
def invoke():
    return lambda arguments: CliRunner().invoke(app, arguments)


@pytest.fixture
def log(tmp_path):
    """A file in which the site alone decides."""
    rng = np.random.default_rng(1)
    lines = ["click,age,site,ad"]
    for site, ad in rng.integers(0, 10, (1000, 2)):
        lines.append(f"{site % 2},{site + ad},s{site},a{ad}")
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def auc_of(output, rows):
    return float(re.search(rf"{rows} *│ *[\d,]+ *│ *([\d.]+)", output)[1])


def test_training_reports_validation_and_test(invoke, log):
    result = invoke(
        command(log, f"--test={log}", "--epochs=3", "--learning-rate=0.02")
    )
    assert result.exit_code == 0, result.output
    assert auc_of(result.output, "validation") > 0.95
    assert auc_of(result.output, "test") > 0.95
    assert "ids per second" in result.output
    assert "20 keys" in result.output
    assert "(site 10, ad 10)" in result.output


@pytest.mark.parametrize(
    "options",
    [
        ("--model=dcn_v2", "--optimizer=adagrad"),
        ("--optimizer=rowwise_adagrad",),
        ("--optimizer=ftrl", "--held-out=0"),
    ],
)
def test_other_models_and_optimizers_train(invoke, log, options):
    result = invoke(command(log, f"--test={log}", "--epochs=1", *options))
    assert result.exit_code == 0, result.output
    assert auc_of(result.output, "test") > 0


def test_best_epoch_by_validation_file_is_kept(invoke, log):
    result = invoke(
        command(log, f"--validation={log}", "--epochs=3", "--patience=0")
    )
    assert result.exit_code == 0, result.output
    epochs = re.findall(r"epoch (\d): validation AUC ([\d.]+)", result.output)
    best = max(float(auc) for _, auc in epochs)
    assert len(epochs) == 3
    assert auc_of(result.output, "validation") == pytest.approx(best, abs=2e-4)


def test_exported_model_predicts(invoke, log, tmp_path):
    export = tmp_path / "export"
    result = invoke(command(log, "--epochs=1", f"--export={export}"))
    assert result.exit_code == 0, result.output
    features = {
        "age": tf.constant([1.0, np.nan]),
        "site": tf.constant([1, 2], tf.int64),
        "ad": tf.constant([1, 2], tf.int64),
    }
    loaded = tf.saved_model.load(str(export))
    assert loaded.serve(features).shape == (2, 1)


def test_finished_training_is_not_done_again(invoke, log, tmp_path):
    options = ("--epochs=2", f"--checkpoint-dir={tmp_path / 'state'}")
    first = invoke(command(log, *options))
    second = invoke(command(log, *options))
    assert "2 epochs and 0 steps are done" in second.output
    assert "epoch 1/2" not in second.output
    assert auc_of(second.output, "validation") == auc_of(
        first.output, "validation"
    )


def test_checkpoint_of_other_settings_is_refused(invoke, log, tmp_path):
    options = ("--epochs=1", f"--checkpoint-dir={tmp_path / 'state'}")
    invoke(command(log, *options))
    result = invoke(command(log, *options, "--dropout=0.1"))
    assert result.exit_code == 1
    assert "dropout was 0.3, is 0.1" in result.output


def test_malformed_line_ends_with_its_place(invoke, log):
    log.write_text(log.read_text() + "1,2\n1,x,s1,a1\n")
    result = invoke(command(log, "--epochs=1"))
    assert result.exit_code == 1
    assert "log.csv:1002: 2 columns, expected 4" in result.output
    skipped = invoke(command(log, "--epochs=1", "--on-error=skip"))
    assert skipped.exit_code == 0, skipped.output
    assert "2 malformed" in skipped.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data=none.csv", "--format=criteo"], "none.csv: expected a file"),
        (["--data=.", "--format=criteo"], "it is a folder"),
        (["--data=/dev/null", "--format=criteo"], "expected a file"),
        (["--data=none.csv", "--format=csv"], "name the label, numeric"),
        (
            ["--data=x", "--format=csv", "--integer-columns=a"],
            "Name the label column too",
        ),
        (
            ["--data=x", "--format=csv", "--label=a", "--integer-columns=a"],
            "more than once: a",
        ),
        (["--data=x", "--format=orc"], "orc"),
    ],
)
def test_wrong_options_end_with_one_message(invoke, arguments, message):
    result = invoke(["train", *arguments])
    assert result.exit_code != 0
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_empty_file_ends_with_one_message(invoke, tmp_path):
    path = tmp_path / "empty.csv"
    path.touch()
    result = invoke(command(path))
    assert result.exit_code == 1
    assert "empty.csv: the file is empty" in result.output


def test_brackets_in_data_and_names_are_printed_as_they_are(invoke, log):
    log = log.rename(log.with_name("[b]log.csv"))
    log.write_text(log.read_text() + "[/b],2,s1,a1\n")
    result = invoke(command(log, "--epochs=1", "--on-error=skip"))
    assert result.exit_code == 0, result.output
    assert "[b]log.csv:1002: column 'click' is '[/b]'" in result.output


def test_columns_of_odd_names_are_shown_as_the_file_names_them(invoke, log):
    log.write_text(log.read_text().replace("ad", "numeric", 1))
    log.write_text(log.read_text().replace("site", "user id", 1))
    names = "--categorical-columns=user id,numeric"
    result = invoke(command(log, "--epochs=1", names))
    assert result.exit_code == 0, result.output
    assert "(user id 10, numeric 10)" in result.output


@pytest.mark.parametrize("option", ["--export", "--checkpoint-dir"])
def test_folder_that_cannot_be_made_ends_before_training(invoke, log, option):
    result = invoke(command(log, f"{option}={log}"))
    assert result.exit_code == 1
    assert f"{log}: cannot be written to (File exists)" in result.output
    assert "epoch" not in result.output


def test_columns_that_make_no_model_end_with_one_message(invoke, log):
    result = invoke(command(log, "--categorical-columns="))
    assert result.exit_code == 1
    assert "Error: A model needs one categorical column" in result.output


def test_rows_of_one_label_are_warned_of(invoke, log, tmp_path):
    lines = log.read_text().splitlines()
    test = tmp_path / "test.csv"
    test.write_text("\n".join([lines[0], *(f"0,1,s{i},a" for i in range(9))]))
    result = invoke(command(log, "--epochs=1", f"--test={test}"))
    assert result.exit_code == 0, result.output
    assert "Warning: All labels of the test rows are equal" in result.output


def _empty_settings(state):
    (state / "settings.json").write_text("")


def _no_best(state):
    (state / "best.weights.h5").unlink()


def _damaged_best(state):
    (state / "best.weights.h5").write_bytes(b"x")


def _truncated_data(state):
    for path in state.glob("*.data-*"):
        path.write_bytes(path.read_bytes()[:100])


@pytest.mark.parametrize(
    "damage", [_empty_settings, _no_best, _damaged_best, _truncated_data]
)
def test_damaged_checkpoint_ends_with_advice(invoke, log, tmp_path, damage):
    state = tmp_path / "state"
    options = ("--epochs=1", f"--checkpoint-dir={state}")
    assert invoke(command(log, *options)).exit_code == 0
    damage(state)
    result = invoke(command(log, *options))
    assert result.exit_code == 1
    assert "give another --checkpoint-dir to begin anew" in result.output
    assert "Traceback" not in result.output


@pytest.mark.multiprocess
def test_sigterm_saves_and_says_how_to_go_on(log, tmp_path):
    log.write_text(log.read_text() + log.read_text().split("\n", 1)[1] * 200)
    arguments = command(
        log, "--epochs=1", f"--checkpoint-dir={tmp_path / 'state'}"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "embedra", *arguments, "--save-every=20"],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list((tmp_path / "state").glob("*.index")):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    done = re.search(r"SIGTERM after 0 epochs and (\d+) steps", said)
    assert int(done[1]) >= 20
    assert "The same command goes on" in said


@pytest.mark.parametrize(("name", "bound"), [("criteo", 0.70), ("avazu", 0.68)])
def test_defaults_reach_the_auc_on_real_data(invoke, shared_data, name, bound):
    folder = shared_data / name
    arguments = [f"--data={folder}/train.csv", f"--test={folder}/test.csv"]
    result = invoke(["train", f"--format={name}", *arguments])
    assert result.exit_code == 0, result.output
    assert auc_of(result.output, "test") > bound
