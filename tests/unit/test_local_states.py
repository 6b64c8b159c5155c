"""The folders of states in shared memory: each log has its own, which is this user's alone."""

import os
from pathlib import Path

import pytest

from bettong.edges.snapshot_stores import clear_local_states, local_states, log_id
from bettong.errors import SettingsError
from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment

LOG, MADE_ANEW = (log_id({"shop.stage.a": id_, "shop.stage.b": "3"}) for id_ in "12")
PARTITION, INCREMENT = PartitionId("a", 0), Increment(5100, 0, 5100)


def test_the_folder_is_made_and_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "states" / "shop"
    folder.parent.mkdir(mode=0o755)
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    local_states(folder, LOG)
    assert folder.stat().st_mode & 0o777 == 0o700
    local_states(tmp_path / "new" / "shop", LOG)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("whose", ["states", "states/shop"])
def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "states" / "shop"
    folder.mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(tmp_path / whose, 65_534, 65_534)
    else:  # who is not root cannot give a folder away, but be another one
        monkeypatch.setattr(os, "geteuid", lambda: 65_534)
    with pytest.raises(SettingsError, match="another user's; name another folder"):
        local_states(folder, LOG)


def test_a_restart_over_the_same_log_finds_its_states(tmp_path: Path) -> None:
    assert log_id({"shop.stage.b": "3", "shop.stage.a": "1"}) == LOG
    local_states(tmp_path / "shop", LOG).save(PARTITION, INCREMENT, b"state")
    assert local_states(tmp_path / "shop", LOG).increments(PARTITION) == [INCREMENT]


def test_states_of_a_log_that_was_made_anew_are_not_found_and_deleted(tmp_path: Path) -> None:
    before, other = local_states(tmp_path / "shop", LOG), local_states(tmp_path / "shop-b", LOG)
    for each in (before, other):
        each.save(PARTITION, INCREMENT, b"state")
    assert local_states(tmp_path / "shop", MADE_ANEW).increments(PARTITION) == []
    assert before.increments(PARTITION) == []
    assert other.increments(PARTITION) == [INCREMENT], "of another deployment"


def test_the_states_of_a_deployment_are_cleared_whatever_their_log(tmp_path: Path) -> None:
    states, other = local_states(tmp_path / "shop", LOG), local_states(tmp_path / "shop-b", LOG)
    for each in (states, other):
        each.save(PARTITION, INCREMENT, b"state")
    clear_local_states(tmp_path / "shop")
    assert states.increments(PARTITION) == []
    assert other.increments(PARTITION) == [INCREMENT], "of another deployment"
