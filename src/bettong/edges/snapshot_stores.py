"""Creates the snapshot store of `BETTONG_SNAPSHOTS`, for the processor and for commands that read states."""

import glob
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from bettong.config.endpoints import folder_of
from bettong.edges.directory_snapshots import DirectorySnapshots
from bettong.edges.directory_versions import DirectoryVersions
from bettong.edges.object_store import ObjectSnapshots, ObjectVersions, check_scheme
from bettong.edges.redis_store import RedisSnapshots, RedisStore, RedisVersions
from bettong.errors import SettingsError
from bettong.snapshots.references import ReferenceStore
from bettong.snapshots.store import SnapshotStore

REDIS = "redis"
_LOG_ID_BYTES = 6


def snapshot_store(url: str, application: str, redis: RedisStore) -> SnapshotStore:
    """The application's snapshots at `url`, as returned by `bettong.config.endpoints.snapshots_url`.

    Does not connect yet. Raises SettingsError for an unsupported URL, or one whose package is missing.
    """
    if url == REDIS:
        return RedisSnapshots(redis)
    folder = folder_of(url)
    if folder is not None:
        return DirectorySnapshots(folder / application, sync=os.fsync)
    check_scheme(url)
    return ObjectSnapshots(url, application)


def reference_store(url: str, application: str, redis: RedisStore) -> ReferenceStore:
    """The versions of the application's reference tables, beside its snapshots. See `snapshot_store`."""
    if url == REDIS:
        return ReferenceStore(RedisVersions(redis))
    folder = folder_of(url)
    if folder is not None:
        return ReferenceStore(DirectoryVersions(folder / application, sync=os.fsync))
    check_scheme(url)
    return ReferenceStore(ObjectVersions(url, application))


def log_id(topic_ids: Mapping[str, str]) -> str:
    """Names the log that an application's states are folds of. `topic_ids`: of its stages, by topic."""
    text = "\0".join(f"{topic}\0{id_}" for topic, id_ in sorted(topic_ids.items()))
    return hashlib.blake2b(text.encode(), digest_size=_LOG_ID_BYTES).hexdigest()


def local_states(folder: Path, log: str) -> DirectorySnapshots:
    """The states that the workers of a machine share in memory, of the log with that `log_id`. Raises SettingsError.

    `folder`: of the deployment, and so of all logs that it ever had. States of the other logs are deleted.
    """
    own = folder.with_name(f"{folder.name}-{log}")
    for each in (folder, own):
        prepare_folder(each)
    for other in _log_folders(folder):
        if other != own:
            DirectorySnapshots(other).clear()
    return DirectorySnapshots(own)


def clear_local_states(folder: Path) -> None:
    """Deletes a deployment's states in this machine's shared memory. Raises StoreError."""
    for each in _log_folders(folder):
        DirectorySnapshots(each).clear()


def _log_folders(folder: Path) -> Iterator[Path]:
    return folder.parent.glob(glob.escape(folder.name) + "-" + "[0-9a-f]" * 2 * _LOG_ID_BYTES)


def prepare_folder(folder: Path) -> None:
    """Creates a folder in shared memory that only our user can access.

    Raises SettingsError when it, or its parent, belongs to another user, who could plant wrong states there.
    """
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        # `lstat`, not the target of a link, because the link's owner could change it.
        owners = {each.lstat().st_uid for each in (folder.parent, folder)}
        if owners <= {os.geteuid(), 0}:
            folder.chmod(0o700)
            return
    except OSError as error:
        raise SettingsError(
            f"BETTONG_STATE_DIR: {folder} cannot be used: {error.strerror}; name another folder in shared memory"
        ) from None
    raise SettingsError(
        f"BETTONG_STATE_DIR: {folder} is another user's; name another folder in shared memory"
    )


def prepare(url: str) -> None:
    """Checks a URL at the start, before anything is saved: loads its package, creates its folder.

    Raises SettingsError.
    """
    folder = folder_of(url)
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(
                f"BETTONG_SNAPSHOTS: {url} cannot be created: {error}; name a writable folder"
            ) from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise SettingsError(f"BETTONG_SNAPSHOTS: {url} is not writable; name a writable folder")
    elif url != REDIS:
        check_scheme(url)
