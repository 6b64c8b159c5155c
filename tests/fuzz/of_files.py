"""Harnesses of what people write: files of messages, settings, tokens, connections, chaos specs, binary layouts."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa

import bettong
from bettong.chaos import spec
from bettong.client.message_files import Format, portions
from bettong.client.message_input import Wanted
from bettong.config import access
from bettong.config.connections import read_connections
from bettong.config.console import ConsoleSettings
from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.config.receiver import ReceiverSettings
from bettong.config.sender import SenderSettings
from bettong.config.service import PREFIX
from bettong.errors import BettongError, SettingsError
from bettong.frames.columns import Columns
from bettong.frames.text import json_line
from bettong.lab import spec as lab_spec
from bettong.schema.decoded import Decoder
from bettong.schema.schema import schema_of
from tests.fuzz.harness import Harness
from tests.fuzz.of_frames import JSON_PARTS, SCHEMAS, Fixed, samples
from tests.fuzz.rich import Rich

_ROOT = Path(__file__).resolve().parents[2]


def _in_a_file(data: bytes, read_path: Callable[[Path], object]) -> None:
    memory = Path("/dev/shm")  # noqa: S108 - many small files a second
    with tempfile.NamedTemporaryFile(dir=memory if memory.is_dir() else None) as file:
        file.write(data)
        file.flush()
        read_path(Path(file.name))


def _portions(kind: Format) -> Callable[[bytes], None]:
    def read_portions(data: bytes) -> None:
        for schema in SCHEMAS:
            # As a client has it, from the sender's Welcome.
            reported = pa.ipc.read_schema(schema.arrow.serialize())
            wanted = Wanted(reported, takes_rows=kind is Format.BINARY, messages_max=7, bytes_max=10_000)
            with contextlib.suppress(BettongError):
                _in_a_file(data, lambda path, wanted=wanted: _sent(path, kind, wanted))  # type: ignore[misc]

    return read_portions


def _sent(path: Path, kind: Format, wanted: Wanted) -> None:
    for portion in portions(path, kind, wanted):
        if isinstance(portion.body, pa.RecordBatch):
            schema = next(each for each in SCHEMAS if each.arrow.equals(wanted.schema))
            # What the client let through, the sender takes: but for bytes that are no text.
            with contextlib.suppress(BettongError):
                Columns.of_external_payload(schema, portion.body.serialize().to_pybytes())


_LAYOUTS: tuple[Decoder, ...] = (
    bettong.packed("<q?5sd"),
    bettong.packed(">q?5sd", prefix=b"\x01"),
)


def read_layout(data: bytes) -> None:
    """Rows for decoders of binary layouts: they refuse, and never raise."""
    rows = [data[offset : offset + 22] for offset in range(0, min(len(data), 500), 22)]
    for decoder in _LAYOUTS:
        decoded = decoder.decode(SCHEMAS[0], rows)
        assert decoded.columns is not None
        columns = Columns(SCHEMAS[0], len(decoded.columns[0]), tuple(decoded.columns))
        assert len(columns.messages()) + len(decoded.refused) == len(rows)


def read_settings(data: bytes) -> None:
    """Lines of NAME=VALUE as the environment."""
    given = {"BETTONG_APPLICATION": "app.py"}
    for line in data.decode("utf-8", "replace").replace("\0", "").splitlines()[:20]:
        name, equals, value = line.partition("=")
        if equals and name.isidentifier() and name.isascii():
            given[PREFIX + name.upper()] = value
    clean = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    for kind in (SenderSettings, ProcessorSettings, ReceiverSettings, ConsoleSettings):
        with patch.dict(os.environ, clean | given, clear=True), contextlib.suppress(SettingsError):
            read(kind)


def _read_by(read_path: Callable[[Path], object]) -> Callable[[bytes], None]:
    """A file that a function reads, or refuses with SettingsError."""

    def read_file(data: bytes) -> None:
        with contextlib.suppress(SettingsError):
            _in_a_file(data, read_path)

    return read_file


def read_tokens(data: bytes) -> None:
    """The file of tokens, in TOML."""
    with contextlib.suppress(ValueError):
        grants = access.parse(data.decode("utf-8", "replace"))
        grants.holder("a token")


def _json() -> Iterator[bytes]:
    for schema in SCHEMAS:
        yield b"".join(json_line(schema, each) + b"\n" for each in samples(schema, 3))


def _csv() -> Iterator[bytes]:
    yield b"number,flag,code,ratio\n1,1,abc,0.5\n2,0,de,1e9\n"
    yield b'number,text,blob,code\n1,"a ""b""",c,abc\n'
    for message in samples(schema_of(Rich), 2).messages():
        values = json.loads(json_line(schema_of(Rich), message))
        cells = [each if isinstance(each, str) else json.dumps(each) for each in values.values()]
        quoted = ",".join('"' + cell.replace('"', '""').replace("null", "") + '"' for cell in cells)
        yield f"{','.join(values)}\n{quoted}\n".encode()


