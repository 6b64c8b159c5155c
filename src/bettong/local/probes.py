"""Whether a server on this machine answers: one question, one short answer, and no exception for it."""

import socket
import struct
from collections.abc import Callable

from bettong.local.addresses import LOOPBACK

_ANSWER_S_MAX = 1.0
_ANSWER_BYTES_MAX = 4096

# DescribeCluster, version 0 (KIP-700): length, api key 60, version 0, correlation 1, no client, no tags; the one
# field is `include_cluster_authorized_operations`, false, then no tags.
_DESCRIBE_CLUSTER = struct.pack(">ihhihBBB", 13, 60, 0, 1, -1, 0, 0, 0)


def redis_answers(port: int) -> bool:
    """Whether Redis takes commands; not while it loads its data."""
    return _ask(port, b"PING\r\n", lambda answer: answer.endswith(b"\r\n")).startswith(b"+PONG")


def kafka_answers(port: int) -> bool:
    """Whether a broker takes requests and counts itself as alive, so that topics can be made."""

    def complete(answer: bytes) -> bool:
        return len(answer) >= 4 and len(answer) >= 4 + int(struct.unpack_from(">i", answer)[0])

    answer = _ask(port, _DESCRIBE_CLUSTER, complete)
    if not answer or not complete(answer):
        return False
    # Length, correlation, tags, throttle; then error code, error text, cluster id, controller, brokers.
    (error,) = struct.unpack_from(">h", answer, 13)
    text = 15 + max(answer[15] - 1, 0) + 1
    brokers = text + max(answer[text] - 1, 0) + 1 + 4
    return error == 0 and answer[brokers] > 1  # lengths are written plus one, in one byte below 128


def grpc_serves(address: str) -> bool:
    """Whether the standard health service says SERVING for the server as a whole.

    Speaks TLS by BETTONG_CLIENT_*. Raises SettingsError or RefusedError when these are wrong.
    """
    import grpc
    from grpc_health.v1 import health_pb2

    from bettong.client.credentials import Credentials

    with Credentials.from_environment().channel(address) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        try:
            answer = check(health_pb2.HealthCheckRequest(), timeout=_ANSWER_S_MAX)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def _ask(port: int, question: bytes, complete: Callable[[bytes], bool]) -> bytes:
    answer = b""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=_ANSWER_S_MAX) as connection:
            connection.sendall(question)
            while not complete(answer) and len(answer) < _ANSWER_BYTES_MAX:
                part = connection.recv(_ANSWER_BYTES_MAX)
                if not part:
                    break
                answer += part
    except OSError:
        return b""
    return answer
