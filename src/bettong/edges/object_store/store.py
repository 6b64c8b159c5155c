"""The file system of a URL, with bounded waits and mapped errors."""

from collections.abc import Callable
from typing import Any, TypeVar

import fsspec
from fsspec.core import url_to_fs

from bettong.backoff import attempts
from bettong.edges.object_store.connections import Files, connection
from bettong.edges.object_store.faults import cause_and_remedy, is_transient, reason_of
from bettong.errors import SettingsError, StoreError, StoreUnavailableError

_CONNECT_WAIT_S_MAX = 3.0
_READ_WAIT_S_MAX = 10.0

# No attempt begins after this. The last one may end later.
_ATTEMPTS_S = 6.0

# Options of S3's client. By default its two layers would multiply their retries to some minutes.
_S3_OPTIONS = {
    "config_kwargs": {
        "connect_timeout": _CONNECT_WAIT_S_MAX,
        # Also between two pieces of one answer.
        "read_timeout": _READ_WAIT_S_MAX,
        "retries": {"mode": "standard", "total_max_attempts": 1},
    },
    # Reads an object in one request: parts read separately could belong to different versions.
    "max_concurrency": 1,
    "use_listings_cache": False,
}
# By scheme. With them a client ends a read once no data arrives; others may wait for ever.
_OPTIONS: dict[str, dict[str, Any]] = {"s3": _S3_OPTIONS, "s3a": _S3_OPTIONS}

_UNFIT = {
    "local": "give a folder as file:///folder",
    "memory": "what it keeps ends with its process",
}

_Answer = TypeVar("_Answer")


def check_scheme(url: str) -> None:
    """Loads the class of the URL's file system. Raises SettingsError with the remedy when there is none."""
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
    """The store at a URL. Connects at the first command, and again in a forked process; safe to use from several
    threads.

    Transient failures of a command are retried for some seconds; StoreUnavailableError follows at most 6 s and one
    attempt after the start. StoreError at once when the store refuses. Both name the URL, which holds no secrets
    (`bettong.config.endpoints`), and the remedy. Every command must be idempotent.
    """

    def __init__(self, url: str) -> None:
        """`url` as returned by `bettong.config.endpoints.snapshots_url`."""
        self._url = url
        scheme = url.partition("://")[0]
        self._options = _OPTIONS.get(scheme, {})
        self._is_synchronous = not fsspec.get_filesystem_class(scheme).async_impl

    @property
    def ends_silent_reads(self) -> bool:
        """Whether its client itself gives up a read, within some seconds, when no data arrives."""
        return bool(self._options)

    @property
    def has_folders(self) -> bool:
        """Whether objects are files in folders that must exist, as those of synchronous clients (sftp, ftp, smb)."""
        return self._is_synchronous

    def ask(self, doing: str, command: Callable[[Files, str], _Answer]) -> _Answer:
        """Calls `command` with the file system and the URL's path in it; returns its result. Raises StoreError."""
        try:
            return attempts(_ATTEMPTS_S, is_transient)(lambda: self._run(command))
        except Exception as error:  # noqa: BLE001 - file systems pass on any error of their clients
            kind = StoreUnavailableError if is_transient(error) else StoreError
            raise kind(f"{doing}: {self._url} {cause_and_remedy(error)}") from None

    def _run(self, command: Callable[[Files, str], _Answer]) -> _Answer:
        if self._is_synchronous:
            with connection(self._url) as (files, root):
                return command(files, root)
        # fsspec caches it per process and URL; a forked process gets its own.
        files, root = url_to_fs(self._url, **self._options)
        files.invalidate_cache()
        if hasattr(files, "retries"):
            files.retries = 1  # `ask` alone retries
        return command(files, root)
