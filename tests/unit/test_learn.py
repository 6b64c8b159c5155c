"""docs/learn: the code of each step runs, its commands are there, and what the reader shall see is what comes out."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from io import StringIO
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from bettong.application.plan import plan
from bettong.cli.dead_letters.tables import reasons_table
from bettong.cli.init import files
from bettong.inspection.reason_counts import ReasonKey, ReasonRow
from bettong.routing import partition_of
from bettong.testing import END, Outcome, run, watermark
from tests.e2e.test_newcomer import commands
from tests.samples.example_files import messages_of, shown_lines
from tests.samples.page_code import FENCE, blocks, languages, page_module, run_tests
from tests.samples.page_commands import check_command, lines, of_bettong

ROOT = Path(__file__).resolve().parents[2]
LEARN = ROOT / "docs" / "learn"
INDEX, FAILURE, DEPLOY = (LEARN / f"{name}.md" for name in ("index", "4-failure", "5-deploy"))
STEPS = sorted(page for page in LEARN.glob("*.md") if page != INDEX)
WITH_CODE = STEPS[:-1]
PROJECT = files("pay-totals", version("bettong"))
FILE = re.compile(r"`([\w-]+\.jsonl)`:\n\n\Z")
NEXT = re.compile(r"^Next: \[[^]]+\]\(([\w-]+\.md)\)$", re.MULTILINE)
ROW = re.compile(r"^\| \[[^]]+\]\(([\w-]+\.md)\) \|", re.MULTILINE)
BEGUN = re.compile(r"^# .+\n\nFor someone [^.]+\. [A-Z][\w -]+ (?:minutes|half)\b")
PARTITIONS = 16  # by default
TAKEN_IN_S = 1_795_774_504  # 2026-11-27 10:15:04 UTC
KUBERNETES = LEARN.parent / "kubernetes-start.md"
OBJECT = re.compile(r"\b(?:deployment|statefulset)/(\w+)-([\w-]+)")


def named(page: Path) -> str:
    return page.stem


@pytest.fixture
def step(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The code of a page, of which the part that is `test_app.py` imports the part that is `app.py`."""
    monkeypatch.setitem(sys.modules, "app", ModuleType("app"))  # so that it is as before afterwards
    return page_module(request.param, imported_as="app")


@pytest.mark.parametrize("step", WITH_CODE, indirect=True, ids=named)
def test_the_code_of_a_step_runs_and_its_tests_pass(step: ModuleType) -> None:
    assert run_tests(step)


@pytest.mark.parametrize("step", STEPS[:1], indirect=True, ids=named)
def test_as_many_tests_pass_as_the_first_step_shows(step: ModuleType) -> None:
    tests = [name for name in vars(step) if name.startswith("test_")]
    assert blocks(STEPS[0], "text") == [f"{len(tests)} passed\n"]


def test_no_step_has_code_that_no_test_looks_at() -> None:
    assert {language for page in WITH_CODE for language in languages(page)} == {
        "python",
        "sh",
        "json",
        "text",
    }
    assert languages(DEPLOY) == {"dockerfile", "yaml", "sh", "json"}
    assert languages(INDEX) == {"text"}


def test_the_first_step_and_the_last_show_what_init_makes() -> None:
    hello = STEPS[0]
    assert blocks(hello, "python") == [PROJECT["app.py"], PROJECT["test_app.py"]]
    assert blocks(hello, "json")[0] == PROJECT["payments.jsonl"]
    assert blocks(DEPLOY, "dockerfile") == [PROJECT["Dockerfile"]]
    assert blocks(DEPLOY, "yaml") == [PROJECT["values.yaml"]]


def test_the_tutorial_has_the_commands_that_bring_a_newcomer_to_a_result() -> None:
    shown = [line for page in STEPS for block in blocks(page, "sh") for line in block.splitlines()]
    positions = [shown.index(command) for command in commands()]
    assert positions == sorted(positions)


@pytest.mark.parametrize("page", STEPS, ids=named)
def test_commands_of_a_step_have_the_flags_that_are_shown(page: Path) -> None:
    found = of_bettong(page)
    assert len(found) >= 3
    for words in found:
        check_command(words)


