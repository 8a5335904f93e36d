"""The `embedra` command."""

from ._app import main as main
