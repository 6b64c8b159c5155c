"""Scaling and resetting from a page: permissions, refusals before any question, and events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from bettong.config.access import parse
from bettong_console.changing import WORKERS_MAX
from bettong_console.elsewhere import elsewhere
from bettong_console.errors import ConsoleRequestError
from bettong_console.question import ChangeQuestion, Question, ResetQuestion, RetryQuestion, ScaleQuestion
from tests.console.sites import RecordedSite, client, recorded_site
from tests.console.test_changing import OPERATOR, TOKENS, VIEWER, shown

RELEASE = "trial"
SCALE = ("/api/scale", {"workers": 4, "dry_run": False})
RESET = ("/api/reset", {"application": "visits", "dry_run": False})
RUNS = "processor-1 of visits runs, and would save its states again: stop it first"


class Changed:
    """Answers as `bettong_console.performing` does, and keeps the questions."""

    def __init__(self, refusal: ConsoleRequestError | None = None) -> None:
        self.asked: list[ChangeQuestion] = []
        self._refusal = refusal

    async def ask(self, question: Question) -> str:
        """As `Questions.ask`."""
        await asyncio.sleep(0)
        assert isinstance(question, RetryQuestion | ScaleQuestion | ResetQuestion)
        self.asked.append(question)
        if self._refusal is not None:
            raise self._refusal
        found = {"dry_run": question.dry_run, "texts": ["so it is"], "fault": None}
        if isinstance(question, ScaleQuestion):
            return json.dumps(found | {"before": 2, "workers": question.workers})
        return json.dumps(found | {"records": 1200})


def site(changed: Changed, *, allowed: bool = True, release: str | None = RELEASE) -> RecordedSite:
    return recorded_site(lambda: parse(TOKENS), ask=changed.ask, changes_allowed=allowed, release=release)


@pytest.fixture
def changed() -> Changed:
    return Changed()


@pytest.fixture
def asking(changed: Changed) -> Iterator[TestClient]:
    with client(site(changed)) as found:
        yield found


def newest(asking: TestClient) -> tuple[str, str, str]:
    found = asking.get("/api/now?view=events", headers=shown(OPERATOR)).json()["changes"][0]
    return found["kind"], found["what"], found["text"]


def test_who_may_scales_and_it_is_an_event_with_the_name(asking: TestClient, changed: Changed) -> None:
    answer = asking.post(SCALE[0], json=SCALE[1], headers=shown(OPERATOR))
    assert (answer.status_code, answer.json()["workers"]) == (200, 4)
    assert changed.asked == [ScaleQuestion(RELEASE, 4, dry_run=False)]
    assert newest(asking) == ("states", "workers scaled", "from 2 to 4 in release trial, by ann")


def test_who_may_resets_and_it_is_an_event_with_the_name(asking: TestClient, changed: Changed) -> None:
    assert asking.post(RESET[0], json=RESET[1], headers=shown(OPERATOR)).status_code == 200
    assert changed.asked == [ResetQuestion(dry_run=False)]
    text = "all snapshots are deleted, by ann; the next start folds 1,200 records again"
    assert newest(asking) == ("states", "states reset", text)


@pytest.mark.parametrize(("path", "given"), [SCALE, RESET, ("/api/scale", {"workers": None})])
def test_to_ask_what_it_would_do_is_no_event(
    asking: TestClient, changed: Changed, path: str, given: dict[str, object]
) -> None:
    before = newest(asking)
    answer = asking.post(path, json=given | {"dry_run": True}, headers=shown(OPERATOR))
    assert answer.json()["texts"] == ["so it is"]
    assert [each.dry_run for each in changed.asked] == [True]
    assert newest(asking) == before


@pytest.mark.parametrize(("path", "given"), [SCALE, RESET])
@pytest.mark.parametrize(("token", "status"), [(None, 401), ("of nobody", 401), (VIEWER, 403)])
def test_whose_token_does_not_allow_it_changes_nothing(
    asking: TestClient, changed: Changed, path: str, given: dict[str, object], token: str | None, status: int
) -> None:
    answer = asking.post(path, json=given, headers=shown(token) if token else {})
    assert (answer.status_code, changed.asked) == (status, [])


@pytest.mark.parametrize(("path", "given"), [SCALE, RESET])
def test_a_console_without_allow_changes_and_pages_elsewhere_change_nothing(
    changed: Changed, path: str, given: dict[str, object]
) -> None:
    with client(site(changed, allowed=False)) as asking:
        answer = asking.post(path, json=given, headers=shown(OPERATOR))
        assert (answer.status_code, "--allow-changes" in answer.json()["error"]) == (403, True)
    with client(site(changed)) as asking:
        asking.post("/sign-in", data={"token": OPERATOR})
        assert asking.post(path, json=given, headers={"sec-fetch-site": "same-site"}).status_code == 403
        assert asking.post(path, content=json.dumps(given)).status_code == 415
    assert changed.asked == []


@pytest.mark.parametrize("workers", ["4", "many", 1.5, True, -1, WORKERS_MAX + 1, 10**400, [], {}])
def test_what_is_no_number_of_workers_is_refused(
    asking: TestClient, changed: Changed, workers: object
) -> None:
    body = json.dumps({"workers": workers, "dry_run": False}) if workers != 10**400 else _HUGE
    headers = {"content-type": "application/json", **shown(OPERATOR)}
    answer = asking.post("/api/scale", content=body, headers=headers)
    assert (answer.status_code, "0 to 4,096 workers" in answer.json()["error"]) == (400, True)
    assert changed.asked == []


_HUGE = '{"workers": 1' + "0" * 5_000 + ', "dry_run": false}'


def test_no_workers_are_a_number_that_may_be_set(asking: TestClient, changed: Changed) -> None:
    assert asking.post(
        "/api/scale", json={"workers": 0, "dry_run": False}, headers=shown(OPERATOR)
    ).is_success
    assert changed.asked == [ScaleQuestion(RELEASE, 0, dry_run=False)]
    assert newest(asking)[2] == "from 2 to 0 in release trial, by ann"


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/api/scale", {}),
        ("/api/scale", {"workers": 4}),
        ("/api/scale", {"workers": None, "dry_run": False}),
        ("/api/scale", {"workers": 4, "dry_run": False, "release": "another"}),
        ("/api/reset", {}),
        ("/api/reset", {"dry_run": True}),
        ("/api/reset", {"application": 5, "dry_run": True}),
        ("/api/reset", {"application": "visits"}),
        ("/api/reset", {"application": "visits", "dry_run": "yes"}),
    ],
)
def test_garbage_is_refused_with_what_was_expected(
    asking: TestClient, changed: Changed, path: str, given: dict[str, object]
) -> None:
    answer = asking.post(path, json=given, headers=shown(OPERATOR))
    assert (answer.status_code, answer.json()["error"].startswith("expected {")) == (400, True)
    assert changed.asked == []


@pytest.mark.parametrize("name", ["visit", "Visits", "visits ", "", "another"])
def test_another_name_than_the_applications_resets_nothing(
    asking: TestClient, changed: Changed, name: str
) -> None:
    before = newest(asking)
    answer = asking.post("/api/reset", json={"application": name, "dry_run": False}, headers=shown(OPERATOR))
    assert (answer.status_code, "expected visits" in answer.json()["error"]) == (422, True)
    assert (changed.asked, newest(asking)) == ([], before)


def test_where_no_release_is_known_nothing_is_scaled(changed: Changed) -> None:
    with client(site(changed, release=None)) as asking:
        answer = asking.post(SCALE[0], json=SCALE[1], headers=shown(OPERATOR))
    assert (answer.status_code, "BETTONG_CONSOLE_RELEASE" in answer.json()["error"]) == (422, True)
    assert changed.asked == []


@pytest.mark.parametrize(
    ("path", "given", "refusal", "text"),
    [
        (*RESET, (422, RUNS), f"all snapshots were to be deleted, by ann, and it was refused: {RUNS}"),
        (
            *SCALE,
            (503, "no answer from the cluster"),
            "there were to be 4 in release trial, by ann, and no answer came: no answer from the cluster",
        ),
    ],
)
def test_what_was_refused_or_broke_off_is_an_event_that_says_which(
    path: str, given: dict[str, object], refusal: tuple[int, str], text: str
) -> None:
    with client(site(Changed(ConsoleRequestError(*refusal)))) as asking:
        answer = asking.post(path, json=given, headers=shown(OPERATOR))
        assert (answer.status_code, answer.json()["error"]) == refusal
        assert newest(asking)[2] == text


def test_what_is_changed_elsewhere_is_told_with_its_commands_to_those_who_may() -> None:
    here = elsewhere("my apps/visits.py", Path(".bettong"), None)
    assert here["reset"].commands.splitlines() == [
        "bettong down --dir .bettong && sleep 12 &&",
        "bettong state reset 'my apps/visits.py' --dir .bettong --yes &&",
        "bettong up 'my apps/visits.py' --dir .bettong",
    ]
    assert elsewhere("visits.py", None, None).keys() == {"scale"}
    assert elsewhere("visits.py", None, RELEASE) == {}
    found = recorded_site(lambda: parse(TOKENS), changes_allowed=True, elsewhere=here)
    with client(found) as asking:
        described = {
            token: asking.get("/api/description", headers=shown(token)).json()["elsewhere"]
            for token in (OPERATOR, VIEWER)
        }
    assert described[VIEWER] == {}
    assert described[OPERATOR]["scale"]["commands"] == here["scale"].commands
