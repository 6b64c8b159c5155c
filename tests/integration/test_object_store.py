"""Snapshots in S3 against a real server: what goes wrong there, and what is said of it."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest
from botocore.config import Config

from bettong.edges.object_store import ObjectSnapshots
from bettong.edges.redis_store import RedisStore
from bettong.edges.snapshot_stores import prepare, snapshot_store
from bettong.errors import SettingsError, StoreError, StoreUnavailableError
from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment
from tests.samples.snapshots import whole
from tests.servers.freezing import frozen
from tests.servers.s3 import BUCKET, S3Server, fresh_clients

CHECK = PartitionId("check", 0)
URL = f"s3://{BUCKET}/states"
# The bound of a command that gets no answer: 6 s of attempts, the last of which may take 10 s, on a busy machine.
ANSWER_S_MAX = 30.0


@pytest.fixture
def own_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A server that a test may kill and stop, with a bucket; the environment says where it is."""
    with S3Server(tmp_path) as server:
        server.make_bucket()
        server.be_found(monkeypatch)
        yield server


@pytest.fixture
def application(unique_name: Callable[..., str]) -> str:
    return unique_name("objects")


def test_a_server_that_is_away_is_given_up_in_bounded_time_and_found_when_it_is_back(
    own_server: S3Server, application: str
) -> None:
    own_server.kill()
    store = ObjectSnapshots(URL, application)
    attempts: list[Callable[[], object]] = [
        lambda: store.increments(CHECK),
        lambda: store.save(CHECK, whole(1), b"state"),
        lambda: store.load(CHECK, whole(1)),
    ]
    for attempt in attempts:
        begun_s = time.monotonic()
        with pytest.raises(
            StoreUnavailableError, match=r"of check/0.*s3://snapshots/states does not answer.*AWS_ENDPOINT"
        ):
            attempt()
        assert time.monotonic() - begun_s < ANSWER_S_MAX
    own_server.start()
    own_server.make_bucket()
    store.save(CHECK, whole(1), b"state")
    own_server.kill()
    with pytest.raises(StoreUnavailableError):
        store.save(CHECK, whole(2), b"state")
    own_server.start()
    own_server.make_bucket()
    store.save(CHECK, whole(2), b"state")
    assert store.increments(CHECK) == [whole(2)], "this server forgets"


def test_a_server_that_hangs_is_given_up_in_bounded_time_and_nothing_is_lost(
    own_server: S3Server, application: str
) -> None:
    store = ObjectSnapshots(URL, application)
    store.save(CHECK, whole(1), b"one")
    with frozen(own_server):
        begun_s = time.monotonic()
        with pytest.raises(StoreUnavailableError, match=r"saving the snapshot of check/0 at 2.*not answer"):
            store.save(CHECK, whole(2), bytes(10_000_000))
        assert time.monotonic() - begun_s < ANSWER_S_MAX + 10  # MiB at one a second
    store.save(CHECK, whole(2), b"two")
    assert store.load(CHECK, whole(1)) == b"one"
    assert store.load(CHECK, whole(2)) == b"two"


