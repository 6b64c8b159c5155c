"""Tasks, and a Redis that forgets or goes back: for the tests of membership and of the assignor."""

import itertools

from bettong.edges.redis_store import RedisStore
from bettong.edges.redis_store.connection import Client
from bettong.edges.redis_store.membership import HeartbeatResponse, Task
from bettong.identifiers import PartitionId

# A slot that is silent for this long lives no more.
TTL_MS = 300

CHECK = [PartitionId("check", number) for number in range(4)]

_incarnations = itertools.count(1)


def task_of(slot: int) -> Task:
    """A task that begins after all those before."""
    return Task(run="run-1", slot=slot, incarnation=next(_incarnations))


def answered(response: HeartbeatResponse | None) -> HeartbeatResponse:
    """The response to a heartbeat of a task that is not superseded."""
    assert response is not None
    return response


def emptied(store: RedisStore) -> None:
    """What a Redis without persistence is after a restart, for this application."""
    rewound(store, {})


def remembered(store: RedisStore) -> dict[bytes, bytes]:
    """The assignment and the holders as they are now: what the replica has that takes over later."""

    def remember(client: Client) -> dict[bytes, bytes]:
        return {key: client.dump(key) for key in client.keys(store.key("resident*")) if client.pttl(key) < 0}

    return store.ask("remembering", remember)


def rewound(store: RedisStore, to: dict[bytes, bytes]) -> None:
    """A Redis that comes back as it was: after a failover, or without the last second of its file."""

    def rewind(client: Client) -> None:
        with client.pipeline(transaction=True) as together:
            together.delete(*client.keys(store.key("resident*")))
            for key, value in to.items():
                together.restore(key, 0, value)
            together.execute()

    store.ask("rewinding", rewind)
