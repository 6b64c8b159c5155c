"""Results in folders named after fields: after any crashes the files of a run without one."""

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow.dataset as arrow_dataset
import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong.application.plan import plan
from bettong.config.reading import read
from bettong.config.receiver import ReceiverSettings
from bettong.edges.kafka_log import Record
from bettong.errors import FrameError, SettingsError
from bettong.frames.frame import decode
from bettong.held_time import HeldTime
from bettong.schema.schema import schema_of
from bettong.topics import sink_topic
from bettong_receiver.connectors.partitioned_files import (
    COMMIT_INTERVAL_S,
    PartitionedFilesConnector,
    folder_of,
    read_folder_lines,
    route,
)
from bettong_receiver.delivery.delivery import Delivery
from bettong_receiver.delivery.observations import DeliveryLog
from bettong_receiver.errors import PositionError, SinkError
from bettong_receiver.progress import SinkPartition
from bettong_receiver.sink_context import SinkContext
from tests.samples.kill_images import kill_images
from tests.samples.result_frames import Note, application, columns, rows

PARTITIONS = 2
BEGINNINGS = {SinkPartition("notes", partition): 0 for partition in range(PARTITIONS)}
TOPIC = sink_topic("app", "notes")
# For each partition the keys of the notes in its frames, which name the folders.
LOG: dict[int, list[list[str]]] = {
    0: [["a", "b", "a"], ["a"], ["c"], ["b", "b"], ["a", "d"], ["a"]],
    1: [["b"], ["a", "b"], ["e", "b"], ["b"], ["e"], ["a"]],
}


class Opened:
    """The sink `notes` laid out by `key`, opened as a receiver opens it, and its clock."""

    def __init__(self, folder: Path, by: str | tuple[str, ...] = "key") -> None:
        self.now_s = 0.0
        self.dead_letters: list[str] = []
        to = bettong.PartitionedFiles(by=by)
        found = plan(application("app", notes_to=to))
        [sink] = [each for each in found.sinks if each.to is to]
        connections = {"notes": {"folder": str(folder)}}
        nothing: Any = None
        context = SinkContext(
            found, read(ReceiverSettings, {"application": "x.py"}), nothing, connections, sink
        )
        way = route(context, to)
        self.delivery = Delivery(
            way,
            "app",
            BEGINNINGS,
            append=self._append,
            held=HeldTime(),
            on_delivered=lambda _batches, _read_before_s: None,
            monotonic_s=lambda: self.now_s,
            log=DeliveryLog(structlog.get_logger(), way.inputs),
        )
        ((self.connector, _),) = self.delivery._feeds
        assert isinstance(self.connector, PartitionedFilesConnector)
        self.connector._monotonic_s = lambda: self.now_s
        self.connector._next_commit_s = COMMIT_INTERVAL_S

    def _append(self, dead_letters: Sequence[Any]) -> None:
        self.dead_letters += [str(decode(each.value).rows) for each in dead_letters]

    def offset(self, partition: int) -> int:
        """The next record of a partition."""
        return self.delivery.progress("notes")[partition].offset

    def deliver(self, partition: int, offset: int, keys: Sequence[str]) -> None:
        """The record at an offset, with a note for each key."""
        self.delivery.deliver([record(partition, offset, keys)])

    def commit(self) -> None:
        """The round after the interval."""
        self.now_s += COMMIT_INTERVAL_S
        self.delivery.deliver([])


@contextmanager
def opened(folder: Path, by: str | tuple[str, ...] = "key") -> Iterator[Opened]:
    """Closes it at the end without a commit, as a kill would, except that it releases the lock."""
    one = Opened(folder, by)
    with closing(one.delivery):
        yield one


def record(partition: int, offset: int, keys: Sequence[str]) -> Record:
    notes = [Note(key, 100 * offset + index, 0.5) for index, key in enumerate(keys)]
    origin = f"notes/notes-in/{partition}"
    return Record(
        TOPIC, partition, offset, columns(notes, origin=origin, sequence=offset + 1, previous=offset)
    )


