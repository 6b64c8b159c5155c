"""A TCP proxy that cuts connections, refuses new ones, and delays bytes. For one server on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from bettong.errors import LocalError
from bettong.local.addresses import LOOPBACK

CONNECTIONS_MAX = 256
_CHUNK_BYTES = 64 * 1024
# Chunks in transit in one direction of a connection: 4 MiB; beyond it nothing is read, as with a full pipe.
_CHUNKS_MAX = 64
_START_S_MAX = 10.0
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER with no wait: close sends RST

_Result = TypeVar("_Result")


class Proxy:
    """Passes connections on to `target` (host:port). A context manager; every method may be called from any thread.

    `address` is where clients connect. A cut (`refuses`) and a delay (`delay_s`) last until `heal`.
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.refuses = False
        self.delay_s = 0.0
        self.address = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._run(asyncio.start_server(self._accepted, LOOPBACK, 0, limit=_CHUNK_BYTES))
        self.address = f"{LOOPBACK}:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_S_MAX)
        self._loop.close()

    @property
    def connections(self) -> int:
        """Connections that are open now, both sides of each counted."""
        return len(self._writers)

    def cut(self) -> None:
        """Resets all connections, and every new one."""
        self._run(self._cut())

    def delay(self, seconds: float) -> None:
        """From now on each byte takes so much longer, both ways, in order."""
        self.delay_s = seconds

    def heal(self) -> None:
        """Ends cuts and delays."""
        self.refuses, self.delay_s = False, 0.0

    def _run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(_START_S_MAX)
        except (OSError, TimeoutError) as error:
            raise LocalError(f"the proxy before {self._target[0]}:{self._target[1]}: {error}") from error

    async def _cut(self) -> None:
        self.refuses = True
        for writer in list(self._writers):
            _reset(writer)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or self.refuses or len(self._writers) >= 2 * CONNECTIONS_MAX:
            _reset(writer)
            return
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            await self._pass_on(reader, writer)
        except OSError:
            pass  # the server is away: the client sees what it would see without a proxy
        except asyncio.CancelledError:
            pass  # the proxy closes
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            _reset(writer)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind_reader, behind = await asyncio.open_connection(*self._target, limit=_CHUNK_BYTES)
        self._writers.add(behind)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._copy(reader, behind))
                both.create_task(self._copy(behind_reader, writer))
        except ExceptionGroup as errors:
            if errors.split(OSError)[1] is not None:
                raise
        finally:
            self._writers.discard(behind)
            _reset(behind)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copies one direction: chunks are written when they are due, in order; ends with the connection."""
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_CHUNKS_MAX)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._read(reader, chunks))
            both.create_task(self._write(chunks, writer))

    async def _read(self, reader: asyncio.StreamReader, chunks: asyncio.Queue[tuple[float, bytes]]) -> None:
        while True:
            chunk = await reader.read(_CHUNK_BYTES)
            await chunks.put((self._loop.time() + self.delay_s, chunk))
            if not chunk:
                return

    async def _write(self, chunks: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        while True:
            due_s, chunk = await chunks.get()
            if (wait_s := due_s - self._loop.time()) > 0:
                await asyncio.sleep(wait_s)
            if not chunk:
                if writer.can_write_eof():
                    writer.write_eof()
                return
            writer.write(chunk)
            await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):  # closed already
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
