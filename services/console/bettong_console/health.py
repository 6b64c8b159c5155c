"""Liveness for probes without TLS and token: whether the event loop answers. It reveals nothing else.

Every request gets the same answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from bettong_console.serving import listening_socket

# A probe sends its request at once, in some hundred bytes; the kubelet waits for a second.
_ASK_S_MAX = 2.0
_REQUEST_BYTES_MAX = 8_192
_ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 6\r\nconnection: close\r\n\r\nalive\n"
)


@contextlib.asynccontextmanager
async def health_served(address: str | None) -> AsyncIterator[None]:
    """Answers at host:port while the block runs; does nothing for None. Raises SettingsError where it cannot listen."""
    if address is None:
        yield
        return
    with listening_socket(address, "BETTONG_HEALTH_LISTEN") as listening:
        async with await asyncio.start_server(_answer, sock=listening, limit=_REQUEST_BYTES_MAX):
            yield


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    nothing_asked = (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError)
    with contextlib.suppress(*nothing_asked):
        async with asyncio.timeout(_ASK_S_MAX):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(_ANSWER)
            await writer.drain()
    writer.close()
