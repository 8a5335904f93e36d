"""Every public name of HybridBackend 1.0 is here, or said gone.

The signatures are HybridBackend's: what a program may pass by place or by name.
"""

import importlib
import inspect
import pathlib
import re

import pytest

import embedra as hb


ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "migrate-from-hybridbackend.md"

CONTEXT = (
    "rank world_size local_world_size is_chief task_type task_id cluster_spec "
    "target num_gpus has_gpu devices local_devices default_device options "
    "saving_listeners add_saving_listener rank_at current_index"
)
TRAIN = (
    "monitored_session EvaluationHook EvaluationSpec StepStatHook Policy "
    "Policy.Trigger Saver replace_default_saver Server target wraps_server "
    "export export_all AdadeltaOptimizer AdagradDAOptimizer AdagradOptimizer "
    "AdamOptimizer FtrlOptimizer GradientDescentOptimizer MomentumOptimizer "
    "ProximalAdagradOptimizer ProximalGradientDescentOptimizer "
    "RMSPropOptimizer"
)
DATA = (
    "Dataset.from_parquet Dataset.from_orc ParquetDataset "
    "ParquetDataset.read_schema read_parquet DataFrame.Field "
    "DataFrame.Value DataFrame.parse DataFrame.to_sparse parse to_sparse "
    "DataFrame.unbatch_and_to_sparse unbatch_and_to_sparse rebatch "
    "RebatchDataset deduplicate make_one_shot_iterator "
    "make_initializable_iterator Iterator Iterator.Hook SyncReplicasDataset"
)
BY_MODULE = {
    "": "context Context scope embedding_scope function wraps "
    "get_session_config wraps_session_config dense_features "
    "get_embedding_variable",
    "Context.": "get scope set_tf_config get_tf_config",
    "context.": CONTEXT,
    "data.": DATA,
    "distribute.": "allreduce alltoall broadcast allgather",
    "estimator.": "Estimator RunConfig EstimatorSpec train_and_evaluate",
    "keras.": "Model layers.dense_features",
    "metrics.": "accuracy mean auc gauc",
    "train.": TRAIN,
    "saved_model.": "export",
}
NAMES = [
    f"{module}{name}"
    for module, names in BY_MODULE.items()
    for name in names.split()
]
GONE = [
    "enable_optimization",
    "disable_optimization",
    "context.update_params",
    "embedding",
    "pipeline",
    "train.SyncReplicasOptimizer",
    "train.wraps_monitored_training_session",
]

ELSEWHERE = [
    "data.validate",
    "distribute.CollectiveOps",
    "distribute.Topology",
    "distribute.active_size",
    "distribute.partition",
]

METRIC = "metrics_collections updates_collections name"
EXPORT = "assets_extra as_text clear_devices strip_default_attrs"
SIGNATURES = {
    "Context.set_tf_config": (
        "task_type task_id worker_hosts ps_hosts has_evaluator"
    ),
    "metrics.accuracy": f"labels predictions weights {METRIC}",
    "metrics.mean": f"values weights {METRIC}",
    "metrics.auc": (
        "labels predictions weights num_thresholds metrics_collections "
        "updates_collections curve name summation_method"
    ),
    "metrics.gauc": f"labels predictions indicators {METRIC}",
    "train.EvaluationHook": "fn steps every_n_iter summary_dir history",
    "train.StepStatHook": "every_n_iter count unit",
    "train.Policy": "metrics every_n_steps every_n_secs at_end",
    "train.Policy.Trigger": "policies scaffold output_dir",
    "train.export": (
        f"export_dir_base checkpoint_path signature_def_fn {EXPORT} mode"
    ),
    "train.export_all": (
        "export_dir_base checkpoint_path signature_defs_and_main_op_fn "
        f"{EXPORT} modes"
    ),
    "estimator.train_and_evaluate": "estimator train_spec eval_spec",
}


def sections():
    """Rows of the tables of the page: what is here, gone, or elsewhere."""
    names = PAGE.read_text().split("## All names")[1]
    here, gone, elsewhere = re.split("### (?:Gone|Not under.*)\n", names)
    rows = re.findall(r"^\| `([\w.]+)` \| `([\w.]+)` \|", here, re.MULTILINE)
    return rows, *(
        re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE)
        for section in (gone, elsewhere)
    )


def find(path):
    package, *names = path.split(".")
    found = importlib.import_module(package)
    for name in names:
        found = getattr(found, name)
    return found


def test_page_lists_every_name_once():
    here, gone, elsewhere = sections()
    assert sorted(name for name, _ in here) == sorted(NAMES)
    assert gone == GONE
    assert elsewhere == ELSEWHERE


@pytest.mark.parametrize(("name", "path"), sections()[0], ids=lambda n: n)
def test_every_name_is_where_the_page_says(name, path):
    del name
    if path.startswith("embedra.context."):
        # A property may have the value None.
        assert hasattr(hb.context, path.rpartition(".")[2])
    else:
        assert find(path) is not None


@pytest.mark.parametrize("name", GONE)
def test_names_that_are_gone_say_what_to_use(name):
    with pytest.raises(AttributeError, match=r".*: .*hybridbackend\.md"):
        find(f"embedra.{name}")


@pytest.mark.parametrize("name", ELSEWHERE)
def test_page_says_of_no_name_that_is_here_that_it_is_not(name):
    with pytest.raises(AttributeError):
        find(f"embedra.{name}")


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters_come_in_the_order_of_hybridbackend(name):
    found = find(f"embedra.{name}")
    called = found.__init__ if inspect.isclass(found) else found
    parameters = list(inspect.signature(called).parameters.values())
    if inspect.isclass(found):
        parameters = parameters[1:]
    expected = SIGNATURES[name].split()
    assert [p.name for p in parameters[: len(expected)]] == expected
    beyond = parameters[len(expected) :]
    assert all(
        p.default is not p.empty or p.kind == p.VAR_KEYWORD for p in beyond
    )


def test_every_option_is_told_on_the_page():
    text = PAGE.read_text()
    options = [*hb.context.options.__dataclass_fields__]
    options += importlib.import_module(
        "embedra.scopes._foreign_options"
    ).MEANINGLESS
    assert [name for name in options if f"`{name}`" not in text] == []
