"""The suites of helm-unittest that lie beside the charts, and are no part of what is packaged."""

import shutil
import tarfile
from pathlib import Path

import pytest
import yaml

from tests.kubernetes.building import HELM_UNITTEST
from tests.kubernetes.chart import FOLDER, TUNING, CallError, called, helm

CHARTS = pytest.mark.parametrize("folder", [FOLDER, TUNING], ids=lambda folder: folder.name)


def unittest(folder: Path) -> str:
    """What helm-unittest prints. Raises CallError when a suite fails. It leaves folders beside the suites."""
    return called(HELM_UNITTEST.folder / "helm-unittest", ["--color=false", str(folder)], HOME="/nonexistent")


@pytest.mark.chart_tool("helm-unittest")
@CHARTS
def test_the_suites_of_a_chart_pass(folder: Path, tmp_path: Path) -> None:
    suites = len(list(folder.glob("tests/*_test.yaml")))
    assert suites
    reported = unittest(shutil.copytree(folder, tmp_path / folder.name))
    assert f"{suites} passed, {suites} total" in reported


@pytest.mark.chart_tool("helm-unittest")
def test_a_suite_that_is_not_true_fails(tmp_path: Path) -> None:
    chart = shutil.copytree(TUNING, tmp_path / TUNING.name)
    tests = [{"asserts": [{"isKind": {"of": "Pod"}}]}]
    suite = {"suite": "not true", "templates": ["daemonset.yaml"], "tests": tests}
    (chart / "tests" / "false_test.yaml").write_text(yaml.safe_dump(suite))
    with pytest.raises(CallError):
        unittest(chart)


@CHARTS
def test_a_packaged_chart_has_no_suites(folder: Path, tmp_path: Path) -> None:
    helm("package", str(folder), "--destination", str(tmp_path))
    (packed,) = tmp_path.iterdir()
    with tarfile.open(packed) as archive:
        names = set(archive.getnames())
    assert not any(name.startswith(f"{folder.name}/tests/") or "__pycache__" in name for name in names)
    kept = [
        folder / "Chart.yaml",
        folder / "README.md",
        *folder.glob("templates/**/*.*"),
        *folder.glob("files/**/*.*"),
    ]
    wanted = {f"{folder.name}/{path.relative_to(folder)}" for path in kept if path.suffix != ".pyc"}
    assert wanted <= names
