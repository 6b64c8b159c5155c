"""Fair scheduling of the work of many sessions. Pure; used from several threads.

    client A   session 1 ▸ work      client B   session 3 ▸ work          next: A1, B3, A2, B3, A1 ...
               session 2 ▸ work

Clients take turns, and the sessions of one client among themselves: a client with many sessions gets no more than a
client with one, and a client with little work waits for one item of each other client, however much is queued.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

_Work = TypeVar("_Work")


class Turns(Generic[_Work]):
    """Queued work. Unbounded: callers bound it by credits and bytes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The first is next. Holds only clients and sessions that have queued work.
        self._clients: OrderedDict[Hashable, OrderedDict[Hashable, deque[_Work]]] = OrderedDict()

    def put(self, client: Hashable, session: Hashable, work: _Work) -> None:
        """Queues work behind the earlier work of its session."""
        with self._lock:
            self._clients.setdefault(client, OrderedDict()).setdefault(session, deque()).append(work)

    def take(self) -> _Work | None:
        """The next work, in turn; None when there is none."""
        with self._lock:
            if not self._clients:
                return None
            client, sessions = self._clients.popitem(last=False)
            session, waiting = sessions.popitem(last=False)
            work = waiting.popleft()
            # To the end, behind those that are queued already.
            if waiting:
                sessions[session] = waiting
            if sessions:
                self._clients[client] = sessions
            return work
