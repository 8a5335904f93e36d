"""What stands for looked-up rows: the `trainable` of a lookup."""

import itertools
from typing import Any
from weakref import WeakValueDictionary

import tensorflow as tf

from embedra import table as table_lib
from embedra.lookup import RowReader
from embedra.optimizers import TableVariable, outside_functions

from ._shards import ShardedTables
from ._sharing import current_graph


# By a number that is never given twice, unlike `id`.
_BY_NUMBER: WeakValueDictionary[int, "TrainableWrapper"] = WeakValueDictionary()
_NUMBERS = itertools.count()


class TrainableWrapper(TableVariable):
    """Stands for the rows of a `de.Variable` in tapes and optimizers.

    It holds no rows. A tape gives its gradient as `tf.IndexedSlices` over the
    rows that were looked up, and an optimizer that is handed that gradient
    updates the tables.

    Args:
        params: The `de.Variable`.
        name: Name of the lookups that it stands for.
        trainable: Whether it is among the trainable variables.
        max_norm: Longest L2 norm of a row that lookups return, or None.
    """

    def __init__(
        self,
        params: Any,
        name: str,
        *,
        trainable: bool = True,
        max_norm: float | None = None,
    ) -> None:
        self.params = params
        self.max_norm = max_norm
        make = super().__init__
        outside_functions(lambda: make(params.tables[0], name=name))
        self._reader = RowReader(params.tables[0], self, "initializer")
        self.trainable = trainable
        self.number = next(_NUMBERS)
        _BY_NUMBER[self.number] = self
        keep_local(self.value)

    @property
    def trainable(self) -> bool:
        """Whether it is trained; not unless the `de.Variable` is."""
        return bool(self._trainable and self.params.trainable)

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)

    @property
    def reader_of_ranks(self) -> RowReader | None:
        """What reads rows from the ranks that hold them, if others do."""
        return None if self._reader.ranks is None else self._reader

    def __repr__(self) -> str:
        return f"<TrainableWrapper {self.name!r} of {self.params!r}>"

    def __tf_tracing_type__(self, context: Any) -> Any:
        """Lets a `tf.function` be given the variable, not its (empty) value."""
        del context
        return _Spec(self.number)

    @property
    def tables(self) -> list[table_lib.Table]:
        """The tables of the variable, one for each device."""
        return list(self.params.tables)

    def by_table(
        self, gradient: tf.IndexedSlices
    ) -> list[tuple[table_lib.Table, tf.IndexedSlices]]:
        """Splits a gradient by table; see `ShardedTables.lookup`.

        Args:
            gradient: As a tape gives it.

        Returns:
            Each table with rows of gradients and positions of records.
        """
        shards: ShardedTables = self.params.shards
        return shards.split_gradient(gradient)

    def read_value(self, do_prefetch: bool = True) -> tf.Tensor:
        """Tells tapes of a use, and returns the (empty) value.

        Args:
            do_prefetch: Unused.
        """
        del do_prefetch
        if current_graph() is None:
            return self.value.read_value()
        # TF1 programs may initialise global variables only.
        with tf.control_dependencies([self.value.initializer]):
            return self.value.read_value()


def keep_local(variable: tf.Variable) -> None:
    """Keeps a variable of a TF1 graph out of checkpoints.

    Args:
        variable: One that has no content worth saving.
    """
    graph = current_graph()
    if graph is None:
        return
    keys = tf.compat.v1.GraphKeys
    saved = graph.get_collection_ref(keys.GLOBAL_VARIABLES)
    saved[:] = [v for v in saved if v is not variable]
    graph.add_to_collection(keys.LOCAL_VARIABLES, variable)


class FunctionTrainable(tf.__internal__.CompositeTensor):
    """A `TrainableWrapper` while a `tf.function` is traced.

    A variable that a function returns would arrive as a tensor. This one has
    no tensors, and what arrives is the variable itself. In the function it
    answers as the variable does.

    Args:
        table_variable: The variable.
    """

    _should_act_as_resource_variable = True

    def __init__(self, table_variable: TrainableWrapper) -> None:
        self.table_variable = table_variable

    def __getattr__(self, name: str) -> Any:
        if name == "table_variable":
            raise AttributeError(name)
        if hasattr(self.table_variable, name):
            return getattr(self.table_variable, name)
        # Keras tells variables apart by what the inner one has.
        return getattr(self.table_variable.value, name)

    @property
    def _type_spec(self) -> "_Spec":
        return _Spec(self.table_variable.number)


class _Spec(tf.TypeSpec):
    """Describes a `FunctionTrainable`: which variable it is, and no tensors."""

    value_type = property(lambda _: FunctionTrainable)

    def __init__(self, number: int) -> None:
        self._number = number

    def _serialize(self) -> tuple[int]:
        return (self._number,)

    @property
    def _component_specs(self) -> tuple[()]:
        return ()

    def _to_components(self, value: FunctionTrainable) -> tuple[()]:
        del value
        return ()

    def _from_components(self, components: tuple[()]) -> Any:
        del components
        variable = _BY_NUMBER[self._number]
        if tf.inside_function():
            return FunctionTrainable(variable)
        return variable


def as_returned(variable: TrainableWrapper) -> Any:
    """Returns a variable in the form in which it can leave a `tf.function`.

    Args:
        variable: The variable.
    """
    if tf.inside_function():
        return FunctionTrainable(variable)
    return variable


def trainable_wrapper_filter(
    iterable_object_in: Any, test_unaggregated_function: Any = None
) -> tuple[list[Any], list[Any]]:
    """Parts what stands for dynamic tables from dense variables.

    Args:
        iterable_object_in: Variables, or things that hold them.
        test_unaggregated_function: Given an element, gives the variable in it;
            by default the element is the variable, or a pair whose second is.

    Returns:
        The elements of tables, and the others.
    """

    def variable_of(element: Any) -> Any:
        if test_unaggregated_function is not None:
            return test_unaggregated_function(element)
        return element[1] if isinstance(element, tuple) else element

    tables: list[Any] = []
    dense: list[Any] = []
    for element in iterable_object_in:
        variable = variable_of(element)
        is_table = isinstance(
            variable, TableVariable | FunctionTrainable
        ) or hasattr(variable, "table_variable")
        (tables if is_table else dense).append(element)
    return tables, dense
