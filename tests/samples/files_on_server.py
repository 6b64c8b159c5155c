"""A file system of fsspec as on a server of sftp, ftp or smb: its client is synchronous, and folders must be made."""

import threading
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

SCHEME = "onserver"


class FilesOnServer(LocalFileSystem):  # type: ignore[misc] # fsspec has no types
    """Folders of this machine. Unlike such servers it replaces files atomically, as the contract of snapshots asks."""

    protocol = SCHEME

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        whole = self._strip_protocol(path)
        own = f"{whole}.{threading.get_ident()}"
        super().pipe_file(own, value, mode, **kwargs)
        Path(own).replace(whole)


fsspec.register_implementation(SCHEME, FilesOnServer, clobber=True)
