"""Results in files have the bytes of a run without crashes, or the error says why that is impossible."""

import json
import os
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.edges.kafka_log import Record
from bettong_receiver.background import Background
from bettong_receiver.connectors import files
from bettong_receiver.connectors.files import SYNC_INTERVAL_S, FileConnector
from bettong_receiver.delivery.batcher import SinkBatcher
from bettong_receiver.delivery.connector import ConnectorUnavailableError
from bettong_receiver.delivery.route import SinkInput, SinkRecord
from bettong_receiver.errors import PositionError, SinkError
from bettong_receiver.formats import formats
from bettong_receiver.progress import SinkPartition
from tests.samples.kill_images import kill_images
from tests.samples.result_frames import dead_letter, planned, rows

FORMATS = formats(planned())
KEYS: list[SinkPartition] = [
    SinkPartition("raw", 0),
    SinkPartition("raw", 1),
    SinkPartition("dead-letters", 0),
]
INPUTS = {each.sink: SinkInput(each.sink, each.topic, each.messages) for each in FORMATS.values()}


class OpenedFiles:
    """An open connector, and its progress."""

    def __init__(
        self,
        folder: Path,
        *,
        application: str = "app",
        beginning: int = 0,
        background: Background | None = None,
    ) -> None:
        self.now_s = 0.0
        self.background = background or Background("file-sync")
        self.connector = FileConnector(
            folder, application, FORMATS, background=self.background, monotonic_s=lambda: self.now_s
        )
        beginnings = dict.fromkeys(KEYS, beginning)
        try:
            stored = self.connector.open(beginnings)
            self.batcher = SinkBatcher(application, INPUTS.values(), beginnings=beginnings, stored=stored)
        except BaseException:
            self.connector.close()
            raise

    def deliver(self, key: SinkPartition, offset: int, message: bytes) -> None:
        """The record at an offset, which holds one message."""
        found = self.batcher.fold([record(key, offset, message)])
        self.connector.deliver(found)
        self.batcher.delivered(found, {})

    def offset(self, key: SinkPartition) -> int:
        """The next record of a partition."""
        return self.batcher.progress[key].offset

    def close(self, *, saving: bool) -> None:
        """`saving`: a clean stop."""
        if saving:
            self.connector.finish()
        self.connector.close()


def record(key: SinkPartition, offset: int, message: bytes) -> SinkRecord[bytes]:
    if key[0] == "dead-letters":
        message = dead_letter(message, sequence=offset + 1, index=0)
    value = rows([message], origin=f"{key[0]}/notes-in/{key[1]}", sequence=offset + 1, previous=offset)
    return SinkRecord(INPUTS[key[0]], Record(INPUTS[key[0]].topic, key[1], offset, value))


def content(log: dict[SinkPartition, list[bytes]], key: SinkPartition) -> bytes:
    """The content of a partition's file when its whole log was delivered."""
    found = [record(key, offset, message).content() for offset, message in enumerate(log[key])]
    return FORMATS[key[0]].content([message for each in found if each for message in each.messages])


def file_of(folder: Path, key: SinkPartition) -> Path:
    return folder / key[0] / f"{key[1]:05}.{FORMATS[key[0]].extension}"


def opened(folder: Path, beginning: int = 0) -> OpenedFiles:
    return OpenedFiles(folder, beginning=beginning)


def filled(folder: Path, messages: int = 3) -> Path:
    """Delivers this many messages to partition 0 of `raw`; returns the file."""
    one = opened(folder)
    for offset in range(messages):
        one.deliver(SinkPartition("raw", 0), offset, b"<%d>" % offset)
    one.close(saving=True)
    return folder / "raw" / "00000.bin"


def test_each_partition_has_a_file_of_its_own(tmp_path: Path) -> None:
    one = opened(tmp_path)
    one.deliver(SinkPartition("raw", 0), 0, b"a")
    one.deliver(SinkPartition("raw", 1), 0, b"b")
    one.deliver(SinkPartition("dead-letters", 0), 0, b"c")
    one.close(saving=True)
    assert (tmp_path / "raw" / "00000.bin").read_bytes() == b"a"
    assert (tmp_path / "raw" / "00001.bin").read_bytes() == b"b"
    assert json.loads((tmp_path / "dead-letters" / "00000.jsonl").read_bytes())["message"] == "c"


