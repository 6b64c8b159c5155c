"""A suite while it starts: other commands find it, and its owner can end it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.local.options import SuiteOptions
from bettong.local.record import SuiteRecord, find
from bettong.local.suite import Suite

APPLICATION = """
from dataclasses import dataclass

import bettong

@dataclass
class Number:
    number: int = 0

app = bettong.Application("starting")
app.source("numbers", schema=Number, key="number").sink("out")
"""


def written(folder: Path, text: str = APPLICATION) -> str:
    file = folder / "app.py"
    file.write_text(text)
    return str(file)


def test_a_suite_is_found_before_its_first_process_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, announced = tmp_path / "kept", tmp_path / "announced"
    found: list[SuiteRecord | None] = []
    monkeypatch.setattr(Suite, "_launch_all", lambda _: found.extend(map(find, (kept, announced))))
    with Suite(SuiteOptions(application=written(tmp_path), keep=kept, announce=announced)):
        pass
    for record in found:
        assert record is not None
        assert record.name == "starting"
        assert not record.ready
        assert not record.services
    assert find(kept) is None
