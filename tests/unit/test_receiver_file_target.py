"""Results in files: the bytes of a run without crashes, whatever happened; and clear words when that cannot be."""

import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong.frames.frame import decode
from bettong_receiver.errors import PositionError, SinkError
from bettong_receiver.file_target import SYNC_INTERVAL_S, FileTarget
from bettong_receiver.formats import formats
from bettong_receiver.progress import SinkPartition
from tests.result_frames import planned, rows

FORMATS = formats(planned())
KEYS: list[SinkPartition] = [("raw", 0), ("raw", 1), ("dead-letters", 0)]


def opened(folder: Path, beginning: int = 0) -> FileTarget:
    return FileTarget(folder, "app", FORMATS, dict.fromkeys(KEYS, beginning))


def deliver(target: FileTarget, key: SinkPartition, offset: int, message: bytes) -> None:
    frame = decode(rows([message], origin=f"{key[0]}/again/0", sequence=offset + 1, previous=offset))
    if target.progress[key].takes(offset, frame):
        target.progress[key].delivered(1)
        target.take(key, [message])


def filled(folder: Path, messages: int = 3) -> Path:
    """A folder with so many messages in partition 0 of `raw`; returns the file."""
    target = opened(folder)
    for offset in range(messages):
        deliver(target, ("raw", 0), offset, b"<%d>" % offset)
    target.flush(0.0)
    target.close(saving=True)
    return folder / "raw" / "00000.bin"


def test_each_partition_has_a_file_of_its_own(tmp_path: Path) -> None:
    target = opened(tmp_path)
    deliver(target, ("raw", 0), 0, b"a")
    deliver(target, ("raw", 1), 0, b"b")
    deliver(target, ("dead-letters", 0), 0, b"{}")
    target.flush(0.0)
    target.close(saving=True)
    assert (tmp_path / "raw" / "00000.bin").read_bytes() == b"a"
    assert (tmp_path / "raw" / "00001.bin").read_bytes() == b"b"
    assert (tmp_path / "dead-letters" / "00000.jsonl").read_bytes() == b"{}\n"


def test_what_is_flushed_can_be_read_at_once(tmp_path: Path) -> None:
    target = opened(tmp_path)
    deliver(target, ("raw", 0), 0, b"a")
    assert (tmp_path / "raw" / "00000.bin").read_bytes() == b""
    target.flush(0.0)
    assert (tmp_path / "raw" / "00000.bin").read_bytes() == b"a"
    target.close(saving=False)


def test_positions_are_synced_once_an_interval(tmp_path: Path) -> None:
    target = opened(tmp_path)
    position = tmp_path / "raw" / "00000.position"

    def offset() -> int:
        saved: int = json.loads(position.read_bytes().splitlines()[1])["offset"]
        return saved

    deliver(target, ("raw", 0), 0, b"a")
    target.flush(0.0)
    deliver(target, ("raw", 0), 1, b"b")
    target.flush(SYNC_INTERVAL_S / 2)
    target._background.finish(10.0)
    assert offset() == 1
    target.flush(SYNC_INTERVAL_S)
    target._background.finish(10.0)
    assert offset() == 2
    target.close(saving=False)


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
        target = opened(folder)
        now_s = 0.0

        def catch_up() -> None:
            for key, messages in log.items():
                for offset in range(target.progress[key].offset, len(messages)):
                    deliver(target, key, offset, messages[offset])

        for kind, key, content in steps:
            if key is not None:
                log[key].append(content)
            catch_up()
            if kind != "deliver":
                now_s += SYNC_INTERVAL_S if kind == "sync" else 0.0
                target.flush(now_s)
            if kind == "crash":
                target.close(saving=False)
                for path in folder.glob("*/*.bin"):
                    path.write_bytes(path.read_bytes() + content)
                target = opened(folder)
            if kind == "stop":
                target.close(saving=True)
                target = opened(folder)
        catch_up()
        target.flush(now_s)
        target.close(saving=True)
        for (sink, partition), messages in log.items():
            path = folder / sink / f"{partition:05}.{FORMATS[sink].extension}"
            assert path.read_bytes() == FORMATS[sink].content(messages)


def test_a_clean_stop_saves_everything(tmp_path: Path) -> None:
    path = filled(tmp_path)
    target = opened(tmp_path)
    assert target.progress["raw", 0].offset == 3
    assert target.progress["raw", 0].counts.messages == 3
    target.close(saving=True)
    assert path.read_bytes() == b"<0><1><2>"


def test_a_partition_without_a_position_starts_where_its_log_begins(tmp_path: Path) -> None:
    target = opened(tmp_path, beginning=40)
    assert target.progress["raw", 0].offset == 40
    target.close(saving=False)
    again = opened(tmp_path, beginning=60)
    assert again.progress["raw", 0].offset == 40
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


def test_a_file_that_is_gone_is_refused_like_a_short_one(tmp_path: Path) -> None:
    filled(tmp_path).unlink()
    with pytest.raises(PositionError, match="has 0 bytes, but 9 were delivered"):
        opened(tmp_path)


def test_results_without_a_position_are_refused_rather_than_cut(tmp_path: Path) -> None:
    path = filled(tmp_path)
    path.with_suffix(".position").unlink()
    with pytest.raises(PositionError, match=r"00000.bin has no 00000.position beside it"):
        opened(tmp_path)
    assert path.read_bytes() == b"<0><1><2>"


def test_positions_of_another_application_are_refused(tmp_path: Path) -> None:
    filled(tmp_path)
    with pytest.raises(PositionError, match="belongs to partition 0 of app/raw"):
        FileTarget(tmp_path, "other", FORMATS, dict.fromkeys(KEYS, 0))


def test_a_folder_has_one_receiver_at_a_time(tmp_path: Path) -> None:
    target = opened(tmp_path)
    with pytest.raises(SinkError, match="another receiver writes here"):
        opened(tmp_path)
    target.close(saving=False)
    opened(tmp_path).close(saving=False)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SinkError, match="file sink: cannot open"):
        opened(tmp_path / "file")


def test_a_full_disk_is_told_and_what_was_saved_before_stays_right(tmp_path: Path) -> None:
    path = filled(tmp_path)
    target = opened(tmp_path)
    deliver(target, ("raw", 0), 3, b"<3>")
    file = target._files["raw", 0]
    file.descriptor = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(SinkError, match=r"cannot write .*00000.bin: No space left on device"):
        target.flush(1000.0)
    os.close(file.descriptor)
    target.close(saving=False)
    again = opened(tmp_path)
    assert again.progress["raw", 0].offset == 3
    again.close(saving=False)
    assert path.read_bytes() == b"<0><1><2>"
