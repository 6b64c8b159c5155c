"""The folder of a suite on this machine: its default, and the flag that names another one."""

from pathlib import Path

import typer

HERE = Path(".bettong")  # where `up` keeps its data, and where running suites are found

DIRECTORY = typer.Option(
    "--dir", metavar="DIR", help="The folder of the suite: its data, logs, results and addresses."
)
