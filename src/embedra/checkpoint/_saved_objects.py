"""SavedObjects: the objects in a checkpoint, and those of a model they match.

TensorFlow writes the graph of objects, by attribute, beside their tensors.
Keras keeps the layers of a functional model in a list; there, a layer is found
by the name that its variables carry, and by place only if that says nothing.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import keras
import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

from ._variable_names import VARIABLE_NAMES


_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


class Pair(NamedTuple):
    """An object in a checkpoint and the one that it is the state of.

    Attributes:
        node: Its number in the checkpoint.
        live: The object.
    """

    node: int
    live: Any


class SavedObjects:
    """The graph of objects of a checkpoint.

    Args:
        prefix: Prefix of the checkpoint.

    Raises:
        ValueError: If it was not written by `tf.train.Checkpoint`.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.reader: Any = tf.train.load_checkpoint(prefix)
        if not has_objects(prefix):
            msg = (
                f"{prefix}: is not in the form of tf.train.Checkpoint: it "
                "holds no graph of objects. Checkpoints of "
                "tf.compat.v1.train.Saver hold variables by name only."
            )
            raise ValueError(msg)
        graph = trackable_object_graph_pb2.TrackableObjectGraph()
        graph.ParseFromString(self.reader.get_tensor(_GRAPH))
        self._nodes = graph.nodes
        self.shapes: dict[str, list[int]] = (
            self.reader.get_variable_to_shape_map()
        )

    def children(self, node: int) -> dict[str, int]:
        """Returns the objects that one refers to, by name.

        Args:
            node: Its number; 0 is the `tf.train.Checkpoint` itself.
        """
        return {c.local_name: c.node_id for c in self._nodes[node].children}

    def tensor_key(self, node: int) -> str | None:
        """Returns the key of a variable's value; None for other objects.

        Args:
            node: Number of the object.
        """
        for attribute in self._nodes[node].attributes:
            return str(attribute.checkpoint_key)
        return None

    def full_name(self, node: int) -> str:
        """Returns the name that a variable had; "" for other objects.

        Args:
            node: Number of the object.
        """
        for attribute in self._nodes[node].attributes:
            return str(attribute.full_name)
        return ""

    def saver(self, node: int) -> tuple[str, str] | None:
        """Returns who saved an object that is no variable, and by what name.

        Args:
            node: Number of the object.
        """
        saver = self._nodes[node].registered_saver
        return (saver.name, saver.object_name) if saver.name else None

    def names(self, node: int, without: tuple[str, ...] = ()) -> dict[int, str]:
        """Returns what the variables and tables of a model were called.

        Args:
            node: Number of the model.
            without: Attributes of it that are left out.

        Returns:
            The names of those of which the checkpoint tells, by number.
        """
        found = {one: self.full_name(one) for one in self.leaves(node, without)}
        root = self.children(0)
        written = root.get(VARIABLE_NAMES)
        if written is not None and root.get("model") == node:
            (attribute,) = self._nodes[written].attributes
            text = self.reader.get_tensor(attribute.checkpoint_key)
            for path, name in json.loads(text):
                one = node
                for step in path:
                    one = self.children(one)[step]
                found[one] = name
        for one in found:
            saver = self.saver(one)
            if saver is not None:
                found[one] = self._table_name(saver[1]) or ""
        return {one: name for one, name in found.items() if name}

    def leaves(self, node: int, without: tuple[str, ...] = ()) -> Iterator[int]:
        """Walks over all that holds values.

        Args:
            node: Number of the object to begin at.
            without: Attributes of it that are left out.

        Yields:
            Numbers of variables and of what has a saver, each once.
        """
        seen, stack = {node}, [node]
        while stack:
            found = stack.pop()
            if self.tensor_key(found) or self.saver(found):
                yield found
            for name, child in self.children(found).items():
                left_out = found == node and name in without
                if child not in seen and not left_out:
                    seen.add(child)
                    stack.append(child)

    def match(
        self, node: int, live: Any, without: tuple[str, ...] = ()
    ) -> list[Pair]:
        """Finds which objects are the state of which.

        Args:
            node: Number of an object.
            live: What it is the state of.
            without: Attributes of it that are left out.

        Returns:
            This pair, and all that are found from there.
        """
        pairs: list[Pair] = []
        seen: set[int] = set()
        # Models whose name may stand before that of a variable.
        scopes: set[str] = set()
        stack = [Pair(node, live)]
        while stack:
            pair = stack.pop()
            if id(pair.live) in seen:
                continue
            seen.add(id(pair.live))
            pairs.append(pair)
            view = tf.train.TrackableView(pair.live)
            here = dict(view.children(pair.live))
            if pair.live is live:
                here = {n: c for n, c in here.items() if n not in without}
            saved = self.children(pair.node)
            if isinstance(pair.live, keras.Model):
                scopes.add(plain_name(pair.live.name))
            for name, child in self._same(saved, here, scopes).items():
                stack.append(Pair(child, here[name]))
        return pairs

    def _same(
        self, saved: dict[str, int], here: dict[str, Any], scopes: set[str]
    ) -> dict[str, int]:
        """Returns the saved object for each child that has one."""
        found = {}
        layers = {
            name: child
            for name, child in here.items()
            if name.isdigit() and isinstance(child, keras.layers.Layer)
        }
        left = dict(saved)
        owners = {
            name: owner
            for name, node in saved.items()
            if name.isdigit()
            and (owner := self._owner(node)) is not None
            and plain_name(owner) not in scopes
        }
        for name, layer in layers.items():
            at = next((n for n in left if owners.get(n) == layer.name), None)
            if at is not None:
                found[name] = left.pop(at)
        for name, child in here.items():
            if name in found or name not in left:
                continue
            owner = owners.get(name)
            if (
                name in layers
                and owner
                and plain_name(owner) != plain_name(child.name)
            ):
                continue
            found[name] = left.pop(name)
        return found

    def _owner(self, node: int) -> str | None:
        """Returns the name of the layer whose variables an object holds."""
        for child in self.children(node).values():
            saver = self.saver(child)
            table = self._table_name(saver[1]) if saver else None
            if table is not None:
                return table
            name = self.full_name(child)
            if "/" in name:
                return name.split("/", maxsplit=1)[0]
        return None

    def _table_name(self, key: str) -> str | None:
        """Returns the name of a table, by what its saver called it."""
        if not self.reader.has_tensor(f"{key}/header"):
            return None
        header = self.reader.get_tensor(f"{key}/header")
        return str(json.loads(header)["name"])


def has_objects(prefix: str) -> bool:
    """Whether a checkpoint was written by `tf.train.Checkpoint`.

    Those of `tf.compat.v1.train.Saver` hold no graph of objects.

    Args:
        prefix: Prefix of the checkpoint.
    """
    return bool(tf.train.load_checkpoint(prefix).has_tensor(_GRAPH))


def plain_name(name: str) -> str:
    """Returns a name without the number that Keras may have added.

    Args:
        name: Of a layer or model.
    """
    return re.sub(r"_\d+$", "", name)
