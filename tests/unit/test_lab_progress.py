"""Whether a lag grows while a rate is held, and how many messages are taken in."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bettong.chaos.log_position import LogPosition
from bettong.cli.lab.tables import probe_line
from bettong.cli.main import app
from bettong.config.toml_files import text_of
from bettong.errors import LabError, SettingsError
from bettong.lab.finding import judge_rate
from bettong.lab.spec import RunSpec, lasting, read
from bettong.lab.statistics.progress import LagTrend, lag_trend, throughput_points
from bettong.lab.statistics.search import Probe

RATE, FROM_S, UNTIL_S = 10_000.0, 5.0, 25.0
# Messages of a record of the log.
RECORD = 50


def positions(waiting: Callable[[float], float], every_s: float = 1.3) -> list[LogPosition]:
    """All the time, and after it; `waiting`: messages, by seconds since the run began."""
    found = []
    at_s = every_s
    while at_s < UNTIL_S + 5:
        waits = max(0.0, waiting(at_s))
        found.append(LogPosition(at_s, waits / RECORD, RATE * at_s / RECORD, RATE * at_s - waits))
        at_s += every_s
    return found


def trend(waiting: Callable[[float], float], every_s: float = 1.3) -> LagTrend | None:
    return lag_trend(positions(waiting, every_s), FROM_S, UNTIL_S, RATE)


def test_a_lag_that_grows_is_said_in_messages_a_second() -> None:
    found = trend(lambda at_s: 1500 * at_s)
    assert found is not None
    assert found.per_s == pytest.approx(1500, rel=0.1)
    assert found.low <= found.per_s <= found.high
    assert found.fault.startswith("the lag grows by 1,")
    assert "messages/s" in found.fault
    assert judge_rate(RATE, [], found).why == found.fault


@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param(lambda _: 0.0, id="nothing waits"),
        pytest.param(lambda _: 30_000.0, id="as much waits all the time"),
        pytest.param(lambda at_s: 20_000 - 500 * at_s, id="it becomes less"),
        pytest.param(
            lambda at_s: 300 * at_s, id="it grows, and is three quarters of a second's worth at the end"
        ),
        pytest.param(lambda at_s: 40_000 + 200 * at_s, id="it grows by a tenth of what waits"),
        pytest.param(lambda at_s: 20_000 * (at_s % 4) / 4, id="batches of four seconds"),
        pytest.param(lambda at_s: 60_000.0 if 12 < at_s < 14 else 500.0, id="it stood still for two seconds"),
    ],
)
def test_a_lag_that_does_not_grow_is_no_fault(waiting: Callable[[float], float]) -> None:
    found = trend(waiting)
    assert found is not None
    assert found.fault == ""


@pytest.mark.parametrize("of", ["nothing", "growth"])
def test_noise_is_no_growth_and_hides_none(of: str) -> None:
    drawn = random.Random(8)
    slope = 3000 if of == "growth" else 0
    found = [trend(lambda at_s: (15_000 + slope * at_s) * drawn.lognormvariate(0, 0.15)) for _ in range(100)]
    faults = sum(bool(each is not None and each.fault) for each in found)
    assert faults >= 80 if slope else faults <= 3


def test_too_few_positions_say_nothing() -> None:
    assert trend(lambda at_s: 5000 * at_s, every_s=5.0) is None
    assert lag_trend([], FROM_S, UNTIL_S, RATE) is None
    still = [LogPosition(each.at_s, 0, 7, 0) for each in positions(lambda _: 0)]
    assert lag_trend(still, FROM_S, UNTIL_S, RATE) is None


def test_a_rate_may_miss_its_objective_and_have_a_lag_that_grows() -> None:
    growing = LagTrend(1000.0, 900.0, 1100.0, share=1.0, end_s=2.0)
    fault = "the lag grows by 1,000 messages/s (900 to 1,100), to 2.0 s of messages"
    assert judge_rate(5.0, ["p99 is 80 ms"], growing) == Probe(5.0, f"p99 is 80 ms; {fault}", 1000.0)
    assert judge_rate(5.0, ["p99 is 80 ms"], None) == Probe(5.0, "p99 is 80 ms")
    assert judge_rate(5.0, [], None) == Probe(5.0)


def test_what_is_not_known_of_a_lag_is_said() -> None:
    assert probe_line(Probe(1000.0, "", 3.0)).strip() == "1,000 messages/s  sustained"
    assert probe_line(Probe(1000.0)).endswith("sustained; too short to say whether the lag grows")
    assert probe_line(Probe(1000.0, "late")).endswith("  missed: late")


def test_messages_are_counted_between_two_positions() -> None:
    found = [LogPosition(2.0, 0, 10, 100), LogPosition(4.0, 0, 20, 400), LogPosition(9.0, 5, 20, 400)]
    assert [(each.at_s, each.metric, each.value) for each in throughput_points(found)] == [
        (4.0, "processor: messages/s", 150.0),
        (9.0, "processor: messages/s", 0.0),
    ]
    assert list(throughput_points(found[:1])) == []


RUN = """
name = "of a run"
application = "app.py"
load = "load.py"
[[steps]]
messages_per_s = 10
seconds = 10
[objective]
p99_ms = 50
"""


@pytest.mark.parametrize(("capacity", "exit_code", "sustained"), [(3000.0, 0, 2000.0), (0.0, 10, None)])
def test_the_command_prints_each_rate_and_leaves_them_as_json(
    capacity: float, exit_code: int, sustained: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def probe(_spec: RunSpec, rate: float, _seconds: float, *, say: Callable[[str], None]) -> Probe:
        say("tried")
        return Probe(rate, "", 0.0) if rate <= capacity else Probe(rate, "too slow", rate - capacity)

    monkeypatch.setattr("bettong.lab.finding.probe", probe)
    (tmp_path / "run.toml").write_text(RUN)
    words = ["lab", "find", str(tmp_path / "run.toml"), "--from", "1000", "--precision", "100"]
    said = CliRunner().invoke(app, words)
    assert said.exit_code == exit_code
    assert "1,000 messages/s" in said.output
    asked = CliRunner().invoke(app, [*words, "--json"])
    assert asked.exit_code == exit_code
    found = json.loads(asked.stdout)
    assert (found["run"], found["sustained"]) == ("of a run", sustained)
    assert found["probes"][0]["rate"] == 1000.0
    assert [each["rate"] for each in found["probes"] if not each["why"]] == (
        [1000.0, 2000.0] if capacity else []
    )
    assert {each["why"] for each in found["probes"]} <= {"", "too slow"}


def test_a_search_that_cannot_try_a_higher_rate_still_says_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def probe(_spec: RunSpec, rate: float, _seconds: float, *, say: Callable[[str], None]) -> Probe:
        if rate > 2000:
            raise SettingsError("x: a table makes no more messages")
        return Probe(rate, "", 0.0)

    monkeypatch.setattr("bettong.lab.finding.probe", probe)
    (tmp_path / "run.toml").write_text(RUN)
    words = ["lab", "find", str(tmp_path / "run.toml"), "--from"]
    found = CliRunner().invoke(app, [*words, "1000"])
    assert found.exit_code == 0
    assert "sustained: at least 2,000 messages/s; x: a table makes no more messages" in found.output
    row = json.loads(CliRunner().invoke(app, [*words, "1000", "--json"]).stdout)
    assert (row["sustained"], row["limit"]) == (2000.0, "x: a table makes no more messages")
    refused = CliRunner().invoke(app, [*words, "3000"])
    assert isinstance(refused.exception, SettingsError)
    assert CliRunner().invoke(app, [*words, "1e12"]).exit_code == 2


def test_a_search_that_fails_still_says_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def probe(_spec: RunSpec, rate: float, _seconds: float, *, say: Callable[[str], None]) -> Probe:
        if rate > 2000:
            raise LabError("of a run: the results are wrong")
        return Probe(rate, "", 0.0)

    monkeypatch.setattr("bettong.lab.finding.probe", probe)
    (tmp_path / "run.toml").write_text(RUN)
    words = ["lab", "find", str(tmp_path / "run.toml"), "--from", "1000"]
    found = CliRunner().invoke(app, words)
    assert isinstance(found.exception, LabError)
    assert "sustained: at least 2,000 messages/s; of a run: the results are wrong" in found.output
    row = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert (row["sustained"], row["limit"]) == (2000.0, "of a run: the results are wrong")


def test_the_longest_soak_leaves_a_run_file_that_can_be_run(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(RUN.replace("[objective]", "").replace("p99_ms = 50", ""))
    soak = lasting(read(tmp_path / "run.toml"), 1000 * 3600)
    (tmp_path / "soak.toml").write_text(text_of(soak))
    assert read(tmp_path / "soak.toml") == soak
