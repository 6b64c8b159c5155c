"""Probes whether a server on this machine answers: one short request each, and no exception when it does not."""

import socket
import struct
from collections.abc import Callable

from bettong.local.addresses import LOOPBACK

_ANSWER_S_MAX = 1.0
_ANSWER_BYTES_MAX = 4096

# DescribeCluster, version 0 (KIP-700): length, api key 60, version 0, correlation 1, no client, no tags; the one
# field is `include_cluster_authorized_operations`, false, then no tags.
_DESCRIBE_CLUSTER = struct.pack(">ihhihBBB", 13, 60, 0, 1, -1, 0, 0, 0)


def redis_answers(port: int, password: str = "") -> bool:
    """Whether Redis executes commands; False while it loads its data."""
    question = (b"AUTH %s\r\n" % password.encode() if password else b"") + b"PING\r\n"
    lines = 2 if password else 1
    answer = _ask(port, [(question, lambda answer: answer.count(b"\r\n") >= lines)])
    return answer.endswith(b"+PONG\r\n")


def kafka_answers(port: int, user: str = "", password: str = "") -> bool:
    """Whether a broker answers requests and lists itself as alive, so that topics can be created.

    With a user the probe authenticates by SASL/PLAIN (KIP-43, KIP-152).
    """
    login = [(each, _is_complete) for each in _login(user, password)] if user else []
    answer = _ask(port, [*login, (_DESCRIBE_CLUSTER, _is_complete)])
    if not answer or not _is_complete(answer):
        return False
    # Length, correlation, tags, throttle; then error code, error text, cluster id, controller, brokers.
    (error,) = struct.unpack_from(">h", answer, 13)
    text = 15 + max(answer[15] - 1, 0) + 1
    brokers = text + max(answer[text] - 1, 0) + 1 + 4
    return error == 0 and answer[brokers] > 1  # lengths are written plus one, in one byte below 128


def _is_complete(answer: bytes) -> bool:
    return len(answer) >= 4 and len(answer) >= 4 + int(struct.unpack_from(">i", answer)[0])


def _login(user: str, password: str) -> tuple[bytes, bytes]:
    """The requests SaslHandshake, version 1, and SaslAuthenticate, version 0."""
    shown = b"\0%s\0%s" % (user.encode(), password.encode())
    handshake = struct.pack(">hhihh", 17, 1, 2, -1, len(b"PLAIN")) + b"PLAIN"
    authenticate = struct.pack(">hhihi", 36, 0, 3, -1, len(shown)) + shown
    return struct.pack(">i", len(handshake)) + handshake, struct.pack(">i", len(authenticate)) + authenticate


def grpc_serves(address: str, *, tls: bool = True) -> bool:
    """Whether the standard health service reports SERVING for the server as a whole.

    With `tls` it uses TLS as BETTONG_CLIENT_* says, and raises SettingsError or RefusedError when these are wrong.
    """
    import grpc
    from grpc_health.v1 import health_pb2

    from bettong.client.credentials import Credentials

    credentials = Credentials.from_environment() if tls else Credentials()
    with credentials.channel(address) as channel:
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


def is_listened_to(address: str) -> bool:
    """Whether something accepts connections at host:port."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S_MAX).close()
    except OSError:
        return False
    return True


def _ask(port: int, questions: list[tuple[bytes, Callable[[bytes], bool]]]) -> bytes:
    """Sends requests, each with a check whether its response is complete; returns the last response."""
    answer = b""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=_ANSWER_S_MAX) as connection:
            for question, complete in questions:
                answer = b""
                connection.sendall(question)
                while not complete(answer) and len(answer) < _ANSWER_BYTES_MAX:
                    part = connection.recv(_ANSWER_BYTES_MAX)
                    if not part:
                        return answer
                    answer += part
    except OSError:
        return b""
    return answer
