"""`embedra train` on small files and on the public extracts."""

import re
import signal
import subprocess
import sys
import time
from importlib import metadata

import numpy as np
import pytest
import tensorflow as tf
from typer.testing import CliRunner

from embedra.cli import _measures, _trainer
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


@pytest.mark.parametrize(
    "arguments",
    [["train", "--data=x.csv"], ["demo"], ["convert", "csv", "x", "y"]],
    ids=lambda arguments: arguments[0],
)
def test_what_works_in_one_process_is_refused_to_ranks(
    invoke, arguments, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EMBEDRA_RANK", "1")
    monkeypatch.setenv("EMBEDRA_WORLD_SIZE", "2")
    result = invoke(arguments)
    assert result.exit_code == 1
    assert f"`embedra {arguments[0]}` works in one process" in result.output
    assert not list(tmp_path.iterdir())


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


@pytest.mark.parametrize("native_ops", [False, True])
def test_exported_model_predicts(invoke, log, tmp_path, native_ops):
    export = tmp_path / "export"
    options = ["--epochs=1", f"--export={export}"]
    options += ["--native-ops"] if native_ops else []
    result = invoke(command(log, *options))
    assert result.exit_code == 0, result.output
    graph = (export / "saved_model.pb").read_bytes()
    assert (b"EmbedraTable" in graph) == native_ops
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


def test_exports_replace_saved_models_alone(invoke, log, tmp_path):
    (tmp_path / "notes").write_text("mine")
    result = invoke(command(log, f"--export={tmp_path}"))
    assert result.exit_code == 1
    assert "has files that are no SavedModel" in result.output
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


@pytest.fixture
def late_error(log):
    """A file with a malformed row that its beginning does not show."""
    path = log.with_name("late.csv")
    header, *rows = log.read_text().splitlines()
    many = "\n".join(f"{row}{'x' * 500}" for row in rows * 10)
    path.write_text(f"{header}\n{many}\n7,1,s,a\n")
    return path


def test_error_in_the_test_rows_costs_only_their_measure(
    invoke, log, late_error, tmp_path
):
    export, state = tmp_path / "export", tmp_path / "state"
    options = (f"--export={export}", f"--checkpoint-dir={state}")
    result = invoke(
        command(log, "--epochs=1", f"--test={late_error}", *options)
    )
    assert result.exit_code == 1
    assert auc_of(result.output, "validation") > 0
    assert (
        "Error: Trained, but the test rows could not be measured on: "
        f"{late_error}:10002: column 'click' is '7'"
    ) in result.output
    assert f"saved in {state}" in result.output
    assert (export / "saved_model.pb").is_file()
    assert invoke(command(log, "--epochs=1", options[1])).exit_code == 0


def test_error_in_the_validation_rows_keeps_what_was_trained(
    invoke, log, late_error, tmp_path
):
    export = tmp_path / "export"
    files = (f"--validation={late_error}", f"--test={log}")
    result = invoke(command(log, "--epochs=3", *files, f"--export={export}"))
    assert result.exit_code == 1
    assert "the validation rows could not be measured on" in result.output
    assert "epoch 2/3" not in result.output
    assert auc_of(result.output, "test") > 0
    assert (export / "saved_model.pb").is_file()


@pytest.mark.parametrize("option", ["--test", "--validation"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("click,age,site\n1,2,a\n", "no column 'ad'"),
        ("click,age,site,ad\n7,2,a,b\n", "other.csv:2: column 'click' is '7'"),
        ("click,age,site,ad\n1,2,a\n", "other.csv:2: 3 columns, expected 4"),
        ("", "other.csv: the file is empty"),
    ],
)
def test_other_files_are_looked_into_before_training(
    invoke, log, option, text, message
):
    other = log.with_name("other.csv")
    other.write_text(text)
    result = invoke(command(log, f"{option}={other}"))
    assert result.exit_code == 1
    assert message in result.output
    assert "epoch" not in result.output


def test_file_whose_rows_are_all_set_apart_is_refused(invoke, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("click,age,site,ad\n1,2,a,b\n")
    result = invoke(command(path))
    assert result.exit_code == 1
    assert (
        "one.csv: no row to train on: all 1 usable rows are set apart"
        in result.output
    )
    result = invoke(command(path, "--held-out=0", "--epochs=1"))
    assert result.exit_code == 0, result.output
    assert "2 keys" in result.output


def test_fewer_rows_than_a_batch_are_trained_on(invoke, log):
    log.write_text("\n".join(log.read_text().splitlines()[:4]) + "\n")
    result = invoke(command(log, "--epochs=1", "--held-out=0"))
    assert result.exit_code == 0, result.output
    assert re.search(r"Tables: [1-6] keys", result.output)


def test_utf16_is_named(invoke, log):
    log.write_bytes(log.read_text().encode("utf-16"))
    result = invoke(command(log))
    assert result.exit_code == 1
    assert "log.csv: is not UTF-8: it begins as UTF-16 does" in result.output


def test_version_is_shown(invoke):
    result = invoke(["--version"])
    assert result.exit_code == 0
    assert result.output == f"embedra {metadata.version('embedra')}\n"


@pytest.mark.parametrize("saving", [True, False])
def test_ctrl_c_while_measuring_stops_at_once(
    invoke, log, tmp_path, monkeypatch, saving
):
    state = tmp_path / "state"
    export = tmp_path / "export"
    options = ["--epochs=1", f"--validation={log}", f"--export={export}"]
    options += [f"--checkpoint-dir={state}"] if saving else []
    inside = _measures.evaluate

    def interrupted(*args):
        signal.raise_signal(signal.SIGINT)
        return inside(*args)

    with monkeypatch.context() as patched:
        patched.setattr(_trainer, "evaluate", interrupted)
        result = invoke(command(log, *options))
    assert result.exit_code == 128 + signal.SIGINT
    said = (
        "Stopped by SIGINT after 1 epochs and 0 steps" if saving else "Nothing"
    )
    assert said in result.output
    assert not (export / "saved_model.pb").exists()
    if saving:
        again = invoke(command(log, *options))
        assert again.exit_code == 0, again.output
        assert "1 epochs and 0 steps are done" in again.output
        assert "epoch 1/1" not in again.output
        assert "epoch 1: validation AUC" in again.output


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
