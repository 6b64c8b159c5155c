"""The file of connections: read whole, refused by name, never quoted."""

import json
from pathlib import Path
from typing import Any

import pytest

from bettong.config.connections import options_of, read_connections
from bettong.errors import SettingsError


def written(folder: Path, content: bytes) -> Path:
    path = folder / "connections.json"
    path.write_bytes(content)
    return path


def test_entries_are_found_by_name(tmp_path: Path) -> None:
    content = {"warehouse": {"url": "postgresql://u:secret@h/d"}, "hook": {"url": "http://h", "n": 1}}
    found = read_connections(written(tmp_path, json.dumps(content).encode()))
    assert options_of(found, "hook", user="sink 'x'", needs="url") == {"url": "http://h", "n": 1}
    assert read_connections(None) == {}


@pytest.mark.parametrize(
    "content", [b"", b'{"a": {"url": "secret"}', b"[]", b'{"a": "secret"}', b'\xff"secret"']
)
def test_a_file_that_is_none_is_refused_and_not_quoted(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(SettingsError, match="BETTONG_CONNECTIONS") as caught:
        read_connections(written(tmp_path, content))
    assert "connections.json" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot read .*nowhere: No such file"):
        read_connections(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (None, "sink 'x' needs the connection 'there': add it, with 'url',.*there now: other"),
        ({}, "connection 'there'.*needs 'url', a text"),
        ({"url": 7}, "connection 'there'.*needs 'url', a text"),
    ],
)
def test_what_a_user_needs_and_lacks_is_reported(entry: Any, words: str) -> None:
    connections = {"other": {}} if entry is None else {"there": entry}
    with pytest.raises(SettingsError, match=words):
        options_of(connections, "there", user="sink 'x'", needs="url")
