"""Ranks that are not at the same place, which labels tell."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from embedra.distribute import (
    RankError,
    communicator,
    gather_values,
    known_to_all,
    together,
)
from embedra.layers import Embedding, EmbeddingCollection


comm = communicator()
RANK = comm.rank
IDS = tf.constant([[1, 2], [3, RANK]], tf.int64)
user = Embedding(4, combiner="sum", name="user", seed=1)
item = Embedding(4, combiner="sum", name="item", seed=2)


def by_rank(first, second):
    """What this rank has of two: rank 0 the first, rank 1 the second."""
    return (first, second)[RANK]


def differ(call, kind, *labels):
    """Asserts that a call fails on all ranks, by an error that names both."""
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        call()
    first, second = (f"{kind} '{re.escape(label)}'" for label in labels)
    expected = (
        rf"Ranks differ in .*: rank 0 called {first} of .*, rank 1 called "
        rf"{second} of .* \(this is rank {RANK}\)\. All ranks must run the "
        "same lookups .* in the same order, .* name layers explicitly"
    )
    # In a function TensorFlow escapes the quotes of its own assertions.
    message = caught.value.message.replace("\\'", "'")
    assert re.search(expected, message), message


def go_on():
    """Asserts that the same lookups pass on all ranks."""
    users, items = user(IDS, training=True), item(IDS, training=True)
    expected = [(user, users), (item, items)]
    for layer, rows in expected:
        np.testing.assert_array_equal(layer(IDS), rows)


def check_lookups_in_opposite_order():
    go_on()
    keys = "user keys", "item keys"
    differ(lambda: by_rank(user, item)(IDS), "all_to_all_v", *keys)
    differ(lambda: by_rank(item, user)(IDS), "all_to_all_v", *keys[::-1])
    go_on()


def check_lookups_in_opposite_order_in_a_function():
    first, second = by_rank((user, item), (item, user))

    @tf.function
    def step():
        return first(IDS, training=True) + second(IDS, training=True)

    differ(step, "all_to_all_v", "user keys", "item keys")
    go_on()


def check_tables_of_a_collection_in_opposite_order():
    names = by_rank(("user", "item"), ("item", "user"))
    layers = {"user": user, "item": item}
    tables = EmbeddingCollection({name: layers[name] for name in names})
    differ(
        lambda: tables({"user": IDS, "item": IDS}),
        "all_to_all_v",
        "user, item keys",
        "item, user keys",
    )
    go_on()


def check_layers_that_a_rank_numbers_otherwise():
    keras.utils.clear_session()
    layers = [Embedding(4) for _ in range(1 + RANK)]
    differ(
        lambda: layers[-1](IDS),
        "all_to_all_v",
        "embedding keys",
        "embedding_1 keys",
    )


def check_long_labels_that_differ_in_the_middle():
    half = "x" * 50
    with pytest.raises(tf.errors.InvalidArgumentError, match="same label"):
        comm.all_reduce(1.0, label=f"{half}{RANK}{half}")
    assert comm.all_reduce(1.0, label=f"{half}{half}") == 2


def check_other_collectives():
    labels = "loss", "norm"
    for kind, call in (
        ("all_reduce", comm.all_reduce),
        ("all_gather_v", comm.all_gather_v),
        ("broadcast", comm.broadcast),
    ):
        differ(lambda c=call: c([1.0], label=by_rank(*labels)), kind, *labels)
    with pytest.raises(tf.errors.InvalidArgumentError, match="'norm'"):
        comm.barrier(label=by_rank(*labels))
    comm.barrier(label="both")


def check_what_ranks_do_together():
    with pytest.raises(RankError) as caught:
        gather_values(comm, 1, label=by_rank("saving", "reading"))
    assert "rank 0 is at 'saving', rank 1 at 'reading'" in str(caught.value)
    with together(comm, "saving to", f"/mnt/{RANK}"):
        told = gather_values(comm, RANK, label="prefixes")
    assert told == [0, 1]


def save(exchange):
    """Saves together; rank 1 fails before the exchange that rank 0 is in."""
    with together(comm, "saving to", f"/mnt/{RANK}"):
        if RANK == 1:
            msg = "the disk is full"
            raise OverflowError(msg)
        exchange()


def check_errors_reach_ranks_that_are_elsewhere():
    with pytest.raises(RankError, match="Rank 1 failed.* to /mnt/1: Overflow"):
        save(lambda: gather_values(comm, RANK, label="prefixes"))

    def gather_pixels():
        with known_to_all():
            comm.all_gather_v(tf.zeros([3], tf.uint8), label="pixels")

    # They are not taken for what ranks do not agree on.
    expected = by_rank("rank 1 called all_gather_v", "the disk is full")
    with pytest.raises(RankError, match=expected):
        save(gather_pixels)


for name, check in list(globals().items()):
    if name.startswith("check_"):
        check()
comm.barrier(label="end")
print("passed", flush=True)
