"""Frames during which senders crashed, recorded by the sender that takes over, so that all senders know.

| key                            | type       | holds                                                         |
| ------------------------------ | ---------- | ------------------------------------------------------------- |
| `bettong:{application}:deaths`  | sorted set | deaths as text, scored by Redis's clock, Unix s               |
"""

from collections.abc import Sequence

from bettong.edges.redis_store.connection import Client, RedisStore

# Only the newest are stored. A frame is refused after two to four deaths, and then crashes no sender any more.
DEATHS_MAX = 1000
# As long as a client may reconnect and resend its frames; see `STREAM_KEPT_MS` in `leases`.
_KEPT_S = 24 * 3600
# A session waits for this to open; deaths missed now are read for the next session.
_ATTEMPTS_S = 0.3


class RedisDeaths:
    """The deaths of one application's senders. Raises StoreError."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._key = store.key("deaths")

    def note(self, deaths: Sequence[str]) -> None:
        """Adds deaths; equal texts count once."""

        def command(client: Client) -> None:
            seconds = int(client.time()[0])
            with client.pipeline() as together:
                together.zadd(self._key, dict.fromkeys(deaths, seconds), nx=True)
                together.zremrangebyrank(self._key, 0, -DEATHS_MAX - 1)
                together.expire(self._key, _KEPT_S)
                together.execute()

        self._store.ask("recording deaths", command, attempts_s=_ATTEMPTS_S)

    def known(self) -> list[str]:
        """All recorded deaths, of all senders."""
        found: list[bytes] = self._store.ask(
            "asking for deaths", lambda client: client.zrange(self._key, 0, -1), attempts_s=_ATTEMPTS_S
        )
        return [each.decode(errors="replace") for each in found]
