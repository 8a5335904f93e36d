"""What of a TF1 graph its signatures need."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf


v1: Any = tf.compat.v1

# Name of the op that is to be run before any signature.
INITIALIZERS = "embedra_initializers"


def pruned(
    graph: tf.Graph,
    signatures: Mapping[str, Any],
    stand_in: Any,
) -> tuple[Any, list[Any]]:
    """Returns the part of a graph that signatures need.

    Args:
        graph: The graph, current.
        signatures: `SignatureDef`s by name.
        stand_in: What stands in for its tables.

    Returns:
        The part as a `MetaGraphDef`, with a saver, and the variables of the
        model in it.
    """
    outputs = [
        name.partition(":")[0]
        for signature in signatures.values()
        for info in (*signature.inputs.values(), *signature.outputs.values())
        for name in _tensors_of(info)
    ]
    needed = {node.name for node in _part(graph.as_graph_def(), outputs).node}
    roots = [*outputs, _initializers(needed).name]
    kept = [v for v in v1.global_variables() if v.op.name in needed]
    variables = [*kept, *stand_in.variables]
    saver = v1.train.Saver(variables, allow_empty=True)
    saver_def = saver.as_saver_def() if variables else None
    graph.get_collection_ref(v1.GraphKeys.GLOBAL_VARIABLES)[:] = variables
    for variable in variables:
        roots += _ops_of(variable)
    if saver_def is not None:
        roots += [
            saver_def.filename_tensor_name.partition(":")[0],
            saver_def.save_tensor_name.partition(":")[0],
            saver_def.restore_op_name,
        ]
    assets = graph.get_collection(v1.GraphKeys.ASSET_FILEPATHS)
    roots += [asset.op.name for asset in assets]
    meta = v1.train.export_meta_graph(
        graph_def=_part(graph.as_graph_def(), roots),
        saver_def=saver_def,
        collection_list=[
            v1.GraphKeys.GLOBAL_VARIABLES,
            v1.GraphKeys.ASSET_FILEPATHS,
        ],
    )
    return meta, kept


def _initializers(needed: set[str]) -> Any:
    """Makes the op that fills hash tables and local variables.

    Args:
        needed: Names of the ops that signatures need.
    """
    initializers = [
        variable.initializer
        for variable in v1.local_variables()
        if variable.op.name in needed
    ]
    for initializer in v1.get_collection(v1.GraphKeys.TABLE_INITIALIZERS):
        if any(tensor.op.name in needed for tensor in initializer.inputs):
            initializers.append(initializer)
    with v1.name_scope(None):
        return tf.group(*initializers, name=INITIALIZERS)


def _part(graph_def: Any, roots: Sequence[str]) -> Any:
    unique = list(dict.fromkeys(roots))
    return v1.graph_util.extract_sub_graph(graph_def, unique)


def _tensors_of(info: Any) -> Iterator[str]:
    """Yields the tensors that a `TensorInfo` names."""
    kind = info.WhichOneof("encoding")
    if kind == "coo_sparse":
        sparse = info.coo_sparse
        yield sparse.values_tensor_name
        yield sparse.indices_tensor_name
        yield sparse.dense_shape_tensor_name
    elif kind == "composite_tensor":
        for component in info.composite_tensor.components:
            yield from _tensors_of(component)
    else:
        yield info.name


def _ops_of(variable: Any) -> list[str]:
    """Returns the ops by which a variable is known in a meta graph."""
    proto = variable.to_proto()
    names = (
        proto.variable_name,
        proto.initializer_name,
        proto.snapshot_name,
        proto.initial_value_name,
    )
    return [name.partition(":")[0] for name in names if name]
