"""Files of TOML that a model describes: read once, all faults reported at once."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from bettong.errors import SettingsError

_Model = TypeVar("_Model", bound=BaseModel)


def read(path: Path) -> dict[str, object]:
    """The tables of a file. Raises SettingsError that names it."""
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError are both
        raise SettingsError(f"{path} is no TOML: {error}") from None
    except RecursionError:
        raise SettingsError(f"{path} is no TOML: nested too deeply") from None


def checked(
    model: type[_Model], content: Mapping[str, object], where: str, *, tags: Collection[str] = ()
) -> _Model:
    """The tables as a model. Raises SettingsError that names `where`, table and field of every fault.

    `tags`: names of the members of unions, which pydantic puts into locations.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        faults = "; ".join(f"{_location(fault['loc'], tags)}: {fault['msg']}" for fault in error.errors())
        raise SettingsError(f"{where}, {error.error_count()} fault(s): {faults}") from None


def _location(location: tuple[str | int, ...], tags: Collection[str]) -> str:
    """`nemeses[0].targets[1]`."""
    text = ""
    for before, part in zip((None, *location), location, strict=False):
        if isinstance(part, int):
            text += f"[{part}]"
        elif not (isinstance(before, int) and part in tags):
            text += f".{part}" if text else part
    return text or "spec"
