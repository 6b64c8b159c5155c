"""The folder of a suite on this machine: its default, the flag for another one, and what to say where nothing runs."""

from pathlib import Path

import typer

HERE = Path(".bettong")  # where `up` keeps its data, and where running suites are found

DIRECTORY = typer.Option(
    "--dir", metavar="DIR", help="The folder of the suite: its data, logs, results and addresses."
)


def nothing_runs(directory: Path) -> str:
    """What to say where no suite runs in a folder."""
    return f"nothing runs in {directory} (bettong up APP.py; elsewhere: --redis URL --application NAME)"
