"""Restrict policies: what is counted, and what goes."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import embedra.dynamic_embedding as de


DEVICES = pytest.mark.parametrize(
    "devices", [None, ["/CPU:0"] * 3], ids=["one table", "three tables"]
)
POLICIES = pytest.mark.parametrize(
    "policy", [de.TimestampRestrictPolicy, de.FrequencyRestrictPolicy]
)


def make(policy=None, devices=None, **options):
    return de.Variable(
        dim=2, name="user", devices=devices, restrict_policy=policy, **options
    )


def keys_of(variable):
    return sorted(variable.export()[0].numpy().tolist())


def thousand(policy, devices=None):
    """Ids 0 to 999, of which 100 were used last and most."""
    user = make(policy, devices, initializer=0.5)
    user.upsert(np.arange(1000), np.ones((1000, 2)))
    chosen = np.random.default_rng(7).permutation(1000)[:100]
    user.restrict_policy.apply_update(np.arange(1000))
    user.restrict_policy.apply_update(chosen)
    return user, sorted(chosen.tolist())


def train_step(user, optimizer, ids):
    with tf.GradientTape() as tape:
        rows, trainable = de.embedding_lookup(
            user, ids, name="lookup", return_trainable=True
        )
        loss = tf.reduce_sum(rows)
    optimizer.apply_gradients([(tape.gradient(loss, trainable), trainable)])


def adagrad():
    return de.DynamicEmbeddingOptimizer(keras.optimizers.Adagrad(0.1))


# Counters.


@DEVICES
def test_e01_each_use_of_a_batch_counts(devices):
    user = make(de.FrequencyRestrictPolicy, devices)
    de.embedding_lookup(user, [1, 1, 1, 2])
    status = user.restrict_policy.status
    assert status.lookup([1, 2, 3]).numpy().tolist() == [3, 1, 0]
    user.restrict_policy.apply_update([[1, 2], [2, 9]])
    assert status.lookup([[1, 2], [2, 9]]).numpy().tolist() == [[4, 3], [3, 0]]
    keys, counters = status.export()
    exported = dict(zip(keys.numpy(), counters.numpy(), strict=True))
    assert exported == {1: 4, 2: 3}
    assert int(status.size()) == int(user.size()) == 2


@DEVICES
def test_status_of_recency_is_the_step_of_the_last_use(devices):
    user = make(de.TimestampRestrictPolicy, devices)
    user.upsert([1, 2, 3], np.zeros((3, 2)))
    for ids in ([1, 2], [2], []):
        user.restrict_policy.apply_update(np.array(ids, np.int64))
    status = user.restrict_policy.status
    assert status.lookup([1, 2, 3]).numpy().tolist() == [1, 2, 0]
    assert sorted(status.export()[1].numpy().tolist()) == [0, 1, 2]


def test_counters_of_strings_and_of_an_empty_variable():
    user = make(de.FrequencyRestrictPolicy, key_dtype=tf.string)
    status = user.restrict_policy.status
    assert status.export()[0].shape == (0,)
    assert user.restrict(5).shape == (0,)
    user.upsert(["a", "b"], np.zeros((2, 2)))
    user.restrict_policy.apply_update(["b", "b", "c"])
    assert status.lookup(["a", "b", "c"]).numpy().tolist() == [0, 2, 0]
    user.restrict(1)
    found = user.lookup(["a", "b"], return_exists=True)[1]
    assert found.numpy().tolist() == [False, True]


def test_lookups_that_only_read_do_not_count():
    user = make(de.FrequencyRestrictPolicy)
    user.upsert([1], np.zeros((1, 2)))
    user.lookup([1])
    de.enable_inference_mode()
    try:
        de.embedding_lookup(user, [1, 2])
    finally:
        de.enable_train_mode()
    assert user.restrict_policy.status.lookup([1, 2]).numpy().tolist() == [0, 0]


# Restriction.


@DEVICES
@POLICIES
def test_e02_exactly_a_hundred_of_a_thousand_are_left(policy, devices):
    user, chosen = thousand(policy, devices)
    sizes = [int(user.size(i)) for i in range(len(user.tables))]
    removed = user.restrict(100).numpy().tolist()
    kept = keys_of(user)
    assert len(kept) == int(user.size()) == 100
    assert sorted(removed + kept) == list(range(1000))
    for i, size in enumerate(sizes):
        # Each device has its share, and gives up what was used least.
        assert abs(int(user.size(i)) - size / 10) < 1
    if devices is None:
        assert kept == chosen
    else:
        assert len(set(kept) & set(chosen)) > 80
    rows, found = user.lookup(removed[:5], return_exists=True)
    np.testing.assert_array_equal(rows, np.full((5, 2), 0.5))
    assert not found.numpy().any()


def test_e02_slots_of_removed_ids_start_again():
    user = make(de.FrequencyRestrictPolicy, initializer=1.0)
    optimizer = adagrad()
    train_step(user, optimizer, [1, 2])
    first = user.lookup([1]).numpy()
    train_step(user, optimizer, [1, 2, 2])
    assert not np.allclose(user.lookup([1]), first)
    assert user.restrict(1).numpy().tolist() == [1]
    train_step(user, optimizer, [1])
    np.testing.assert_array_equal(user.lookup([1]), first)


@DEVICES
@pytest.mark.parametrize("reserved", [0, 1, 2, 7, 10, 11, 100])
def test_any_number_is_kept_exactly(devices, reserved):
    user = make(de.FrequencyRestrictPolicy, devices)
    user.upsert(np.arange(11), np.zeros((11, 2)))
    removed = user.restrict(reserved).numpy()
    assert int(user.size()) == min(reserved, 11)
    assert len(set(removed.tolist())) == len(removed) == max(11 - reserved, 0)


def test_nothing_goes_up_to_the_trigger():
    user, _ = thousand(de.TimestampRestrictPolicy)
    assert user.restrict(100, trigger=1000).shape == (0,)
    assert int(user.size()) == 1000
    assert user.restrict(100, trigger=999).shape == (900,)


@DEVICES
def test_policies_work_in_functions(devices):
    user, chosen = thousand(de.FrequencyRestrictPolicy, devices)

    @tf.function
    def restrict(ids, limit):
        user.restrict_policy.apply_update(ids)
        removed = user.restrict(limit)
        keys, counters = user.restrict_policy.status.export()
        return removed, keys, counters

    ids = tf.constant(chosen, tf.int64)
    removed, keys, counters = restrict(ids, tf.constant(60))
    assert removed.shape == (940,)
    assert sorted(keys.numpy().tolist()) == keys_of(user)
    assert set(counters.numpy().tolist()) == {3}


@DEVICES
def test_policies_work_in_tf1_graphs(devices):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        user = make(de.FrequencyRestrictPolicy, devices)
        ids = tf.compat.v1.placeholder(tf.int64, [None])
        filled = user.upsert(ids, tf.zeros([tf.size(ids), 2]))
        counted = user.restrict_policy.apply_update(ids)
        limit = tf.compat.v1.placeholder(tf.int64, [])
        restricted = user.restrict(limit, trigger=limit + 2)
        counters = user.restrict_policy.status.lookup(ids)
        size = user.size()
        session.run(filled, {ids: np.arange(10)})
        session.run(counted, {ids: [1, 1, 4, 77]})
        session.run(restricted, {limit: 8})
        assert session.run(size) == 10
        removed = session.run(restricted, {limit: 2})
        assert session.run(size) == 2
        assert len(removed) == 8
        read = session.run(counters, {ids: [1, 77]})
        assert read.tolist() == [2 if 1 not in removed else 0, 0]


def test_k08_counters_survive_saving_and_keep_the_same_ids(tmp_path):
    user = make(de.FrequencyRestrictPolicy)
    optimizer = adagrad()
    for ids in ([1, 2, 3, 4], [3, 3, 1], [3, 1, 2]):
        train_step(user, optimizer, ids)
    path = tf.train.Checkpoint(user=user).write(str(tmp_path / "state"))
    loaded = make(de.FrequencyRestrictPolicy)
    tf.train.Checkpoint(user=loaded).read(path).assert_consumed()
    loaded.restrict(2)
    user.restrict(2)
    assert keys_of(loaded) == keys_of(user) == [1, 3]


# What is refused, and rules of one's own.


def test_a_variable_without_a_policy_says_so():
    with pytest.raises(ValueError, match="restrict_policy=de.Timestamp"):
        make().restrict(1)


def test_a_trigger_below_what_is_kept_is_refused():
    user = make(de.FrequencyRestrictPolicy)
    with pytest.raises(ValueError, match="num_reserved=5, trigger=4"):
        user.restrict(5, trigger=4)
    with pytest.raises(ValueError, match="num_reserved=-1"):
        user.restrict(-1)


def test_a_policy_may_have_a_rule_of_its_own():
    class OddOnes(de.RestrictPolicy):
        def apply_restriction(self, num_reserved, **kwargs):
            assert kwargs == {"trigger": 3}
            keys, _ = self.var.export()
            self.var.remove(keys[keys % 2 == 1][num_reserved:])

    user = make(OddOnes)
    user.upsert(np.arange(6), np.zeros((6, 2)))
    user.restrict(0, trigger=3)
    assert keys_of(user) == [0, 2, 4]
    with pytest.raises(
        NotImplementedError, match="RestrictPolicy does not say"
    ):
        make(de.RestrictPolicy).restrict(1)