def test_what_is_delivered_can_be_read_at_once(tmp_path: Path) -> None:
    one = opened(tmp_path)
    one.deliver(SinkPartition("raw", 0), 0, b"a")
    assert (tmp_path / "raw" / "00000.bin").read_bytes() == b"a"
    one.close(saving=False)


def test_positions_are_synced_once_an_interval(tmp_path: Path) -> None:
    one = opened(tmp_path)
    position = tmp_path / "raw" / "00000.position"

    def offset() -> int:
        saved: int = json.loads(position.read_bytes().splitlines()[1])["offset"]
        return saved

    def flush(now_s: float) -> None:
        one.now_s = now_s
        one.connector.flush()
        one.background.finish(10.0)

    one.deliver(SinkPartition("raw", 0), 0, b"a")
    flush(0.0)
    one.deliver(SinkPartition("raw", 0), 1, b"b")
    flush(SYNC_INTERVAL_S / 2)
    assert offset() == 1
    flush(SYNC_INTERVAL_S)
    assert offset() == 2
    one.close(saving=False)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("deliver"), st.sampled_from(KEYS), st.binary(max_size=20)),
            st.tuples(st.sampled_from(["flush", "sync", "crash", "stop"]), st.none(), st.binary(max_size=9)),
        ),
        max_size=50,
    )
)
def test_the_files_after_crashes_are_those_of_an_undisturbed_run(
    steps: list[tuple[str, SinkPartition | None, bytes]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log: dict[SinkPartition, list[bytes]] = {key: [] for key in KEYS}
        one = opened(folder)
        now_s = 0.0

        def catch_up() -> None:
            for key, messages in log.items():
                for offset in range(one.offset(key), len(messages)):
                    one.deliver(key, offset, messages[offset])

        for kind, key, added in steps:
            if key is not None:
                log[key].append(added)
            catch_up()
            if kind != "deliver":
                now_s += SYNC_INTERVAL_S if kind == "sync" else 0.0
                one.now_s = now_s
                one.connector.flush()
            if kind == "crash":
                one.close(saving=False)
                for path in folder.glob("*/*.bin"):
                    path.write_bytes(path.read_bytes() + added)
                one = opened(folder)
            if kind == "stop":
                one.close(saving=True)
                one = opened(folder)
        catch_up()
        one.close(saving=True)
        for key in log:
            assert file_of(folder, key).read_bytes() == content(log, key)


def test_a_kill_before_or_after_every_change_of_a_file_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: dict[SinkPartition, list[bytes]] = {key: [b"<%d>" % each for each in range(4)] for key in KEYS}

    def run(folder: Path, *, last: bool) -> None:
        """Goes on where the positions say, with a sync behind every second message, and a clean stop."""
        one = opened(folder)
        with closing(one.connector):
            for each in range(4):
                for key in KEYS:
                    if one.offset(key) <= each:
                        one.deliver(key, each, log[key][each])
                if each % 2 and not last:
                    one.now_s += SYNC_INTERVAL_S
                    one.connector.flush()
                    one.background.finish(10.0)
            one.connector.finish()

    undisturbed = tmp_path / "undisturbed"
    with kill_images(undisturbed, tmp_path / "kills", monkeypatch) as killed:
        run(undisturbed, last=False)
    assert len(killed) > 60, "each message, each sync, each file that is opened"
    assert {file_of(undisturbed, key).read_bytes() for key in KEYS} == {content(log, key) for key in KEYS}
    for folder in killed:
        run(folder, last=True)
        for key in KEYS:
            assert file_of(folder, key).read_bytes() == content(log, key), folder.name
            position, truth = (file_of(each, key).with_suffix(".position") for each in (folder, undisturbed))
            assert position.read_bytes() == truth.read_bytes(), "counts included"


def test_a_clean_stop_saves_everything(tmp_path: Path) -> None:
    path = filled(tmp_path)
    one = opened(tmp_path)
    assert one.offset(SinkPartition("raw", 0)) == 3
    assert one.batcher.progress[SinkPartition("raw", 0)].counts.messages == 3
    one.close(saving=True)
    assert path.read_bytes() == b"<0><1><2>"


def test_a_partition_without_a_position_starts_where_its_log_begins(tmp_path: Path) -> None:
    one = opened(tmp_path, beginning=40)
    assert one.offset(SinkPartition("raw", 0)) == 40
    one.close(saving=False)
    again = opened(tmp_path, beginning=60)
    assert again.offset(SinkPartition("raw", 0)) == 40
    again.close(saving=False)


def test_a_damaged_position_is_refused_with_its_name_and_a_remedy(tmp_path: Path) -> None:
    path = filled(tmp_path)
    position = path.with_suffix(".position")
    position.write_bytes(position.read_bytes().replace(b'"offset":3', b'"offset":4'))
    with pytest.raises(PositionError, match=r"raw/00000.position: its checksum .* delete 00000.position and"):
        opened(tmp_path)
    position.unlink()
    path.unlink()
    opened(tmp_path).close(saving=False)


def test_a_file_shorter_than_its_position_is_refused_with_its_name_and_a_remedy(tmp_path: Path) -> None:
    path = filled(tmp_path)
    os.truncate(path, 5)
    with pytest.raises(PositionError, match=r"raw/00000.bin has 5 bytes, but 9 were delivered .* delete"):
        opened(tmp_path)


def test_a_missing_result_file_is_refused_as_a_short_one(tmp_path: Path) -> None:
    filled(tmp_path).unlink()
    with pytest.raises(PositionError, match="has 0 bytes, but 9 were delivered"):
        opened(tmp_path)


def test_results_without_a_position_are_refused_and_not_truncated(tmp_path: Path) -> None:
    path = filled(tmp_path)
    path.with_suffix(".position").unlink()
    with pytest.raises(PositionError, match=r"00000.bin has no 00000.position beside it"):
        opened(tmp_path)
    assert path.read_bytes() == b"<0><1><2>"


def test_positions_of_another_application_are_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    with pytest.raises(PositionError, match="belongs to partition 0 of app/raw"):
        OpenedFiles(tmp_path, application="other")


def test_a_folder_has_one_receiver_at_a_time(tmp_path: Path) -> None:
    one = opened(tmp_path)
    with pytest.raises(SinkError, match="another receiver writes here"):
        opened(tmp_path)
    one.close(saving=False)
    opened(tmp_path).close(saving=False)


class StandingDisk:
    """A disk on which no sync ends before `go_on` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.syncing = threading.Event()
        self.go_on = threading.Event()
        self._sync = os.fdatasync
        monkeypatch.setattr(os, "fdatasync", self._wait)
        for name in ("_CLOSE_WAIT_S", "_OPEN_WAIT_S"):
            monkeypatch.setattr(files, name, 0.05)

    def _wait(self, descriptor: int) -> None:
        self.syncing.set()
        assert self.go_on.wait(60)
        self._sync(descriptor)


def test_a_sync_that_outlives_its_connector_ends_before_the_next_one_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = StandingDisk(monkeypatch)
    one = opened(tmp_path)
    for key in KEYS:
        one.deliver(key, 0, b"<0>")
    one.connector.flush()
    assert disk.syncing.wait(60)
    one.close(saving=False)
    for _ in range(2):
        with pytest.raises(ConnectorUnavailableError, match="has not ended; is the disk slow"):
            OpenedFiles(tmp_path, background=one.background)
    with pytest.raises(SinkError, match="another receiver writes here"):
        opened(tmp_path)
    disk.go_on.set()
    monkeypatch.setattr(files, "_OPEN_WAIT_S", 60.0)
    again = OpenedFiles(tmp_path, background=one.background)
    found = {key: (again.offset(key), file_of(tmp_path, key).stat().st_size) for key in KEYS}
    assert found == dict.fromkeys(KEYS, (0, 0)), "an abandoned sync writes no position"
    again.deliver(KEYS[0], 0, b"<0>")
    again.close(saving=True)
    last = opened(tmp_path)
    assert [last.offset(key) for key in KEYS] == [1, 0, 0]
    last.close(saving=False)


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SinkError, match="file sink: cannot open"):
        opened(tmp_path / "file")


def test_a_full_disk_is_reported_and_saved_results_stay_intact(tmp_path: Path) -> None:
    path = filled(tmp_path)
    one = opened(tmp_path)
    file = one.connector._files[SinkPartition("raw", 0)]
    file.descriptor = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(SinkError, match=r"cannot write .*00000.bin: No space left on device"):
        one.deliver(SinkPartition("raw", 0), 3, b"<3>")
    os.close(file.descriptor)
    one.close(saving=False)
    again = opened(tmp_path)
    assert again.offset(SinkPartition("raw", 0)) == 3
    again.close(saving=False)
    assert path.read_bytes() == b"<0><1><2>"
