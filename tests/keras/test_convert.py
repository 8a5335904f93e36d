"""Models of Keras, turned into ones with tables that hold the same rows."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra as hb


LABELS = np.array([[1.0], [0.0], [1.0], [0.0]])
IDS = np.array([[0, 1, 2], [3, 4, 5], [0, 19, 7], [19, 2, 2]])


def embedding(name="items", dim=4, **kwargs):
    return keras.layers.Embedding(20, dim, name=name, **kwargs)


def functional(layer=None, **inputs):
    ids = keras.Input((3,), name="ids", **inputs)
    rows = keras.layers.Flatten()((layer or embedding())(ids))
    score = keras.layers.Dense(1, "sigmoid", name="score")(rows)
    return keras.Model(ids, score, name="net")


def sequential():
    layers = [keras.Input((3,)), embedding(), keras.layers.Flatten()]
    layers.append(keras.layers.Dense(1, "sigmoid", name="score"))
    return keras.Sequential(layers, name="net")


def built_by_a_call():
    model = keras.Sequential(sequential().layers, name="net")
    model(IDS)
    return model


def nested():
    """The rows are read in the outer model, and in both of those inside."""
    layer, flatten = embedding(), keras.layers.Flatten()
    ids = keras.Input((3,))
    first = keras.Model(ids, flatten(layer(ids)), name="first")
    second = keras.Sequential([layer, flatten, keras.layers.Dense(2)])
    ids = keras.Input((3,), name="ids")
    rows = [first(ids), second(ids), flatten(layer(ids)) * 2.0]
    score = keras.layers.Dense(1, "sigmoid", name="score")
    return keras.Model(
        {"ids": ids}, score(keras.layers.Concatenate()(rows)), name="net"
    )


FORMS = [functional, sequential, built_by_a_call, nested]


def batch_for(model):
    takes_dict = isinstance(getattr(model, "input", None), dict)
    return {"ids": IDS} if takes_dict else IDS


def predictions(model):
    return model.predict(batch_for(model), verbose=0)


def losses(model, optimizer):
    model.compile(optimizer, "binary_crossentropy")
    fitted = model.fit(
        batch_for(model), LABELS, epochs=3, batch_size=2, verbose=0
    )
    return fitted.history["loss"]


@pytest.mark.parametrize("form", FORMS)
def test_k04_a_converted_model_has_the_same_rows_and_predictions(form):
    plain = form()
    model = hb.keras.convert(plain)
    assert isinstance(model, hb.keras.Model)
    assert model.name == "net"
    np.testing.assert_array_equal(predictions(model), predictions(plain))
    (layer,) = (
        found
        for found in model._flatten_layers()
        if isinstance(found, hb.layers.Embedding)
    )
    assert (layer.name, layer.size()) == ("items", 20)
    assert [tensor.dtype for tensor in model.inputs] == ["int64"]
    score = model.get_layer("score")
    assert score is not plain.get_layer("score")
    np.testing.assert_array_equal(score.kernel, plain.get_layer("score").kernel)


@pytest.mark.parametrize("form", [functional, nested])
def test_k04_a_converted_model_has_the_same_loss_curve(form):
    plain = form()
    model = hb.keras.convert(plain)
    keras.utils.set_random_seed(3)
    expected = losses(plain, keras.optimizers.SGD(0.5))
    keras.utils.set_random_seed(3)
    np.testing.assert_allclose(
        losses(model, keras.optimizers.SGD(0.5)), expected, rtol=1e-5
    )


def test_the_given_model_is_left_as_it_is():
    plain = functional()
    before, expected = plain.get_weights(), predictions(plain)
    losses(hb.keras.convert(plain), "sgd")
    for one, other in zip(plain.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(predictions(plain), expected)


def test_new_ids_get_rows_in_training():
    model = hb.keras.convert(functional(), initializer="ones")
    model.compile("sgd", "binary_crossentropy")
    large = np.array([[2**24, 2**24 + 1, -7]])
    model.fit(large, LABELS[:1], verbose=0)
    layer = model.get_layer("items")
    assert layer.size() == 23
    row = layer.table.lookup([2**24 + 2]).numpy()
    np.testing.assert_array_equal(row, np.ones((1, 4)))


def test_absent_ids_read_as_asked():
    model = hb.keras.convert(functional(), inference_default="zeros")
    np.testing.assert_array_equal(
        model.get_layer("items")(np.array([99]), training=False),
        np.zeros((1, 4)),
    )


def test_only_the_layers_named_are_converted():
    user, item = keras.Input((1,), name="user"), keras.Input((1,), name="item")
    rows = [embedding("users")(user), embedding("items")(item)]
    out = keras.layers.Flatten()(keras.layers.Add()(rows))
    plain = keras.Model([user, item], out)
    model = hb.keras.convert(plain, layers=["users"])
    assert type(model.get_layer("users")) is hb.layers.Embedding
    assert type(model.get_layer("items")) is keras.layers.Embedding
    assert [t.dtype for t in model.inputs] == ["int64", "float32"]
    both = [IDS[:, :1], IDS[:, 1:2]]
    np.testing.assert_array_equal(
        model.predict(both, verbose=0), plain.predict(both, verbose=0)
    )
    with pytest.raises(ValueError, match=r"\['visits'\].*'users', 'items'"):
        hb.keras.convert(plain, layers=["visits"])


def test_an_input_that_other_layers_read_stays_a_float():
    ids = keras.Input((3,))
    rows = keras.layers.Flatten()(embedding()(ids))
    plain = keras.Model(ids, keras.layers.Concatenate()([rows, ids * 0.5]))
    model = hb.keras.convert(plain)
    assert model.inputs[0].dtype == "float32"
    np.testing.assert_array_equal(predictions(model), predictions(plain))


def test_masks_and_dtype_policies_are_kept(tmp_path):
    layer = embedding(mask_zero=True, dtype="mixed_bfloat16")
    ids = keras.Input((3,), dtype="int32")
    plain = keras.Model(ids, keras.layers.GRU(2, seed=1)(layer(ids)))
    model = hb.keras.convert(plain)
    new = model.get_layer("items")
    assert (new.dtype_policy.name, new.table.dtype) == (
        "mixed_bfloat16",
        "float32",
    )
    assert model.inputs[0].dtype == "int64"
    np.testing.assert_array_equal(predictions(model), predictions(plain))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(predictions(loaded), predictions(plain))


@pytest.mark.parametrize("where", ["layer", "model"])
def test_what_is_frozen_stays_frozen(where):
    plain = functional()
    if where == "layer":
        plain.get_layer("items").trainable = False
    else:
        plain.trainable = False
    model = hb.keras.convert(plain)
    assert not model.get_layer("items").trainable
    assert model.get_layer("score").trainable == (where == "layer")
    assert len(model.trainable_variables) == len(plain.trainable_variables)


def test_regularizers_and_constraints_of_rows_are_kept():
    layer = embedding(
        embeddings_regularizer=keras.regularizers.L2(0.1),
        embeddings_constraint=keras.constraints.MaxNorm(1.0, axis=1),
    )
    new = hb.keras.convert(functional(layer)).get_layer("items")
    assert new.embeddings_regularizer.l2 == pytest.approx(0.1)
    assert new.embeddings_constraint is layer.embeddings_constraint


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {"embeddings_constraint": keras.constraints.UnitNorm(axis=0)},
            "embeddings_constraint looks across rows.*axis=1",
        ),
        (
            {"embeddings_regularizer": "orthogonal_regularizer"},
            "embeddings_regularizer is more than the sum over rows",
        ),
        (
            {"embeddings_initializer": keras.initializers.Orthogonal()},
            "starts a whole matrix.*`initializer`",
        ),
        ({"lora_rank": 2}, "LoRA"),
        ({"dtype": "float64"}, "'float64'"),
    ],
)
def test_layers_that_tables_cannot_stand_for_are_refused(arguments, said):
    plain = functional(embedding(**arguments))
    with pytest.raises(ValueError, match=f"(?s)'items' cannot be.*{said}"):
        hb.keras.convert(plain)


def test_quantized_layers_are_refused():
    plain = functional()
    plain.get_layer("items").quantize("int8")
    with pytest.raises(ValueError, match="quantized"):
        hb.keras.convert(plain)


def test_a_pretrained_matrix_needs_an_initializer_for_new_ids():
    matrix = np.random.default_rng(0).normal(size=(20, 4))
    initializer = keras.initializers.Constant(matrix)
    plain = functional(embedding(embeddings_initializer=initializer))
    with pytest.raises(ValueError, match="given as `initializer`"):
        hb.keras.convert(plain)
    model = hb.keras.convert(plain, initializer="zeros")
    np.testing.assert_array_equal(predictions(model), predictions(plain))


class Subclass(keras.Model):
    def __init__(self):
        super().__init__(name="own")
        self.items = embedding()
        self.score = keras.layers.Dense(1)

    def call(self, ids):
        return self.score(self.items(ids)[:, 0])


class Functional(keras.Model):
    """Gives inputs and outputs, but has code beside them."""

    def __init__(self):
        ids = keras.Input((3,))
        super().__init__(ids, embedding()(ids), name="own")


@pytest.mark.parametrize("cls", [Subclass, Functional])
def test_k04_models_of_a_class_of_their_own_are_told_what_to_do(cls):
    with pytest.raises(TypeError, match=r"'own' is of class .*assign\(range"):
        hb.keras.convert(cls())


def test_k04_rows_of_a_subclass_can_be_copied_as_its_error_says():
    class New(hb.keras.Model):
        def __init__(self):
            super().__init__()
            self.items = hb.layers.Embedding(4, name="items")
            self.score = keras.layers.Dense(1)

        call = Subclass.call

    old = Subclass()
    expected = old.predict(IDS, verbose=0)
    new = New()
    new(IDS)
    new.items.table.assign(range(20), old.items.embeddings)
    new.score.set_weights(old.score.get_weights())
    np.testing.assert_array_equal(new.predict(IDS, verbose=0), expected)


def test_a_model_that_is_called_twice_and_lambdas_are_converted():
    ids = keras.Input((3,))
    rows = keras.layers.LSTM(2)(embedding(mask_zero=True)(ids))
    tower = keras.Model(ids, rows, name="tower")
    pair = keras.Input((3,), name="a"), keras.Input((3,), name="b")
    double = keras.layers.Lambda(lambda rows: rows * 2.0)
    parts = [double(tower(tensor)) for tensor in pair]
    plain = keras.Model(pair, keras.layers.Dot(1)(parts))
    model = hb.keras.convert(plain)
    assert [tensor.dtype for tensor in model.inputs] == ["int64", "int64"]
    batch = (IDS, IDS[::-1])
    np.testing.assert_array_equal(
        model.predict(batch, verbose=0), plain.predict(batch, verbose=0)
    )
    assert model.get_layer("tower").get_layer("items").size() == 20


def test_large_tables_are_copied_in_parts():
    count = 2**16 + 2
    ids = keras.Input((2,))
    layer = keras.layers.Embedding(count, 2, name="items")
    plain = keras.Model(ids, layer(ids))
    new = hb.keras.convert(plain).get_layer("items")
    assert new.size() == count
    for key in (0, 2**16 - 1, 2**16, count - 1):
        np.testing.assert_array_equal(
            new.table.lookup(key), layer.embeddings[key]
        )


def test_embeddings_inside_of_layers_are_named():
    ids = keras.Input((3,))
    inside = keras.layers.TimeDistributed(embedding("inside"))
    rows = keras.layers.Reshape((3, 4))(inside(keras.ops.expand_dims(ids, 2)))
    plain = keras.Model(ids, rows + embedding()(ids))
    with pytest.raises(ValueError, match=r"'inside'.*layers=\['items'\]"):
        hb.keras.convert(plain)
    model = hb.keras.convert(plain, layers=["items"])
    np.testing.assert_array_equal(predictions(model), predictions(plain))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda: keras.Sequential([embedding()]), "is not built"),
        (lambda: keras.Sequential([keras.Input((2,))]), "no keras.layers"),
    ],
)
def test_there_must_be_rows_to_convert(given, said):
    with pytest.raises(ValueError, match=said):
        hb.keras.convert(given())


def test_only_models_can_be_converted():
    with pytest.raises(TypeError, match=r"takes a keras.Model.*Embedding"):
        hb.keras.convert(embedding())


def test_other_layers_keep_vocabularies_random_states_and_tables():
    words = keras.Input((1,), dtype="string", name="words")
    lookup = keras.layers.StringLookup(name="lookup")
    lookup.adapt(["a", "b", "c"])
    rows = embedding()(lookup(words))
    ids = keras.Input((1,), dtype="int64", name="ids")
    table = hb.layers.Embedding(4, name="table")
    both = keras.layers.Flatten()(rows + table(ids))
    plain = keras.Model(
        [words, ids], keras.layers.Dropout(0.5, seed=1, name="drop")(both)
    )
    table.table.assign([2**40], np.ones((1, 4)))
    plain.get_layer("drop")(np.ones((1, 4)), training=True)
    model = hb.keras.convert(plain)
    batch = [tf.constant([["b"], ["z"]]), tf.constant([[2**40], [5]])]
    np.testing.assert_array_equal(model(batch), plain(batch))
    assert model.get_layer("table").size() == 1
    np.testing.assert_array_equal(
        model(batch, training=True), plain(batch, training=True)
    )


def test_the_new_model_is_not_compiled():
    plain = functional()
    plain.compile("adam", np.minimum)  # a loss that has no config
    assert not hb.keras.convert(plain).compiled
