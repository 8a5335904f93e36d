"""Gives optimizers blocks of rows in place of the variables of tables."""

import contextlib
import functools
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

from ._apply import apply_gradients
from ._block_rows import BlockRows
from ._ranks import check_clips, over_ranks
from ._row_block import RowBlock
from ._trained_tables import TableGradient, split_tables, table_variable_of


# The mixins call on methods of classes that they do not know.
_Base: Any = object


class Substitution(_Base):
    """What wrappers of optimizers that are not Keras 3's have in common.

    It is mixed in before an optimizer's class; `vars` of an instance are those
    of the optimizer that was wrapped.
    """

    handles_tables = True

    # Class of the stand-ins for variables.
    stand_in: type[BlockRows] = BlockRows

    @property
    def wrapped_class(self) -> type:
        """The optimizer's own class."""
        mro = type(self).__mro__
        return next(c for c in mro if not issubclass(c, Substitution))

    def plain(self) -> Any:
        """Returns the optimizer as it was before it was wrapped."""
        return seen_as(self, self.wrapped_class)

    def check_table(self, table_name: str) -> None:
        """Raises if the optimizer cannot update a table.

        Args:
            table_name: Of the table.
        """
        del table_name

    def sums_by_itself(self) -> bool:
        """Whether the rule sums gradients of a row, and all before is linear.

        Then repeated rows need not be joined before the optimizer sees them.
        """
        return False

    def one_at_a_time(self) -> contextlib.AbstractContextManager[Any]:
        """Keeps other threads from making, or tracing, a step meanwhile.

        The blocks hold what the step in progress has read. Steps in functions
        that are traced already run side by side all the same.
        """
        if tf.distribute.get_strategy().num_replicas_in_sync > 1:
            # Replicas are threads that wait for each other.
            return contextlib.nullcontext()
        lock: Any = self.__dict__.setdefault("_step_lock", threading.RLock())
        return lock  # type: ignore[no-any-return]

    def block_of(self, variable: Any) -> RowBlock:
        """Returns the block of the tables that a variable stands for.

        Args:
            variable: A `TableVariable`.
        """
        # Past the attribute tracking of some optimizers.
        blocks: dict[Any, RowBlock] = self.__dict__.setdefault(
            "_row_blocks", {}
        )
        key = tuple(id(table) for table in variable.tables)
        if key not in blocks:
            self.check_table(variable.tables[0].name)
            blocks[key] = RowBlock(variable, self.stand_in)
        return blocks[key]

    def substitute_variables(self, variables: Iterable[Any]) -> list[Any]:
        """Replaces the variables of tables by stand-ins.

        Args:
            variables: Variables.

        Returns:
            The same, with one stand-in for all variables of the same tables,
            where the first one was.
        """
        pairs = ((None, variable) for variable in variables)
        return [v for _, v in self.substitute(pairs)]

    def substitute(self, grads_and_variables: Any, step: Any = None) -> Any:
        """Replaces the variables of tables, and joins their gradients.

        Variables that have an optimizer of their own are updated and left out.

        Args:
            grads_and_variables: Pairs of gradients and variables.
            step: Number of the step, that tables note.

        Returns:
            Pairs of gradients and variables, all of them dense to the
            optimizer: tables are blocks of the rows that are touched.
        """
        pairs = list(grads_and_variables)
        tables, dense = split_tables(pairs)
        for table_gradient in tables:
            _check_slices(table_gradient)
        check_clips(self, tables)
        tables, dense = over_ranks(self, tables, dense)
        dense_gradients = iter([gradient for gradient, _ in dense])
        shared = {
            id(g.table): g.slices
            for g in tables
            if not _update_by_own_optimizer(g)
        }
        _finish_own([g.variable for g in tables])
        substituted = []
        seen = set()
        for _, variable in pairs:
            found = table_variable_of(variable)
            if found is None:
                substituted.append((next(dense_gradients), variable))
                continue
            if found.optimizer is not None:
                continue
            block = self.block_of(found)
            if id(block) in seen:
                continue
            seen.add(id(block))
            block.step = step
            gradients = block.take(
                shared,
                deduplicate=found.row_constraint is not None
                or not self.sums_by_itself(),
            )
            substituted.append((gradients, block.row))
        return substituted


def wrap(optimizer: Any, wrapper: Any) -> Any:
    """Wraps an optimizer.

    Args:
        optimizer: The optimizer.
        wrapper: What to put before its class.

    Returns:
        An instance of a subclass of both, with the optimizer's state.
    """
    base: Any = type(optimizer)
    return seen_as(optimizer, class_over(base, wrapper))


# Keras never forgets a class that it can save, so there is one for each.
@functools.cache
def class_over(base: Any, wrapper: Any) -> Any:
    """Makes the subclass of a wrapper and a class of optimizers.

    Args:
        base: The optimizer's own class.
        wrapper: What to put before it.
    """
    return type(f"DynamicEmbedding{base.__name__}", (wrapper, base), {})


def seen_as(optimizer: Any, cls: Any) -> Any:
    """Returns an optimizer of class `cls` with the same state.

    Args:
        optimizer: The optimizer.
        cls: A sub- or superclass of its class.
    """
    view = cls.__new__(cls)
    view.__dict__.update(vars(optimizer))
    return view


def inner_variables(variables: Any) -> Any:
    """Replaces what stands for tables by the `tf.Variable` inside.

    Tapes and graphs of TF1 know only that one.

    Args:
        variables: None, a structure of variables, or a function that gives one.

    Returns:
        The same, in the same form.
    """
    if variables is None:
        return None
    if callable(variables):
        return lambda: inner_variables(variables())
    if isinstance(variables, list | tuple | set | frozenset):
        return [inner_variables(v) for v in variables]
    found = table_variable_of(variables)
    return variables if found is None else found.value


def _check_slices(gradient: TableGradient) -> None:
    if isinstance(gradient.slices, tf.IndexedSlices):
        return
    msg = (
        f"The gradient of table {gradient.table.name!r} arrived as a dense "
        f"tensor of shape {tuple(gradient.slices.shape)}. Keep it as the "
        "tf.IndexedSlices that the tape gave: transform its `values`."
    )
    raise TypeError(msg)


def _update_by_own_optimizer(gradient: TableGradient) -> bool:
    variable = gradient.variable
    if variable.optimizer is None:
        return False
    apply_gradients(
        gradient.table,
        variable.optimizer,
        gradient.slices,
        variable=variable,
        constraint=variable.row_constraint,
    )
    return True


def _finish_own(variables: list[Any]) -> None:
    for variable in {id(v): v for v in variables}.values():
        variable.finish_step()


@contextlib.contextmanager
def no_colocation() -> Iterator[None]:
    """Has TF1 place ops where their inputs are, whatever surrounds them."""
    if tf.executing_eagerly():
        yield
        return
    graph = tf.compat.v1.get_default_graph()
    with graph.colocate_with(None, ignore_existing=True):
        yield
