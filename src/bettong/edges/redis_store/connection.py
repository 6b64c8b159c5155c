"""The connection to Redis, with mapped errors."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

from bettong.backoff import attempts
from bettong.closing import Closing
from bettong.config.connection_settings import RedisConnection
from bettong.errors import SettingsError, StoreError, StoreUnavailableError
from bettong.loaded_modules import hidden

# If OpenTelemetry is installed, redis-py would import its metrics in advance, which takes a third of a second.
with hidden("opentelemetry"):
    from redis import Redis

from redis.backoff import NoBackoff
from redis.credentials import CredentialProvider
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
)
from redis.exceptions import (
    ConnectionError as RedisConnectionError,
)
from redis.exceptions import (
    TimeoutError as RedisTimeoutError,
)
from redis.retry import Retry

_CONNECT_WAIT_S_MAX = 2.0
_ANSWER_WAIT_S_MAX = 4.0

# The longest string that Redis accepts (proto-max-bulk-len); it closes the connection on a longer one.
VALUE_BYTES_MAX = 512 * 1024 * 1024

# No attempt begins after this. The last one may last for a connection and an answer longer.
ATTEMPTS_S = 6.0

# A late answer would be useless: the caller asks again.
_TIME_ATTEMPTS_S = 0.5

# The policy of Redis that deletes nothing.
_NO_EVICTION = "noeviction"

# redis-py's types do not tell whether answers are bytes or text; here they are bytes.
Client = Any

_Answer = TypeVar("_Answer")


class RedisStore(Closing):
    """The Redis of one application. Connects at the first command; safe to use from several threads.

    A command without an answer is retried a few times; StoreUnavailableError follows after at most 15 s, and names
    the URL (without password) and the remedy; StoreError at once when Redis refuses. All commands are idempotent.
    """

    def __init__(
        self, where: str | RedisConnection, application: str, *, answer_wait_s_max: float = _ANSWER_WAIT_S_MAX
    ) -> None:
        """`where`: a URL (redis://, rediss://, unix://), or a connection with security settings. Does not connect yet.

        `answer_wait_s_max`: shorter for a caller that only displays state, and reports Redis as unavailable.
        Raises StoreError for an invalid URL.
        """
        self._application = application
        connection = RedisConnection.of(where)
        secured: dict[str, Any] = {}
        if connection.ca is not None:
            secured["ssl_ca_certs"] = str(connection.ca)
        if connection.password_file is not None:
            secured["credential_provider"] = _PasswordFile(connection)
        try:
            self._name = _without_secrets(connection.url)
            self._client = Redis.from_url(
                connection.url,
                socket_connect_timeout=_CONNECT_WAIT_S_MAX,
                socket_timeout=answer_wait_s_max,
                # redis-py would retry at several levels, which multiply; `ask` alone retries.
                retry=Retry(NoBackoff(), 0),
                client_name="bettong",
                **secured,
            )
        except (ValueError, RedisError):
            # The error may quote a part of the password.
            raise StoreError(
                "BETTONG_REDIS is no Redis URL: expected redis://[user:password@]host:port/number,"
                " special characters of a password as %XX"
            ) from None

    def key(self, *parts: str) -> str:
        """The name of a key of this application: see the table of the package."""
        return ":".join(("bettong", self._application, *parts))

    def wait(self, deadline_s: float, on_wait: Callable[[str], None] | None = None) -> None:
        """Returns as soon as Redis answers.

        `on_wait` gets a line for people after each failed attempt.
        Raises StoreUnavailableError when Redis does not answer for `deadline_s`, StoreError when it refuses the
        password.
        """

        def report_wait(attempt: int) -> None:
            if on_wait is not None:
                on_wait(f"waiting for Redis at {self._name}, attempt {attempt}")

        self._attempts(deadline_s, "pinging", lambda client: client.ping(), report_wait)

    def ask(
        self, doing: str, command: Callable[[Client], _Answer], *, attempts_s: float = ATTEMPTS_S
    ) -> _Answer:
        """Runs `command`, which must be idempotent, and returns its answer; for the modules of this package.

        No attempt begins after `attempts_s`. Raises StoreError, which names the operation, `doing`.
        """
        return self._attempts(attempts_s, doing, command)

    def time_ns(self) -> int:
        """The time by Redis's clock, Unix ns. Raises StoreError."""
        return self.ask(
            "asking for the time", lambda client: clock_ns(client.time()), attempts_s=_TIME_ATTEMPTS_S
        )

    def eviction(self) -> str:
        """The policy by which Redis deletes data when it is full, as a cache does; "" where it refuses writes instead.

        Also "" where the user may not ask: INFO is among the commands that ACLs often exclude. Raises
        StoreUnavailableError.
        """
        try:
            memory = self.ask("asking for its policy", lambda client: client.info("memory"))
        except StoreUnavailableError:
            raise
        except StoreError:
            return ""
        policy = str(memory.get("maxmemory_policy", _NO_EVICTION))
        return policy if memory.get("maxmemory") and policy != _NO_EVICTION else ""

    def close(self) -> None:
        """Closes the connections. Never raises."""
        self._client.close()

    def _attempts(
        self,
        deadline_s: float,
        doing: str,
        command: Callable[[Client], _Answer],
        on_pause: Callable[[int], None] | None = None,
    ) -> _Answer:
        try:
            return attempts(deadline_s, _is_transient, on_pause=on_pause)(lambda: command(self._client))
        except RedisError as error:
            kind = StoreUnavailableError if _is_transient(error) else StoreError
            raise kind(f"{doing}: Redis at {self._name} {_cause_and_remedy(error)}") from None


def check_size(doing: str, data: bytes, remedy: str) -> None:
    """Raises StoreError for a value that Redis does not accept; `doing`: see `RedisStore.ask`."""
    if len(data) > VALUE_BYTES_MAX:
        raise StoreError(f"{doing}: {len(data)} bytes, Redis takes at most {VALUE_BYTES_MAX}; {remedy}")


def clock_ns(time: Sequence[int | bytes]) -> int:
    """Converts the answer of `TIME`, seconds and microseconds, to Unix ns."""
    seconds, micros = time
    return (int(seconds) * 1_000_000 + int(micros)) * 1_000


class _NoPasswordError(RedisConnectionError):
    """The password file cannot be read now. Transient, as other errors of connections."""


class _PasswordFile(CredentialProvider):
    """Reads the password file for each new connection."""

    def __init__(self, connection: RedisConnection) -> None:
        self._connection = connection

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """See CredentialProvider. Raises a subclass of redis-py's ConnectionError, so that it closes the connection."""
        try:
            password = self._connection.password()
        except SettingsError as error:
            raise _NoPasswordError(str(error)) from None
        return (self._connection.user, password) if self._connection.user else (password,)


def _is_transient(error: BaseException) -> bool:
    refused = isinstance(error, AuthenticationError | AuthorizationError)
    return isinstance(error, RedisConnectionError | RedisTimeoutError) and not refused


def _cause_and_remedy(error: RedisError) -> str:
    """The cause and the remedy."""
    reason = str(error) or type(error).__name__
    if isinstance(error, _NoPasswordError):
        return f"cannot be used without its password ({reason})"
    if isinstance(error, AuthenticationError | AuthorizationError | NoPermissionError):
        return (
            "refuses this user or password; correct BETTONG_REDIS, or BETTONG_REDIS_USER and"
            f" BETTONG_REDIS_PASSWORD_FILE ({reason})"
        )
    if isinstance(error, RedisConnectionError) and "CERTIFICATE_VERIFY_FAILED" in reason:
        return f"has a certificate that cannot be verified; is BETTONG_REDIS_CA its authority? ({reason})"
    if isinstance(error, RedisConnectionError | RedisTimeoutError):
        return f"does not answer; is it running and reachable? ({reason})"
    if isinstance(error, OutOfMemoryError):
        return f"is full; raise its maxmemory ({reason})"
    if isinstance(error, ReadOnlyError):
        return f"is a replica; give BETTONG_REDIS the address of the primary ({reason})"
    return f"refused; do others use keys that begin with bettong? ({reason})"


def _without_secrets(url: str) -> str:
    """Scheme, host, port and database of a URL; passwords may be before the host and in the query."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
