"""Certificates for tests, right and wrong ones, as files."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme

_DAY = timedelta(days=1)


class Authority:
    """An authority of its own; `ca` is the file of its certificate."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._ca = trustme.CA()
        self.ca = folder / "ca.pem"
        self._ca.cert_pem.write_to_path(self.ca)

    def issue(self, host: str = "127.0.0.1", *, name: str = "server", expired: bool = False) -> "Pair":
        """A certificate for a host, in the files of `name`; an expired one was good until yesterday."""
        end = datetime.now(UTC) + (-_DAY if expired else _DAY)
        made = self._ca.issue_cert(host, not_before=end - 2 * _DAY, not_after=end)
        pair = Pair(self._folder, name)
        made.private_key_pem.write_to_path(pair.key)
        pair.certificate.write_bytes(b"".join(each.bytes() for each in made.cert_chain_pems))
        return pair


class Pair:
    """The files of a certificate and its key."""

    def __init__(self, folder: Path, name: str) -> None:
        self.certificate = folder / f"{name}.pem"
        self.key = folder / f"{name}.key"
