"""Hooks that end training early."""

from ._early_stopping import (
    make_early_stopping_hook as make_early_stopping_hook,
)
from ._stop_if import (
    read_eval_metrics as read_eval_metrics,
    stop_if_higher_hook as stop_if_higher_hook,
    stop_if_lower_hook as stop_if_lower_hook,
    stop_if_no_decrease_hook as stop_if_no_decrease_hook,
    stop_if_no_increase_hook as stop_if_no_increase_hook,
)
