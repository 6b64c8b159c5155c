"""What only the owner of a suite knows: passwords of its Kafka and Redis, and the key of its signed states.

Files of the mode 0600 in a folder of the mode 0700, below the suite's own. Nothing of it stands on a command line, in
an environment or in `suite.json`: they hold the files' names.
"""

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

FOLDER = "secrets"
# As the key of signatures must have at least; more than anybody guesses.
_BYTES = 32


@dataclass(frozen=True, slots=True)
class Secrets:
    """The files."""

    kafka: Path
    redis: Path
    state_key: Path

    @classmethod
    def of(cls, root: Path) -> "Secrets":
        """Those of the suite in a folder; drawn when there are none yet, for states that are kept need their key."""
        folder = root / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        return cls(
            kafka=_drawn(folder / "kafka.password", _password),
            redis=_drawn(folder / "redis.password", _password),
            state_key=_drawn(folder / "state.key", lambda: secrets.token_bytes(_BYTES)),
        )


def write_private(path: Path, content: bytes) -> None:
    """A file that nobody else can read, not even while it is written. Replaces what lies there."""
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
    unfinished.replace(path)


def _password() -> bytes:
    return secrets.token_hex(_BYTES).encode()


def _drawn(path: Path, draw: Callable[[], bytes]) -> Path:
    if not path.exists():
        write_private(path, draw())
    return path
