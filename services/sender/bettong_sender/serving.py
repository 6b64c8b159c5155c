"""What health checks are told: whether this sender takes frames now."""

from grpc_health.v1 import health, health_pb2

SERVICE = "bettong.v1.IngestService"
# SERVING from the start on, also while Kafka is waited for: only that the event loop answers. A new start would not
# mend what is waited for.
ALIVE = "alive"


class Serving:
    """gRPC's health service, for the whole server and for the ingest service alike. NOT_SERVING at first."""

    def __init__(self) -> None:
        self.servicer = health.aio.HealthServicer()

    async def say(self, *, serving: bool) -> None:
        """Tells whoever asks or watches."""
        response = health_pb2.HealthCheckResponse
        for name in ("", SERVICE):
            await self.servicer.set(name, response.SERVING if serving else response.NOT_SERVING)
        await self.servicer.set(ALIVE, response.SERVING)

    async def stop(self) -> None:
        """NOT_SERVING from here on, whatever is said later."""
        await self.servicer.enter_graceful_shutdown()