def _binary() -> Iterator[bytes]:
    yield b"".join(struct.pack(">I", size) + b"m" * size for size in (0, 1, 30))


def _rows() -> Iterator[bytes]:
    yield b"".join(
        struct.pack("<q?5sd", each.number, each.flag, each.code.encode(), each.ratio) for each in _fixed()
    )
    yield b"".join(
        b"\x01" + struct.pack(">q?5sd", each.number, each.flag, each.code.encode(), each.ratio)
        for each in _fixed()
    )


def _fixed() -> list[Fixed]:
    return samples(SCHEMAS[0], 3).messages()


def _settings() -> Iterator[bytes]:
    yield b"PARTITIONS=8\nSCHEDULE=resident\nFRAME_BYTES_MAX=100000\nKAFKA=host:9092\n"
    yield b"REDIS=redis://user:word@host:6379/0\nSNAPSHOTS=s3://bucket/folder\nSENDER_LISTEN=[::]:7100\n"


def _toml_below(folder: Path) -> Callable[[], Iterator[bytes]]:
    return lambda: (path.read_bytes() for path in sorted(folder.rglob("*.toml")))


def _tokens() -> Iterator[bytes]:
    yield f'[feed]\nsha256 = "{access.digest("a token")}"\nwrite = ["orders/feed-*"]\nread = ["rejected"]\n'.encode()


def _connections() -> Iterator[bytes]:
    yield json.dumps({"warehouse": {"url": "postgresql://host/db"}, "peer": {"port": 1}}).encode()


_TOML = (
    b"[",
    b"[[",
    b"]]",
    b'"',
    b"'''",
    b"= 1e999",
    b"inf",
    b"nan",
    b"2026-01-01",
    b"{",
    b"\n",
    b"-1",
    b"true",
)
HARNESSES = (
    Harness("json", _portions(Format.JSON), _json, JSON_PARTS),
    Harness(
        "csv", _portions(Format.CSV), _csv, (b",", b'"', b"\n", b"nan", b"1e999", b"99999999999999999999")
    ),
    Harness("binary", _portions(Format.BINARY), _binary, (b"\xff\xff\xff\xff", b"\0\0\0\1")),
    Harness("layouts", read_layout, _rows, (b"\x01",)),
    Harness(
        "settings", read_settings, _settings, (b"=", b"\n", b"://", b":", b"-1", b"[", b"\xc3\xa9", b"%")
    ),
    Harness("chaos-specs", _read_by(spec.read), _toml_below(_ROOT / "tests" / "faults"), _TOML),
    Harness("lab-runs", _read_by(lab_spec.read), _toml_below(_ROOT / "benchmarks" / "lab"), _TOML),
    Harness("tokens", read_tokens, _tokens, _TOML),
    Harness("connections", _read_by(read_connections), _connections, JSON_PARTS),
)
