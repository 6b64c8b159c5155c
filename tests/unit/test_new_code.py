"""New code of an application: when it is looked at, what is refused, and which services start again for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.edges.application_file import load
from bettong.edges.reload_answer import ReloadAnswer
from bettong.errors import SettingsError
from bettong.local.processes import Command
from bettong.local.reloads import Reloads
from bettong_processor.application_code import ApplicationCode, CodeChange
from tests.waiting import eventually

APPLICATION = """
from dataclasses import dataclass
import bettong

@dataclass
class Item:
    key: str

@dataclass
class Count:
    key: str = ""
    count: int = 0

def count(item: Item, kept: Count) -> Count:
    kept.count += 1
    return Count(item.key, kept.count)

app = bettong.Application("counted")
items = app.source("items", schema=Item, key="key")
items.stateful(count, state=Count).sink("counts")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "code" / "app.py"
    path.parent.mkdir()
    path.write_text(APPLICATION)
    return path


@pytest.fixture
def code(file: Path) -> ApplicationCode:
    """It has looked at what was saved while it started."""
    code = ApplicationCode(settings(file), editions(file))
    first = found(code)
    assert (first.refused, first.is_new) == ("", False)
    code.refuse(first, "")
    return code


def settings(file: Path) -> ProcessorSettings:
    return read(ProcessorSettings, {"application": str(file), "kernel_cache": editions(file) / "kernels"})


def editions(file: Path) -> Path:
    """Not in the application's folder, whose changes are looked at."""
    return file.parents[1] / "editions"


def found(code: ApplicationCode) -> CodeChange:
    return eventually(code.poll, what="the change is found")


def quiet(code: ApplicationCode) -> bool:
    """Nothing is found in files that nobody touches."""
    return not [change for change in (code.poll() for _ in range(5)) if change is not None]


def answer(file: Path) -> ReloadAnswer:
    said = ReloadAnswer.read(editions(file))
    assert said is not None
    return said


def test_a_saved_file_is_found_and_runs_from_then_on(code: ApplicationCode, file: Path) -> None:
    assert quiet(code)
    file.write_text(APPLICATION.replace("+= 1", "+= 2"))
    change = found(code)
    assert (change.refused, change.is_new) == ("", True)
    code.accept(change)
    assert load(code.settings.application) is load(change.reference)
    assert answer(file) == ReloadAnswer(number=1, edition=change.reference)
    assert sorted(path.name for path in editions(file).glob("*.edition")) == ["0.edition", "1.edition"]
    assert quiet(code)


def test_of_two_saves_the_last_one_counts(code: ApplicationCode, file: Path) -> None:
    file.write_text(APPLICATION.replace("+= 1", "+= 2"))
    first = found(code)
    file.write_text(APPLICATION.replace("+= 1", "+= 3"))
    code.accept(first)
    second = found(code)
    code.accept(second)
    assert b"+= 3" in next(iter(second.edition.modules.values())).source
    assert quiet(code)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (APPLICATION + "x = = 1\n", "SyntaxError"),
        (APPLICATION + "items.sink('counts')\n", "the name 'counts' is taken"),
        (APPLICATION + "raise SystemExit\n", "it ended by sys.exit(None)"),
        (APPLICATION.replace('"counted"', '"other"'), "its name is 'other' now"),
        (APPLICATION.replace("    key: str\n\n", "    key: str\n    n: int\n\n", 1), "messages of 'items'"),
        (APPLICATION.replace("count: int = 0", "count: str = ''"), "messages of 'counts' have other fields"),
    ],
    ids=["syntax", "description", "exit", "name", "source", "sink"],
)
def test_what_cannot_be_taken_up_is_refused_once_and_the_next_save_is_looked_at(
    code: ApplicationCode, file: Path, text: str, why: str
) -> None:
    before = code.settings.application
    file.write_text(text)
    change = found(code)
    assert why in change.refused
    code.refuse(change, change.refused)
    assert code.settings.application == before
    assert answer(file).refused == change.refused
    assert quiet(code)
    (file.parent / "another").touch()
    code.refuse(again := found(code), again.refused)
    assert answer(file).number == 1, "the same is said once"
    file.write_text(APPLICATION.replace("+= 1", "+= 2"))
    assert found(code).refused == ""


def test_code_that_does_not_fit_the_states_is_tried_once_and_may_be_mended(
    code: ApplicationCode, file: Path
) -> None:
    file.write_text(APPLICATION.replace("+= 1", "+= 2"))
    code.refuse(found(code), "the state has another shape")
    assert answer(file).refused == "the state has another shape"
    (file.parent / "another").touch()
    change = found(code)
    assert not change.is_new
    code.refuse(change, "")
    file.write_text(APPLICATION.replace("+= 1", "+= 3"))
    assert found(code).is_new


def test_a_change_that_was_looked_at_and_came_to_nothing_is_looked_at_again(
    code: ApplicationCode, file: Path
) -> None:
    """Redis was away when it was to start, and the file was saved meanwhile."""
    file.write_text(APPLICATION.replace("+= 1", "+= 2"))
    first = found(code)
    file.write_text(APPLICATION.replace("+= 1", "+= 3"))
    second = found(code)
    assert b"+= 3" in next(iter(second.edition.modules.values())).source
    assert load(first.reference) is not load(second.reference), "not what was loaded by the same name"


def test_a_file_that_is_deleted_is_refused_and_may_come_back(code: ApplicationCode, file: Path) -> None:
    file.unlink()
    change = found(code)
    assert "there is no such file" in change.refused
    code.refuse(change, change.refused)
    file.write_text(APPLICATION)
    change = found(code)
    assert (change.refused, change.is_new) == ("", False)


