"""Every public name of TFRA 0.8.1's dynamic_embedding is here, or said gone.

The signatures are TFRA's: what a program may pass by place or by name.
"""

import inspect
import pathlib
import re

import pytest

import embedra.dynamic_embedding as de


ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "migrate-from-tfra.md"

VARIABLE = (
    "key_dtype value_dtype dim devices partitioner shared_name{name} "
    "initializer trainable checkpoint init_size kv_creator restrict_policy "
    "bp_v2 short_file_name"
)
LOOKUP = (
    "params ids partition_strategy name validate_indices max_norm "
    "return_trainable"
)
LAYER = (
    "embedding_size key_dtype value_dtype combiner initializer devices name "
    "with_unique short_file_name"
)
SAVE_MODEL = (
    "model filepath overwrite include_optimizer signatures options save_traces"
)
FILES = "dirpath proc_size proc_rank file_name_list dirpath_env {what}"

CALLABLES = {
    "Variable": VARIABLE.format(name=" name"),
    "Variable.upsert": "keys values name",
    "Variable.accum": "keys old_values new_values exists name",
    "Variable.lookup": "keys return_exists name",
    "Variable.remove": "keys name",
    "Variable.clear": "name",
    "Variable.size": "index name",
    "Variable.export": "name",
    "Variable.save_to_file_system": FILES.format(
        what="append_to_file buffer_size name"
    ),
    "Variable.load_from_file_system": FILES.format(
        what="load_entire_dir buffer_size name"
    ),
    "Variable.load_from_file_system_with_restore_function": (
        "dirpath proc_size proc_rank buffer_size"
    ),
    "Variable.restrict": "num_reserved",
    "Variable.get_slot_variables": "optimizer",
    "Variable.get_trainable_by_name": "name",
    "get_variable": "name " + VARIABLE.format(name=""),
    "embedding_lookup": LOOKUP,
    "embedding_lookup_unique": LOOKUP,
    "embedding_lookup_sparse": (
        "params sp_ids sp_weights partition_strategy name combiner max_norm "
        "return_trainable"
    ),
    "safe_embedding_lookup_sparse": (
        "embedding_weights sparse_ids sparse_weights combiner default_id name "
        "partition_strategy max_norm return_trainable"
    ),
    "shadow_ops.ShadowVariable": (
        "params name max_norm trainable distribute_strategy"
    ),
    "shadow_ops.embedding_lookup": (
        "shadow ids partition_strategy name validate_indices"
    ),
    "shadow_ops.embedding_lookup_unique": (
        "shadow ids embedding_size with_unique name"
    ),
    "enable_train_mode": "",
    "enable_inference_mode": "",
    "get_model_mode": "",
    "trainable_wrapper_filter": (
        "iterable_object_in test_unaggregated_function"
    ),
    "DynamicEmbeddingOptimizer": "self bp_v2 synchronous",
    "create_slots": "variable init slot_name op_name bp_v2",
    "keras.layers.Embedding": LAYER,
    "keras.layers.BasicEmbedding": LAYER,
    "keras.layers.SquashedEmbedding": LAYER,
    # And those of Embedding after its first, as `*args`.
    "keras.layers.FieldWiseEmbedding": "embedding_size nslots slot_map_fn",
    "keras.layers.HvdAllToAllEmbedding": (
        "with_unique with_secondary_unique mpi_size batch_size"
    ),
    "keras.layers.LayerNormalization": "",
    "keras.callbacks.DEHvdBroadcastGlobalVariablesCallback": (
        "root_rank device local_variables"
    ),
    "keras.callbacks.DEHvdModelCheckpoint": "",
    "keras.models.de_save_model": SAVE_MODEL,
    "keras.models.de_hvd_save_model": SAVE_MODEL,
    "train.DECheckpoint": "root",
    "train.DECheckpoint.write": "file_prefix options",
    "train.DECheckpoint.restore": "save_path options",
    "train.DECheckpoint.read": "save_path options",
    "train.DEHvdSaver": "",
    "warm_start": (
        "ckpt_to_initialize_from vars_to_warm_start var_name_to_prev_var_name"
    ),
    "WarmStartHook": (
        "ckpt_to_initialize_from vars_to_warm_start var_name_to_prev_var_name"
    ),
    "FileSystemSaver": "proc_size proc_rank save_path buffer_size",
    "KVCreator": "config saver",
    "CuckooHashTableConfig": "",
    "CuckooHashTableCreator": "config saver",
    "HkvHashTableConfig": (
        "init_capacity max_capacity max_hbm_for_values evict_strategy "
        "step_per_epoch gen_scores_fn reserved_key_start_bit"
    ),
    "HkvHashTableCreator": "config saver",
    "RedisTableConfig": "redis_config_abs_dir redis_config_abs_dir_env",
    "RedisTableCreator": "config saver",
    "RestrictPolicy": "var",
    "RestrictPolicy.apply_update": "ids",
    "RestrictPolicy.apply_restriction": "num_reserved",
    "TimestampRestrictPolicy": "var",
    "FrequencyRestrictPolicy": "var",
    "math.sparse_segment_sum": "data indices segment_ids name num_segments",
    "math.sparse_fill_empty_rows": "sp_input default_value name",
    "math.sparse_reshape": "sp_input shape name",
    "data_flow.dynamic_partition": "data partitions num_partitions name",
    "data_flow.dynamic_stitch": "indices data use_fast name",
}

