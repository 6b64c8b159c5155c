"""Where jars are looked for."""

import sys
import sysconfig
from pathlib import Path

import pytest

from bettong.jars import share


def test_jars_are_found_wherever_an_installer_puts_a_packages_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside an environment that is /usr/local for Debian's Python, and the user's folder for `pip install --user`."""

    def folder(name: str) -> Path:
        return tmp_path / name / "share" / "bettong"

    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.setattr(
        sysconfig, "get_path", lambda _, scheme=None: str(tmp_path / ("user" if scheme else "data"))
    )
    assert share() == folder("prefix")
    for name in ("user", "data", "prefix"):
        (folder(name) / "jars").mkdir(parents=True)
        assert share() == folder(name)