def test_what_a_save_could_not_delete_the_next_one_deletes(
    s3_server: S3Server, application: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mute(ObjectSnapshots):
        """Its server is away after each put."""

        def increments(self, partition: PartitionId) -> list[Increment]:
            raise StoreUnavailableError(f"gone before {partition} was listed")

    store = ObjectSnapshots(URL, application)
    for offset in (1, 2, 3, 4):
        Mute(URL, application).save(CHECK, whole(offset), b"state")
    assert store.increments(CHECK) == [whole(offset) for offset in (1, 2, 3, 4)]
    store.save(CHECK, whole(5), b"state")
    assert store.increments(CHECK) == [whole(4), whole(5)]


def test_a_bucket_that_is_not_there_is_told_from_a_folder_that_is_not_there(
    s3_server: S3Server, application: str
) -> None:
    assert ObjectSnapshots(URL, application).increments(CHECK) == []
    assert ObjectSnapshots(URL, application).load(CHECK, whole(1)) is None
    wrong = ObjectSnapshots("s3://no-such-bucket/states", application)
    attempts: list[Callable[[], object]] = [
        lambda: wrong.increments(CHECK),
        lambda: wrong.save(CHECK, whole(1), b"state"),
        lambda: wrong.load(CHECK, whole(1)),
        wrong.clear,
    ]
    for attempt in attempts:
        with pytest.raises(
            StoreError, match=r"s3://no-such-bucket/states does not exist; make the bucket"
        ) as caught:
            attempt()
        assert not isinstance(caught.value, StoreUnavailableError), "waiting would not mend it"


def test_wrong_and_missing_credentials_are_reported_and_never_quoted(
    tmp_path: Path, application: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Four calls make the bucket and the user; from then on credentials count.
    with S3Server(tmp_path, {"INITIAL_NO_AUTH_ACTION_COUNT": "4"}) as server:
        server.be_found(monkeypatch)
        key_id, secret = user_of(server)

        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret")
        with pytest.raises(StoreError, match=r"refuses these credentials.*AWS_SECRET_ACCESS_KEY") as caught:
            ObjectSnapshots(f"{URL}/wrong", application).increments(CHECK)
        assert "another-secret" not in str(caught.value)
        assert not isinstance(caught.value, StoreUnavailableError)

        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key_id)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
        fresh_clients()
        store = ObjectSnapshots(f"{URL}/right", application)
        store.save(CHECK, whole(1), b"state")
        assert store.increments(CHECK) == [whole(1)]


def test_objects_that_are_no_increments_are_skipped_and_left(s3_server: S3Server, application: str) -> None:
    store = ObjectSnapshots(URL, application)
    folder = f"states/{application}/check-0"
    garbage = ("", "readme.txt", "1-2", "-1-0-0", "9-9-9.tmp", "999-0-999/inside")
    for name in garbage:
        s3_server.put(f"{folder}/{name}", b"garbage")
    s3_server.put(f"states/{application}/check-1", b"an object with a folder's name")
    s3_server.put(f"states/{application}/readme.txt", b"garbage")
    assert store.increments(CHECK) == []
    assert store.increments(PartitionId("check", 1)) == []
    store.save(CHECK, whole(5), b"state")
    assert store.increments(CHECK) == [whole(5)]
    store.clear()
    assert store.increments(CHECK) == []
    left = boto3.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=f"{folder}/")["Contents"]
    assert {each["Key"] for each in left} == {f"{folder}/{name}" for name in garbage}


def test_an_object_beyond_one_request_is_whole(s3_server: S3Server, application: str) -> None:
    """Above 100 MiB the client sends parts; the object is there when the last one is."""
    data = os.urandom(1024 * 1024) * 101
    store = ObjectSnapshots(URL, application)
    store.save(CHECK, whole(1), data)
    assert store.load(CHECK, whole(1)) == data


def test_a_forked_process_goes_on_with_connections_of_its_own(s3_server: S3Server, application: str) -> None:
    """As Spark's workers are forked, from a process whose store has been used already."""
    store = ObjectSnapshots(URL, application)
    store.save(CHECK, whole(1), b"one")
    child = multiprocessing.get_context("fork").Process(target=store.save, args=(CHECK, whole(2), b"two"))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert store.load(CHECK, whole(2)) == b"two"


@pytest.mark.parametrize(
    (("url", "said")),
    [
        ("nonsense://bucket", "no file system of fsspec is called nonsense; expected redis"),
        ("gs://bucket", r"the package for gs:// is not installed here: .*gcsfs"),
        ("memory://bucket", "cannot keep snapshots: what it keeps ends with its process"),
        ("local://bucket", "give a folder as file:///folder"),
        ("file:///proc/nowhere", "cannot be created: .*name a writable folder"),
    ],
)
def test_urls_that_cannot_be_are_refused_at_start(url: str, said: str) -> None:
    with pytest.raises(SettingsError, match=f"BETTONG_SNAPSHOTS: .*{said}"):
        prepare(url)


def test_a_package_that_is_missing_is_named_with_the_remedy() -> None:
    program = (
        "import sys; sys.modules['s3fs'] = None\n"
        "from bettong.edges.snapshot_stores import prepare\n"
        "from bettong.errors import SettingsError\n"
        "try: prepare('s3://bucket/folder')\n"
        "except SettingsError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == (
        "BETTONG_SNAPSHOTS: the package for s3:// is not installed here: run `pip install s3fs`\n"
    )


def test_places_that_can_be_are_prepared(tmp_path: Path) -> None:
    prepare("redis")
    prepare("s3://bucket")
    prepare(f"file://{tmp_path}/a%20folder")
    assert (tmp_path / "a folder").is_dir()
    store = snapshot_store(
        f"file://{tmp_path}/a%20folder", "words", RedisStore("redis://127.0.0.1:1", "words")
    )
    store.save(CHECK, whole(1), b"state")
    assert (tmp_path / "a folder" / "words" / "check-0" / "1-0-1").read_bytes() == b"state"


def user_of(server: S3Server) -> tuple[str, str]:
    """Makes the bucket and a user that may do everything: four calls. Key id and secret."""
    server.make_bucket()
    iam = boto3.client("iam", config=Config(retries={"total_max_attempts": 1}))
    iam.create_user(UserName="bettong")
    policy = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}'
    iam.put_user_policy(UserName="bettong", PolicyName="all", PolicyDocument=policy)
    key = iam.create_access_key(UserName="bettong")["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]
