"""Tools that cannot be built are reported with the reason, and pytest first says whose tests are left out."""

from pathlib import Path

import pytest

from tests.conftest import pytest_report_header
from tests.kubernetes import building
from tests.kubernetes.building import CHART_TOOLS, KUBE_SCORE


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, of our programs and of Go's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("GOCACHE", str(tmp_path / "go"))
    return tmp_path


def reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr("sys.argv", ["building", "--chart-tools", "--jobs", "1", "--seconds", "0"])
    building.main()
    return capsys.readouterr().out


def test_what_is_not_built_in_time_is_given_up_and_reported(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    go = cache / "bin" / "go"
    go.parent.mkdir()
    go.write_text("#!/bin/sh\nexec sleep 600\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(go.parent), prepend=":")
    assert "kube-score could not be built, its tests are left out: the time is over" in reported(
        monkeypatch, capsys
    )
    assert not KUBE_SCORE.are_built()
    assert [
        line for line in pytest_report_header() if line.startswith("kube-score: none, its tests are left out")
    ]


def test_without_go_it_is_told_what_to_install(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(cache))
    assert "helm-unittest could not be built, its tests are left out: go is missing: install" in reported(
        monkeypatch, capsys
    )


def test_what_is_there_is_reported_and_not_built_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for tools in CHART_TOOLS.values():
        tools.folder.mkdir(parents=True)
        for name in tools.programs:
            (tools.folder / name).touch()
    assert [line.partition(":")[0] for line in reported(monkeypatch, capsys).splitlines()] == [
        "kube-score is in the cache",
        "helm-unittest is in the cache",
    ]
