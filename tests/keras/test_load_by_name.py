"""Weights from checkpoints of TF1 graphs, found by the names of variables."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb
import embedra.dynamic_embedding as de
from click_training import Network, compiled, data, functional, table_of


v1 = tf.compat.v1
IDS = np.array([[1, 2, 3], [9, 4, 1], [10**12, 5, 6]])
DENSE = {
    "hidden/kernel": (4, 4),
    "hidden/bias": (4,),
    "score/kernel": (4, 1),
    "score/bias": (1,),
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder that a session saved to, and what its graph computed."""
    folder = tmp_path_factory.mktemp("graph")
    keras.utils.set_random_seed(1)
    with tf.Graph().as_default():
        rows = de.get_variable("rows", dim=4, initializer=0.25)
        found = de.embedding_lookup(rows, IDS.ravel())
        dense = {}
        for name, shape in DENSE.items():
            # One is partitioned, as those of parameter servers are.
            split = v1.fixed_size_partitioner(2) if shape == (4, 4) else None
            dense[name] = tf.convert_to_tensor(
                v1.get_variable(name, shape, partitioner=split)
            )
        mean = tf.reduce_mean(tf.reshape(found, (3, 3, 4)), axis=1)
        hidden = tf.nn.relu(
            mean @ dense["hidden/kernel"] + dense["hidden/bias"]
        )
        score = tf.nn.sigmoid(
            hidden @ dense["score/kernel"] + dense["score/bias"]
        )
        step = v1.train.get_or_create_global_step()
        optimizer = de.DynamicEmbeddingOptimizer(v1.train.AdamOptimizer(0.1))
        train = optimizer.minimize(tf.reduce_sum(score), global_step=step)
        saver = v1.train.Saver()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for _ in range(2):
                session.run(train)
            saver.save(session, str(folder / "model.ckpt"), global_step=step)
            return folder, session.run(score)


def tensors_of(folder):
    reader = tf.train.load_checkpoint(str(folder))
    names = reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name) for name in names}


def write(path, tensors):
    tf.raw_ops.SaveV2(
        prefix=str(path),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=list(map(tf.convert_to_tensor, tensors.values())),
    )
    return path


def assert_all_loaded(model, report, expected):
    assert sorted(report.variables) == sorted(DENSE)
    assert report.tables == ["rows"]
    assert (report.skipped, report.unused) == ({}, [])
    np.testing.assert_allclose(
        model.predict(IDS, verbose=0), expected, rtol=1e-6
    )


@pytest.mark.parametrize("by", ["folder", "prefix"])
def test_variables_and_tables_of_a_graph_are_found_by_name(trained, by):
    folder, expected = trained
    path = folder if by == "folder" else folder / "model.ckpt-2"
    model = functional()
    report = model.load_weights(path, skip_mismatched=False)
    assert_all_loaded(model, report, expected)
    assert "4 variables and 1 tables loaded" in str(report)
    # The optimizer begins anew, and so do slots.
    assert table_of(model).slot_names == ()
    compiled(model).fit(data(1), verbose=0)
    assert table_of(model).lookup([7777]).numpy().tolist() == [[0.25] * 4]


@pytest.mark.parametrize("axis", [0, 1])
def test_parts_are_put_together(trained, axis, tmp_path):
    folder, expected = trained
    tensors = tensors_of(folder)
    kernel = tensors.pop("hidden/kernel")
    for i, part in enumerate(np.split(kernel, [3], axis)):
        tensors[f"hidden/kernel/part_{i}"] = part
        tensors[f"hidden/kernel/part_{i}/Adam"] = part
    columns = ("keys", "rows", "slots", "frequencies", "last_steps")
    of_table = [name for name in tensors if name.startswith("rows/")]
    for name in of_table:
        value, column = tensors.pop(name), name.removeprefix("rows/")
        for i in range(2):
            half = value[i::2] if column in columns else value
            tensors[f"rows/part_{i}/{column}"] = half
    model = functional()
    report = model.load_weights(write(tmp_path / "parts", tensors))
    assert_all_loaded(model, report, expected)
    assert int(table_of(model).size()) == len(np.unique(IDS))


@pytest.mark.parametrize(
    ("saved", "own"),
    [("click/", "click"), ("click/", "click_1"), ("", "click")],
)
def test_names_may_have_that_of_the_model_before_them(
    trained, saved, own, tmp_path
):
    folder, expected = trained
    tensors = {f"{saved}{n}": v for n, v in tensors_of(folder).items()}
    inner = functional()
    model = hb.keras.Model(inner.inputs, inner.outputs, name=own)
    report = model.load_weights(write(tmp_path / "named", tensors))
    assert_all_loaded(model, report, expected)


def test_c37_a_model_that_is_not_built_loads_when_it_is(trained):
    folder, expected = trained
    model = Network()
    report = model.load_weights(folder)
    assert report.pending
    np.testing.assert_allclose(
        model.predict(IDS, verbose=0), expected, rtol=1e-6
    )
    assert (len(report.variables), report.tables) == (4, ["rows"])


def test_k11_what_is_missing_unused_or_of_another_shape_is_reported(trained):
    model = functional(hidden="other", units=2)
    before = model.get_weights()
    report = model.load_weights(trained[0])
    assert (report.variables, report.tables) == ([], ["rows"])
    assert report.skipped == {
        "other/kernel": "it is not in the checkpoint",
        "other/bias": "it is not in the checkpoint",
        "score/kernel": "it has shape (4, 2), and (4, 1) in the checkpoint",
        "score/bias": "it has shape (2,), and (1,) in the checkpoint",
    }
    # Neither the global step nor slots are.
    assert report.unused == ["hidden/bias", "hidden/kernel"]
    for one, before_it in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, before_it)


def test_k11_strict_loading_raises_and_changes_nothing(trained):
    model = functional(hidden="other", units=2)
    with pytest.raises(hb.keras.MismatchError, match=r"other/kernel.*hidden"):
        model.load_weights(trained[0], skip_mismatched=False)
    assert int(table_of(model).size()) == 0


def test_a_table_of_another_width_is_not_loaded(trained):
    model = functional(width=3)
    report = model.load_weights(trained[0])
    assert "dim=4 in the file, 3 in the table" in report.skipped["rows"]
    assert int(table_of(model).size()) == 0


def test_c38_a_scope_loads_a_part(trained):
    model = functional()
    report = model.load_weights(trained[0], scope="hidden")
    assert report.variables == ["hidden/kernel", "hidden/bias"]
    assert (report.tables, report.skipped, report.unused) == ([], {}, [])


def test_evaluate_and_predict_read_such_a_checkpoint(trained):
    folder, expected = trained
    np.testing.assert_allclose(
        functional().predict(IDS, checkpoint_dir=folder, verbose=0),
        expected,
        rtol=1e-6,
    )


def test_fit_does_not_go_on_from_a_checkpoint_by_name(trained, tmp_path):
    folder, _ = trained
    write(tmp_path / "ckpt-1", tensors_of(folder))
    with pytest.raises(ValueError, match="tf.train.Checkpoint"):
        compiled(functional()).fit(data(1), checkpoint_dir=tmp_path, verbose=0)
