"""Models of every kind, and layers, answer as before they were exported."""

import keras
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de
from embedra.layers import Embedding
from embedra.saved_model import export

from .models import IDS, SEEN, assert_same, reload, trained


def _slots(ids):
    return ids % 2


@pytest.mark.parametrize("devices", [None, ["CPU:0", "CPU:0"]], ids=str)
@pytest.mark.parametrize(
    "make",
    [
        de.keras.layers.Embedding,
        de.keras.layers.SquashedEmbedding,
        lambda dim, **options: de.keras.layers.FieldWiseEmbedding(
            dim, 2, slot_map_fn=_slots, **options
        ),
        lambda dim, **options: de.keras.layers.SquashedEmbedding(
            dim, max_norm=0.5, combiner="mean", **options
        ),
    ],
    ids=["rows", "squashed", "fields", "max_norm"],
)
def test_layers_of_dynamic_embedding(make, devices, tmp_path):
    layer = trained(make(3, devices=devices, name="layer"), SEEN[None])
    ids = keras.Input((3,), dtype="int64")
    model = keras.Model(ids, layer(ids))
    loaded = reload(model, tmp_path / "model")
    given = tf.constant(IDS)
    assert_same(loaded.serve(given), model(given, training=False))


class TwoTowers(keras.Model):
    def __init__(self):
        super().__init__()
        self.users = trained(Embedding(3, name="users"))
        self.items = trained(Embedding(3, name="items", combiner="mean"))
        self.dense = keras.layers.Dense(2)

    def call(self, inputs, training=None):
        users = self.users(inputs["user"], training=training)
        items = self.items(inputs["items"], training=training)
        return {"score": self.dense(users + items), "users": users}


FEATURES = {"user": tf.constant(IDS[:, 0]), "items": tf.constant(IDS)}
SPECS = {
    "user": tf.TensorSpec([None], tf.int64),
    "items": tf.TensorSpec([None, None], tf.int64),
}


@pytest.mark.parametrize(
    "signature",
    [SPECS, lambda: SPECS, FEATURES, {"serving_default": SPECS}],
    ids=["specs", "function", "examples", "by name"],
)
def test_subclass_models(signature, tmp_path):
    model = TwoTowers()
    expected = model(FEATURES, training=False)
    loaded = reload(model, tmp_path / "model", signature=signature)
    served = loaded.signatures["serving_default"](**FEATURES)
    for answer in (loaded.serve(FEATURES), served):
        assert set(answer) == {"score", "users"}
        assert_same(answer["score"], expected["score"])
    # Another batch size.
    two = {name: value[:2] for name, value in FEATURES.items()}
    assert_same(loaded.serve(two)["score"], expected["score"][:2])


def test_several_signatures_share_tables(tmp_path):
    model = TwoTowers()
    model(FEATURES)

    def users(ids):
        return model.users(ids, training=False)

    exported = export(
        model,
        tmp_path / "model",
        signature={
            "serving_default": SPECS,
            "users": (users, tf.TensorSpec([None], tf.int64, name="user")),
        },
    )
    assert sorted(table.name for table in exported.tables) == ["items", "users"]
    loaded = tf.saved_model.load(exported.path)
    rows = loaded.signatures["users"](user=FEATURES["user"])["output_0"]
    assert_same(rows, model.users(FEATURES["user"], training=False))
    assert_same(loaded.users(FEATURES["user"]), rows)


def test_sequential_models(tmp_path):
    model = keras.Sequential(
        [
            keras.Input((3,), dtype="int64", name="class"),
            trained(Embedding(3)),
            keras.layers.Flatten(),
            keras.layers.Dense(1),
        ]
    )
    loaded = reload(model, tmp_path / "model")
    given = tf.constant(IDS)
    assert_same(loaded.serve(given), model(given, training=False))


def test_hash_tables_of_keras_come_along(tmp_path):
    words = keras.Input((), dtype="string", name="words")
    numbers = keras.layers.StringLookup(vocabulary=["a", "b"])(words)
    model = keras.Model(words, trained(Embedding(3))(numbers))
    loaded = reload(model, tmp_path / "model")
    given = tf.constant(["b", "a", "c"])
    assert_same(loaded.serve(given), model(given, training=False))


def test_models_that_were_never_called(tmp_path):
    loaded = reload(TwoTowers(), tmp_path / "model", signature=SPECS)
    assert loaded.serve(FEATURES)["score"].shape == (3, 2)
