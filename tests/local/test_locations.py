"""Where the parts of an application are, and what of that is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.errors import SettingsError
from bettong.local.locations import locations


def test_the_key_of_states_is_not_read_by_what_folds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pods of senders and receivers have the setting, but not the file; dead letters are listed there."""
    monkeypatch.setenv("BETTONG_STATE_KEY_FILE", str(tmp_path / "missing"))
    where = ("app.py", "meters", tmp_path)
    assert locations(*where, kafka="127.0.0.1:1", folds=False).state_key is None
    with pytest.raises(SettingsError, match="BETTONG_STATE_KEY_FILE: cannot read"):
        locations(*where, kafka="127.0.0.1:1")
