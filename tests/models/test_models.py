"""The click models: shapes, configuration, saving, learning."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.models import dcn_v2, dlrm


NUMERIC, CATEGORICAL = ("age", "price"), ("site", "ad", "user")


def make_features(rng, rows=64):
    numbers = {
        name: rng.normal(size=rows).astype(np.float32) for name in NUMERIC
    }
    numbers["age"][::3] = np.nan
    ids = {
        name: rng.integers(-(2**62), 2**62, 8)[rng.integers(0, 8, rows)]
        for name in CATEGORICAL
    }
    return {**numbers, **ids}


@pytest.fixture(params=[dlrm, dcn_v2], ids=["dlrm", "dcn_v2"])
def build(request):
    return request.param


def test_output_is_one_probability_for_each_row(build, rng):
    model = build(NUMERIC, CATEGORICAL, dim=4)
    assert model.output_shape == (None, 1)
    output = model.predict(make_features(rng), verbose=0)
    assert output.shape == (64, 1)
    assert output.dtype == np.float32
    assert ((output > 0) & (output < 1)).all()


def test_model_without_numeric_columns(build, rng):
    model = build((), CATEGORICAL, dim=4)
    features = {name: make_features(rng)[name] for name in CATEGORICAL}
    assert model.predict(features, verbose=0).shape == (64, 1)


def test_each_column_has_a_table_of_its_own(build, rng):
    model = build(NUMERIC, CATEGORICAL, dim=4)
    features = make_features(rng)
    features["ad"] = features["site"]
    model(features, training=True)
    sizes = {
        name: int(model.get_layer(f"{name}_table").table.size())
        for name in CATEGORICAL
    }
    distinct = {name: len(np.unique(features[name])) for name in CATEGORICAL}
    assert sizes == distinct


def test_training_lowers_the_loss(build, rng):
    features = make_features(rng, 256)
    labels = (features["site"] > 0).astype(np.float32)
    model = build(NUMERIC, CATEGORICAL, dim=4, dropout=0.1)
    model.compile(keras.optimizers.Adam(0.02), "binary_crossentropy")
    history = model.fit(
        features, labels, batch_size=64, epochs=8, verbose=0
    ).history["loss"]
    assert history[-1] < 0.5 * history[0]


def test_configuration_builds_the_same_model(build):
    model = build(NUMERIC, CATEGORICAL, dim=4, dropout=0.1)
    again = keras.Model.from_config(model.get_config())
    assert again.get_config() == model.get_config()
    assert [layer.name for layer in again.layers] == [
        layer.name for layer in model.layers
    ]


def test_saved_model_predicts_the_same(build, rng, tmp_path):
    features = make_features(rng)
    model = build(NUMERIC, CATEGORICAL, dim=4)
    model.compile("adam", "binary_crossentropy")
    model.fit(features, np.ones(64, np.float32), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(
        loaded.predict(features, verbose=0),
        model.predict(features, verbose=0),
    )


ODD = ("user id", "user_id", "\u00fcn\u00efcode", "click:x", "a/b", "[x]")
CLASHING = ("numeric", "ad_table", "ad", "features", "click", "deep_0", "", "_")


@pytest.mark.parametrize("names", [ODD, CLASHING], ids=["odd", "clashing"])
@pytest.mark.filterwarnings("ignore:When providing `inputs` as a dict")
def test_columns_may_have_any_name(build, rng, names, tmp_path):
    model = build(("top_0", "x y"), names, dim=2, dropout=0.1)
    rows = np.arange(8)
    features = {name: rows + i for i, name in enumerate(names)}
    numbers = rng.normal(size=(2, 8)).astype(np.float32)
    features |= {"top_0": numbers[0], "x y": numbers[1]}
    model.compile("adam", "binary_crossentropy")
    model.fit(features, rows % 2, verbose=0)
    expected = model.predict(features, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded.predict(features, verbose=0), expected)
    model.export(str(tmp_path / "exported"), verbose=False)
    exported = tf.saved_model.load(str(tmp_path / "exported"))
    tensors = {name: tf.constant(v) for name, v in features.items()}
    np.testing.assert_allclose(exported.serve(tensors), expected, rtol=1e-5)


@pytest.mark.parametrize("names", [(), ("age",), ("ad", "ad")])
def test_columns_that_make_no_model_are_refused(build, names):
    with pytest.raises(ValueError, match="Received: numeric="):
        build(("age",), names)


def test_dlrm_needs_a_pair_of_vectors():
    with pytest.raises(ValueError, match="multiplies pairs of vectors"):
        dlrm((), ("site",))


@pytest.mark.filterwarnings("ignore:The rows of table:UserWarning")
@pytest.mark.filterwarnings("ignore:When providing `inputs` as a dict")
def test_tables_together_give_the_same_by_fewer_ops(build, rng, tmp_path):
    def lookups(model):
        function = tf.function(lambda: model(features, training=True))
        operations = function.get_concrete_function().graph.get_operations()
        ops = [op.type for op in operations]
        return ops.count("EmbedraTableLookup"), len(ops)

    features = make_features(rng)
    single = build(NUMERIC, CATEGORICAL, dim=4, embeddings_initializer="ones")
    model = build(
        NUMERIC,
        CATEGORICAL,
        dim=4,
        embeddings_initializer="ones",
        together=True,
    )
    model.set_weights(single.get_weights())
    expected = single(features)
    np.testing.assert_allclose(model(features), expected, rtol=1e-6)
    (one, fewer), (three, more) = lookups(model), lookups(single)
    assert (one, three) == (1, len(CATEGORICAL))
    assert fewer < more
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded(features), model(features))
