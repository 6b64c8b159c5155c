"""What health checks report: whether a service takes calls now (decision 8)."""

import asyncio
from typing import Any, Never

import grpc
from grpc_health.v1 import health, health_pb2

# SERVING from the start on, also while Kafka or Redis is waited for: only that the event loop answers. A new start
# would not mend what is waited for.
_ALIVE = "alive"


class Serving:
    """gRPC's health service, for the whole server and for one service of it alike. Says nothing before `say`."""

    def __init__(self, service: str) -> None:
        """`service`: its full name, as its proto gives it."""
        self.servicer = _Health()
        self._service = service

    async def say(self, *, serving: bool) -> None:
        """Reports to all that ask or watch."""
        response = health_pb2.HealthCheckResponse
        for name in ("", self._service):
            await self.servicer.set(name, response.SERVING if serving else response.NOT_SERVING)
        await self.servicer.set(_ALIVE, response.SERVING)

    async def stop(self) -> None:
        """NOT_SERVING from here on, whatever is said later."""
        await self.servicer.enter_graceful_shutdown()

    async def drain(self, stop: asyncio.Event, wait_s: float) -> None:
        """Once `stop` is set: NOT_SERVING; returns `wait_s` later, until when calls are taken as before."""
        await stop.wait()
        await self.stop()
        await asyncio.sleep(wait_s)


class _Health(health.aio.HealthServicer):
    """Answers `Check`. Clients that would `Watch` take UNIMPLEMENTED for healthy, as gRPC has it.

    A `Watch` has no end and needs no token: strangers would have all calls of a server by it.
    """

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: N802 - gRPC's name
        """Refuses it."""
        del request
        text = (
            "Watch is not served here, for strangers could hold all calls by it; call Check from time to time"
        )
        never: Never = await context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
        raise AssertionError(never)
