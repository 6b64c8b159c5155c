"""`bettong init`: creates a project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = typer.Argument(metavar="NAME", help="The project's and its folder's name: small letters, digits, -.")
_NAME_PATTERN = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"  # of a Python package, an image and a release of Helm
_NAME_CHARACTERS_MAX = 40
_TEST_PACKAGES = 'pip install "bettong[testing]" pytest'


def init(name: Annotated[str, _NAME]) -> None:
    """Create a project: an application, its test, messages, pyproject.toml, Dockerfile, values for the chart.

    Creates the folder NAME here. Never overwrites anything.
    """
    import re
    from importlib.metadata import version

    from bettong.errors import LocalError

    if len(name) > _NAME_CHARACTERS_MAX or not re.fullmatch(_NAME_PATTERN, name):
        raise typer.BadParameter(
            f"{name[:_NAME_CHARACTERS_MAX]!r}: up to {_NAME_CHARACTERS_MAX} small letters, digits and single hyphens,"
            " a letter first"
        )
    folder = Path(name)
    try:
        folder.mkdir()
        for path, text in files(name, version("bettong")).items():
            (folder / path).write_text(text)
    except FileExistsError:
        raise LocalError(f"{name} exists already: choose another name, or remove it first") from None
    except OSError as error:
        raise LocalError(f"{folder} cannot be created: {error.strerror}") from None
    typer.echo(f"created {name}. Next:\n  cd {name}\n  {_TEST_PACKAGES}\n  pytest\n  bettong up app.py")


def files(name: str, version: str) -> Mapping[str, str]:
    """The texts of a project's files, by their paths relative to its folder."""
    from importlib.resources import files as resources
    from string import Template

    values = {
        "name": name,
        "title": name.replace("-", " ").capitalize(),
        "version": version,
    }
    made = {}
    for each in resources("bettong.cli").joinpath("project").iterdir():
        path = each.name.removesuffix(".template")
        made[f".{path}" if path == "gitignore" else path] = Template(each.read_text()).substitute(values)
    return made
