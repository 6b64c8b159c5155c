"""The file system of a URL, with bounded waits, and its errors as ours."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import fsspec
from fsspec.core import url_to_fs
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper

from bettong.backoff import attempts
from bettong.edges.object_store.faults import complaint, may_pass, reason_of
from bettong.errors import SettingsError, StoreError, StoreUnavailableError

_CONNECT_WAIT_S_MAX = 3.0
_READ_WAIT_S_MAX = 10.0

# No attempt is begun after this. The last one may take its own time longer.
_ATTEMPTS_S = 6.0

# The settings of S3's client; the defaults of its two layers would multiply their attempts to some minutes.
_S3_OPTIONS = {
    "config_kwargs": {
        "connect_timeout": _CONNECT_WAIT_S_MAX,
        "read_timeout": _READ_WAIT_S_MAX,
        "retries": {"mode": "standard", "total_max_attempts": 1},
    },
    # An object is read by one request: read in pieces, it could be half of one that replaced it meanwhile.
    "max_concurrency": 1,
    "use_listings_cache": False,
}
_OPTIONS: dict[str, dict[str, Any]] = {"s3": _S3_OPTIONS, "s3a": _S3_OPTIONS}

_UNFIT = {
    "local": "give a folder as file:///folder",
    "memory": "what it keeps ends with its process",
}

# fsspec has no types: a file system whose methods all take `timeout`, in seconds.
Files = Any

_Answer = TypeVar("_Answer")


def check_scheme(url: str) -> None:
    """Loads the file system's class. Raises SettingsError that names the remedy when there is none for the URL."""
    scheme = url.partition("://")[0]
    if scheme in _UNFIT:
        raise SettingsError(f"BETTONG_SNAPSHOTS: {url} cannot keep snapshots: {_UNFIT[scheme]}")
    try:
        fsspec.get_filesystem_class(scheme)
    except ValueError:
        raise SettingsError(
            f"BETTONG_SNAPSHOTS: {url}: no file system of fsspec is called {scheme}; expected redis, file:///folder,"
            " s3://bucket/folder or another that fsspec knows"
        ) from None
    except ImportError as error:
        remedy = "run `pip install s3fs`" if scheme in {"s3", "s3a"} else reason_of(error)
        raise SettingsError(
            f"BETTONG_SNAPSHOTS: the package for {scheme}:// is not installed here: {remedy}"
        ) from None


class ObjectStore:
    """The store that a URL names. Connects at the first command, and anew in a forked process; safe to use from
    several threads.

    A command that fails and may succeed later is tried again for some seconds; then StoreUnavailableError, at most
    6 s and one attempt after it was begun. StoreError at once when the store refuses. Both name the URL, which
    holds no secrets (`bettong.config.endpoints`), and the remedy. Every command must be harmless when it is
    carried out twice.
    """

    def __init__(self, url: str) -> None:
        """`url` as `bettong.config.endpoints.snapshots_url` leaves it."""
        self._url = url

    def ask(self, doing: str, command: Callable[[Files, str], _Answer]) -> _Answer:
        """What `command` answers, called with the file system and the URL's path in it. Raises StoreError."""
        try:
            return attempts(_ATTEMPTS_S, may_pass)(lambda: command(*self._files()))
        except Exception as error:  # noqa: BLE001 - file systems raise whatever their own clients do
            kind = StoreUnavailableError if may_pass(error) else StoreError
            raise kind(f"{doing}: {self._url} {complaint(error)}") from None

    def _files(self) -> tuple[Files, str]:
        """One a process and URL, kept by fsspec; a forked process gets one of its own."""
        files, path = url_to_fs(self._url, **_OPTIONS.get(self._url.partition("://")[0], {}))
        files.invalidate_cache()
        if hasattr(files, "retries"):
            files.retries = 1  # `ask` does it, at one level
        return (files if files.async_impl else _with_timeouts(files)), path


@lru_cache(maxsize=64)
def _with_timeouts(files: Files) -> Files:
    """A file system without async calls, in threads, so that its methods take `timeout` too."""
    return AsyncFileSystemWrapper(files)
