"""Which variables a warm start is for."""

import re
from typing import Any

import tensorflow as tf

from embedra import table as table_lib

from ._get_variable import variables_by_name
from ._sharing import current_graph
from ._state import VariableState
from ._variable import Variable


class Selection:
    """Says which variables and slots are asked for.

    Args:
        selected: As `vars_to_warm_start`.
    """

    def __init__(self, selected: Any) -> None:
        self._with_slots = not isinstance(selected, str)
        listed = [selected] if isinstance(selected, str) else list(selected)
        self._patterns = [s for s in listed if isinstance(s, str)]
        self._objects = [s for s in listed if not isinstance(s, str)]

    def states(self) -> list[VariableState]:
        """Returns the states of the tables that are asked for."""
        graph = current_graph()
        given = [v.state for v in self._objects if isinstance(v, Variable)]
        if graph is None:
            known = [v.state for v in variables_by_name().values()]
        else:
            key = tf.compat.v1.GraphKeys.SAVEABLE_OBJECTS
            collected = graph.get_collection(key)
            known = [s for s in collected if isinstance(s, VariableState)]
        return given + [
            state
            for state in known
            if self._matches(state.key) and state not in given
        ]

    def dense(self) -> list[Any]:
        """Returns the dense variables that are asked for."""
        graph = current_graph()
        given = [v for v in self._objects if not isinstance(v, Variable)]
        if graph is None:
            return given
        keys = tf.compat.v1.GraphKeys
        variables = graph.get_collection(
            keys.GLOBAL_VARIABLES
            if self._with_slots
            else keys.TRAINABLE_VARIABLES
        )
        return given + [
            variable
            for variable in variables
            if not hasattr(variable, "table_variable")
            and self._matches(dense_name(variable))
            and not any(variable is other for other in given)
        ]

    def has_slot(self, state: VariableState, slot: table_lib.Slot) -> bool:
        """Returns whether a slot is asked for.

        Args:
            state: State of a table that is.
            slot: One of the slots that were saved with it.
        """
        if any(getattr(v, "state", None) is state for v in self._objects):
            return True
        return self._with_slots and self._matches(f"{state.key}/{slot.name}")

    def _matches(self, name: str) -> bool:
        return any(re.match(pattern, name) for pattern in self._patterns)


def dense_name(variable: Any) -> str:
    """Returns the name of a dense variable, without the number of an output.

    Args:
        variable: A `tf.Variable` or Keras variable.
    """
    return str(getattr(variable, "path", variable.name)).partition(":")[0]
