"""The life cycle of a tuner, its reports, and its command line, on a fake tree."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from typer.testing import CliRunner

from bettong_node_tuner.effects import Effects
from bettong_node_tuner.errors import NodeError
from bettong_node_tuner.keeping import NAME, Keeping
from bettong_node_tuner.main import app
from bettong_node_tuner.metrics import TunerMetrics
from bettong_node_tuner.report import annotation, table
from bettong_node_tuner.service import Tuner
from bettong_node_tuner.settings import PREFIX, Mode, TunerSettings
from tests.simulation.fake_node import SWAPPINESS, FakeNode

WANTED = {"vm.swappiness": "1", "vm.not_there": "1"}


class RecordedNode:
    """Keeps reports; fails at first if told to. tests/kubernetes tests the real one."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.texts: list[str] = []
        self.tainted = True

    def annotate(self, text: str) -> None:
        if self.failures:
            self.failures -= 1
            raise NodeError("away")
        self.texts.append(text)

    def remove_taint(self) -> bool:
        self.tainted = False
        return True


@pytest.fixture
def node(tmp_path: Path) -> FakeNode:
    return FakeNode(tmp_path / "root")


@pytest.fixture
def effects(node: FakeNode, tmp_path: Path) -> Iterator[Effects]:
    with ExitStack() as stack:
        yield Effects(node, stack.enter_context(Keeping(tmp_path / "journal")))


def test_a_tuner_tunes_reports_and_sets_back_at_its_end(node: FakeNode, effects: Effects) -> None:
    reported, metrics, seen = RecordedNode(failures=1), TunerMetrics(), list[str]()

    def is_ended(seconds: float) -> bool:
        assert seconds == 7
        seen.append(node.text(SWAPPINESS))
        return len(seen) == 3

    settings = TunerSettings(mode=Mode.APPLY, sysctls=WANTED, interval_s=7)
    Tuner(settings, effects, metrics, reported).run(is_ended)
    assert seen == ["1", "1", "1"]
    assert node.text(SWAPPINESS) == "60"
    during, after = (json.loads(text) for text in reported.texts)
    assert during == {
        "mode": "apply",
        "done": True,
        "settings": {
            "sysctls": {
                "tuned": 1,
                "unsupported": 1,
                "why": ["/proc/sys/vm/not_there: there is no such file"],
            }
        },
    }
    assert after["settings"] == {"sysctls": {"reverted": 1}}
    assert not reported.tainted
    text = generate_latest(metrics.registry).decode()
    assert 'bettong_node_tuner_writes_total{setting="sysctls"} 2.0' in text
    assert 'bettong_node_tuner_keys{setting="sysctls",state="reverted"} 1.0' in text
    assert "bettong_node_tuner_api_errors_total 1.0" in text


def test_a_report_that_is_refused_is_promised_again_but_not_at_the_end(
    node: FakeNode, effects: Effects, caplog: pytest.LogCaptureFixture
) -> None:
    reported = RecordedNode(failures=2)
    Tuner(TunerSettings(mode=Mode.APPLY, sysctls=WANTED), effects, TunerMetrics(), reported).run(
        lambda _: True
    )
    assert node.text(SWAPPINESS) == "60"
    during, after = [line for line in caplog.messages if line.startswith("away; ")]
    assert during == "away; retried at the next pass"
    assert after == "away; not retried: the annotation may be out of date"
    assert reported.texts == []


def test_the_startup_taint_stays_while_something_is_refused(node: FakeNode, effects: Effects) -> None:
    node.put("proc/90/comm", "tuned")
    reported = RecordedNode(failures=0)
    tuner = Tuner(TunerSettings(mode=Mode.APPLY, sysctls=WANTED), effects, TunerMetrics(), reported)
    tuner.check()
    assert reported.tainted
    assert json.loads(reported.texts[0])["settings"]["sysctls"]["refused"] == 1
    node.put("proc/90/comm", "gone")
    tuner.check()
    assert not reported.tainted


@pytest.mark.parametrize("mode", [Mode.OFF, Mode.DRY_RUN, Mode.REVERT])
def test_a_tuner_that_is_not_to_tune_lets_the_node_take_pods(effects: Effects, mode: Mode) -> None:
    reported = RecordedNode(failures=0)
    Tuner(TunerSettings(mode=mode, sysctls=WANTED), effects, TunerMetrics(), reported).run(lambda _: True)
    assert not reported.tainted
    assert json.loads(reported.texts[0])["mode"] == mode.value


def test_the_table_and_the_annotation_say_why(node: FakeNode, effects: Effects) -> None:
    wanted = TunerSettings(mode=Mode.DRY_RUN, sysctls=WANTED)
    lines = table(effects.inspect(wanted), planned=True).splitlines()
    assert lines[0].split("  ")[0] == "SETTING"
    assert lines[1].split() == [
        *("sysctls", "/proc/sys/vm/not_there", "-", "1"),
        *("unsupported", "there", "is", "no", "such", "file"),
    ]
    assert lines[2].split() == ["sysctls", "/proc/sys/vm/swappiness", "60", "1", "pending", "would", "write"]
    assert len(annotation(effects.inspect(wanted), wanted.mode)) < 300


def run(folder: Path, *words: str) -> tuple[int, str]:
    given = ["--root", str(folder / "root"), "--journal", str(folder / "journal"), *words]
    done = CliRunner().invoke(app, given)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def test_the_command_plans_tunes_once_and_sets_back(
    node: FakeNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{PREFIX}SYSCTLS", '{"vm.swappiness": "1"}')
    assert "would write" in run(tmp_path, "plan")[1]
    assert not (tmp_path / "journal").exists()
    code, reported = run(tmp_path, "--mode", "apply", "--once")
    assert (code, reported.splitlines()[1].split()[-1]) == (0, "tuned")
    assert node.text(SWAPPINESS) == "1"
    assert "would restore" in run(tmp_path, "--mode", "revert", "plan")[1]
    assert run(tmp_path, "--mode", "revert", "--once")[0] == 0
    assert node.text(SWAPPINESS) == "60"
    node.put("proc/90/comm", "tuned")
    code, reported = run(tmp_path, "--mode", "apply", "--once")
    assert (code, "tuned runs here" in reported) == (1, True)
    assert json.loads((tmp_path / "journal" / NAME).read_text())["entries"] == {}
