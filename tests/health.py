"""What a health check of a service is told, by gRPC's standard protocol."""

import grpc
from grpc_health.v1 import health_pb2

SERVING = int(health_pb2.HealthCheckResponse.SERVING)
NOT_SERVING = int(health_pb2.HealthCheckResponse.NOT_SERVING)


def health(address: str, service: str = "") -> int:
    """The status of a service at host:port; waits up to 10 s for a server."""
    with grpc.insecure_channel(address) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        request = health_pb2.HealthCheckRequest(service=service)
        return int(check(request, timeout=10, wait_for_ready=True).status)
