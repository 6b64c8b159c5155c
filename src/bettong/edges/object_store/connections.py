"""Connections of synchronous clients (sftp, ftp, smb), with bounded waits.

Such a client may wait for ever, and Python cannot end a thread. So each call has a daemon thread of its own, which is
left behind when its time is over: it ends when the client gives up, or with the process.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, TypeVar

from fsspec.core import url_to_fs
from fsspec.exceptions import FSTimeoutError

# A file system whose methods all accept `timeout`, in seconds. fsspec has no type for it.
Files = Any

_Answer = TypeVar("_Answer")

_CONNECT_S_MAX = 15.0
# More than a process calls at once, so most of them hang: each keeps memory, a connection and what it was to write.
_CALLS_MAX = 16


@contextmanager
def connection(url: str) -> Iterator[tuple[Files, str]]:
    """A connection that nobody else uses meanwhile, and the URL's path in it.

    Kept for the next command if the block ends without an error: one that timed out or broke may be dead, or still
    receive an old answer. Raises what the client raises, FSTimeoutError when it does not connect in time, and
    TimeoutError when too many calls hang.
    """
    idle = _idle_connections(url, os.getpid())
    files, root = _take_connection(url, idle)
    files.invalidate_cache()
    try:
        yield _Bounded(files, url), root
    except BaseException:
        if hasattr(files, "client"):  # paramiko's own thread would keep it; its calls end with it
            files.client.close()
        raise
    idle.append((files, root))


def _take_connection(url: str, idle: list[tuple[Files, str]]) -> tuple[Files, str]:
    def connect() -> None:
        """One that comes too late serves a later command. fsspec caches one for each thread, which here ends."""
        idle.append(url_to_fs(url, skip_instance_cache=True))

    while True:
        with suppress(IndexError):
            return idle.pop()
        _within(_CONNECT_S_MAX, url, connect)


@lru_cache(maxsize=64)
def _idle_connections(url: str, process: int) -> list[tuple[Files, str]]:
    """Those of one process: a forked one must not use its parent's."""
    del url, process
    return []


class _Bounded:
    """The methods of a synchronous file system, with `timeout`. They raise as `connection` does."""

    def __init__(self, files: Files, url: str) -> None:
        self._files = files
        self._url = url

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._files, name)

        def call(*arguments: Any, timeout: float, **options: Any) -> Any:
            return _within(timeout, self._url, lambda: method(*arguments, **options))

        return call


def _within(wait_s_max: float, url: str, call: Callable[[], _Answer]) -> _Answer:
    name = f"call of {url}"
    if sum(each.name == name for each in threading.enumerate()) >= _CALLS_MAX:
        raise TimeoutError(
            f"{_CALLS_MAX} earlier commands still wait for it; if it is reachable, start this process again"
        )
    answer: Future[_Answer] = Future()
    threading.Thread(target=_answer, args=(answer, call), name=name, daemon=True).start()
    try:
        return answer.result(wait_s_max)
    except TimeoutError:
        if answer.done():  # the client's own
            raise
        raise FSTimeoutError(f"no answer in {wait_s_max:g} s") from None


def _answer(answer: Future[_Answer], call: Callable[[], _Answer]) -> None:
    try:
        answer.set_result(call())
    except Exception as error:  # noqa: BLE001 - file systems pass on any error of their clients
        answer.set_exception(error)
