"""Whose turn it is: work of many sessions, scheduled fairly. Pure; used from several threads.

    client A   session 1 ▸ work      client B   session 3 ▸ work          next: A1, B3, A2, B3, A1 ...
               session 2 ▸ work

Clients take turns, and the sessions of one client among themselves: a client with many sessions gets no more than a
client with one, and a client with little work waits for one piece of each other client's, however much is waiting.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

_Work = TypeVar("_Work")


class Turns(Generic[_Work]):
    """Work that waits. Its callers bound it: credits do, and bytes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # The first is next. Only clients and sessions that wait for something are here.
        self._clients: OrderedDict[Hashable, OrderedDict[Hashable, deque[_Work]]] = OrderedDict()

    def put(self, client: Hashable, session: Hashable, work: _Work) -> None:
        """Work of a session goes behind what it has put there before."""
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
            # To the end, behind those that wait already.
            if waiting:
                sessions[session] = waiting
            if sessions:
                self._clients[client] = sessions
            return work
