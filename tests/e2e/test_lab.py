"""`bettong lab run` on a real suite: what it measures, what it leaves, and that wrong results are no measurement."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bettong.lab.results import read
from bettong.lab.statistics.comparison import ChangeVerdict, compare
from bettong.latency_parts import LatencyPart
from tests.samples.lab_versions import commit, git, repository

LAB = Path(__file__).parents[2] / "benchmarks" / "lab"

APPLICATION = '''
"""Sums of amounts, of a hundred accounts."""
from dataclasses import dataclass
import bettong

@dataclass
class Amount:
    account: int
    amount: int

@dataclass
class Total:
    total: int = 0

@dataclass
class Sum:
    account: int
    total: int

def add(amount: Amount, state: Total) -> Sum:
    state.total += amount.amount
    {work}
    return Sum(amount.account, state.total)

app = bettong.Application("lab-sums")
app.source("amounts", schema=Amount, key="account").stateful(add, state=Total).sink("sums")
'''

LOAD = '''
"""Amounts of a hundred accounts in turns, and the sum of each at every step."""
import numpy as np
from bettong.lab.load import LoadPart

ACCOUNTS = 100

class Amounts:
    def __init__(self, messages):
        self.messages = messages

    def first(self):
        return [LoadPart("amounts", dict(account=np.arange(ACCOUNTS), amount=np.zeros(ACCOUNTS, int)))]

    def rounds(self):
        numbers = np.arange(self.messages)
        yield [LoadPart("amounts", dict(account=numbers % ACCOUNTS, amount=numbers))]

    def lines(self):
        totals, lines = [0] * ACCOUNTS, [[f'{{"account":{each},"total":0}}'] for each in range(ACCOUNTS)]
        for number in range(self.messages):
            totals[number % ACCOUNTS] += number
            lines[number % ACCOUNTS].append(f'{{"account":{number % ACCOUNTS},"total":{totals[number % ACCOUNTS]}}}')
        return [line for each in lines for line in each]

    def result_bytes(self):
        return {"sums": sum(map(len, self.lines()))}

    def wrong(self, results):
        found = sorted(results["sums"].decode().replace("}", "}\\n").split())
        return "" if found == sorted(self.lines()) else f"{len(found)} lines"

def load(messages, seed):
    return Amounts(messages)
'''

TABLE = """
[[load.sources]]
source = "amounts"
fields.account = { kind = "keys", count = 100, skew = 1.0 }
fields.amount = { kind = "counter" }
"""

STEADY = "partitions = 2\nwarm_up_s = 1\nrepeats = 1\n[[steps]]\nmessages_per_s = 2000\nseconds = 4\n"


def run_file(folder: Path, rest: str, *, work: str = "pass", load: str = LOAD, name: str = "sums") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "sums.py").write_text(APPLICATION.replace("{work}", work))
    names = f'name = "{name}"\napplication = "{folder}/sums.py"\n'
    if load == TABLE:
        (folder / "run.toml").write_text(names + rest + TABLE)
    else:
        (folder / "load.py").write_text(load)
        (folder / "run.toml").write_text(f'{names}load = "{folder}/load.py"\n{rest}')
    return folder / "run.toml"


def lab(*words: str, seconds: float = 240.0) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "bettong", "lab", *words]
    return subprocess.run(call, check=False, capture_output=True, text=True, timeout=seconds)


def test_a_run_measures_latency_and_use_and_leaves_a_folder_of_which_a_page_is_made(tmp_path: Path) -> None:
    out = tmp_path / "out"
    search = "amount.amount % 1000 or __import__('gc').collect()"  # Python itself looks for garbage rarely
    ended = lab("run", str(run_file(tmp_path / "run", STEADY, work=search, load=TABLE)), "--out", str(out))
    assert ended.returncode == 0, ended.stderr
    (folder,) = out.iterdir()
    found = {each.name: each.values for each in read(folder).metrics}
    percentiles = [found[f"sums at 2,000/s, {each}"][0] for each in ("p50", "p90", "p99", "p99.9", "max")]
    assert percentiles == sorted(percentiles)
    assert 0 < percentiles[0] < 10_000
    parts_ms = [found[f"sums: {part.words}, mean"][0] for part in LatencyPart]
    assert percentiles[0] / 4 < sum(parts_ms) <= percentiles[-1]
    assert found["CPU of all, a million messages"][0] > 0
    each_at_most = [values[0] for name, values in found.items() if name.startswith("memory of ")][1:]
    assert max(each_at_most) < found["memory of all, at most"][0] <= sum(each_at_most)
    rows = pq.read_table(folder / "series.parquet").to_pylist()
    assert {"sender: cores", "kafka: memory MB", "processor: messages/s", "python-worker: GC pause ms"} <= {
        row["metric"] for row in rows
    }
    assert "sums, inside worker: part ms" in {row["metric"] for row in rows}
    assert lab("report", str(folder)).returncode == 0
    assert "p99.9" in (folder / "report.html").read_text()


def test_a_run_without_messages_measures_what_an_idle_suite_takes(tmp_path: Path) -> None:
    rest = STEADY.replace("2000", "0").replace("seconds = 4", "seconds = 5")
    ended = lab("run", str(run_file(tmp_path / "run", rest)), "--out", str(tmp_path / "out"))
    assert ended.returncode == 0, ended.stderr
    (folder,) = (tmp_path / "out").iterdir()
    found = {each.name: each.values[0] for each in read(folder).metrics}
    assert 0 < found["CPU of kafka"] < found["CPU of all"]
    assert found["memory of all, at most"] > found["memory of kafka, at most"]
    assert not [name for name in found if "a million messages" in name or "p50" in name]
    samples = [row["at_s"] for row in pq.read_table(folder / "series.parquet").to_pylist()]
    assert max(samples) > 5


def of_the_tree(folder: Path, name: str, rest: str) -> Path:
    """A run file of benchmarks/lab, made short: up to its load, and then the rest."""
    kept = (LAB / f"{name}.toml").read_text().splitlines()
    end = next(number for number, line in enumerate(kept) if line.startswith("load = ")) + 1
    file = folder / f"{name}.toml"
    file.write_text("\n".join([*kept[:end], rest]))
    return file


def test_words_go_from_topic_to_topic_while_a_worker_is_killed_and_the_page_says_so(tmp_path: Path) -> None:
    file = of_the_tree(
        tmp_path,
        "word_count_steady",
        "partitions = 2\nwarm_up_s = 2\nrepeats = 1\n[[steps]]\nmessages_per_s = 1000\nseconds = 8\n"
        '[[faults]]\nkind = "kill"\ntargets = ["python-worker"]\nat_s = [4]\n',
    )
    ended = lab("run", str(file), "--out", str(tmp_path / "out"))
    assert ended.returncode == 0, ended.stderr
    (folder,) = (tmp_path / "out").iterdir()
    found = {each.name: each.values[0] for each in read(folder).metrics}
    assert 0 < found["counts at 1,000/s, p50"] <= found["counts at 1,000/s, p99.9"] < 120_000
    assert 0 < found["counts: longest pause of a partition"] < 120_000
    rows = pq.read_table(folder / "series.parquet").to_pylist()
    (fault,) = (row for row in rows if row["metric"] == "kill python-worker: fault")
    assert 4 <= fault["at_s"] < 8
    assert any(row["metric"] == "machine: network MB/s" and row["value"] > 0 for row in rows)
    assert {row["metric"] for row in rows if row["metric"].endswith("GC pause ms")}
    assert lab("report", str(folder)).returncode == 0
    assert "kill python-worker" in (folder / "report.html").read_text()


@pytest.mark.long
def test_json_goes_from_topic_to_topic_as_fast_as_it_goes(tmp_path: Path) -> None:
    file = of_the_tree(tmp_path, "json_orders", "partitions = 2\nmessages = 20_000\nrepeats = 1\n")
    ended = lab("run", str(file), "--out", str(tmp_path / "out"))
    assert ended.returncode == 0, ended.stderr
    (folder,) = (tmp_path / "out").iterdir()
    assert {each.name: each.values[0] for each in read(folder).metrics}["throughput"] > 0


@pytest.mark.long
def test_wrong_results_are_no_measurement(tmp_path: Path) -> None:
    load = LOAD.replace(
        "totals[number % ACCOUNTS] += number", "totals[number % ACCOUNTS] += number + (number == 77)"
    )
    ended = lab("run", str(run_file(tmp_path / "run", STEADY, load=load)), "--out", str(tmp_path / "out"))
    assert ended.returncode == 1
    assert "the results are wrong" in ended.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_a_rate_that_is_not_sustained_is_missed_for_its_lag_where_the_objective_is_met(
    tmp_path: Path,
) -> None:
    """A partition takes in some 900 messages a second, and an objective of minutes is met all the same."""
    rest = STEADY + "[objective]\np99_ms = 600_000\n"
    file = run_file(tmp_path / "run", rest, work="__import__('time').sleep(0.001)")
    asked = ("--from", "2300", "--seconds", "12", "--precision", "100", "--json")
    ended = lab("find", str(file), *asked, seconds=900.0)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    first, *_, last = found["probes"]
    assert first["rate"] == 2300
    assert "the lag grows by" in first["why"], found
    assert "messages/s" in first["why"]
    assert (last["rate"], last["why"]) == (found["sustained"], "")
    assert last["lag_per_s"] < first["lag_per_s"]


@pytest.mark.long
def test_a_slowdown_put_in_on_purpose_is_found_and_none_between_equal_runs(tmp_path: Path) -> None:
    rest = "partitions = 2\nmessages = 400_000\nframe_messages = 4000\n"
    work = {"before": "pass", "equal": "pass", "slower": "sum(range(4))"}
    files = [str(run_file(tmp_path / kind, rest, work=each, name=kind)) for kind, each in work.items()]
    ended = lab("run", *files, "--repeats", "6", "--out", str(tmp_path / "out"), seconds=1800.0)
    assert ended.returncode == 0, ended.stderr
    metric = "CPU of python-worker, a million messages"
    before, equal, slower = (
        [each for each in read(folder).metrics if each.name == metric]
        for folder in (next((tmp_path / "out").glob(f"*-{kind}")) for kind in work)
    )
    assert compare(before, equal)[0].verdict is ChangeVerdict.NO_CHANGE
    assert compare(before, slower)[0].verdict is ChangeVerdict.WORSE


@pytest.mark.long
def test_two_commits_of_an_application_take_turns_and_a_slowdown_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = 'name = "sums"\napplication = "sums.py"\nload = "load.py"\n'
    rest = "partitions = 2\ncompiled = false\nmessages = 100_000\nframe_messages = 1000\n"
    files = {"load.py": LOAD, "run.toml": names + rest, "sums.py": APPLICATION.replace("{work}", "pass")}
    tree = repository(tmp_path / "tree", files)
    commit(tree, {"sums.py": APPLICATION.replace("{work}", "sum(range(1000))")}, tag="slower")
    monkeypatch.chdir(tree)
    ended = lab("run", "run.toml", "--against", "old", "--repeats", "5", "--json", seconds=1800.0)
    assert ended.returncode == 10, ended.stderr
    found = {each["name"]: each["verdict"] for each in json.loads(ended.stdout)}
    assert found["CPU of all, a million messages"] == ChangeVerdict.WORSE
    assert len(git(tree, "worktree", "list").splitlines()) == 1
