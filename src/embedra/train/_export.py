"""export and export_all: SavedModels from checkpoints of TF1 graphs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from embedra import scopes
from embedra.saved_model import export_graph

from ._checkpoint_source import CheckpointSource
from ._session_config import get_session_config


_DEFAULT = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
_PREDICT = "infer"


def export(
    export_dir_base: Any,
    checkpoint_path: Any,
    signature_def_fn: Callable[[], Any],
    assets_extra: Mapping[str, Any] | Sequence[Any] | None = None,
    as_text: bool = False,
    clear_devices: bool = True,
    strip_default_attrs: bool = True,
    mode: str = _PREDICT,
) -> str | None:
    """Exports a checkpoint of a TF1 graph as a SavedModel for serving.

    It has TensorFlow's own ops alone, with tables that can only be read, and
    loads where Embedra is not installed. Its folder is named by the time in
    seconds, and appears when it is complete.

    Args:
        export_dir_base: Where the folder is made.
        checkpoint_path: What is exported: a checkpoint of
            `tf.compat.v1.train.Saver`, or a folder of which the latest is
            taken.
        signature_def_fn: Builds the graph in the graph that is current, with
            placeholders and the variables and tables of training, by their
            names; and returns the `SignatureDef`, such as
            `tf.compat.v1.saved_model.predict_signature_def` makes.
        assets_extra: Files to copy to the folder `assets.extra`: a list, or a
            dict from names there.
        as_text: Whether the graph is written as text.
        clear_devices: Must be True: devices of training are not exported.
        strip_default_attrs: Must be True.
        mode: Must be "infer".

    Returns:
        The folder; None if this process is not the chief.

    Raises:
        FileNotFoundError: If there is no checkpoint.
        StockOpsError: If the graph does more with a table than look up.
        TypeError: If what the function returns is no signature.
        ValueError: If an argument is out of range, or the checkpoint is not one
            of the graph.
    """
    return export_all(
        export_dir_base,
        checkpoint_path,
        lambda: {_DEFAULT: signature_def_fn()},
        assets_extra=assets_extra,
        as_text=as_text,
        clear_devices=clear_devices,
        strip_default_attrs=strip_default_attrs,
        modes=[mode],
    )


def export_all(
    export_dir_base: Any,
    checkpoint_path: Any,
    signature_defs_and_main_op_fn: Callable[[], Any],
    assets_extra: Mapping[str, Any] | Sequence[Any] | None = None,
    as_text: bool = False,
    clear_devices: bool = True,
    strip_default_attrs: bool = True,
    modes: Sequence[str] | None = None,
) -> str | None:
    """Exports a checkpoint with several signatures; see `export`.

    Args:
        export_dir_base: See `export`, like all that are not explained.
        checkpoint_path: What is exported.
        signature_defs_and_main_op_fn: Builds the graph, and returns the
            `SignatureDef`s by name. The main op that HybridBackend asks for is
            made by itself: it fills hash tables and local variables.
        assets_extra: Files to copy.
        as_text: Whether the graph is written as text.
        clear_devices: Must be True.
        strip_default_attrs: Must be True.
        modes: Must be None or ["infer"].

    Returns:
        The folder; None if this process is not the chief.

    Raises:
        FileNotFoundError: If there is no checkpoint.
        StockOpsError: If the graph does more with a table than look up.
        TypeError: If what the function returns is no dict of signatures.
        ValueError: If an argument is out of range, or the checkpoint is not one
            of the graph.
    """
    _check(modes, clear_devices, strip_default_attrs)
    checkpoint = _checkpoint(str(checkpoint_path))
    if not scopes.context.is_chief:
        return None
    source = CheckpointSource(checkpoint, config=get_session_config())

    def build() -> dict[str, Any]:
        with scopes.scope(mode=_PREDICT):
            return _signatures(signature_defs_and_main_op_fn())

    exported = export_graph(
        build,
        export_dir_base,
        twins_of=source.twins_of,
        values_of=source.values_of,
        assets_extra=assets_extra,
        as_text=as_text,
        versioned=True,
    )
    tf.compat.v1.logging.info("Exported %s to %s", checkpoint, exported.path)
    return exported.path


def _check(
    modes: Sequence[str] | None, clear_devices: bool, strip_attributes: bool
) -> None:
    if modes is not None and list(modes) != [_PREDICT]:
        msg = (
            f"Models are exported for mode {_PREDICT!r} alone: an exported "
            f"model only reads its tables. Received modes: {list(modes)}."
        )
        raise ValueError(msg)
    if not clear_devices or not strip_attributes:
        msg = (
            "Models are exported without devices and without attributes that "
            "have their defaults, so that they load elsewhere. Leave out "
            f"`clear_devices` and `strip_default_attrs`. Received: "
            f"clear_devices={clear_devices}, "
            f"strip_default_attrs={strip_attributes}."
        )
        raise ValueError(msg)


def _checkpoint(path: str) -> str:
    found: str | None = path
    if tf.io.gfile.isdir(path):
        found = tf.train.latest_checkpoint(path)
    if found is None or not tf.io.gfile.exists(f"{found}.index"):
        msg = (
            f"There is no checkpoint at {path!r} to export. Train first, or "
            "give the path without .index."
        )
        raise FileNotFoundError(msg)
    return found


def _signatures(returned: Any) -> dict[str, Any]:
    if isinstance(returned, tuple | list) and returned:
        returned, *main_op = returned
        if any(op is not None for op in main_op):
            msg = (
                "A main op is not exported: hash tables and local variables "
                "are filled by one that is made by itself. Return the "
                "signatures alone."
            )
            raise ValueError(msg)
    known = tf.compat.v1.MetaGraphDef.SignatureDefEntry
    signature_class = known().value.__class__
    if (
        not isinstance(returned, Mapping)
        or not returned
        or not all(isinstance(s, signature_class) for s in returned.values())
    ):
        msg = (
            "Signatures must be SignatureDefs by name, as "
            "tf.compat.v1.saved_model.predict_signature_def(inputs, outputs) "
            f"makes them. Received: {returned!r}."
        )
        raise TypeError(msg)
    return dict(returned)
