"""export: writes a SavedModel for serving."""

import dataclasses
import json
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from embedra import table as table_lib
from embedra._checks import check_flag
from embedra.distribute import gather_values, job_communicator, together

from ._folders import (
    REPORT,
    add_extra,
    appearing,
    checked_extra,
    final_folder,
    make_text,
)
from ._native_export import check_owner, export_native
from ._signatures import Endpoint, endpoints_of
from ._stock_ops import check_ops
from ._stock_tables import StockTables
from ._storage import QUANTIZATIONS
from ._table_files import WrittenTable, answer_for, write_tables
from ._traced import Traced, resources_of


@dataclasses.dataclass(frozen=True)
class Exported:
    """What an export wrote.

    Attributes:
        path: The SavedModel's folder.
        tables: Its tables; none with `native_ops`.
        quantize: How rows are stored.
    """

    path: str
    tables: tuple[WrittenTable, ...]
    quantize: str | None


def report_of(
    tables: Sequence[WrittenTable], quantize: str | None
) -> dict[str, str]:
    """Returns the file that reports an export, by its name.

    Args:
        tables: What was written.
        quantize: How rows are stored.
    """
    content = {
        "quantize": quantize,
        "tables": [table._asdict() for table in tables],
    }
    return {REPORT: json.dumps(content, indent=2)}


def export(
    model: Any,
    export_dir: Any,
    *,
    signature: Any = None,
    native_ops: bool = False,
    quantize: str | None = None,
    assets_extra: Mapping[str, Any] | Sequence[Any] | None = None,
    as_text: bool = False,
    versioned: bool = False,
    overwrite: bool = False,
) -> Exported:
    """Writes a SavedModel of a model for serving, without optimizer state.

    By default it has TensorFlow's own ops alone, and loads where Embedra is not
    installed: with `tf.saved_model.load`, in TensorFlow Serving, and by the C
    API. Its tables can only be read. Ids that they lack read as they do in the
    process that exports: as the layer's `inference_default`, of which the
    default is the row that an id would start with.

    The loaded object has a function for each signature, `serve` for the default
    one, which takes and gives what the model does. The signatures themselves
    take and give tensors by name: an input is called by its key in a dict,
    elsewhere by its name. Ragged inputs are `NAME_values` and
    `NAME_row_splits`, sparse ones `NAME_values`, `NAME_indices` and
    `NAME_dense_shape`. Outputs are called by their key in a dict, elsewhere
    `output_0` and so on. Signatures of requests are free in their batch size.

    Rows are in files of variables, never in the graph, and are copied there in
    chunks. Files are written under a temporary name, which is changed at the
    end.

    In a job of several ranks, all of them call this, with the same arguments.
    Rank 0 writes one whole model; the others send it their part of the tables.

    Args:
        model: A Keras model, or a function of tensors.
        export_dir: The folder to write. It must be new or empty.
        signature: What is served.

            * None: the model, with inputs as it was built with. A model that
              is a subclass does not tell what they are.
            * A structure of specs (`tf.TensorSpec`, `tf.RaggedTensorSpec`,
              `tf.SparseTensorSpec`, `keras.Input`): the model, with such
              inputs; or a function of no arguments that returns it.
            * A dict of several by name, each None or a structure of specs as
              above, a `tf.function` with an `input_signature`, or a tuple of
              a function and the specs of its arguments. The one that clients
              use by default is "serving_default".
        native_ops: Whether to export with Embedra's ops, and whole tables that
            can be trained further. It loads where `embedra` has been imported,
            and has lists of variables as what `keras.Model.export` writes.
        quantize: "float16" or "int8" (with a scale for each row) to store rows
            smaller; see `Exported.tables` for the error.
        assets_extra: Files to copy to the folder `assets.extra`: a list, or a
            dict from names there.
        as_text: Whether the graph is written as text, `saved_model.pbtxt`.
        versioned: Whether to write into a new folder in `export_dir`, named by
            the time in seconds, as TensorFlow Serving looks for it.
        overwrite: Whether to replace a SavedModel that is there.

    Returns:
        Where it was written, and which tables with how many keys.

    Raises:
        FileExistsError: If something is there. In a job, this and all else
            is the cause of a RankError on all ranks.
        FileNotFoundError: If one of `assets_extra` is not there.
        StockOpsError: If the model does more with a table than look up.
        TypeError: If an argument is of another kind.
        ValueError: If an argument is out of range, inputs are unknown, or a
            function uses a table or resource that the model does not own.

    Example:
        >>> import keras, tempfile
        >>> import tensorflow as tf
        >>> from embedra.layers import Embedding
        >>> ids = keras.Input((), dtype="int64", name="user")
        >>> rows = Embedding(4, name="users")(ids)
        >>> model = keras.Model(ids, keras.layers.Dense(1)(rows))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     exported = export(model, folder, versioned=True)
        ...     loaded = tf.saved_model.load(exported.path)
        >>> exported.tables[0].keys
        0
        >>> loaded.serve(tf.constant([7, 8], tf.int64)).shape
        TensorShape([2, 1])
    """
    communicator = job_communicator()
    with together(communicator, "exporting to", str(export_dir)):
        check_flag("native_ops", native_ops)
        check_flag("as_text", as_text)
        check_flag("versioned", versioned)
        check_flag("overwrite", overwrite)
        _check_quantize(quantize, native_ops=native_ops)
        if native_ops:
            check_owner(model)
        written: Any = None
        if communicator is None or communicator.rank == 0:
            extra = checked_extra(assets_extra)
            folder = final_folder(
                export_dir, versioned=versioned, overwrite=overwrite
            )
            endpoints = endpoints_of(model, signature)
            with appearing(
                folder, versioned=versioned, overwrite=overwrite
            ) as new:
                tables, texts = _write(
                    model, endpoints, new.temporary, quantize, native_ops
                )
                add_extra(new.temporary, extra, texts)
                if as_text:
                    make_text(new.temporary)
            written = new.path, tables
        else:
            endpoints = endpoints_of(model, signature)
            _take_part(model, endpoints, quantize, native_ops)
        told = gather_values(communicator, written, label="export")
    path, tables = told[0]
    return Exported(path, tuple(WrittenTable(*t) for t in tables), quantize)


