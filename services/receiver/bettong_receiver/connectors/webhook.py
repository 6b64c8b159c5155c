"""Messages to a URL, AT LEAST ONCE: after a crash, or when an answer is lost, a batch is posted again.

    POST url          Bettong-Sink: totals      Bettong-Partition: 3      Content-Type: application/x-ndjson
    one message per line, in order; for a sink with an encoder one POST per message, application/octet-stream

2xx is success. 408, 425, 429 and 5xx are transient; any other answer needs an operator, and is retried as well.
Redirects are not followed. The position is stored in Redis after the POST.
"""

import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError, ProtocolError

from bettong.application.external.webhook import AtLeastOnceWebhook
from bettong.config.connections import Options
from bettong.edges.redis_store import RedisSink
from bettong.errors import SettingsError
from bettong_receiver.connectors.redis_positions import RedisPositions
from bettong_receiver.delivery.connector import ConnectorUnavailableError, Refused, SinkBatch, SinkConnector
from bettong_receiver.delivery.route import Route
from bettong_receiver.errors import SinkError
from bettong_receiver.progress import SinkPartition
from bettong_receiver.sink_context import SinkContext

_ANSWER_WAIT_S_MAX = 10.0
_MESSAGES_MAX = 1000
_BYTES_MAX = 1024 * 1024
_PASSES = frozenset({408, 425, 429})
_ANSWER_BYTES_MAX = 64 * 1024


def route(context: SinkContext, to: AtLeastOnceWebhook) -> Route[bytes]:
    """See `bettong_receiver.connectors`."""
    endpoint = Endpoint.of(context.options(to, needs="url"), sink=context.name)

    def make() -> AtLeastOnceWebhookConnector:
        return AtLeastOnceWebhookConnector(endpoint, context.redis, sink=context.name, lines=context.lines)

    return context.route(context.messages, make)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to post, with which headers. `name` is the URL without user, password and query, for error messages."""

    secure: bool
    host: str
    port: int | None
    target: str
    headers: Mapping[str, str]
    name: str

    @classmethod
    def of(cls, options: Options, *, sink: str) -> "Endpoint":
        """Reads a connection with `url` and optional `headers`. Raises SettingsError, which quotes no secret."""
        try:
            parts = urlsplit(options["url"])
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        headers = options.get("headers", {})
        texts = isinstance(headers, Mapping) and all(
            isinstance(each, str) for pair in headers.items() for each in pair
        )
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or not texts:
            raise SettingsError(
                f"sink {sink!r}: its connection needs 'url', http(s)://host[:port]/path, and may have 'headers', an"
                " object of texts; put a user and password into the header Authorization"
            )
        host = f"{parts.hostname}:{port}" if port else parts.hostname
        return cls(
            secure=parts.scheme == "https",
            host=parts.hostname,
            port=port,
            target=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
            headers=headers,
            name=f"{parts.scheme}://{host}{parts.path}",
        )

    def pool(self) -> urllib3.HTTPConnectionPool:
        """One connection, opened by the first request. Certificates are verified with the system's trust store."""
        if self.secure:
            return urllib3.HTTPSConnectionPool(
                self.host, self.port, timeout=_ANSWER_WAIT_S_MAX, ssl_context=ssl.create_default_context()
            )
        return urllib3.HTTPConnectionPool(self.host, self.port, timeout=_ANSWER_WAIT_S_MAX)


class AtLeastOnceWebhookConnector(SinkConnector[bytes]):
    """See SinkConnector, with weaker guarantees: a delivery may repeat, and another receiver is not fenced off."""

    def __init__(self, endpoint: Endpoint, redis: RedisSink, *, sink: str, lines: bool) -> None:
        """`lines`: many messages per POST, one per line; else one POST per message."""
        self._endpoint = endpoint
        self._sink = sink
        self._lines = lines
        self._name = f"sink {sink}, webhook {endpoint.name}"
        self._positions = RedisPositions(redis, f"{sink}/webhook", self._name)
        self._pool = endpoint.pool()

    def open(self, beginnings: Mapping[SinkPartition, int]) -> dict[SinkPartition, bytes | None]:
        """See SinkConnector. Does not connect yet."""
        return self._positions.load(beginnings)

    def deliver(self, batches: Sequence[SinkBatch[bytes]]) -> Refused:
        """See SinkConnector. Posts one batch after the other, and stores the position after each."""
        for batch in batches:
            for body in self._bodies(batch.messages):
                self._post(batch.partition, body)
            self._positions.save(batch)
        return {}

    def close(self) -> None:
        """See SinkConnector."""
        self._pool.close()

    def _bodies(self, messages: list[bytes]) -> Iterator[bytes]:
        if not self._lines:
            yield from messages
            return
        lines: list[bytes] = []
        size = 0
        for message in messages:
            if lines and (len(lines) == _MESSAGES_MAX or size + len(message) > _BYTES_MAX):
                yield b"\n".join([*lines, b""])
                lines, size = [], 0
            lines.append(message)
            size += len(message) + 1
        if lines:
            yield b"\n".join([*lines, b""])

    def _post(self, partition: int, body: bytes) -> None:
        headers = {
            "Content-Type": "application/x-ndjson" if self._lines else "application/octet-stream",
            "User-Agent": "bettong",
            **self._endpoint.headers,
            "Bettong-Sink": self._sink,
            "Bettong-Partition": str(partition),
        }
        try:
            answer = self._post_once_more(body, headers)
        except ValueError as error:  # urllib3's LocationValueError among them
            raise SinkError(
                f"{self._name}: its connection's url or headers cannot be sent: {error}"
            ) from None
        except (OSError, HTTPError) as error:
            reason = str(error) or type(error).__name__
            raise ConnectorUnavailableError(f"{self._name}: no answer: {reason}") from None
        if answer.status in _PASSES or answer.status >= 500:
            raise ConnectorUnavailableError(f"{self._name}: answered {answer.status} {answer.reason}")
        if not 200 <= answer.status < 300:
            raise SinkError(
                f"{self._name}: answered {answer.status} {answer.reason}; correct the URL, or fix the server"
            )

    def _post_once_more(self, body: bytes, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        """Posts, and once more if the server closed an idle connection just as it was reused."""
        try:
            return self._request(body, headers)
        except ProtocolError:
            return self._request(body, headers)

    def _request(self, body: bytes, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        answer = self._pool.urlopen(
            "POST",
            self._endpoint.target,
            body,
            headers,
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
        if _has_read_all(answer):
            answer.release_conn()
        else:
            answer.close()  # a new connection is cheaper than reading the rest
        return answer


def _has_read_all(answer: urllib3.BaseHTTPResponse) -> bool:
    """Reads an answer's content, which does not matter, to its end; False where it is long, or comes too slowly."""
    deadline_s, left = time.monotonic() + _ANSWER_WAIT_S_MAX, _ANSWER_BYTES_MAX
    while found := answer.read1(left):
        left -= len(found)
        if not left or time.monotonic() >= deadline_s:
            return False
    return True
