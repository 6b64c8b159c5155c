"""What a health check of a service answers, by gRPC's standard protocol."""

import grpc
from grpc_health.v1 import health_pb2

SERVING = int(health_pb2.HealthCheckResponse.SERVING)
NOT_SERVING = int(health_pb2.HealthCheckResponse.NOT_SERVING)


def health(address: str, service: str = "", *, seconds: float = 10, wait: bool = True) -> int:
    """The status of a service at host:port; waits up to `seconds` for a server. Raises grpc.RpcError."""
    with grpc.insecure_channel(address) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        request = health_pb2.HealthCheckRequest(service=service)
        return int(check(request, timeout=seconds, wait_for_ready=wait).status)


def answers_serving(address: str, service: str, seconds: float) -> bool:
    """As a kubelet asks: once, and whatever else it is told is a failure."""
    try:
        return health(address, service, seconds=seconds, wait=False) == SERVING
    except grpc.RpcError:
        return False
