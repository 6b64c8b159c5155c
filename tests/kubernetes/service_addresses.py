"""Services of a namespace: each at an address of its own, where connections go on to a pod that is ready.

What kube-proxy and the cluster's names do. Which pods are ready, and leave, is the API server's own word: the
EndpointSlices that its controllers keep.
"""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Callable, Mapping
from typing import Any

_CHUNK_BYTES = 64 * 1024
_START_S_MAX = 10.0


class ServiceAddresses:
    """Listens for Services. `endpoints`, set again and again: (service, port's name) -> places of ready pods."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="services", daemon=True)
        self._thread.start()
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = itertools.count()
        self.addresses: dict[str, str] = {}
        self.endpoints: dict[tuple[str, str], list[tuple[str, int]]] = {}

    def add(self, service: Mapping[str, Any], address: str) -> None:
        """Serves a Service of type ClusterIP at an address."""
        name = service["metadata"]["name"]
        self.addresses[name] = address
        for port in service["spec"]["ports"]:
            listening = self._listen(name, port["name"], address, port["port"])
            asyncio.run_coroutine_threadsafe(listening, self._loop).result(_START_S_MAX)

    def close(self) -> None:
        """Ends all connections."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(_START_S_MAX)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_START_S_MAX)
        self._loop.close()

    async def _listen(self, name: str, port: str, address: str, number: int) -> None:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._tasks.add(task)
            try:
                await self._passed_on(name, port, reader, writer)
            finally:
                self._tasks.discard(task)

        self._servers.append(await asyncio.start_server(accepted, address, number))

    async def _passed_on(
        self, name: str, port: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        there = self.endpoints.get((name, port), [])
        with contextlib.suppress(OSError, asyncio.CancelledError):
            if there:
                address = there[next(self._turn) % len(there)]
                inner, outer = await asyncio.open_connection(*address)
                try:
                    await asyncio.gather(_copy(reader, outer), _copy(inner, writer))
                finally:
                    outer.transport.abort()
        writer.transport.abort()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one side ends; then the other one is told."""
    while chunk := await reader.read(_CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()


def ready_addresses(
    slices: list[Any], here: Callable[[str], str]
) -> dict[tuple[str, str], list[tuple[str, int]]]:
    """Where the ready pods of each Service and port are; `here`: the address that an address of the API stands for."""
    found: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for each in slices:
        name = each["metadata"]["labels"]["kubernetes.io/service-name"]
        for port, endpoint in itertools.product(each.get("ports") or [], each.get("endpoints") or []):
            if endpoint["conditions"].get("ready"):
                addresses = found.setdefault((name, port["name"]), [])
                addresses += [(here(address), port["port"]) for address in endpoint["addresses"]]
    return found
