"""Connections: addresses, passwords and client options of external systems, from the file of BETTONG_CONNECTIONS.

    {"warehouse": {"url": "postgresql://user:password@host/db"},
     "partner":   {"bootstrap_servers": "host:9092", "security_protocol": "SASL_SSL", ...}}

An application only names a connection. Its user, a source or sink, defines the options of an entry.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bettong.errors import SettingsError

Options = Mapping[str, Any]

_SETTING = "BETTONG_CONNECTIONS"


def named(connection: str) -> str:
    """A connection's name in messages for people."""
    return f"connection {connection!r} in the file of {_SETTING}"


def read_connections(path: Path | None) -> dict[str, Options]:
    """All entries of the file; none without a file. Raises SettingsError, which never quotes the content."""
    if path is None:
        return {}
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise SettingsError(f"{_SETTING}: cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        # The text of a JSON error names the position, not the content; that of a decoding error quotes bytes.
        where = f": {error}" if isinstance(error, json.JSONDecodeError) else ""
        raise SettingsError(f"{_SETTING}: {path} is not JSON{where}") from None
    except RecursionError:
        raise SettingsError(f"{_SETTING}: {path} is not JSON: nested too deeply") from None
    if not isinstance(content, dict) or not all(isinstance(entry, dict) for entry in content.values()):
        raise SettingsError(f"{_SETTING}: {path}: expected a JSON object of names and their options")
    return content


def options_of(connections: Mapping[str, Options], name: str, *, user: str, needs: str) -> Options:
    """The entry `name`, which must have the option `needs`. Raises SettingsError; `user` says who needs it."""
    entry = connections.get(name)
    if entry is None:
        known = ", ".join(sorted(connections)) or "none"
        raise SettingsError(
            f"{user} needs the connection {name!r}: add it, with {needs!r}, to the file of {_SETTING};"
            f" there now: {known}"
        )
    if not isinstance(entry.get(needs), str):
        raise SettingsError(f"connection {name!r} in the file of {_SETTING}: {user} needs {needs!r}, a text")
    return entry