def test_a_module_that_was_missing_is_found_when_it_is_there_and_watched_while_it_is_wrong(
    code: ApplicationCode, file: Path
) -> None:
    file.write_text("import new_code_rule\n" + APPLICATION)
    missing = found(code)
    assert "ModuleNotFoundError" in missing.refused
    code.refuse(missing, missing.refused)
    rule = file.parent / "new_code_rule.py"
    rule.write_text("x = (")
    wrong = found(code)
    assert "SyntaxError" in wrong.refused
    code.refuse(wrong, wrong.refused)
    rule.write_text("x = 1")
    mended = found(code)
    assert (mended.refused, mended.is_new) == ("", True)


@pytest.mark.parametrize(
    ("old", "new", "restarted"),
    [
        ('key="key")', 'key="key", out_of_order=timedelta(seconds=1))', ["sender"]),
        ('.sink("counts")', '.sink("counts")\nitems.sink("raw")', ["receiver", "console"]),
        (
            "items.stateful",
            'more = app.source("more", schema=Item, key="key")\nmore.sink("all")\nitems.stateful',
            None,
        ),
        ("+= 1", "+= 2", []),
    ],
    ids=["source", "sink", "both", "function"],
)
def test_services_that_read_what_has_changed_start_again(
    code: ApplicationCode, file: Path, old: str, new: str, restarted: list[str] | None
) -> None:
    text = APPLICATION.replace(old, new)
    file.write_text("from datetime import timedelta\n" + text)
    change = found(code)
    assert change.refused == ""
    code.accept(change)
    expected = ["sender", "receiver", "console"] if restarted is None else restarted
    assert answer(file).restarts == dict.fromkeys(expected, 1)


def test_a_processor_that_is_started_again_goes_on_with_the_code_that_ran(
    code: ApplicationCode, file: Path
) -> None:
    file.write_text(APPLICATION.replace("+= 1", "+= 2"))
    code.accept(found(code))
    file.write_text("broken (")
    again = ApplicationCode(settings(file), editions(file))
    assert again.settings.application == code.settings.application
    assert "SyntaxError" in found(again).refused


def test_a_processor_that_is_started_again_gives_no_edition_the_name_of_the_one_that_runs(
    code: ApplicationCode, file: Path
) -> None:
    """Answers and editions are counted apart: some code is loaded, and nothing is said of it."""
    file.write_text(APPLICATION.replace("+= 1", "+= 2"))
    found(code)
    file.write_text(APPLICATION.replace("+= 1", "+= 3"))
    change = found(code)
    code.accept(change)
    assert answer(file).number < int(Path(change.reference).stem)
    again = ApplicationCode(settings(file), editions(file))
    file.write_text(APPLICATION.replace("+= 1", "+= 4"))
    newer = found(again)
    assert newer.reference != change.reference
    assert load(newer.reference) is not load(change.reference)


def test_workers_on_other_machines_could_not_read_editions(file: Path) -> None:
    elsewhere = settings(file).model_copy(update={"spark_master": "spark://somewhere:7077"})
    with pytest.raises(SettingsError, match="BETTONG_RELOAD: only on one machine"):
        ApplicationCode(elsewhere, editions(file))


def test_a_suite_hears_of_each_change_once(tmp_path: Path) -> None:
    folder = tmp_path / "editions"
    reloads = Reloads(folder, "some/app.py:app")
    assert reloads.settings == {"reload": str(folder)}
    assert reloads.new(["sender", "receiver"]) is None
    folder.mkdir()
    ReloadAnswer(number=0, edition="0").write(folder)
    assert reloads.new(["sender", "receiver"]) is None
    ReloadAnswer(number=1, edition="0", refused="no").write(folder)
    said = reloads.new(["sender", "receiver"])
    assert said is not None
    assert said.line == "app.py has changed, the old code runs on until the new code can run: no"
    assert said.restart == ()
    assert reloads.new(["sender", "receiver"]) is None
    ReloadAnswer(number=3, edition="3", restarts={"sender": 1, "console": 1}).write(folder)
    said = reloads.new(["sender", "receiver"])
    assert said is not None
    assert said.line == "app.py has changed, the new code runs; started again for it: sender"
    assert said.restart == ("sender",)
    assert Reloads().new([]) is None


def test_a_service_starts_again_with_the_code_that_runs_and_the_processor_with_the_file(
    tmp_path: Path,
) -> None:
    reloads = Reloads(tmp_path / "editions", "app.py")
    environment = {"BETTONG_APPLICATION": "app.py", "BETTONG_INSTANCE": "sender-2"}
    sender, processor, kafka = (
        Command(name, (), tmp_path / "log", environment=given)
        for name, given in (("sender-2", environment), ("processor", environment), ("kafka", {}))
    )
    assert reloads.command(sender) == sender, "nothing is known yet"
    (tmp_path / "editions").mkdir()
    ReloadAnswer(number=0, edition="0.edition").write(tmp_path / "editions")
    assert reloads.command(sender).environment == environment | {"BETTONG_APPLICATION": "0.edition"}
    ReloadAnswer(number=2, edition="1.edition", refused="no").write(tmp_path / "editions")
    assert reloads.command(reloads.command(sender)).environment["BETTONG_APPLICATION"] == "1.edition"
    assert [reloads.command(each) for each in (processor, kafka)] == [processor, kafka]
    assert Reloads().command(sender) == sender