def files_of(folder: Path) -> dict[str, str]:
    """The content of each result file, by path."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*.jsonl")}


def expected(log: dict[int, list[list[str]]]) -> dict[str, str]:
    """The files when the whole log was delivered."""
    found: dict[str, str] = defaultdict(str)
    for partition, frames in log.items():
        for offset, keys in enumerate(frames):
            for index, key in enumerate(keys):
                line = f'{{"key":{json.dumps(key)},"number":{100 * offset + index},"price":0.5}}\n'
                found[f"key={key}/{partition:05}.jsonl"] += line
    return dict(found)


def test_messages_are_in_folders_by_their_fields_with_one_file_per_partition(tmp_path: Path) -> None:
    with opened(tmp_path, by=("key", "number")) as one:
        one.delivery.deliver([record(0, 0, ["a", "b"]), record(1, 0, ["a"])])
        one.commit()
    assert files_of(tmp_path) == {
        "key=a/number=0/00000.jsonl": '{"key":"a","number":0,"price":0.5}\n',
        "key=a/number=0/00001.jsonl": '{"key":"a","number":0,"price":0.5}\n',
        "key=b/number=1/00000.jsonl": '{"key":"b","number":1,"price":0.5}\n',
    }


def test_messages_become_visible_with_their_commit(tmp_path: Path) -> None:
    with opened(tmp_path) as one:
        one.deliver(0, 0, ["a"])
        one.now_s = COMMIT_INTERVAL_S / 2
        one.delivery.deliver([])
        assert files_of(tmp_path) == {}
        one.commit()
        assert files_of(tmp_path) == expected({0: [["a"]]})
        one.deliver(0, 1, ["a", "b"])
        one.delivery.finish()
        assert files_of(tmp_path) == expected({0: [["a"], ["a", "b"]]})


def test_a_full_buffer_is_committed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bettong_receiver.connectors.partitioned_files._BUFFERED_BYTES_MAX", 100)
    with opened(tmp_path) as one:
        one.deliver(0, 0, ["a", "a"])
        assert files_of(tmp_path) == {}
        one.deliver(0, 1, ["a"])
        assert files_of(tmp_path) == expected({0: [["a", "a"], ["a"]]})


def go_on(folder: Path, log: dict[int, list[list[str]]], *, commits: bool) -> None:
    """Delivers from the stored positions, with a commit after every second frame, and stops cleanly."""
    with opened(folder) as one:
        for offset in range(max(map(len, log.values()))):
            for partition, frames in log.items():
                if one.offset(partition) <= offset < len(frames):
                    one.deliver(partition, offset, frames[offset])
            if commits and offset % 2:
                one.commit()
        one.delivery.finish()


def test_a_kill_before_or_after_every_change_of_a_file_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = tmp_path / "undisturbed"
    with kill_images(undisturbed, tmp_path / "kills", monkeypatch) as killed:
        go_on(undisturbed, LOG, commits=True)
    assert len(killed) > 100, "each file, each journal, each folder"
    assert files_of(undisturbed) == expected(LOG)
    torn = [folder for folder in killed if any(lengths_of(folder))]
    assert len(torn) > 50, "in the middle of a commit"
    for folder in killed:
        go_on(folder, LOG, commits=False)
        assert files_of(folder) == expected(LOG), folder.name
        assert (folder / ".positions").read_bytes() == (undisturbed / ".positions").read_bytes()


def test_a_kill_while_a_commit_is_undone_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tmp_path / "first"
    with kill_images(first, tmp_path / "kills", monkeypatch) as killed:
        go_on(first, LOG, commits=True)
    torn = [folder for folder in killed if len(lengths_of(folder)) > 2][-1]
    with kill_images(torn, tmp_path / "again", monkeypatch) as killed_again, opened(torn):
        pass
    assert len(killed_again) > 10
    for folder in killed_again:
        go_on(folder, LOG, commits=True)
        assert files_of(folder) == expected(LOG), folder.name


def lengths_of(folder: Path) -> dict[str, int]:
    """The files that an interrupted commit was writing to."""
    path = folder / ".positions"
    found: dict[str, int] = json.loads(path.read_bytes().splitlines()[1])["lengths"] if path.exists() else {}
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.integers(0, PARTITIONS - 1), st.lists(st.sampled_from("abc"), max_size=4)),
            st.tuples(st.sampled_from(["commit", "crash", "stop", "torn"]), st.just([])),
        ),
        max_size=40,
    )
)
def test_the_files_after_crashes_are_those_of_an_undisturbed_run(
    steps: list[tuple[int | str, list[str]]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log: dict[int, list[list[str]]] = {partition: [] for partition in range(PARTITIONS)}
        one = Opened(folder)

        def catch_up() -> None:
            for partition, frames in log.items():
                for offset in range(one.offset(partition), len(frames)):
                    one.deliver(partition, offset, frames[offset])

        for kind, keys in steps:
            if isinstance(kind, int):
                log[kind].append(keys)
            catch_up()
            if kind == "commit":
                one.commit()
            elif kind == "torn":
                write_buffer = one.connector._write_buffer  # type: ignore[attr-defined]
                if one.connector._buffer:  # type: ignore[attr-defined]
                    write_buffer()
            if kind == "stop":
                one.delivery.finish()
            if kind in ("crash", "stop", "torn"):
                one.delivery.close()
                one = Opened(folder)
        catch_up()
        one.delivery.finish()
        one.delivery.close()
        assert {path: text for path, text in files_of(folder).items() if text} == expected(log)


def test_a_finished_folder_may_be_deleted(tmp_path: Path) -> None:
    go_on(tmp_path, {0: [["a"], ["b"]]}, commits=True)
    for path in (tmp_path / "key=a").iterdir():
        path.unlink()
    (tmp_path / "key=a").rmdir()
    go_on(tmp_path, {0: [["a"], ["b"], ["b", "a"]]}, commits=True)
    assert files_of(tmp_path) == expected({0: [[], ["b"], ["b", "a"]]})


def test_a_file_that_was_deleted_in_the_middle_of_a_commit_is_not_missed(tmp_path: Path) -> None:
    with opened(tmp_path) as one:
        one.deliver(0, 0, ["a", "b"])
        one.commit()
        one.deliver(0, 1, ["a", "b"])
        one.connector._write_buffer()  # type: ignore[attr-defined]
    (tmp_path / "key=a" / "00000.jsonl").unlink()
    go_on(tmp_path, {0: [["a", "b"], ["a", "b"]]}, commits=True)
    both = expected({0: [["a", "b"], ["a", "b"]]})
    lines = both["key=a/00000.jsonl"].splitlines(keepends=True)
    assert files_of(tmp_path) == {**both, "key=a/00000.jsonl": lines[1]}


def test_a_file_shorter_than_the_journal_says_is_refused_with_its_name_and_a_remedy(tmp_path: Path) -> None:
    with opened(tmp_path) as one:
        one.deliver(0, 0, ["a"])
        one.commit()
        one.deliver(0, 1, ["a"])
        one.connector._write_buffer()  # type: ignore[attr-defined]
    (tmp_path / "key=a" / "00000.jsonl").write_bytes(b"x")
    with pytest.raises(
        PositionError, match=r"00000.jsonl has 1 bytes, but 35 by .positions; restore .* empty it"
    ):
        Opened(tmp_path)


def test_a_damaged_journal_is_refused_with_its_name_and_a_remedy(tmp_path: Path) -> None:
    go_on(tmp_path, LOG, commits=True)
    journal = tmp_path / ".positions"
    journal.write_bytes(journal.read_bytes().replace(b'"offset', b'"Offset'))
    with pytest.raises(PositionError, match=r"/.positions: its checksum does not fit its content; restore"):
        Opened(tmp_path)


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    stranger = tmp_path / "key=a" / "00000.jsonl"
    stranger.parent.mkdir()
    stranger.write_bytes(b"mine")
    with pytest.raises(PositionError, match=r"has no .positions, but holds key=a; name an empty folder"):
        Opened(tmp_path)
    assert stranger.read_bytes() == b"mine"


def test_the_folder_of_another_sink_is_refused(tmp_path: Path) -> None:
    go_on(tmp_path, LOG, commits=True)
    other = PartitionedFilesConnector(tmp_path, application="app", sink="raw", monotonic_s=lambda: 0.0)
    with (
        closing(other),
        pytest.raises(PositionError, match="it belongs to app/notes; give each sink a folder"),
    ):
        other.open(BEGINNINGS)


def test_a_message_whose_folder_has_too_long_a_name_is_a_dead_letter_and_the_rest_goes_on(
    tmp_path: Path,
) -> None:
    long = "é" * 130
    with opened(tmp_path) as one:
        one.deliver(0, 0, ["a", long, "a"])
        one.commit()
        assert len(one.dead_letters) == 1
        assert "would have a name of 264 bytes, at most 255" in one.dead_letters[0]
        one.deliver(0, 1, ["b"])
        one.delivery.finish()
    assert files_of(tmp_path) == {
        "key=a/00000.jsonl": '{"key":"a","number":0,"price":0.5}\n{"key":"a","number":2,"price":0.5}\n',
        "key=b/00000.jsonl": '{"key":"b","number":100,"price":0.5}\n',
    }


def test_a_disk_error_is_reported_with_the_file(tmp_path: Path) -> None:
    with opened(tmp_path) as one:
        (tmp_path / "key=a").write_bytes(b"a file where the folder goes")
        one.deliver(0, 0, ["a"])
        with pytest.raises(SinkError, match=r"sink notes, folder .*: cannot write .*key=a.*: "):
            one.commit()


def test_arrow_reads_the_folders_back(tmp_path: Path) -> None:
    keys = ["a b", "03:05", "100 %", "x/y", "ä=ö", "[1]"]
    go_on(tmp_path, {0: [keys]}, commits=True)
    found = arrow_dataset.dataset(tmp_path, format="json", partitioning="hive", exclude_invalid_files=False)
    fragments = [
        arrow_dataset.get_partition_keys(each.partition_expression) for each in found.get_fragments()
    ]
    assert sorted(each["key"] for each in fragments) == sorted(keys)


def test_a_frame_of_another_schema_is_refused() -> None:
    other = decode(rows([b"x"], origin="notes/notes-in/0", sequence=1, previous=0))
    with pytest.raises(FrameError, match="it does not follow Note"):
        read_folder_lines(schema_of(Note), ["key"])(other)


def test_a_relative_folder_is_refused() -> None:
    assert folder_of("/data/bids", sink="s") == Path("/data/bids")
    with pytest.raises(
        SettingsError, match="sink 's': 'folder' of its connection is 'bids', expected an absolute"
    ):
        folder_of("bids", sink="s")
