"""The key that signs pickled states, in a file that no other user can read, and outside all stores."""

import os
import stat
from collections.abc import Collection
from pathlib import Path

from bettong.errors import SettingsError

# At least the length of the signature.
_BYTES_MIN = 32
_BYTES_MAX = 4096


def state_key(path: Path | None) -> bytes | None:
    """The key in the file of `BETTONG_STATE_KEY_FILE`; None if that is not set.

    Raises SettingsError when the file cannot be read, is another user's, is accessible to others, or is too short.
    """
    if path is None:
        return None
    try:
        with path.expanduser().open("rb") as file:
            about, key = os.fstat(file.fileno()), file.read(_BYTES_MAX + 1)
    except (OSError, RuntimeError) as error:
        raise SettingsError(f"BETTONG_STATE_KEY_FILE: cannot read {path}: {error}") from None
    if not is_closed(about, user=os.geteuid(), groups={os.getegid(), *os.getgroups()}):
        raise SettingsError(
            f"BETTONG_STATE_KEY_FILE: {path} may be read or written by others, who could sign states of theirs: make it"
            " yours alone (chmod 600), or root's and read by a group of yours (0440, as Kubernetes mounts a Secret"
            " under fsGroup), and the key a new one"
        )
    if not _BYTES_MIN <= len(key) <= _BYTES_MAX:
        raise SettingsError(
            f"BETTONG_STATE_KEY_FILE: {path} holds {len(key)} bytes, expected {_BYTES_MIN} to {_BYTES_MAX} random ones:"
            f" head -c {_BYTES_MIN} /dev/urandom"
        )
    return key


def is_closed(about: os.stat_result, *, user: int, groups: Collection[int]) -> bool:
    """Whether only that user and root can access a file. Pure.

    A file of root's may be readable by a group of the user's: kubelet mounts a Secret so under fsGroup.
    """
    mode = stat.S_IMODE(about.st_mode)
    if about.st_uid == 0 and about.st_gid in groups:
        mode &= ~stat.S_IRGRP
    return about.st_uid in (user, 0) and not mode & 0o077
