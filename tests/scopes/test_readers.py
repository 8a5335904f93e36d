"""What reads the options of scopes: tables and lookups."""

import tensorflow as tf

import embedra as hb
from embedra import dynamic_embedding as de


def first_row(**arguments):
    table = hb.Table(4, name="user", initializer="uniform", **arguments)
    return table.lookup([7]).numpy().tolist()


def test_seed_is_that_of_tables_that_have_none():
    with hb.scope(seed=3):
        first, second = first_row(), first_row()
        own = first_row(seed=4)
        with hb.scope(seed=4):
            inner = first_row()
    assert first == second != inner == own
    assert first_row() != first


def test_lookups_create_rows_only_in_training():
    user = de.Variable(dim=2, name="user")
    for mode, size in (("eval", 0), ("infer", 0), ("train", 1)):
        with hb.scope(mode=mode):
            de.embedding_lookup(user, tf.constant([7], tf.int64))
        assert user.size() == size


def test_mode_of_the_process_holds_within_scopes_of_training():
    de.enable_inference_mode()
    try:
        with hb.scope(mode="train"):
            assert de.get_model_mode() is de.ModelMode.INFERENCE
    finally:
        de.enable_train_mode()
