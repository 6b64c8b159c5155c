"""`bettong lab compare`: what is called a change, and what is noise."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bettong.cli.lab.tables import notes, repeats_note
from bettong.cli.main import app
from bettong.errors import LabError
from bettong.lab.latency_parts import PartsSample, PartTotals
from bettong.lab.measures import latencies, part_means, usages
from bettong.lab.reading import LatencyRecorder, ResultReading
from bettong.lab.results import BenchmarkResults, MeasuredMetric, RunValue, differences, read
from bettong.lab.spec import LoadStep, RunSpec
from bettong.lab.statistics.comparison import (
    ChangeVerdict,
    MetricRuns,
    compare,
    families,
    is_detail,
    runs_needed,
)
from bettong.lab.target.gc_pauses import GcPause
from bettong.lab.target.sampling import KindSample, Usage
from bettong.latency_parts import PARTS

NOISE = 0.03


def measured(drawn: random.Random, true: float, runs: int, name: str = "speed") -> MetricRuns:
    values = tuple(true * drawn.lognormvariate(0, NOISE) for _ in range(runs))
    return MetricRuns(name, "messages/s", values)


def test_of_equal_runs_hardly_any_is_called_a_change() -> None:
    drawn = random.Random(1)
    found = [
        compare([measured(drawn, 1e6, 6)], [measured(drawn, 1e6, 6)])[0].verdict
        is not ChangeVerdict.NO_CHANGE
        for _ in range(60)
    ]
    assert sum(found) <= 60 * 0.05 + 2


def test_a_slowdown_of_a_tenth_is_seen_and_lies_in_its_interval() -> None:
    drawn = random.Random(2)
    found = [compare([measured(drawn, 1e6, 6)], [measured(drawn, 9e5, 6)])[0] for _ in range(30)]
    assert sum(each.verdict is ChangeVerdict.WORSE for each in found) >= 28
    assert sum(each.low <= 0.9 <= each.high for each in found) >= 24
    assert all(each.low <= each.ratio <= each.high for each in found)


def test_a_table_of_many_equal_metrics_has_no_false_alarm() -> None:
    drawn = random.Random(3)
    names = [f"metric {number}" for number in range(30)]
    found = compare(
        [measured(drawn, 1e6, 7, name) for name in names], [measured(drawn, 1e6, 7, name) for name in names]
    )
    assert {each.verdict for each in found} == {ChangeVerdict.NO_CHANGE}


def test_one_that_is_slower_among_many_is_found() -> None:
    drawn = random.Random(4)
    names = [f"metric {number}" for number in range(20)]
    before = [measured(drawn, 1e6, 8, name) for name in names]
    after = [measured(drawn, 8e5 if name == "metric 7" else 1e6, 8, name) for name in names]
    worse = [each.name for each in compare(before, after) if each.verdict is ChangeVerdict.WORSE]
    assert worse == ["metric 7"]


@pytest.mark.parametrize(
    ("unit", "after", "verdict"),
    [
        ("messages/s", 80.0, ChangeVerdict.WORSE),
        ("messages/s", 120.0, ChangeVerdict.BETTER),
        ("ms", 80.0, ChangeVerdict.BETTER),
        ("% of a core", 120.0, ChangeVerdict.WORSE),
    ],
)
def test_whether_less_is_better_depends_on_the_unit(unit: str, after: float, verdict: ChangeVerdict) -> None:
    values = (99.0, 99.5, 100.0, 100.5, 101.0)
    others = tuple(value * after / 100 for value in values)
    (found,) = compare([MetricRuns("x", unit, values)], [MetricRuns("x", unit, others)])
    assert found.verdict is verdict
    assert found.ratio == pytest.approx(after / 100)


def test_what_changed_by_less_than_is_asked_for_is_no_change() -> None:
    values = (100.0, 100.01, 100.02, 99.99, 99.98)
    after = tuple(value * 0.985 for value in values)
    before = [MetricRuns("x", "messages/s", values)]
    assert compare(before, [MetricRuns("x", "messages/s", after)])[0].verdict is ChangeVerdict.NO_CHANGE
    assert (
        compare(before, [MetricRuns("x", "messages/s", after)], least=0.01)[0].verdict is ChangeVerdict.WORSE
    )


def test_values_that_are_all_the_same_have_an_interval_of_nothing() -> None:
    same = [MetricRuns("x", "ms", (5.0,) * 5)]
    (found,) = compare(same, same)
    assert (found.ratio, found.low, found.high, found.verdict) == (1.0, 1.0, 1.0, ChangeVerdict.NO_CHANGE)


def test_three_runs_can_show_nothing_and_it_is_said_how_many_can() -> None:
    (found,) = compare([MetricRuns("x", "ms", (1.0, 1.1, 0.9))], [MetricRuns("x", "ms", (2.0, 2.1, 1.9))])
    assert found.verdict is ChangeVerdict.TOO_FEW
    assert runs_needed(1) == 4
    assert runs_needed(30) == 7


class Unread(ResultReading):
    def _run(self) -> None:
        """Reads nothing: what was late is noted by the test."""


def names_of_a_run() -> list[str]:
    """Of one sink at one rate, and of two kinds of processes."""
    steps = [LoadStep(messages_per_s=1000, seconds=10)]
    latency = LatencyRecorder(steps, warm_up_s=0)
    latency.begin_s = 0.0
    latency.record(1.0, 1.5)
    usage = Usage(network_mb=1.0)
    usage.add_sample({kind: KindSample(1.0, cpu_s=1.0, pss_mb=1.0) for kind in ("kafka", "sender")}, 1.0, 1.0)
    measured = [
        *latencies(steps, {"out": Unread("out", 0, latency)}),
        *part_means(
            [
                PartsSample(0.0, {}),
                PartsSample(1.0, {("receiver", "out"): PartTotals(1, (1.0,) * len(PARTS))}),
            ],
            0.0,
        ),
        *usages(usage, [GcPause("kafka", 1.0, 2.0)], 1000),
    ]
    return ["throughput", *(each.metric for each in measured)]


def test_what_a_user_looks_at_is_corrected_apart_from_details() -> None:
    names = names_of_a_run()
    assert [name.rpartition("/s, ")[2] for name in names if not is_detail(name)] == [
        *("throughput", "p50", "p99", "p99.9"),
        *("CPU of all, a million messages", "memory of all, at most"),
    ]
    assert [name.rpartition("/s, ")[2] for name in names if is_detail(name)] == [
        *("p90", "p99.99", "max"),
        *(f"out: {part.words}, mean" for part in PARTS),
        *(f"CPU of {kind}, a million messages" for kind in ("kafka", "sender")),
        *(f"memory of {kind}, at most" for kind in ("kafka", "sender")),
        *(f"PSS of {kind}, at most" for kind in ("all", "kafka", "sender")),
        *("GC pauses of kafka, all", "network, a million messages"),
    ]
    assert families(names) == {"metrics": 6, "details": 17}
    assert families(["worker, p99 of memory"]) == {"metrics": 1}


def of_all(names: Sequence[str], values: Sequence[float]) -> list[MetricRuns]:
    return [MetricRuns(name, "s", tuple(values)) for name in names]


def test_two_runs_of_as_many_repeats_as_is_the_default_have_a_verdict() -> None:
    repeats = RunSpec(name="x", application="a", load="l", messages=1).repeats
    names = names_of_a_run()
    before = of_all(names, [100.0 + number for number in range(repeats)])
    after = of_all(names[:1], [110.0 + number for number in range(repeats)]) + before[1:]
    verdicts = {each.name: each.verdict for each in compare(before, after)}
    assert verdicts["throughput"] is ChangeVerdict.WORSE
    assert {verdicts[name] for name in names[1:] if not is_detail(name)} == {ChangeVerdict.NO_CHANGE}


def test_details_that_changed_make_no_other_change_likelier() -> None:
    """Corrected together with nine that did, this one would be a change; it is none of six."""
    names = names_of_a_run()
    before, far = [100.0, 101.0, 102.0, 103.0, 104.0], [120.0, 121.0, 122.0, 123.0, 124.0]
    after = {name: far if is_detail(name) else before for name in names}
    after["throughput"] = [103.5, 105.0, 106.0, 107.0, 108.0]
    found = compare(of_all(names, before), [MetricRuns(name, "s", tuple(after[name])) for name in names])
    assert {each.verdict for each in found if is_detail(each.name)} == {ChangeVerdict.WORSE}
    assert found[0].name == "throughput"
    assert 0.05 / 6 < found[0].chance <= 0.05 * 10 / 15
    assert found[0].verdict is ChangeVerdict.NO_CHANGE


def test_a_run_says_how_many_repeats_a_comparison_takes() -> None:
    names = names_of_a_run()
    said = "to compare it with another run, each needs 5 repeats for its 6 metrics and 6 repeats for its 17 details"
    assert repeats_note(names, 3) == f"{said}: this one has 3 (`--repeats`)"
    assert repeats_note(names, 5) == f"{said}: this one has 5 (`--repeats`)"
    assert repeats_note(names, 6) == ""


def test_the_number_of_runs_is_said_of_the_family_that_lacks_them() -> None:
    same = of_all(names_of_a_run(), [100.0, 101.0, 102.0, 103.0, 104.0])
    (line,) = notes(compare(same, same), [])
    assert line.startswith("too few runs: a change of one of 17 details shows from 6 runs of each on")


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (MetricRuns("x", "ms", (1.0,)), MetricRuns("y", "ms", (1.0,)), "no metric in common"),
        (MetricRuns("x", "ms", (1.0,)), MetricRuns("x", "s", (1.0,)), "x: ms in one run and s in the other"),
        (MetricRuns("x", "ms", (1.0, 0.0)), MetricRuns("x", "ms", (1.0,)), "needs values above 0"),
        (MetricRuns("x", "ms", (1.0,)), MetricRuns("x", "ms", (float("nan"),)), "needs values above 0"),
    ],
)
def test_what_cannot_be_compared_is_named(before: MetricRuns, after: MetricRuns, says: str) -> None:
    with pytest.raises(LabError, match=says):
        compare([before], [after])


@pytest.mark.parametrize(
    ("alone", "runs", "verdict"),
    [
        (80.0, 1, ChangeVerdict.TOO_FEW),
        (80.0, 9, ChangeVerdict.TOO_FEW),
        (80.0, 60, ChangeVerdict.WORSE),
        (130.0, 60, ChangeVerdict.BETTER),
        (102.5, 60, ChangeVerdict.NO_CHANGE),
    ],
)
def test_a_run_that_stands_alone_is_compared_with_any_number(
    alone: float, runs: int, verdict: ChangeVerdict
) -> None:
    many = MetricRuns("speed", "messages/s", tuple(100.0 + number / 10 for number in range(runs)))
    one = MetricRuns("speed", "messages/s", (alone,))
    (found,) = compare([many], [one])
    assert found.verdict is verdict
    (turned,) = compare([one], [many])
    assert turned.chance == found.chance


def results_file(path: Path, values: list[float], processor: str = "one") -> Path:
    content = {
        "date": "2026-11-26T10:00:00+00:00",
        "machine": {"processor": processor, "load before": str(values[0])},
        "asked": {"runs": len(values)},
        "measurements": [
            {"name": "worker", "unit": "messages/s", "runs": [{"value": value} for value in values]}
        ],
    }
    path.write_text(json.dumps(content))
    return path


def test_a_folder_of_results_means_its_newest(tmp_path: Path) -> None:
    results_file(tmp_path / "2026-11-25T10-00-00Z.json", [1.0])
    results_file(tmp_path / "2026-11-26T10-00-00Z.json", [2.0])
    assert read(tmp_path).metrics == [MetricRuns("worker", "messages/s", (2.0,))]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("garbage", "holds no results"),
        ("[]", "holds no results"),
        ("{}", "date: Field required"),
        ('{"date": "", "machine": {}, "asked": {}, "measurements": []}', "measurements"),
    ],
)
def test_a_file_that_holds_no_results_is_named(content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(LabError, match=says) as raised:
        read(tmp_path / "x.json")
    assert "x.json" in str(raised.value)


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"gone\.json cannot be read: No such file"):
        read(tmp_path / "gone.json")
    with pytest.raises(LabError, match="holds no results"):
        read(tmp_path)


def test_what_was_not_the_same_besides_is_told(tmp_path: Path) -> None:
    one = read(results_file(tmp_path / "one.json", [1.0]))
    other = read(results_file(tmp_path / "other.json", [2.0, 3.0], processor="another"))
    assert differences(one, other) == [
        "machine, processor: one before, another after",
        "settings, runs: 1 before, 2 after",
    ]


def test_metrics_that_only_one_result_has_are_told() -> None:
    def measured_only(*names: str) -> BenchmarkResults:
        rows = [MeasuredMetric(name=name, unit="ms", runs=[RunValue(value=1.0)]) for name in names]
        return BenchmarkResults(date="", machine={}, asked={}, measurements=rows)

    assert differences(measured_only("a", "b", "c"), measured_only("b", "d", "PSS of all, at most")) == [
        "metrics, measured only before: a; c",
        "metrics, measured only after: d; 1 of the details",
    ]


def test_too_few_runs_are_told_with_the_options_that_make_more(tmp_path: Path) -> None:
    file = results_file(tmp_path / "x.json", [100.0])
    said = CliRunner().invoke(app, ["lab", "compare", str(file), str(file)])
    assert "4 runs of each on (`--repeats` of `bettong lab run`, `--runs` of `make bench`)" in said.stdout


def test_the_command_ends_with_10_where_a_metric_is_worse_and_else_with_0(tmp_path: Path) -> None:
    before = results_file(tmp_path / "a.json", [100.0, 101.0, 99.0, 100.5])
    after = results_file(tmp_path / "b.json", [80.0, 81.0, 79.0, 80.5])
    runner = CliRunner()
    worse = runner.invoke(app, ["lab", "compare", str(before), str(after)])
    assert worse.exit_code == 10
    assert "worse" in worse.output
    assert "-20.0 %" in worse.output
    assert runner.invoke(app, ["lab", "compare", str(after), str(before)]).exit_code == 0
    (found,) = json.loads(runner.invoke(app, ["lab", "compare", "--json", str(before), str(after)]).stdout)
    assert found["verdict"] == "worse"
    assert found["ratio"] == pytest.approx(0.8, rel=0.01)


def test_the_command_says_how_many_runs_it_takes(tmp_path: Path) -> None:
    few = results_file(tmp_path / "a.json", [100.0, 101.0])
    said = CliRunner().invoke(app, ["lab", "compare", str(few), str(few)])
    assert said.exit_code == 0
    assert "shows from 4 runs of each on" in said.output
