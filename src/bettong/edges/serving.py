"""The gRPC health service, which reports whether a service accepts calls now (decision 8)."""

import asyncio
from typing import Any, Never

import grpc
from grpc_health.v1 import health, health_pb2

# The liveness service: SERVING as long as the event loop answers, also while waiting for Kafka or Redis, because a
# restart would not help then.
_ALIVE = "alive"


class Serving:
    """Health of the whole server and of one service, always the same. Unknown before the first `say`."""

    def __init__(self, service: str) -> None:
        """`service`: the full name, as in its proto."""
        self.servicer = _Health()
        self._service = service

    async def say(self, *, serving: bool) -> None:
        """Sets the reported health."""
        response = health_pb2.HealthCheckResponse
        for name in ("", self._service):
            await self.servicer.set(name, response.SERVING if serving else response.NOT_SERVING)
        await self.servicer.set(_ALIVE, response.SERVING)

    async def stop(self) -> None:
        """Reports NOT_SERVING from now on; later calls of `say` have no effect."""
        await self.servicer.enter_graceful_shutdown()

    async def drain(self, stop: asyncio.Event, wait_s: float) -> None:
        """Waits for `stop`, then reports NOT_SERVING; returns `wait_s` later. Calls are accepted until then."""
        await stop.wait()
        await self.stop()
        await asyncio.sleep(wait_s)


class _Health(health.aio.HealthServicer):
    """Answers `Check`, not `Watch`. Clients treat UNIMPLEMENTED for `Watch` as healthy, by gRPC's specification.

    A `Watch` has no end and needs no token, so anybody could occupy all calls of a server.
    """

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: N802 - gRPC's name
        """Refuses the call."""
        del request
        text = (
            "Watch is not served here, for strangers could hold all calls by it; call Check from time to time"
        )
        never: Never = await context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
        raise AssertionError(never)
