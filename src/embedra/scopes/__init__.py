"""Where this process stands in its cluster, and options set for a block."""

from ._context import Context as Context, context as context
from ._current import current_options as current_options
from ._options import WIRE_DTYPES as WIRE_DTYPES, Options as Options
from ._scope import (
    embedding_scope as embedding_scope,
    function as function,
    scope as scope,
)
