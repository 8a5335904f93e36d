"""Stand-ins for a variable, for optimizers that are not Keras 3's.

`BlockRows` holds a tensor, for rules that are written in TensorFlow ops.
`ScratchRows` holds a resource, for rules that are kernels of resources.
"""

from typing import Any

import tensorflow as tf

from ._rows import Rows


# A variable of this shared name is a new one at each run, in graphs too.
_ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"


class BlockRows(Rows):
    """Rows that belong to a block.

    Args:
        block: The `RowBlock` that loads and stores them.
        name: Name of the variable or slot.
        initial: What a slot starts from.
    """

    dtype: Any = tf.float32
    device = ""

    def __init__(self, block: Any, name: str, initial: float = 0.0) -> None:
        self.block = block
        self.slots: dict[str, BlockRows] = {}
        super().__init__(block.dim, name, initial)
        self._shared_name = name

    @property
    def shape(self) -> tf.TensorShape:
        """`(n, dim)`; while there are no rows, that of a single one.

        Optimizers make slots of the shape of their variable, which has to be
        known for that.
        """
        if self.tensor is None:
            return tf.TensorShape((1, self.dim))
        return self.tensor.shape

    def get_shape(self) -> tf.TensorShape:
        """The shape."""
        return self.shape

    def open(self) -> None:
        """Makes ready for a step."""
        self.tensor = None

    def close(self) -> Any:
        """Forgets the rows.

        Returns:
            An operation that must run last in a TF1 graph, or None.
        """
        self.tensor = None


class ScratchRows(BlockRows):
    """Rows in a resource variable that lives for one step.

    The variable is made, filled, read and destroyed by the step itself, so that
    it needs no initialization, is in no collection or checkpoint, and steps
    that run at the same time do not share it.
    """

    _should_act_as_resource_variable = True
    _in_graph_mode = False

    @property
    def tensor(self) -> Any:
        """The rows as the variable has them now, None before they are set."""
        if self._filled is None:
            return None
        rows = tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=self.dtype)
        return tf.ensure_shape(rows, (None, self.dim))

    @tensor.setter
    def tensor(self, value: Any) -> None:
        if value is None:
            self._handle: Any = None
            self._filled: Any = None
            return
        operation = tf.raw_ops.AssignVariableOp(
            resource=self.handle, value=value
        )
        self._filled = operation or True

    @property
    def shape(self) -> tf.TensorShape:
        """`(n, dim)`; while there are no rows, that of a single one."""
        rows = 1 if self._filled is None else None
        return tf.TensorShape((rows, self.dim))

    @property
    def handle(self) -> tf.Tensor:
        """Handle of the variable."""
        if self._handle is None:
            self._handle = tf.raw_ops.VarHandleOp(
                dtype=self.dtype,
                shape=[None, self.dim],
                shared_name=_ANONYMOUS,
            )
        return self._handle

    @property
    def graph(self) -> Any:
        """The graph of the variable."""
        return self.handle.graph

    @property
    def op(self) -> Any:
        """What assigned last, or made the variable; None when eager."""
        if isinstance(self._filled, tf.Operation):
            return self._filled
        return getattr(self.handle, "op", None)

    def open(self) -> None:
        """Makes a new variable."""
        self.tensor = None
        _ = self.handle

    def close(self) -> Any:
        """Destroys the variable."""
        destroyed = tf.raw_ops.DestroyResourceOp(resource=self.handle)
        self.tensor = None
        return destroyed

    def assign(
        self,
        value: Any,
        use_locking: Any = None,
        name: Any = None,
        read_value: bool = True,
    ) -> Any:
        """Replaces the rows.

        Args:
            value: The rows.
            use_locking: Unused: nothing else knows the variable.
            name: Unused.
            read_value: Whether to return the variable rather than an operation.

        Returns:
            In a TF1 graph the rows after the assignment, else itself.
        """
        del use_locking, name
        self.tensor = tf.cast(value, self.dtype)
        if not isinstance(self._filled, tf.Operation):
            return self
        if not read_value:
            return self._filled
        if tf.inside_function():
            return self
        with tf.control_dependencies([self._filled]):
            return self.tensor

    def assign_add(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds to the rows; arguments as for `assign`."""
        total = self.tensor + tf.cast(value, self.dtype)
        return self.assign(total, *args, **kwargs)

    def assign_sub(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        """Subtracts from the rows; arguments as for `assign`."""
        rest = self.tensor - tf.cast(value, self.dtype)
        return self.assign(rest, *args, **kwargs)
