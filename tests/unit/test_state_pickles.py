"""States as pickles, where an application asks for them: nothing is unpickled that was not signed for its scope."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import bettong
from bettong import Application, ApplicationError
from bettong.application.plan import plan
from bettong.edges.state_key import is_closed, state_key
from bettong.errors import SettingsError, SnapshotError, StateChangedError
from bettong.identifiers import PartitionId
from bettong.snapshots import snapshot as codec
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import StageProgram, program
from bettong.worker.state.pickles import MARK
from tests.samples.worker import data, fold, results

KEY, OTHER = b"k" * 32, b"o" * 32


@dataclass
class Item:
    key: str
    value: int


@dataclass
class Sum:
    key: str
    total: int


class Kept:
    """No dataclass."""

    def __init__(self) -> None:
        self.total = 0


def add(item: Item, kept: Any) -> Sum:
    kept.total += item.value
    return Sum(item.key, kept.total)


def made(key: bytes | None = KEY, **more: Any) -> StageProgram:
    app = Application("meters")
    options = {"state": Kept, "state_codec": bettong.Pickle, **more}
    app.source("in", schema=Item, key="key").stateful(add, name="fold", **options).sink("out")
    (stage,) = plan(app).stages
    return program(stage, compiled=False, state_key=key)


def worker(ready: StageProgram, partition: int = 0) -> PartitionWorker:
    return PartitionWorker(ready, Assignment("meters", partition, 2, 2**20))


def saved(key: bytes = KEY, partition: int = 0) -> bytes:
    one = worker(made(key), partition)
    fold(one, [data("in/a", 1, [Item("k", 5)])])
    return one.increment()[1]


def changed(snapshot: bytes, **more: Any) -> bytes:
    """A snapshot with other fields, and a right checksum."""
    stored = codec.decode(snapshot, application="meters", partition=PartitionId("in", 0))
    for name, value in more.items():
        if name == "states":
            stored.states["fold"] = value(stored.states["fold"])
        else:
            setattr(stored, name, value)
    return codec.encode(stored)


class Evil:
    """What an attacker would write."""

    def __reduce__(self) -> Any:
        return os._exit, (42,)


def test_states_of_any_class_go_on() -> None:
    one = worker(made())
    one.restore(saved())
    assert [
        each.total for each in results(fold(one, [data("in/a", 2, [Item("k", 2)])]), "meters.sink.out", Sum)
    ] == [7]


@pytest.mark.parametrize(
    "more",
    [
        {"states": lambda each: each[:-1] + bytes([each[-1] ^ 1])},
        {"states": lambda each: each[: len(MARK)] + bytes(32) + each[len(MARK) + 32 :]},
        {"states": lambda _: MARK + bytes(32) + pickle.dumps(Evil())},
        {"states": lambda _: pickle.dumps(Evil())},
        {"states": lambda _: b""},
        {"offset": 2},
    ],
)
def test_what_is_not_signed_for_its_place_is_never_unpickled(more: dict[str, Any]) -> None:
    with pytest.raises(
        SnapshotError, match=r"state of 'fold': .*not signed by the key in BETTONG_STATE_KEY_FILE"
    ):
        worker(made()).restore(changed(saved(), **more))


def test_states_of_another_partition_or_key_are_refused() -> None:
    theirs = codec.decode(saved(partition=1), application="meters", partition=PartitionId("in", 1))
    for snapshot in (saved(OTHER), changed(saved(), states=lambda _: theirs.states["fold"])):
        with pytest.raises(SnapshotError, match="not signed"):
            worker(made()).restore(snapshot)


def test_without_a_key_the_application_is_refused_with_the_remedy() -> None:
    with pytest.raises(ApplicationError, match=r"stateful 'fold': .*needs a key: set BETTONG_STATE_KEY_FILE"):
        made(None)


def test_a_state_that_is_no_pickle_any_more_is_refused_with_the_remedy() -> None:
    plain = made(state=PlainKept, state_codec=None)
    with pytest.raises(StateChangedError, match="bettong state reset"):
        worker(plain).restore(_same_schema(plain))


@dataclass
class PlainKept:
    total: int = 0


def _same_schema(plain: StageProgram) -> bytes:
    """Of the same computation, as it was when it asked for pickles."""
    signed = worker(made(state=PlainKept))
    fold(signed, [data("in/a", 1, [Item("k", 5)])])
    assert signed.program.state_schemas == plain.state_schemas
    return signed.increment()[1]


def test_a_migration_reads_signed_states_of_a_class_that_has_changed() -> None:
    def migrate(old: Any, version: int) -> PlainKept:
        return PlainKept(old.total * 100 + version)

    one = worker(made(state=PlainKept, version=2, migrate=migrate))
    one.restore(saved())
    assert [
        each.total for each in results(fold(one, [data("in/a", 2, [Item("k", 2)])]), "meters.sink.out", Sum)
    ] == [503]


def test_only_plain_python_functions_have_pickles() -> None:
    with pytest.raises(ApplicationError, match=r"state_codec='pickle', expected bettong\.Pickle or nothing"):
        made(state_codec="pickle")

    @bettong.vectorized
    def over(items: Any, kept: Any) -> Any:
        raise AssertionError

    stream = Application("meters").source("in", schema=Item, key="key")
    with pytest.raises(ApplicationError):
        stream.stateful(over, state=Kept, name="fold", state_codec=bettong.Pickle)


def test_the_key_does_not_show() -> None:
    assert "kkkk" not in repr(made())


def test_a_key_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "state.key"
    with pytest.raises(SettingsError, match="BETTONG_STATE_KEY_FILE: cannot read"):
        state_key(file)
    file.write_bytes(KEY)
    for mode in (0o604, 0o622, 0o444, 0o460):
        file.chmod(mode)
        with pytest.raises(SettingsError, match=r"may be read or written by others.*chmod 600"):
            state_key(file)
    file.chmod(0o400)
    assert state_key(file) == KEY
    assert state_key(None) is None
    file.chmod(0o600)
    file.write_bytes(b"short")
    with pytest.raises(SettingsError, match="holds 5 bytes, expected 32 to 4096"):
        state_key(file)


@pytest.mark.parametrize(
    ("owner", "group", "mode", "closed"),
    [
        (1000, 1000, 0o600, True),
        (1000, 1000, 0o640, False),
        (1000, 2000, 0o440, False),
        (0, 0, 0o400, True),
        (0, 2000, 0o440, True),  # a Secret that kubelet mounts under fsGroup
        (0, 1000, 0o640, True),
        (0, 0, 0o440, False),
        (0, 3000, 0o440, False),
        (0, 2000, 0o460, False),
        (0, 2000, 0o450, False),
        (0, 2000, 0o444, False),
        (3000, 2000, 0o440, False),
        (3000, 3000, 0o600, False),
    ],
)
def test_a_group_may_read_a_key_where_root_owns_it_and_the_group_is_ours(
    owner: int, group: int, mode: int, *, closed: bool
) -> None:
    about = os.stat_result((0o100000 | mode, 1, 1, 1, owner, group, 32, 0, 0, 0))
    assert is_closed(about, user=1000, groups={1000, 2000}) is closed
