"""get_embedding_variable: embedding variables by name."""

import threading
from typing import Any

import tensorflow as tf

from embedra.dynamic_embedding._sharing import current_graph
from embedra.dynamic_embedding._variable import Variable

from ._options import EmbeddingVariableOption, GlobalStepEvict
from ._variable import EmbeddingVariable


# No string: collections with such names would be written into meta graphs.
_COLLECTION = ("embedra", "embedding_variables")

# Variables made outside of TF1 graphs live as long as the process: a function
# may ask for one by name at each step, and hold none.
_EAGER: dict[str, EmbeddingVariable] = {}

_MAKING = threading.RLock()


def get_embedding_variable(
    name: str,
    embedding_dim: int,
    key_dtype: Any = tf.int64,
    value_dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    custom_getter: Any = None,
    constraint: Any = None,
    steps_to_live: int | None = None,
    init_data_source: Any = None,
    ev_option: EmbeddingVariableOption | None = None,
) -> EmbeddingVariable:
    """Returns the embedding variable of a name, making it the first time.

    Names live in the TF1 graph and variable scope, if there are any, or else in
    the process.

    Args:
        name: Name of the variable.
        embedding_dim: Width of a row.
        key_dtype: Dtype of the ids: an integer dtype, or `tf.string`.
        value_dtype: Dtype of the rows, by default float32.
        initializer: What ids start from, by default zeros.
        regularizer: Not supported.
        trainable: Whether ids are created and rows trained.
        collections: Accepted: the variable is among what savers save, and what
            stands for its rows among the trainable variables.
        caching_device: Accepted: rows are not cached.
        partitioner: Has no effect: a variable has one name and one content,
            however many parts it is kept in.
        validate_shape: Accepted.
        custom_getter: Not supported.
        constraint: Not supported.
        steps_to_live: Shorthand of `GlobalStepEvict(steps_to_live)`.
        init_data_source: Not supported.
        ev_option: Rules of admission and eviction.

    Returns:
        The same variable for the same name. Look it up by
        `embedra.compat.v1.nn.embedding_lookup` and its kin.

    Raises:
        NotImplementedError: If something is asked for that is not supported.
        TypeError: If `ev_option` is none, or `partitioner` no function.
        ValueError: If the variable was made with other arguments, or eviction
            is given twice.

    Example:
        >>> user = get_embedding_variable("doc_ev", 4)
        >>> get_embedding_variable("doc_ev", 4) is user
        True
    """
    del collections, caching_device, validate_shape
    if partitioner is not None and not callable(partitioner):
        msg = (
            f"`partitioner` of embedding variable {name!r} must be a function, "
            "as tf.compat.v1.fixed_size_partitioner gives it, or None. "
            f"Received: {partitioner!r}."
        )
        raise TypeError(msg)
    _check_unsupported(
        name,
        regularizer=regularizer,
        custom_getter=custom_getter,
        constraint=constraint,
        init_data_source=init_data_source,
    )
    scope = tf.compat.v1.get_variable_scope().name
    return variable_of_name(
        f"{scope}/{name}" if scope else name,
        embedding_dim,
        key_dtype=key_dtype,
        value_dtype=value_dtype or tf.float32,
        initializer=initializer,
        trainable=trainable,
        ev_option=_with_steps(name, ev_option, steps_to_live),
    )


def variable_of_name(
    full_name: str, embedding_dim: int, **arguments: Any
) -> EmbeddingVariable:
    """Returns the embedding variable of a name, with its scope.

    Args:
        full_name: The name.
        embedding_dim: Width of a row.
        **arguments: Those of `EmbeddingVariable`.

    Raises:
        ValueError: If the variable was made with other arguments.
    """
    variables = _variables_here()
    # Of several threads one makes it.
    with _MAKING:
        found = variables.get(full_name)
        if found is None:
            found = EmbeddingVariable(full_name, embedding_dim, **arguments)
            variables[full_name] = found
            return found
    _check_same(found, embedding_dim, **arguments)
    return found


def _variables_here() -> dict[str, EmbeddingVariable]:
    graph = current_graph()
    if graph is None:
        return _EAGER
    collection = graph.get_collection_ref(_COLLECTION)
    if not collection:
        collection.append({})
    variables: dict[str, EmbeddingVariable] = collection[0]
    return variables


def _check_same(
    found: EmbeddingVariable,
    embedding_dim: int,
    *,
    key_dtype: Any = tf.int64,
    value_dtype: Any = tf.float32,
    initializer: Any = None,
    trainable: bool = True,
    ev_option: EmbeddingVariableOption | None = None,
) -> None:
    option = ev_option or EmbeddingVariableOption()
    if initializer is None:
        initializer = option.init_option.initializer
    asked = Variable.described(
        key_dtype=key_dtype,
        value_dtype=value_dtype,
        dim=embedding_dim,
        initializer=initializer,
        trainable=trainable,
    )
    there = found.variable.arguments
    if initializer is found.initializer:
        # Functions that an object gives anew each time are not equal.
        asked["initializer"] = there["initializer"]
    differing = [
        f"{field}={asked[field]!r} here, {there[field]!r} there"
        for field in asked
        if asked[field] != there[field]
    ]
    if option != found.ev_option:
        differing.append(f"{option!r} here, {found.ev_option!r} there")
    if differing:
        msg = (
            f"Embedding variable {found.name!r} was made with other arguments: "
            f"{'; '.join(differing)}. Use the same ones, or another name or "
            "variable scope."
        )
        raise ValueError(msg)


def _with_steps(
    name: str, option: Any, steps: int | None
) -> EmbeddingVariableOption | None:
    if not isinstance(option, EmbeddingVariableOption | None):
        msg = (
            f"`ev_option` of embedding variable {name!r} must be an "
            f"EmbeddingVariableOption. Received: {option!r}."
        )
        raise TypeError(msg)
    if not steps:
        return option
    if option is not None:
        msg = (
            f"Embedding variable {name!r} was given both steps_to_live={steps} "
            "and ev_option. Use ev_option=EmbeddingVariableOption(evict_option="
            f"GlobalStepEvict({steps}), ...)."
        )
        raise ValueError(msg)
    return EmbeddingVariableOption(evict_option=GlobalStepEvict(steps))


def _check_unsupported(name: str, **arguments: Any) -> None:
    given = {k: v for k, v in arguments.items() if v is not None}
    if not given:
        return
    hint = (
        "A penalty of rows can be added to the loss, as "
        "tf.nn.l2_loss(tf.nn.embedding_lookup(variable, ids))."
        if "regularizer" in given
        else "Leave it out."
    )
    msg = (
        f"Embedding variable {name!r} was given what is not supported: "
        f"{given}. {hint}"
    )
    raise NotImplementedError(msg)
