"""Runs the command line: `python -m embedra`."""

from embedra.cli import main


if __name__ == "__main__":
    main()
