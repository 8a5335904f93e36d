"""TableLayer: what layers that own a table have in common."""

from typing import TYPE_CHECKING, Any

import keras

from embedra import table as table_lib
from embedra.lookup import with_rank

from ._saved import check_same_name


# At run time `TableOwner` is a mixin, for layers of other libraries too.
_Layer: Any = keras.layers.Layer if TYPE_CHECKING else object


class TableOwner(_Layer):
    """A layer that owns tables, saves them, and takes ids as its inputs.

    It is mixed into layers of Keras, or of another library that has `__call__`,
    and saves layers by `save_own_variables`.

    Attributes:
        name: The layer's name, and the tables'.
    """

    name: str

    @property
    def table_group(self) -> table_lib.TableGroup:
        """The tables."""
        raise NotImplementedError

    @property
    def owner(self) -> str:
        """How messages call the layer."""
        return f"Layer {self.name!r}"

    def size(self) -> Any:
        """Returns the number of ids in the tables."""
        return sum(table.size() for table in self.table_group.tables)

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
        inputs = with_rank(table_lib.to_tensor(inputs, self.owner))
        args = tuple(with_rank(arg) for arg in args)
        kwargs = {name: with_rank(arg) for name, arg in kwargs.items()}
        key_dtype = self.table_group.first.key_dtype
        table_lib.check_ids(key_dtype, inputs, self.owner)
        return super().__call__(inputs, *args, **kwargs)

    def save_own_variables(self, store: Any) -> None:
        """Writes the tables to a Keras weights store, in chunks.

        Args:
            store: Of Keras.
        """
        table_lib.save_to_store(self.table_group, store)

    def load_own_variables(self, store: Any) -> None:
        """Replaces the tables by those in a Keras weights store.

        Args:
            store: Of Keras.

        Raises:
            ValueError: If there are none, their width or dtypes differ, or they
                were saved by a layer that was given another name.
        """
        header = table_lib.read_header(store, self.table_group.first)
        check_same_name(self, header.name)
        table_lib.load_from_store(self.table_group, store)


class TableLayer(TableOwner, keras.layers.Layer):
    """A Keras layer that owns a table.

    Subclasses set `table` when they are made, or define `table_group`.

    Attributes:
        table: The table.
    """

    table: table_lib.Table

    @property
    def table_group(self) -> table_lib.TableGroup:
        """The tables."""
        return table_lib.TableGroup([self.table])