# Names that are no callables, or are not made by users.
OTHERS = [
    "Variable.tables",
    "Variable.restrict_policy",
    "Variable.trainable_store",
    "RestrictPolicy.status",
    "TrainableWrapper",
    "ragged_embedding_ops",
    "ModelMode",
    "HkvEvictStrategy",
]

FLAGS = re.DOTALL | re.MULTILINE

GONE = [
    "CuckooHashTable",
    "HkvHashTable",
    "RedisTable",
    "DistributedVariableWrapper",
    "DEResourceVariable",
    "GraphKeys",
    "patch_on_tf",
    "patch_on_tf_save_restore",
]
GONE_WITHIN = ["Variable.export_keys_and_scores", "shadow_ops.HvdVariable"]

NAMES = [*CALLABLES, *OTHERS]


@pytest.fixture(scope="module")
def objects():
    """Classes with members that only their objects have, by name."""
    variable = de.Variable(
        name="of_names", restrict_policy=de.FrequencyRestrictPolicy
    )
    return {"Variable": variable, "RestrictPolicy": variable.restrict_policy}


def find(name, found=de):
    for part in name.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", CALLABLES)
def test_parameters_come_in_the_order_of_tfra(name):
    found = find(name)
    owner = find(name.rpartition(".")[0]) if "." in name else de
    is_class = inspect.isclass(found)
    # Of a class with a `__new__`, Python 3.11 may see that instead.
    called = found.__init__ if is_class else found
    parameters = list(inspect.signature(called).parameters.values())
    if is_class or inspect.isclass(owner):
        parameters = parameters[1:]
    by_place = [
        p
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)
    ]
    expected = CALLABLES[name].split()
    assert [p.name for p in by_place[: len(expected)]] == expected
    # Whatever there is beyond may be left out.
    beyond = [p for p in parameters if p.name not in expected]
    assert all(
        p.default is not p.empty or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        for p in beyond
    )


def test_field_wise_layer_takes_the_arguments_of_a_layer_by_place():
    layer = de.keras.layers.FieldWiseEmbedding(
        2, 3, lambda ids: ids % 3, "int32", "float32", "mean"
    )
    assert layer.params.key_dtype.name == "int32"
    assert layer.combiner == "mean"


@pytest.mark.parametrize("name", OTHERS)
def test_other_names_are_there(name, objects):
    owner, _, member = name.rpartition(".")
    assert hasattr(objects.get(owner, de), member)


@pytest.mark.parametrize("name", GONE)
def test_names_that_are_gone_say_what_to_use(name):
    with pytest.raises(AttributeError, match=f"{name}.*migrate-from-tfra"):
        find(name)


def test_unknown_name_is_an_error_as_ever():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'$"):
        find("nonsense")


def rows_of(section):
    """Names in the first column of the tables of a part of the page."""
    return re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE)


def test_page_lists_every_name_once():
    here, gone = PAGE.read_text().split("### Gone")
    assert sorted(rows_of(here)) == sorted(NAMES)
    assert sorted(rows_of(gone)) == sorted([*GONE, *GONE_WITHIN])


def shown_code():
    """Tests, code of the documentation, and doctests."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        if path != pathlib.Path(__file__):
            yield path.read_text()
    for pattern, paths in (
        (r"^```python\n(.*?)^```$", (ROOT / "docs").glob("*.md")),
        (r"^ *((?:>>>|\.\.\.) [^\n]*)$", (ROOT / "src").rglob("*.py")),
    ):
        for path in paths:
            yield from re.findall(pattern, path.read_text(), FLAGS)


@pytest.fixture(scope="module")
def words():
    return {word for text in shown_code() for word in re.findall(r"\w+", text)}


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_shown_by_a_test_or_a_doctest(name, words):
    assert name.rpartition(".")[2] in words
