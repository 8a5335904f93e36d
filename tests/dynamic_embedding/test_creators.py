"""Creators: kinds of tables as options of the native one."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de


def make(creator, **options):
    return de.Variable(dim=2, name="user", kv_creator=creator, **options)


def hkv(**options):
    return de.HkvHashTableCreator(de.HkvHashTableConfig(**options))


@pytest.mark.parametrize(
    "creator",
    [
        None,
        de.KVCreator(),
        de.CuckooHashTableCreator(),
        de.CuckooHashTableCreator(de.CuckooHashTableConfig(), saver=None),
        de.HkvHashTableCreator(),
        hkv(init_capacity=100, max_hbm_for_values=2**30, step_per_epoch=7),
    ],
)
def test_tables_have_no_bound_unless_given(creator):
    user = make(creator)
    assert user.tables[0].bound.max_capacity == 0
    user.upsert(np.arange(2000), np.zeros((2000, 2)))
    assert int(user.size()) == 2000


@pytest.mark.parametrize(
    ("strategy", "kept"),
    [
        (de.HkvEvictStrategy.LRU, [2, 3, 4]),
        (de.HkvEvictStrategy.EPOCHLRU, [2, 3, 4]),
        (de.HkvEvictStrategy.LFU, [1, 3, 4]),
        (de.HkvEvictStrategy.EPOCHLFU, [1, 3, 4]),
        (0, [2, 3, 4]),
    ],
)
def test_a_full_table_drops_by_its_strategy(strategy, kept):
    user = make(hkv(max_capacity=3, evict_strategy=strategy))
    policy = de.RestrictPolicy(user)
    user.upsert([1, 2, 3], np.ones((3, 2)))
    policy.apply_update([1, 1])
    policy.apply_update([2])
    policy.apply_update([3])
    policy.apply_update([3])
    user.upsert([4], np.ones((1, 2)))
    assert sorted(user.export()[0].numpy().tolist()) == kept


def test_capacity_is_made_up_front():
    user = make(hkv(init_capacity=10_000), init_size=5)
    assert user.tables[0].statistics().capacity >= 10_000


def test_a_bound_is_for_all_devices_together():
    user = make(hkv(max_capacity=100), devices=["/CPU:0"] * 3)
    assert [t.bound.max_capacity for t in user.tables] == [34, 33, 33]
    for first in range(0, 1000, 10):
        user.upsert(np.arange(first, first + 10), np.ones((10, 2)))
        assert int(user.size()) <= 100
    assert int(user.size()) > 80
    with pytest.raises(ValueError, match="3 devices.*max_capacity=2"):
        make(hkv(max_capacity=2), devices=["/CPU:0"] * 3)


def test_training_in_a_full_table_goes_on():
    user = make(hkv(max_capacity=16), initializer=1.0)
    optimizer = de.DynamicEmbeddingOptimizer(keras.optimizers.SGD(0.5))
    for step in range(30):
        ids = np.arange(step * 4, step * 4 + 8)
        with tf.GradientTape() as tape:
            rows, trainable = de.embedding_lookup(
                user, ids, name="rows", return_trainable=True
            )
            loss = tf.reduce_sum(rows)
        before = user.lookup(ids).numpy()
        gradient = tape.gradient(loss, trainable)
        optimizer.apply_gradients([(gradient, trainable)])
        np.testing.assert_allclose(user.lookup(ids), before - 0.5)
        assert int(user.size()) <= 16
    assert user.tables[0].statistics().evictions > 0
    assert user.tables[0].statistics().stale_gradients == 0


@pytest.mark.parametrize(
    "options",
    [
        {"evict_strategy": de.HkvEvictStrategy.CUSTOMIZED},
        {"evict_strategy": 4},
        {"gen_scores_fn": lambda keys: keys},
    ],
)
def test_scores_of_ones_own_are_refused(options):
    with pytest.raises(NotImplementedError, match="RestrictPolicy"):
        make(hkv(**options))


def test_redis_is_refused_and_says_what_to_use():
    creator = de.RedisTableCreator(
        de.RedisTableConfig(redis_config_abs_dir="/tmp/redis.json")
    )
    with pytest.raises(NotImplementedError, match="devices.*max_capacity"):
        make(creator)


def test_get_variable_tells_bounds_apart():
    first = de.get_variable("bounded", dim=2, kv_creator=hkv(max_capacity=9))
    try:
        again = de.get_variable(
            "bounded", dim=2, kv_creator=hkv(max_capacity=9)
        )
        assert again is first
        with pytest.raises(ValueError, match="kv_creator=.*'max_capacity': 8"):
            de.get_variable("bounded", dim=2, kv_creator=hkv(max_capacity=8))
    finally:
        de.delete_variable("bounded")