@dataclass
class Shell:
    """What has been done to the application of a page: its files, what was sent, and what came of that."""

    app: Any
    files: dict[str, str] = field(default_factory=lambda: {"payments.jsonl": PROJECT["payments.jsonl"]})
    inputs: list[Any] = field(default_factory=list)
    sent: set[str] = field(default_factory=set)

    def call(self, words: list[str], folder: Path) -> None:
        """`send` ends its stream, so that event time goes on as far as it will; the same file again adds nothing."""
        if words[:2] == ["down", "--remove"]:
            self.inputs.clear()
            self.sent.clear()
        elif words[0] == "send":
            source, path, *again = words[1:]
            if self.files[path] in self.sent and again != ["--again"]:
                return
            self.sent.add(self.files[path])
            (folder / path).write_text(self.files[path])
            (entry,) = (each for each in plan(self.app).sources if each.name == source)
            self.inputs.append((source, messages_of(entry, folder / path)))
            if any(stage.needs_time for stage in plan(self.app).stages):
                self.inputs.append(watermark(END, source))

    def outcome(self) -> Outcome:
        return run(self.app, self.inputs)

    def output(self, words: list[str]) -> Iterator[str]:
        """What a command prints that shows results or states; positions are those of the page."""
        if words[0] == "tail":
            sink, _, count = words[1:]
            results = shown_lines(self.app, sink, self.outcome().outputs[sink])
            assert len(results) == int(count), "all there are, for their order is not promised"
            yield from results
        else:
            assert words[:2] == ["state", "get"]
            for computation, states in self.outcome().states.items():
                if state := states.get(words[-1]):
                    yield json.dumps([computation, partition_of(words[-1], PARTITIONS), words[-1], state])


def comparable(line: str) -> str:
    """At which offset a state was saved is not compared."""
    values = json.loads(line)
    names = ("computation", "partition", "key", "state")
    return json.dumps([values[name] for name in names]) if "state" in values else line


@pytest.mark.parametrize("step", WITH_CODE, indirect=True, ids=named)
def test_the_reader_sees_what_the_page_shows(step: ModuleType, tmp_path: Path) -> None:
    shell, text = Shell(step.app), page_of(step).read_text()
    called, shown = list[list[str]](), 0
    for block in FENCE.finditer(text):
        if block[1] == "sh":
            called = [words[1:] for words in commands_in(block[2])]
            for words in called:
                shell.call(words, tmp_path)
        elif block[1] == "json" and (file := FILE.search(text, 0, block.start())):
            shell.files[file[1]] = block[2]
        elif block[1] == "json":
            printing = [words for words in called if words[0] in ("tail", "state")]
            expected = Counter(line for words in printing for line in shell.output(words))
            assert Counter(map(comparable, block[2].splitlines())) == expected
            shown += 1
    assert shown


@pytest.mark.parametrize("step", [FAILURE], indirect=True, ids=named)
def test_the_cluster_gives_what_the_payments_of_the_step_before_give(
    step: ModuleType, tmp_path: Path
) -> None:
    shell = Shell(step.app, {"payments.jsonl": blocks(FAILURE, "json")[0]})
    shell.call(["send", "payments", "payments.jsonl"], tmp_path)
    (shown,) = blocks(DEPLOY, "json")
    assert Counter(shown.splitlines()) == Counter(shell.output(["tail", "totals", "--count", "3"]))


def page_of(step: ModuleType) -> Path:
    return LEARN / f"{step.__name__.removeprefix('page_learn_').replace('_', '-')}.md"


def commands_in(block: str) -> list[list[str]]:
    return [line.split() for line in block.splitlines() if line.startswith("bettong ")]


def test_what_the_reader_kills_is_the_module_of_sparks_workers() -> None:
    (kill,) = (words for words in lines(FAILURE) if words[0] == "pkill")
    options = (ROOT / "services/processor/bettong_processor/spark_options.py").read_text()
    assert f'"spark.python.daemon.module": "{kill[-1]}"' in options


@pytest.mark.parametrize("step", [FAILURE], indirect=True, ids=named)
def test_dead_letters_are_listed_as_the_page_shows_them(step: ModuleType) -> None:
    (dead,) = run(step.app, [step.payment("bob", 1.0, "???")]).dead_letters
    reason = dead.reason.replace("???", "SEK")
    row = ReasonRow(ReasonKey(dead.computation, reason), 1, TAKEN_IN_S * 10**9, "0.0.0", "payments/x")
    shown = StringIO()
    Console(file=shown, width=80).print(reasons_table([row], 80))
    found = [line.rstrip() for line in shown.getvalue().splitlines()]
    (page,) = blocks(FAILURE, "text")
    assert page.splitlines() == found


def test_objects_on_the_cluster_are_those_of_the_chart_under_the_name_of_the_release() -> None:
    release = next(words[2] for words in lines(DEPLOY) if words[:2] == ["helm", "install"])
    found = OBJECT.findall(DEPLOY.read_text())
    assert {name for name, _ in found} == {release}
    assert {name for _, name in found} <= {name for _, name in OBJECT.findall(KUBERNETES.read_text())}


def test_each_page_says_for_whom_it_is_and_how_long_it_takes_and_leads_on() -> None:
    listed = ROW.findall(INDEX.read_text())
    assert listed == [page.name for page in STEPS]
    for page, after in pairwise([INDEX, *STEPS]):
        assert NEXT.findall(page.read_text()) == [after.name]
    assert [page.name for page in (INDEX, *STEPS) if not BEGUN.match(page.read_text())] == []
