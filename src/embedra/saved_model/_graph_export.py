"""export_graph: writes a SavedModel of a TF1 graph for serving."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from embedra import table as table_lib

from ._export import Exported, report_of
from ._folders import add_extra, appearing, checked_extra, final_folder
from ._graph_pruning import INITIALIZERS, pruned
from ._graph_stand_in import GraphTables, Twins
from ._stock_ops import check_ops
from ._table_files import write_tables


v1: Any = tf.compat.v1


def export_graph(
    build: Callable[[], Mapping[str, Any]],
    export_dir: Any,
    *,
    twins_of: Twins,
    values_of: Callable[[Sequence[Any]], Sequence[Any]],
    assets_extra: Mapping[str, Any] | Sequence[Any] | None = None,
    as_text: bool = False,
    versioned: bool = False,
) -> Exported:
    """Writes a SavedModel of a TF1 graph for serving.

    It has TensorFlow's own ops alone. Lookups in tables become reads of what is
    written; of all else there is what the signatures need.

    Args:
        build: Builds the graph that is current, and returns its signatures:
            `SignatureDef`s by name.
        export_dir: The folder to write.
        twins_of: Given tables of the graph that hold one map between them,
            gives eager tables that hold what is exported.
        values_of: Given variables of the graph, gives their values.
        assets_extra: See `embedra.saved_model.export`, like all that follow.
        as_text: Whether the graph is written as text.
        versioned: Whether to write into a new folder in `export_dir`.

    Returns:
        Where it was written, and which tables with how many keys.

    Raises:
        FileExistsError: If something is there.
        FileNotFoundError: If one of `assets_extra` is not there.
        StockOpsError: If the graph does more with a table than look up.
    """
    extra = checked_extra(assets_extra)
    folder = final_folder(export_dir, versioned=versioned, overwrite=False)
    stand_in = GraphTables(twins_of)
    with tf.Graph().as_default() as graph:
        with table_lib.reading_from(stand_in):
            signatures = dict(build())
        meta, kept = pruned(graph, signatures, stand_in)
        check_ops(meta.graph_def, ", ".join(signatures))
        values = dict(
            zip([v.op.name for v in kept], values_of(kept), strict=True)
        )
    with appearing(folder, versioned=versioned) as new:
        # The builder wants to make the folder itself.
        inner = os.path.join(new.temporary, "model")
        _write_graph(meta, signatures, values, inner, as_text=as_text)
        for name in tf.io.gfile.listdir(inner):
            tf.io.gfile.rename(
                os.path.join(inner, name), os.path.join(new.temporary, name)
            )
        tf.io.gfile.rmtree(inner)
        with tf.__internal__.eager_context.eager_mode():
            tables = write_tables(stand_in.stock.made, new.temporary)
        add_extra(new.temporary, extra, report_of(tables, None))
    return Exported(new.path, tables, None)


def _write_graph(
    meta: Any,
    signatures: Mapping[str, Any],
    values: Mapping[str, Any],
    folder: str,
    *,
    as_text: bool,
) -> None:
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        saver = v1.train.import_meta_graph(meta)
        variables = v1.global_variables()
        session.run(
            [variable.initializer for variable in variables],
            {
                variable.initial_value: values[variable.op.name]
                for variable in variables
                if variable.op.name in values
            },
        )
        builder = v1.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(
            session,
            [v1.saved_model.tag_constants.SERVING],
            signature_def_map=dict(signatures),
            assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
            clear_devices=True,
            main_op=graph.get_operation_by_name(INITIALIZERS),
            strip_default_attrs=True,
            saver=saver,
        )
        builder.save(as_text)
