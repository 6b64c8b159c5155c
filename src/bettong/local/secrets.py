"""The secrets of a suite: the passwords of its Kafka and Redis, and the key that signs its states.

They are files of mode 0600 in a folder of mode 0700, below the suite's own. Command lines, environments and
`suite.json` hold only the files' names.
"""

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FOLDER = "secrets"
# The least that the signing key must have; too many to guess.
_BYTES = 32


@dataclass(frozen=True, slots=True)
class Secrets:
    """The paths of a suite's secret files."""

    kafka: Path
    redis: Path
    state_key: Path

    @classmethod
    def of(cls, root: Path) -> "Secrets":
        """The secrets of the suite in a folder; those that exist stay, since kept states need their key."""
        folder = root / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        return cls(
            kafka=_generated(folder / "kafka.password", _password),
            redis=_generated(folder / "redis.password", _password),
            state_key=_generated(folder / "state.key", lambda: secrets.token_bytes(_BYTES)),
        )


def write_private(path: Path, content: bytes) -> None:
    """Writes a file that no other user can read, not even while it is written; replaces an existing one."""
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    unfinished.replace(path)


def _password() -> bytes:
    return secrets.token_hex(_BYTES).encode()


def _generated(path: Path, generate: Callable[[], bytes]) -> Path:
    if not path.exists():
        write_private(path, generate())
    return path