def _write(
    model: Any,
    endpoints: list[Endpoint],
    folder: str,
    quantize: str | None,
    native_ops: bool,
) -> tuple[tuple[WrittenTable, ...], dict[str, str]]:
    """Fills a folder; returns the tables, and texts that go with them."""
    if native_ops:
        export_native(model, endpoints, folder)
        return (), {}
    traced, stock = _traced_stock(model, endpoints, quantize)
    traced.save(folder)
    tables = write_tables(stock.made, folder)
    return tables, report_of(tables, quantize)


def _take_part(
    model: Any,
    endpoints: list[Endpoint],
    quantize: str | None,
    native_ops: bool,
) -> None:
    """Brings what this rank has of tables to what rank 0 writes."""
    if native_ops:
        # As TensorFlow saves them: what it writes here is of no use.
        with tempfile.TemporaryDirectory(prefix="embedra-") as scratch:
            export_native(model, endpoints, scratch)
        return
    _, stock = _traced_stock(model, endpoints, quantize)
    for table in stock.made:
        answer_for(table)


def _check_quantize(quantize: Any, *, native_ops: bool) -> None:
    known = quantize is None or isinstance(quantize, str)
    if not known or quantize not in QUANTIZATIONS:
        msg = (
            f"`quantize` must be one of {QUANTIZATIONS}. Received: {quantize!r}"
        )
        raise ValueError(msg)
    if quantize is not None and native_ops:
        msg = (
            "Tables that are exported with native_ops=True keep their dtype. "
            "Leave out `quantize`."
        )
        raise ValueError(msg)


def _traced_stock(
    model: Any, endpoints: list[Endpoint], quantize: str | None
) -> tuple[Traced, StockTables]:
    """Traces functions with TensorFlow's own ops, and what they read."""
    stock = StockTables(quantize)
    traced = Traced(model)
    traced.build(model, endpoints)
    with table_lib.reading_from(stock):
        for endpoint in endpoints:
            try:
                signature = traced.add(endpoint)
            except Exception:
                # Keras and AutoGraph make other errors of it.
                if stock.refusal is not None:
                    raise stock.refusal from None
                raise
            check_ops(signature.graph.as_graph_def(), endpoint.name)
    traced.root.embedra_tables = stock.made
    traced.root.embedra_variables = traced.variables_but(
        variable for table in stock.made for variable in table.variables
    )
    traced.root.embedra_resources = [
        one
        for one in resources_of(model)
        if not isinstance(one, table_lib.Table)
    ]
    return traced, stock
