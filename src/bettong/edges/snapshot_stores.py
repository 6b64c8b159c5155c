"""Creates the snapshot store of `BETTONG_SNAPSHOTS`, for the processor and for commands that read states."""

import os
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


def local_states(folder: Path) -> DirectorySnapshots:
    """The states that the workers of a machine share in memory, in `folder`. Raises SettingsError."""
    prepare_folder(folder)
    return DirectorySnapshots(folder)


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
