"""The page of runs: what it shows of each, when faults came, and that it suits light and dark."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram

from bettong.errors import LabError
from bettong.lab.folder import SERIES, results, save
from bettong.lab.measures import Measured
from bettong.lab.page.page import page
from bettong.lab.results import read
from bettong.lab.run import Repeat
from bettong.lab.series import SeriesPoint
from bettong.lab.spec import LoadStep, Objective, RunSpec
from bettong.lab.tails import tail_notes

NOW = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)
UNJUDGED = Objective()
PLOTS = 6  # latency by percentile, and over time throughput, latency, cores, network and pauses


def run_folder(
    out: Path,
    name: str,
    p99_ms: float,
    *series: SeriesPoint,
    repeats: int = 1,
    objective: Objective = UNJUDGED,
    latencies: int = 100,
) -> Path:
    """A folder of a run, each repeat as the others."""
    histogram = HdrHistogram(1, 10**10, 3)
    for number in range(latencies):
        histogram.record_value(round((number + 1) * p99_ms * 1e6 / latencies))
    steps = [LoadStep(messages_per_s=1, seconds=60)]
    spec = RunSpec(name=name, application="a.py", load="l.py", steps=steps, objective=objective)
    measured = [
        Measured("out at 1/s, p50", "ms", p99_ms / 2, histogram.encode().decode()),
        Measured("out at 1/s, p99", "ms", p99_ms),
        Measured("memory of kafka, at most", "MB", 300.0),
    ]
    found = [Repeat(measured, list(series))] * repeats
    return save(out, spec, found, results(spec, found, {"processor": "<one>"}, NOW))


def points(metric: str) -> list[SeriesPoint]:
    """Of some seconds."""
    return [SeriesPoint(float(second), metric, 1.0 + second) for second in range(5)]


def test_a_page_shows_what_was_measured_over_time_and_when_faults_came(tmp_path: Path) -> None:
    folder = run_folder(
        tmp_path,
        "one",
        7.0,
        *points("out: latency ms"),
        *points("sender: cores"),
        *points("processor: messages/s"),
        *points("machine: network MB/s"),
        *points("kafka: GC pause ms"),
        SeriesPoint(2.0, "kill python-worker: fault", 0.0),
        SeriesPoint(3.0, "pause sender: fault", 1.5),
        SeriesPoint(3.0, "starve: fault", 1.0),
    )
    text = page([folder])
    assert text.count("<svg") == PLOTS
    over_time = re.findall(r"<h3>([^<]*)</h3>", text)
    assert over_time[:2] == ["Throughput: messages that all stages take in", "Median latency of each second"]
    for said in ("7 ms", "pause sender, for 1.5 s", "starve, for 1.0 s", "3.0 s", "&lt;one&gt;"):
        assert said in text
    # Marked in each plot over time, not among percentiles; and as a fault, not as a line of its own.
    assert len(re.findall(r"</i>faults", text)) == PLOTS - 1
    assert text.count("kill python-worker") == 1
    assert "range</th>" not in text


@pytest.mark.parametrize(("repeats", "whose"), [(1, ""), (3, ", first repeat")])
def test_of_several_repeats_it_says_whose_course_it_shows(repeats: int, whose: str, tmp_path: Path) -> None:
    series = (*points("kafka: GC pause ms"), SeriesPoint(2.0, "kill sender: fault", 0.0))
    text = page([run_folder(tmp_path, "one", 7.0, *series, repeats=repeats)])
    assert re.findall(r"<h2>((?:Over|Faults).*?)</h2>", text) == [f"Faults{whose}", f"Over time{whose}"]


def test_plots_have_the_colours_of_the_pages_text_and_no_ground_of_their_own(tmp_path: Path) -> None:
    text = page([run_folder(tmp_path, "one", 7.0, *points("sender: cores"))])
    assert "prefers-color-scheme: dark" in text
    assert "currentColor" in text
    drawn = text[text.index("<svg") :]
    assert not re.search(r"(fill|stroke): *(#000000|#ffffff|black|white)", drawn)


def test_several_runs_are_one_page_with_a_table_above(tmp_path: Path) -> None:
    folders = [run_folder(tmp_path, name, p99_ms) for name, p99_ms in (("one", 7.0), ("other", 9.0))]
    text = page(folders)
    above = text[: text.index("<section")]
    assert re.findall(r"href='#(run-\d)'>(\w+)<", above) == [("run-0", "one"), ("run-1", "other")]
    assert "p99: 9 ms" in above
    assert "memory" not in above
    assert re.findall(r"<section id=(run-\d)>", text) == ["run-0", "run-1"]


def test_a_page_begins_with_what_ran_and_whether_the_objective_was_met(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "met", "one", 7.0, repeats=3, objective=Objective(p50_ms=5, p99_ms=8))
    text = page([folder])
    assert "Measured 3 times; 1/s for 60 s; 26 November 2026, 12:00 UTC" in text
    assert "<p class=good>Objective met: at most p50 5 ms, p99 8 ms</p>" in text
    missed = page([run_folder(tmp_path / "missed", "one", 7.0, objective=Objective(p99_ms=6))])
    assert "<p class=bad>Objective missed: out at 1/s, p99 is 7 ms, the objective 6 ms</p>" in missed
    assert "Objective" not in page([run_folder(tmp_path / "none", "one", 7.0)])


@pytest.mark.parametrize(("latencies", "said"), [(40, "p99 and p99.9"), (100, "p99.9"), (1000, "")])
def test_a_percentile_that_is_just_the_largest_latency_is_told(
    latencies: int, said: str, tmp_path: Path
) -> None:
    folder = run_folder(tmp_path, "one", 7.0, latencies=latencies)
    (note,) = tail_notes(read(folder)) if said else ("",)
    assert f"out at 1/s: in a repeat the largest latency is also its {said}, so" in note or not said
    assert ("<p class=note>" in page([folder])) == bool(said)


def test_the_metrics_that_count_come_first_and_their_details_last(tmp_path: Path) -> None:
    text = page([run_folder(tmp_path, "one", 7.0, *points("sender: cores"))])
    positions = [
        text.index(each) for each in ("out at 1/s, p99", "Over time", "memory of kafka, at most", "Machine")
    ]
    assert positions == sorted(positions)


def test_all_plots_over_time_show_one_span_of_it_from_zero_on(tmp_path: Path) -> None:
    cores = [SeriesPoint(at_s, "sender: cores", 1.0) for at_s in (2.0, 40.0)]
    text = page([run_folder(tmp_path, "one", 7.0, *cores, *points("machine: network MB/s"))])
    plots = text.split("<h3>")[1:]
    spans = {
        tuple(re.findall(r"<g id=.xtick_.*?<text[^>]*>([^<]*)</text>", each, re.DOTALL)) for each in plots
    }
    assert len(plots) == len(["cores", "network"])
    assert spans == {("0", "5", "10", "15", "20", "25", "30", "35", "40")}
    assert all(re.search(r"<g id=.ytick_1.*?<text[^>]*>0</text>", each, re.DOTALL) for each in plots)


def test_a_latency_plot_has_numbers_even_if_latencies_lie_close_together(tmp_path: Path) -> None:
    text = page([run_folder(tmp_path, "one", 60.0)])
    numbers = re.findall(r"<g id=.ytick_.*?<text[^>]*>([^<]*)</text>", text, re.DOTALL)
    assert {"1", "10", "20", "50"} <= set(numbers)


def test_a_folder_of_runs_shows_the_newest_with_its_plots(tmp_path: Path) -> None:
    run_folder(tmp_path, "one", 7.0, *points("sender: cores"))
    assert "Cores in use" in page([tmp_path])


def test_damaged_metrics_over_time_are_named(tmp_path: Path) -> None:
    folder = run_folder(tmp_path, "one", 7.0, *points("sender: cores"))
    whole = (folder / SERIES).read_bytes()
    for damaged in (whole[:100], b""):
        (folder / SERIES).write_bytes(damaged)
        with pytest.raises(LabError, match=r"series\.parquet holds no metrics over time: .*remove it"):
            page([folder])


def test_a_folder_that_is_no_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="holds no results"):
        page([tmp_path])
