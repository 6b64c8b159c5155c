"""The folder of states in shared memory is this user's alone."""

import os
from pathlib import Path

import pytest

from bettong.edges.snapshot_stores import local_states
from bettong.errors import SettingsError


def test_the_folder_is_made_and_closed_to_others(tmp_path: Path) -> None:
    folder = tmp_path / "states" / "shop"
    folder.parent.mkdir(mode=0o755)
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    local_states(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    local_states(tmp_path / "new" / "shop")
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
        local_states(folder)
