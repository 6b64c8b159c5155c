"""Object stores such as S3: the only package that imports fsspec.

    {url}/{application}/
      check-0/               <stage>-<partition>
        1200-0-1200          an increment: <offset>-<since>-<root> (`bettong.snapshots.chain`)
        1450-1200-1200
      references/            versions of reference tables, one folder per series

| name              | purpose                                                           |
| ----------------- | ----------------------------------------------------------------- |
| `ObjectSnapshots` | a `SnapshotStore`                                                 |
| `ObjectVersions`  | versions of reference tables                                      |
| `ObjectStore`     | a URL's file system, with bounded waits and our errors            |
| `check_scheme`    | checks that fsspec knows a URL's scheme and its package is installed |

The store's own client takes credentials and endpoint from the environment: for S3 `AWS_ACCESS_KEY_ID`,
`AWS_SECRET_ACCESS_KEY`, `AWS_ENDPOINT_URL` and the rest of `AWS_*`. None of them is read, stored or logged here.
Errors of fsspec and of its clients stay inside: every failure is a `StoreError`.
"""

from bettong.edges.object_store.snapshots import ObjectSnapshots
from bettong.edges.object_store.store import ObjectStore, check_scheme
from bettong.edges.object_store.versions import ObjectVersions

__all__ = ["ObjectSnapshots", "ObjectStore", "ObjectVersions", "check_scheme"]
