"""TableLayer: what layers that own a table have in common."""

from typing import Any

import keras

from embedra import table as table_lib

from ._saved import check_same_name


class TableLayer(keras.layers.Layer):
    """A layer that owns a table, saves it, and takes ids as its inputs.

    Subclasses set `table` when they are made.

    Attributes:
        table: The table.
    """

    table: table_lib.Table

    @property
    def owner(self) -> str:
        """How messages call the layer."""
        return f"Layer {self.name!r}"

    def size(self) -> Any:
        """Returns the number of ids in the table."""
        return self.table.size()

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Checks the ids' dtype, then calls the layer.

        Args:
            inputs: Ids; nested lists and NumPy arrays too.
            *args: See `call`.
            **kwargs: See `call`.

        Returns:
            Rows.

        Raises:
            KeyDtypeError: If ids are floats, also symbolic ones.
        """
        inputs = table_lib.to_tensor(inputs, self.owner)
        table_lib.check_ids(self.table.key_dtype, inputs, self.owner)
        return super().__call__(inputs, *args, **kwargs)

    def save_own_variables(self, store: Any) -> None:
        """Writes the table to a Keras weights store, in chunks.

        Args:
            store: Of Keras.
        """
        table_lib.save_to_store(self.table, store)

    def load_own_variables(self, store: Any) -> None:
        """Replaces the table by the one in a Keras weights store.

        Args:
            store: Of Keras.

        Raises:
            ValueError: If there is none, its width or dtypes differ, or it was
                saved by a layer that was given another name.
        """
        header = table_lib.read_header(store, self.table)
        check_same_name(self, header.name)
        table_lib.load_from_store(self.table, store)
