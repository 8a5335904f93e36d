"""What a Keras layer of columns has of variables and tables."""

import copy
from typing import Any

import keras
import tensorflow as tf

from embedra import dynamic_embedding as de, table as table_lib
from embedra.dynamic_embedding.embedding_variable import EmbeddingVariable
from embedra.layers import TableOwner

from ._embedding_column import DynamicEmbeddingColumn
from ._inputs import Access


class OwnedTable(TableOwner, keras.layers.Layer):
    """Owns a table, so that Keras finds, saves and restores it.

    Args:
        variable: The table.
        table_name: Its name within the layer of columns.
        **kwargs: Those of `keras.layers.Layer`.
    """

    def __init__(
        self, variable: de.Variable, table_name: str, **kwargs: Any
    ) -> None:
        super().__init__(name=table_name.replace("/", "_"), **kwargs)
        self.variable = variable
        self.table_name = table_name
        self.built = True

    @property
    def table_group(self) -> table_lib.TableGroup:
        """The table."""
        group: table_lib.TableGroup = self.variable.state.group
        return group

    def save_own_variables(self, store: Any) -> None:
        """Writes the table, less what has expired, to a weights store.

        Args:
            store: Of Keras.
        """
        expiry = self.variable.state.expiry
        if expiry is not None:
            expiry.evict(self.variable.tables)
        super().save_own_variables(store)

    def load_own_variables(self, store: Any) -> None:
        """Replaces the table by that in a weights store.

        Args:
            store: Of Keras.

        Raises:
            ValueError: If there is none, it does not fit, or it is that of
                another column.
        """
        header = table_lib.read_header(store, self.table_group.first)
        saved = header.name.partition("/")[2]
        if saved != self.table_name:
            msg = (
                f"The file has the table of column {saved!r} where the model "
                f"has {self.table_name!r}. Nothing was restored into it: give "
                "the layers of both models the same columns."
            )
            raise ValueError(msg)
        table_lib.load_from_store(self.table_group, store)


class TableOfColumns(OwnedTable):
    """Owns the table of a column, or the one that columns share.

    Args:
        column: The column, or one of those that share the table.
        owner: Name of the layer of columns.
        **kwargs: Those of `keras.layers.Layer`.

    Attributes:
        embedding_variable: The table.
    """

    def __init__(
        self, column: DynamicEmbeddingColumn, owner: str, **kwargs: Any
    ) -> None:
        name = column.table_name
        with keras.name_scope(owner), keras.name_scope(name.replace("/", "_")):
            table = EmbeddingVariable(
                f"{owner}/{name}", **column.table_arguments()
            )
            embeddings = table.trainable_variable
        super().__init__(table.variable, name, **kwargs)
        self.embedding_variable = table
        self.embeddings = embeddings
        self.embeddings.trainable = self.trainable
        if table.candidates is not None:
            self.waiting = OwnedTable(table.candidates, f"{name}/candidates")


class StateOfLayer(tf.__internal__.feature_column.StateManager):
    """Holds the variables and tables of the columns of a layer.

    Args:
        layer: The layer, which owns variables.
        tables: Tables by the name that columns have for them.

    Attributes:
        access: How rows are looked up.
    """

    def __init__(
        self,
        layer: keras.layers.Layer,
        tables: dict[str, TableOfColumns],
    ) -> None:
        self._layer = layer
        self._tables = tables
        self._variables: dict[tuple[str, str], Any] = {}
        # Owned by the layer, so that exports find them.
        layer.vocabularies = tf.Module(name="vocabularies")
        self._vocabularies = layer.vocabularies
        self.access = Access()

    def for_call(self, access: Access) -> "StateOfLayer":
        """Returns the same state, for a call.

        Args:
            access: How the call looks up rows.
        """
        state = copy.copy(self)
        state.access = access
        return state

    def table_of(self, column: DynamicEmbeddingColumn) -> EmbeddingVariable:
        """Returns the table of a column.

        Args:
            column: The column.
        """
        return self._tables[column.table_name].embedding_variable

    def create_variable(
        self,
        feature_column: Any,
        name: str,
        shape: Any,
        dtype: Any = None,
        trainable: bool = True,
        use_resource: bool = True,
        initializer: Any = None,
    ) -> Any:
        """Makes a dense variable of a stock column.

        Args:
            feature_column: The column.
            name: Name of the variable.
            shape: Its shape.
            dtype: Its dtype, by default that of the layer.
            trainable: Whether it is trained.
            use_resource: Unused.
            initializer: What it starts from.
        """
        del use_resource
        made = self._layer.add_weight(
            name=f"{feature_column.name}/{name}".replace("/", "_"),
            shape=shape,
            dtype=tf.as_dtype(dtype or tf.float32).name,
            trainable=trainable,
            initializer=initializer,
        )
        self._variables[feature_column.name, name] = made
        return made.value

    def get_variable(self, feature_column: Any, name: str) -> Any:
        """Returns a dense variable of a stock column.

        Args:
            feature_column: The column.
            name: Name of the variable.
        """
        return self._variables[feature_column.name, name].value

    def add_resource(
        self, feature_column: Any, name: str, resource: Any
    ) -> Any:
        """Keeps a vocabulary of a stock column.

        Args:
            feature_column: The column.
            name: Name of the vocabulary.
            resource: The vocabulary.
        """
        setattr(self._vocabularies, _joined(feature_column, name), resource)
        return resource

    def has_resource(self, feature_column: Any, name: str) -> bool:
        """Returns whether a vocabulary of a stock column is there.

        Args:
            feature_column: The column.
            name: Name of the vocabulary.
        """
        return hasattr(self._vocabularies, _joined(feature_column, name))

    def get_resource(self, feature_column: Any, name: str) -> Any:
        """Returns a vocabulary of a stock column.

        Args:
            feature_column: The column.
            name: Name of the vocabulary.
        """
        return getattr(self._vocabularies, _joined(feature_column, name))


def _joined(column: Any, name: str) -> str:
    return f"{column.name}/{name}"
